"""Packages in Python: read from a file, or built; both are checked, planned and run in the same way."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headrace import model
from headrace.api.execution import Execution, start
from headrace.api.request import Options, Request
from headrace.api.results import Plan, RunResult
from headrace.api.tasks import Settings, Tasks, check_keys, handler
from headrace.api.values import plain
from headrace.api.yaml_text import document_text
from headrace.errors import PackageError
from headrace.model.annotations import allowed_keys
from headrace.model.load import check_document, read_package
from headrace.model.spec import FORMAT_VERSION, PackageSpec
from headrace.model.yaml_reader import Document, InvalidYamlError, parse_document
from headrace.run import Listener, TaskChoice, plan_package, with_trust

_SECTIONS: Final = ("parameters", "connections", "layouts", "variables", "on", "tasks")
_BY_ARGUMENT: Final = ("headrace", "package", *_SECTIONS)


def load(
    path: str | os.PathLike[str],
    *,
    parameters: Mapping[str, object] | None = None,
    connections: Mapping[str, str] | None = None,
    streams: int | None = None,
    environment: str | None = None,
) -> Package:
    """Reads a package file. What is given beside the path holds whenever the package is checked, planned or run.

    Raises PackageNotFoundError if there is no such file, PackageError if it is not well-formed. What depends on values
    is found by `check`, `plan` and `run`.
    """
    document = read_package(Path(path))
    check_document(document)
    return Package._of(document, Options.of(parameters, connections, streams=streams, environment=environment))


class Package(Tasks):
    """A package: parameters, connections, layouts, variables and tasks. See `Tasks` for how tasks are added.

    `folder` is where relative paths in the package start, as those of a package file start beside it; by default the
    current one. `settings` are those at the top of a package file: `streams`, `memory`, `max_concurrent`, ...
    """

    def __init__(self, name: str, *, folder: str | os.PathLike[str] | None = None, **settings: Any) -> None:
        check_keys(PackageSpec, settings, "a package")
        for key in settings:
            if key in _BY_ARGUMENT:
                raise TypeError(f"a package is not made with `{key}`: add each one by itself")
        self._root: dict[str, Any] = {"headrace": FORMAT_VERSION, "package": str(name)}
        self._root.update({key: plain(value, key) for key, value in settings.items()})
        self._root["tasks"] = {}
        self._folder = Path(folder or "").absolute()
        self._document: Document | None = None
        self._options = Options()
        super().__init__(self._root["tasks"])

    @classmethod
    def _of(cls, document: Document, options: Options) -> Package:
        assert isinstance(document.value, dict)
        package = cls(document.value["package"], folder=document.path.parent)
        package._root = copy.deepcopy(document.value)
        package._document = document
        package._options = options
        package._tasks = package._root["tasks"]
        return package

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._root["package"])

    @property
    def folder(self) -> Path:
        """Where its relative paths start."""
        return self._folder

    @property
    def path(self) -> Path | None:
        """The file that holds it as it is now; None if there is none."""
        return self._document.path if self._is_as_in_file() and self._document is not None else None

    def __repr__(self) -> str:
        return f"<Package {self.name}>"

    def parameter(self, name: str, settings: Settings | None = None, /, **more: Any) -> str:
        """Declares a value that is given from outside: `type`, `required`, `default`, ... Returns the name."""
        return self._declare("parameters", name, settings, more)

    def connection(self, name: str, settings: Settings | None = None, /, **more: Any) -> str:
        """Declares an endpoint: `type` and the settings of that type. Returns the name."""
        return self._declare("connections", name, settings, more)

    def layout(self, name: str, settings: Settings | None = None, /, **more: Any) -> str:
        """Declares columns and dialect of flat files, or the `file` that holds them. Returns the name."""
        return self._declare("layouts", name, settings, more)

    def variable(self, name: str, settings: Settings | None = None, /, **more: Any) -> str:
        """Declares a value that tasks write and read: `type`, `value` or `expr`, ... Returns the name."""
        return self._declare("variables", name, settings, more)

    def on(self, event: str, *, propagate: bool = True) -> Tasks:
        """What happens at an event of any task: tasks are added to what is returned."""
        return handler(self._root, event, propagate=propagate)

    def to_yaml(self) -> str:
        """The package as the text of a package file: the same package gives the same text, and reading it gives the
        same package. Comments of a file that was read are not in it.
        """
        return document_text(self._ordered())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the package into a file, whole or not at all, and returns its path. From now on the package is that
        file: messages name its lines, and runs can be resumed by its path. Relative paths in it start there.
        """
        place = Path(path).absolute()
        text = self.to_yaml()
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(place)
        self._document = _parsed(text, place, str(path))
        self._folder = place.parent
        return place

    def check(
        self,
        *,
        parameters: Mapping[str, object] | None = None,
        connections: Mapping[str, str] | None = None,
        streams: int | None = None,
        environment: str | None = None,
    ) -> dict[str, Any]:
        """Checks the package without running anything, and returns what it says, as `headrace check --json` does.

        Raises PackageError, which lists all problems.
        """
        options = self._options.with_more(Options.of(parameters, connections, streams=streams, environment=environment))
        return dict(model.describe(self._request(options).bind()))

    def plan(
        self,
        *,
        parameters: Mapping[str, object] | None = None,
        connections: Mapping[str, str] | None = None,
        streams: int | None = None,
        environment: str | None = None,
        only: Sequence[str] = (),
        from_: str | None = None,
        skip: Sequence[str] = (),
        trust: bool = False,
    ) -> Plan:
        """What a run would do, of all that can be known before. Nothing is created or changed. `trust`: as `run`."""
        options = self._options.with_more(Options.of(parameters, connections, streams=streams, environment=environment))
        package = with_trust(self._request(options).bind(), trust, os.environ)
        document = plan_package(package, TaskChoice(tuple(only), from_, tuple(skip))).to_dict()
        return Plan.of(document)

    def run(
        self,
        *,
        parameters: Mapping[str, object] | None = None,
        connections: Mapping[str, str] | None = None,
        streams: int | None = None,
        environment: str | None = None,
        only: Sequence[str] = (),
        from_: str | None = None,
        skip: Sequence[str] = (),
        max_concurrent: int | None = None,
        log_level: str | None = None,
        trust: bool = False,
        abandon: bool = False,
        runs_dir: str | os.PathLike[str] | None = None,
        listener: Listener | None = None,
        cancel: threading.Event | None = None,
        raise_on_error: bool = False,
    ) -> RunResult:
        """Runs the package: see `headrace.run`."""
        more = {"environment": environment, "max_concurrent": max_concurrent, "log_level": log_level}
        options = self._options.with_more(Options.of(parameters, connections, streams=streams, **more))
        request = self._request(options)
        how = Execution(runs_dir, listener, cancel, raise_on_error)
        return start(request, TaskChoice(tuple(only), from_, tuple(skip)), how, trust=trust, abandon=abandon)

    def _request(self, options: Options) -> Request:
        return Request(self._current_document(), options, is_built=not self._is_as_in_file())

    def _declare(self, section: str, name: str, settings: Settings | None, more: dict[str, Any]) -> str:
        entries = self._root.get(section) or {}
        if name in entries:
            raise ValueError(f"there is an entry `{name}` in `{section}` already")
        own = plain({**(settings or {}), **more}, f"{section}.{name}")
        self._root[section] = {**entries, str.__str__(name): own}
        return name

    def _is_as_in_file(self) -> bool:
        return self._document is not None and self._document.value == self._root

    def _current_document(self) -> Document:
        if self._document is not None and self._is_as_in_file():
            return self._document
        file = f"<package {self.name}>"
        return _parsed(self.to_yaml(), self.folder / file, file)

    def _ordered(self) -> dict[str, Any]:
        """What is at the top in the order of the reference; what there should not be comes last."""
        known = {key: self._root[key] for key in allowed_keys(PackageSpec) if key in self._root}
        return {**known, **self._root}


def _parsed(text: str, path: Path, file: str) -> Document:
    try:
        return parse_document(text.encode(), path, file)
    except InvalidYamlError as error:
        raise PackageError.from_problems(file, error.problems[:20], len(error.problems)) from error
