"""Builds of partitioned tables: rows and partitions, whatever the number of sessions, and what exists already."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.model.load import usable_cpus
from tests.integration.builds import JOINED, LINES, MAKE, BuildProject, build, build_project, table_of
from tests.integration.control_flow import TARGETS
from tests.integration.postgres import PostgresProject
from tests.integration.test_build_interruption import SLOW, hidden_tables, wait_until_filling, with_own_connection
from tests.servers.cluster import Cluster

PLAIN = JOINED.replace("$least", "0")
HASH = "partition: {hash: {column: id, parts: 8}}"
RANGE = "partition: {range: {column: id, bounds: [300, 600]}}"
LIST = "partition: {list: {column: name, values: {few: [part 1, part 2], none: [none]}}, outside: default}"
DIVISIONS = ("", "by: {table: line}\nparts: 3", "by: {hash: id}\nparts: 8", "by: {hash: id}\nparts: 3",
             "by: {hash: id}\nparts: 16", "by: {hash: name}\nparts: 4")  # fmt: skip

# A function that takes a while for each row, as long as the table `stop` has one.
SLOWLY = (
    "CREATE TABLE stop AS SELECT 1 AS n",
    "CREATE FUNCTION slow(id bigint) RETURNS bigint STABLE LANGUAGE plpgsql AS "
    "'BEGIN IF EXISTS (SELECT FROM stop) THEN PERFORM pg_sleep(0.05); END IF; RETURN id; END'",
)


@pytest.fixture(params=TARGETS)
def project(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    """On each destination."""
    with build_project(request.param, tmp_path / "project", postgres) as project:
        yield project


@pytest.fixture
def on_postgres(tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    with build_project("postgres", tmp_path / "project", postgres) as project:
        project.tasks(MAKE)
        project.run().succeeded()
        yield project


def partitions(project: BuildProject, table: str = "sales") -> dict[str, tuple[str, int]]:
    """Bounds and rows by the names of partitions."""
    found = project.rows(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        f"WHERE i.inhparent = '{table}'::regclass ORDER BY c.oid"
    )
    return {str(name): (str(bound), project.count(str(name))) for name, bound in found}


def leftovers(project: BuildProject) -> list[str]:
    assert isinstance(project.project, PostgresProject)
    return project.project.leftovers()


@pytest.mark.parametrize("clause", [HASH, RANGE, LIST])
def test_a_divided_table_has_the_rows_of_the_query(project: BuildProject, clause: str) -> None:
    project.tasks(MAKE, build(PLAIN, after="make", more=clause))
    table = table_of(project.run().succeeded())
    assert not project.differences(PLAIN)
    if not isinstance(project.project, PostgresProject):
        assert (table["partitions"], table["notes"][0]) == (
            [],
            "no partitions are made in duckdb: the rows are in one table",
        )
        return
    number = {HASH: 8, RANGE: 3, LIST: 3}[clause]
    there = partitions(project)
    assert len(there) == number
    told = {part["name"]: (part["action"], part["rows"]) for part in table["partitions"]}
    assert told == {name: ("attach", rows) for name, (_, rows) in there.items()}
    assert sum(rows for _, rows in there.values()) == LINES
    assert leftovers(project) == []


@pytest.mark.parametrize("division", DIVISIONS)
def test_any_number_of_sessions_fills_the_same_partitions(on_postgres: BuildProject, division: str) -> None:
    project = on_postgres
    project.tasks(build(PLAIN, more=f"{HASH}\n{division}"))
    table = table_of(project.run().succeeded())
    assert not project.differences(PLAIN)
    project.project.execute("CREATE TABLE plain (LIKE sales) PARTITION BY HASH (id)")
    for number in range(8):
        project.project.execute(
            f"CREATE TABLE p{number} PARTITION OF plain FOR VALUES WITH (MODULUS 8, REMAINDER {number})"
        )
    project.project.execute(f"INSERT INTO plain {PLAIN}")
    assert list(partitions(project).values()) == list(partitions(project, "plain").values())
    own = "each session gives the rows of partitions of its own" in table["notes"]
    assert own == (division in DIVISIONS[2:4])
    if own:  # each partition was written by one session
        for name in partitions(project):
            assert project.rows(f"SELECT count(DISTINCT xmin::text) FROM {name}") == [("1",)]
    assert leftovers(project) == []


@pytest.mark.parametrize("division", ["", "by: {hash: id}\nparts: 3", "by: {table: line}\nparts: 4"])
def test_a_table_that_somebody_made_keeps_its_own_division(on_postgres: BuildProject, division: str) -> None:
    """Another type of the key, another number of partitions, indexes, a view."""
    project = on_postgres
    project.project.execute(
        "CREATE TABLE sales (name varchar(20), id numeric(20,0) NOT NULL, amount numeric(15,2)) PARTITION BY HASH (id)",
        "CREATE TABLE own_a PARTITION OF sales FOR VALUES WITH (MODULUS 3, REMAINDER 0)",
        "CREATE TABLE own_b PARTITION OF sales FOR VALUES WITH (MODULUS 3, REMAINDER 1)",
        "CREATE TABLE own_c PARTITION OF sales FOR VALUES WITH (MODULUS 3, REMAINDER 2)",
        "INSERT INTO sales SELECT 'old', n, 1 FROM generate_series(1, 50) n",
        "CREATE UNIQUE INDEX sales_id ON sales (id)", "CREATE VIEW dear AS SELECT * FROM sales WHERE amount > 1000",
    )  # fmt: skip
    more = f"partition: {{hash: {{column: id}}}}\n{division}"
    project.tasks(build(PLAIN, target="replace", more=more))
    for _ in range(2):
        table = table_of(project.run().succeeded())
        assert "3 parts by hash: as many as the table has" in table["notes"]
        query = f"SELECT name, id, amount FROM ({PLAIN}) q"
        assert not project.differences(query)
        there = partitions(project)
        assert list(there) == ["sales_1", "sales_2", "sales_3"]
        assert sum(rows for _, rows in there.values()) == LINES
        indexes = project.rows("SELECT count(*) FROM pg_indexes WHERE tablename ~ '^sales_[123]$'")
        assert indexes == [("3",)]
        assert project.rows("SELECT count(*) FROM dear") == [("501",)]
        assert leftovers(project) == []


def test_rows_are_moved_into_partitions_of_a_table_where_none_are_declared(on_postgres: BuildProject) -> None:
    project = on_postgres
    project.project.execute(
        "CREATE TABLE sales (id bigint, name varchar(20), amount numeric(15,2)) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF sales FOR VALUES FROM (MINVALUE) TO (300)",
        "CREATE TABLE rest PARTITION OF sales DEFAULT", "INSERT INTO sales VALUES (1, 'old', 1)",
    )  # fmt: skip
    project.tasks(build(PLAIN, target="replace", more="by: {table: line}\nparts: 2"))
    project.run().succeeded()
    assert not project.differences(PLAIN)
    assert [rows for _, rows in partitions(project).values()] == [299, LINES - 299]


@pytest.mark.parametrize(
    ("made", "clause", "found"),
    [
        ("PARTITION BY HASH (name)", HASH, "is partitioned in another way"),
        ("PARTITION BY RANGE (id)", HASH, "is partitioned in another way"),
        ("", HASH, "exists and has no partitions"),
    ],
)
def test_a_table_that_is_divided_otherwise(on_postgres: BuildProject, made: str, clause: str, found: str) -> None:
    project = on_postgres
    project.project.execute(f"CREATE TABLE sales (id bigint, name varchar(20), amount numeric(15,2)) {made}")
    project.tasks(build(PLAIN, target="replace", more=clause))
    ended = project.run()
    assert ended.exit_code == 1
    assert found in ended.error
    assert "Correct `partition` of the build, or leave it out" in ended.error
    assert leftovers(project) == []


def test_triggers_do_not_fire_for_partitions_and_so_they_are_refused(on_postgres: BuildProject) -> None:
    project = on_postgres
    project.project.execute(
        "CREATE TABLE sales (id bigint, name varchar(20), amount numeric(15,2)) PARTITION BY HASH (id)",
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER seen AFTER INSERT ON sales FOR EACH ROW EXECUTE FUNCTION nothing()",
    )
    project.tasks(build(PLAIN, target="replace", more=HASH))
    error = project.run().error
    assert "the triggers of table warehouse.sales do not fire for rows that come as partitions" in error
    assert "Correct `partition` of the build, or leave it out" in error


@pytest.mark.parametrize(
    ("clause", "found"),
    [
        ("partition: {list: {column: name, values: {few: [part 1, part 2]}}}", "`name` = part 3"),
        ("partition: {range: {column: part, every: 1, from: 1, to: 3}}", "`part` = 3"),
        ("partition: {range: {column: amount, bounds: [300, 600]}}", "`amount` = null"),
    ],
)
def test_a_row_that_no_partition_takes_fails_the_build(project: BuildProject, clause: str, found: str) -> None:
    query = "SELECT 'part ' || part AS name, part, CAST(NULLIF(price, 3.25) AS DECIMAL(15,2)) AS amount FROM line"
    project.tasks(MAKE, build(f"{query} WHERE id IN (1, 2, 3)", after="make", more=clause))
    ended = project.run()
    assert ended.exit_code == 1
    assert "building table warehouse.sales: no partition takes a row; nothing was made visible" in ended.error
    assert found in ended.error
    assert "hint: Leave the row out of the query, " in ended.error
    assert "sales" not in str(project.project.tables())
    if isinstance(project.project, PostgresProject):
        assert leftovers(project) == []


@pytest.mark.parametrize(
    ("clause", "exit_code", "found"),
    [
        ("partition: {range: {column: id, bounds: files}}", 5, "the bounds of the ranges are not written"),
        ("partition: {range: {column: id, parts: 3}}", 5, "the bounds of the ranges are not written"),
        ("partition: {range: {column: id, every: 10, from: 0}}", 5, "the bounds of the ranges are not written"),
        ("partition: {range: {column: id, bounds: [3]}, keep: 2}", 5, "`keep` is for tables"),
        ("partition: {hash: {column: nothing, parts: 3}}", 1, "no column goes into the partition key `nothing`"),
        ("partition: {range: {column: name, bounds: [3]}}", 1, "cannot be divided into ranges"),
        ("partition: {range: {column: id, bounds: [x]}}", 1, "is no value of the column `id`"),
    ],
)
def test_declarations_that_cannot_be(project: BuildProject, clause: str, exit_code: int, found: str) -> None:
    project.tasks(MAKE, build(PLAIN, after="make", more=clause))
    ended = project.run()
    assert ended.exit_code == exit_code
    assert found in ended.error


@pytest.mark.parametrize("division", ["", "by: {hash: id}\nparts: 3"])
def test_a_killed_build_is_resumed_with_other_partitions(on_postgres: BuildProject, division: str) -> None:
    """Nothing of what was inserted is used, and no hidden partition is left."""
    project = on_postgres
    project.project.execute(*SLOWLY)
    query = f"SELECT slow(id) AS id, name, amount FROM ({PLAIN}) q"
    clause = "partition: {hash: {column: id}}" if not division else HASH
    project.project.execute(
        "CREATE TABLE sales (id bigint, name varchar(20), amount numeric(15,2)) PARTITION BY HASH (id)"
    )
    for number in range(2):
        project.project.execute(
            f"CREATE TABLE own_{number} PARTITION OF sales FOR VALUES WITH (MODULUS 2, REMAINDER {number})"
        )
    project.project.execute("INSERT INTO sales VALUES (1, 'old', 1)")
    project.tasks(build(query, target="replace", more=f"{clause}\n{division}"))
    for again in (project.run_command(), project.project.resume_command()):
        with project.project.started(again) as running:
            wait_until_filling(project, running)
            running.end()
        assert project.rows("SELECT id, name FROM sales") == [("1", "old")]
        assert hidden_tables(project) != []
    # Those of the process that was killed last do not know it yet, and hold the table for a minute.
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'headrace %'"
    project.project.execute(ends, "DELETE FROM stop", "DROP TABLE sales")
    assert project.resume().succeeded()["status"] == "success"
    assert not project.differences(query)
    assert len(partitions(project)) == (8 if division else usable_cpus())
    assert hidden_tables(project) == []
    assert leftovers(project) == []


def test_a_killed_build_of_partitions_is_swept_by_the_next_run(on_postgres: BuildProject) -> None:
    project = on_postgres
    project.tasks(build(SLOW, more=HASH))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running)
        running.end()
    assert "public.sales" not in project.project.tables()
    assert len(hidden_tables(project)) == 9
    project.tasks(build(PLAIN, more="partition: {hash: {column: id, parts: 3}}"))
    project.run().succeeded()
    assert not project.differences(PLAIN)
    assert hidden_tables(project) == []
    assert leftovers(project) == []


def test_a_build_of_partitions_that_is_cancelled_leaves_nothing(on_postgres: BuildProject) -> None:
    project = on_postgres
    project.project.execute(*SLOWLY)
    project.tasks(build("SELECT slow(id) AS id FROM line", more=f"{HASH}\nby: {{hash: id}}\nparts: 4"))
    with project.project.started(project.run_command()) as running:
        wait_until_filling(project, running, 4)
        running.signal(signal.SIGINT)
        assert running.wait().exit_code == 3
    assert "public.sales" not in project.project.tables()
    assert hidden_tables(project) == []
    assert leftovers(project) == []


def test_a_build_of_partitions_that_has_committed_is_not_done_again(on_postgres: BuildProject) -> None:
    """As if it had been killed in the moment behind the commit."""
    project = on_postgres
    project.project.execute("CREATE TABLE stop AS SELECT 1 AS n")
    stops = "  stops:\n    after: build_sales\n    sql: {connection: warehouse, text: DROP TABLE not_there}\n"
    project.tasks(build(PLAIN, more=HASH), stops)
    assert project.run().exit_code == 1
    project.project.execute("DELETE FROM sales WHERE id > 10", "CREATE TABLE not_there (id int)")
    for path in (*project.project.runs.glob("*/journal.jsonl"), *project.project.runs.glob("*/builds.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if '"build_sales"' not in line), encoding="utf-8")
    table = table_of(project.resume().succeeded())
    assert (table["rows_loaded"], table["notes"]) == (LINES, ["loaded already by this run"])
    assert project.count() == 10


def test_without_a_ledger(on_postgres: BuildProject) -> None:
    project = on_postgres
    task = build(PLAIN, more=f"{HASH}\nby: {{table: line}}\nparts: 2")
    ended = project.project.command(with_own_connection(project, task, more="ledger: off"))
    assert table_of(ended.succeeded())["rows_loaded"] == LINES
    assert not project.differences(PLAIN)
    assert len(partitions(project)) == 8


def test_every_version_of_the_server(postgres_versions: Cluster, tmp_path: Path) -> None:
    with build_project("postgres", tmp_path / "project", postgres_versions) as project:
        named = "by: {hash: id}\nparts: 4"
        project.tasks(MAKE, build(PLAIN, after="make", target="replace", more=f"{HASH}\n{named}"))
        project.run().succeeded()
        project.tasks(build(PLAIN, target="replace", more=f"{HASH}\n{named}"))
        project.run().succeeded()
        assert not project.differences(PLAIN)
        assert len(partitions(project)) == 8
        assert leftovers(project) == []


@pytest.mark.parametrize("target", ["append", "replace"])
@pytest.mark.parametrize(
    ("query", "says", "found"),
    [
        ("NULLIF(id, 7) AS id, 'a' AS name", "a value is missing in a column", 'in column "id" of relation "sales"'),
        ("id, CASE id WHEN 7 THEN 'bad' ELSE 'b' END AS name", "breaks a CHECK", 'for relation "sales" violates'),
    ],
)
def test_a_row_that_breaks_a_rule_is_told_as_one_of_the_table(
    on_postgres: BuildProject, target: str, query: str, says: str, found: str
) -> None:
    """And not of the hidden one, nor as one of a source."""
    project = on_postgres
    project.project.execute("CREATE TABLE sales (id bigint NOT NULL, name varchar(20) CHECK (name <> 'bad'))")
    project.tasks(build(f"SELECT {query} FROM line", target=target, more="by: {table: line}\nparts: 2"))
    error = project.run().error
    assert "building table warehouse.sales: part 1 of 2: " in error
    assert says in error
    assert found in error
    assert "at: package.yaml" in error
    assert "Leave the row out of the query" in error
    assert project.count() == 0
