"""Destinations of one data flow on several connections, into null and DuckDB: exactly once each, never together."""

from __future__ import annotations

import sys

import duckdb
import pytest

from tests.integration.connections_scenes import elsewhere, stopped, two_places
from tests.integration.driver import Ended, Project
from tests.integration.several_scenes import KEYED, ROWS, accounts, expected, package, write_files
from tests.snapshots import assert_snapshot

PLACES = (("warehouse.duckdb", "one"), ("archive.duckdb", "two"))


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    return project


def rows_of(orders: Project, database: str, table: str) -> list[tuple[object, ...]]:
    return sorted(orders.query(f"FROM {table}", orders.folder / database), key=repr)


@pytest.mark.parametrize("streams", ["1", "16"])
def test_null_beside_a_table(orders: Project, streams: str) -> None:
    text = package(KEYED, {"found": "keyed", "missed": "keyed.no_match"})
    orders.package(elsewhere(text, {"nowhere": "{type: 'null'}"}, {"found": "nowhere"}))
    ended = orders.run("--streams", streams)
    ended.succeeded()
    missed = expected(orders, "FROM orders ANTI JOIN customers ON code = customer")
    assert rows_of(orders, "warehouse.duckdb", "missed") == missed
    assert accounts(ended) == {
        "missed": (ROWS, len(missed), ROWS - len(missed), 0),
        "found": (ROWS, ROWS - len(missed), len(missed), 0),
    }
    assert ended.summary["rows_read"] == ROWS
    assert list(accounts(ended)) == ["missed", "found"], "what stores nothing comes last"


@pytest.mark.parametrize("streams", ["1", "16"])
def test_tables_of_two_files_get_their_rows_in_one_pass(orders: Project, streams: str) -> None:
    orders.package(two_places())
    for _ in range(2):
        ended = orders.run("--streams", streams)
        ended.succeeded()
        rows = expected(orders, "FROM orders")
        assert rows_of(orders, "warehouse.duckdb", "one") == rows_of(orders, "archive.duckdb", "two") == rows
        assert accounts(ended) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
        size = sum(path.stat().st_size for path in orders.inbox.glob("orders.*"))
        assert (ended.summary["rows_read"], ended.summary["bytes_read"]) == (ROWS, size)
    assert orders.ledger() == orders.ledger(orders.folder / "archive.duckdb") == ["success", "success"]


def command(orders: Project, program: str, arguments: list[str]) -> Ended:
    return orders.command([sys.executable, "-c", program, *arguments[3:]])


def made(orders: Project, before: int) -> None:
    """Both tables, with as many rows."""
    for database, table in PLACES:
        with duckdb.connect(str(orders.folder / database)) as connection:
            connection.execute(f"CREATE TABLE {table} (id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR)")
            connection.execute(f"INSERT INTO {table} SELECT -1, 1, 1, 'old' FROM range({before})")


def counts(orders: Project) -> list[int | None]:
    """Rows of both tables; None where there is no table."""
    found: list[int | None] = []
    for database, table in PLACES:
        path = orders.folder / database
        is_there = path.exists() and f"main.{table}" in orders.tables(path)
        found.append(int(orders.query(f"SELECT count(*) FROM {table}", path)[0][0]) if is_there else None)
    return found


MOMENTS = [("before", 0), ("behind", 0), ("before", 1), ("behind", 1)]


@pytest.mark.parametrize("target", ["create", "append", "replace"])
@pytest.mark.parametrize(("moment", "place"), MOMENTS)
def test_a_run_that_is_killed_between_the_commits_is_resumed(
    orders: Project, target: str, moment: str, place: int
) -> None:
    if target != "create":
        made(orders, 2)
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    orders.package(two_places(target))
    killed = command(orders, stopped(moment, place), orders.arguments("--streams", "2", "--set", "limit=1"))
    assert killed.exit_code not in (0, 1), killed.stderr
    before, after = {"create": (None, ROWS), "append": (2, ROWS + 2), "replace": (2, ROWS)}[target]
    done = place + (moment == "behind")
    assert counts(orders) == [after if number < done else before for number in range(2)]
    resumed = orders.resume()
    resumed.succeeded()
    assert counts(orders) == [after, after]
    assert accounts(resumed) == {"one": (ROWS + 1, ROWS, 0, 1), "two": (ROWS + 1, ROWS, 0, 1)}
    summary = resumed.summary
    assert (summary["rows_read"], summary["rows_rejected"], summary["rows_loaded"]) == (ROWS + 1, 1, 2 * ROWS)
    assert [table["rejects"]["count"] for table in summary["tables"]] == [1, 0]
    shown = orders.command([sys.executable, "-m", "headrace", "rejects", "--runs-dir", "runs", "last"])
    assert (shown.exit_code, "orders.3" in shown.stdout) == (0, True), shown.stderr
    assert [path.name for path in next(orders.runs.iterdir()).glob("rejects/*.jsonl")] == ["one.jsonl"]


def half(orders: Project, target: str, missing: str = "error") -> None:
    """A run has died when the first place had committed."""
    made(orders, 0)
    orders.package(two_places(target).replace('files: "orders.*"', f'files: "orders.*", missing: {missing}'))
    killed = command(orders, stopped("before", 1), orders.arguments())
    assert killed.exit_code not in (0, 1), killed.stderr
    assert counts(orders) == [ROWS, 0]


def test_rows_are_not_appended_on_top_of_a_half(orders: Project) -> None:
    half(orders, "append")
    refused = orders.run()
    assert_snapshot("connections_half_appended", orders.stable(refused.error))
    assert counts(orders) == [ROWS, 0]
    orders.run("--abandon").succeeded()
    assert counts(orders) == [2 * ROWS, ROWS]


def test_a_half_is_replaced_by_a_new_run(orders: Project) -> None:
    half(orders, "replace")
    orders.run().succeeded()
    assert counts(orders) == [ROWS, ROWS]


@pytest.mark.parametrize("change", ["more", "gone"])
def test_a_half_is_not_finished_with_other_files(orders: Project, change: str) -> None:
    half(orders, "append", missing="skip")
    for path in orders.inbox.glob("orders.*"):
        kept = path.read_bytes()
        if change == "gone":
            path.unlink()
        else:
            path.write_bytes(kept + b"6000|1|1.00|\n")
    refused = orders.resume()
    assert refused.exit_code == 1
    found = {"more": "bytes instead of", "gone": "its source files have changed"}[change]
    assert found in refused.error, refused.error
    assert counts(orders) == [ROWS, 0]


def test_a_place_that_fails_behind_the_commit_of_another_says_what_is_there(orders: Project) -> None:
    made(orders, 0)
    orders.package(two_places("append"))
    failed = command(orders, stopped("before", 1, "the disk is busy"), orders.arguments())
    assert failed.exit_code == 1
    assert counts(orders) == [ROWS, 0]
    assert_snapshot("connections_second_commit_failed", orders.stable(failed.error))
    assert [(table["table"], table["status"], table["rows_loaded"]) for table in failed.summary["tables"]] == [
        ("one", "success", ROWS),
        ("two", "failed", 0),
    ]
    assert orders.ledger() == orders.ledger(orders.folder / "archive.duckdb") == ["failed"]
    resumed = orders.resume()
    resumed.succeeded()
    assert counts(orders) == [ROWS, ROWS]
    assert accounts(resumed) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}


def test_the_first_place_that_fails_undoes_all(orders: Project) -> None:
    made(orders, 0)
    orders.package(two_places("append"))
    failed = command(orders, stopped("before", 0, "the disk is busy"), orders.arguments())
    assert (failed.exit_code, counts(orders)) == (1, [0, 0])
    assert [table["status"] for table in failed.summary["tables"]] == ["failed", "failed"]
    orders.run().succeeded()
    assert counts(orders) == [ROWS, ROWS]


def test_a_half_is_finished_by_another_try(orders: Project) -> None:
    made(orders, 0)
    retry = "retry: {times: 2, wait_seconds: 0.1, factor: 1}"
    orders.package(two_places("append").replace("  load:\n", f"  load:\n    {retry}\n", 1))
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    ended = command(orders, stopped("before", 1, "the disk is busy"), orders.arguments("--set", "limit=1"))
    ended.succeeded()
    assert counts(orders) == [ROWS, ROWS]
    assert accounts(ended) == {"one": (ROWS + 1, ROWS, 0, 1), "two": (ROWS + 1, ROWS, 0, 1)}
    summary = ended.summary
    assert (summary["rows_read"], summary["rows_rejected"], summary["rows_loaded"]) == (ROWS + 1, 1, 2 * ROWS)
    assert orders.ledger() == orders.ledger(orders.folder / "archive.duckdb") == ["success"]
