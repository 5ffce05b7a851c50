"""Exactly once: whatever is killed, or lost, at whatever moment, what a task of kind `sql` does is done once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace import core
from headrace.errors import CancelledError, HeadraceError, LedgerError, TargetBusyError
from headrace.run.cancellation import Cancellation
from headrace.targets.postgres.sql_sessions import PostgresSqlSessions
from tests.integration.sql_tasks import DUCKDB, begun, postgres_connection, rows
from tests.patience import HANG_SECONDS
from tests.servers.cluster import Database
from tests.stress import go_on, stop

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
TASK = 'text: "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2) RETURNING id", row: {n: id}'
# Begins a run, and executes the task until the moment has come: then it dies, or waits for a line.
ATTEMPT = """
import json, os, signal, sys
from pathlib import Path
import headrace.run.leaves.sql as leaf
from tests.integration.sql_tasks import begun

folder, connection, moment, how, task = sys.argv[1:]

def end():
    print("reached", flush=True)
    if how == "waits":
        sys.stdin.readline()
    else:
        os.kill(os.getpid(), signal.SIGKILL)

def at(session, name):
    original = getattr(type(session), name)
    def reached(self, *values):
        if moment == "before " + name:
            end()
        result = original(self, *values)
        if moment == "behind " + name:
            end()
        return result
    setattr(type(session), name, reached)

original = leaf.SqlExecution._in_transaction
def patched(self, session):
    for name in ("mark", "commit"):
        at(session, name)
    return original(self, session)
leaf.SqlExecution._in_transaction = patched

environ = {name: value for name, value in os.environ.items() if name == "PGPASSWORD"}
with begun(Path(folder), connection, environ) as run:
    try:
        print(json.dumps(dict(run.task(task, instance="load[1].b").outputs)), flush=True)
    except Exception as error:
        print("error", type(error).__name__, flush=True)
    os._exit(0)
"""
MOMENTS = ("before mark", "behind mark", "before commit", "behind commit")


@dataclass(frozen=True)
class Place:
    """Where a run works."""

    folder: Path
    connection: str
    environ: Mapping[str, str]

    @contextmanager
    def attempt(self, moment: str, how: str = "dies") -> Iterator[subprocess.Popen[str]]:
        """The first attempt, in a process of its own, when its moment has come; it ends with the block."""
        environ = {**os.environ, **self.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        with subprocess.Popen(
            [sys.executable, "-c", ATTEMPT, str(self.folder), self.connection, moment, how, TASK],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "reached\n"
                yield process
            finally:
                process.kill()


@pytest.fixture(params=["duckdb", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "duckdb":
        connection, environ = DUCKDB, dict[str, str]()
    else:
        database: Database = request.getfixturevalue("database")
        connection, environ = postgres_connection(database), dict(database.environment)
    with begun(tmp_path, connection, environ) as run:
        forget = "DELETE FROM headrace.task; DELETE FROM headrace.run"
        run.task(f'text: "CREATE TABLE t (id int); {forget}", transaction: false', instance="made before")
    yield Place(tmp_path, connection, environ)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_attempt(place: Place, moment: str) -> None:
    with place.attempt(moment) as process:
        assert process.wait(HANG_SECONDS) == -signal.SIGKILL
    with begun(place.folder, place.connection, place.environ, resume=True) as run:
        result = run.task(TASK, instance="load[1].b")
        assert result.outputs == {"n": 2}
        assert result.details.get("committed_before", False) == (moment == "behind commit")
        assert rows(run, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_session_of_an_attempt_that_was_taken_over(database: Database, tmp_path: Path) -> None:
    """The process stands still in the middle of its transaction, and goes on when the run was resumed."""
    place = made(tmp_path, database)
    # Its control session is ended: else nobody could take the run over.
    ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name LIKE '%control'"
    with place.attempt("before commit", "waits") as process:
        stop(process.pid)
        assert database.rows(ended) == [("t",)]
        with begun(place.folder, place.connection, place.environ, resume=True) as run:
            assert not run.task(TASK, instance="load[1].b").details.get("committed_before", False)
            go_on(process.pid)
            assert process.communicate("\n", timeout=HANG_SECONDS)[0] == "error TargetBusyError\n"
            assert rows(run, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def made(folder: Path, database: Database) -> Place:
    database.as_loader("CREATE TABLE t (id int)")
    return Place(folder, postgres_connection(database), database.environment)


class Losing:
    """A connection that breaks at COMMIT: before the server gets it, or behind that."""

    def __init__(self, connection: core.PostgresConnection, moment: str, error: HeadraceError) -> None:
        self._connection = connection
        self._moment = moment
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def query(self, sql: str, parameters: Sequence[str | None] = ()) -> Any:
        if sql != "COMMIT":
            return self._connection.query(sql, parameters)
        if self._moment == "behind":
            self._connection.query(sql)
        raise self._error


@pytest.mark.parametrize("moment", ["before", "behind"])
@pytest.mark.parametrize("error", [TargetBusyError("the connection was lost"), CancelledError("cancelled")])
def test_an_answer_to_commit_that_never_came(
    database: Database, tmp_path: Path, moment: str, error: HeadraceError
) -> None:
    place = made(tmp_path, database)
    with begun(place.folder, place.connection, place.environ) as run:
        sessions = run.sessions
        assert isinstance(sessions, PostgresSqlSessions)
        opens, wrapped = sessions._open_session, list[Losing]()

        def lose() -> Any:
            if wrapped:
                return opens()
            wrapped.append(Losing(opens(), moment, error))  # type: ignore[arg-type]
            return wrapped[0]

        sessions._open_session = lose
        if moment == "before":
            with pytest.raises(type(error)):
                run.task(TASK, instance="b")
            assert not run.task(TASK, instance="b").details.get("committed_before", False)
        else:
            assert run.task(TASK, instance="b").outputs == {"n": 2}
        assert rows(run, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]
        left = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'headrace % b'"
        assert database.rows(left) == [("0",)]


def test_nothing_is_done_for_a_run_that_was_taken_over(database: Database, tmp_path: Path) -> None:
    place = made(tmp_path, database)
    with begun(place.folder, place.connection, place.environ) as run:
        database.psql("UPDATE headrace.run SET attempt = attempt + 1")
        for transaction in ("true", "false"):
            with pytest.raises(LedgerError, match="was taken over"):
                run.task(f"{TASK}, transaction: {transaction}", instance="b")
    assert database.rows("SELECT id FROM t") == []


def test_without_a_transaction_a_dead_session_is_ended_first(database: Database, tmp_path: Path) -> None:
    """Its statement would go on otherwise."""
    place = made(tmp_path, database)
    cancellation = Cancellation()
    with begun(place.folder, place.connection, place.environ) as run:
        with run.sessions.session("b", cancellation.is_set) as session:
            session.stand_alone()
            run.opened._control.close()  # type: ignore[attr-defined]
            with begun(place.folder, place.connection, place.environ, resume=True):
                pass
            with pytest.raises(TargetBusyError):
                session.commit()
        run.opened._control.reopen()  # type: ignore[attr-defined]
