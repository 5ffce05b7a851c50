"""Destinations that cannot take the rows: refused before anything happens, or rolled back whole."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from tests.integration.driver import CREATE_ORDERS, Before, Project, Running
from tests.patience import FOR_EVER_SECONDS
from tests.snapshots import assert_snapshot

# Opens the database for writing, says so, and closes it after a time (seconds).
HOLDER = """
import sys, time, duckdb
with duckdb.connect(sys.argv[1]):
    print("open", flush=True)
    time.sleep(float(sys.argv[2]))
"""

DOES_NOT_FIT = {
    "other_columns": "CREATE TABLE orders (id BIGINT, amount DECIMAL(9,2), day DATE, buyer VARCHAR)",
    "a_column_that_must_be_filled": CREATE_ORDERS.replace("(id", "(region INTEGER NOT NULL, id"),
    "other_types": "CREATE TABLE orders (id DOUBLE, amount DECIMAL(9,2), day VARCHAR, customer BLOB, note INTEGER[])",
}


@pytest.mark.parametrize("case", DOES_NOT_FIT)
def test_a_table_that_does_not_fit(project: Project, case: str) -> None:
    project.execute(DOES_NOT_FIT[case])
    columns = project.query("DESCRIBE orders")
    project.file("orders.tbl.1")
    for target in ("replace", "append"):
        ended = project.run(target=target)
        assert ended.exit_code == 1
        assert ended.summary["error"]["kind"] == "type_mismatch"
        assert_snapshot(f"target_{case}", project.stable(ended.error))
    assert project.query("DESCRIBE orders") == columns
    assert (project.query("SELECT count(*) FROM orders"), project.ledger(), project.leftovers()) == ([(0,)], [], [])


def test_values_that_the_columns_of_the_table_cannot_hold_are_rejects(project: Project) -> None:
    """Nothing is rounded: the table has smaller integers and fewer digits behind the point than the layout."""
    project.execute("CREATE TABLE orders (id SMALLINT, amount DECIMAL(9,1), day DATE, customer VARCHAR, note VARCHAR)")
    project.file("orders.tbl.1", "1|2.5|||\n32768|2.5|||\n2|2.25|||\n")
    summary = project.run(limit=2).succeeded()
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (1, 2)
    assert summary["tables"][0]["rejects"]["by_rule"] == {"out_of_range": 1, "would_round": 1}
    assert project.query("SELECT id, amount::VARCHAR FROM orders") == [(1, "2.5")]
    assert_snapshot("target_narrower_types", project.stable(project.run().error))


def test_a_view(project: Project) -> None:
    project.execute(CREATE_ORDERS.replace("orders", "base"), "CREATE VIEW orders AS FROM base")
    project.file("orders.tbl.1")
    ended = project.run()
    assert ended.exit_code == 1
    assert_snapshot("target_view", project.stable(ended.error))
    assert (project.tables(), project.ledger()) == (["main.base", "main.orders"], [])


def test_a_table_that_others_refer_to(project: Project) -> None:
    before = Before.of(project)
    project.execute(
        "CREATE TABLE customers (customer VARCHAR PRIMARY KEY, name VARCHAR)",
        "CREATE TABLE visits (customer VARCHAR REFERENCES customers (customer))",
        "INSERT INTO customers VALUES ('customer 1', 'Ada')",
    )
    project.package((project.folder / "package.yaml").read_text().replace(
        'target: "${target}"}', 'target: "${target}", columns: {customer: customer, name: note}}'
    ))  # fmt: skip
    project.file("orders.tbl.1")
    ended = project.run(table="customers")
    assert ended.exit_code == 1
    assert_snapshot("target_referenced", project.stable(ended.error))
    assert project.query("FROM customers") == [("customer 1", "Ada")]
    assert project.query("FROM orders ORDER BY ALL") == before.rows


def test_a_primary_key(project: Project) -> None:
    """The same keys can be loaded again; a key that exists fails the transaction and leaves every row as it was."""
    project.execute(CREATE_ORDERS.replace("id BIGINT", "id BIGINT PRIMARY KEY"))
    project.file("orders.tbl.1")
    for _ in range(2):
        assert project.run().succeeded()["rows_loaded"] == 100
    ended = project.run(target="append")
    assert ended.exit_code == 1
    assert_snapshot("target_primary_key", project.stable(ended.error))
    assert project.query("SELECT count(*), sum(id) FROM orders") == [(100, 5050)]
    assert project.ledger() == ["success", "success", "failed"]
    assert project.query('SELECT count(*), sum(rows_loaded) FROM headrace."commit" WHERE slice > 0') == [(2, 200)]


def test_replace_keeps_what_belongs_to_the_table(project: Project) -> None:
    project.execute(
        CREATE_ORDERS.replace("amount DECIMAL(9,2)", "amount DECIMAL(9,2) CHECK (amount < 1000)"),
        "COMMENT ON TABLE orders IS 'all of them'",
        "CREATE VIEW large AS SELECT id FROM orders WHERE amount > 50",
        "INSERT INTO orders (id) VALUES (-1)",
    )
    project.file("orders.tbl.1")
    project.run().succeeded()
    assert project.query("SELECT count(*) FROM large") == [(51,)]
    assert project.query("SELECT comment FROM duckdb_tables() WHERE table_name = 'orders'") == [("all of them",)]
    project.file("orders.tbl.2", "101|1000.00|||\n")
    ended = project.run()
    assert ended.exit_code == 1
    assert_snapshot("target_check", project.stable(ended.error))
    assert project.query("SELECT count(*) FROM large") == [(51,)]


@pytest.mark.parametrize("content", [b"", b"this is not a database\n" * 1000], ids=["empty", "text"])
def test_a_file_that_is_no_database(project: Project, content: bytes) -> None:
    project.database.write_bytes(content)
    project.file("orders.tbl.1")
    ended = project.run()
    assert ended.exit_code == 1
    assert_snapshot(f"target_no_database_{'empty' if not content else 'text'}", project.stable(ended.error))
    assert project.database.read_bytes() == content


@contextmanager
def held(project: Project, seconds: float) -> Iterator[Running]:
    """The database, open in another process."""
    with project.started([sys.executable, "-c", HOLDER, str(project.database), str(seconds)]) as holder:
        output = project.folder / ".stdout.0"
        while "open" not in output.read_text():
            assert holder.poll() is None, holder.stderr
            time.sleep(0.01)
        yield holder


def test_a_locked_database(project: Project) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    with held(project, FOR_EVER_SECONDS) as holder:
        ended = project.run()
        assert f"process {holder.process.pid} (" in ended.error
    assert ended.exit_code == 1
    assert ended.summary["error"]["retryable"] is True
    assert ended.seconds > 1
    assert_snapshot("target_locked", project.stable(ended.error))
    assert "waiting up to 1 second " in ended.stderr
    before.check()


def test_a_plan_does_not_wait_for_a_locked_database(project: Project) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    text = (project.folder / "package.yaml").read_text()
    project.package(text.replace("timeout_seconds: 1", f"timeout_seconds: {FOR_EVER_SECONDS}"))
    with held(project, FOR_EVER_SECONDS) as holder:
        ended = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
        assert f"process {holder.process.pid} (" in ended.error
    assert ended.exit_code == 1
    assert_snapshot("plan_locked", project.stable(ended.error))
    before.check()


def test_a_database_that_is_closed_in_time(project: Project) -> None:
    Before.of(project)
    project.file("orders.tbl.1")
    project.package((project.folder / "package.yaml").read_text().replace("timeout_seconds: 1", "timeout_seconds: 30"))
    with held(project, 1.5):
        assert project.run().succeeded()["rows_loaded"] == 100


def test_no_other_process_gets_at_the_database_during_a_run(project: Project, tpch_files: Path) -> None:
    project.tpch("lineitem")
    project.link(tpch_files.glob("lineitem.*"), copies=50)
    with project.started(project.arguments()) as running:
        project.wait_for_event(running, "task_started")
        with pytest.raises(duckdb.IOException, match="lock"):
            duckdb.connect(str(project.database))
        ended = project.run()
        assert running.poll() is None
        assert ended.exit_code == 1
        assert f"process {running.process.pid} (" in ended.error
    assert project.tables() == []
