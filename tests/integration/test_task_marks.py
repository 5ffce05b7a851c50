"""Marks of tasks in the ledgers: a task that is no data flow has committed, and what it had to tell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from headrace import core
from headrace.errors import LedgerError
from headrace.model import PostgresConnection
from headrace.model.conninfo import ConnectionParameters
from headrace.targets import FinishedTask, OpenOptions, RunRecord
from headrace.targets.duckdb.ledger import Ledger as DuckdbLedger
from headrace.targets.duckdb.target import DuckdbTarget
from headrace.targets.postgres.ledger import Ledger as PostgresLedger
from headrace.targets.postgres.target import PostgresTarget
from tests.servers.cluster import Database

OPTIONS = OpenOptions(200_000_000, 2, None, False, lambda text: None, lambda: False)
RUN = RunRecord("20261120-101530-abcdef", "sales", "hash", "0", "here", 1, datetime(2026, 11, 20, tzinfo=UTC))
OLD_RUN = RunRecord("20261119-101530-abcdef", "sales", "hash", "0", "here", 1, datetime(2026, 11, 19, tzinfo=UTC))
TASK = "load[l'a].tidy"


def duckdb_target(path: Path) -> DuckdbTarget:
    return DuckdbTarget(path, 1, OPTIONS)


def test_a_mark_in_a_duckdb_file(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with duckdb_target(path) as target:
        target.begin_run(RUN)
        ledger = DuckdbLedger(target._connection, path)
        for end, expected in (("ROLLBACK", None), ("COMMIT", FinishedTask())):
            target._connection.execute("BEGIN TRANSACTION")
            ledger.mark_task(RUN.run_id, TASK)
            target._connection.execute(end)
            assert target.finished_task(RUN.run_id, TASK) == expected
        target._connection.execute("BEGIN TRANSACTION")
        ledger.mark_task(RUN.run_id, "other")
        ledger.set_task_result(RUN.run_id, "other", '{"n": 1}')
        target._connection.execute("COMMIT")
        with pytest.raises(LedgerError, match="cannot write the end of other"):
            ledger.mark_task(RUN.run_id, "other")
    with duckdb_target(path) as target:
        target.resume_run(RUN)
        assert target.finished_task(RUN.run_id, "other") == FinishedTask('{"n": 1}')
        assert target.finished_task(OLD_RUN.run_id, "other") is None


def test_a_duckdb_ledger_made_before_there_were_marks(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with duckdb_target(path) as target:
        target.begin_run(OLD_RUN)
    with duckdb.connect(str(path)) as connection:
        connection.execute("DROP TABLE headrace.task")
    with duckdb_target(path) as target:
        target.begin_run(RUN)
        assert target.finished_task(RUN.run_id, TASK) is None


@contextmanager
def opened(database: Database) -> Iterator[PostgresTarget]:
    hosts = ((str(database.cluster.sockets), database.cluster.port),)
    parameters = ConnectionParameters(hosts=hosts, database=database.name, user=database.role, sslmode="disable")
    with PostgresTarget(PostgresConnection("warehouse", parameters), OPTIONS, core.PostgresConnection) as target:
        yield target


@pytest.fixture
def postgres_target(database: Database) -> Iterator[PostgresTarget]:
    with opened(database) as target:
        yield target


def test_a_mark_in_a_postgresql_database(postgres_target: PostgresTarget, database: Database) -> None:
    target = postgres_target
    assert target.finished_task(RUN.run_id, TASK) is None
    target.begin_run(RUN)
    ledger, control = PostgresLedger(target._control, "headrace"), target._control
    for end, expected in (("ROLLBACK", None), ("COMMIT", FinishedTask())):
        control.execute("BEGIN")
        ledger.mark_task(RUN.run_id, TASK)
        control.execute(end)
        assert target.finished_task(RUN.run_id, TASK) == expected
    with pytest.raises(LedgerError, match="cannot write the end of"):
        ledger.mark_task(RUN.run_id, TASK)
    control.execute("BEGIN")
    ledger.mark_task(RUN.run_id, "other")
    ledger.set_task_result(RUN.run_id, "other", '{"n": 1}')
    control.execute("COMMIT")
    assert target.finished_task(RUN.run_id, "other") == FinishedTask('{"n": 1}')
    database.psql("UPDATE headrace.run SET attempt = 2")
    with pytest.raises(LedgerError, match="was taken over by another session"):
        ledger.mark_task(RUN.run_id, "late")


def test_a_postgresql_ledger_made_before_there_were_marks(postgres_target: PostgresTarget, database: Database) -> None:
    postgres_target.begin_run(OLD_RUN)
    as_it_was = (
        "DROP TABLE headrace.task; DROP VIEW headrace.lineage; ALTER TABLE headrace.commit DROP rows_filtered; "
        "ALTER TABLE headrace.unit DROP identity"
    )
    database.psql(as_it_was)
    postgres_target.begin_run(RUN)
    assert postgres_target.finished_task(RUN.run_id, TASK) is None


def test_the_row_of_a_run_comes_while_it_is_resumed(postgres_target: PostgresTarget, database: Database) -> None:
    """The server may still be at what a killed attempt had sent."""
    postgres_target.begin_run(OLD_RUN)
    control = postgres_target._control
    control.execute("BEGIN")
    assert PostgresLedger(control, "headrace")._insert_run(RUN)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with opened(database) as resuming, ThreadPoolExecutor(1) as pool:
        resumed = pool.submit(resuming.resume_run, RUN)
        while not resumed.done() and database.rows(waits) == [("0",)]:
            time.sleep(0.01)
        control.execute("COMMIT")
        resumed.result()
    assert database.rows(f"SELECT attempt FROM headrace.run WHERE run_id = '{RUN.run_id}'") == [("2",)]
    with pytest.raises(LedgerError, match="already"):
        postgres_target.begin_run(RUN)
