"""execute_analysis: code that was sent to us, run where it can do no harm."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from quantdeck.core.clock import Now
from quantdeck.core.errors import Busy, ErrorCode, SourceError, ToolError
from quantdeck.dialects.pyth import INVALID_INPUT, RATE_LIMITED
from quantdeck.dialects.pyth import pyth as spec
from quantdeck.servers.pyth_pro.access import Access
from quantdeck.servers.pyth_pro.bindings import Bindings
from quantdeck.sources.pyth import Pyth
from quantdeck.sources.sandbox import LONGEST_CODE, Analysis, Language, Problem, Report, Sandbox
from quantdeck.sources.sandbox.failures import excerpt

TIMEOUT = ErrorCode("sandbox_timeout", "The code did not end in time", 504)
MEMORY = ErrorCode("sandbox_memory", "The code needs more memory than it may have", 422)
SYNTAX = ErrorCode("sandbox_syntax", "The code cannot be read", 422)
RUNTIME = ErrorCode("sandbox_runtime", "The code failed", 422)
SECURITY = ErrorCode("sandbox_security", "The code tried what it may not do", 422)
UNAVAILABLE = ErrorCode("sandbox_unavailable", "No code can be run here", 503)

_CODES = {"timeout": TIMEOUT, "memory": MEMORY, "syntax": SYNTAX, "runtime": RUNTIME, "security": SECURITY}
_SHOWN_LINES = 20


class AnalysisResult(TypedDict):
    result: Annotated[Any, Field(description="What the code returned, as JSON")]
    console: Annotated[list[str], Field(description="What it wrote, line by line")]
    language: str
    isolation: Annotated[str, Field(description="What contained it")]
    duration_ms: float
    memory_mb: Annotated[float, Field(description="The most that it held")]
    api_calls: int
    notes: NotRequired[list[str]]


@spec.tool(errors=(TIMEOUT, MEMORY, SYNTAX, RUNTIME, SECURITY, UNAVAILABLE), deadline_s=90.0)
async def execute_analysis(
    pyth: Pyth,  # whose data an answer is of, so it reports this source first
    sandbox: Sandbox,
    bindings: Bindings,
    access: Access,
    now: Now,
    code: Annotated[str, Field(description="TypeScript code to execute")],
    timeout_ms: Annotated[
        int, Field(ge=1000, le=30_000, description="Max execution time (default: 10000, max: 30000)")
    ] = 10_000,
    language: Annotated[Language, Field(description="Language of the code")] = "typescript",
) -> AnalysisResult:
    """Run an analysis over Pyth data in one call: code in, a small result out. End with `return`.

    await pyth.getSymbols(query?, assetType?), getCandlestickData(symbol, resolution, from, to), getHistoricalPrice(ids,
    timestamp), getLatestPrice(symbols, properties?). indicators: sma, ema, rsi(data, period), bollingerBands(data,
    period, stdDev?), macd(data, fast?, slow?, signal?), percentChange(from, to), standardDeviation(data); series are as
    long as data, NaN at first. console.log is returned. No imports, network, files or timers; 128 MB, 100 calls. In
    python the names are in snake_case.
    """
    if not 0 < len(code) <= LONGEST_CODE:
        told = f"code must have 1 to {LONGEST_CODE} characters, not {len(code)}: ask pyth for data, do not send it."
        raise INVALID_INPUT(told, code_length=len(code))
    bindings.note(code_length=len(code), sandbox_language=language)
    at_ms = int(now.timestamp() * 1000) if now.fixed else None
    try:
        report = await sandbox.run(Analysis(code, language, timeout_ms, at_ms), bindings, full=bindings.from_afar)
    except SourceError as error:
        raise (RATE_LIMITED if isinstance(error, Busy) else UNAVAILABLE)(error.message, **error.details) from error
    bindings.note(**_measured(report))
    if report.problem is not None:
        raise _failed(code, report, report.problem)
    notes = list(report.notes)
    if report.value is None and not report.console:
        notes.append("Nothing was returned: end the code with `return` and a value")
    answer: AnalysisResult = {
        "result": report.value,
        "console": report.console,
        "language": language,
        "isolation": report.isolation,
        "duration_ms": report.duration_ms,
        "memory_mb": report.memory_mb,
        "api_calls": sum(report.calls.values()),
    }
    if notes:
        answer["notes"] = notes
    return answer


def _measured(report: Report) -> dict[str, Any]:
    """What the log says of it: the spec's five, and what they are made of."""
    problem = report.problem
    return {
        "sandbox_memory_mb": report.memory_mb,
        "sandbox_duration_ms": report.duration_ms,
        "api_calls_from_sandbox": sum(report.calls.values()),
        **({} if problem is None else {"sandbox_error_type": problem.kind}),
        "sandbox_isolation": report.isolation,
        "sandbox_memory_exact": report.memory_exact,
        "sandbox_process_mb": report.process_mb,
        "sandbox_cpu_ms": report.cpu_ms,
        "sandbox_boot_ms": report.boot_ms,
        "sandbox_host_wait_ms": round(report.host_wait_ms, 3),
        "sandbox_calls": report.calls,
    }


def _failed(code: str, report: Report, problem: Problem) -> ToolError:
    """A sentence that has all of it, since it is what a model reads; and the same as facts."""
    place = ""
    if problem.line is not None:
        place = f" (line {problem.line}" + (f", column {problem.column})" if problem.column is not None else ")")
    shown = excerpt(code, problem.line, problem.column)
    parts = [f"{problem.name}: {problem.message}{place}", shown, f"Hint: {problem.hint}" if problem.hint else ""]
    if report.console:
        parts.append("\n".join(["Console:", *report.console[-_SHOWN_LINES:]]))
    return _CODES[problem.kind](
        "\n\n".join(part for part in parts if part),
        sandbox_error_type=problem.kind,
        name=problem.name,
        message=problem.message,
        line=problem.line,
        column=problem.column,
        excerpt=shown,
        hint=problem.hint,
        console=report.console,
        isolation=report.isolation,
        duration_ms=report.duration_ms,
        memory_mb=report.memory_mb,
        api_calls=sum(report.calls.values()),
    )
