"""Unions: what was read of each of their sources."""

from __future__ import annotations

from typing import Final

from headrace.report.markup import Markup, element
from headrace.report.run_files import RunFiles
from headrace.report.sections.told_once import told_once, whose
from headrace.report.tables import Column, table
from headrace.report.values import documents, text, whole
from headrace.report.wording import count

_COLUMNS: Final = (
    Column("table: union: source", words=True),
    Column("lines"),
    Column("skipped"),
    Column("rows"),
    Column("rejected"),
)
_COUNTS: Final = ("lines", "rows_skipped", "rows_read", "rows_rejected")
_MOST: Final = 200


def unions(run: RunFiles) -> Markup | None:
    """All unions of the run; None if it has none. Those that several destinations share are told once."""
    rows: list[list[str]] = []
    for own in told_once(documents(run.summary, "tables")):
        name = f"{whose(own)}: {text(own, 'union', 'name') or '?'}"
        for source in documents(own, "union", "sources"):
            rows.append([f"{name}: {text(source, 'source') or '?'}", *(count(whole(source, each)) for each in _COUNTS)])
    if not rows:
        return None
    parts = [element("h3", "Unions"), table(_COLUMNS, rows[:_MOST], caption="Rows of each source", cards=True)]
    if len(rows) > _MOST:
        parts.append(element("p", f"and {len(rows) - _MOST:,} more: summary.json"))
    return element("div", *parts, class_="chart")
