"""Load a package file: read, check, bind. The only way from a path to a `BoundPackage`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headrace.errors import CommandLineError, PackageError, PackageNotFoundError
from headrace.model.annotations import Slot
from headrace.model.binder import Environment, TaskBinder
from headrace.model.bound import BoundPackage
from headrace.model.connections import (
    KEPT_KEYS,
    Connection,
    DuckdbConnection,
    PostgresConnection,
    connection_from_spec,
    ledger_schema,
    parse_overrides,
)
from headrace.model.conninfo import ConninfoError, Surroundings
from headrace.model.expressions import ExpressionEvaluator
from headrace.model.layout_files import LayoutLoader
from headrace.model.memory_size import parse_memory_size
from headrace.model.parameters import BoundParameters, bind_parameters, check_declarations, parse_sets
from headrace.model.problems import ProblemCollector
from headrace.model.reject_limits import RejectBounds
from headrace.model.resolver import BindingLeaves, Resolver, system_values
from headrace.model.scope import Scope
from headrace.model.spec import DEFAULT_MEMORY, MAXIMUM_STREAMS, PackageSpec, ParameterSpec
from headrace.model.structure import check_structure
from headrace.model.validation import UNRESOLVED, place_name, validate_slot
from headrace.model.yaml_reader import Document, DocumentPath, InvalidYamlError, read_document


def load_package(
    path: str | Path,
    *,
    sets: Sequence[str] = (),
    connections: Sequence[str] = (),
    streams: int | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> BoundPackage:
    """The package at `path`, bound to the values of the command line.

    `sets` are `name=value`, `connections` are `name=url`, `streams` overrides the package's number. Relative paths in
    them start at `folder`, by default the current one. Raises PackageNotFoundError, PackageError (lists all problems)
    and CommandLineError.
    """
    if streams is not None and not 1 <= streams <= MAXIMUM_STREAMS:
        raise CommandLineError(
            "--streams is out of range", found=str(streams), expected=f"a whole number from 1 to {MAXIMUM_STREAMS}"
        )
    document = _read(Path(path), str(path))
    loader = _PackageLoader(document, os.environ if environ is None else environ, folder or Path.cwd())
    try:
        return loader.load(sets, connections, streams)
    finally:
        loader.close()


def _read(path: Path, file: str) -> Document:
    try:
        return read_document(path, file)
    except FileNotFoundError as error:
        raise PackageNotFoundError(
            "there is no package file", at={"file": file}, hint="Check the path; it is relative to the current folder."
        ) from error
    except IsADirectoryError as error:
        raise PackageError(
            "the package is a folder", at={"file": file}, expected="a YAML file", hint="Name the file in the folder."
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a path that cannot exist"
        raise PackageError(
            "the package file cannot be read",
            at={"file": file},
            found=reason,
            hint="Check the path and its permissions.",
        ) from error
    except InvalidYamlError as error:
        raise PackageError.from_problems(file, error.problems[:20], len(error.problems)) from error


class _PackageLoader:
    """One loading of one package."""

    def __init__(self, document: Document, environ: Mapping[str, str], command_folder: Path) -> None:
        self._document = document
        self._command_folder = command_folder
        self._folder = Path(os.path.abspath(document.path)).parent
        self._environ = environ
        self._problems = ProblemCollector(document.file)
        self._evaluator = ExpressionEvaluator()
        leaves = BindingLeaves(document, self._problems, environ, self._evaluator, self._folder)
        self._resolver = Resolver(document, self._problems, leaves)

    def close(self) -> None:
        self._evaluator.close()

    def load(self, sets: Sequence[str], overrides: Sequence[str], streams: int | None) -> BoundPackage:
        root = check_structure(self._document, self._problems)
        self._problems.raise_if_any()
        system = system_values(root["package"])
        parameters = self._parameters(root, sets, system)
        command_connections = parse_overrides(
            overrides, root.get("connections") or {}, Surroundings.of_process(self._environ, self._command_folder)
        )
        scope = parameters.scope(system)
        package_streams = self._setting("streams", root, scope)
        memory = self._setting("memory", root, scope) or DEFAULT_MEMORY
        rejects = RejectBounds.of(self._setting("rejects", root, scope))
        stream_count = streams or package_streams or usable_cpus()
        connections = self._connections(root, command_connections, scope)
        layouts = LayoutLoader(self._document, self._folder, self._resolver, self._problems)
        bound_layouts = layouts.load(root.get("layouts") or {}, scope)
        binder = TaskBinder(
            self._document,
            self._problems,
            self._resolver,
            Environment(connections, bound_layouts, stream_count, rejects),
        )
        tasks = binder.bind(root["tasks"], ("tasks",), scope)
        self._problems.raise_if_any()
        return BoundPackage(
            path=Path(os.path.abspath(self._document.path)),
            name=root["package"],
            content_hash=_content_hash(self._document, layouts.documents),
            parameters=parameters.values,
            given=parameters.given,
            streams=stream_count,
            memory_bytes=parse_memory_size(memory),
            connections={name: connection for name, connection in connections.items() if connection is not None},
            tasks=tasks,
            description=root.get("description"),
            secrets=set(self._problems.secrets),
        )

    def _slot(self, key: str, root: Mapping[str, Any]) -> Slot:
        return Slot(PackageSpec).child(key, root)

    def _setting(self, key: str, root: Mapping[str, Any], scope: Scope) -> Any:
        """A top-level setting with its references resolved; None if it is absent, null or wrong."""
        if root.get(key) is None:
            return None
        slot = self._slot(key, root)
        value = self._resolver.resolve(root[key], slot, (key,), scope)
        if value is None or value is UNRESOLVED:
            return None
        return validate_slot(slot, value, self._document, (key,), self._problems)

    def _parameters(self, root: Mapping[str, Any], sets: Sequence[str], system: Mapping[str, str]) -> BoundParameters:
        declared = root.get("parameters") or {}
        # Defaults may hold references still; the rest of a declaration is literal, so this cannot fail.
        specs: dict[str, ParameterSpec] = {
            name: ParameterSpec.model_validate(declaration) for name, declaration in declared.items()
        }
        check_declarations(specs, self._document, self._folder, self._problems)
        self._problems.raise_if_any()
        return bind_parameters(
            specs,
            parse_sets(sets, specs),
            self._resolver,
            (self._command_folder, self._folder),
            system,
            self._document,
            self._problems,
        )

    def _connections(
        self, root: Mapping[str, Any], overrides: Mapping[str, Connection], scope: Scope
    ) -> dict[str, Connection | None]:
        """Connections by name; of an overridden one only few settings are resolved: its secrets may be missing."""
        declared: Mapping[str, Any] = root.get("connections") or {}
        slot = self._slot("connections", root)
        connections: dict[str, Connection | None] = {}
        for name, declaration in declared.items():
            path: DocumentPath = ("connections", name)
            own_slot = slot.child(name, declared)
            if name in overrides:
                connection: Connection | None = self._with_declared(overrides[name], declaration, own_slot, path, scope)
            else:
                connection = self._connection(name, declaration, own_slot, path, scope)
            if isinstance(connection, PostgresConnection):
                self._problems.secrets.update(connection.password_texts)
            connections[name] = connection
        return connections

    def _connection(
        self, name: str, declaration: Mapping[str, Any], slot: Slot, path: DocumentPath, scope: Scope
    ) -> Connection | None:
        resolved = self._resolver.resolve(declaration, slot, path, scope)
        spec = validate_slot(slot, resolved, self._document, path, self._problems)
        if spec is None:
            return None
        surroundings = Surroundings.of_process(self._environ, self._folder)
        try:
            return connection_from_spec(name, spec, surroundings, frozenset(self._problems.secrets))
        except ConninfoError as error:
            self._problems.add(
                self._document,
                (*path, "url") if "url" in declaration else path,
                f"{place_name(path)}: {error.what}",
                found=error.found,
                expected=error.expected,
                hint=error.hint,
            )
            return None

    def _with_declared(
        self, connection: Connection, declaration: Mapping[str, Any], slot: Slot, path: DocumentPath, scope: Scope
    ) -> Connection:
        """A connection in place of another keeps what the package says and no URL can: timeouts, ledger."""
        for key in KEPT_KEYS.get(type(connection), ()):
            if key not in declaration:
                continue
            own_slot, own_path = slot.child(key, declaration), (*path, key)
            value = self._resolver.resolve(declaration[key], own_slot, own_path, scope)
            setting = validate_slot(own_slot, value, self._document, own_path, self._problems)
            if setting is None:
                continue
            if isinstance(connection, PostgresConnection) and key == "ledger":
                connection = replace(connection, ledger_schema=ledger_schema(setting))
            elif isinstance(connection, (DuckdbConnection, PostgresConnection)):
                connection = replace(connection, **{key: setting})
        return connection


def usable_cpus() -> int:
    """Number of CPUs that this process may use, at most the largest number of streams."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MAXIMUM_STREAMS)


def _content_hash(package: Document, layouts: Mapping[str, Document]) -> str:
    """SHA-256 over name and bytes of each file, so that moving bytes from one to another changes it."""
    digest = hashlib.sha256()
    for name, content in [("", package.content), *((file, layout.content) for file, layout in layouts.items())]:
        for part in (name.encode("utf-8"), content):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()
