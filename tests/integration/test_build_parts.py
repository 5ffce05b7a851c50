"""Builds in PostgreSQL by several sessions: parts together are the query, and what cannot be divided is refused."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace import core
from headrace.model import PostgresConnection
from headrace.model.conninfo import ConnectionParameters
from headrace.planning import Build, plan_build
from headrace.targets import OpenOptions, QueryDivision, RunRecord
from headrace.targets.postgres.connection import Connection, ConnectionSpec
from headrace.targets.postgres.target import PostgresTarget
from headrace.targets.sql import Command
from tests.integration.builds import BuildProject, build, build_project, table_of
from tests.integration.postgres import PostgresProject
from tests.integration.test_build_interruption import hidden_tables, wait_until_filling
from tests.patience import HANG_SECONDS
from tests.servers.cluster import Cluster, Database

LINES = 20_000
MAKE = (
    "CREATE TABLE line (id bigint NOT NULL, part int, price numeric(15,2) NOT NULL, note text)",
    f"INSERT INTO line SELECT n, n % 7, n / 4.0, repeat('x', n % 50) FROM generate_series(1, {LINES}) n",
    # Dead rows, rows that have moved, and pages with few rows.
    "DELETE FROM line WHERE id % 11 = 0 OR id BETWEEN 5000 AND 6000",
    "UPDATE line SET price = price + 1 WHERE id % 5 = 0",
    "CREATE TABLE part (part int NOT NULL, name text NOT NULL)",
    "INSERT INTO part SELECT n, 'part ' || n FROM generate_series(0, 5) n",
    "CREATE TABLE marked (id bigint NOT NULL)",
    "INSERT INTO marked SELECT n FROM generate_series(1, 20000, 3) n UNION ALL SELECT 3 FROM generate_series(1, 3)",
    "CREATE VIEW seen AS SELECT * FROM line",
    "ANALYZE",
)
BY_LINE = "by: {table: line}"
# A function that takes a while for some rows.
SLOW = (
    "CREATE FUNCTION slow(id bigint) RETURNS bigint STABLE LANGUAGE plpgsql AS "
    "'BEGIN IF {} THEN PERFORM pg_sleep(0.05); END IF; RETURN id; END'"
)


@pytest.fixture
def project(tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    with build_project("postgres", tmp_path / "project", postgres) as project:
        project.project.execute(*MAKE)
        yield project


def in_database(project: BuildProject) -> PostgresProject:
    assert isinstance(project.project, PostgresProject)
    return project.project


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM line",
        "SELECT id, price * 2 AS double, upper(note) AS note FROM line WHERE part > 2",
        "SELECT l.id, COALESCE(p.name, 'none') AS name FROM line AS l LEFT JOIN part AS p ON p.part = l.part",
        "SELECT l.id, p.name FROM part AS p RIGHT JOIN LINE AS l USING (part)",
        "SELECT l.id, p.name FROM part p JOIN line l ON p.part < l.part",
        "SELECT id FROM line WHERE id IN (SELECT id FROM marked)",
        "SELECT id FROM line WHERE NOT EXISTS (SELECT FROM marked WHERE marked.id = line.id)",
        "SELECT id, (SELECT max(name) FROM part WHERE part.part = line.part) AS name FROM line",
        "SELECT id, generate_series(1, 3) AS n FROM line WHERE id < 1000",
        "WITH dear AS (SELECT id, part FROM line WHERE price > 9) SELECT d.id, name FROM dear d JOIN part USING (part)",
        "SELECT id, n FROM line JOIN (SELECT id % 9 AS part, count(*) AS n FROM marked GROUP BY 1) t USING (part)",
        "SELECT id FROM line WHERE false",
    ],
)  # fmt: skip
def test_parts_by_a_table_give_the_rows_of_the_query(project: BuildProject, query: str) -> None:
    for number in (1, 2, 16):
        project.tasks(build(query, target="replace" if number > 1 else "create", more=f"{BY_LINE}\nparts: {number}"))
        table = table_of(project.run().succeeded())
        assert table["streams"] == (1 if query.endswith("false") else number)
        assert not project.differences(query)
        assert table["rows_loaded"] == project.count()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM mart.lines",
        "SELECT lines.id, upper(note) AS note FROM mart.lines WHERE mart.lines.part > 2",
        "SELECT l.id, 'mart.lines' AS named FROM \"mart\" . lines AS l -- mart.lines",
        "SELECT l.id, p.name FROM part AS p RIGHT JOIN MART.Lines AS l ON p.part = l.part AND $least >= 0",
        "WITH lines AS (SELECT id FROM mart.lines WHERE price > 9) SELECT d.id FROM lines d JOIN part ON part = d.id",
        "SELECT id FROM lines",
    ],
)
def test_a_table_may_be_named_with_its_schema(project: BuildProject, query: str) -> None:
    """`lines` without a schema is the same table, or there is none."""
    project.project.execute("CREATE SCHEMA mart", "CREATE TABLE mart.lines AS SELECT * FROM line", "ANALYZE")
    if query.endswith("FROM lines"):
        in_database(project).target.psql(
            "DO $$ BEGIN EXECUTE format('ALTER ROLE loader IN DATABASE %I SET search_path = mart, public', "
            "current_database()); END $$"
        )
    for number in (2, 16):
        more = f"by: {{table: mart.lines}}\nparts: {number}"
        target = "create" if number == 2 else "replace"
        project.tasks(build(query, target=target, more=more).replace("table: sales", "table: public.sales"))
        table = table_of(project.run().succeeded())
        assert table["streams"] == number
        plain = query.replace("$least", "0").replace("FROM lines", "FROM mart.lines") if " d" not in query else query
        assert not project.differences(f"{plain}\n", "public.sales")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT l.id FROM mart.line AS l JOIN line USING (id)", "another table, or a part of the query"),
        ("WITH line AS (SELECT * FROM mart.line) SELECT l.id FROM mart.line l JOIN line USING (id)", ""),
        ("WITH line AS (SELECT 1::bigint AS id) SELECT l.id FROM mart.line l JOIN line USING (id)", ""),
        ("SELECT id FROM line", "another table, or a part of the query"),
        ("SELECT id FROM mart.others", "not in the plan"),
    ],
)
def test_another_table_of_that_name_is_not_taken_for_it(project: BuildProject, query: str, reason: str) -> None:
    project.project.execute(
        "CREATE SCHEMA mart", "CREATE TABLE mart.line AS SELECT * FROM line",
        "CREATE TABLE mart.others AS SELECT * FROM line", "ANALYZE",
    )  # fmt: skip
    project.tasks(build(query, more="by: {table: mart.line}\nparts: 4"))
    ended = project.run()
    assert ended.exit_code == 1
    assert reason in ended.error
    assert "public.sales" not in in_database(project).tables()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT part, count(*) AS n FROM line GROUP BY part", "GROUP BY"),
        ("SELECT DISTINCT part FROM line", "needs all its rows"),
        ("SELECT id FROM line ORDER BY price LIMIT 10", "LIMIT"),
        ("SELECT id, row_number() OVER (ORDER BY id) AS n FROM line", "window function"),
        ("SELECT p.name, l.id FROM part p LEFT JOIN line l ON l.part = p.part", "outer join"),
        ("SELECT p.name, l.id FROM part p FULL JOIN line l ON l.part = p.part", "outer join"),
        ("SELECT id FROM line UNION ALL SELECT id FROM marked", "UNION"),
        ("SELECT id FROM line EXCEPT SELECT id FROM marked", "EXCEPT"),
        ("SELECT a.id FROM line a JOIN line b ON a.id = b.part", "read 2 times"),
        ("SELECT id FROM marked WHERE id IN (SELECT id FROM line)", "rows"),
        ("SELECT id FROM marked WHERE id NOT IN (SELECT id FROM line)", "its rows"),
        ("SELECT m.id FROM marked m WHERE NOT EXISTS (SELECT FROM line WHERE line.id = m.id)", "only looked up"),
        ("SELECT id FROM marked WHERE id > (SELECT avg(id) FROM line)", "its rows"),
        ("SELECT id, random() AS r FROM line", "volatile function"),
        ("SELECT id, now() AS at FROM line", "now is another one in each part"),
        ("SELECT id, CURRENT_DATE AS day FROM line", "CURRENT_DATE is another one"),
        ("SELECT id FROM public.line", "as in `by`"),
        ("SELECT id FROM seen", "as in `by`"),
        ("WITH line AS (SELECT * FROM public.line) SELECT id FROM line", "as in `by`"),
        ("SELECT id FROM marked", "not in the plan"),
        ("SELECT l.id FROM line l JOIN (SELECT part FROM part LIMIT 2) p USING (part)", "LIMIT"),
        ("SELECT id FROM line TABLESAMPLE BERNOULLI (50)", ""),
    ],
)
def test_a_query_that_is_not_row_wise_is_refused(project: BuildProject, query: str, reason: str) -> None:
    project.tasks(build(query, more=f"{BY_LINE}\nparts: 4"))
    ended = project.run()
    assert ended.exit_code == 1
    assert reason in ended.error
    assert "public.sales" not in in_database(project).tables()


@pytest.mark.parametrize(
    ("table", "reason"),
    [("seen", "no table with rows"), ("nothing", "no table of that name")],
)
def test_what_is_no_table_divides_nothing(project: BuildProject, table: str, reason: str) -> None:
    project.tasks(build(f"SELECT id FROM {'line' if table == 'nothing' else table}", more=f"by: {{table: {table}}}"))
    assert reason in project.run().error


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id AS k, price FROM line",
        "SELECT part AS k, count(*) AS n, sum(price) AS total FROM line GROUP BY part",
        "SELECT DISTINCT part AS k FROM line",
        "SELECT part AS k, count(*) AS n FROM line GROUP BY part HAVING count(*) > 10",
        "SELECT l.part AS k, p.name, count(*) AS n FROM line l LEFT JOIN part p USING (part) GROUP BY 1, 2",
        "SELECT part AS k FROM line UNION ALL SELECT NULL FROM part",
        "SELECT note AS k, max(id) AS id FROM line GROUP BY note",
    ],
)
def test_parts_by_a_column_give_the_rows_of_the_query(project: BuildProject, query: str) -> None:
    for number in (2, 5):
        project.tasks(
            build(query, target="create" if number == 2 else "replace", more=f"by: {{hash: k}}\nparts: {number}")
        )
        table = table_of(project.run().succeeded())
        assert table["streams"] == number
        assert not project.differences(query)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT count(*) AS k, part FROM line GROUP BY part", "all the work"),
        ("SELECT id AS k FROM line LIMIT 10", "LIMIT"),
        ("SELECT id AS k, rank() OVER (ORDER BY part) AS n FROM line", "window function"),
        ("SELECT (random() * 10)::int AS k FROM line", "volatile"),
        ("SELECT id FROM line", "the query gives id"),
    ],
)
def test_a_query_that_a_column_does_not_divide_is_refused(project: BuildProject, query: str, reason: str) -> None:
    project.tasks(build(query, more="by: {hash: k}\nparts: 4"))
    ended = project.run()
    assert ended.exit_code == 1
    assert reason in ended.error


def test_values_go_into_all_parts(project: BuildProject) -> None:
    project.tasks(build("SELECT id FROM line WHERE id > $least", more=f"{BY_LINE}\nparts: 3"))
    project.run("--set", "least=19990").succeeded()
    assert not project.differences("SELECT id FROM line WHERE id > 19990")


def test_the_destination_chooses_the_number_of_parts(project: BuildProject) -> None:
    project.tasks(build("SELECT id FROM line", more=BY_LINE))
    table = table_of(project.run().succeeded())
    assert table["streams"] == 1  # too few pages for two
    assert table["notes"][0].startswith("1 part of about ")


def test_a_failing_part_is_named_and_ends_the_others(project: BuildProject) -> None:
    # Only the last part fails. It has no slow row: rows with id % 5 = 0 have moved to the end. The others would take
    # minutes.
    query = "SELECT id, 1 / (20000 - id) AS wrong, slow(id) AS slow FROM line"
    in_database(project).target.psql(SLOW.format("id < 5000 AND id % 5 <> 0"))
    project.tasks(build(query, more=f"{BY_LINE}\nparts: 4"))
    began = time.monotonic()
    ended = project.run()
    assert ended.exit_code == 1
    assert "building table warehouse.sales: part 4 of 4: PostgreSQL refused; nothing was made visible" in ended.error
    assert "division by zero (SQLSTATE 22012)" in ended.error
    assert time.monotonic() - began < HANG_SECONDS
    assert hidden_tables(project) == []
    assert in_database(project).leftovers() == []


def test_all_parts_see_one_moment(database: Database) -> None:
    """Rows that come behind the division are in the last part, whose range is open; those that come behind the
    snapshot, before each of the parts has a session, are in none.
    """
    database.as_loader(";\n".join(MAKE))
    hosts = ((str(database.cluster.sockets), database.cluster.port),)
    parameters = ConnectionParameters(hosts=hosts, database=database.name, user=database.role, sslmode="disable")
    model = PostgresConnection("warehouse", parameters)
    opened = 0

    def connect(spec: ConnectionSpec) -> Connection:
        nonlocal opened
        opened += 1
        if is_building:
            database.as_loader(f"INSERT INTO line SELECT {opened * 100_000} + n, 1, 1 FROM generate_series(1, 5000) n")
        return core.PostgresConnection(spec)

    is_building = False
    options = OpenOptions(200_000_000, 2, None, False, lambda text: None, lambda: False)
    query, never = Command("SELECT id FROM line"), options.is_cancelled
    run = RunRecord("20261120-101530-abcdef", "sales", "hash", "0", "here", 1, datetime(2026, 11, 20, tzinfo=UTC))
    with PostgresTarget(model, options, connect) as target:
        target.begin_run(run)
        columns = target.describe_query(query, "build", never)
        parts = target.divide_query(query, QueryDivision("line", parts=3), columns, "build", never)
        build = Build("build", model, None, "sales", "create")
        plan = plan_build(build, columns, None, target.capabilities, target.default_schema, 3)
        target.record_slices(run.run_id, plan)
        before, is_building = opened, True
        times = target.build(run.run_id, plan, parts, never)
        is_building = False
        assert opened == before + 4  # the one that holds the snapshot, and three parts
    seen = f"SELECT id FROM line WHERE id < {(before + 2) * 100_000}"
    assert times.rows_loaded == int(str(database.rows(f"SELECT count(*) FROM ({seen}) q")[0][0]))
    assert database.rows(f"{seen} EXCEPT SELECT id FROM sales") == []
    assert database.rows(f"SELECT count(*) FROM line WHERE id > {(before + 2) * 100_000}") == [("15000",)]


def test_parts_that_are_cancelled_leave_nothing(project: BuildProject) -> None:
    in_database(project).target.psql(SLOW.format("id > 0"))
    project.tasks(build("SELECT slow(id) AS id FROM line", more=f"{BY_LINE}\nparts: 4"))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running, 4)
        running.signal(signal.SIGINT)
        assert running.wait().exit_code == 3
    assert hidden_tables(project) == []
    assert in_database(project).leftovers() == []


def test_what_parts_had_committed_when_they_were_killed_is_not_used(project: BuildProject) -> None:
    in_database(project).target.psql(SLOW.format("id > 15000"))
    project.tasks(build("SELECT slow(id) AS id FROM line", more=f"{BY_LINE}\nparts: 4"))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running, 1)
        while running.poll() is None and not any(
            project.count(f'headrace."{name}"') for name in hidden_tables(project)
        ):
            time.sleep(0.01)
        running.end()
    assert "public.sales" not in in_database(project).tables()
    in_database(project).target.psql(SLOW.format("id < 0").replace("CREATE", "CREATE OR REPLACE"))
    assert project.resume().succeeded()["status"] == "success"
    assert not project.differences("SELECT id FROM line")
    assert in_database(project).leftovers() == []


def test_what_the_server_spills_is_told(project: BuildProject) -> None:
    name = in_database(project).target.name
    in_database(project).target.psql(f"ALTER DATABASE \"{name}\" SET work_mem = '64kB'")
    project.tasks(build("SELECT id, note FROM line ORDER BY note, id DESC", more=f"{BY_LINE}\nparts: 2"))
    ended = project.run()
    table = table_of(ended.succeeded())
    assert "into temporary files meanwhile" in table["notes"][-1]
    (details,) = [task["details"] for task in ended.summary["tasks"] if task["task"] == "build_sales"]
    assert details["temporary_bytes"] > 100_000


def test_every_version_of_the_server(postgres_versions: Cluster, tmp_path: Path) -> None:
    with build_project("postgres", tmp_path / "project", postgres_versions) as project:
        project.project.execute(*MAKE)
        joined = "SELECT id, name FROM line LEFT JOIN part USING (part) WHERE id IN (SELECT id FROM marked)"
        grouped = "SELECT part, sum(price) AS price FROM line GROUP BY part"
        wrong = "SELECT name, id FROM part LEFT JOIN line USING (part)"
        project.tasks(
            build(joined, more=f"{BY_LINE}\nparts: 4"), build(grouped, name="sums", more="by: {hash: part}\nparts: 3")
        )  # fmt: skip
        project.run().succeeded()
        assert not project.differences(joined)
        assert not project.differences(grouped, "sums")
        project.tasks(build(wrong, name="wrong", more=BY_LINE))
        assert "outer join" in project.run().error


def test_a_query_that_spills_too_much_says_so(project: BuildProject) -> None:
    user = f'ALTER ROLE loader IN DATABASE "{in_database(project).target.name}"'
    limits = f"{user} SET work_mem = '64kB'; {user} SET temp_file_limit = '300kB'"
    in_database(project).target.psql(limits)
    project.tasks(build("SELECT id, note FROM line ORDER BY note, id", more=f"{BY_LINE}\nparts: 2"))
    error = project.run().error
    assert "of 2: the server allows no larger temporary files; nothing was made visible" in error
    assert 'exceeds "temp_file_limit"' in error
    assert "hint: Raise temp_file_limit or work_mem" in error
    assert hidden_tables(project) == []
