"""Joins: what became of the rows of both sides of each."""

from __future__ import annotations

from typing import Final

from headrace.model import SIDES
from headrace.report.join_accounts import joins_of
from headrace.report.markup import Markup, element
from headrace.report.run_files import RunFiles
from headrace.report.sections.told_once import told_once, whose
from headrace.report.tables import Column, table
from headrace.report.values import Document, document, documents, text, whole
from headrace.report.wording import count

_COLUMNS: Final = (
    Column("table: join: source", words=True),
    Column("rows"),
    Column("rejected"),
    Column("left out in front"),
    Column("to the join"),
    Column("matched"),
    Column("without a match"),
    Column("left out"),
    Column("no key"),
)
_COUNTS: Final = ("rows", "matched", "unmatched", "filtered", "null_keys")
_MOST: Final = 200


def joins(run: RunFiles) -> Markup | None:
    """All joins of the run; None if it has none. Those that several destinations share are told once."""
    found = told_once(own for own in documents(run.summary, "tables") if document(own, "join"))
    if not found:
        return None
    rows = [
        _row(own, join, side, f"{place}{side}")
        for own in found[:_MOST]
        for place, join in joins_of(document(own, "join"))
        for side in SIDES
    ]
    parts = [element("h3", "Joins"), table(_COLUMNS, rows, caption="Rows of both sides of each join", cards=True)]
    if len(found) > _MOST:
        parts.append(element("p", f"and {len(found) - _MOST:,} more: summary.json"))
    return element("div", *parts, class_="chart")


def _row(of_table: Document, join: Document, side: str, place: str) -> list[str]:
    """Of one side of a join. `place`: what stands in front of what is told of all destinations of its flow."""
    own = document(join, side)
    name = ": ".join((whose(of_table), text(join, "name") or "?", text(own, "source") or "?"))
    rejected, behind = whole(own, "rows_rejected"), whole(own, "rejected_behind") or 0
    came = whole(own, "rows")
    left_out = whole(own, "filtered_in_front") or 0
    read = None if rejected is None or came is None else rejected - behind + left_out + came
    if document(own, "join"):  # what comes of another join stands in the files of its sides
        refused = whole(own, "rejected_in_front")
        read = None if refused is None or came is None else refused + left_out + came
        return [name, count(read), count(refused), count(left_out), *(count(whole(own, each)) for each in _COUNTS)]
    of_all = whole(of_table, "shared", f"{place}_rejected")
    return [
        name,
        count(read),
        count(rejected if of_all is None else of_all),
        count(left_out),
        *(count(whole(own, each)) for each in _COUNTS),
    ]
