"""The accounts of joins as summaries have them: a side that is another join has that as its member `join`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headrace.model.join import SIDES

_Told = Mapping[str, Any]


def joins_told(join: _Told) -> Iterator[_Told]:
    """All joins of a data flow, each behind those whose rows it takes."""
    for side in SIDES:
        inner = join[side].get("join")
        if inner:
            yield from joins_told(inner)
    yield join


def leaves_told(join: _Told) -> dict[str, _Told]:
    """The sides that are sources. By their places in the tree: `left`, `right_left`."""
    found: dict[str, _Told] = {}
    for side in SIDES:
        inner = join[side].get("join")
        if inner:
            found |= {f"{side}_{place}": own for place, own in leaves_told(inner).items()}
        else:
            found[side] = join[side]
    return found
