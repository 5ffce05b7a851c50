"""Lookups of tables of DuckDB: in the file that is loaded, in another one, inside transactions; messages."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.integration.driver import Ended, Project
from tests.snapshots import assert_snapshot

PACKAGE = """
headrace: 1
package: facts
parameters:
  default: {type: integer, default: -1}
  memory: {type: string, default: 1GB}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
  master: {type: duckdb, path: master.duckdb}
layouts:
  lines:
    delimiter: "|"
    columns: [{name: line, type: int64, nullable: false}, {name: part, type: int32}, {name: color, type: varchar(10)}]
  parts:
    delimiter: "|"
    columns: [{name: p_key, type: int64}, {name: p_sk, type: int32}, {name: p_name, type: string}]
streams: 4
memory: ${memory}
tasks:
  load:
    data_flow:
      rejects: {limit: 100}
      sources:
        lines: {connection: inbox, files: lines.csv, layout: lines}
      transforms:
        keyed:
          input: lines
          lookup: {connection: warehouse, table: parts, on: {part: p_key}, add: {part_sk: p_sk, part_name: p_name},
                   no_match: {default: {part_sk: "${default}", part_name: null}}}
      destinations:
        facts: {input: keyed, connection: warehouse, table: facts, target: replace}
"""
LOOKUP = "{connection: warehouse, table: parts,"
LINES, PARTS = 20_000, 3_000
CREATE = (
    f"CREATE TABLE parts AS SELECT range AS p_key, (range * 3 + 1)::INTEGER AS p_sk, 'part number ' || range AS p_name "
    f"FROM range({PARTS})"
)
FOUND = "SELECT count(*), count(*) FILTER (part_sk = part * 3 + 1 AND part_name = 'part number ' || part) FROM facts"
MATCHED = sum(number * 7 % 4000 < PARTS for number in range(LINES))


@pytest.fixture
def facts(project: Project) -> Project:
    project.package(PACKAGE)
    project.file("lines.csv", "".join(f"{number}|{number * 7 % 4000}|red\n" for number in range(LINES)))
    project.execute(CREATE)
    return project


def keyed(ended: Ended) -> dict[str, Any]:
    (table,) = [own for own in ended.succeeded()["tables"] if own["table"] == "facts"]
    transform: dict[str, Any] = table["transforms"][0]
    return transform


def head_and_flow(package: str = PACKAGE) -> tuple[str, str]:
    """The package without its task, and the task as a member of a container."""
    head, _, flow = package.partition("tasks:\n")
    return head, "".join(f"      {text}\n" for text in flow.splitlines())


@pytest.mark.parametrize("streams", [1, 16])
def test_rows_find_those_of_the_file_that_is_loaded(facts: Project, streams: int) -> None:
    own = keyed(facts.run("--streams", str(streams)))
    assert (own["rows"], own["matched"], own["lookup"]["rows"]) == (LINES, MATCHED, PARTS)
    assert facts.query(FOUND) == [(LINES, MATCHED)]
    (read,) = [event for event in facts.events() if event["event"] == "lookup_read"]
    assert (read["rows_from"], read["rows"]) == ("warehouse.parts", PARTS)


def test_rows_find_those_of_another_file_and_of_a_view(facts: Project) -> None:
    with duckdb.connect(str(facts.folder / "master.duckdb")) as connection:
        connection.execute(CREATE.replace("p_sk, 'part", "p_sk, range::HUGEINT AS huge, [1] AS list, 'part"))
        connection.execute("CREATE SCHEMA dim; CREATE VIEW dim.all_parts AS SELECT * FROM parts WHERE p_key < 10")
    facts.package(PACKAGE.replace(LOOKUP, "{connection: master, table: parts,"))
    assert keyed(facts.run())["matched"] == MATCHED
    facts.package(
        PACKAGE.replace(LOOKUP, "{connection: master, table: dim.all_parts,")
        .replace("part_name: p_name}", "part_name: p_name, huge: huge}")
        .replace("part_name: null}", "part_name: null, huge: null}")
    )
    facts.execute("DROP TABLE facts")
    assert keyed(facts.run())["lookup"]["rows"] == 10
    assert facts.query("SELECT DISTINCT typeof(huge), count(huge) FROM facts GROUP BY ALL") == [("DECIMAL(38,0)", 50)]
    # Nothing was written there.
    with duckdb.connect(str(facts.folder / "master.duckdb"), read_only=True) as connection:
        assert connection.execute(
            "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'headrace'"
        ).fetchone() == (0,)


def test_a_table_that_a_task_before_makes(facts: Project) -> None:
    facts.execute("DROP TABLE parts")
    facts.file("parts.csv", "".join(f"{key}|{key * 3 + 1}|part number {key}\n" for key in range(PARTS)))
    head, _, flow = PACKAGE.partition("tasks:\n")
    first = (
        "  parts:\n    data_flow:\n      sources: {parts: {connection: inbox, files: parts.csv, layout: parts}}\n"
        "      destinations: {out: {input: parts, connection: warehouse, table: parts, target: create}}\n"
    )
    facts.package(f"{head}tasks:\n{first}{flow.replace('  load:', '  load:' + chr(10) + '    after: parts')}")
    command = [sys.executable, "-m", "headrace", "plan", "package.yaml", "--json"]
    planned = facts.command(command)
    assert planned.exit_code == 0, planned.stderr
    _, task = json.loads(planned.stdout)["tasks"]
    assert "lookup keyed: a task before may change its table: it is read as it is when the flow starts" in task["notes"]
    assert keyed(facts.run())["lookup"]["rows"] == PARTS
    assert facts.query(FOUND) == [(LINES, MATCHED)]


def test_in_a_transaction_a_lookup_sees_what_the_members_before_have_changed(facts: Project) -> None:
    head, flow = head_and_flow()
    add = "INSERT INTO parts SELECT range, range * 3 + 1, 'part number ' || range FROM range(3000, 4000)"
    first = f'        more: {{sql: {{connection: warehouse, text: "{add}"}}}}\n'
    second = flow.replace("load:", "load:\n          after: more", 1)
    facts.package(f"{head}tasks:\n  both:\n    sequence:\n      transaction: warehouse\n      tasks:\n{first}{second}")
    assert keyed(facts.run())["matched"] == LINES
    assert facts.query(FOUND) == [(LINES, LINES)]


QUERY = (
    '{connection: warehouse, query: "SELECT p_name, p_key, p_sk, p_key AS unread FROM parts '
    'WHERE p_sk > $default -- all",'
)


def test_rows_find_those_of_a_query(facts: Project) -> None:
    """In the file that is loaded, in another one, and with an order of many rows."""
    facts.package(PACKAGE.replace(LOOKUP, QUERY))
    own = keyed(facts.run())
    assert (own["matched"], own["lookup"]["rows"]) == (MATCHED, PARTS)
    assert facts.query(FOUND) == [(LINES, MATCHED)]
    (read,) = [event for event in facts.events() if event["event"] == "lookup_read"]
    assert read["rows_from"] == "a query of warehouse"
    facts.execute("DROP TABLE facts")
    with duckdb.connect(str(facts.folder / "master.duckdb")) as connection:
        connection.execute(f"CREATE TABLE parts AS FROM ({CREATE.partition(' AS ')[2]}), range(300) AS copies(copy)")
    first = QUERY.replace("warehouse", "master").replace("-- all", "ORDER BY p_key, copy = 7 DESC, copy")
    first = first.replace("p_sk,", "CASE copy WHEN 7 THEN p_sk ELSE 0 END AS p_sk,") + " duplicates: first,"
    facts.package(PACKAGE.replace(LOOKUP, first))
    own = keyed(facts.run("--set", "default=-2"))
    assert (own["lookup"]["rows"], own["lookup"]["duplicates"]) == (PARTS, 299 * PARTS)
    assert facts.query(FOUND) == [(LINES, MATCHED)]


def test_in_a_transaction_a_query_sees_what_the_members_before_have_changed(facts: Project) -> None:
    head, flow = head_and_flow(PACKAGE.replace(LOOKUP, QUERY))
    add = "INSERT INTO parts SELECT range, range * 3 + 1, 'part number ' || range FROM range(3000, 4000)"
    first = f'        more: {{sql: {{connection: warehouse, text: "{add}"}}}}\n'
    second = flow.replace("load:", "load:\n          after: more", 1)
    facts.package(f"{head}tasks:\n  both:\n    sequence:\n      transaction: warehouse\n      tasks:\n{first}{second}")
    assert keyed(facts.run())["matched"] == LINES


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("no_file", QUERY.replace("warehouse", "master")),
        ("refused", QUERY.replace("parts", "prats")),
        ("fails", QUERY.replace("p_sk,", "CAST(p_name AS INTEGER) AS p_sk,")),
        ("type", QUERY.replace("p_sk,", "p_key::HUGEINT AS p_sk,")),
    ],
)
def test_what_is_said_when_a_query_gives_no_lookup(facts: Project, name: str, query: str) -> None:
    facts.package(PACKAGE.replace(LOOKUP, query))
    ended = facts.run()
    assert ended.exit_code == 1
    assert_snapshot(f"table_lookup_query_{name}", facts.stable(ended.error))
    assert "main.facts" not in facts.tables()


def test_a_lookup_of_its_own_table_that_is_replaced(facts: Project) -> None:
    facts.execute("CREATE TABLE facts AS SELECT range AS line, 5::INTEGER AS part_sk FROM range(100)")
    lookup = "{connection: warehouse, table: FACTS, on: {line: line}, add: {part_sk: part_sk}, no_match: {default: 0}}"
    before, _, rest = PACKAGE.partition("          lookup: ")
    own = f"{before}          lookup: {lookup}\n      destinations:{rest.partition('      destinations:')[2]}"
    own = own.replace("target: replace", "target: replace, columns: {line: line, part_sk: part_sk}")
    facts.package(own)
    assert keyed(facts.run())["matched"] == 100
    assert facts.query("SELECT sum(part_sk) FROM facts") == [(500,)]
    facts.package(own.replace("target: replace", "target: append"))
    ended = facts.run()
    assert ended.exit_code == 1
    assert_snapshot("table_lookup_appends_to_itself", facts.stable(ended.error))


def test_a_row_that_breaks_a_constraint_is_found_behind_its_lookup(facts: Project) -> None:
    facts.execute("CREATE TABLE facts (line BIGINT, part_sk INTEGER UNIQUE)")
    facts.package(PACKAGE.replace("target: replace", "target: append, columns: {line: line, part_sk: part_sk}"))
    ended = facts.run()
    assert ended.exit_code == 1
    assert_snapshot("table_lookup_constraint", facts.stable(ended.error))


def test_a_lookup_behind_a_lookup_of_a_table(facts: Project) -> None:
    second = (
        "        named: {input: keyed, lookup: {query: \"SELECT 'part number 7' AS n, 1 AS one\", on: {part_name: n}, "
        "add: [one], no_match: {default: 0}}}\n      destinations:"
    )
    facts.package(
        PACKAGE.replace("      destinations:", second).replace("input: keyed, connection", "input: named, connection")
    )
    facts.run().succeeded()
    assert facts.query("SELECT count(*) = sum(one) FROM facts WHERE part = 7") == [(True,)]


def broken(facts: Project, name: str) -> list[str]:
    match name:
        case "missing":
            facts.execute("DROP TABLE parts")
        case "no_file":
            facts.package(PACKAGE.replace(LOOKUP, "{connection: master, table: parts,"))
        case "no_column":
            facts.execute("ALTER TABLE parts RENAME p_key TO p_id")
        case "key_type":
            facts.execute("ALTER TABLE parts ALTER p_key TYPE VARCHAR")
        case "type_that_is_none":
            facts.execute("ALTER TABLE parts ALTER p_sk TYPE UINTEGER")
        case "default_of_another_type":
            facts.execute("ALTER TABLE parts ALTER p_sk TYPE DATE USING NULL")
        case "duplicate_key":
            facts.execute("INSERT INTO parts SELECT p_key % 10, p_sk, p_name FROM parts")
        case "no_memory":
            facts.execute("INSERT INTO parts SELECT range + 5000, 1, 'a long text ' || range FROM range(2000000)")
            return ["--set", "memory=335MB"]
    return []


@pytest.mark.parametrize(
    "name",
    [
        "missing",
        "no_file",
        "no_column",
        "key_type",
        "type_that_is_none",
        "default_of_another_type",
        "duplicate_key",
        "no_memory",
    ],
)
def test_what_is_said_when_there_is_no_lookup(facts: Project, name: str) -> None:
    ended = facts.run(*broken(facts, name))
    assert ended.exit_code != 0
    # How far the reading had come is an accident.
    text = re.sub(r"found: \d+ MB, and", "found: N MB, and", facts.stable(ended.error))
    assert_snapshot(f"table_lookup_{name}", text)
    assert "main.facts" not in facts.tables()


def test_ctrl_c_while_a_table_is_read(facts: Project) -> None:
    slow = "CREATE VIEW slow AS SELECT count(*) AS p_key, 1 AS p_sk, '' AS p_name FROM range(1000000000000)"
    facts.execute(f"{slow} WHERE hash(range) % 7 = 0")
    facts.package(PACKAGE.replace(LOOKUP, "{connection: warehouse, table: slow,"))
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, "lookup_started", lookup="keyed")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3
    assert facts.ledger() == ["cancelled"]


def test_plan_and_check_tell_of_tables(facts: Project) -> None:
    headrace = [sys.executable, "-m", "headrace"]
    planned = facts.command([*headrace, "plan", "package.yaml", "--json"])
    (task,) = json.loads(planned.stdout)["tasks"]
    (own,) = task["transforms"]
    assert own["text"].startswith("keyed: about 3,000 rows of warehouse.parts, up to ")
    assert (own["connection"], own["table"], own["rows"]) == ("warehouse", "parts", PARTS)
    assert [column["type"] for column in own["added"]] == ["int32", "string"]
    checked = facts.command([*headrace, "check", "package.yaml", "--json"])
    (flow,) = json.loads(checked.stdout)["data_flows"]
    assert flow["transforms"][0]["source"] == {"name": "keyed", "connection": "warehouse", "table": "parts"}
    assert Path(facts.folder / "master.duckdb").exists() is False
    facts.package(PACKAGE.replace(LOOKUP, "{connection: master, table: parts,"))
    checked = facts.command([*headrace, "check", "package.yaml", "--connect", "--json"])
    opened = {own["connection"]: own["problems"] for own in json.loads(checked.stdout)["destinations"]}
    assert opened == {"warehouse": [], "master": ["lookup keyed reads main.parts, which does not exist"]}
    assert Path(facts.folder / "master.duckdb").exists() is False
