"""Names that a database would cut: wherever one stands in a package, `check` refuses it there and says what remains."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import CommandLineError, PackageError
from headrace.model import MAXIMUM_NAME_BYTES, cut_name
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message

LIMIT = MAXIMUM_NAME_BYTES["postgres"]

HEAD = """\
headrace: 1
package: names
parameters:
  table: {{type: string, default: "{name}"}}
variables:
  found: {{type: rows}}
connections:
  inbox: {{type: files, path: data}}
  warehouse: {connection}
layouts:
  lines: {{delimiter: "|", columns: [{{name: id, type: int64}}, {{name: {column}, type: int64}}]}}
tasks:
"""
SERVER = "{type: postgres, host: db, user: loader, database: sales}"
FILE = "{type: duckdb, path: w.duckdb}"
FLOW = """\
  load:
    data_flow:
      sources: {{lines: {{connection: inbox, files: "*.csv", layout: lines}}}}{transforms}
      destinations: {{out: {{input: {input}, connection: warehouse, table: {table}, target: append{more}}}}}{rejects}
"""
NAME = "NAME"


def flow(table: str = "t", input: str = "lines", more: str = "", transform: str = "", rejects: str = "") -> str:
    """A data flow, with one transform or none."""
    transforms = f"\n      transforms: {{own: {transform}}}" if transform else ""
    rejects = f"\n      rejects: {rejects}" if rejects else ""
    return FLOW.format(table=table, input=input, more=more, transforms=transforms, rejects=rejects)


def lookup(settings: str) -> str:
    return flow(
        input="own", transform=f"{{input: lines, lookup: {{connection: warehouse, no_match: reject, {settings}}}}}"
    )


def task(settings: str) -> str:
    return f"  own: {settings}\n"


# Every place of a package where a name stands that goes to a database.
PLACES = {
    "table": flow(table=NAME),
    "schema": flow(table=f"{NAME}.t"),
    "table_of_a_parameter": flow(table='"${table}"'),
    "column_that_is_mapped": flow(more=f", columns: {{{NAME}: id}}"),
    "column_of_a_layout": flow(),
    "column_of_a_query": flow(input="own", transform=f'{{input: lines, sql: "SELECT id AS {NAME} FROM lines"}}'),
    "column_of_a_lookup": lookup(f"table: parts, on: {{id: id}}, add: {{{NAME}: price}}"),
    "tablespace": flow(more=f", partition: {{hash: {{column: id, parts: 2}}, tablespaces: [fast, {NAME}]}}"),
    "table_of_rejects": flow(rejects=f"{{table: {NAME}, limit: 5}}"),
    "table_looked_up": lookup(f"table: {NAME}, on: {{id: id}}, add: [price]"),
    "schema_looked_up": lookup(f"table: {NAME}.parts, on: {{id: id}}, add: [price]"),
    "key_looked_up": lookup(f"table: parts, on: {{id: {NAME}}}, add: [price]"),
    "column_looked_up": lookup(f"table: parts, on: {{id: id}}, add: {{price: {NAME}}}"),
    "query_of_a_lookup": lookup(f'query: "SELECT id, price FROM {NAME}", on: {{id: id}}, add: [price]'),
    "word_of_a_script": task(f'{{sql: {{connection: warehouse, text: "SELECT 1; CREATE TABLE {NAME} (id int)"}}}}'),
    "quoted_in_a_script": task(f"{{sql: {{connection: warehouse, text: 'DROP TABLE \"{NAME}\"'}}}}"),
    "script_in_a_file": task("{sql: {connection: warehouse, file: make.sql}}"),
    "identifier": task(f'{{sql: {{connection: warehouse, text: "DROP TABLE $t", identifiers: {{t: s.{NAME}}}}}}}'),
    "query_of_a_loop": task(
        f'{{foreach: {{query: {{connection: warehouse, text: "SELECT id FROM {NAME}"}}, as: {{id: integer}}, '
        "tasks: {one: {set: {}}}}}"
    ),
    "build": task(f'{{build: {{connection: warehouse, table: {NAME}, target: append, select: "SELECT 1 AS id"}}}}'),
    "query_of_a_build": task(
        f'{{build: {{connection: warehouse, table: t, target: append, select: "SELECT 1 AS {NAME}"}}}}'
    ),
    "build_by_table": task(
        f'{{build: {{connection: warehouse, table: t, target: append, select: "SELECT 1", by: {{table: {NAME}}}}}}}'
    ),
    "build_by_hash": task(
        f'{{build: {{connection: warehouse, table: t, target: append, select: "SELECT 1", by: {{hash: {NAME}}}}}}}'
    ),
    "tablespace_of_a_build": task(
        '{build: {connection: warehouse, table: t, target: append, select: "SELECT id FROM u", '
        f"partition: {{hash: {{column: id, parts: 2}}, tablespaces: [{NAME}]}}}}}}"
    ),
    "switched_table": task(f"{{switch: {{connection: warehouse, table: {NAME}, partition: p, in: i, out: o}}}}"),
    "switched_partition": task(f"{{switch: {{connection: warehouse, table: t, partition: {NAME}, in: i, out: o}}}}"),
    "switched_in": task(f"{{switch: {{connection: warehouse, table: t, partition: p, in: s.{NAME}, out: o}}}}"),
    "switched_out": task(f"{{switch: {{connection: warehouse, table: t, partition: p, in: i, out: {NAME}}}}}"),
}


def package(place: str, name: str, connection: str) -> str:
    column = name if place == "column_of_a_layout" else "part"
    parameter = name if place == "table_of_a_parameter" else "t"
    return HEAD.format(name=parameter, connection=connection, column=column) + PLACES[place].replace(NAME, name)


def write_script(folder: Path, name: str) -> None:
    (folder / "make.sql").write_text(f'-- makes it\nCREATE TABLE "{name}" (id int);\n', encoding="utf-8")


@pytest.mark.parametrize("letter", ["x", "ü"])
@pytest.mark.parametrize("place", PLACES)
def test_a_name_that_would_be_cut_is_refused_where_it_stands(tmp_path: Path, place: str, letter: str) -> None:
    longest = (letter * LIMIT).encode()[:LIMIT].decode(errors="ignore").ljust(LIMIT // len(letter.encode()), "x")
    longest += "x" * (LIMIT - len(longest.encode()))
    write_script(tmp_path, longest)
    load(tmp_path, package(place, longest, SERVER))
    too_long = f"{longest}y"
    write_script(tmp_path, too_long)
    load(tmp_path, package(place, too_long, FILE))
    with pytest.raises(PackageError) as caught:
        load(tmp_path, package(place, too_long, SERVER))
    assert len(caught.value.problems) == 1
    (problem,) = caught.value.problems
    assert "is too long" in problem.what
    assert f"{LIMIT + 1} bytes; it would become {longest}... ({LIMIT} bytes)" == problem.found
    assert problem.expected == f"at most {LIMIT} bytes"


@pytest.mark.parametrize("place", ["table", "column_of_a_layout", "word_of_a_script", "identifier", "switched_in"])
def test_what_is_said(tmp_path: Path, place: str) -> None:
    assert_snapshot(f"name_{place}", message(tmp_path, package(place, "x" * (LIMIT + 1), SERVER)))


LEDGER = "{type: postgres, host: db, user: loader, ledger: {schema: NAME}}"
OF_CONNECTIONS = {
    "ledger": LEDGER,
    "database": "{type: postgres, host: db, user: loader, database: NAME}",
    "user": "{type: postgres, host: db, user: NAME, database: d}",
    "url": '{type: postgres, url: "postgresql://loader@db/NAME"}',
}


@pytest.mark.parametrize("case", OF_CONNECTIONS)
def test_names_of_connections(tmp_path: Path, case: str) -> None:
    text = HEAD + FLOW
    members = {
        "name": "t",
        "column": "part",
        "transforms": "",
        "input": "lines",
        "table": "t",
        "more": "",
        "rejects": "",
    }
    load(tmp_path, text.format(connection=OF_CONNECTIONS[case].replace(NAME, "x" * LIMIT), **members))
    long = text.format(connection=OF_CONNECTIONS[case].replace(NAME, "x" * (LIMIT + 1)), **members)
    assert_snapshot(f"name_of_{case}", message(tmp_path, long))


def test_a_connection_of_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="is too long for the connection `warehouse`"):
        load(tmp_path, package("table", "x" * (LIMIT + 1), FILE), connections=["warehouse=postgresql://loader@db/d"])
    with pytest.raises(CommandLineError, match="the name of the database is too long"):
        load(tmp_path, package("table", "t", FILE), connections=[f"warehouse=postgresql://u@db/{'x' * (LIMIT + 1)}"])
    ledger = LEDGER.replace(NAME, "x" * (LIMIT + 1))
    with pytest.raises(PackageError, match="the name of the schema of the ledger is too long"):
        load(tmp_path, package("table", "t", ledger), connections=["warehouse=postgresql://loader@db/d"])


def test_a_secret_is_not_shown_by_what_is_left_of_it(tmp_path: Path) -> None:
    secret = "s3cr3t-" * 10
    text = package("table", "${env:TABLE}", SERVER)
    with pytest.raises(PackageError) as caught:
        load(tmp_path, text, environ={"TABLE": secret})
    assert "s3cr3t" not in caught.value.render()


@given(st.text(min_size=1, max_size=80), st.integers(1, 70))
def test_what_is_kept_is_the_beginning_in_whole_characters(name: str, limit: int) -> None:
    cut = cut_name(name, limit)
    assert (cut is None) == (len(name.encode()) <= limit)
    assert cut_name(name, None) is None
    if cut is not None:
        kept = cut.found.split("it would become ")[1].rpartition("... (")[0]
        assert name.startswith(kept)
        assert len(kept.encode()) <= limit < len(name[: len(kept) + 1].encode())
