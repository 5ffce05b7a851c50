"""One DuckDB instance in memory, with the user's file attached to it.

The instance is ours, so that memory, threads and spilling are ours to set; the file is only a database in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import duckdb

from headrace.errors import CancelledError, TargetBusyError
from headrace.model import new_instance
from headrace.targets.base import OpenOptions
from headrace.targets.duckdb.ddl import attach
from headrace.targets.duckdb.failures import damaged, open_failure, path_problem

# Readable by DuckDB 1.5 and 2.x; the default of 2.0 is readable by no 1.x. Speed and size are the same.
STORAGE_VERSION: Final = "v1.5.0"
# DuckDB takes an Arrow stream for one row and would put it on the build side of a join.
_DISABLED_OPTIMIZERS: Final = "join_order,build_side_probe_side"
_BYTES_PER_THREAD: Final = 16 * 1024 * 1024
_LOCK_POLL_SECONDS: Final = 0.2


@cache
def sql(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return files("headrace.targets.duckdb").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def engine_threads(options: OpenOptions) -> int:
    """Threads DuckDB may use: all that were offered, if its memory is enough for them."""
    return max(1, min(options.threads, options.engine_bytes // _BYTES_PER_THREAD))


def connect(options: OpenOptions) -> duckdb.DuckDBPyConnection:
    """A new in-memory instance with our settings."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": engine_threads(options),
        # Its asynchronous readers (8 threads by default) have nothing to read here.
        "async_threads": 0,
        "memory_limit": f"{options.engine_bytes}B",
        # Nothing is fetched from the network behind the user's back.
        "autoinstall_known_extensions": False,
        # Without it the batches of several streams would be put back in order: 1.5 times the time.
        "preserve_insertion_order": False,
    }
    if options.spill_folder is not None:
        config["temp_directory"] = options.spill_folder
    connection = new_instance(config)
    connection.execute(f"SET disabled_optimizers = '{_DISABLED_OPTIMIZERS}'")
    return connection


def restore_settings(connection: duckdb.DuckDBPyConnection, options: OpenOptions) -> None:
    """Sets what a script of a user may have changed, and loads count on, as `connect` has set it."""
    connection.execute(f"SET disabled_optimizers = '{_DISABLED_OPTIMIZERS}'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET threads = {engine_threads(options)}")
    connection.execute(f"SET memory_limit = '{options.engine_bytes}B'")


def close_to_files(connection: duckdb.DuckDBPyConnection) -> None:
    """From now on SQL reaches the files that are attached and the folder for spilling, and no others, whatever it says.
    For packages that nobody trusts: `COPY ... TO` writes any file, `read_text` shows one.
    """
    connection.execute("SET enable_external_access = false")


def attach_file(
    connection: duckdb.DuckDBPyConnection, path: Path, lock_timeout_seconds: float, options: OpenOptions
) -> None:
    """Attaches the file, creating it if needed; waits for a lock of another process, but not for a plan.

    An existing file keeps its storage version. Raises TargetError, or TargetBusyError when the wait was in vain.
    """
    _require(path)
    waiter = _LockWait(0 if options.read_only else lock_timeout_seconds, options.notice, options.is_cancelled)
    tried_again = False
    while True:
        try:
            version = None if path.exists() or options.read_only else STORAGE_VERSION
            connection.execute(attach(str(path), read_only=options.read_only, storage_version=version))
            return
        except duckdb.Error as error:
            problem = open_failure(error, path)
            if problem is None and not tried_again:
                tried_again = True  # whoever held the file may have gone just now
                continue
            problem = problem or damaged(error, path)
            if not isinstance(problem, TargetBusyError) or isinstance(error, duckdb.ResourceInUseException):
                raise problem from error
            if options.read_only:
                problem.hint = "Close the database there, or plan again when that process has ended."
            waiter.wait(problem)


def _require(path: Path) -> None:
    problem = path_problem(path)
    if problem is not None:
        raise problem


class _LockWait:
    """Waits in short steps, says once what it waits for, and gives up after the timeout."""

    def __init__(self, timeout_seconds: float, notice: Callable[[str], None], is_cancelled: Callable[[], bool]) -> None:
        self._deadline = time.monotonic() + timeout_seconds
        self._timeout_seconds = timeout_seconds
        self._notice = notice
        self._is_cancelled = is_cancelled
        self._said = False

    def wait(self, problem: TargetBusyError) -> None:
        """Waits one step; raises `problem` after the timeout."""
        if time.monotonic() >= self._deadline:
            if self._timeout_seconds:
                problem.expected = f"it to be closed within {_seconds(self._timeout_seconds)}"
            raise problem
        if not self._said:
            self._said = True
            file = (problem.at or {}).get("file")
            self._notice(f"waiting up to {_seconds(self._timeout_seconds)} for {file}: {problem.found}")
        if self._is_cancelled():
            raise CancelledError("cancelled while waiting for the database", at=problem.at)
        time.sleep(_LOCK_POLL_SECONDS)


def _seconds(seconds: float) -> str:
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"
