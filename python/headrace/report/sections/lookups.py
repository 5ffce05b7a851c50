"""Lookups: what each was read from, and what became of the rows that looked for something in it."""

from __future__ import annotations

from typing import Final

from headrace.report.markup import Markup, element
from headrace.report.run_files import RunFiles
from headrace.report.tables import Column, table
from headrace.report.values import Document, documents, member, number, text, whole
from headrace.report.wording import count, duration, size

_COLUMNS: Final = (
    Column("table: lookup", words=True),
    Column("its rows"),
    Column("memory"),
    Column("read in"),
    Column("rows"),
    Column("matched"),
    Column("default"),
    Column("rejected"),
    Column("no key"),
    Column("time at work"),
)
_COUNTS: Final = ("rows", "matched", "defaulted", "rejected", "null_keys")
_MOST: Final = 200


def lookups(run: RunFiles) -> Markup | None:
    """All lookups of the run; None if it has none."""
    found = [
        (own, each)
        for own in documents(run.summary, "tables")
        for each in documents(own, "transforms")
        if text(each, "kind") not in ("sql", "split", "gathered", "union")
    ]
    if not found:
        return None
    parts = [
        element("h3", "Lookups"),
        table(_COLUMNS, [_row(*each) for each in found[:_MOST]], caption="Rows of each lookup", cards=True),
    ]
    if len(found) > _MOST:
        parts.append(element("p", f"and {len(found) - _MOST:,} more: summary.json"))
    return element("div", *parts, class_="chart")


def _row(of_table: Document, own: Document) -> list[str]:
    name = f"{text(of_table, 'table') or '?'}: {text(own, 'name') or '?'}"
    shared = text(own, "lookup", "shared_with")
    index = (
        count(whole(own, "lookup", "rows")),
        f"as {shared}" if shared else size(number(own, "lookup", "bytes")),
        "-" if shared else duration(number(own, "lookup", "seconds")),
    )
    # What cannot be is no 0: rows that find nothing are rejects, or get the default.
    impossible = {"reject": "defaulted"}.get(str(member(own, "no_match")))
    counts = ["-" if name == impossible else count(whole(own, name)) for name in _COUNTS]
    return [name, *index, *counts, duration(number(own, "busy_seconds"))]
