"""Runs the command line on a package, files and a database in one folder.

A command whose end is awaited runs inside the process of the tests (`inside.py`): starting a process costs more than
most loads. One that is watched, killed or measured (`started`, `own_processes`) has a process of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb

from headrace.tpch import package_path
from tests.integration.inside import can_run_inside, run_inside
from tests.integration.starts import start
from tests.stress import go_on, stop

TIMEOUT_SECONDS = 120
_POLL_SECONDS = 0.002
# How often the memory of a command is looked at while its end is awaited.
_LOOK_SECONDS = 0.02

# Files of one layout become one table; the parameters are what the tests vary.
PACKAGE = """
headrace: 1
package: sales
parameters:
  files: {type: list, default: ["orders.tbl.*"]}
  target: {type: string, default: replace}
  table: {type: string, default: orders}
  missing: {type: string, default: error}
  empty: {type: string, default: error}
  limit: {type: integer, default: 0}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders:
    delimiter: "|"
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: amount, type: "decimal(9,2)"}
      - {name: day, type: date}
      - {name: customer, type: varchar(12)}
      - {name: note, type: string}
streams: 4
tasks:
  load_orders:
    data_flow:
      rejects: {limit: "${limit}"}
      sources:
        orders: {connection: inbox, files: "${files}", missing: "${missing}", empty: "${empty}", layout: orders}
      destinations:
        sales: {input: orders, connection: warehouse, table: "${table}", target: "${target}"}
"""
# Tasks for TPC-H tables follow; their layouts are those of the example.
TPCH_PACKAGE = """
headrace: 1
package: tpch
parameters:
  target: {type: string, default: replace}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
streams: 4
"""
TPCH_TASK = """
  load_{table}:
    data_flow:
      sources:
        rows: {{{source}, layout: {table}}}
      destinations:
        loaded: {{input: rows, connection: warehouse, table: {table}, target: "${{target}}"}}
"""
FROM_FILES = 'connection: inbox, files: ["{table}.tbl", "{table}.tbl.*"]'
CREATE_ORDERS = "CREATE TABLE orders (id BIGINT, amount DECIMAL(9,2), day DATE, customer VARCHAR, note VARCHAR)"
GOOD_ROWS = "".join(f"{number}|{number}.25|2024-02-29|customer {number}|note {number}\n" for number in range(1, 101))

_FILTERS = [
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}(?![0-9a-f])"), "RUN"),
    (re.compile(r"\b\d+ min \d\d s\b|\b\d+(\.\d+)? s\b"), "TIME"),
    (re.compile(r"[\d,.]+ MB/s"), "SPEED MB/s"),
    (re.compile(r"process \d+ \(.*?\)"), "process PID (PROGRAM)"),
]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    own_peak_resident_bytes: int | None = None

    @property
    def peak_resident_bytes(self) -> int:
        """The kernel's high-water mark of its process when it was last looked at."""
        assert self.own_peak_resident_bytes is not None, "the command had no process of its own: `own_processes`"
        return self.own_peak_resident_bytes

    @property
    def summary(self) -> dict[str, Any]:
        """The JSON document on stdout."""
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def error(self) -> str:
        """The error message, from its first line to its hint."""
        found = re.search(r"^error: ", self.stderr, re.MULTILINE)
        return "" if found is None else self.stderr[found.start() :]

    def succeeded(self) -> dict[str, Any]:
        """The summary of a run that must have been a success."""
        assert (self.exit_code, self.error) == (0, ""), self.stderr
        return self.summary


class Running:
    """A command that runs. Its output goes to files, so that no pipe can fill up."""

    def __init__(self, arguments: Sequence[str], folder: Path, variables: Mapping[str, str], *, real: bool) -> None:
        self._started = time.monotonic()
        self._outputs = output_files(folder)
        self.ended: Ended | None = None
        self._peak_resident_bytes = 0
        with self._outputs[0].open("wb") as stdout, self._outputs[1].open("wb") as stderr:
            self.process = start(arguments, folder, variables, (stdout, stderr), real=real)

    @property
    def stderr(self) -> str:
        """What has been written so far."""
        return self._outputs[1].read_text(encoding="utf-8", errors="surrogateescape")

    def poll(self, seconds: float = 0.0) -> Ended | None:
        """The end of the command, if it has come or comes within so many seconds."""
        if self.ended is None:
            # Not the `ru_maxrss` of `wait4`: that starts with the memory of the process that called fork.
            self._peak_resident_bytes = max(self._peak_resident_bytes, _peak_resident_bytes(self.process.pid))
            exit_code = self.process.poll(seconds)
            if exit_code is not None:
                stdout, stderr = texts_of(self._outputs)
                took = time.monotonic() - self._started
                self.ended = Ended(exit_code, stdout, stderr, took, self._peak_resident_bytes)
        return self.ended

    def wait(self) -> Ended:
        """Waits for the end."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while (ended := self.poll(_LOOK_SECONDS)) is None:
            assert time.monotonic() < deadline, f"still running after {TIMEOUT_SECONDS} s:\n{self.stderr}"
        return ended

    def wait_until(self, moment: float) -> None:
        """Until `moment` seconds have passed, or the process has ended."""
        deadline = time.monotonic() + moment
        while (left := deadline - time.monotonic()) > 0 and self.poll(min(left, _LOOK_SECONDS)) is None:
            pass

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def freeze(self) -> None:
        """Stops the process in the middle of whatever it does, and returns when it stands still."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                stop(self.process.pid)
        while self.poll() is None and _state_of(self.process.pid) not in "Tt":
            time.sleep(_POLL_SECONDS)

    def thaw(self) -> None:
        """Lets a frozen process go on."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                go_on(self.process.pid)

    def end(self) -> None:
        """Makes sure that nothing runs on."""
        self.signal(signal.SIGKILL)
        self.wait()


def output_files(folder: Path) -> list[Path]:
    """Where the next command writes to: standard output, standard error."""
    number = len(list(folder.glob(".stdout.*")))
    return [folder / f".stdout.{number}", folder / f".stderr.{number}"]


def texts_of(outputs: Sequence[Path]) -> tuple[str, str]:
    """What a command has written."""
    stdout, stderr = (path.read_text(encoding="utf-8", errors="surrogateescape") for path in outputs)
    return stdout, stderr


def variables_of(environment: Mapping[str, str] | None) -> dict[str, str]:
    """The environment of a command."""
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "80", **(environment or {})}


def _state_of(process_id: int) -> str:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _peak_resident_bytes(process_id: int) -> int:
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


@cache
def _reader() -> duckdb.DuckDBPyConnection:
    """The instance for all queries on databases: making one takes ten times as long as opening a file."""
    atexit.register(_reader.cache_clear)  # DuckDB complains of an instance that is left when Python ends
    return duckdb.connect(":memory:")


class Project:
    """A folder with `package.yaml`, the files in `inbox`, `warehouse.duckdb` and the run folders in `runs`."""

    # Whether its commands are started as users start them, where a test looks at processes.
    real_starts = False
    # Whether each of its commands has a process of its own, where a test looks at memory or at locks of files.
    own_processes = False
    # What its commands find in their environment besides, such as a password.
    environment: Mapping[str, str] = MappingProxyType({})
    # A command that starts its commands, such as `ip netns exec`.
    prefix: Sequence[str] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = folder / "inbox"
        self.database = folder / "warehouse.duckdb"
        self.runs = folder / "runs"
        self.inbox.mkdir()
        self.package(PACKAGE)

    def package(self, text: str) -> None:
        """Writes the package."""
        (self.folder / "package.yaml").write_text(text, encoding="utf-8")

    def tpch(self, *tables: str, source: str = FROM_FILES) -> None:
        """Writes a package that loads TPC-H tables, one after the other."""
        folder = package_path().parent / "layouts"
        layouts = "".join(f"  {table}: {{file: {folder / table}.yaml}}\n" for table in tables)
        tasks = (TPCH_TASK.format(table=table, source=source.format(table=table)) for table in tables)
        self.package(f"{TPCH_PACKAGE}layouts:\n{layouts}tasks:\n{''.join(tasks)}")

    def link(self, files: Iterable[Path], copies: int = 1) -> None:
        """Offers the same text any number of times without copying it."""
        for path in files:
            for copy in range(copies):
                name = path.name if copies == 1 else f"{path.name.split('.')[0]}.tbl.{copy}{path.name.split('.')[-1]}"
                (self.inbox / name).symlink_to(path)

    def file(self, name: str, content: str | bytes = GOOD_ROWS) -> Path:
        """Writes a source file."""
        path = self.inbox / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def arguments(self, *arguments: str, **parameters: object) -> list[str]:
        """The command `headrace run package.yaml --json` with parameters and further arguments."""
        sets = [part for name, value in parameters.items() for part in ("--set", f"{name}={value}")]
        return [
            sys.executable,
            "-m",
            "headrace",
            "run",
            "package.yaml",
            "--runs-dir",
            "runs",
            "--json",
            *sets,
            *arguments,
        ]

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None, **parameters: object) -> Ended:
        """Runs the package and waits for its end."""
        return self.command(self.arguments(*arguments, **parameters), environment)

    def resume_command(self, *arguments: str) -> list[str]:
        """The command that continues the last unfinished run."""
        return [sys.executable, "-m", "headrace", "resume", "--runs-dir", "runs", "--json", *arguments]

    def resume(self, *arguments: str) -> Ended:
        """Continues the last unfinished run."""
        return self.command(self.resume_command(*arguments))

    def command(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Ended:
        """Runs any command in the folder and waits for its end."""
        arguments = [*self.prefix, *arguments]
        variables = variables_of({**self.environment, **(environment or {})})
        if self.real_starts or self.own_processes or not can_run_inside(arguments, variables):
            with self._running(arguments, variables) as running:
                return running.wait()
        started, outputs = time.monotonic(), output_files(self.folder)
        exit_code = run_inside(arguments, self.folder, variables, outputs)
        stdout, stderr = texts_of(outputs)
        return Ended(exit_code, stdout, stderr, time.monotonic() - started)

    @contextmanager
    def started(self, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Iterator[Running]:
        """A command that has been started, and is ended with the block."""
        variables = variables_of({**self.environment, **(environment or {})})
        with self._running([*self.prefix, *arguments], variables) as running:
            yield running

    @contextmanager
    def _running(self, arguments: Sequence[str], variables: Mapping[str, str]) -> Iterator[Running]:
        running = Running(arguments, self.folder, variables, real=self.real_starts)
        try:
            yield running
        finally:
            running.end()

    def query(self, sql: str, database: Path | None = None) -> list[tuple[Any, ...]]:
        """Rows of a query on the database, which nobody else may have open for writing."""
        with _reader().cursor() as connection:
            path = str(database or self.database).replace("'", "''")
            connection.execute(f"ATTACH '{path}' AS queried (READ_ONLY)")
            try:
                connection.execute("USE queried")
                return connection.execute(sql).fetchall()
            finally:
                try:
                    connection.execute("USE memory")
                    connection.execute("DETACH queried")
                except duckdb.Error:
                    _reader.cache_clear()

    def execute(self, *statements: str) -> None:
        """Changes the database without Headrace."""
        with duckdb.connect(str(self.database)) as connection:
            for statement in statements:
                connection.execute(statement)

    def tables(self, database: Path | None = None) -> list[str]:
        """All tables and views, `schema.name`, except those of the ledger."""
        rows = self.query(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_schema <> 'headrace' ORDER BY 1",
            database,
        )
        return [row[0] for row in rows]

    def ledger(self, database: Path | None = None) -> list[str]:
        """The status of every run, in the order of their start; nothing if there is no ledger."""
        if not self.query("SELECT 1 FROM duckdb_schemas() WHERE schema_name = 'headrace'", database):
            return []
        return [row[0] for row in self.query("SELECT status FROM headrace.run ORDER BY started_at", database)]

    def events(self) -> list[dict[str, Any]]:
        """The events of the latest run, as far as they are written; only whole lines."""
        folders = sorted(self.runs.iterdir(), key=lambda item: item.stat().st_ctime_ns) if self.runs.exists() else []
        path = folders[-1] / "events.jsonl" if folders else self.runs
        if not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text().splitlines(True) if line.endswith("\n")]

    def wait_for_event(self, running: Running, name: str, **members: object) -> None:
        """Waits until the run has written an event with these members; returns at once if the run has ended."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while running.poll() is None and not any(
            event["event"] == name and members.items() <= event.items() for event in self.events()
        ):
            assert time.monotonic() < deadline, f"no event {name}:\n{running.stderr}"
            time.sleep(_POLL_SECONDS)

    def leftovers(self) -> list[str]:
        """What no run may leave behind, however it ended; one that was killed leaves what it was just writing."""
        ended = [path.parent for path in self.runs.glob("*/summary.json")]
        hidden = [path for folder in ended for path in folder.rglob(".*")]
        run_files = [*hidden, *self.runs.rglob("spill")]
        beside = [path for path in self.folder.glob("warehouse.duckdb*") if path != self.database]
        return sorted(str(path.relative_to(self.folder)) for path in [*run_files, *beside])

    def stable(self, text: str) -> str:
        """The text without what differs from run to run."""
        text = text.replace(str(self.folder), "FOLDER").replace(sys.executable, "PYTHON")
        for pattern, replacement in _FILTERS:
            text = pattern.sub(replacement, text)
        return text


@dataclass(frozen=True)
class Before:
    """A target with three rows, to be found again after a run that failed."""

    project: Project
    rows: list[tuple[Any, ...]]

    @classmethod
    def of(cls, project: Project) -> Before:
        """Makes the table of `PACKAGE`."""
        values = ", ".join(f"({number}, {number}.5, '2020-01-01', 'before', NULL)" for number in (-1, -2, -3))
        project.execute(CREATE_ORDERS, f"INSERT INTO orders VALUES {values}")
        return cls(project, project.query("FROM orders ORDER BY ALL"))

    def check(self, *ledger: str) -> None:
        """Nothing is lost, nothing is added, nothing stays behind; the ledger's runs have these states."""
        project = self.project
        assert project.query("FROM orders ORDER BY ALL") == self.rows
        assert project.tables() == ["main.orders"]
        assert project.ledger() == list(ledger)
        if ledger:
            assert project.query('SELECT count(*) FROM headrace."commit"') == [(0,)]
        assert project.leftovers() == []
