"""Which connections a task names, and of which types they must be: one table for checks and `check --connect`. And the
names of tables and the like that go to the databases of these connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.model.named_things import DATABASES
from headrace.model.settings import SpecModel
from headrace.model.spec_build import BuildSpec
from headrace.model.spec_leaves import (
    ChildPackageSpec,
    FileTaskSpec,
    ProcessSpec,
    PythonSpec,
    SqlSpec,
    StatementSpec,
)
from headrace.model.spec_switch import SwitchSpec
from headrace.model.spec_tasks import ForeachSpec
from headrace.model.yaml_reader import DocumentPath

_ANY_TYPE = ("files", "duckdb", "postgres", "null")


@dataclass(frozen=True, slots=True)
class ConnectionUse:
    """A connection that settings name at `path` below them. `role`: what wants it, for messages."""

    name: str
    path: DocumentPath
    role: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NameUse:
    """`table` or `schema.table`, or with `is_whole` one name whatever is in it, that settings say at `path` below them,
    in the database of `connection`. `thing`: what is called so, for messages.
    """

    connection: str
    name: str
    path: DocumentPath
    thing: str
    is_whole: bool = False


def connection_uses(spec: SpecModel) -> Iterator[ConnectionUse]:
    """Those of the settings of a task other than a data flow, whose names are looked up where it is bound."""
    match spec:
        case StatementSpec():
            yield ConnectionUse(spec.connection, ("connection",), "a task of kind sql", DATABASES)
        case BuildSpec():
            yield ConnectionUse(spec.connection, ("connection",), "a task of kind build", DATABASES)
        case SwitchSpec():
            yield ConnectionUse(spec.connection, ("connection",), "a task of kind switch", DATABASES)
        case FileTaskSpec() if spec.connection is not None:
            yield ConnectionUse(spec.connection, ("connection",), "a task of kind file", ("files",))
        case ProcessSpec() | PythonSpec():
            for index, name in enumerate(spec.releases):
                yield ConnectionUse(name, ("releases", index), "`releases`", ("duckdb",))
        case ForeachSpec():
            if spec.files is not None:
                yield ConnectionUse(spec.files.connection, ("files", "connection"), "`files`", ("files",))
            if spec.query is not None:
                yield ConnectionUse(spec.query.connection, ("query", "connection"), "a query", DATABASES)
        case ChildPackageSpec():
            for theirs, ours in spec.connections.items():
                yield ConnectionUse(ours, ("connections", theirs), "a package", _ANY_TYPE)


def name_uses(spec: SpecModel) -> Iterator[NameUse]:
    """Names of a database in the settings of a task other than a data flow, beside those in its SQL."""
    match spec:
        case SqlSpec():
            for key, name in spec.identifiers.items():
                yield NameUse(spec.connection, name, ("identifiers", key), f"the identifier `{key}`")
        case BuildSpec():
            yield NameUse(spec.connection, spec.table, ("table",), "the table")
            for place in () if spec.partition is None else enumerate(spec.partition.tablespaces or ()):
                path = ("partition", "tablespaces", place[0])
                yield NameUse(spec.connection, place[1], path, "a tablespace", is_whole=True)
            if spec.by is not None and spec.by.table is not None:
                yield NameUse(spec.connection, spec.by.table, ("by", "table"), "the table")
            if spec.by is not None and spec.by.hash is not None:
                yield NameUse(spec.connection, spec.by.hash, ("by", "hash"), "the column", is_whole=True)
        case SwitchSpec():
            yield NameUse(spec.connection, spec.table, ("table",), "the table")
            yield NameUse(spec.connection, spec.partition, ("partition",), "the partition", is_whole=True)
            if spec.in_ is not None:
                yield NameUse(spec.connection, spec.in_, ("in",), "the table")
            if spec.out is not None:
                yield NameUse(spec.connection, spec.out, ("out",), "the table", is_whole=True)
