"""The accounts of joins as summaries have them, which may be damaged: a side that is another join has that."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.model import SIDES
from headrace.report.values import Document, document, whole


def joins_of(join: Document, place: str = "") -> Iterator[tuple[str, Document]]:
    """All joins of a data flow, each behind those whose rows it takes, with what stands in front of `left` and `right`
    where a member of `shared` tells of one of its sides.
    """
    for side in SIDES:
        if inner := document(join, side, "join"):
            yield from joins_of(inner, f"{place}{side}_")
    yield place, join


def sources_of_joins(join: Document) -> list[Document]:
    """The sides that are sources."""
    sides = [document(own, side) for _, own in joins_of(join) for side in SIDES]
    return [own for own in sides if not document(own, "join")]


def rejected_between(join: Document) -> int:
    """Rows that have come out of one join, and were refused in front of the next one."""
    return sum(whole(own, side, "rejected_in_front") or 0 for _, own in joins_of(join) for side in SIDES)
