"""What lookups read beside files: a query without a connection, a table or a query of a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.model.connections import Connection
from headrace.model.embedded_query import EmbeddedQuery
from headrace.model.lookup import LookupColumn, LookupTable
from headrace.model.lookup_query import DatabaseQuery


@dataclass(frozen=True, slots=True)
class QuerySource:
    """The rows of a query without a connection. `columns`: those of types that rows can have; `places`: where all of
    its columns stand, from 0.
    """

    name: str
    query: EmbeddedQuery
    places: Mapping[str, int]
    columns: Mapping[str, LookupColumn]


@dataclass(frozen=True, slots=True)
class TableSource:
    """The rows of a table. `found`: what it is; None as long as nobody has looked."""

    name: str
    connection: Connection
    schema: str | None
    table: str
    found: LookupTable | None = None

    @property
    def columns(self) -> dict[str, LookupColumn]:
        """Those of types that rows can have."""
        return {} if self.found is None else self.found.readable


@dataclass(frozen=True, slots=True)
class DatabaseQuerySource:
    """The rows of a query of a database. `found`: what they are; None as long as nobody has asked."""

    name: str
    connection: Connection
    query: DatabaseQuery
    found: LookupTable | None = None

    @property
    def columns(self) -> dict[str, LookupColumn]:
        """Those of types that rows can have."""
        return {} if self.found is None else self.found.readable


# What a database has to give the rows of a lookup.
DatabaseSource = TableSource | DatabaseQuerySource
