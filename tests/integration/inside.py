"""Runs commands of Headrace inside the process of the tests, with a folder, an environment and outputs of their own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from headrace.cli.app import app
from headrace.cli.failures import run_app
from tests.integration.starts import HEADRACE, REAL_STARTS_VARIABLE, changed_at_the_start


def can_run_inside(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether nothing of the command is read only when a process starts."""
    return (
        list(arguments[:3]) == HEADRACE
        and REAL_STARTS_VARIABLE not in os.environ
        and not changed_at_the_start(environment)
    )


def run_inside(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], outputs: Sequence[Path]) -> int:
    """Runs `python -m headrace ...` and gives back its exit code; its outputs are in these files."""
    with ExitStack() as stack:
        stack.enter_context(_standard_files(*outputs))
        stack.enter_context(_environment(environment))
        stack.enter_context(_folder(folder))
        return run_app(app, list(arguments[3:]))


@contextmanager
def _standard_files(stdout: Path, stderr: Path) -> Iterator[None]:
    """Descriptors and streams alike: the core writes to descriptors."""
    kept = sys.stdout, sys.stderr
    descriptors = [os.dup(number) for number in (1, 2)]
    try:
        for number, path in ((1, stdout), (2, stderr)):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        with (
            open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as sys.stdout,
            open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as sys.stderr,
        ):
            yield
    finally:
        sys.stdout, sys.stderr = kept
        for number, descriptor in zip((1, 2), descriptors, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    kept = dict(os.environ)
    _set_environment(variables)
    try:
        yield
    finally:
        _set_environment(kept)


def _set_environment(variables: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in variables]:
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    kept = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(kept)
