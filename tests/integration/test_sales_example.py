"""The fact table of TPC-H in DuckDB and PostgreSQL: row by row what plain SQL over the files gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from headrace.tpch import package_path
from tests.integration.control_flow import TARGETS, PackageProject, copied, package_project
from tests.servers.cluster import Cluster

TABLES = {
    "lineitem": "l_orderkey BIGINT, l_partkey INTEGER, l_suppkey INTEGER, l_linenumber INTEGER, "
    "l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), "
    "l_returnflag VARCHAR, l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, "
    "l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR",
    "orders": "o_orderkey BIGINT, o_custkey INTEGER, o_orderstatus VARCHAR, o_totalprice DECIMAL(15,2), "
    "o_orderdate DATE, o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INTEGER, o_comment VARCHAR",
}
SALES = (
    "SELECT l_orderkey, l_linenumber, part_sk, customer_sk, supplier_sk, clerk_sk, order_date, ship_date, commit_date, "
    "receipt_date, l_quantity, l_tax, l_discount, l_extendedprice FROM sales ORDER BY l_orderkey, l_linenumber"
)
KEYS = ("part", "customer", "supplier")
# One key of so many is in no dimension.
MISSING = 97
# Places of the surrogate keys in a row: part, customer, supplier, clerk.
SURROGATES = (2, 3, 4, 5)


def joined(data: Path) -> list[tuple[str, ...]]:
    """Plain SQL over the files, as text."""
    with duckdb.connect() as connection:
        for name, columns in TABLES.items():
            declared = ", ".join(f"'{column.split()[0]}': '{column.split()[1]}'" for column in columns.split(", "))
            connection.execute(
                f"CREATE TABLE {name} AS FROM read_csv('{data}/{name}.tbl*', delim='|', header=false, quote='', "
                f"columns={{{declared}, 'nothing': 'VARCHAR'}})"
            )
        for table in KEYS:
            connection.execute(
                f"CREATE TABLE {table} AS SELECT row_number() OVER (ORDER BY key) AS sk, key FROM ("
                f"SELECT CAST(split_part(line, '|', 1) AS INTEGER) AS key FROM read_csv('{data}/{table}.tbl*', "
                f"delim=chr(1), header=false, quote='', columns={{'line': 'VARCHAR'}}))"
            )
        connection.execute(
            "CREATE TABLE clerk AS SELECT row_number() OVER (ORDER BY o_clerk) AS sk, o_clerk AS key "
            "FROM (SELECT DISTINCT o_clerk FROM orders)"
        )
        dates = ", ".join(
            f"CAST(strftime({name}, '%Y%m%d') AS INTEGER)"
            for name in ("o_orderdate", "l_shipdate", "l_commitdate", "l_receiptdate")
        )
        return connection.execute(
            f"""SELECT COLUMNS(*)::VARCHAR FROM (
            SELECT l_orderkey, l_linenumber, coalesce(part.sk, -1) AS p, coalesce(customer.sk, -1) AS c,
                   coalesce(supplier.sk, -1) AS s, coalesce(clerk.sk, -1) AS k, {dates},
                   l_quantity, l_tax, l_discount, l_extendedprice
            FROM lineitem JOIN orders ON l_orderkey = o_orderkey LEFT JOIN part ON part.key = l_partkey
            LEFT JOIN customer ON customer.key = o_custkey LEFT JOIN supplier ON supplier.key = l_suppkey
            LEFT JOIN clerk ON clerk.key = o_clerk ORDER BY l_orderkey, l_linenumber)"""
        ).fetchall()


@pytest.fixture(params=TARGETS)
def tpch(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[PackageProject]:
    with package_project(request.param, tmp_path / "tpch", postgres) as made:
        copied(package_path().parent, made.folder)
        yield made


@pytest.fixture(scope="module")
def data(small_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TPC-H text; one key of so many is in no dimension."""
    folder = tmp_path_factory.mktemp("sales")
    for file in small_files.iterdir():
        if file.name.split(".")[0] not in KEYS:
            (folder / file.name).symlink_to(file)
            continue
        rows = file.read_text().splitlines(keepends=True)
        (folder / file.name).write_text("".join(row for row in rows if int(row.split("|", 1)[0]) % MISSING))
    return folder


@pytest.fixture(scope="module")
def expected(data: Path) -> list[tuple[str, ...]]:
    rows = joined(data)
    for column in SURROGATES[:3]:
        assert 0 < sum(row[column] == "-1" for row in rows) < len(rows)
    return rows


def test_sales_in_the_destination_are_those_of_plain_sql(
    tpch: PackageProject, data: Path, expected: list[tuple[str, ...]]
) -> None:
    tpch.package = "load.yaml"
    tpch.run("--set", f"data={data}").succeeded()
    tpch.package = "sales.yaml"
    written = (tpch.folder / "sales.yaml").read_text()
    # The second run takes the place of the first. So few rows are not worth several sessions if nobody says so.
    for streams, sessions in (("1", "auto"), ("16", "5")):
        tpch.write(
            {
                "sales.yaml": written.replace(
                    "by: {table: lineitem}", f"by: {{table: lineitem}}\n      parts: {sessions}"
                )
            }
        )
        summary = tpch.run("--streams", streams).succeeded()
        (sales,) = [table for table in summary["tables"] if table["table"] == "sales"]
        assert sales["rows_loaded"] == len(expected)
        assert tpch.rows(SALES) == expected
        is_postgres = "postgres" in tpch.url
        assert len(sales["partitions"]) == (8 if is_postgres else 0)
        assert sales["streams"] == (5 if is_postgres and sessions == "5" else 1)


def test_sales_in_flight_are_those_of_plain_sql(
    tpch: PackageProject, data: Path, expected: list[tuple[str, ...]]
) -> None:
    tpch.package = "sales_in_flight.yaml"
    for streams in ("1", "16"):
        summary = tpch.run("--set", f"data={data}", "--streams", streams).succeeded()
        (sales,) = [table for table in summary["tables"] if table["table"] == "sales"]
        assert (sales["rows_loaded"], sales["rows_rejected"]) == (len(expected), 0)
        by_name = {transform["name"]: transform for transform in sales["transforms"]}
        assert by_name["with_part"]["defaulted"] == sum(row[SURROGATES[0]] == "-1" for row in expected)
        assert tpch.rows(SALES) == expected
        # DuckDB has no partitions, and says so in the plan.
        assert len(sales["partitions"]) == (8 if "postgres" in tpch.url else 0)
