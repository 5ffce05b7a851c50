"""Rows in front of a join or a union that go to destinations, too, where a source is small: one without files, one with
fewer slices than streams, a row that belongs into no partition of its table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import pytest

from tests.integration.connections_scenes import stopped
from tests.integration.driver import Project
from tests.integration.test_several_joined_connections import ARCHIVE

PACKAGE = f"""
headrace: 1
package: small
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb}}
{ARCHIVE}layouts:
  orders: {{delimiter: ",", columns: [{{name: o_key, type: int64, nullable: false}}, {{name: state, type: string}}]}}
  lines: {{delimiter: ",", columns: [{{name: l_key, type: int64, nullable: false}}, {{name: number, type: int32}}]}}
streams: 4
tasks:
  load:
    data_flow:
      rejects: {{limit: 9}}
      sources:
        orders: {{connection: inbox, files: "orders.*", layout: orders}}
        lines: {{connection: inbox, files: "lines.*", layout: lines}}
      transforms:
        joined: {{join: {{left: orders, right: lines, on: {{o_key: l_key}}, right_columns: [number]}}}}
        next: {{input: joined, sql: "SELECT o_key, number FROM joined"}}
      destinations:
"""
UNION = PACKAGE.replace("{name: l_key, type: int64, nullable: false}, {name: number, type: int32}", "COLUMNS").replace(
    "COLUMNS", "{name: o_key, type: int64, nullable: false}, {name: state, type: string}"
)
UNITED = "        united: {union: {sources: [orders, lines]}}\n"


def union(text: str = UNION) -> str:
    head, _, behind = text.partition("        joined:")
    return head + UNITED + behind[behind.index("      destinations:") :]


def with_tables(text: str, tables: Mapping[str, str]) -> str:
    """`tables`: by name, what they read and where they are."""
    return text + "".join(
        f"        {name}: {{table: {name}, target: replace, {own}}}\n" for name, own in tables.items()
    )


@pytest.mark.parametrize(
    "tables",
    [
        {"plain": "input: next, WAREHOUSE", "divided": "input: lines, WAREHOUSE, PARTS"},
        {"plain": "input: joined, WAREHOUSE", "divided": "input: next, WAREHOUSE, PARTS"},
    ],
    ids=["in_front", "behind"],
)
@pytest.mark.parametrize("place", ["project", "warehouse"])
def test_a_row_of_no_partition_lacks_in_its_table_alone(
    request: pytest.FixtureRequest, place: str, tables: dict[str, str]
) -> None:
    project: Project = request.getfixturevalue(place)
    project.file("orders.1", "1,O\n")
    project.file("lines.1", "1,1\n1,5\n")
    text = with_tables(PACKAGE, tables).replace("WAREHOUSE", "connection: warehouse")
    project.package(text.replace("PARTS", "partition: {list: {column: number, values: {one: [1]}}}"))
    ended = project.run()
    loaded = {own["table"]: (own["rows_loaded"], own["rows_rejected"]) for own in ended.succeeded()["tables"]}
    assert (loaded["plain"][0], loaded["divided"]) == (2, (1, 1))
    (told,) = project.folder.glob("runs/*/rejects/*.jsonl")
    reject = json.loads(told.read_text())
    assert (reject["row"], reject["destinations"]) == (2, ["divided"])


def test_a_table_whose_source_has_no_files_stays_as_it_is(project: Project) -> None:
    """As in a data flow of its own. The others have their rows."""
    project.file("lines.1", "1,x\n")
    text = union().replace('.*", ', '.*", missing: skip, ')
    tables = {"together": "input: united", "alone": "input: orders"}
    project.package(with_tables(text, {name: f"{own}, connection: warehouse" for name, own in tables.items()}))
    project.execute("CREATE TABLE alone AS SELECT 7 AS o_key, 'as it was' AS state")
    ended = project.run()
    assert {own["table"]: own["rows_loaded"] for own in ended.succeeded()["tables"]} == {"together": 1}
    assert [(str(key), state) for key, state in project.query("FROM alone")] == [("7", "as it was")]
    assert [own["task"] for own in ended.summary["skipped"]] == ["load/alone"]


@pytest.mark.parametrize("text", [union(), PACKAGE.replace("type: int32}]", "type: string}]")], ids=["union", "join"])
def test_a_source_with_fewer_slices_than_streams_is_left(project: Project, text: str) -> None:
    """Killed between the commits of two places: what is read for the second one is one file of two."""
    project.file("orders.1", "1,a\n2,b\n")
    project.file("orders.2", "")
    project.file("lines.1", "1,x\n")
    project.file("lines.2", "7,z\n")
    together = "united" if "united" in text else "next"
    tables = {"facts": f"input: {together}, connection: warehouse", "alone": "input: orders, connection: archive"}
    project.package(with_tables(text, tables))
    killed = project.command([sys.executable, "-c", stopped("before", 1), *project.arguments("--streams", "2")[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    project.resume().succeeded()
    rows = Project.query(project, "SELECT o_key FROM alone ORDER BY 1", project.folder / "archive.duckdb")
    assert [int(key) for (key,) in rows] == [1, 2]


@pytest.mark.parametrize("is_gone", [False, True], ids=["never_there", "gone"])
def test_a_source_without_files_is_left_behind_a_kill(project: Project, *, is_gone: bool) -> None:
    """Between the commits of two places: one that had none is passed over again, one that has lost them is refused."""
    project.file("lines.1", "1,x\n")
    if is_gone:
        project.file("orders.1", "2,y\n")
    tables = {
        "facts": "input: united, connection: warehouse",
        "alone": "input: orders, connection: archive",
        "raw": "input: lines, connection: archive",
    }
    project.package(with_tables(union().replace('.*", ', '.*", missing: skip, '), tables))
    killed = project.command([sys.executable, "-c", stopped("before", 1), *project.arguments("--streams", "2")[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    if is_gone:
        (project.inbox / "orders.1").unlink()
    ended = project.resume()
    if is_gone:
        error = json.loads(ended.stdout)["error"]
        assert error["at"]["file"].endswith("orders.1") and error["found"] == "no such file any more", error
    else:
        assert {own["table"]: own["rows_loaded"] for own in ended.succeeded()["tables"]} == {"facts": 1, "raw": 1}


def test_the_file_that_is_gone_is_named(project: Project) -> None:
    """Of two sources apart, of which the other one is complete: nothing is left to read."""
    project.file("orders.1", "1,a\n")
    project.file("lines.1", "2,b\n")
    text = union().replace(UNITED, "").replace("      transforms:\n", "").replace('.*", ', '.*", missing: skip, ')
    tables = {"one": "input: orders, connection: warehouse", "other": "input: lines, connection: archive"}
    project.package(with_tables(text, tables))
    killed = project.command([sys.executable, "-c", stopped("before", 1), *project.arguments("--streams", "2")[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr
    (project.inbox / "lines.1").unlink()
    error = json.loads(project.resume().stdout)["error"]
    assert (error["at"]["file"].rpartition("/")[2], error["found"]) == ("lines.1", "no such file any more")
