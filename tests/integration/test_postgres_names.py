"""Names with quotes, spaces, capitals and 63 bytes: of tables, columns, schemas, databases and roles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import TargetError
from headrace.targets.postgres.names import quote
from tests.integration.postgres import PostgresProject, literal
from tests.servers.cluster import Cluster, identifier

NAMES = {
    "quotes": 'it\'s "quoted"',
    "spaces": " two  spaces ",
    "capitals": "OrderS",
    "keyword": "select",
    "semicolon": "x; DROP TABLE y; --",
    "percent": "100%s {} $1 :name",
    "backslash": "back\\slash",
    "umlaut": "größe",
    "longest": "x" * 63,
    "longest_of_umlauts": "ü" * 31 + "x",
}
# 63 bytes leave no room for the number of a partition.
SHORT_NAMES = [name for name in NAMES if not name.startswith("longest")]

PACKAGE = """
headrace: 1
package: names
parameters:
  target: {{type: string, default: replace}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
  orders:
    delimiter: "|"
    columns:
      - {{name: {column}, type: int64, nullable: false}}
      - {{name: amount, type: "decimal(9,2)"}}
      - {{name: day, type: date}}
      - {{name: customer, type: varchar(12)}}
      - {{name: note, type: string}}
streams: 2
tasks:
  load:
    data_flow:
      sources:
        orders: {{connection: inbox, files: "orders.tbl.*", layout: orders}}
      destinations:
        sales: {{input: orders, connection: warehouse, table: {table}, target: "${{target}}", load: {load}{clause}}}
"""


def write(warehouse: PostgresProject, table: str, column: str = "id", load: str = "single") -> None:
    clause = f", partition: {{range: {{column: {json.dumps(column)}}}}}" if load == "staged" else ""
    # What JSON writes is YAML, too.
    warehouse.package(PACKAGE.format(table=json.dumps(table), column=json.dumps(column), load=load, clause=clause))
    warehouse.file("orders.tbl.1")
    warehouse.file("orders.tbl.2", "".join(f"{number}|1.25|2024-02-29|x|y\n" for number in range(101, 201)))


def load_three_times(warehouse: PostgresProject, table: str) -> None:
    """Created, replaced, appended to."""
    for target, rows in (("create", "200"), ("replace", "200"), ("append", "400")):
        warehouse.run(target=target).succeeded()
        assert warehouse.query(f"SELECT count(*) FROM {table}") == [(rows,)]
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("name", NAMES)
def test_a_table_and_a_column(warehouse: PostgresProject, name: str) -> None:
    write(warehouse, NAMES[name], NAMES[name])
    load_three_times(warehouse, identifier(NAMES[name]))
    assert warehouse.query(
        "SELECT relname, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
        "WHERE relnamespace = 'public'::regnamespace AND attnum = 1 AND relkind = 'r' "
        f"AND relname = {literal(NAMES[name])}"
    ) == [(NAMES[name], NAMES[name])]


TOO_LONG = {"letters": "x" * 64, "umlauts": "ü" * 32, "schema": f"{'x' * 64}.orders"}


@pytest.mark.parametrize("name", TOO_LONG.values(), ids=TOO_LONG)
def test_a_name_that_the_server_would_cut_loads_nothing(warehouse: PostgresProject, name: str) -> None:
    """Two tables whose names differ behind that would be one, and the second load would replace the first."""
    schema, _, table = name.rpartition(".")
    warehouse.execute(f"CREATE SCHEMA {identifier((schema or 'x')[:63])}")
    for letter in "ab":
        write(warehouse, f"{name}{letter}" if not schema else f"{schema}{letter}.{table}")
        ended = warehouse.run(target="replace")
        assert ended.exit_code == 5
        assert "is too long for the connection `warehouse`" in ended.error
    assert warehouse.tables() == []


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=80))
def test_no_identifier_is_quoted_that_the_server_would_cut(name: str) -> None:
    if len(name.encode()) <= 63:
        assert quote(name) == identifier(name)
    else:
        with pytest.raises(TargetError, match="is too long"):
            quote(name)


@pytest.mark.parametrize("load", ["staged", "view"])
@pytest.mark.parametrize("name", SHORT_NAMES)
def test_partitions_and_views(warehouse: PostgresProject, name: str, load: str) -> None:
    write(warehouse, NAMES[name], NAMES[name], load)
    for target in ("create", "replace"):
        warehouse.run(target=target).succeeded()
        assert warehouse.query(f"SELECT count(*) FROM {identifier(NAMES[name])}") == [("200",)]
    assert f"public.{NAMES[name]}_1" in warehouse.tables()
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("load", ["staged", "view"])
def test_a_name_without_room_for_a_number(warehouse: PostgresProject, load: str) -> None:
    """Never shortened silently: refused, or loaded with every row in tables of different names."""
    write(warehouse, NAMES["longest"], load=load)
    ended = warehouse.run(target="create")
    if ended.exit_code == 0:
        assert warehouse.query(f"SELECT count(*) FROM {NAMES['longest']}") == [("200",)]
    else:
        assert "63" in ended.error
        assert warehouse.tables() == []
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("name", NAMES)
def test_a_schema(warehouse: PostgresProject, name: str) -> None:
    warehouse.execute(f"CREATE SCHEMA {identifier(NAMES[name])}")
    write(warehouse, f"{NAMES[name]}.Orders")
    load_three_times(warehouse, f'{identifier(NAMES[name])}."Orders"')


@pytest.mark.parametrize("name", NAMES)
def test_a_database_and_a_role(postgres: Cluster, tmp_path: Path, name: str) -> None:
    role = f"{NAMES[name]}r"[-63:] if len(NAMES[name].encode()) < 63 else NAMES[name].swapcase()
    (tmp_path / "project").mkdir()
    with postgres.database(NAMES[name]) as database:
        postgres.psql(f"CREATE ROLE {identifier(role)} LOGIN SUPERUSER")
        try:
            # The socket trusts everybody.
            database.role = role
            warehouse = PostgresProject(tmp_path / "project", database)
            warehouse.url = database.socket_url
            write(warehouse, "orders")
            load_three_times(warehouse, "orders")
        finally:
            postgres.psql(f"DROP OWNED BY {identifier(role)}", database.name)
            postgres.psql(f"DROP ROLE {identifier(role)}")


def test_names_that_differ_in_case_only(warehouse: PostgresProject) -> None:
    """Two tables for PostgreSQL, and so for Headrace."""
    warehouse.execute("CREATE TABLE orders (x integer)")
    write(warehouse, "Orders")
    load_three_times(warehouse, '"Orders"')
    assert warehouse.query("SELECT count(*) FROM orders") == [("0",)]
