"""The table that a data flow loads, as planning sees it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from headrace.model import Destination
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogTable


@dataclass(frozen=True)
class TargetTable:
    """What the package wants, what is there, and what the target can do.

    `catalog` is the table as it will be when the task starts, None if there is none. `name` is for messages:
    `warehouse.sales`. `taken_names` are all names of the table's schema.
    """

    destination: Destination
    catalog: CatalogTable | None
    capabilities: Capabilities
    name: str
    taken_names: Collection[str] = ()

    def own_tables(self) -> list[str]:
        """As the function of that name, of the existing table."""
        return own_tables(self.catalog)


def own_tables(catalog: CatalogTable | None) -> list[str]:
    """The tables that an existing one consists of: its partitions, or those that its view shows."""
    if catalog is None:
        return []
    parts = catalog.partitioning.partitions if catalog.partitioning else ()
    return list(dict.fromkeys([*(part.name for part in parts), *catalog.view_tables]))


def display_name(destination: Destination, default_schema: str | None, table: str | None = None) -> str:
    """`warehouse.sales`, or with a schema that is not the default `warehouse.mart.sales`; of another `table` of the
    schema if one is given.
    """
    schema = None if destination.schema == default_schema else destination.schema
    return ".".join(part for part in (destination.connection.name, schema, table or destination.table) if part)
