"""Which connections a task names, and of which types they must be: one table for checks and `check --connect`."""

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
