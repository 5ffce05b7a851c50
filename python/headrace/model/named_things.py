"""Looks up what a name in a task stands for, and says what is wrong with a name that stands for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.model.connections import Connection
from headrace.model.name_limits import MAXIMUM_NAME_BYTES, cut_name
from headrace.model.problems import ProblemCollector
from headrace.model.suggest import did_you_mean, one_of, quote, show_name
from headrace.model.yaml_reader import Document, DocumentPath

DATABASES: Final = ("duckdb", "postgres")
DESTINATIONS: Final = ("duckdb", "postgres", "null")


class NamedThings:
    """Connections and layouts of one package. Problems are noted."""

    def __init__(self, document: Document, problems: ProblemCollector, connections: Mapping[str, Connection | None]):
        self._document = document
        self._problems = problems
        self._connections = connections

    def look_up(self, things: Mapping[str, Any], name: str, path: DocumentPath, kind: str) -> Any:
        """The thing of that name; None with a problem noted if there is none, and None if it is wrong itself."""
        if name not in things:
            self._problems.add(
                self._document,
                path,
                f"there is no {kind} `{show_name(name)}`",
                found=quote(name),
                expected=one_of(things),
                hint=did_you_mean(name, things) or f"Define the {kind}, or correct the name.",
            )
            return None
        return things[name]

    def connection(self, name: str, path: DocumentPath, role: str, types: Sequence[str]) -> Connection | None:
        """The connection of that name, if it has one of the types; `role`: what wants it, for messages."""
        found: Connection | None = self.look_up(self._connections, name, path, "connection")
        if found is not None and found.type not in types:
            self._problems.add(
                self._document,
                path,
                f"{role} cannot use the connection `{found.name}`",
                found=f"type {found.type}",
                expected=f"a connection of type {_listed(types)}",
            )
            return None
        return found

    def fits(
        self, connection: Connection | None, name: str, path: DocumentPath, thing: str, *, at_key: bool = False
    ) -> None:
        """Notes a problem if the database of the connection would cut the name of `thing`, which is said at `path`."""
        cut = None if connection is None else cut_name(name, MAXIMUM_NAME_BYTES.get(connection.type))
        if connection is not None and cut is not None:
            self._problems.add(
                self._document,
                path,
                f"the name of {thing} is too long for the connection `{connection.name}`",
                found=cut.found,
                expected=cut.expected,
                hint=cut.hint,
                at_key=at_key,
            )

    def table_fits(self, connection: Connection | None, table: str, path: DocumentPath, thing: str) -> None:
        """The same for `table` or `schema.table`."""
        schema, _, own = table.rpartition(".")
        self.fits(connection, schema, path, f"the schema of {thing}")
        self.fits(connection, own, path, thing)


def _listed(types: Sequence[str]) -> str:
    *first, last = types
    return f"{', '.join(first)} or {last}" if first else last
