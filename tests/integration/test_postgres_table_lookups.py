"""Lookups of tables of PostgreSQL, and queries of databases: what they see, which values, interruption."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from tests.integration.postgres import PostgresProject, literal
from tests.integration.table_lookup_scenes import (
    ALL,
    CREATE,
    FOUND,
    LARGE_PARTS,
    LINES,
    LOOKUP,
    MATCHED,
    PACKAGE,
    PARTS,
    QUERY,
    headrace,
    keyed,
    lines,
    wait_until,
)
from tests.snapshots import assert_snapshot


@pytest.fixture
def facts(warehouse: PostgresProject) -> PostgresProject:
    warehouse.package(PACKAGE)
    lines(warehouse)
    warehouse.execute(CREATE)
    return warehouse


@pytest.mark.parametrize("streams", [1, 16])
@pytest.mark.parametrize("lookup", [LOOKUP, QUERY], ids=["table", "query"])
def test_rows_find_those_of_the_database_that_is_loaded(facts: PostgresProject, lookup: str, streams: int) -> None:
    facts.package(PACKAGE.replace(LOOKUP, lookup))
    own = keyed(facts.run("--streams", str(streams)))
    assert (own["rows"], own["matched"], own["lookup"]["rows"]) == (LINES, MATCHED, PARTS)
    assert facts.query(FOUND) == [ALL]
    (read,) = [event for event in facts.events() if event["event"] == "lookup_read"]
    assert read["rows_from"] == ("warehouse.parts" if lookup == LOOKUP else "a query of warehouse")
    assert facts.leftovers() == []


@pytest.mark.parametrize("kind", ["view", "materialized", "partitioned", "inherited"])
def test_whatever_can_be_selected_from_is_read(facts: PostgresProject, kind: str) -> None:
    rename = "ALTER TABLE parts RENAME TO all_parts"
    parted = (
        f"{rename}; CREATE TABLE parts (LIKE all_parts) PARTITION BY HASH (p_key); "
        + "; ".join(
            f"CREATE TABLE p{n} PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER {n})" for n in range(3)
        )
        + "; INSERT INTO parts TABLE all_parts"
    )
    inherited = (
        "CREATE TABLE more (LIKE parts); INSERT INTO more SELECT * FROM parts WHERE p_key % 2 = 1; "
        "DELETE FROM parts WHERE p_key % 2 = 1; ALTER TABLE more INHERIT parts"
    )
    match kind:
        case "view":
            facts.execute(f"{rename}; CREATE VIEW parts AS SELECT * FROM all_parts")
        case "materialized":
            facts.execute(f"{rename}; CREATE MATERIALIZED VIEW parts AS SELECT * FROM all_parts")
        case "partitioned":
            facts.execute(parted)
        case "inherited":
            facts.execute(inherited)
    own = keyed(facts.run())
    assert (own["matched"], own["lookup"]["rows"]) == (MATCHED, PARTS)
    assert facts.query(FOUND) == [ALL]


VALUES = {
    "i2": ("smallint", "'-32768', '32767'"),
    "i4": ("integer", "'-2147483648', '7'"),
    "i8": ("bigint", "'-9223372036854775808', '7'"),
    "n1": ("numeric(9,2)", "'-1234567.89', '0.00'"),
    "n2": ("numeric(38,10)", "'9999999999999999999999999999.9999999999', '-0.0000000001'"),
    "n3": ("numeric(18,0)", "'999999999999999999', '10000'"),
    "f4": ("real", "'1.5', 'NaN'"),
    "f8": ("double precision", "'-1e300', 'Infinity'"),
    "b": ("boolean", "'t', 'f'"),
    "d": ("date", "'0001-01-01', '9999-12-31'"),
    "t": ("time(3)", "'24:00:00', '12:34:56.789'"),
    "ts": ("timestamp(3)", "'0001-01-01 00:00:00', '9999-12-31 23:59:59.999'"),
    "tz": ("timestamptz", "'2024-02-29 12:00:00.000001+02', '1970-01-01 00:00:00+00'"),
    "x": ("text", "'', 'é 🦀 with more than twelve bytes'"),
    "v": ("varchar(8)", "'ends   ', 'abc'"),
    "c": ("char(8)", "'ab', ''"),
    "nm": ("name", "'a name', 'b'"),
    "e": ("mood", "'glad', 'sad'"),
    "dm": ("positive", "'1.5', '2.5'"),
    "y": ("bytea", "'\\x00ff', ''"),
    "u": ("uuid", "'00000000-0000-0000-0000-0000000000ff', 'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    "j": ("json", "'{\"a\":  1}', '[]'"),
    "jb": ("jsonb", "'{\"b\": 2}', 'null'"),
}


def test_every_type_comes_as_it_is(facts: PostgresProject) -> None:
    """From a table, and as the result of a query; beside NULL."""
    values = [pair.split("', '") for _, pair in VALUES.values()]
    rows = [[text.strip("'") for text in row] for row in zip(*values, strict=True)]
    literals = ", ".join(f"({n}, {', '.join(literal(text) for text in row)})" for n, row in enumerate(rows))
    columns = ", ".join(f"{name} {native}" for name, (native, _) in VALUES.items())
    facts.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN positive AS numeric(5,1) CHECK (VALUE > 0)",
        f"CREATE TABLE typed (k int, {columns})",
        f"INSERT INTO typed VALUES {literals}, (2{', NULL' * len(VALUES)})",
    )
    facts.file("lines.csv", "".join(f"{number}|{number % 4}|red\n" for number in range(40)))
    add = f"on: {{part: k}}, add: [{', '.join(VALUES)}], no_match: {{default: null}}}}"
    before, _, rest = PACKAGE.partition("          lookup: ")
    for source in ("table: typed", 'query: "SELECT *, ARRAY[1] AS unread FROM typed"'):
        lookup = f"{{connection: warehouse, {source}, {add}"
        facts.package(
            f"{before}          lookup: {lookup}\n      destinations:{rest.partition('      destinations:')[2]}"
        )
        facts.execute("DROP TABLE IF EXISTS facts")
        assert keyed(facts.run())["matched"] == 30
        same = " AND ".join(f"f.{name}::text IS NOT DISTINCT FROM t.{name}::text" for name in VALUES)
        # A char(n) is filled up again, jsonb comes as the text that the server writes of it.
        assert facts.query(f"SELECT count(*) FROM facts AS f LEFT JOIN typed AS t ON t.k = f.part WHERE {same}") == [
            ("40",)
        ]


def test_a_connection_that_is_only_read_gets_no_ledger(facts: PostgresProject) -> None:
    """And `check --connect` opens it."""
    facts.package(PACKAGE.replace("input: keyed, connection: warehouse", "input: keyed, connection: other"))
    ended = facts.run()
    assert (keyed(ended)["matched"], facts.ledger()) == (MATCHED, [])
    assert facts.query("SELECT to_regnamespace('headrace')") == [(None,)]
    assert facts.leftovers() == []
    checked = headrace(facts, "check", "--connect", "--json")
    opened = {own["connection"]: own["problems"] for own in json.loads(checked.stdout)["destinations"]}
    assert opened == {"other": [], "warehouse": []}
    facts.package(
        PACKAGE.replace("input: keyed, connection: warehouse", "input: keyed, connection: other").replace(
            LOOKUP, QUERY.replace("FROM parts", "FROM prats")
        )
    )
    checked = headrace(facts, "check", "--connect", "--json")
    problem = 'lookup keyed: PostgreSQL refused (relation "prats" does not exist (SQLSTATE 42P01))'
    opened = {own["connection"]: own["problems"] for own in json.loads(checked.stdout)["destinations"]}
    assert (checked.exit_code, opened) == (1, {"other": [], "warehouse": [problem]})


def container(*members: str) -> str:
    """The package with these tasks in one transaction, behind its own task's head."""
    head, _, _ = PACKAGE.partition("tasks:\n")
    inside = "".join(f"        {text}\n" for member in members for text in member.splitlines())
    return f"{head}tasks:\n  all:\n    sequence:\n      transaction: warehouse\n      tasks:\n{inside}"


def member(name: str, lookup: str = LOOKUP, table: str = "facts") -> str:
    """The flow as a member of a container."""
    flow = PACKAGE.partition("tasks:\n")[2].replace(LOOKUP, lookup).replace("table: facts", f"table: {table}")
    return "\n".join(text.removeprefix("  ") for text in flow.replace("  load:", f"  {name}:", 1).splitlines())


LOAD_PARTS = """new_parts:
  data_flow:
    sources: {parts: {connection: inbox, files: parts.csv, layout: parts}}
    destinations: {out: {input: parts, connection: warehouse, table: parts, target: replace}}"""
ADD_PARTS = """more: {sql: {connection: warehouse, text: "DELETE FROM parts"}}"""


@pytest.mark.parametrize("name", ["loaded", "sql", "view", "query"])
def test_in_a_transaction_a_lookup_is_not_to_miss_what_members_before_change(facts: PostgresProject, name: str) -> None:
    facts.file("parts.csv", "1|2|three\n")
    facts.execute("CREATE VIEW shown AS SELECT * FROM parts")
    lookup = {"view": "{connection: warehouse, table: shown,", "query": QUERY}.get(name, LOOKUP)
    before = ADD_PARTS if name == "sql" else LOAD_PARTS
    flow = member("load", lookup).replace("load:", "load:\n  after: " + before[: before.index(":")], 1)
    facts.package(container(before, flow))
    ended = facts.run()
    assert ended.exit_code == 1
    assert_snapshot(f"postgres_lookup_transaction_{name}", facts.stable(ended.error))
    assert (facts.query("SELECT count(*) FROM parts"), facts.leftovers()) == ([(str(PARTS),)], [])


def test_in_a_transaction_a_lookup_of_another_table_is_read(facts: PostgresProject) -> None:
    second = member("again", table="again").replace("again:", "again:\n  after: load", 1)
    facts.package(container(member("load"), second))
    facts.run().succeeded()
    assert facts.query(FOUND) == facts.query(FOUND.replace("facts", "again")) == [ALL]


def test_a_lookup_of_its_own_table(facts: PostgresProject) -> None:
    facts.execute("CREATE TABLE facts (line bigint, part_sk int)", "INSERT INTO facts SELECT generate_series(0, 99), 5")
    lookup = "{connection: warehouse, table: facts, on: {line: line}, add: {part_sk: part_sk}, no_match: {default: 0}}"
    before, _, rest = PACKAGE.partition("          lookup: ")
    own = f"{before}          lookup: {lookup}\n      destinations:{rest.partition('      destinations:')[2]}"
    own = own.replace("target: replace", "target: replace, columns: {line: line, part_sk: part_sk}")
    facts.package(own)
    assert keyed(facts.run())["matched"] == 100
    assert facts.query("SELECT sum(part_sk) FROM facts") == [("500",)]
    facts.package(own.replace("target: replace", "target: append"))
    ended = facts.run()
    assert (ended.exit_code, "reads the table to which its own rows are appended" in ended.error) == (1, True)


def test_what_a_flow_before_makes(facts: PostgresProject) -> None:
    """A table that it creates is known before the run; a query of it is asked when its flow starts."""
    facts.execute("DROP TABLE parts")
    facts.file("parts.csv", "".join(f"{key}|{key * 3 + 1}|part's {key}\n" for key in range(PARTS)))
    head, _, flow = PACKAGE.partition("tasks:\n")
    first = "".join(f"  {text}\n" for text in LOAD_PARTS.replace("target: replace", "target: create").splitlines())
    flow = flow.replace("  load:", "  load:\n    after: new_parts", 1)
    facts.package(f"{head}tasks:\n{first}{flow}")
    planned = headrace(facts, "plan", "--json")
    _, task = json.loads(planned.stdout)["tasks"]
    assert "lookup keyed: a task before may change its table: it is read as it is when the flow starts" in task["notes"]
    assert keyed(facts.run())["lookup"]["rows"] == PARTS
    assert facts.query(FOUND) == [ALL]
    facts.execute("DROP TABLE parts")
    facts.package(f"{head}tasks:\n{first}{flow.replace(LOOKUP, QUERY)}")
    planned = headrace(facts, "plan")
    assert planned.exit_code == 0, planned.stderr
    assert "the query of its lookup `keyed` may read what `new_parts` loads" in " ".join(planned.stdout.split())
    assert keyed(facts.run())["lookup"]["rows"] == PARTS


def test_the_first_of_a_query_and_its_values(facts: PostgresProject) -> None:
    facts.execute("INSERT INTO parts SELECT p_key, 0, 'older' FROM parts")
    first = QUERY.replace("$least", "$least ORDER BY parts.p_name <> 'older' DESC, p_key")
    facts.package(PACKAGE.replace(LOOKUP, first + " duplicates: first,"))
    own = keyed(facts.run("--set", "least=1000"))
    assert (own["lookup"]["rows"], own["lookup"]["duplicates"]) == (PARTS - 1000, PARTS - 1000)
    assert facts.query("SELECT min(part), bool_and(part_sk = part * 3 + 1) FROM facts WHERE part_sk >= 0") == [
        ("1000", "t")
    ]


SLOW = "CREATE VIEW slow AS SELECT n::int8 AS p_key, 1 AS p_sk, '' AS p_name FROM generate_series(1, 2) n, pg_sleep(60)"
READING = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%lookup%' AND state = 'active'"


def test_ctrl_c_while_a_table_is_read(facts: PostgresProject) -> None:
    """The server stops, too: its session is gone long before it would have ended."""
    facts.execute(SLOW)
    facts.package(PACKAGE.replace(LOOKUP, "{connection: warehouse, table: slow,"))
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, "lookup_started", lookup="keyed")
        wait_until(lambda: facts.query(READING) == [("1",)])
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code == 3
    assert (facts.ledger(), facts.leftovers()) == (["cancelled"], [])


def test_a_lost_connection_can_be_tried_again(facts: PostgresProject) -> None:
    facts.execute(
        "CREATE TABLE gate AS SELECT 1",
        "CREATE VIEW slow AS SELECT * FROM parts WHERE (SELECT count(pg_sleep(60)) FROM gate) >= 0",
    )
    package = PACKAGE.replace(LOOKUP, "{connection: warehouse, table: slow,")
    facts.package(package.replace("    data_flow:", "    retry: {times: 1, wait_seconds: 0}\n    data_flow:"))
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, "lookup_started", lookup="keyed")
        wait_until(lambda: facts.query(READING) == [("1",)])
        facts.execute("DELETE FROM gate")
        facts.target.psql(READING.replace("count(*)", "pg_terminate_backend(pid)"))
        ended = running.wait()
    assert keyed(ended)["matched"] == MATCHED
    failed = [event for event in facts.events() if event["event"] == "task_finished" and event["status"] == "failed"]
    assert "reading table warehouse.public.slow for lookup `keyed`" in failed[0]["error"]["what"]


def test_a_place_that_was_lost_is_asked_again(facts: PostgresProject) -> None:
    """Its control session has ended since it was loaded into, which the first try finds out."""
    facts.file("parts.csv", "".join(f"{key}|{key * 3 + 1}|part's {key}\n" for key in range(PARTS)))
    head, _, flow = PACKAGE.partition("tasks:\n")
    first = "".join(f"  {text}\n" for text in LOAD_PARTS.splitlines())
    ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%control'"
    lost = f'  lost: {{after: new_parts, sql: {{connection: warehouse, text: "{ending}"}}}}\n'
    flow = flow.replace("  load:", "  load:\n    after: lost\n    retry: {times: 1, wait_seconds: 0}", 1)
    flow = flow.replace("input: keyed, connection: warehouse", "input: keyed, connection: other")
    facts.package(f"{head}tasks:\n{first}{lost}{flow}")
    assert keyed(facts.run())["matched"] == MATCHED


def test_a_resumed_run_needs_the_table_of_its_first_rows(facts: PostgresProject) -> None:
    late = LINES * 3 // 4
    facts.execute(f"CREATE TABLE facts (line bigint, part int, part_sk int, part_name text, CHECK (line <> {late}))")
    appended = "table: facts, target: append, load: single, commit: {rows: 2000}, columns: {line: line, part: part, "
    package = PACKAGE.replace("table: facts, target: replace", f"{appended}part_sk: part_sk, part_name: part_name}}")
    facts.package(package)
    assert facts.run("--streams", "1").exit_code == 1
    assert 0 < int(facts.query("SELECT count(*) FROM facts")[0][0] or 0) < late
    facts.execute("ALTER TABLE facts DROP CONSTRAINT facts_line_check; UPDATE parts SET p_sk = -5 WHERE p_key = 2999")
    refused = facts.resume()
    assert (refused.exit_code, "lookup `keyed` has other rows" in refused.error) == (1, True)
    facts.execute("UPDATE parts SET p_sk = p_key * 3 + 1")
    facts.resume().succeeded()
    assert facts.query(FOUND) == [ALL]


@pytest.mark.parametrize("moment", ["lookup_started", "lookup_read"])
def test_a_killed_run_is_resumed(facts: PostgresProject, moment: str) -> None:
    with facts.started(facts.arguments()) as running:
        facts.wait_for_event(running, moment, lookup="keyed")
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = facts.resume()
    if resumed.exit_code:  # it had ended before
        assert facts.ledger() == ["success"]
    assert facts.query(FOUND) == [ALL]


def test_plan_and_check_tell_of_tables_and_queries(facts: PostgresProject) -> None:
    facts.target.psql("ANALYZE parts")
    (task,) = json.loads(headrace(facts, "plan", "--json").stdout)["tasks"]
    (own,) = task["transforms"]
    assert own["text"].startswith("keyed: about 3,000 rows of warehouse.parts, up to ")
    assert [column["type"] for column in own["added"]] == ["int32", "string"]
    facts.package(PACKAGE.replace(LOOKUP, QUERY))
    (task,) = json.loads(headrace(facts, "plan", "--json").stdout)["tasks"]
    (own,) = task["transforms"]
    assert own["text"] == (
        "keyed: rows of a query of warehouse; adds part_sk int32, part_name string; no match: -1, NULL"
    )
    (flow,) = json.loads(headrace(facts, "check", "--json").stdout)["data_flows"]
    source = flow["transforms"][0]["source"]
    assert (source["name"], source["connection"]) == ("keyed", "warehouse")
    assert source["query"].startswith("SELECT $prefix || p_key")


def test_a_large_table_is_read_by_several_sessions(facts: PostgresProject) -> None:
    facts.execute("DROP TABLE parts", *LARGE_PARTS)
    (task,) = json.loads(headrace(facts, "plan", "--json").stdout)["tasks"]
    ended = facts.run("--streams", "4")
    own = keyed(ended)
    assert (own["lookup"]["rows"], own["matched"]) == (50_000, LINES)
    run_id = ended.succeeded()["run_id"]
    said = [text for text in facts.target.cluster.log_text().splitlines() if run_id[-6:] in text]
    ranges = {text.partition("WHERE ctid")[2] for text in said if "WHERE ctid" in text}
    assert task["transforms"][0]["sessions"] == len(ranges) == 3
    # All of one moment, in which nothing is changed.
    begun = [text for text in said if "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" in text and "statement" in text]
    snapshots = {text.partition("SET TRANSACTION SNAPSHOT")[2] for text in begun}
    assert (len([text for text in begun if "SNAPSHOT" in text]), len(snapshots)) == (2, 2)
    one = keyed(facts.run("--streams", "1"))
    assert one["lookup"]["fingerprint"] == own["lookup"]["fingerprint"]


def test_a_replay_finds_rows_of_the_table_that_came_meanwhile(facts: PostgresProject) -> None:
    default = ",\n                   no_match: {default: {part_sk: -1, part_name: null}}}"
    assert default in PACKAGE
    facts.package(PACKAGE.replace(default, "}").replace("limit: 100}", "limit: 20000}"))
    (table,) = facts.run().succeeded()["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (MATCHED, LINES - MATCHED)
    facts.execute("INSERT INTO parts SELECT n, n * 3 + 1, 'part''s ' || n FROM generate_series(3000, 3999) AS n")
    command = [sys.executable, "-m", "headrace"]
    facts.command([*command, "rejects", "--runs-dir", "runs", "last", "--copy", "again.csv"])
    again = facts.command([*command, "replay", "--runs-dir", "runs", "--json", "last", "again.csv"])
    (table,) = again.succeeded()["tables"]
    assert (table["rows_loaded"], table["rows_rejected"]) == (LINES - MATCHED, 0)
    assert facts.query(FOUND) == [(str(LINES), str(LINES), "0")]


def test_turns_of_a_loop_ask_with_their_own_values(facts: PostgresProject) -> None:
    head, _, flow = PACKAGE.partition("tasks:\n")
    query = QUERY.replace("$least", "$least AND p_key % 2 = CAST($turn AS bigint)")
    inside = "".join(f"        {text}\n" for text in flow.replace(LOOKUP, query).splitlines())
    loop = "  both:\n    foreach:\n      item: turn\n      in: [0, 1]\n      tasks:\n"
    inside = inside.replace("table: facts", 'table: "facts_${turn}"')
    facts.package(f"{head}tasks:\n{loop}{inside}")
    facts.run().succeeded()
    right = "bool_and(part % 2 = {0} AND part_sk = part * 3 + 1) FROM facts_{0} WHERE part_sk >= 0"
    for turn in (0, 1):
        assert facts.query(f"SELECT count(*) > 1000, {right.format(turn)}") == [("t", "t")]
