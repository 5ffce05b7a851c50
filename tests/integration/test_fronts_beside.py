"""Rows in front of a join that go to destinations, too: those of plain SQL over the files, in DuckDB, PostgreSQL and
both; what was rejected on one way alone; kills and resumes; rows that break a constraint; `verify`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.connections_scenes import stopped
from tests.integration.driver import Project
from tests.integration.join_scenes import rows_of
from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text, tables_of
from tests.integration.test_several_joined import killed_before_the_switch, package, write
from tests.integration.test_several_joined_connections import ARCHIVE

TRANSFORMS = """\
        parts: {input: orders, split: {known: "o_clerk IS NOT NULL"}}
        keyed:
          input: lines
          lookup: {connection: inbox, files: numbers.csv, layout: numbers, on: {l_number: number}, add: [label],
                   no_match: output}
        strays: {input: keyed.no_match, sql: "SELECT l_key, CAST(CAST(l_price AS TINYINT) AS INTEGER) AS price
                                              FROM keyed WHERE l_key % 2 = 0"}
      destinations:
"""
JOINED = (
    "        joined: {join: {left: parts.known, right: keyed, on: {o_key: l_key}, type: left,\n"
    "                        right_columns: {number: l_number, price: l_price, label: label}}}\n"
)
DESTINATIONS = {"facts": "joined", "strays": "strays", "closed": "parts.rest", "raw": "lines"}
WANTED = {
    "facts": "SELECT o_key, o_clerk, o_day, l_number, l_price, label FROM orders LEFT JOIN (FROM lines JOIN numbers "
    "ON number = l_number) ON o_key = l_key WHERE o_clerk IS NOT NULL",
    "strays": "SELECT l_key, l_price::TINYINT FROM lines ANTI JOIN numbers ON number = l_number WHERE l_key % 2 = 0",
    "closed": "FROM orders WHERE o_clerk IS NULL",
    "raw": "FROM lines",
}
# Rows that are refused: by the parser; by the query of `strays` alone.
BAD = "1199992,125000,x\n1199996,125002,900\n"


def text_of(destinations: dict[str, str] = DESTINATIONS, archived: frozenset[str] | set[str] = frozenset()) -> str:
    head, _, join = package(JOINED + TRANSFORMS, destinations).partition("        joined: {join: {left: orders")
    text = head + "        joined:" + join.partition("        joined:")[2]
    numbers = "  numbers: {delimiter: ',', columns: [{name: number, type: int32}, {name: label, type: string}]}\n"
    text = text.replace("layouts:\n", f"layouts:\n{numbers}", 1)
    text = text.replace("connections:\n", f"connections:\n{ARCHIVE}  nowhere: {{type: 'null'}}\n", 1)
    for name in archived:
        text = text.replace(f"connection: warehouse, table: {name},", f"connection: archive, table: {name},")
    return text


def prepare(project: Project, **more: Any) -> None:
    write(project)
    project.file("numbers.csv", "".join(f"{number},label {number}\n" for number in range(0, 1_300_000) if number % 4))
    project.package(text_of(**more))


def wanted(project: Project) -> dict[str, list[tuple[str | None, ...]]]:
    orders = (
        f"SELECT * FROM read_csv('{project.inbox}/orders.*', delim='|', header=false, auto_detect=false, quote='', "
        "escape='', columns={'o_key': 'BIGINT', 'o_clerk': 'VARCHAR', 'o_day': 'DATE'})"
    )
    lines = (
        f"SELECT * FROM read_csv('{project.inbox}/lines.*', delim=',', header=true, auto_detect=false, quote='', "
        "escape='', columns={'l_number': 'INTEGER', 'l_key': 'INTEGER', 'l_price': 'VARCHAR'})"
    )
    numbers = f"SELECT * FROM read_csv('{project.inbox}/numbers.csv', columns={{'number': 'INT', 'label': 'VARCHAR'}})"
    views = (
        f"orders AS ({orders}), numbers AS ({numbers}), lines AS (SELECT l_number, l_key, l_price::DECIMAL(9,2) AS "
        f"l_price FROM ({lines}) WHERE l_price <> 'x')"
    )
    found = {}
    for name, query in WANTED.items():
        query = query.replace("FROM lines", "FROM (FROM lines WHERE l_price < 128)") if name == "strays" else query
        found[name] = as_text(rows_of(f"WITH {views} {query}"))
    return found


def balanced(summary: dict[str, Any]) -> dict[str, Any]:
    """Rows of a source alone are loaded, filtered or rejected; those of the join as ever."""
    tables = {table["table"]: table for table in summary["tables"]}
    for name, table in tables.items():
        if name == "facts":
            sides = [table["join"][side] for side in ("left", "right")]
            behind = sum(own["rejected_behind"] for own in sides)
            assert table["join"]["rows_out"] == table["rows_loaded"] + table["rows_filtered"] + behind
            for own in sides:
                before = own["rows_rejected"] - own["rejected_behind"]
                assert own["lines"] - own["rows_skipped"] == own["rows"] + before + own["filtered_in_front"]
        else:
            assert "join" not in table
            assert table["rows_read"] == table["rows_loaded"] + table["rows_filtered"] + table["rows_rejected"], name
    return tables


def left_out(tables: dict[str, Any]) -> int:
    """Rows that are in no table but `raw`: those of odd orders that find no number, and those that meet no order."""
    misses = sum(own["outputs"]["no_match"] for own in tables["strays"]["transforms"] if own["name"] == "keyed")
    odd = misses - int(tables["strays"]["rows_loaded"])
    behind: int = tables["facts"]["join"]["right"]["filtered"]
    return int(odd) + behind


@pytest.fixture(params=["duckdb", "postgres"])
def sales(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    prepare(project)
    return project


def test_each_destination_gets_its_rows(sales: Project) -> None:
    rows, accounts = wanted(sales), []
    assert all(len(own) > 50 for own in rows.values())
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        ended.succeeded()
        assert tables_of(sales, WANTED) == rows, streams
        tables = balanced(ended.summary)
        counts = ("lines", "rows_skipped", "rows_read", "rows_filtered", "rows_rejected", "rows_loaded", "join")
        accounts.append({name: [table.get(own) for own in counts] for name, table in tables.items()})
        read = tables["raw"]["rows_read"] + tables["closed"]["rows_read"]
        assert (ended.summary["rows_read"], tables["strays"]["rows_read"]) == (read, tables["raw"]["rows_read"])
        assert ended.summary["rows_filtered"] == left_out(tables)
    assert accounts[0] == accounts[1]
    assert sales.leftovers() == []


def test_rows_are_rejected_where_they_are_missing(sales: Project) -> None:
    """By the parser: of all tables of its source; by a query in front: of the table behind that alone."""
    place = sales.inbox / "lines.6"
    text = place.read_text()
    place.write_text(text + BAD)
    rows = wanted(sales)
    ended = sales.run("--streams", "4", limit=9)
    ended.succeeded()
    assert tables_of(sales, WANTED) == rows
    tables = balanced(ended.summary)
    assert {name: table["rows_rejected"] for name, table in tables.items()} == {
        "facts": 1, "strays": 2, "closed": 0, "raw": 1,
    }  # fmt: skip
    assert ended.summary["rows_rejected"] == 2
    assert ended.summary["tables"][0]["shared"]["right_rejected_behind"] == 0
    (told,) = sales.folder.glob("runs/*/rejects/*.jsonl")
    rejects = {own["row"]: own for own in map(json.loads, told.read_text().splitlines())}
    count = text.count("\n")
    assert {row: own["destinations"] for row, own in rejects.items()} == {
        count + 1: ["facts", "strays", "raw"], count + 2: ["strays"]
    }  # fmt: skip
    assert {own["file"].rpartition("/")[2] for own in rejects.values()} == {"lines.6"}
    assert rejects[count + 2]["row_byte"] == len(text) + len(BAD.splitlines()[0]) + 1


def test_rejects_of_all_ways_stand_in_one_table(sales: Project) -> None:
    """Each once, with its place, and visible with the tables."""
    sales.package(text_of().replace('rejects: {limit: "${limit}"}', 'rejects: {limit: "${limit}", table: bad}'))
    place = sales.inbox / "lines.6"
    text = place.read_text()
    place.write_text(text + BAD)
    rows = wanted(sales)
    sales.run("--streams", "4", limit=9).succeeded()
    assert tables_of(sales, WANTED) == rows
    count = text.count("\n")
    stored = sales.query('SELECT "row", "value" FROM bad ORDER BY "row"')
    assert [(int(row), value) for row, value in stored] == [(count + 1, "x"), (count + 2, "1199996,125002,900")]


def test_a_lookup_of_a_table_in_front_leads_to_tables_of_its_own(sales: Project) -> None:
    """Columns of the ways behind it are known when the table is; so is what of them goes where."""
    values = "range(1300000)" if type(sales) is Project else "generate_series(0, 1299999)"
    sales.execute(
        f"CREATE TABLE numbers AS SELECT n AS number, 'label ' || n AS label FROM {values} AS own(n) WHERE n % 4 <> 0"
    )
    of_file = "lookup: {connection: inbox, files: numbers.csv, layout: numbers,"
    assert of_file in text_of()
    sales.package(text_of().replace(of_file, "lookup: {connection: warehouse, table: numbers,"))
    rows = wanted(sales)
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        ended.succeeded()
        assert tables_of(sales, WANTED) == rows, streams
        balanced(ended.summary)


@pytest.mark.parametrize(
    "archived", [{"strays", "raw"}, {"closed", "raw"}, {"facts"}], ids=["of_one_source", "of_both", "joined"]
)
def test_what_is_left_is_loaded_once_more(warehouse: PostgresProject, archived: set[str]) -> None:
    """Killed between the commits of two places."""
    prepare(warehouse, archived=archived)
    rows = wanted(warehouse)
    killed = warehouse.command([sys.executable, "-c", stopped("before", 1), *warehouse.arguments()[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    ended = warehouse.resume()
    ended.succeeded()
    assert tables_of(warehouse, WANTED, archived) == rows
    balanced(ended.summary)
    assert warehouse.leftovers() == []


def test_slices_that_were_committed_are_not_read_for_their_tables(warehouse: PostgresProject) -> None:
    prepare(warehouse)
    rows = wanted(warehouse)
    killed_before_the_switch(warehouse, "--streams", "2")
    ended = warehouse.resume()
    ended.succeeded()
    assert tables_of(warehouse, WANTED) == rows
    balanced(ended.summary)


def test_a_row_that_breaks_a_constraint_is_named(sales: Project) -> None:
    sales.execute("CREATE TABLE raw (l_number INTEGER UNIQUE, l_key INTEGER, l_price DECIMAL(9,2))")
    place = sales.inbox / "lines.6"
    lines = place.read_text().splitlines()
    place.write_text("\n".join([*lines, lines[-1]]) + "\n")
    error = json.loads(sales.run(target="append").stdout)["error"]
    assert error["at"]["file"].endswith("lines.6") and error["at"]["row"] == len(lines) + 1, error
    assert len(sales.tables()) == 1


def test_a_join_that_is_not_stored_stands_behind(project: Project) -> None:
    prepare(project)
    text = text_of().replace("connection: warehouse, table: facts,", "connection: nowhere, table: facts,")
    project.package(text)
    ended = project.run()
    ended.succeeded()
    tables = {table["table"]: table for table in ended.summary["tables"]}
    rows = wanted(project)
    assert {name: table["rows_loaded"] for name, table in tables.items()} == {
        name: len(own) for name, own in rows.items()
    }
    assert ended.summary["rows_read"] == tables["raw"]["rows_read"] + tables["closed"]["rows_read"]
    assert ended.summary["rows_filtered"] == left_out(tables)


def test_tables_of_one_source_are_verified(sales: Project) -> None:
    sales.run().succeeded()
    verified = sales.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "last", "--json"])
    told = {own["table"]: (own["status"], own["reason"]) for own in json.loads(verified.stdout)["tables"]}
    assert told["raw"] == told["closed"] == ("equal", None), verified.stdout + verified.stderr
    assert told["facts"][0] == told["strays"][0] == "not_comparable"
