"""What a package is told from outside, as Python values and as the command line would say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from headrace.api.values import option_text
from headrace.errors import PackageError
from headrace.model import BoundPackage
from headrace.model.load import load_document
from headrace.model.yaml_reader import Document
from headrace.run import RunRequest, TaskChoice
from headrace.run.control.selection import ALL_TASKS


@dataclass(frozen=True)
class Options:
    """Values by name, and what else the command line has options for. None: not given."""

    parameters: Mapping[str, object] = field(default_factory=dict)
    connections: Mapping[str, str] = field(default_factory=dict)
    streams: int | None = None
    environment: str | None = None
    max_concurrent: int | None = None
    log_level: str | None = None

    @classmethod
    def of(
        cls, parameters: Mapping[str, object] | None, connections: Mapping[str, str] | None, **others: int | str | None
    ) -> Options:
        """Raises TypeError for values that no parameter takes."""
        for name, value in (parameters or {}).items():
            option_text(name, value)
        options = cls(dict(parameters or {}), dict(connections or {}))
        return replace(options, **{name: value for name, value in others.items() if value is not None})  # type: ignore[arg-type]

    def with_more(self, more: Options) -> Options:
        """What is given now counts before what was given with the package."""
        own = {item.name: getattr(more, item.name) for item in fields(self)}
        return replace(
            self,
            **{name: value for name, value in own.items() if value is not None}
            | {
                "parameters": {**self.parameters, **more.parameters},
                "connections": {**self.connections, **more.connections},
            },
        )

    @property
    def sets(self) -> tuple[str, ...]:
        """As `--set` takes them."""
        return tuple(f"{name}={option_text(name, value)}" for name, value in self.parameters.items())

    @property
    def urls(self) -> tuple[str, ...]:
        """As `--connection` takes them."""
        return tuple(f"{name}={url}" for name, url in self.connections.items())


@dataclass(frozen=True)
class Request:
    """A package and what it is told. `is_built`: its document is no file, but was written from Python."""

    document: Document
    options: Options
    is_built: bool

    def bind(self) -> BoundPackage:
        """The package with its values. Raises PackageError and CommandLineError."""
        return bound(self.document, self.to_run(), is_built=self.is_built)

    def to_run(self, choice: TaskChoice = ALL_TASKS, *, trusted: bool = False) -> RunRequest:
        """As a run keeps it in its folder."""
        options = self.options
        return RunRequest(
            self.document.path.absolute(),
            Path.cwd(),
            options.sets,
            options.urls,
            options.streams,
            choice,
            options.environment,
            trusted,
            options.max_concurrent,
            options.log_level,
        )


def bound(document: Document, request: RunRequest, *, is_built: bool) -> BoundPackage:
    """Binds a document. Problems of one that was built show the line that they are in: there is no file to look at."""
    try:
        return load_document(
            document,
            sets=request.sets,
            connections=request.connections,
            streams=request.streams,
            environment=request.environment,
            max_concurrent=request.max_concurrent,
            log_level=request.log_level,
            folder=request.folder,
        )
    except PackageError as error:
        if is_built:
            lines = document.content.decode().splitlines()
            for problem in error.problems:
                if problem.file == document.file and problem.line <= len(lines):
                    error.add_note(f"to_yaml(), line {problem.line}: {lines[problem.line - 1].strip()}")
        raise
