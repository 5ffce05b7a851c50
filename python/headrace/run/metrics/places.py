"""Where the rows of a data flow that is measured go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.targets import DestinationWatcher

MakeWatcher = Callable[[], DestinationWatcher | None]


@dataclass(frozen=True)
class WatchedPlace:
    """A connection, or a query over all rows. `name`: what its lines are told apart by, a member `connection` or
    `query`; `destinations`: those of the data flow that are there; none are told if it has one alone.
    """

    name: Mapping[str, str]
    make_watcher: MakeWatcher
    destinations: Collection[str] = ()


def with_places(counted: Mapping[str, Any], places: Sequence[WatchedPlace]) -> Mapping[str, Any]:
    """A `flow` line whose writers and consumers say of which place they are, if there are several connections."""
    if sum("connection" in place.name for place in places) < 2:
        return counted
    names = {destination: place.name for place in places for destination in place.destinations}

    def named(takers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [{**names.get(str(taker.get("destination")), {}), **taker} for taker in takers]

    return {**counted, **{kind: named(counted[kind]) for kind in ("writers", "sinks") if kind in counted}}
