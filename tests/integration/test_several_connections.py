"""Destinations of one data flow on several connections, into null and DuckDB: exactly once each, never together."""

from __future__ import annotations

import re
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


@pytest.mark.faults
@pytest.mark.in_turn("target")
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


@pytest.mark.faults
def test_a_run_that_is_killed_twice_is_resumed_in_the_place_that_is_left(orders: Project) -> None:
    made(orders, 0)
    orders.package(two_places("append"))
    for program, arguments in (
        (stopped("before", 1), orders.arguments()),
        (stopped("before", 0), orders.resume_command()),
    ):
        killed = command(orders, program, arguments)
        assert killed.exit_code not in (0, 1), killed.stderr
        assert counts(orders) == [ROWS, 0]
    resumed = orders.resume()
    assert accounts(resumed) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
    assert counts(orders) == [ROWS, ROWS]


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


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_missing_is_loaded_by_another_try(orders: Project, place: int) -> None:
    made(orders, 0)
    retry = "retry: {times: 2, wait_seconds: 0.1, factor: 1}"
    text = two_places("append").replace("  load:\n", f"  load:\n    {retry}\n", 1)
    # Of all data flows of the run: rows that are read again count once.
    orders.package(text.replace("memory: 1GB", "memory: 1GB\nrejects: {limit: 1}"))
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    ended = command(orders, stopped("before", place, "the disk is busy"), orders.arguments("--set", "limit=1"))
    ended.succeeded()
    assert counts(orders) == [ROWS, ROWS]
    assert accounts(ended) == {"one": (ROWS + 1, ROWS, 0, 1), "two": (ROWS + 1, ROWS, 0, 1)}
    summary = ended.summary
    assert (summary["rows_read"], summary["rows_rejected"], summary["rows_loaded"]) == (ROWS + 1, 1, 2 * ROWS)
    assert orders.ledger() == orders.ledger(orders.folder / "archive.duckdb") == ["success"]


def test_two_names_of_one_file_are_one_place(orders: Project) -> None:
    """Its tables become visible together."""
    made(orders, 0)
    (orders.folder / "alias.duckdb").symlink_to(orders.folder / "warehouse.duckdb")
    orders.package(two_places("replace", "{type: duckdb, path: alias.duckdb, lock_timeout_seconds: 1}"))
    killed = command(orders, stopped("before", 0), orders.arguments())
    assert killed.exit_code not in (0, 1), killed.stderr
    orders.run().succeeded()
    for table in ("one", "two"):
        assert orders.query(f"SELECT count(*) FROM {table}") == [(ROWS,)]
    assert orders.query("SELECT count(*) FROM headrace.task WHERE task = 'load'") == [(1,)]


DIMENSION = """
        keyed:
          input: orders
          lookup: {connection: dims, table: customers, on: {customer: code}, add: [label], no_match: {default: none}}
"""


def looked_up(orders: Project, dims: str = "dims.duckdb", table: str = "customers") -> None:
    with duckdb.connect(str(orders.folder / dims)) as connection:
        connection.execute(f"CREATE TABLE {table} AS SELECT range::INT AS code, 'old' AS label FROM range(30)")
    text = package(DIMENSION, {"one": "keyed", "two": "keyed"})
    archive = "{type: duckdb, path: archive.duckdb, lock_timeout_seconds: 1}"
    more = {"archive": archive, "dims": f"{{type: duckdb, path: {dims}}}"}
    orders.package(elsewhere(text, more, {"two": "archive"}))


@pytest.mark.faults
@pytest.mark.parametrize("is_changed", [False, True])
def test_a_lookup_that_has_changed_between_the_commits_is_refused(orders: Project, is_changed: bool) -> None:
    looked_up(orders)
    killed = command(orders, stopped("before", 1), orders.arguments())
    assert killed.exit_code not in (0, 1), killed.stderr
    if is_changed:
        with duckdb.connect(str(orders.folder / "dims.duckdb")) as connection:
            connection.execute("UPDATE customers SET label = 'new' WHERE code = 1")
    ended = orders.resume()
    if is_changed:
        assert_snapshot("connections_lookup_changed", re.sub("[0-9a-f]{16,}", "SUM", orders.stable(ended.error)))
        assert counts(orders) == [ROWS, None]
    else:
        assert accounts(ended) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
        assert counts(orders) == [ROWS, ROWS]


def test_a_lookup_of_a_table_that_the_flow_loads_is_refused(orders: Project) -> None:
    looked_up(orders, "archive.duckdb", "two")
    path = orders.folder / "package.yaml"
    path.write_text(path.read_text().replace("table: customers", "table: two"))
    ended = orders.run()
    assert_snapshot("connections_own_lookup", orders.stable(ended.error))


def test_plan_and_report_tell_all_places(orders: Project) -> None:
    orders.package(elsewhere(two_places(), {"nowhere": "{type: 'null'}"}, {}))
    text = (orders.folder / "package.yaml").read_text()
    orders.package(
        f"{text.rstrip()}\n        three: {{input: orders, connection: nowhere, table: three, target: replace}}\n"
    )
    headrace = [sys.executable, "-m", "headrace"]
    planned = orders.command([*headrace, "plan", "package.yaml"])
    assert_snapshot("connections_plan", orders.stable(planned.stdout))
    graph = orders.command([*headrace, "plan", "package.yaml", "--graph", "mermaid"])
    assert (graph.exit_code, "archive" in graph.stdout) == (0, True), graph.stderr
    ended = orders.run()
    assert ended.summary["rows_read"] == ROWS
    assert sum(stream["rows"] for stream in ended.summary["streams"]) == ROWS
    made = orders.command([*headrace, "report", "--runs-dir", "runs", "last", "--output", "report.html"])
    assert made.exit_code == 0, made.stderr


def test_turns_of_a_loop_and_flows_that_are_planned_late(orders: Project) -> None:
    head, _, flow = two_places("create").partition("tasks:\n")
    flow = flow.replace("orders.*", "orders.${part}")
    for name in ("one", "two"):
        flow = flow.replace(f"table: {name}", f'table: "{name}_${{part}}"')
    inner = "".join(f"      {line}\n" for line in flow.splitlines())
    loop = f'  each:\n    foreach:\n      in: ["1", "2"]\n      item: part\n      tasks:\n{inner}'
    before = "  before:\n    sql: {connection: warehouse, text: CREATE TABLE IF NOT EXISTS other (n INT)}\n"
    orders.package(f"{head}tasks:\n{before}{loop}    after: before\n")
    killed = command(orders, stopped("before", 3), orders.arguments())
    assert killed.exit_code not in (0, 1), killed.stderr
    ended = orders.resume()
    ended.succeeded()
    assert accounts(ended).keys() == {"one_1", "two_1", "one_2", "two_2"}
    assert (ended.summary["rows_read"], ended.summary["rows_loaded"]) == (ROWS, 2 * ROWS)
    for database, table in PLACES:
        (count,) = orders.query(
            f"SELECT count(*) FROM (FROM {table}_1 UNION ALL FROM {table}_2)", orders.folder / database
        )
        assert count == (ROWS,)


@pytest.mark.rotates
def test_two_engines_keep_within_the_budget(orders: Project) -> None:
    orders.own_processes = True
    for path in orders.inbox.glob("orders.*"):
        path.unlink()
    (orders.inbox / "orders.1").write_text("".join(f"{number}|1|1.00|{'w' * 10_000}\n" for number in range(20_000)))
    orders.package(two_places().replace("memory: 1GB", "memory: 400MB"))
    ended = orders.run("--streams", "2")
    ended.succeeded()
    assert counts(orders) == [20_000, 20_000]
    assert ended.peak_resident_bytes < 400_000_000


def test_behind_the_first_commit_nothing_is_cancelled(orders: Project) -> None:
    made(orders, 0)
    orders.package(two_places("append"))
    ended = command(orders, stopped("behind", 0, "SIGINT"), orders.arguments())
    assert ended.exit_code in (0, 3), ended.stderr
    assert counts(orders) == [ROWS, ROWS]
    assert "some of its tables are visible already, so the others are completed, too" in ended.stderr


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_flow_without_files_leaves_both_places_alone(orders: Project, is_killed: bool) -> None:
    for path in orders.inbox.glob("orders.*"):
        path.unlink()
    text = two_places().replace('files: "orders.*"', 'files: "orders.*", missing: skip')
    # Whatever is there: the places are opened, because of the task behind it.
    orders.package(f"{text}  behind: {{sql: {{connection: archive, text: SELECT 1}}, after: load}}\n")
    if is_killed:
        killed = command(orders, stopped("before", 1), orders.arguments())
        assert killed.exit_code not in (0, 1), killed.stderr
    summary = (orders.resume() if is_killed else orders.run()).succeeded()
    assert {own["table"] for own in summary["skipped"]} <= {"one", "two"}
    assert counts(orders) == [None, None]
