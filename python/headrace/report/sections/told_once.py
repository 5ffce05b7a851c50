"""Tables that were filled in one pass over their source."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.report.values import Document, text


def told_once(tables: Iterable[Document]) -> list[Document]:
    """Of the destinations of one data flow the first: what is in front of all of them is told once."""
    seen = set[str]()
    first = []
    for own in tables:
        flow = text(own, "flow_of")
        if not flow or flow not in seen:
            first.append(own)
        seen.add(flow or "")
    return first


def whose(table: Document) -> str:
    """What such things belong to: the data flow of several destinations, or the table."""
    return text(table, "flow_of") or text(table, "table") or "?"
