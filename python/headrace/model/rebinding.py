"""Transforms of a data flow that are bound once more, when the tables of their lookups are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headrace.model.lookup import LookupTable
from headrace.model.transform_binder import BoundWays


class Rebinding:
    """All destinations of a flow ask for the same, one after the other: it is done once. `bind` raises BindingError for
    what does not fit the tables.
    """

    def __init__(self, bind: Callable[[Mapping[str, LookupTable]], BoundWays]) -> None:
        self._bind = bind
        self._known: tuple[Mapping[str, LookupTable], BoundWays] | None = None

    def bound(self, tables: Mapping[str, LookupTable]) -> BoundWays:
        """With these tables."""
        if self._known is None or self._known[0] != tables:
            self._known = dict(tables), self._bind(tables)
        return self._known[1]
