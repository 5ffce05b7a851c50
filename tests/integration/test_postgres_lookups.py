"""Lookups on the way into PostgreSQL: the rows of DuckDB's join, however they are loaded, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.integration.driver import Ended, Project
from tests.integration.lookup_scenes import JOIN, LINES, MATCHED, PACKAGE, PARTS, part, strict, transforms, write_files
from tests.integration.postgres import PostgresProject
from tests.snapshots import assert_snapshot

COLUMNS = "line, part, color, amount, file, part_sk, part_name, label"
DESTINATION = "table: facts, target: replace}"
# What must not stop a run, or must stop it: a line of the second file.
LATE_LINE = LINES * 3 // 4
CHECKED = f"CREATE TABLE facts (line bigint, part_sk int, CONSTRAINT late CHECK (line <> {LATE_LINE}))"
APPENDED = "table: facts, target: append, load: single, commit: {rows: 5000}, columns: {line: line, part_sk: part_sk}}"


@pytest.fixture
def facts(warehouse: PostgresProject) -> PostgresProject:
    warehouse.package(PACKAGE)
    write_files(warehouse)
    return warehouse


def loading(facts: PostgresProject, destination: str, package: str = PACKAGE) -> None:
    assert DESTINATION in package
    facts.package(package.replace(DESTINATION, destination))


def joined(project: Project, columns: str = COLUMNS) -> list[tuple[str | None, ...]]:
    """The join by DuckDB, as text."""
    with duckdb.connect() as connection:
        rows = f"SELECT {columns} FROM ({JOIN.format(inbox=project.inbox)}) ORDER BY line"
        return connection.execute(f"SELECT COLUMNS(*)::VARCHAR FROM ({rows})").fetchall()


def loaded(facts: PostgresProject, columns: str = COLUMNS) -> list[tuple[str | None, ...]]:
    return facts.query(f"SELECT {columns} FROM facts ORDER BY line")


@pytest.mark.parametrize("streams", [1, 16])
def test_the_table_equals_the_join_of_duckdb(facts: PostgresProject, streams: int) -> None:
    ended = facts.run("--streams", str(streams))
    keyed, colored = transforms(ended)
    assert (keyed["rows"], keyed["matched"], colored["rows"]) == (LINES, MATCHED, LINES)
    assert loaded(facts) == joined(facts)
    assert facts.query("SELECT pg_typeof(part_sk), pg_typeof(part_name), pg_typeof(label) FROM facts LIMIT 1") == [
        ("integer", "text", "text")
    ]
    assert facts.leftovers() == []


@pytest.mark.parametrize(
    "clauses",
    [
        "load: staged, partition: {range: {column: line, bounds: [20000, 40000]}}",
        "load: staged, partition: {hash: {column: part, parts: 4}}",
        "load: view",
        "commit: {rows: 5000}",
    ],
)
def test_however_the_rows_are_loaded(facts: PostgresProject, clauses: str) -> None:
    """Twice, because the second run takes the place of the first."""
    loading(facts, f"table: facts, target: replace, {clauses}}}")
    for streams in ("3", "2"):
        facts.run("--streams", streams).succeeded()
        assert loaded(facts) == joined(facts)
        assert facts.leftovers() == []


def test_rows_that_find_nothing_are_rejects_and_can_be_replayed(facts: PostgresProject) -> None:
    facts.package(strict(PACKAGE).replace("rejects: {limit: 20000}", "rejects: {limit: 20000, table: bad_facts}"))
    ended = facts.run()
    (table,) = ended.succeeded()["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (MATCHED, LINES - MATCHED)
    rejected = facts.query("SELECT count(*), min(code), max(code), count(DISTINCT row_byte) FROM bad_facts")
    assert rejected[0][:3] == (str(LINES - MATCHED), "HR602", "HR602")
    facts.file("parts.3", "p_partkey|p_sk|p_name\n" + "".join(map(part, range(PARTS, PARTS * 6 // 5))))
    without_key = len(range(0, LINES, 31))
    headrace = [sys.executable, "-m", "headrace"]
    facts.command([*headrace, "rejects", "--runs-dir", "runs", "last", "--copy", "again.csv"])
    replay = [*headrace, "replay", "--runs-dir", "runs", "--json", "last", "again.csv", "--limit", "20000"]
    again = facts.command(replay)
    (table,) = again.succeeded()["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (LINES - MATCHED - without_key, without_key)
    with_key = [row for row in joined(facts) if row[1] is not None]
    assert loaded(facts) == with_key


@pytest.mark.parametrize("no_match", ["default", "reject"])
def test_a_row_that_breaks_a_constraint_is_found_behind_its_lookup(facts: PostgresProject, no_match: str) -> None:
    facts.execute("CREATE TABLE facts (line bigint, part_sk int UNIQUE)")
    package = PACKAGE if no_match == "default" else strict(PACKAGE)
    loading(facts, "table: facts, target: append, columns: {line: line, part_sk: part_sk}}", package)
    ended = facts.run("--streams", "1")
    assert ended.exit_code == 1
    assert_snapshot(f"postgres_lookup_constraint_{no_match}", facts.stable(ended.error))


def test_null_of_a_lookup_for_a_column_that_is_not_null_is_a_reject(facts: PostgresProject) -> None:
    facts.execute("CREATE TABLE facts (line bigint, part_name text NOT NULL)")
    package = PACKAGE.replace("limit: 10}", "limit: 10000}")
    loading(facts, "table: facts, target: append, columns: {line: line, part_name: part_name}}", package)
    (table,) = facts.run().succeeded()["tables"]
    named = [row for row in joined(facts, "line, part_name") if row[1] is not None]
    assert table["rejects"]["by_rule"] == {"null_not_allowed": LINES - len(named)}
    assert loaded(facts, "line, part_name") == named


def test_a_transaction_of_two_flows_with_lookups(facts: PostgresProject) -> None:
    head, _, flow = PACKAGE.partition("tasks:\n")
    again = flow.replace("load_facts", "load_again").replace("table: facts", "table: again")
    members = "".join(f"      {text}\n" for text in (flow + again).splitlines())
    facts.package(f"{head}tasks:\n  both:\n    sequence:\n      transaction: warehouse\n      tasks:\n{members}")
    facts.run().succeeded()
    assert loaded(facts) == joined(facts)
    assert facts.query("SELECT count(*) FROM (TABLE facts EXCEPT ALL TABLE again) AS other") == [("0",)]


@pytest.mark.parametrize("moment", ["lookup_started", "lookup_read"])
def test_a_killed_run_is_resumed(facts: PostgresProject, moment: str) -> None:
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, moment, lookup="keyed")
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = facts.resume()
    if resumed.exit_code:  # it had ended before
        assert facts.ledger() == ["success"]
    assert loaded(facts) == joined(facts)


def stopped(facts: PostgresProject) -> Ended:
    """A run that has committed the first lines and failed behind them."""
    facts.execute(CHECKED)
    loading(facts, APPENDED)
    ended = facts.run("--streams", "1")
    assert ended.exit_code == 1
    assert 0 < len(loaded(facts, "line, part_sk")) < LATE_LINE
    facts.execute("ALTER TABLE facts DROP CONSTRAINT late")
    return ended


def changed_in_place(path: Path) -> None:
    """Other values, but size and time of the file are as before."""
    before = path.stat()
    path.write_text(path.read_text().replace("|1\n", "|2\n").replace("|4|", "|5|", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def test_a_resumed_run_goes_on_behind_what_is_committed(facts: PostgresProject) -> None:
    stopped(facts)
    resumed = facts.command([sys.executable, "-m", "headrace", "resume", "--runs-dir", "runs"])
    assert resumed.exit_code == 0, resumed.stderr
    assert loaded(facts, "line, part_sk") == joined(facts, "line, part_sk")
    (path,) = (facts.folder / "runs").glob("*/summary.json")
    (table,) = json.loads(path.read_text())["tables"]
    keyed: dict[str, Any] = table["transforms"][0]
    # Of slices that are committed nothing is read again; what was counted stands in the run folder.
    assert 0 < table["bytes_read"] < sum(path.stat().st_size for path in facts.inbox.glob("lines.*"))
    assert (keyed["rows"], keyed["matched"], keyed["slices_not_counted"]) == (LINES, MATCHED, 0)
    assert "not counted" not in resumed.stdout


def test_a_resumed_run_needs_the_lookup_of_its_first_rows(facts: PostgresProject) -> None:
    stopped(facts)
    before = loaded(facts, "line, part_sk")
    changed_in_place(facts.inbox / "parts.1")
    refused = facts.resume()
    assert refused.exit_code == 1
    assert_snapshot("postgres_lookup_resumed_changed", facts.stable(refused.error))
    # Nor does it go on when nothing tells what the lookup held.
    for path in (facts.folder / "runs").glob("*/lookups.jsonl"):
        path.unlink()
    refused = facts.resume()
    assert refused.exit_code == 1
    assert_snapshot("postgres_lookup_resumed_unknown", facts.stable(refused.error))
    assert loaded(facts, "line, part_sk") == before
    facts.execute("DELETE FROM facts")
    assert facts.run("--abandon").exit_code == 0
    assert loaded(facts, "line, part_sk") == joined(facts, "line, part_sk")


def of_a_table(facts: PostgresProject, parts: int, factor: int) -> str:
    """The package whose parts stand in a file of DuckDB, with so many rows of this content."""
    with duckdb.connect(str(facts.folder / "master.duckdb")) as connection:
        connection.execute(
            f"CREATE OR REPLACE TABLE parts AS SELECT range AS p_partkey, (range * {factor} + 1)::INTEGER AS p_sk, "
            f"CASE WHEN range % 11 > 0 THEN 'part number ' || range END AS p_name FROM range({parts})"
        )
    package = PACKAGE.replace(
        "  warehouse: {", "  master: {type: duckdb, path: master.duckdb, lock_timeout_seconds: 2}\n  warehouse: {", 1
    )
    files = 'connection: inbox, files: "${parts}", layout: parts,'
    assert files in package
    return package.replace(files, "connection: master, table: parts,")


def test_parts_of_a_table_of_duckdb(facts: PostgresProject) -> None:
    facts.package(of_a_table(facts, PARTS, 3))
    facts.run("--streams", "3").succeeded()
    assert loaded(facts) == joined(facts)


def test_a_resumed_run_needs_the_table_of_its_first_rows(facts: PostgresProject) -> None:
    """Nobody can tell by size and time that a table has changed."""
    facts.execute(CHECKED)
    loading(facts, APPENDED, of_a_table(facts, PARTS, 3))
    assert facts.run("--streams", "1").exit_code == 1
    before = loaded(facts, "line, part_sk")
    assert 0 < len(before) < LATE_LINE
    facts.execute("ALTER TABLE facts DROP CONSTRAINT late")
    of_a_table(facts, PARTS, 4)
    refused = facts.resume()
    assert (refused.exit_code, "lookup `keyed` has other rows" in refused.error) == (1, True)
    assert loaded(facts, "line, part_sk") == before
    of_a_table(facts, PARTS, 3)
    facts.resume().succeeded()
    assert loaded(facts, "line, part_sk") == joined(facts, "line, part_sk")


def test_a_lookup_may_change_while_nothing_is_committed(facts: PostgresProject) -> None:
    facts.execute(CHECKED.replace(f"<> {LATE_LINE}", "< 0"))
    loading(facts, APPENDED)
    assert facts.run("--streams", "1").exit_code == 1
    facts.execute("ALTER TABLE facts DROP CONSTRAINT late")
    changed_in_place(facts.inbox / "parts.1")
    facts.resume().succeeded()
    assert loaded(facts, "line, part_sk") == joined(facts, "line, part_sk")


def test_a_flow_that_is_tried_again_reads_its_lookups_again(facts: PostgresProject) -> None:
    """Its first tries meet a lock on the table."""
    facts.execute("CREATE TABLE facts (line bigint, part_sk int)")
    package = PACKAGE.replace("    data_flow:", "    retry: {times: 30, wait_seconds: 0}\n    data_flow:")
    loading(facts, "table: facts, target: append, columns: {line: line, part_sk: part_sk}}", package)
    with ExitStack() as lock:
        lock.enter_context(facts.target.session("BEGIN; LOCK TABLE facts IN ACCESS EXCLUSIVE MODE"))
        with facts.started(facts.arguments()) as running:
            facts.wait_for_event(running, "task_finished", status="failed")
            lock.close()
            ended = running.wait()
    ended.succeeded()
    assert loaded(facts, "line, part_sk") == joined(facts, "line, part_sk")
