"""Joins of files on the way into PostgreSQL: the rows of DuckDB's own join, however they are loaded and resumed."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Ended
from tests.integration.join_scenes import (
    LATE,
    PACKAGE,
    PAIRS,
    TYPES,
    expected,
    of_type,
    write_files,
    write_pairs_of_falling_size,
)
from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text
from tests.snapshots import assert_snapshot

DESTINATION = 'table: sales, target: "${target}"}'
# Kills, each of which is resumed.
KILLS = int(os.environ.get("KILLS", "3"))
LOOKUP = """\
        clerked:
          input: joined
          lookup: {connection: inbox, files: clerks.csv, layout: clerks, on: {o_clerk: clerk}, add: {clerk_sk: sk}}
      destinations:"""
# Behind it: each tenth clerk is in no file.
LOOKING = (
    PACKAGE.replace("      destinations:", LOOKUP)
    .replace("input: joined, connection", "input: clerked, connection")
    .replace(
        "streams: ${streams}\n",
        "  clerks: {delimiter: ',', columns: [{name: clerk, type: string}, {name: sk, type: int32}]}\n"
        "streams: ${streams}\n",
    )
)


@pytest.fixture
def sales(warehouse: PostgresProject) -> PostgresProject:
    warehouse.package(of_type("inner"))
    write_files(warehouse)
    warehouse.file("clerks.csv", "".join(f"Clerk of {key},{7 * key}\n" for key in range(1000) if key % 10))
    return warehouse


def loading(sales: PostgresProject, kind: str, destination: str, package: str = PACKAGE) -> None:
    assert DESTINATION in package
    sales.package(of_type(kind, package.replace(DESTINATION, destination)))


def wanted(sales: PostgresProject, kind: str) -> list[tuple[str | None, ...]]:
    return as_text(expected(sales, kind))


def loaded(sales: PostgresProject) -> list[tuple[str | None, ...]]:
    return as_text(sales.query("SELECT o_key, o_clerk, o_day, number, price, line_key FROM sales"))


def summary(sales: PostgresProject) -> dict[str, Any]:
    """Of the only run."""
    (path,) = sales.runs.glob("*/summary.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_the_rows_are_those_of_a_join_in_sql(sales: PostgresProject, kind: str) -> None:
    loading(sales, kind, DESTINATION)
    rows, accounts = wanted(sales, kind), []
    for streams in (1, 16):
        (table,) = sales.run(streams=streams).succeeded()["tables"]
        assert loaded(sales) == rows, streams
        accounts.append(table["join"])
        assert (table["rows_loaded"], table["join"]["rows_out"]) == (len(rows), len(rows))
    assert accounts[0] == accounts[1]
    assert sales.leftovers() == []
    # What the ledger has of a pair: what came out at its first slice, and nothing at its second one.
    slices = sales.query("SELECT slice, rows_loaded FROM headrace.commit WHERE slice > 0 ORDER BY run_id, slice")
    assert sum(int(str(rows)) for _, rows in slices) == 2 * len(rows)
    assert sum(rows != "0" for _, rows in slices) <= 2 * PAIRS


@pytest.mark.parametrize(
    "clauses",
    [
        "target: append, load: single",
        "target: replace, load: view",
        "target: replace, commit: {rows: 2000}",
        "target: replace, load: staged, partition: {hash: {column: o_key, parts: 4}}",
        "target: replace, load: staged, partition: {hash: {column: number, parts: 3}}",
        "target: replace, load: staged, partition: {hash: {column: o_clerk, parts: 1}}",
        "target: replace, load: staged, "
        "partition: {list: {column: o_day, values: {first: [2024-01-01], none: [null]}}, outside: default}",
    ],
)
def test_however_the_rows_are_loaded(sales: PostgresProject, clauses: str) -> None:
    """Twice, because the second run finds the table of the first."""
    loading(sales, "full", f"table: sales, {clauses}}}")
    for number, streams in enumerate((3, 2), start=1):
        sales.run(streams=streams).succeeded()
        assert loaded(sales) == as_text(expected(sales, "full") * (number if "append" in clauses else 1))
        assert sales.leftovers() == []


def test_a_transaction_of_two_flows_with_joins(sales: PostgresProject) -> None:
    head, _, flow = of_type("full").partition("tasks:\n")
    again = flow.replace("  load:", "  again:", 1).replace("table: sales", "table: again")
    members = "".join(f"      {text}\n" for text in (flow + again).splitlines())
    sales.package(f"{head}tasks:\n  both:\n    sequence:\n      transaction: warehouse\n      tasks:\n{members}")
    sales.run().succeeded()
    assert loaded(sales) == wanted(sales, "full")
    assert sales.query("SELECT count(*) FROM (TABLE sales EXCEPT ALL TABLE again) AS other") == [("0",)]


def test_rows_outside_of_the_partitions_are_rejects_where_they_stand(sales: PostgresProject) -> None:
    clause = "load: staged, partition: {range: {column: o_key, every: 40000, from: 20000, to: 100000}}"
    loading(sales, "right", f"table: sales, target: replace, {clause}}}")
    (table,) = sales.run(limit=1_000_000).succeeded()["tables"]
    inside = [row for row in expected(sales, "right") if row[0] is not None and 20000 <= row[0] < 100000]
    assert loaded(sales) == as_text(inside)
    outside = len(expected(sales, "right")) - len(inside)
    assert table["rejects"]["by_rule"] == {"partition": outside}
    assert (table["join"]["right"]["rejected_behind"], table["join"]["left"]["rejected_behind"]) == (outside, 0)


def test_rows_that_find_nothing_are_rejects_where_they_stand(sales: PostgresProject) -> None:
    stored = LOOKING.replace('rejects: {limit: "${limit}"}', 'rejects: {limit: "${limit}", table: bad}')
    loading(sales, "inner", DESTINATION, stored)
    (table,) = sales.run(limit=1_000_000).succeeded()["tables"]
    rows = expected(sales, "inner")
    good = [row for row in rows if row[1] and int(row[1][9:]) % 10]
    assert loaded(sales) == as_text(good)
    assert (table["rows_rejected"], table["join"]["right"]["rejected_behind"]) == (len(rows) - len(good),) * 2
    kept = sales.query("SELECT count(*), count(DISTINCT (file, row_byte)), min(code), max(code) FROM bad")
    assert kept == [(str(len(rows) - len(good)),) * 2 + ("HR602",) * 2]
    refused = sales.run(streams=1)
    assert refused.exit_code == 1
    assert loaded(sales) == as_text(good)


def broken(sales: PostgresProject, constraint: str, kind: str, destination: str, package: str = PACKAGE) -> Ended:
    """A run that a constraint of the table stops."""
    sales.execute(
        "CREATE TABLE sales (o_key bigint, o_clerk text, o_day date, number int, price numeric(9,2), line_key int"
        f"{', clerk_sk int' if package is LOOKING else ''}, CONSTRAINT late {constraint})"
    )
    loading(sales, kind, destination, package)
    ended = sales.run(streams=1, limit=1_000_000)
    assert ended.exit_code == 1
    return ended


APPENDED = "table: sales, target: append, load: single}"
CONSTRAINTS = {
    "check": (f"CHECK (number <> {LATE})", "inner", APPENDED),
    "unique": ("UNIQUE (o_key)", "inner", APPENDED),
    "right_alone": ("CHECK (o_key IS NOT NULL OR number IS NULL)", "right", APPENDED),
    "left_alone": ("CHECK (number IS NOT NULL)", "left", APPENDED),
}


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_a_row_that_breaks_a_constraint_is_found_in_both_files(sales: PostgresProject, name: str) -> None:
    """Row and byte are those of the line, or of the order where there is none; behind it stands the other one."""
    ended = broken(sales, *CONSTRAINTS[name])
    assert_snapshot(f"postgres_join_{name}", sales.stable(ended.error))
    if name == "check":
        line = ended.summary["error"]["at"]
        text = (sales.inbox / "lines.6").read_text()
        assert text.splitlines()[line["row"] - 1].startswith(f"{LATE},")
        assert text[line["byte"] :].startswith(f"{LATE},")
    assert sales.query("SELECT count(*) FROM sales") == [("0",)]


def test_a_row_that_breaks_a_constraint_is_found_behind_rejects_and_in_partitions(sales: PostgresProject) -> None:
    sales.execute(
        "CREATE TABLE sales (o_key bigint, o_clerk text, o_day date, number int, price numeric(9,2), line_key int, "
        f"clerk_sk int, CONSTRAINT late CHECK (number <> {LATE})) PARTITION BY HASH (o_key)",
        *(
            f"CREATE TABLE sales_{part} PARTITION OF sales FOR VALUES WITH (MODULUS 3, REMAINDER {part})"
            for part in range(3)
        ),
    )
    clause = "target: replace, load: staged, partition: {hash: {column: o_key, parts: 3}}}"
    loading(sales, "inner", f"table: sales, {clause}", LOOKING)
    for streams in (1, 4):
        ended = sales.run(streams=streams, limit=1_000_000)
        assert ended.exit_code == 1
        assert "lines.6, row " in ended.error, ended.error
        assert_snapshot("postgres_join_partitioned", sales.stable(ended.error))


def stopped(sales: PostgresProject, package: str = PACKAGE) -> None:
    """A run that has committed some pairs and failed in the last one, and whose constraint is gone."""
    broken(
        sales, f"CHECK (number <> {LATE})", "full", "table: sales, target: append, load: single, commit: {rows: 1000}}",
        package,
    )  # fmt: skip
    count = int(str(sales.query("SELECT count(*) FROM sales")[0][0]))
    assert 0 < count < len(expected(sales, "full"))
    sales.execute("ALTER TABLE sales DROP CONSTRAINT late")
    committed = sales.query("SELECT count(DISTINCT slice) FROM headrace.commit WHERE slice > 0")
    assert 0 < int(str(committed[0][0])) < 2 * PAIRS


@pytest.mark.parametrize("case", ["plain", "lookup", "forgotten"])
def test_a_resumed_run_goes_on_behind_the_pairs_that_are_committed(sales: PostgresProject, case: str) -> None:
    """What is known of them stands in the run folder; they are read again for their rejects, or if it is lost."""
    package = LOOKING if case == "lookup" else PACKAGE
    write_pairs_of_falling_size(sales)
    stopped(sales, package)
    (kept,) = sales.runs.glob("*/rejects/sales.accounts")
    if case == "forgotten":
        kept.write_text("no line of ours\n")
    sales.resume().succeeded()
    rows = expected(sales, "full")
    good = [row for row in rows if row[1] and int(row[1][9:]) % 10] if package is LOOKING else rows
    assert loaded(sales) == as_text(good)
    (table,) = summary(sales)["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (len(good), len(rows) - len(good))
    join = table["join"]
    assert join["rows_out"] == len(rows)
    # A line for each order, and one more.
    assert join["left"]["rows"] + join["right"]["rows"] == table["rows_read"] == 2 * len(rows) - 1
    total = sum(path.stat().st_size for path in sales.inbox.glob("[ol]*.*"))
    assert (table["bytes_read"] == total) == (case != "plain")
    assert [transform["slices_not_counted"] for transform in table["transforms"]] == [0] * (case == "lookup")
    assert sales.leftovers() == []


def test_a_pair_whose_keys_a_committed_one_has_is_refused_by_a_resumed_run_too(sales: PostgresProject) -> None:
    write_pairs_of_falling_size(sales)
    last = sales.inbox / f"orders.{PAIRS - 1}"
    last.write_text("20001|Clerk of 1|2024-01-01\n" + last.read_text())
    sales.execute("CREATE TABLE sales (o_key bigint)")
    clauses = "target: append, load: single, commit: {rows: 1000}, columns: {o_key: o_key}"
    loading(sales, "inner", f"table: sales, {clauses}}}")
    counts = []
    for ended in (sales.run(streams=1), sales.resume()):
        assert (ended.exit_code, "pairs of files of join `joined` have keys in common" in ended.error) == (1, True), (
            ended.error
        )
        counts.append(sales.query("SELECT count(*) FROM sales"))
    assert counts[0] == counts[1] != [("0",)]


def test_a_resumed_run_needs_the_lookup_of_its_first_rows(sales: PostgresProject) -> None:
    write_pairs_of_falling_size(sales)
    stopped(sales, LOOKING)
    before = loaded(sales)
    changed_in_place(sales.inbox / "clerks.csv")
    refused = sales.resume()
    assert (refused.exit_code, "lookup `clerked` has other rows" in refused.error) == (1, True)
    assert loaded(sales) == before


def changed_in_place(path: Path) -> None:
    """Another value, but size and time of the file are as before."""
    before = path.stat()
    path.write_text(path.read_text().replace("Clerk of 1,7\n", "Clerk of 1,8\n"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.faults
@pytest.mark.parametrize("destination", ["target: replace, commit: {rows: 500}", "target: append, load: single"])
def test_a_run_that_is_killed_at_any_moment_goes_on(sales: PostgresProject, destination: str) -> None:
    loading(sales, "full", f"table: sales, {destination}}}")
    rows = wanted(sales, "full")
    chance = random.Random(destination)
    for number in range(KILLS):
        sales.execute("DROP TABLE IF EXISTS sales")
        with sales.started(sales.arguments(streams=2)) as running:
            sales.wait_for_event(running, "task_started")
            running.wait_until(chance.random() * 0.3)
            running.signal(signal.SIGKILL)
            running.wait()
        resumed = sales.resume()
        if resumed.exit_code:  # it had ended before
            assert sales.ledger()[-1] == "success", (number, resumed.stderr)
        assert loaded(sales) == rows, number
        assert sales.leftovers() == []
        for path in sales.runs.iterdir():
            path.rename(sales.folder / f"{number}-{path.name}")
