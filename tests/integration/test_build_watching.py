"""Builds in PostgreSQL: what is told of statistics that are missing, and of temporary files while they grow."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.targets.postgres.spill_watch import SpillWatch
from tests.integration.builds import BuildProject, build, build_project, table_of
from tests.integration.test_build_parts import in_database
from tests.integration.test_postgres_watcher import connect
from tests.servers.cluster import LOADER, Cluster, Database

_SECONDS = 20
# Sorts in files that last until the cursor is closed, at the end of its transaction.
SPILLS = (
    "SET work_mem = '64kB'; BEGIN; DECLARE sorted CURSOR FOR "
    "SELECT g, repeat('x', 990) FROM generate_series(1, {}) AS g ORDER BY -g; MOVE 1 IN sorted"
)
BIG = (
    "CREATE TABLE {0} (id int, note text) WITH (autovacuum_enabled = off); "
    "INSERT INTO {0} SELECT n, repeat('x', 90) FROM generate_series(1, 20000) AS n"
)


@pytest.fixture
def project(tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    with build_project("postgres", tmp_path / "project", postgres) as project:
        yield project


@pytest.mark.parametrize("more", ["", "by: {table: line}\nparts: 2"])
def test_tables_without_statistics_are_told(project: BuildProject, more: str) -> None:
    target = in_database(project).target
    for name in ("line", "part"):
        target.as_loader(BIG.format(name))
    target.as_loader("CREATE TABLE tiny AS SELECT 1 AS id; ANALYZE part")
    project.tasks(build("SELECT line.id FROM line JOIN part USING (id) JOIN tiny USING (id)", more=more))
    notes = table_of(project.run().succeeded())["notes"]
    (told,) = [note for note in notes if "statistics" in note]
    assert told.startswith("no statistics of public.line: the server guesses how many rows they have")
    target.as_loader("ANALYZE line; DROP TABLE sales")
    assert "statistics" not in "".join(table_of(project.run().succeeded())["notes"])


@contextmanager
def watched(database: Database) -> Iterator[tuple[SpillWatch, list[str], threading.Event]]:
    """A watch that tells of a megabyte, what it has told, and an event that it has."""
    told: list[str] = []
    event = threading.Event()

    def notice(text: str) -> None:
        told.append(text)
        event.set()

    watch = SpillWatch(lambda: connect(database, "headrace run watch"), notice, 1 << 20, 0.02)
    with watch:
        yield watch, told, event


def test_temporary_files_are_told_while_they_grow(database: Database) -> None:
    database.psql(f"GRANT pg_monitor TO {LOADER}")
    own, other = connect(database, "own"), connect(database, "other")
    try:
        other.execute(SPILLS.format(100_000))
        with watched(database) as (watch, told, event):
            watch.add(own)
            own.execute(SPILLS.format(5_000))
            assert event.wait(_SECONDS)
            assert re.fullmatch(r"the server holds \S+ MB in temporary files for this task, and goes on", told[0])
            event.clear()
            own.execute("ROLLBACK; " + SPILLS.format(20_000))
            assert event.wait(_SECONDS)
        # The session that is not the task's has 100 MB.
        assert 20_000_000 < watch.most_bytes < 90_000_000
    finally:
        own.close()
        other.close()
        database.psql(f"REVOKE pg_monitor FROM {LOADER}")


def test_a_user_who_may_not_look_is_told_nothing(database: Database) -> None:
    own = connect(database, "own")
    try:
        own.execute(SPILLS.format(5_000))
        with watched(database) as (watch, told, _):
            watch.add(own)
            assert watch.has_given_up(_SECONDS)
        assert told == []
    finally:
        own.close()


def test_a_server_that_has_no_session_left_fails_nothing(database: Database) -> None:
    own = connect(database, "own")
    try:
        database.psql(f'ALTER DATABASE "{database.name}" CONNECTION LIMIT 1')
        with watched(database) as (watch, told, _):
            watch.add(own)
            assert watch.has_given_up(_SECONDS)
        assert told == []
    finally:
        own.close()
