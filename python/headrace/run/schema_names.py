"""The names that are taken in the schemas of destinations, while flows are planned one after the other."""

from __future__ import annotations

from headrace.model import Destination
from headrace.planning import CatalogTable, DataFlowPlan, own_tables, table_after
from headrace.targets import Target


class SchemaNames:
    """The names in the schemas of the run's destinations, as they will be when a task starts."""

    def __init__(self) -> None:
        self._names: dict[tuple[object, ...], frozenset[str]] = {}

    def of(self, target: Target, place: tuple[object, ...], destination: Destination) -> frozenset[str]:
        """Those of the destination's schema."""
        if place not in self._names:
            self._names[place] = target.names_in_schema(destination.schema)
        return self._names[place]

    def follow(self, place: tuple[object, ...], plan: DataFlowPlan, catalog: CatalogTable | None) -> None:
        """Takes over what a task will have changed."""
        if place in self._names:
            after = own_tables(table_after(plan, catalog))
            gone = frozenset(own_tables(catalog)) - frozenset(after)
            made = {plan.table, *after}
            self._names[place] = (self._names[place] - gone) | made
