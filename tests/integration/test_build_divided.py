"""Builds that are divided by a table that consists of others: partitions of several levels, or tables that inherit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace import core
from headrace.errors import TargetBusyError
from headrace.model import PostgresConnection
from headrace.model.conninfo import ConnectionParameters
from headrace.planning import Build, plan_build
from headrace.targets import OpenOptions, QueryDivision, RunRecord
from headrace.targets.postgres.connection import Connection, ConnectionSpec
from headrace.targets.postgres.target import PostgresTarget
from headrace.targets.sql import Command
from tests.integration.builds import BuildProject, build, build_project, table_of
from tests.servers.cluster import Cluster, Database

MAKE = (
    "CREATE TABLE line (id bigint NOT NULL, part int, price numeric(15,2) NOT NULL, note text)",
    "INSERT INTO line SELECT n, n % 7, n / 4.0, repeat('x', n % 50) FROM generate_series(1, 20000) n",
    "CREATE TABLE part (part int NOT NULL, name text NOT NULL)",
    "INSERT INTO part SELECT n, 'part ' || n FROM generate_series(0, 5) n",
    "CREATE TABLE marked (id bigint NOT NULL)",
    "INSERT INTO marked SELECT n FROM generate_series(1, 20000, 3) n",
    # Partitions of two levels, of unequal sizes, one with another order of columns, an empty one.
    "CREATE TABLE divided (id bigint NOT NULL, part int, note text) PARTITION BY RANGE (id)",
    "CREATE TABLE divided_1 (note text, id bigint NOT NULL, gone int, part int)",
    "ALTER TABLE divided_1 DROP COLUMN gone",
    "ALTER TABLE divided ATTACH PARTITION divided_1 FOR VALUES FROM (MINVALUE) TO (2000)",
    "CREATE TABLE divided_2 PARTITION OF divided FOR VALUES FROM (2000) TO (15000) PARTITION BY HASH (id)",
    "CREATE TABLE divided_2_1 PARTITION OF divided_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
    "CREATE TABLE divided_2_2 PARTITION OF divided_2 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    "CREATE TABLE divided_3 PARTITION OF divided DEFAULT",
    "CREATE TABLE divided_4 PARTITION OF divided FOR VALUES FROM (90000) TO (99000)",
    "INSERT INTO divided SELECT id, part, note FROM line",
    "DELETE FROM divided WHERE id % 13 = 0",
    "CREATE TABLE parent AS SELECT * FROM line WHERE id < 3000",
    "CREATE TABLE child () INHERITS (parent)",
    "INSERT INTO child SELECT * FROM line WHERE id > 15000",
    "ANALYZE",
)


@pytest.fixture
def project(tmp_path: Path, postgres: Cluster) -> Iterator[BuildProject]:
    with build_project("postgres", tmp_path / "project", postgres) as project:
        project.project.execute(*MAKE)
        yield project


@pytest.mark.parametrize(
    ("query", "table"),
    [
        ("SELECT id, part, note FROM divided", "divided"),
        ("SELECT d.id, name FROM divided AS d LEFT JOIN part USING (part) WHERE id <> 7", "divided"),
        ("SELECT d.id, name FROM divided AS d JOIN part USING (part) WHERE id IN (SELECT id FROM marked)", "divided"),
        ("SELECT id, part FROM divided WHERE id BETWEEN 2500 AND 4000", "divided"),
        ("SELECT id FROM divided WHERE id < 100 ORDER BY id", "divided"),
        ("SELECT id FROM divided UNION ALL SELECT -id FROM divided WHERE part = 2", "divided"),
        ("SELECT l.id, d.note FROM line AS l JOIN divided AS d USING (id)", "line"),
        ("SELECT id, note FROM divided_2", "divided_2"),
        ("SELECT id, price FROM parent", "parent"),
    ],
)  # fmt: skip
def test_parts_by_a_divided_table_give_the_rows_of_the_query(project: BuildProject, query: str, table: str) -> None:
    by = f"by: {{table: {table}}}"
    for number in (1, 2, 16):
        project.tasks(build(query, target="replace" if number > 1 else "create", more=f"{by}\nparts: {number}"))
        found = table_of(project.run().succeeded())
        assert found["streams"] == number
        assert not project.differences(query)
        assert found["rows_loaded"] == project.count()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT part, count(*) AS n FROM divided GROUP BY part", "GROUP BY"),
        ("SELECT a.id FROM divided a JOIN divided b USING (id)", "read 2 times"),
        ("SELECT a.id FROM divided a JOIN divided b ON a.id < 9 AND b.id > 16000 AND a.part = b.part", "read 2 times"),
        ("SELECT p.name FROM part p LEFT JOIN divided USING (part)", "outer join"),
        ("SELECT id FROM divided UNION ALL SELECT id FROM marked", "UNION"),
        ("SELECT id FROM public.divided", "as in `by`"),
        ("SELECT id FROM divided_1", "as in `by`"),
        ("SELECT id FROM ONLY parent", "reads ONLY it"),
    ],
)
def test_a_query_that_is_not_row_wise_in_a_divided_table_is_refused(
    project: BuildProject, query: str, reason: str
) -> None:
    project.tasks(build(query, more=f"by: {{table: {'parent' if 'parent' in query else 'divided'}}}\nparts: 4"))
    assert reason in project.run().error


def test_parts_of_a_divided_table_are_about_even(project: BuildProject) -> None:
    """Each part reads some pages of every partition, so that it does not matter which the query leaves out."""
    project.tasks(build("SELECT id, part, note FROM divided", more="by: {table: divided}\nparts: 4"))
    (note, *_) = table_of(project.run().succeeded())["notes"]
    pages = int(
        str(project.rows("SELECT sum(pg_relation_size(relid))::bigint / 8192 FROM pg_partition_tree('divided')")[0][0])
    )
    assert note == f"4 parts of about {pages // 4} pages of public.divided, in each of its 5 tables"
    found = project.rows("SELECT count(*) FROM sales GROUP BY xmin::text")
    counts = [int(str(count)) for (count,) in found]
    assert len(counts) == 4
    assert max(counts) < 2 * min(counts)


def built(
    database: Database, at_session: int, attach: str, division: QueryDivision, select: str = "SELECT id FROM {}"
) -> int:
    """Rows of a build in parts, while whose session of that number begins statements are executed: 1 is the one that
    holds the snapshot.
    """
    hosts = ((str(database.cluster.sockets), database.cluster.port),)
    parameters = ConnectionParameters(hosts=hosts, database=database.name, user=database.role, sslmode="disable")
    model = PostgresConnection("warehouse", parameters)
    opened = 0

    def connect(spec: ConnectionSpec) -> Connection:
        nonlocal opened
        opened += is_building
        if is_building and opened == at_session:
            database.as_loader(attach)
        return core.PostgresConnection(spec)

    is_building = False
    options = OpenOptions(200_000_000, 2, None, False, lambda text: None, lambda: False)
    query, never = Command(select.format(division.table)), options.is_cancelled
    run = RunRecord("20261120-101530-abcdef", "sales", "hash", "0", "here", 1, datetime(2026, 11, 20, tzinfo=UTC))
    with PostgresTarget(model, options, connect) as target:
        target.begin_run(run)
        columns = target.describe_query(query, "build", never)
        parts = target.divide_query(query, division, columns, "build", never)
        plan = plan_build(
            Build("build", model, None, "sales", "create"), columns, None, target.capabilities, target.default_schema, 2
        )
        target.record_slices(run.run_id, plan)
        is_building = True
        return target.build(run.run_id, plan, parts, never).rows_loaded


@pytest.mark.parametrize("at_session", [1, 2, 3])
@pytest.mark.parametrize(
    ("table", "attach"),
    [
        ("divided", "ALTER TABLE divided ATTACH PARTITION late FOR VALUES FROM (99000) TO (MAXVALUE)"),
        ("plain", "ALTER TABLE late INHERIT plain"),
    ],
)
def test_a_table_that_becomes_a_part_meanwhile_is_in_no_part(
    database: Database, at_session: int, table: str, attach: str
) -> None:
    """Its rows were there before; some parts would find them, and others would not."""
    late = "CREATE TABLE late (id bigint NOT NULL, part int, note text);\nINSERT INTO late SELECT 99000 + n FROM "
    plain = "CREATE TABLE plain (LIKE divided);\nINSERT INTO plain SELECT * FROM divided"
    database.as_loader(";\n".join((*MAKE, f"{late} generate_series(1, 3000) n", plain, "DROP TABLE divided_3")))
    rows = int(str(database.rows(f"SELECT count(*) FROM {table}")[0][0]))
    if at_session == 1:
        changed = rf'table "public"\."{table}" was changed while the query was divided'
        with pytest.raises(TargetBusyError, match=changed):
            built(database, at_session, attach, QueryDivision(table, parts=2))
        assert database.rows("SELECT count(*) FROM pg_class WHERE relname = 'sales'") == [("0",)]
    else:
        assert built(database, at_session, attach, QueryDivision(table, parts=2)) == rows


@pytest.mark.parametrize(
    ("division", "select"),
    [
        (QueryDivision(column="id", parts=2), "SELECT id FROM divided"),
        (QueryDivision("line", parts=2), "SELECT l.id FROM {} l JOIN divided d ON d.id = l.id + 99000"),
    ],
)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_table_that_becomes_a_part_of_one_that_all_sessions_read(
    database: Database, division: QueryDivision, select: str, is_new: bool
) -> None:
    """The sessions before would not have read it. A new one has no rows that any of them could see."""
    database.as_loader(";\n".join((*MAKE, "CREATE TABLE late (id bigint NOT NULL, part int, note text)")))
    database.as_loader("INSERT INTO late SELECT 99000 + n FROM generate_series(1, 3000) n; DROP TABLE divided_3")
    bounds = "FOR VALUES FROM (99000) TO (MAXVALUE)"
    if is_new:
        rows = int(str(database.rows(f"SELECT count(*) FROM ({select.format('line')}) q")[0][0]))
        attach = f"CREATE TABLE new (LIKE divided); ALTER TABLE divided ATTACH PARTITION new {bounds}"
        assert built(database, 3, attach, division, select) == rows
        return
    with pytest.raises(TargetBusyError, match="were changed while it was executed") as refused:
        built(database, 3, f"ALTER TABLE divided ATTACH PARTITION late {bounds}", division, select)
    assert refused.value.found == "public.late, attached or inheriting since it began"
    assert database.rows("SELECT count(*) FROM pg_class WHERE relname = 'sales'") == [("0",)]


def test_every_version_of_the_server(postgres_versions: Cluster, tmp_path: Path) -> None:
    with build_project("postgres", tmp_path / "project", postgres_versions) as project:
        project.project.execute(*MAKE)
        query = "SELECT d.id, name FROM divided AS d LEFT JOIN part USING (part) WHERE id IN (SELECT id FROM marked)"
        project.tasks(build(query, more="by: {table: divided}\nparts: 4"))
        project.run().succeeded()
        assert not project.differences(query)
