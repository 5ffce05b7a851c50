"""Tasks of kind `sql`, executed without a scheduler: a package, a target with its run, and one task after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headrace.executors import FlowOutcome
from headrace.model import BoundPackage, Connection, load_package
from headrace.model.rows import Rows
from headrace.model.scope import Scope, variable_sql_type
from headrace.model.spec_leaves import SqlSpec
from headrace.planning import DataFlowPlan, FinishedTask
from headrace.run.cancellation import Cancellation
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.run.leaves.sql import SqlLeaf
from headrace.run.redact import Redactor
from headrace.targets import OpenOptions, RunRecord, SqlSessions, Target, open_target
from tests.servers.cluster import Database

RUN_ID = "20261120-101530-abcdef"
PACKAGE = """\
headrace: 1
package: sales
parameters:
  day: {{type: date, default: 2024-01-31}}
  amount: {{type: decimal, default: 12.50}}
  names: {{type: list, default: [a, "b'c"]}}
  secret: {{type: string, default: "${{env:CANARY}}"}}
variables:
  n: {{type: integer}}
  text: {{type: string}}
  total: {{type: decimal}}
  first: {{type: date}}
  at: {{type: timestamp}}
  is_on: {{type: boolean}}
  found: {{type: rows}}
  hidden: {{type: string, secret: true}}
connections:
  warehouse: {connection}
tasks:
"""
CANARY = "c4n4ry-S3cret-value"
DUCKDB = "{type: duckdb, path: warehouse.duckdb}"


def postgres_connection(database: Database, more: str = "") -> str:
    """The connection of a package; `more`: further settings."""
    return f'{{type: postgres, url: "{database.url}", password: "${{env:PGPASSWORD}}", lock_timeout_seconds: 1{more}}}'


class NoMemory:
    """Nothing was kept."""

    def remember(self, note: Mapping[str, Any]) -> None:
        raise AssertionError("an sql task keeps no notes")

    def remembered(self) -> Sequence[Mapping[str, Any]]:
        return ()


@dataclass
class Run:
    """One attempt of a run: its target is open. Also the services of its tasks."""

    folder: Path
    connection: str
    environ: Mapping[str, str]
    opened: Target
    sessions: SqlSessions
    notices: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)

    def sql_sessions(self, connection: Connection) -> SqlSessions:
        return self.sessions

    def target(self, connection: Connection) -> Target:
        return self.opened

    def built(self, plan: DataFlowPlan, outcome: FlowOutcome) -> None:
        raise AssertionError(plan)

    def built_before(self, task: FinishedTask) -> None:
        raise AssertionError(task)

    def package(self, tasks: str) -> BoundPackage:
        return package(self.folder, self.connection, tasks, self.environ)

    def task(
        self, settings: str, /, *, instance: str = "task", cancellation: Cancellation | None = None, **values: Any
    ) -> LeafResult:
        """Executes the settings of a task, YAML of one line."""
        bound = self.package(f"  task: {{sql: {{connection: warehouse, {settings}}}}}\n")
        return self.execute(bound, instance, cancellation or Cancellation(), values)

    def execute(
        self, bound: BoundPackage, instance: str, cancellation: Cancellation, values: Mapping[str, object]
    ) -> LeafResult:
        task = bound.tasks[0]
        types = {item.name: variable_sql_type(item.type, item.items) for item in bound.variables}
        known = {**dict.fromkeys(types), **self.values, **values}
        scope: Scope = bound.scope.with_names(known, types)
        context = LeafContext(
            task=task,
            instance=instance,
            run_id=RUN_ID,
            package=bound,
            scope=scope,
            cancellation=cancellation,
            memory=NoMemory(),
            notice=self.notices.append,
            warn=self.warnings.append,
            redact=Redactor(bound.secrets).text,
            services=self,
            run_folder=Path("run"),
        )
        settings = bound.binder.task(task, scope, instance)
        assert isinstance(settings, SqlSpec)
        return SqlLeaf().run(settings, context)


def package(folder: Path, connection: str, tasks: str, environ: Mapping[str, str]) -> BoundPackage:
    """The package with these tasks, written into the folder."""
    path = folder / "package.yaml"
    path.write_text(PACKAGE.format(connection=connection) + tasks, encoding="utf-8")
    return load_package(path, environ={"CANARY": CANARY, **environ})


@contextmanager
def begun(
    folder: Path,
    connection: str,
    environ: Mapping[str, str],
    *,
    resume: bool = False,
    notice: Callable[[str], None] = lambda text: None,
) -> Iterator[Run]:
    """A run that has begun, or goes on, in its ledger."""
    bound = package(folder, connection, '  task: {sql: {connection: warehouse, text: "SELECT 1"}}\n', environ)
    options = OpenOptions(200_000_000, 2, None, False, notice, lambda: False)
    record = RunRecord(RUN_ID, "sales", "hash", "0", "here", 1, datetime(2026, 11, 20, tzinfo=UTC))
    with open_target(bound.connections["warehouse"], options) as target:
        if resume:
            target.resume_run(record)
        else:
            target.begin_run(record)
        sessions = target.sql_sessions()
        try:
            yield Run(folder, connection, environ, target, sessions)
        finally:
            sessions.close()


@contextmanager
def later(seconds: float, call: Callable[[], None]) -> Iterator[None]:
    """Calls it while the block goes on."""
    timer = threading.Timer(seconds, call)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def rows(run: Run, query: str) -> list[tuple[object, ...]]:
    """What a query gives, by a task of its own."""
    found = run.task(f'text: "{query}", rows: found', instance=f"rows{time.monotonic()}").outputs["found"]
    assert isinstance(found, Rows)
    return [tuple(row) for row in found.rows]
