"""Where the rows of a data flow that is measured go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.targets import DestinationWatcher

MakeWatcher = Callable[[], DestinationWatcher | None]


@dataclass(frozen=True)
class WatchedPlace:
    """A connection. `destinations`: names of those of the data flow that are there; none if it has one alone."""

    connection: str
    make_watcher: MakeWatcher
    destinations: Collection[str] = ()


def with_connections(counted: Mapping[str, Any], places: Sequence[WatchedPlace]) -> Mapping[str, Any]:
    """What a flow has counted, with the connection of each writer and consumer, if there are several."""
    if len({place.connection for place in places}) < 2:
        return counted
    connections = {destination: place.connection for place in places for destination in place.destinations}

    def told(takers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [{"connection": connections[taker["destination"]], **taker} for taker in takers]

    return {**counted, **{kind: told(counted[kind]) for kind in ("writers", "sinks") if kind in counted}}
