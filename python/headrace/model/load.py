"""Load a package file: read, check, bind. The only way from a path to a `BoundPackage`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from headrace.errors import CommandLineError, PackageError, PackageNotFoundError
from headrace.model.annotations import Slot
from headrace.model.bound import BoundPackage
from headrace.model.child_names import check_child_names
from headrace.model.child_packages import ChildPackage
from headrace.model.connections import (
    KEPT_KEYS,
    Connection,
    DuckdbConnection,
    PostgresConnection,
    connection_from_spec,
    ledger_schema,
    parse_overrides,
    texts_to_hide,
)
from headrace.model.conninfo import ConninfoError, Surroundings
from headrace.model.environments import (
    ENVIRONMENTS_FILE,
    Environment,
    EnvironmentBinder,
    EnvironmentConnections,
    choose,
    public_in_environment,
)
from headrace.model.expressions import ExpressionEvaluator
from headrace.model.flow_binder import Environment as FlowEnvironment
from headrace.model.layout_files import LayoutLoader
from headrace.model.memory_size import parse_memory_size
from headrace.model.named_things import NamedThings
from headrace.model.open_doubts import open_doubts
from headrace.model.package_walk import PackageWalk
from headrace.model.parameters import (
    BoundParameters,
    GivenValues,
    bind_parameters,
    check_declarations,
    check_values,
    parse_sets,
)
from headrace.model.problems import ProblemCollector
from headrace.model.reject_limits import RejectBounds
from headrace.model.resolver import BindingLeaves, Resolver, system_values
from headrace.model.scope import Scope
from headrace.model.scripts import ScriptFiles
from headrace.model.spec import DEFAULT_LOG_LEVEL, DEFAULT_MEMORY, MAXIMUM_STREAMS, PackageSpec, ParameterSpec
from headrace.model.spec_tasks import TaskSpec
from headrace.model.structure import check_structure
from headrace.model.suggest import one_of
from headrace.model.task import Task
from headrace.model.task_binder import Surroundings as TaskSurroundings
from headrace.model.task_binder import TaskBinder
from headrace.model.task_tree import TaskTree
from headrace.model.url_logins import hide_logins
from headrace.model.validation import UNRESOLVED, place_name, validate_slot
from headrace.model.visible import run_system
from headrace.model.yaml_reader import Document, DocumentPath, InvalidYamlError, read_document


def load_package(
    path: str | Path,
    *,
    sets: Sequence[str] = (),
    connections: Sequence[str] = (),
    streams: int | None = None,
    environment: str | None = None,
    max_concurrent: int | None = None,
    log_level: str | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> BoundPackage:
    """The package at `path`, bound to the values of the command line.

    `sets` are `name=value`, `connections` are `name=url`, `environment` the name of one of the file beside the package,
    which is weaker than both; `streams`, `max_concurrent` and `log_level` override those of the package. Relative paths
    in them start at `folder`, by default the current one. Raises PackageNotFoundError, PackageError (lists all
    problems) and CommandLineError.
    """
    return load_document(
        read_package(path),
        sets=sets,
        connections=connections,
        streams=streams,
        environment=environment,
        max_concurrent=max_concurrent,
        log_level=log_level,
        environ=environ,
        folder=folder,
    )


def load_document(
    document: Document,
    *,
    sets: Sequence[str] = (),
    connections: Sequence[str] = (),
    streams: int | None = None,
    environment: str | None = None,
    max_concurrent: int | None = None,
    log_level: str | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> BoundPackage:
    """As `load_package`, of a document that is read already. Its path says where the paths in it start; there need not
    be such a file.
    """
    if streams is not None and not 1 <= streams <= MAXIMUM_STREAMS:
        raise CommandLineError(
            "--streams is out of range", found=str(streams), expected=f"a whole number from 1 to {MAXIMUM_STREAMS}"
        )
    evaluator = ExpressionEvaluator()
    loader = _PackageLoader(document, os.environ if environ is None else environ, folder or Path.cwd(), evaluator)
    try:
        bound = loader.load(Given(tuple(sets), tuple(connections), streams, environment))
        return replace(
            bound,
            max_concurrent=max_concurrent or bound.max_concurrent,
            log_level=log_level or bound.log_level,
        )
    finally:
        evaluator.close()  # it opens its database again when a task needs it


@dataclass(frozen=True)
class Given:
    """What a package is told from outside: options of the command line; or, to a child, typed `values`, connections in
    place of its own (`replaced`), of which only the `names` are known before the run.
    """

    sets: tuple[str, ...] = ()
    connections: tuple[str, ...] = ()
    streams: int | None = None
    environment: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    replaced: Mapping[str, Connection] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


def read_package(path: str | Path) -> Document:
    """The document of a package file, not checked yet. Raises PackageNotFoundError, PackageError."""
    return _read(Path(path), hide_logins(str(path)))


def check_document(document: Document) -> None:
    """Checks what shows without any value. Raises PackageError, which lists all problems."""
    problems = ProblemCollector(document.file)
    check_structure(document, problems)
    problems.raise_if_any()


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
    """One loading of one package. `around`: the files of the packages that this one is a part of, which share one set
    of `secrets`.
    """

    def __init__(
        self,
        document: Document,
        environ: Mapping[str, str],
        command_folder: Path,
        evaluator: ExpressionEvaluator,
        around: tuple[Path, ...] = (),
        secrets: set[str] | None = None,
    ) -> None:
        self._document = document
        self._command_folder = command_folder
        self._path = Path(os.path.abspath(document.path))
        self._folder = self._path.parent
        self._around = (*around, Path(os.path.realpath(self._path)))
        self._environ = environ
        self._problems = ProblemCollector(document.file)
        if secrets is not None:
            self._problems.secrets = secrets
        self._evaluator = evaluator
        leaves = BindingLeaves(document, self._problems, environ, evaluator, self._folder)
        self._resolver = Resolver(document, self._problems, leaves)
        self._children: dict[str, ChildPackage] = {}
        self._bound_connections: Mapping[str, Connection | None] = {}
        self._environment: Environment | None = None

    def load(self, given: Given) -> BoundPackage:
        """The package with the values that are given."""
        root = check_structure(self._document, self._problems)
        self._problems.raise_if_any()
        system = system_values(root["package"])
        self._environment = self._environment_of(given, system)
        parameters = self._parameters(root, given, system)
        scope = parameters.scope({**system, **run_system()})
        package_streams = self._setting("streams", root, scope)
        memory = self._setting("memory", root, scope) or DEFAULT_MEMORY
        rejects = RejectBounds.of(self._setting("rejects", root, scope))
        stream_count = given.streams or package_streams or usable_cpus()
        connections = self._connections(root, given, scope)
        self._bound_connections = connections
        layouts = LayoutLoader(self._document, self._folder, self._resolver, self._problems)
        bound_layouts = layouts.load(root.get("layouts") or {}, scope)
        names = FlowEnvironment(connections, bound_layouts, stream_count, rejects)
        surroundings = TaskSurroundings(self._document, self._environ, self._folder, names)
        binder = TaskBinder(surroundings, self._evaluator, self._problems.secrets)
        tree = TaskTree(self._document, self._problems, self._resolver, scope)
        tasks = tree.tasks(root["tasks"], ("tasks",))
        variables = tree.variables(root.get("variables"), ("variables",))
        handlers = tree.handlers(root.get("on"), ("on",), "")
        scripts = ScriptFiles(self._document, self._folder, self._problems, connections)
        walk = PackageWalk(
            self._document, self._problems, binder.binding(self._problems), self._evaluator, scripts, self._child
        )
        walk.package(tasks, variables, handlers, scope)
        self._problems.raise_if_any()
        return BoundPackage(
            path=self._path,
            name=root["package"],
            content_hash=_content_hash(
                self._document,
                {**{file: layout.content for file, layout in layouts.documents.items()}, **scripts.contents},
                [child.known.content_hash for child in self._children.values()],
                None if self._environment is None else self._environment.content_hash,
            ),
            parameters=parameters.values,
            given=parameters.given,
            streams=stream_count,
            memory_bytes=parse_memory_size(memory),
            connections={name: connection for name, connection in connections.items() if connection is not None},
            tasks=tasks,
            flows=walk.flows,
            binder=binder,
            scope=scope,
            variables=variables,
            handlers=handlers,
            children=self._children,
            used=tuple(walk.used),
            settings=walk.settings,
            max_concurrent=self._setting("max_concurrent", root, scope) or usable_cpus() + 2,
            maximum_errors=self._setting("maximum_errors", root, scope) or 0,
            log_level=self._setting("log_level", root, scope) or DEFAULT_LOG_LEVEL,
            affinity=self._setting("affinity", root, scope) or "none",
            description=root.get("description"),
            # The very set, not a copy: what is found when tasks start is added to it.
            secrets=self._problems.secrets,
            # Tasks may share a child.
            doubts=tuple(
                dict.fromkeys(
                    [
                        *(doubt for layout in layouts.documents.values() for doubt in open_doubts(layout)),
                        *(doubt for child in self._children.values() for doubt in child.known.doubts),
                    ]
                )
            ),
        )

    def _child(self, task: Task, scope: Scope) -> None:
        """Reads and checks the package of a task; values of the moment are left open. Of a loop, that of one turn."""
        if task.id in self._children:
            return
        path: DocumentPath = (*task.own_path, "file")
        slot = Slot(TaskSpec).child("package", task.raw)
        file = self._resolver.resolve(task.own["file"], slot.child("file", task.own), path, scope)
        if not isinstance(file, str):
            if file is UNRESOLVED:
                self._problem_of_child(path, "the file of a child package must be known before the run")
            return
        place = Path(os.path.abspath(self._folder / file))
        shown = str(Path(self._document.file).parent / file)
        if Path(os.path.realpath(place)) in self._around:
            self._problem_of_child(path, "a package cannot be a part of itself", shown)
            return
        given: Mapping[str, Any] = task.own.get("parameters") or {}
        given_path: DocumentPath = (*task.own_path, "parameters")
        values = self._resolver.resolve(given, slot.child("parameters", task.own), given_path, scope)
        names = {theirs: self._bound_connections.get(ours) for theirs, ours in _renamed(task).items()}
        connections = {name: connection for name, connection in names.items() if connection is not None}
        try:
            document = _read(place, shown)
            if not check_child_names(task, document, self._document, self._problems):
                return
            values = values if isinstance(values, Mapping) else dict.fromkeys(given, UNRESOLVED)
            known = self._bound_child(task, document, values, connections)
        except PackageNotFoundError:
            self._problem_of_child(path, f"there is no package file {shown}")
        except PackageError as error:
            self._problems.extend(error.problems)
            if not error.problems:
                self._problem_of_child(path, f"{error.what}: {shown}", error.found, error.expected)
        except CommandLineError as error:
            # What is wrong with its parameters is wrong here.
            self._problems.add(
                self._document,
                given_path if given else task.own_path,
                f"{shown}: {error.what}",
                found=error.found,
                expected=error.expected,
                hint="Correct `parameters` of the task.",
                at_key=True,
            )
        else:
            self._children[task.id] = ChildPackage(place, known, partial(self._bound_child, task, document))

    def _bound_child(
        self, task: Task, document: Document, values: Mapping[str, Any], connections: Mapping[str, Connection]
    ) -> BoundPackage:
        secrets = self._problems.secrets
        loader = _PackageLoader(document, self._environ, self._folder, self._evaluator, self._around, secrets)
        return loader.load(Given(values=values, replaced=connections, names=_renamed(task)))

    def _problem_of_child(
        self, path: DocumentPath, what: str, found: str | None = None, expected: str | None = None
    ) -> None:
        self._problems.add(
            self._document,
            path,
            what,
            found=found,
            expected=expected or "the path of a package file, relative to this one",
            hint="Correct `file`.",
        )

    def _overrides(self, root: Mapping[str, Any], given: Given) -> dict[str, Connection]:
        declared = root.get("connections") or {}
        unknown = [name for name in given.names if name not in declared]
        if unknown:
            raise CommandLineError(
                f"the package has no connection `{unknown[0]}`", found=f"`{unknown[0]}`", expected=one_of(declared)
            )
        surroundings = Surroundings.of_process(self._environ, self._command_folder)
        overrides = parse_overrides(given.connections, declared, surroundings, self._problems.secrets)
        return {**overrides, **given.replaced}

    def _environment_of(self, given: Given, system: Mapping[str, object]) -> Environment | None:
        if given.environment is None:
            return None
        shown = str(Path(self._document.file).parent / ENVIRONMENTS_FILE)
        try:
            document = _read(self._folder / ENVIRONMENTS_FILE, shown)
        except PackageNotFoundError:
            raise CommandLineError(
                "there is no file with environments beside the package",
                at={"file": shown},
                found=f"--env {given.environment}",
                hint=f"Write {ENVIRONMENTS_FILE} there; `headrace schema environments` prints its format.",
            ) from None
        return choose(document, given.environment, self._problems, system)

    def _in_environment(self, environment: Environment, system: Mapping[str, object]) -> EnvironmentBinder:
        document = environment.document
        public = partial(public_in_environment, self._document)
        leaves = BindingLeaves(document, self._problems, self._environ, self._evaluator, self._folder, public)
        return EnvironmentBinder(
            environment, Resolver(document, self._problems, leaves), self._problems, Scope(system=system)
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

    def _parameters(self, root: Mapping[str, Any], given: Given, system: Mapping[str, object]) -> BoundParameters:
        declared = root.get("parameters") or {}
        # Defaults may hold references still; the rest of a declaration is literal, so this cannot fail.
        specs: dict[str, ParameterSpec] = {
            name: ParameterSpec.model_validate(declaration) for name, declaration in declared.items()
        }
        check_declarations(specs, self._document, self._folder, self._problems)
        self._problems.raise_if_any()
        return bind_parameters(
            specs,
            GivenValues(
                parse_sets(given.sets, specs),
                check_values(given.values, specs),
                {} if self._environment is None else self._in_environment(self._environment, system).parameters(specs),
            ),
            self._resolver,
            (self._command_folder, self._folder),
            system,
            self._document,
            self._problems,
        )

    def _connections(self, root: Mapping[str, Any], given: Given, scope: Scope) -> dict[str, Connection | None]:
        """Connections by name; of an overridden one only few settings are resolved: its secrets may be missing."""
        declared: Mapping[str, Any] = root.get("connections") or {}
        overrides = self._overrides(root, given)
        outside = EnvironmentConnections()
        if self._environment is not None:
            binder = self._in_environment(self._environment, scope.system)
            outside = binder.connections(declared, Surroundings.of_process(self._environ, self._folder))
        slot = self._slot("connections", root)
        connections: dict[str, Connection | None] = {}
        for name, declaration in declared.items():
            path: DocumentPath = ("connections", name)
            own_slot = slot.child(name, declared)
            if name in given.names and name not in overrides:
                connection: Connection | None = None  # that of the package around, known when the task starts
            elif name in overrides:
                connection = self._with_declared(overrides[name], declaration, own_slot, path, scope)
            elif name in outside.urls and name in outside.connections:
                connection = self._with_declared(outside.connections[name], declaration, own_slot, path, scope)
            elif name in outside.connections:
                connection = outside.connections[name]
            else:
                connection = self._connection(name, declaration, own_slot, path, scope)
            if connection is not None:
                self._problems.secrets.update(texts_to_hide(connection, self._problems.secrets))
            if isinstance(connection, PostgresConnection):
                place: DocumentPath = (*path, "ledger") if "ledger" in declaration else path
                names = NamedThings(self._document, self._problems, connections)
                names.fits(connection, connection.ledger_schema or "", place, "the schema of the ledger")
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
            return connection_from_spec(name, spec, surroundings, frozenset(self._problems.secrets), declaration)
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


def _renamed(task: Task) -> Mapping[str, str]:
    """Of a task of kind `package`, its connections by theirs."""
    return task.own.get("connections") or {}


def usable_cpus() -> int:
    """Number of CPUs that this process may use, at most the largest number of streams."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, MAXIMUM_STREAMS)


def _content_hash(
    package: Document, files: Mapping[str, bytes], children: Sequence[str], environment: str | None
) -> str:
    """SHA-256 over name and bytes of each file, so that moving bytes from one to another changes it."""
    digest = hashlib.sha256()
    parts = [("", package.content), *files.items(), *(("", child.encode("ascii")) for child in children)]
    if environment is not None:
        parts.append(("environment", environment.encode("ascii")))
    for name, content in parts:
        for part in (name.encode("utf-8"), content):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()
