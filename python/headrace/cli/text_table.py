"""Tables of plain text, for results that are read by people and kept in files.

Lines never wrap and numbers are never cut: a column that says nothing new can be left out by the caller when the
terminal is narrow (`drop_when_narrow`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.cli.cells import cells, pad

GAP = "  "


@dataclass(frozen=True)
class TextColumn:
    """A column: its heading, whether it holds words (left) or numbers (right), and the order in which it may go."""

    heading: str
    words: bool = False
    drop_when_narrow: int = 0  # 0: never; otherwise lower numbers go first


def render_table(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], *, total: Sequence[str] | None = None, width: int = 80
) -> str:
    """The table as text without a final line end. `total` becomes a last row under a rule.

    Columns leave in the order of `drop_when_narrow` until the table fits into `width` cells; what is left is
    printed even when it is still too wide.
    """
    everything = [*rows, total] if total is not None else list(rows)
    kept = list(range(len(columns)))
    droppable = sorted(
        (index for index in kept if columns[index].drop_when_narrow), key=lambda index: columns[index].drop_when_narrow
    )
    widths = [max(len(columns[index].heading), *(cells(row[index]) for row in everything), 0) for index in kept]
    while droppable and sum(widths[index] for index in kept) + len(GAP) * (len(kept) - 1) > width:
        kept.remove(droppable.pop(0))

    def line(texts: Sequence[str]) -> str:
        parts = [pad(texts[index], widths[index], right=not columns[index].words) for index in kept]
        return GAP.join(parts).rstrip()

    lines = [line([column.heading for column in columns]), *(line(row) for row in rows)]
    if total is not None:
        lines.append("-" * (sum(widths[index] for index in kept) + len(GAP) * (len(kept) - 1)))
        lines.append(line(total))
    return "\n".join(lines)
