"""Reports as markdown."""

from collections.abc import Mapping

from benchmarks.figures import Cell, Cells, Figure, ratio
from benchmarks.report import Report, Table

BASES = ("floor", "MCPServer", "typescript")
_SPEED = ("p50 us", "p50 of rounds", "p95 us", "req/s, 32 in flight", "answer KB")


def speed_table(title: str, cells: Cells, bodies: Mapping[str, str] | None = None) -> Table:
    """One row per server: times, then its p50 as a multiple of each base's. `bodies`: how each one's answer travels."""
    columns = ("server", *_SPEED, *(f"x {base}" for base in BASES))
    named = {peer: f"{peer}, {bodies[peer]}" if bodies and peer in bodies else peer for peer in cells}
    return Table(title, columns, [(named[peer], *_speed_row(cells, peer, cell)) for peer, cell in cells.items()])


def _speed_row(cells: Cells, peer: str, cell: Cell) -> tuple[str, ...]:
    if isinstance(cell, str):
        return (absent(cell),)
    spread = f"{cell['least_p50_us']:.0f} to {cell['most_p50_us']:.0f}"
    shown = (f"{cell['p50_us']:.0f}", spread, f"{cell['p95_us']:.0f}", f"{cell['rps']:.0f}")
    return (*shown, f"{cell['answer_bytes'] / 1000:.1f}", *(_number(ratio(cells, peer, base)) for base in BASES))


def absent(reason: str) -> str:
    return f"not available: {reason.replace('|', '/')}"


def _number(found: float | None) -> str:
    return "-" if found is None else f"{found:.2f}"


def markdown(report: Report, when: str, machine: str) -> str:
    parts = [f"# {report.name}", f"{when}, {machine}.", report.about]
    parts += [_table(table) for table in report.tables]
    if report.figures:
        parts.append(_table(_figures(report.figures)))
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> str:
    width = len(table.columns)
    aligned = ["---", *["---:"] * (width - 1)]
    rows = [table.columns, aligned, *((*row, *[""] * (width - len(row))) for row in table.rows)]
    return "\n".join([f"**{table.title}**", "", *(f"| {' | '.join(row)} |" for row in rows)])


def _figures(figures: list[Figure]) -> Table:
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        sign = "<" if figure.strictly_below else "<="
        measured = "-" if figure.measured is None else f"{figure.measured:.2f} {figure.unit}"
        rows.append((figure.text, f"{sign} {figure.limit:g} {figure.unit}", measured, figure.verdict))
    return Table("Figures to reach, for quantdeck", ("figure", "limit", "measured", "verdict"), rows)
