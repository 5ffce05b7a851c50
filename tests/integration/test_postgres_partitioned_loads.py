"""Whole runs of packages that declare partitions: rows of any file go where the server itself would put them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.postgres import PostgresProject
from tests.servers.cluster import Cluster, Database

ROWS = 3000
FILES = 4
DESTINATION = 'table: "${table}", target: "${target}"}'
CLAUSES = {
    "months": "{range: {column: day, every: 1 month}}",
    "months and the rest": (
        '{range: {column: day, every: 1 month, from: "2024-02-01", to: "2024-05-01"}, outside: default}'
    ),
    "parts": "{range: {column: id, parts: 5}}",
    "bounds": "{range: {column: amount, bounds: [500.25, 1000]}}",
    "lists": '{list: {column: customer, values: {few: ["0", "1", null], two: ["2"]}}, outside: default}',
    "hash": "{hash: {column: id, parts: 7}}",
    "hash of texts": "{hash: {column: note, parts: 3}}",
    "hash of decimals": "{hash: {column: amount, parts: 4}}",
    "one part": '{list: {column: customer, values: {all: ["0", "1", "2", "3", null]}}}',
}


def write(project: PostgresProject, first: int = 0) -> None:
    """Rows in no order over all files; the customer is missing in some."""
    generator = random.Random(7 + first)
    numbers = list(range(first, first + ROWS))
    generator.shuffle(numbers)
    lines = [
        f"{number}|{number / 2:.2f}|2024-{1 + number % 7:02}-{1 + number % 28:02}|{customer(number)}|note {number}\n"
        for number in numbers
    ]
    for file in range(FILES):
        project.file(f"orders.tbl.{file}", "".join(lines[file::FILES]))


def customer(number: int) -> str:
    return "" if number % 11 == 0 else str(number % 4)


@pytest.fixture
def database(postgres_versions: Cluster) -> Iterator[Database]:
    with postgres_versions.database() as database:
        yield database


@pytest.fixture
def project(database: Database, tmp_path: Path) -> PostgresProject:
    return PostgresProject(tmp_path, database)


def declare(project: PostgresProject, clause: str, more: str = "") -> None:
    from tests.integration.driver import PACKAGE

    assert DESTINATION in PACKAGE
    project.package(PACKAGE.replace(DESTINATION, f"{DESTINATION[:-1]}, partition: {clause}{more}}}"))


@pytest.mark.parametrize("name", CLAUSES)
def test_rows_of_any_file_find_their_partition(project: PostgresProject, name: str) -> None:
    """The server, which checks no row of an ATTACH, would put each of them there too."""
    write(project)
    declare(project, CLAUSES[name])
    for target, rows in (("create", ROWS), ("replace", ROWS), ("append", 2 * ROWS)):
        summary = project.run(target=target).succeeded()
        [table] = summary["tables"]
        assert sum(part["rows"] for part in table["partitions"]) == ROWS, table["notes"]
        assert 0 < table["switch_seconds"] < table["seconds"]
        found = project.query("SELECT count(*), count(DISTINCT id), sum(amount), count(customer) FROM orders")
        amount = f"{sum(range(ROWS)) / 2 * (rows // ROWS):.2f}"
        customers = sum(customer(number) != "" for number in range(ROWS)) * (rows // ROWS)
        assert found == [(str(rows), str(ROWS), amount, str(customers))]
        project.execute(
            "CREATE TABLE again (LIKE orders) PARTITION BY "
            + str(project.query("SELECT pg_get_partkeydef('orders'::regclass)")[0][0])
        )
        for part, bound in project.query(
            "SELECT relname, pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relkind = 'r'"
        ):
            project.execute(f"CREATE TABLE again_{part} PARTITION OF again {bound}")
        project.execute("INSERT INTO again SELECT * FROM orders")
        per_part = (
            "SELECT replace(tableoid::regclass::text, 'again_', ''), count(*), sum(id) FROM {} GROUP BY 1 ORDER BY 1"
        )
        assert project.query(per_part.format("again")) == project.query(per_part.format("orders"))
        project.execute("DROP TABLE again")
    assert project.leftovers() == []


def test_one_month_is_loaded_anew(project: PostgresProject) -> None:
    write(project)
    declare(project, CLAUSES["months"])
    project.run(target="create").succeeded()
    project.execute("CREATE INDEX by_note ON orders (note)", "UPDATE orders SET note = 'old'")
    declare(project, CLAUSES["months"], ", partitions: [orders_2024_03]")
    (project.inbox / "orders.tbl.0").write_text(
        "".join(f"{number}|1.00|2024-03-0{1 + number % 9}||new\n" for number in range(10))
    )
    for file in range(1, FILES):
        (project.inbox / f"orders.tbl.{file}").unlink()
    project.run(target="replace").succeeded()
    found = project.query("SELECT count(*) FILTER (WHERE note = 'new'), count(DISTINCT tableoid) FROM orders")
    assert found == [("10", "7")]
    assert project.query("SELECT DISTINCT note FROM orders_2024_03") == [("new",)]
    assert project.query("SELECT count(*) FROM pg_indexes WHERE tablename = 'orders_2024_03'") == [("1",)]
    assert project.leftovers() == []
