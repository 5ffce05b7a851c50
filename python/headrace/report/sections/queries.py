"""Queries over rows: what became of the rows that went through each."""

from __future__ import annotations

from typing import Final

from headrace.report.markup import Markup, element
from headrace.report.run_files import RunFiles
from headrace.report.tables import Column, table
from headrace.report.values import documents, number, text, whole
from headrace.report.wording import count, duration

_COLUMNS: Final = (
    Column("table: query", words=True),
    Column("rows"),
    Column("went on"),
    Column("left out"),
    Column("rejected"),
    Column("time at work"),
)
_COUNTS: Final = ("rows", "matched", "filtered", "rejected")
_MOST: Final = 200


def queries(run: RunFiles) -> Markup | None:
    """All queries of the run; None if it has none."""
    found = [
        (own, each)
        for own in documents(run.summary, "tables")
        for each in documents(own, "transforms")
        if text(each, "kind") == "sql"
    ]
    if not found:
        return None
    rows = [
        [
            f"{text(of_table, 'table') or '?'}: {text(own, 'name') or '?'}",
            *(count(whole(own, name)) for name in _COUNTS),
            duration(number(own, "busy_seconds")),
        ]
        for of_table, own in found[:_MOST]
    ]
    parts = [
        element("h3", "Queries"),
        table(_COLUMNS, rows, caption="Rows of each query", cards=True),
    ]
    if len(found) > _MOST:
        parts.append(element("p", f"and {len(found) - _MOST:,} more: summary.json"))
    return element("div", *parts, class_="chart")
