"""Executes requests: new runs, and runs that go on."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace import diagnose
from headrace.api.request import Request, bound
from headrace.api.results import RunResult
from headrace.errors import PackageNotFoundError, TrustError
from headrace.model import BoundPackage
from headrace.model.load import read_package
from headrace.model.yaml_reader import Document
from headrace.run import (
    RESUME,
    Listener,
    RunFolder,
    TaskChoice,
    check_stored,
    check_trust,
    execute,
    load_request,
    was_trusted,
    with_trust,
)
from headrace.run.folder import DEFAULT_RUNS_FOLDER


@dataclass(frozen=True)
class Execution:
    """How a run is executed, whatever it does."""

    runs_dir: str | os.PathLike[str] | None
    listener: Listener | None
    cancel: threading.Event | None
    raise_on_error: bool

    @property
    def runs_folder(self) -> Path:
        """Where the folders of runs are."""
        return DEFAULT_RUNS_FOLDER if self.runs_dir is None else Path(self.runs_dir)

    def __call__(self, package: BoundPackage, **options: Any) -> RunResult:
        """Runs a package. Raises KeyboardInterrupt if Ctrl-C was what ended the run; it is rolled back by then."""
        summary = execute(
            package,
            runs_dir=self.runs_folder,
            listener=self.listener,
            cancel=self.cancel,
            judge=diagnose.RunJudge(),
            **options,
        )
        was_asked = self.cancel is not None and self.cancel.is_set()
        if summary.status == "cancelled" and not was_asked:
            raise KeyboardInterrupt(f"run {summary.run_id} was cancelled; headrace.resume({summary.run_id!r}) goes on")
        result = RunResult.of(summary.to_dict(), summary.failure)
        return result.raise_if_failed() if self.raise_on_error else result


def start(request: Request, choice: TaskChoice, how: Execution, *, trust: bool, abandon: bool) -> RunResult:
    """A new run."""
    package = _trusted(request.bind(), trust)
    return how(package, request=request.to_run(choice, trusted=trust), abandon=abandon)


def go_on(
    run: str, document: Document | None, sets: tuple[str, ...], urls: tuple[str, ...], how: Execution, *, trust: bool
) -> RunResult:
    """An unfinished run. `document`: of a package that is in no file."""
    folder = RunFolder.find(how.runs_folder, run, RESUME)
    stored = load_request(folder, sets, urls)
    if document is None:
        document = _stored_document(stored.package)
    if was_trusted(folder) and not trust:
        check_stored(folder.request)
    package = _trusted(bound(document, stored, is_built=False), trust or stored.trusted)
    return how(package, resumed=folder)


def _trusted(package: BoundPackage, trusted: bool) -> BoundPackage:
    """The package with whether it is trusted. Raises TrustError if it has to be, and is not."""
    try:
        check_trust(package, trusted, os.environ)
        return with_trust(package, trusted, os.environ)
    except TrustError as error:
        error.hint = error.hint and error.hint.replace("--trust", "`trust=True`")
        raise


def _stored_document(path: Path) -> Document:
    try:
        return read_package(path)
    except PackageNotFoundError as error:
        if path.name.startswith("<package "):
            error.hint = "It was built in Python: give it as `package=`, or `save` it before it runs."
        raise
