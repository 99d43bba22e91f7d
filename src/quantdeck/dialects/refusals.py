"""What a caller hears of arguments that do not fit: each problem by name, rule and a sentence."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from quantdeck.core.contract import Contract
from quantdeck.core.errors import RejectedValue, ToolError

__all__ = ["refusal"]

MAX_TOLD = 20
"""Problems in the details of one refusal."""

MAX_SAID = 5
"""Problems in its sentence."""

_TIME = "must be a time with its offset, such as 2026-01-15T09:30:00Z"
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")

_SAID = {
    "missing": ("required", "is required"),
    "int_type": ("type", "must be an integer"),
    "int_from_float": ("type", "must be an integer"),
    "float_type": ("type", "must be a number"),
    "finite_number": ("type", "must be a finite number"),
    "string_type": ("type", "must be a string"),
    "bool_type": ("type", "must be true or false"),
    "list_type": ("type", "must be a list"),
    "dict_type": ("type", "must be an object"),
    "dataclass_type": ("type", "must be an object"),
    "datetime_type": ("type", _TIME),
    "datetime_parsing": ("format", _TIME),
    "datetime_from_date_parsing": ("format", _TIME),
    "timezone_aware": ("format", _TIME),
    "literal_error": ("enum", "must be one of {expected}"),
    "greater_than_equal": ("minimum", "must be at least {ge}"),
    "greater_than": ("exclusiveMinimum", "must be greater than {gt}"),
    "less_than_equal": ("maximum", "must be at most {le}"),
    "less_than": ("exclusiveMaximum", "must be less than {lt}"),
    "string_too_short": ("minLength", "must have at least {min_length} characters"),
    "string_too_long": ("maxLength", "must have at most {max_length} characters"),
    "string_pattern_mismatch": ("pattern", "must match {pattern}"),
    "too_short": ("minItems", "must have at least {min_length} items"),
    "too_long": ("maxItems", "must have at most {max_length} items"),
    "value_error": ("value", "{error}"),
    "json_invalid": ("value", "are nested too deep"),  # we wrote the JSON, so nothing else is wrong with it
}


def refusal(contract: Contract, error: ValidationError) -> ToolError:
    """The first problem decides the code, all are in the details."""
    problems = error.errors(include_url=False, include_input=False)
    told = [_told(contract, problem) for problem in problems[:MAX_TOLD]]
    said = "; ".join(f"{entry['argument']} {entry['problem']}" for entry in told[:MAX_SAID])
    first = problems[0]
    parameter = contract.by_wire.get(str(first["loc"][0])) if first["loc"] else None
    cause = first.get("ctx", {}).get("error")
    more = cause.details if isinstance(cause, RejectedValue) else {}
    code = (parameter and parameter.rejects) or contract.dialect.invalid
    return code(f"Invalid arguments: {said}", **{"invalid_arguments": told, **more})


def _told(contract: Contract, problem: Any) -> dict[str, str]:
    if problem["type"] in _UNKNOWN:
        takes = ", ".join(contract.by_wire) or "none"
        here = f"an argument of this tool; it takes {takes}" if len(problem["loc"]) == 1 else "known here; leave it out"
        rule, words = "additionalProperties", f"is not {here}"
    elif problem["type"] in _SAID:
        rule, words = _SAID[problem["type"]]
        words = words.format(**problem.get("ctx", {}))
    else:
        rule, words = "value", problem["msg"][:1].lower() + problem["msg"][1:]
    # A branch of a union is a step too, by the validator's name for it, such as `function-before[…]`.
    path = ".".join(str(step)[:80] for step in problem["loc"] if "[" not in str(step))
    return {"argument": path or ('""' if problem["loc"] else "arguments"), "rule": rule, "problem": words}
