"""Several destinations of one data flow, into null and DuckDB: the rows of each, accounts, all or nothing."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading

import duckdb
import pytest

from tests.integration.driver import Project
from tests.integration.several_scenes import (
    KEYED,
    PARTED,
    ROWS,
    accounts,
    expected,
    loaded,
    package,
    write_files,
)
from tests.snapshots import assert_snapshot

BIG = "amount > 900"
SMALL = "amount < 100"
SPLIT = {
    "big": f"FROM orders WHERE {BIG}",
    "small": f"FROM orders WHERE {SMALL} AND ({BIG}) IS NOT TRUE",
    "odd": f"FROM orders WHERE ({BIG}) IS NOT TRUE AND ({SMALL}) IS NOT TRUE AND 1000 / customer > 500",
}
REST = f"FROM orders WHERE ({BIG}) IS NOT TRUE AND ({SMALL}) IS NOT TRUE AND (1000 / customer > 500) IS NOT TRUE"


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    return project


@pytest.mark.parametrize("streams", ["1", "16"])
def test_two_destinations_get_the_same_rows_in_one_pass(orders: Project, streams: str) -> None:
    orders.package(package())
    ended = orders.run("--streams", streams)
    ended.succeeded()
    rows = expected(orders, "FROM orders")
    assert (loaded(orders, "one"), loaded(orders, "two")) == (rows, rows)
    assert accounts(ended) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
    size = sum(path.stat().st_size for path in orders.inbox.glob("orders.*"))
    summary = ended.summary
    assert (summary["rows_read"], summary["rows_loaded"], summary["bytes_read"]) == (ROWS, 2 * ROWS, size)
    assert [table["task"] for table in summary["tables"]] == ["load/one", "load/two"]
    assert sum(stream["rows"] for stream in summary["streams"]) == ROWS
    # Once more: what was there is replaced in one transaction.
    ended = orders.run("--streams", streams)
    assert (loaded(orders, "one"), loaded(orders, "two")) == (rows, rows)


@pytest.mark.parametrize("streams", ["1", "16"])
def test_a_split_and_rows_without_a_match_go_where_they_belong(orders: Project, streams: str) -> None:
    destinations = {
        **{name: f"parted.{name}" for name in SPLIT},
        "rest": "parted.rest",
        "found": "keyed",
        "missed": "paid",
    }
    paid = '        paid: {input: keyed.no_match, sql: "SELECT id, amount * 2 AS double FROM keyed WHERE amount > 1"}\n'
    orders.package(package(KEYED + PARTED + paid, destinations))
    ended = orders.run("--streams", streams)
    join = "orders JOIN customers ON code = customer"
    anti = "orders ANTI JOIN customers ON code = customer"
    wanted = {
        **SPLIT,
        "rest": REST,
        "found": f"SELECT id, customer, amount, note, label FROM {join}",
        "missed": f"SELECT id, amount * 2 AS double FROM {anti} WHERE amount > 1",
    }
    rows = {name: expected(orders, query) for name, query in wanted.items()}
    assert {name: loaded(orders, name) for name in wanted} == rows
    assert accounts(ended) == {name: (ROWS, len(own), ROWS - len(own), 0) for name, own in rows.items()}
    left_out = expected(orders, f"SELECT count(*) FROM {anti} WHERE (amount > 1) IS NOT TRUE")[0][0]
    assert (ended.summary["rows_read"], ended.summary["rows_filtered"]) == (ROWS, left_out)
    tables = {table["table"]: table for table in ended.summary["tables"]}
    (split,) = tables["small"]["transforms"]
    assert (split["kind"], split["rows"], split["matched"], split["taken"]) == (
        "split",
        ROWS,
        len(rows["big"]),
        ["parted.small"],
    )
    assert split["outputs"] == {name: len(rows[name]) for name in ("big", "small", "odd", "rest")}
    assert tables["found"]["transforms"][0]["outputs"] == {"no_match": ROWS - len(rows["found"])}


def test_null_takes_several_destinations_too(orders: Project) -> None:
    orders.package(
        package(
            PARTED.replace("split:", "discard: [odd]\n          split:"),
            {"big": "parted.big", "rest": "parted.rest", "small": "parted.small"},
        )
    )
    ended = orders.run("--connection", "warehouse=null:")
    counts = {name: len(expected(orders, query)) for name, query in SPLIT.items()}
    rest = len(expected(orders, REST))
    found = accounts(ended)
    assert {name: own[1] for name, own in found.items()} == {
        "big": counts["big"],
        "small": counts["small"],
        "rest": rest,
    }
    assert ended.summary["rows_filtered"] == counts["odd"], "what goes nowhere"
    columns = {own["name"]: own["rows"] for own in ended.summary["tables"][0]["columns"]}
    assert columns == dict.fromkeys(("id", "customer", "amount", "note"), counts["big"])


@pytest.mark.parametrize(
    "clauses",
    [
        ", load: view, partition: {range: {column: id, bounds: [2000, 4000]}}",
        ", load: view, partition: {range: {column: id, every: 2000}}",
        ", partition: {hash: {column: id, parts: 3}}",
    ],
)
def test_divided_tables_get_their_rows(orders: Project, clauses: str) -> None:
    orders.package(package(KEYED, {"found": "keyed", "missed": "keyed.no_match"}, clauses))
    for streams in ("1", "16"):  # the second one takes the place of the first
        orders.run("--streams", streams).succeeded()
        missed = expected(orders, "FROM orders ANTI JOIN customers ON code = customer")
        assert loaded(orders, "missed") == missed
        assert len(loaded(orders, "found")) == ROWS - len(missed)


def test_rows_are_appended_to_both(orders: Project) -> None:
    orders.package(package().replace("target: replace", "target: append"))
    for times in (1, 2):
        orders.run().succeeded()
        assert orders.query("SELECT count(*) FROM one") == orders.query("SELECT count(*) FROM two") == [(times * ROWS,)]


def test_cancelling_undoes_all(orders: Project) -> None:
    write_files(orders, 200_000)
    orders.package(package())
    with orders.started(orders.arguments("--streams", "2")) as running:
        orders.wait_for_event(running, "progress")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code in (0, 3), ended.stderr
    counts = {
        table: orders.query(f"SELECT count(*) FROM duckdb_tables() WHERE table_name = '{table}'")
        for table in ("one", "two")
    }
    assert counts["one"] == counts["two"] == [(int(ended.exit_code == 0),)]


def test_one_destination_may_leave_outputs_out(orders: Project) -> None:
    discarded = PARTED.replace("split:", "discard: [small, odd, rest]\n          split:")
    orders.package(package(discarded, {"big": "parted.big"}))
    ended = orders.run()
    rows = expected(orders, SPLIT["big"])
    assert loaded(orders, "big") == rows
    assert accounts(ended) == {"big": (ROWS, len(rows), ROWS - len(rows), 0)}
    (table,) = ended.summary["tables"]
    assert table["task"] == "load"


def test_what_one_table_cannot_hold_is_a_reject_of_its_way_alone(orders: Project) -> None:
    orders.execute("CREATE TABLE strict (id BIGINT, customer INTEGER NOT NULL, amount DECIMAL(9,2), note VARCHAR(20))")
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    orders.package(package(destinations={"all_of_them": "orders", "strict": "orders"}))
    ended = orders.run("--set", "limit=10000")
    bad = len(range(0, ROWS, 13))  # DuckDB keeps texts of any length
    assert accounts(ended) == {
        "all_of_them": (ROWS + 1, ROWS, 0, 1),
        "strict": (ROWS + 1, ROWS - bad, 0, bad + 1),
    }
    assert (ended.summary["rows_rejected"], ended.summary["rows_read"]) == (bad + 1, ROWS + 1)
    assert orders.query("SELECT count(*), count(customer) FROM strict") == [(ROWS - bad, ROWS - bad)]


def test_a_destination_that_fails_undoes_all(orders: Project) -> None:
    orders.execute("CREATE TABLE two (id BIGINT PRIMARY KEY, customer INTEGER, amount DECIMAL(9,2), note VARCHAR)")
    orders.execute("CREATE TABLE one (id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR)")
    orders.execute("INSERT INTO one VALUES (-1, 1, 1, 'old')")
    (orders.inbox / "orders.3").write_text("7|1|1.00|twice\n")
    orders.package(package())
    ended = orders.run()
    assert ended.exit_code != 0
    assert loaded(orders, "one") == [(-1, 1, 1, "old")]
    assert loaded(orders, "two") == []
    assert [table["status"] for table in ended.summary["tables"]] == ["failed", "failed"]
    (orders.inbox / "orders.3").unlink()
    orders.run().succeeded()
    assert len(loaded(orders, "one")) == ROWS


@pytest.mark.parametrize("bad", ["found", "missed"])
def test_a_row_that_breaks_a_constraint_is_found_on_its_way(orders: Project, bad: str) -> None:
    columns = "id BIGINT, customer INTEGER UNIQUE, amount DECIMAL(9,2), note VARCHAR"
    orders.execute(f"CREATE TABLE {bad} ({columns}{', label VARCHAR' if bad == 'found' else ''})")
    lines = {"found": ["1|1|1.00|", "2|3|1.00|", "3|2|1.00|", "4|1|1.00|again"]}
    lines["missed"] = ["1|1|1.00|", "2|3|1.00|", "3|1|1.00|", "4|3|1.00|again"]
    (orders.inbox / "orders.1").write_text("".join(f"{line}\n" for line in lines[bad]))
    (orders.inbox / "orders.2").unlink()
    orders.package(package(KEYED, {"found": "keyed", "missed": "keyed.no_match"}))
    ended = orders.run("--streams", "1")
    assert ended.exit_code == 1
    assert_snapshot(f"several_constraint_{bad}", orders.stable(ended.error))


def test_too_many_rejects_of_one_way_undo_all(orders: Project) -> None:
    orders.execute("CREATE TABLE two (id BIGINT, customer INTEGER NOT NULL, amount DECIMAL(9,2), note VARCHAR)")
    orders.package(package())
    ended = orders.run("--streams", "1")
    assert ended.exit_code != 0
    with duckdb.connect(str(orders.database), read_only=True) as connection:
        assert connection.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'one'").fetchall() == [(0,)]
    assert_snapshot("several_too_many_rejects", orders.stable(ended.error))


def test_check_and_plan_show_all_ways(orders: Project) -> None:
    orders.execute("SELECT 1")  # what is said of a file that is not there is wrapped by the length of its path
    orders.package(package(KEYED, {"found": "keyed", "missed": "keyed.no_match"}))
    headrace = [sys.executable, "-m", "headrace", "plan", "package.yaml"]
    ended = orders.command(headrace)
    assert ended.exit_code == 0, ended.stderr
    assert_snapshot("several_plan", orders.stable(ended.stdout))
    graph = orders.command([*headrace, "--graph", "mermaid"])
    assert (graph.exit_code, "no_match" in graph.stdout) == (0, True), graph.stderr


def test_turns_of_a_loop_and_flows_that_are_planned_late(orders: Project) -> None:
    text = package(KEYED, {"found": "keyed", "missed": "keyed.no_match"})
    head, _, flow = text.partition("tasks:\n")
    flow = flow.replace("orders.*", "orders.${part}").replace("table: found", 'table: "found_${part}"')
    flow = flow.replace("table: missed", 'table: "missed_${part}"')
    inner = "".join(f"      {line}\n" for line in flow.splitlines())
    loop = f'  each:\n    foreach:\n      in: ["1", "2"]\n      item: part\n      tasks:\n{inner}'
    before = "  before:\n    sql: {connection: warehouse, text: CREATE TABLE IF NOT EXISTS other (n INT)}\n"
    for tasks in (loop, f"{before}{loop}    after: before\n"):
        orders.package(f"{head}tasks:\n{tasks}")
        ended = orders.run()
        ended.succeeded()
        names = [f"each[{part}].load/{name}" for part in "12" for name in ("found", "missed")]
        assert [table["task"] for table in ended.summary["tables"]] == names
        assert ended.summary["rows_read"] == ROWS
        found = orders.query("SELECT count(*) FROM (FROM found_1 UNION ALL FROM found_2)")
        assert found == expected(orders, "SELECT count(*) FROM orders JOIN customers ON code = customer")


def test_a_killed_run_leaves_nothing_and_is_resumed(orders: Project) -> None:
    orders.package(package())
    with orders.started(orders.arguments("--streams", "2")) as running:
        orders.wait_for_event(running, "task_started")
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = orders.resume()
    rows = expected(orders, "FROM orders")
    if resumed.exit_code:  # it had ended before
        assert orders.ledger() == ["success"]
    else:
        assert accounts(resumed) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
    assert (loaded(orders, "one"), loaded(orders, "two")) == (rows, rows)


def test_the_report_tells_what_was_read_once(orders: Project) -> None:
    orders.package(
        package(PARTED, {"big": "parted.big", "small": "parted.small", "odd": "parted.odd", "rest": "parted.rest"})
    )
    orders.run().succeeded()
    headrace = [sys.executable, "-m", "headrace"]
    made = orders.command([*headrace, "report", "--runs-dir", "runs", "last", "--output", "report.html"])
    assert made.exit_code == 0, made.stderr
    page = re.sub(r"<[^>]+>", " ", (orders.folder / "report.html").read_text())
    words = " ".join(page.split())
    assert f"all {ROWS:,} 0 {ROWS:,} 0 0 {ROWS:,}" in words
    assert "load: parted.rest" in words


def test_values_of_all_types_are_the_same_in_both_tables(orders: Project) -> None:
    """Those of the second one have waited in memory."""
    values = {
        "int16": "-7", "int32": "70000", "int64": "9007199254740993", '"decimal(9,2)"': "1.10",
        '"decimal(38,10)"': "123456789012345678.0123456789", "float32": "0.1", "float64": "1e300", "bool": "true",
        "date": "2026-02-28", "time": "23:59:59.123456", "timestamp": "2026-02-28 23:59:59.123456",
        "timestamptz": "2026-02-28 23:59:59.5+02:00", "string": "täglich", '"char(9)"': "ab", '"varchar(9)"': "cd ",
        "bytes": "\\x00ff", "uuid": "123e4567-e89b-12d3-a456-426614174000", "json": '{"a": 1}',
    }  # fmt: skip
    columns = "".join(f"      - {{name: c{place}, type: {own}}}\n" for place, own in enumerate(values))
    text = package()
    begin, end = text.index("      - {name: id"), text.index("  customers:")
    orders.package(text[:begin] + columns + text[end:])
    (orders.inbox / "orders.2").unlink()
    (orders.inbox / "orders.1").write_text("|".join(values.values()) + "\n" + "|" * (len(values) - 1) + "\n")
    orders.run("--streams", "1").succeeded()
    described = "SELECT column_name, column_type FROM (DESCRIBE {})"
    assert orders.query(described.format("one")) == orders.query(described.format("two"))
    assert orders.query("SELECT count(*) FROM (FROM one EXCEPT ALL FROM two)") == [(0,)]
    assert orders.query("SELECT count(*), count(c0), count(c17) FROM two") == [(2, 1, 1)]


def test_a_transaction_of_tasks_may_begin_with_rows_that_are_appended(orders: Project) -> None:
    """Nothing stands between the mark of the transaction and the rows; of several destinations neither."""
    orders.execute("CREATE TABLE one (id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR)")
    head, _, flow = (
        package(destinations={"one": "orders"}).replace("target: replace", "target: append").partition("tasks:\n")
    )
    inner = "".join(f"      {line}\n" for line in flow.splitlines())
    orders.package(f"{head}tasks:\n  both:\n    sequence:\n      transaction: warehouse\n      tasks:\n{inner}")
    orders.run().succeeded()
    assert len(loaded(orders, "one")) == ROWS


def test_a_resumed_run_tells_once_what_was_read_before(orders: Project) -> None:
    text = package(KEYED, {"found": "keyed", "missed": "keyed.no_match"})
    bad = "  bad:\n    after: load\n    sql: {connection: warehouse, text: FROM nothing}\n"
    orders.package(text + bad)
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    assert orders.run("--set", "limit=5").exit_code == 1
    orders.execute("CREATE TABLE nothing (n INT)")
    ended = orders.resume()
    ended.succeeded()
    summary = ended.summary
    assert (summary["rows_read"], summary["rows_rejected"], summary["rows_loaded"]) == (ROWS + 1, 1, ROWS)
    assert [table["rejects"]["count"] for table in summary["tables"]] == [1, 0]


@pytest.mark.rotates
def test_rows_that_wait_keep_within_the_budget(orders: Project) -> None:
    """As many wide rows as DuckDB gives in one Arrow batch, which no budget knows, were 450 MB here."""
    orders.own_processes = True
    for path in orders.inbox.glob("orders.*"):
        path.unlink()
    (orders.inbox / "orders.1").write_text("".join(f"{number}|1|1.00|{'w' * 10_000}\n" for number in range(20_000)))
    orders.package(package().replace("memory: 1GB", "memory: 300MB"))
    ended = orders.run("--streams", "2")
    ended.succeeded()
    assert ended.peak_resident_bytes < 300_000_000
    assert orders.query("SELECT count(*) FROM (FROM one EXCEPT ALL FROM two)") == [(0,)]


def test_a_pipe_is_read_once_for_both(orders: Project) -> None:
    text = b"".join(path.read_bytes() for path in sorted(orders.inbox.glob("orders.*")))
    pipe = orders.inbox / "pipe"
    os.mkfifo(pipe)
    orders.package(package().replace('files: "orders.*"', "files: pipe"))
    # Not waited for: it stands still if nobody reads.
    threading.Thread(target=pipe.write_bytes, args=(text,), daemon=True).start()
    ended = orders.run("--streams", "2")
    ended.succeeded()
    assert accounts(ended) == {"one": (ROWS, ROWS, 0, 0), "two": (ROWS, ROWS, 0, 0)}
    assert orders.query("SELECT count(*) FROM (FROM one EXCEPT ALL FROM two)") == [(0,)]
