"""`headrace bench scan` on tables that Headrace has loaded, in DuckDB and in PostgreSQL. No time is looked at."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.patience import HANG_SECONDS
from tests.servers.cluster import LOADER, PASSWORD
from tests.snapshots import assert_snapshot

PACKAGE = """
headrace: 1
package: both
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders:
    delimiter: "|"
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: amount, type: "decimal(9,2)"}
      - {name: day, type: date}
      - {name: customer, type: varchar(20)}
      - {name: size, type: float64}
streams: 2
tasks:
  whole:
    data_flow:
      sources: {rows: {connection: inbox, files: orders.tbl, layout: orders}}
      destinations: {out: {input: rows, connection: warehouse, table: orders, target: create, load: single}}
  divided:
    after: whole
    data_flow:
      sources: {rows: {connection: inbox, files: orders.tbl, layout: orders}}
      destinations:
        out: {input: rows, connection: warehouse, table: orders_hashed, target: create, load: LOAD,
              partition: {hash: {column: id, parts: 4}}}
"""
ROWS = "".join(f"{n}|{n}.25|2024-02-{1 + n % 28:02}|customer {n % 5}|{n / 7}\n" for n in range(1, 2001))
QUERIES = ["count", "sum", "group by", "one key", "range of keys"]


def load(project: Project, way: str) -> None:
    project.package(PACKAGE.replace("LOAD", way))
    project.file("orders.tbl", ROWS)
    project.run().succeeded()


def scan(project: Project, connection: str, *arguments: str) -> Ended:
    tables = () if any(argument.startswith("orders") for argument in arguments[:1]) else ("orders", "orders_hashed")
    command = [sys.executable, "-m", "headrace", "bench", "scan", connection, *tables, *arguments]
    return project.command([*command, "--repetitions", "2"])


def document_of(ended: Ended) -> dict[str, Any]:
    assert ended.exit_code == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert isinstance(document, dict)
    return document


@pytest.fixture
def duckdb_project(project: Project) -> Project:
    load(project, "view")
    return project


@pytest.fixture
def postgres_project(warehouse: PostgresProject) -> PostgresProject:
    load(warehouse, "staged")
    return warehouse


def check(document: dict[str, Any], *, has_cpu: bool) -> None:
    assert [query["query"] for query in document["queries"]] == QUERIES
    assert document["whole"]["rows"] == document["divided"]["rows"] == 2000
    assert (document["divided"]["strategy"], document["divided"]["key"]) == ("hash", ["id"])
    spread = document["divided"]["spread"]
    assert len(spread["partitions"]) == 4
    assert sum(part["rows"] for part in spread["partitions"]) == 2000
    assert all(part["bytes"] > 0 for part in spread["partitions"])
    assert spread["least"]["rows"] <= spread["middle"]["rows"] <= spread["greatest"]["rows"]
    for query in document["queries"]:
        for side in ("whole", "divided"):
            assert len(query[side]["seconds"]) == 2
            assert (query[side]["cpu_seconds"] is not None) == has_cpu
    by_name = {query["query"]: query["sql"] for query in document["queries"]}
    assert by_name["group by"].startswith('SELECT "customer"')
    assert '"amount"' in by_name["sum"]


def test_duckdb(duckdb_project: Project) -> None:
    before = duckdb_project.database.read_bytes()
    check(document_of(scan(duckdb_project, "duckdb:warehouse.duckdb", "--json", "--quiet")), has_cpu=True)
    ended = scan(duckdb_project, "duckdb:warehouse.duckdb")
    assert ended.exit_code == 0
    assert max(map(len, ended.stdout.splitlines())) <= 80
    assert "CPU whole" in ended.stdout
    assert duckdb_project.database.read_bytes() == before


def test_postgres(postgres_project: PostgresProject) -> None:
    url = postgres_project.url
    before = postgres_project.query("SELECT count(*), max(oid) FROM pg_class")
    document = document_of(scan(postgres_project, url, "--json"))
    check(document, has_cpu=False)
    text = scan(postgres_project, url)
    assert "CPU whole" not in text.stdout
    assert PASSWORD not in text.stdout + text.stderr + json.dumps(document)
    assert postgres_project.query("SELECT count(*), max(oid) FROM pg_class") == before


def test_postgres_by_a_user_who_may_only_read(postgres_project: PostgresProject) -> None:
    """The tables, that is: to the partitions of one of them there is no right."""
    target = postgres_project.target
    target.psql(
        "CREATE ROLE only_reads LOGIN PASSWORD 'r3ad-only'; GRANT SELECT ON orders, orders_hashed TO only_reads"
    )
    try:
        url = postgres_project.url.replace(LOADER, "only_reads:${env:READER}")
        with postgres_project.started(
            [sys.executable, "-m", "headrace", "bench", "scan", url, "orders", "orders_hashed", "--json"],
            {"READER": "r3ad-only"},
        ) as running:
            ended = running.wait()
        check_text = ended.stdout + ended.stderr
        rows = [part["rows"] for part in document_of(ended)["divided"]["spread"]["partitions"]]
        assert sum(rows) == 2000 and min(rows) > 0
        assert "r3ad-only" not in check_text
    finally:
        target.psql("DROP OWNED BY only_reads; DROP ROLE only_reads")


def test_partitions_of_partitions(postgres_project: PostgresProject) -> None:
    """Those of the last level hold the rows."""
    postgres_project.execute(
        "CREATE TABLE orders_nested (LIKE orders) PARTITION BY HASH (id)",
        "CREATE TABLE nested_0 PARTITION OF orders_nested FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE nested_1 PARTITION OF orders_nested FOR VALUES WITH (MODULUS 2, REMAINDER 1) "
        "PARTITION BY HASH (day)",
        "CREATE TABLE nested_1_0 PARTITION OF nested_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
        "CREATE TABLE nested_1_1 PARTITION OF nested_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
        "INSERT INTO orders_nested SELECT * FROM orders",
    )
    document = document_of(scan(postgres_project, postgres_project.url, "orders", "orders_nested", "--json"))
    names = {part["name"] for part in document["divided"]["spread"]["partitions"]}
    assert names == {"nested_0", "nested_1_0", "nested_1_1"}


def test_a_view_of_a_load(warehouse: PostgresProject) -> None:
    load(warehouse, "view")
    document = document_of(scan(warehouse, warehouse.url, "--json"))
    assert document["divided"]["strategy"] == "view"
    assert sum(part["rows"] for part in document["divided"]["spread"]["partitions"]) == 2000
    assert [query["query"] for query in document["queries"]] == ["count", "sum", "group by"]


def test_numbers_and_dates_without_end(postgres_project: PostgresProject) -> None:
    values = "VALUES ('infinity'::date, 'NaN'::numeric(9,2)), ('-infinity', 1), ('9999-12-31', 2)"
    postgres_project.execute(
        f"CREATE TABLE endless AS SELECT * FROM ({values}) AS t(day, amount)",
        "CREATE TABLE by_day (LIKE endless) PARTITION BY RANGE (day)",
        "CREATE TABLE by_day_0 PARTITION OF by_day DEFAULT",
        "INSERT INTO by_day SELECT * FROM endless",
        "CREATE TABLE by_amount (LIKE endless) PARTITION BY RANGE (amount)",
        "CREATE TABLE by_amount_0 PARTITION OF by_amount DEFAULT",
        "INSERT INTO by_amount SELECT * FROM endless ORDER BY amount DESC",
    )
    for divided in ("by_day", "by_amount"):
        command = [
            sys.executable,
            "-m",
            "headrace",
            "bench",
            "scan",
            postgres_project.url,
            "endless",
            divided,
            "--json",
        ]
        document = document_of(postgres_project.command([*command, "--repetitions", "1"]))
        assert "one key" in [query["query"] for query in document["queries"]]
        assert any(note.startswith("no range of keys") for note in document["notes"])


def test_a_view_is_not_the_whole_table(postgres_project: PostgresProject) -> None:
    postgres_project.execute("CREATE VIEW orders_seen AS SELECT * FROM orders_hashed")
    text = failing(postgres_project, postgres_project.url, ["orders_seen", "orders_hashed"])
    assert_snapshot("bench_scan_postgres_view", text)


FAILING = [
    ("no_table", ["orders", "missing"]),
    ("no_schema", ["orders", "nowhere.missing"]),
    ("not_divided", ["orders", "orders"]),
    ("exchanged", ["orders_hashed", "orders"]),
    ("refused", ["--sql", "SELECT nothing FROM {table}"]),
    ("many_rows", ["--sql", "SELECT a.id FROM {table} AS a, {table} AS b"]),
    ("no_query", ["--sql", "DELETE FROM {table}"]),
    ("two_queries", ["--sql", "SELECT 1 FROM {table}; DROP TABLE {table}"]),
    ("floats", ["--sql", "SELECT sum(size) + random() FROM {table}"]),
]


def failing(project: Project, connection: str, arguments: list[str]) -> str:
    ended = (
        scan(project, connection, "--quiet", *arguments)
        if arguments[0].startswith("-")
        else scan(project, connection, *arguments, "--quiet")
    )
    assert ended.exit_code == 1
    assert ended.stdout == ""
    return project.stable(ended.stderr)


def test_what_duckdb_refuses(duckdb_project: Project) -> None:
    for name, arguments in FAILING[:-1]:
        assert_snapshot(f"bench_scan_duckdb_{name}", failing(duckdb_project, "duckdb:warehouse.duckdb", arguments))
    assert "different answers" in failing(duckdb_project, "duckdb:warehouse.duckdb", FAILING[-1][1])


def test_what_postgres_refuses(postgres_project: PostgresProject) -> None:
    for name, arguments in FAILING[:-1]:
        assert_snapshot(f"bench_scan_postgres_{name}", failing(postgres_project, postgres_project.url, arguments))
    assert "different answers" in failing(postgres_project, postgres_project.url, FAILING[-1][1])
    assert postgres_project.query("SELECT count(*) FROM orders_hashed") == [("2000",)]


def test_rows_that_are_not_the_same(duckdb_project: Project) -> None:
    duckdb_project.execute("UPDATE orders SET amount = amount + 1 WHERE id = 7")
    text = failing(duckdb_project, "duckdb:warehouse.duckdb", ["orders", "orders_hashed"])
    assert_snapshot("bench_scan_difference", text)


def test_an_empty_table(duckdb_project: Project) -> None:
    duckdb_project.execute("DELETE FROM orders")
    assert_snapshot("bench_scan_empty", failing(duckdb_project, "duckdb:warehouse.duckdb", ["orders", "orders_hashed"]))


LONG = (
    "SELECT count(*) FROM {table} AS a, {table} AS b, {table} AS c, {table} AS d "
    "WHERE a.size + b.size > c.size + d.size"
)


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_ctrl_c(kind: str, request: pytest.FixtureRequest) -> None:
    """The query ends, too."""
    project: Project = request.getfixturevalue(f"{kind}_project")
    connection = project.url if isinstance(project, PostgresProject) else "duckdb:warehouse.duckdb"
    command = [sys.executable, "-m", "headrace", "bench", "scan", connection, "orders", "orders_hashed", "--sql", LONG]
    with project.started([*command, "--repetitions", "1"]) as running:
        deadline = time.monotonic() + HANG_SECONDS
        while "sql 1:" not in running.stderr and time.monotonic() < deadline:
            time.sleep(0.05)
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3
    assert "cancelled" in ended.stderr
    if isinstance(project, PostgresProject):
        assert project.left_in_database() == []


def test_ctrl_c_while_somebody_has_the_table(postgres_project: PostgresProject) -> None:
    """The wait for a lock ends too, and not after 30 seconds."""
    command = [sys.executable, "-m", "headrace", "bench", "scan", postgres_project.url, "orders", "orders_hashed"]
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
    with (
        postgres_project.target.session("BEGIN; LOCK TABLE orders_hashed IN ACCESS EXCLUSIVE MODE"),
        postgres_project.started(command) as running,
    ):
        deadline = time.monotonic() + HANG_SECONDS
        while postgres_project.query(waiting) == [("0",)] and time.monotonic() < deadline:
            time.sleep(0.05)
        signalled = time.monotonic()
        running.signal(signal.SIGINT)
        ended = running.wait()
        assert time.monotonic() - signalled < HANG_SECONDS
    assert ended.exit_code == 3
    assert "cancelled" in ended.stderr
