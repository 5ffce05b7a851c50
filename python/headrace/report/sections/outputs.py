"""Transforms with several outputs: how many rows have gone to each."""

from __future__ import annotations

from typing import Final

from headrace.report.markup import Markup, element
from headrace.report.run_files import RunFiles
from headrace.report.tables import Column, table
from headrace.report.values import document, documents, text, whole
from headrace.report.wording import count

_COLUMNS: Final = (Column("transform: output", words=True), Column("rows"))
_MOST: Final = 200


def outputs(run: RunFiles) -> Markup | None:
    """All outputs with names of the run; None if it has none. Those that several destinations share are told once."""
    rows: dict[tuple[str, str, str], int | None] = {}
    for own in documents(run.summary, "tables"):
        whose = text(own, "flow_of") or text(own, "table") or "?"
        for each in documents(own, "transforms"):
            for name in document(each, "outputs"):
                rows.setdefault((whose, text(each, "name") or "?", str(name)), whole(each, "outputs", name))
    if not rows:
        return None
    cells = [[f"{whose}: {name}.{output}", count(found)] for (whose, name, output), found in list(rows.items())[:_MOST]]
    parts = [element("h3", "Outputs"), table(_COLUMNS, cells, caption="Rows of each output", cards=True)]
    if len(rows) > _MOST:
        parts.append(element("p", f"and {len(rows) - _MOST:,} more: summary.json"))
    return element("div", *parts, class_="chart")
