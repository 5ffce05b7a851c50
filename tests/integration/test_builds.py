"""Builds: rows equal those of plain SQL, types, tables that exist, failures that leave nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.builds import JOINED, LINES, MAKE, BuildProject, build, build_project, table_of
from tests.integration.control_flow import TARGETS
from tests.integration.postgres import PostgresProject
from tests.servers.cluster import Cluster

PLAIN = JOINED.replace("$least", "0")


@pytest.fixture(params=TARGETS)
def project(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    """On each destination."""
    with build_project(request.param, tmp_path / "project", postgres) as project:
        yield project


@pytest.fixture
def on_postgres(tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    with build_project("postgres", tmp_path / "project", postgres) as project:
        yield project


def is_postgres(project: BuildProject) -> bool:
    return isinstance(project.project, PostgresProject)


def test_a_new_table_has_the_rows_of_the_query(project: BuildProject) -> None:
    project.tasks(MAKE, build(after="make"))
    ended = project.run("--set", "least=3")
    table = table_of(ended.succeeded())
    assert (table["task"], table["status"], table["target"]) == ("build_sales", "success", "create")
    assert (table["rows_read"], table["rows_loaded"], table["rows_rejected"]) == (LINES - 3, LINES - 3, 0)
    assert ended.summary["rows_loaded"] == LINES - 3
    assert not project.differences(JOINED.replace("$least", "3"))


def test_types_of_a_new_table_are_those_of_the_query(project: BuildProject) -> None:
    own = "ARRAY[1, 2]" if is_postgres(project) else "[1, 2]"
    query = f"SELECT CAST(1.5 AS DECIMAL(9,3)) AS exact, DATE '2024-02-29' AS day, {own} AS several, sum(id) AS total"
    project.tasks(MAKE, build(f"{query} FROM line", after="make"))
    project.run().succeeded()
    found = project.rows(
        "SELECT column_name, data_type, numeric_precision, numeric_scale FROM information_schema.columns "
        "WHERE table_name = 'sales' ORDER BY ordinal_position"
    )
    several, total = ("ARRAY", "numeric") if is_postgres(project) else ("INTEGER[]", "HUGEINT")
    assert [row[0] for row in found] == ["exact", "day", "several", "total"]
    assert found[0][2:] == ("9", "3")
    assert [row[1] for row in found[2:]] == [several, total]
    assert project.rows("SELECT total FROM sales") == [(str(LINES * (LINES + 1) // 2),)]


def test_a_query_without_rows_makes_an_empty_table(project: BuildProject) -> None:
    project.tasks(MAKE, build(after="make"))
    table = table_of(project.run("--set", f"least={LINES}").succeeded())
    assert table["rows_loaded"] == 0
    assert project.count() == 0


def test_a_query_may_stand_in_a_file(project: BuildProject) -> None:
    project.write({"sql/sales.sql": JOINED + " -- all of them"})
    task = "  build_sales:\n    after: make\n    build: {connection: warehouse, table: sales, target: create, "
    project.tasks(MAKE, task + "file: sql/sales.sql}\n")
    project.run().succeeded()
    assert not project.differences(PLAIN)


def test_a_table_that_exists_is_not_created(project: BuildProject) -> None:
    project.tasks(MAKE, build(after="make"))
    project.run().succeeded()
    project.tasks(build("SELECT 1 AS id"))
    ended = project.run()
    assert ended.exit_code == 1
    assert "exists already" in ended.error
    assert not project.differences(PLAIN)


def test_replacing_keeps_what_hangs_on_the_table(project: BuildProject) -> None:
    project.tasks(MAKE, build(after="make"))
    project.run().succeeded()
    project.project.execute(
        "CREATE UNIQUE INDEX sales_id ON sales (id)", "COMMENT ON TABLE sales IS 'all sales'",
        "CREATE VIEW dear AS SELECT * FROM sales WHERE amount > 1000",
    )  # fmt: skip
    project.tasks(build(f"{PLAIN} AND id <= 600", target="replace"))
    assert table_of(project.run().succeeded())["rows_loaded"] == 600
    assert not project.differences(f"{PLAIN} AND id <= 600")
    assert project.rows("SELECT count(*) FROM dear") == [("101",)]
    project.tasks(build(f"{PLAIN} UNION ALL {PLAIN}", target="replace"))
    ended = project.run()
    assert ended.exit_code == 1
    assert project.count() == 600


def test_a_query_may_read_the_table_that_it_replaces(project: BuildProject) -> None:
    project.tasks(MAKE, build(after="make"))
    project.run().succeeded()
    project.project.execute("CREATE VIEW seen AS SELECT * FROM SALES")
    for source, left in (("sales", LINES - 100), ("seen", LINES - 200)):
        project.tasks(build(f"SELECT * FROM {source} WHERE id > {LINES - left}", target="replace"))
        assert table_of(project.run().succeeded())["rows_loaded"] == left
        assert project.count() == left
    project.tasks(build("SELECT count(*) AS id, 'n' AS name, 0.5 AS amount FROM seen", target="replace"))
    if not is_postgres(project):
        project.run().succeeded()
        assert project.rows("SELECT id FROM sales") == [(str(LINES - 200),)]


@pytest.mark.parametrize("table", ['my "big" table', "back\\\\slash", "größe", "Sales 2024", "it's"])
def test_a_query_that_reads_the_table_it_replaces_finds_it_by_any_name(project: BuildProject, table: str) -> None:
    named = '"' + table.replace('"', '""') + '"'
    project.tasks(MAKE, build(after="make").replace("table: sales", f"table: {json.dumps(table)}"))
    project.run().succeeded()
    project.tasks(
        build(f"SELECT * FROM {named}", target="replace").replace("table: sales", f"table: {json.dumps(table)}")
    )
    project.run().succeeded()
    assert project.count(named) == LINES


def test_a_failing_row_names_task_and_reason_and_leaves_nothing(project: BuildProject) -> None:
    project.tasks(MAKE)
    project.run().succeeded()
    wrong = "CAST(CASE WHEN id = 777 THEN 'x' ELSE '1' END AS INTEGER)"
    project.tasks(build(f"SELECT id, {wrong} AS wrong FROM line"))
    ended = project.run()
    assert ended.exit_code == 1
    assert "building table warehouse.sales" in ended.error
    assert "package.yaml" in ended.error
    assert "nothing was made visible" in ended.error
    assert ("SQLSTATE 22P02" in ended.error) == is_postgres(project)
    assert table_of(ended.summary)["status"] == "failed"
    assert "sales" not in project.project.tables()
    assert_nothing_left(project)


def test_sql_that_the_database_does_not_understand(project: BuildProject) -> None:
    project.tasks(build("SELECT nothing FROM nowhere"))
    ended = project.run()
    assert ended.exit_code == 1
    assert "a statement of task build_sales failed" in ended.error
    assert "nowhere" in ended.error


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("SELECT id, name, amount, 1 AS colour FROM base", "`colour`: the table has no such column"),
        ("SELECT id, name FROM base", "`amount`: the table needs a value"),
        ("SELECT id, name, CAST(amount AS DOUBLE PRECISION) AS amount FROM base", "`amount`: the query gives double"),
        ("SELECT id, name, CAST(amount AS DECIMAL(18,4)) AS amount FROM base", "CAST(amount AS "),
        ("SELECT id, name, CAST(id AS VARCHAR(9)) AS amount FROM base", "`amount`: the query gives"),
    ],
)
def test_a_query_that_does_not_fit_is_refused(project: BuildProject, select: str, found: str) -> None:
    project.project.execute(
        "CREATE TABLE sales (id BIGINT NOT NULL, name VARCHAR(10), amount DECIMAL(15,2) NOT NULL)",
        "INSERT INTO sales VALUES (1, 'one', 1.25)", "CREATE TABLE base AS SELECT * FROM sales",
    )  # fmt: skip
    project.tasks(build(select, target="replace"))
    ended = project.run()
    assert ended.exit_code == 1
    assert "the columns of the query do not fit table warehouse.sales" in ended.error
    assert found.lower() in ended.error.lower()
    assert project.rows("SELECT id, name, amount FROM sales") == [("1", "one", "1.25")]


def test_texts_are_never_cut(on_postgres: BuildProject) -> None:
    on_postgres.project.execute("CREATE TABLE sales (name VARCHAR(4))")
    on_postgres.tasks(build("SELECT 'four'::text AS name", target="replace"))
    on_postgres.run().succeeded()
    for long in ("'four   '", "'fives'"):
        on_postgres.tasks(build(f"SELECT {long}::text AS name", target="replace"))
        ended = on_postgres.run()
        assert ended.exit_code == 1
        assert "SQLSTATE 22001" in ended.error
        assert on_postgres.rows("SELECT name FROM sales") == [("four",)]


def test_numbers_out_of_range_are_errors(project: BuildProject) -> None:
    project.project.execute("CREATE TABLE sales (id SMALLINT)", "INSERT INTO sales VALUES (1)")
    project.tasks(build("SELECT CAST(40000 AS BIGINT) AS id", target="replace"))
    assert project.run().exit_code == 1
    assert project.rows("SELECT id FROM sales") == [("1",)]
    project.tasks(build("SELECT CAST(30000 AS BIGINT) AS id", target="replace"))
    project.run().succeeded()
    assert project.rows("SELECT id FROM sales") == [("30000",)]


def test_a_missing_right_is_named(on_postgres: BuildProject) -> None:
    assert isinstance(on_postgres.project, PostgresProject)
    on_postgres.project.target.psql("CREATE TABLE kept (id BIGINT)")
    on_postgres.tasks(build("SELECT id FROM kept"))
    ended = on_postgres.run()
    assert ended.exit_code == 1
    assert "SQLSTATE 42501" in ended.error
    on_postgres.tasks(build("SELECT 1 AS id", name="kept", target="replace"))
    assert "may not insert rows into table" in on_postgres.run().error


def test_check_finds_what_is_wrong_before_the_run(project: BuildProject) -> None:
    for select, found in (
        ("SELECT ${least} AS id", "${"),
        ("SELECT $most AS id", "`$most` refers to nothing"),
        ("DELETE FROM line", "a query must only read"),
        ("SELECT 1 AS id; SELECT 2 AS id", "a query is one statement"),
    ):
        project.tasks(build(select))
        ended = project.run()
        assert ended.exit_code == 5, ended.stderr
        assert found in ended.error


def assert_nothing_left(project: BuildProject) -> None:
    """Of hidden tables, sessions and locks."""
    if isinstance(project.project, PostgresProject):
        assert project.project.leftovers() == []
