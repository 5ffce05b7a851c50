"""Builds that append: rows that are there stay, new ones come once, whatever ends an attempt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.builds import JOINED, LINES, MAKE, BuildProject, build, build_project, table_of
from tests.integration.control_flow import TARGETS
from tests.integration.postgres import PostgresProject
from tests.integration.test_build_interruption import SLOW, hidden_tables, wait_until_filling, with_own_connection
from tests.integration.test_build_partitions import leftovers, partitions
from tests.servers.cluster import Cluster

PLAIN = JOINED.replace("$least", "0")
TABLE = "CREATE TABLE sales (id BIGINT, name VARCHAR(20), amount DECIMAL(15,2))"
OLD = "INSERT INTO sales VALUES (0, 'old', 1)"
BOTH = f"{PLAIN} UNION ALL SELECT 0, 'old', 1"


@pytest.fixture(params=TARGETS)
def project(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    """On each destination, with the tables that are read."""
    with build_project(request.param, tmp_path / "project", postgres) as project:
        project.tasks(MAKE)
        project.run().succeeded()
        yield project


@pytest.fixture
def on_postgres(tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    with build_project("postgres", tmp_path / "project", postgres) as project:
        project.tasks(MAKE)
        project.run().succeeded()
        yield project


@pytest.mark.parametrize("more", ["", "by: {table: line}\nparts: 3"])
def test_rows_are_appended(project: BuildProject, more: str) -> None:
    project.project.execute(TABLE, OLD, "CREATE VIEW seen AS SELECT * FROM sales")
    project.tasks(build(PLAIN, target="append", more=more))
    table = table_of(project.run().succeeded())
    assert (table["target"], table["rows_loaded"]) == ("append", LINES)
    assert not project.differences(BOTH)
    project.run().succeeded()  # another run does it again
    assert project.count("seen") == 2 * LINES + 1


def test_a_new_table_is_made(project: BuildProject) -> None:
    project.tasks(build(PLAIN, target="append"))
    project.run().succeeded()
    assert not project.differences(PLAIN)


def test_a_query_may_read_the_table_to_which_it_appends(project: BuildProject) -> None:
    project.project.execute(TABLE, OLD)
    project.tasks(build("SELECT id + 1 AS id, name, amount FROM sales", target="append"))
    for number in (2, 4, 8):
        project.run().succeeded()
        assert project.count() == number


def test_what_is_committed_is_not_appended_again(project: BuildProject) -> None:
    """As if it had been killed in the moment behind the commit."""
    project.project.execute(TABLE, OLD)
    stops = "  stops:\n    after: build_sales\n    sql: {connection: warehouse, text: DROP TABLE not_there}\n"
    project.tasks(build(PLAIN, target="append"), stops)
    ended = project.run()
    assert ended.exit_code == 1
    assert "committed already: sales" in ended.stderr
    project.project.execute("CREATE TABLE not_there (id int)")
    for path in (*project.project.runs.glob("*/journal.jsonl"), *project.project.runs.glob("*/builds.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if '"build_sales"' not in line), encoding="utf-8")
    assert table_of(project.resume().succeeded())["notes"] == ["loaded already by this run"]
    assert not project.differences(BOTH)


def test_a_failing_row_leaves_the_table_as_it_was(project: BuildProject) -> None:
    project.project.execute(TABLE, OLD, "CREATE UNIQUE INDEX sales_id ON sales (id)")
    project.tasks(build(f"{PLAIN} UNION ALL SELECT 0, 'again', CAST(1 AS DECIMAL(15,2))", target="append"))
    ended = project.run()
    assert ended.exit_code == 1
    assert "table warehouse.sales" in ended.error
    assert project.rows("SELECT id, name FROM sales") == [("0", "old")]
    if isinstance(project.project, PostgresProject):
        assert leftovers(project) == []


def test_a_killed_append_is_resumed(on_postgres: BuildProject) -> None:
    project = on_postgres
    project.project.execute("CREATE TABLE sales (id bigint, waited text)", "INSERT INTO sales VALUES (0, 'old')")
    project.tasks(build(SLOW, target="append"))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running)
        running.end()
    assert project.count() == 1
    project.project.execute("DELETE FROM line WHERE id > 3")
    assert table_of(project.resume().succeeded())["rows_loaded"] == 3
    assert project.count() == 4
    assert hidden_tables(project) == []
    assert leftovers(project) == []


@pytest.mark.parametrize("partition", ["", "partition: {range: {column: id, bounds: [100]}}"])
def test_a_table_whose_types_change_meanwhile_takes_no_rows(on_postgres: BuildProject, partition: str) -> None:
    """The server would round them as it moves them."""
    project = on_postgres
    divided = "PARTITION BY RANGE (id)" if partition else ""
    project.project.execute(f"CREATE TABLE sales (id bigint, price numeric(15,2)) {divided}")
    if partition:
        project.project.execute("CREATE TABLE low PARTITION OF sales FOR VALUES FROM (MINVALUE) TO (100)")
    query = "SELECT id, price, pg_sleep(0.5) IS NULL AS waited FROM line WHERE id < 3"
    project.tasks(build(f"SELECT id, price FROM ({query}) q WHERE NOT waited", target="append", more=partition))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running)
        project.project.execute("ALTER TABLE sales ALTER COLUMN price TYPE numeric(15,0)")
        ended = running.wait()
    assert ended.exit_code == 1
    assert "was changed while it was loaded" in ended.error
    assert "column price, now numeric(15,0), was numeric(15,2)" in ended.error
    assert project.count() == 0
    assert leftovers(project) == []


@pytest.mark.parametrize("more", ["", "by: {hash: id}\nparts: 2"])
def test_rows_go_into_partitions_that_exist_and_new_ones(on_postgres: BuildProject, more: str) -> None:
    project = on_postgres
    project.project.execute(
        f"{TABLE} PARTITION BY HASH (id)",
        "CREATE TABLE own_0 PARTITION OF sales FOR VALUES WITH (MODULUS 4, REMAINDER 0)",
        "CREATE TABLE own_3 PARTITION OF sales FOR VALUES WITH (MODULUS 4, REMAINDER 3)",
    )
    old = "INSERT INTO own_0 SELECT n, 'old', 1 FROM generate_series(-20, 0) n "
    project.project.execute(f"{old} WHERE satisfies_hash_partition('sales'::regclass, 4, 0, n::bigint)")
    before = project.count()
    project.tasks(build(PLAIN, target="append", more=f"partition: {{hash: {{column: id}}}}\n{more}"))
    table = table_of(project.run().succeeded())
    assert [part["action"] for part in table["partitions"]] == ["insert", "attach", "attach", "insert"]
    assert before > 0
    assert project.count() == LINES + before
    assert project.count("own_0") > before
    assert len(partitions(project)) == 4
    assert leftovers(project) == []


def test_keys_that_are_outside_already_do_not_matter(project: BuildProject) -> None:
    """Partitions that are declared are about the rows of the query."""
    if isinstance(project.project, PostgresProject):
        return  # its partitions hold no such rows
    project.project.execute(TABLE, OLD)
    clause = "partition: {list: {column: name, values: {few: [part 1]}}}"
    project.tasks(build(f"{PLAIN} AND name = 'part 1'", target="append", more=clause))
    project.run().succeeded()
    project.tasks(build(f"{PLAIN} AND name = 'part 2'", target="append", more=clause))
    ended = project.run()
    assert "no partition takes a row" in ended.error
    assert "`name` = part 2" in ended.error


def test_without_a_ledger_it_is_refused(on_postgres: BuildProject) -> None:
    project = on_postgres
    project.project.execute(TABLE, OLD)
    task = build(PLAIN, target="append")
    ended = project.project.command(with_own_connection(project, task, more="ledger: off"))
    assert ended.exit_code == 1
    assert "rows cannot be appended exactly once without a ledger" in ended.error
    assert project.count() == 1


def test_a_task_that_is_done_anew_appends_nothing_twice(project: BuildProject) -> None:
    """It runs behind another one however that ends, and so again if that one is done again."""
    project.project.execute(TABLE, OLD)
    first = "  first:\n    sql: {connection: warehouse, text: DROP TABLE not_there}\n"
    project.tasks(first, build(PLAIN, target="append", after="{first: completion}"))
    assert project.run().exit_code == 1
    assert not project.differences(BOTH)
    project.project.execute("CREATE TABLE not_there (id int)")
    ended = project.resume()
    assert ended.exit_code == 1
    assert "has appended rows, and would append them again" in ended.error
    assert not project.differences(BOTH)
