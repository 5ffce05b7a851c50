"""Queries over the rows of a data flow: what plain DuckDB gives over the same files, rejects, accounts, cancelling."""

from __future__ import annotations

import json
import signal
import sys
from math import isfinite
from pathlib import Path

import duckdb
import pytest

from tests.integration.driver import Ended, Project
from tests.integration.query_scenes import (
    COLUMNS,
    PRICED,
    ROWS,
    accounts,
    counts,
    differences,
    expected,
    order,
    package,
    source,
    write_files,
)
from tests.snapshots import assert_snapshot

CHAINS = {
    "priced": [PRICED],
    "renamed": ["SELECT id, price AS cost, quantity, upper(note) AS note FROM orders", "SELECT cost, note FROM q1"],
    "case": [
        "SELECT id, CASE WHEN quantity > 0 THEN 100 // quantity ELSE 0 END AS share, note LIKE 'note 1%' AS ones, "
        "coalesce(price, -1) AS price, date_trunc('month', day)::DATE AS month FROM orders WHERE paid IS NOT FALSE"
    ],
    "side table": [
        "SELECT o.*, m.label FROM orders AS o LEFT JOIN (VALUES (1, 'one'), (2, 'two')) AS m(k, label) "
        "ON m.k = o.quantity",
        "SELECT * EXCLUDE (note) REPLACE (lower(label) AS label) FROM q1 WHERE id IN "
        "(SELECT x * 2 FROM range(1000) AS t(x)) OR label IS NULL",
    ],
    "parts": [
        "WITH p AS (SELECT *, quantity + 1 AS more FROM orders WHERE quantity >= 0) "
        "SELECT p.id, more, x.price FROM (SELECT * FROM p WHERE more < 5) AS p, LATERAL (SELECT p.price * 2 AS price) x"
    ],
    "all columns": [
        "SELECT id, low FROM (SELECT id + 9000 AS id FROM orders) AS o, "
        "LATERAL (SELECT least(*COLUMNS(o.*)) AS low) AS x WHERE COLUMNS(*) > 9100"
    ],
    "nothing left": ["SELECT * FROM orders WHERE id < 0"],
    "all": ["FROM orders"],
}


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    return project


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_the_table_equals_the_query_of_duckdb(orders: Project, chain: list[str]) -> None:
    orders.package(package(*chain))
    for streams in ("1", "16") if chain == [PRICED] else ("16",):
        ended = orders.run("--streams", streams)
        only, missing, loaded = differences(orders, expected(orders, *chain))
        assert (only, missing) == (0, 0)
        account = accounts(ended)
        assert (account["rows_loaded"], account["rows_read"]) == (loaded, ROWS)
        assert account["rows_filtered"] == ROWS - loaded == ended.summary["rows_filtered"]
        first = ROWS
        for rows, went_on, left_out, rejected in counts(ended):
            assert (rows, went_on + left_out, rejected) == (first, rows, 0)
            first = went_on
        assert first == loaded


@pytest.fixture
def few(project: Project) -> Project:
    write_files(project, 240)
    return project


def judged(few: Project, sql: str) -> tuple[list[int], list[int]]:
    """Ids of the rows that come out when each is alone, and of those that fail."""
    loaded: list[int] = []
    failed: list[int] = []
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE all_orders AS {source(few.inbox)}")
        for (number,) in connection.execute("SELECT id FROM all_orders ORDER BY id").fetchall():
            connection.execute(f"CREATE OR REPLACE VIEW orders AS FROM all_orders WHERE id = {number}")
            try:
                rows = connection.execute(sql).fetchall()
            except duckdb.Error:
                failed.append(number)
                continue
            is_odd = any(isinstance(value, float) and not isfinite(value) for row in rows for value in row)
            (failed if is_odd else loaded).extend(number for _ in rows)
    return loaded, failed


@pytest.mark.parametrize(
    "expression",
    [
        "100 // quantity",
        "ratio / quantity",
    ],
)
def test_rows_that_fail_alone_are_rejects_however_they_are_cut(few: Project, expression: str) -> None:
    sql = f"SELECT id, {expression} AS x FROM orders WHERE paid IS NOT FALSE"
    loaded, failed = judged(few, sql)
    assert loaded and failed
    few.package(package(sql, limit=1000))
    for streams in ("1", "16"):
        account = accounts(few.run("--streams", streams))
        assert [row[0] for row in few.query("SELECT id FROM out ORDER BY 1")] == loaded
        assert account["rejects"]["by_rule"] == {"expression": len(failed)}
        (path,) = [Path(name) for name in account["rejects"]["files"] if name.endswith(".jsonl")]
        rejects = [json.loads(line) for line in path.read_text().splitlines()]
        assert {reject["code"] for reject in rejects} == {"HR603"}
        bad = path.with_suffix(".bad").read_text()
        assert [int(line.partition("|")[0]) for line in bad.splitlines()] == failed
        assert bad == "".join(map(order, failed))


def test_a_reject_says_what_duckdb_says(few: Project) -> None:
    few.package(package("SELECT id, 100 // (id - 7) AS x FROM orders"))
    ended = few.run()
    assert ended.exit_code == 1
    assert_snapshot("row_query_reject", ended.error.replace(str(few.folder), "FOLDER"))


def test_days_that_no_file_can_name_are_rejects(few: Project) -> None:
    sql = "SELECT id, (day + 2914000)::DATE AS late, 'infinity'::DATE AS e FROM orders WHERE id % 7 = 0"
    few.package(package(sql, limit=1000))
    account = accounts(few.run())
    assert (account["rows_filtered"], account["rows_rejected"]) == (205, 35)
    assert "none of 240 rows is left: table out is empty now" in account["notes"]
    assert "infinity is not a day in the years 1 to 9999" in account["rejects"]["first"][0]["message"]


NUL = "SELECT id, CASE WHEN id % 7 = 0 THEN note || chr(0) ELSE note END AS note FROM orders"


def test_texts_with_nul_are_rejects(few: Project) -> None:
    few.package(package(NUL, limit=1000))
    account = accounts(few.run())
    ((wrong,),) = few.query(f"SELECT count(*) FROM ({source(few.inbox)}) WHERE id % 7 = 0 AND note IS NOT NULL")
    assert (account["rows_rejected"], account["rejects"]["by_rule"]) == (wrong, {"expression": wrong})
    assert account["rows_loaded"] == account["rows_read"] - wrong
    assert "is not a text without NUL characters" in account["rejects"]["first"][0]["message"]


def test_rows_that_a_join_multiplies_are_rejects(few: Project) -> None:
    sql = "SELECT o.id, v FROM orders AS o JOIN (VALUES (1, 'a'), (1, 'b'), (2, 'c')) AS m(k, v) ON k = o.quantity"
    few.package(package(sql, limit=1000))
    account = accounts(few.run())
    ones = few.query(f"SELECT count(*) FROM ({source(few.inbox)}) WHERE quantity = 1")[0][0]
    twos = few.query(f"SELECT count(*) FROM ({source(few.inbox)}) WHERE quantity = 2")[0][0]
    assert (account["rejects"]["by_rule"], account["rows_loaded"]) == ({"expression": ones}, twos)
    message = account["rejects"]["first"][0]["message"]
    assert message == "transform `q1`: the query makes 2 rows of this one, by a join or a list"


def test_values_of_variables_are_bound(few: Project) -> None:
    few.package(package("SELECT id, quantity * $factor AS x, $word AS w FROM orders WHERE note <> $word"))
    few.run("--set", "word=a 'b' $factor", factor=5).succeeded()
    rows = few.query(f"SELECT count(*) FROM ({source(few.inbox)}) WHERE note <> ''")[0][0]
    assert few.query("SELECT count(*), min(w), max(w), typeof(min(x)) FROM out") == [
        (rows, "a 'b' $factor", "a 'b' $factor", "BIGINT")
    ]


def test_values_of_every_type_pass_as_they_are(project: Project) -> None:
    types = {
        "a": ("int16", "-32768"), "b": ("int64", "9223372036854775807"),
        "c": ("decimal(38,10)", "1234567890.0123456789"), "d": ("decimal(4,1)", "-7.5"),
        "e": ("float32", "1.5"), "f": ("float64", "nan"), "g": ("bool", "true"),
        "h": ("date", "0001-01-01"), "i": ("time", "23:59:59.999999"), "j": ("timestamp", "9999-12-31 23:59:59.999999"),
        "k": ("timestamptz", "2024-07-01 12:00:00+02:00"), "l": ("string", "a text of more than twelve bytes"),
        "m": ("varchar(5)", "abcde"), "n": ("bytes", "00ff"), "o": ("uuid", "6f9619ff-8b86-d011-b42d-00c04fc964ff"),
        "p": ("json", '{"a": [1]}'),
    }  # fmt: skip
    layout = "".join(f'      - {{name: {name}, type: "{own}"}}\n' for name, (own, _) in types.items())
    text = package("SELECT * FROM orders WHERE a < 0", "SELECT *, COLUMNS(*)::VARCHAR AS 't_\\0' FROM q1")
    begin = text.index("      - {name: id")
    text = text[:begin] + layout + text[text.index("  parts:\n") :]
    project.package(text)
    project.file("orders.1", "|".join(value for _, value in types.values()) + "\n" + "0" + "|" * 15 + "\n")
    project.run().succeeded()
    assert project.query(f"SELECT {', '.join(f'{name}::VARCHAR = t_{name}' for name in types)} FROM out") == [
        (True,) * len(types)
    ]
    (found,) = project.query("SELECT typeof(c), typeof(n), typeof(o), typeof(p), typeof(k), f, e FROM out")
    assert str(found) == "('DECIMAL(38,10)', 'BLOB', 'UUID', 'JSON', 'TIMESTAMP WITH TIME ZONE', nan, 1.5)"


def test_null_and_long_texts_for_a_table_that_takes_none_are_rejects(few: Project) -> None:
    few.execute("CREATE TABLE out (id BIGINT, note VARCHAR NOT NULL, double INTEGER NOT NULL)")
    sql = "SELECT id, note, quantity * 2 AS double FROM orders WHERE price IS NOT NULL"
    few.package(package(sql, limit=1000, destination="table: out, target: append"))
    account = accounts(few.run())
    rows = few.query(
        f"SELECT count(*) FROM ({source(few.inbox)}) WHERE price IS NOT NULL AND (note IS NULL OR quantity IS NULL)"
    )[0][0]
    assert account["rejects"]["by_rule"] == {"null_not_allowed": rows}
    assert account["rejects"]["first"][0]["message"] == "no value for column `note`: transform `q1` gives NULL"


LOOKUP = (
    "keyed: {{input: {input}, lookup: {{connection: inbox, files: parts.csv, layout: parts, on: {{{on}: key}}, "
    "add: [sk], no_match: {no_match}}}}}"
)


def test_queries_before_and_behind_lookups(orders: Project) -> None:
    keyed = LOOKUP.format(input="q1", on="q", no_match="{default: -1}")
    behind = 'last: {input: keyed, sql: "SELECT id, q, sk + 1 AS sk1 FROM keyed WHERE sk > 0 OR q = 5"}'
    orders.package(package("SELECT id, quantity AS q FROM orders WHERE quantity >= 0", transforms=[keyed, behind]))
    first, lookup, last = accounts(orders.run())["transforms"]
    assert (first["matched"], lookup["rows"]) == (lookup["rows"], last["rows"])
    sql = f"""SELECT id, quantity AS q, coalesce(key * 10, -1) + 1 AS sk1 FROM ({source(orders.inbox)}) LEFT JOIN
        (VALUES (0), (2), (4), (6)) AS p(key) ON quantity = key
        WHERE quantity >= 0 AND (coalesce(key * 10, -1) > 0 OR quantity = 5)"""
    assert differences(orders, sql)[:2] == (0, 0)


def test_places_of_rejects_behind_a_query(few: Project) -> None:
    """Positions are those of the file, whatever was left out before."""
    keyed = LOOKUP.format(input="q1", on="quantity", no_match="reject")
    few.package(
        package("SELECT id, quantity FROM orders WHERE id % 3 = 1 AND quantity >= 0", limit=999, transforms=[keyed])
    )
    account = accounts(few.run("--streams", "1"))
    (path,) = [Path(name) for name in account["rejects"]["files"] if name.endswith(".jsonl")]
    rejects = [json.loads(line) for line in path.read_text().splitlines()]
    wanted = [n for n in range(240) if n % 3 == 1 and n % 19 and n % 7 - 1 >= 0 and (n % 7 - 1) % 2]
    assert [reject["row"] - 1 + 80 * (reject["file_number"] - 1) for reject in rejects] == wanted
    assert {(reject["code"], reject["column"]) for reject in rejects} == {("HR602", "quantity")}


def test_rejects_can_be_repaired_and_replayed(few: Project) -> None:
    sql = "SELECT id, 12 // quantity AS x FROM orders WHERE quantity >= 0 AND id <> 1000"
    few.package(package(sql, limit=1000))
    first = few.run()
    zeros = accounts(first)["rows_rejected"]
    assert zeros > 0
    headrace = [sys.executable, "-m", "headrace"]
    few.command([*headrace, "rejects", "--runs-dir", "runs", "last", "--copy", "again.csv"])
    lines = (few.folder / "again.csv").read_text().splitlines(True)
    repaired = [line.replace("|0|", "|3|", 1) for line in lines]
    repaired[0] = "1000" + repaired[0][repaired[0].index("|") :]
    (few.folder / "again.csv").write_text("".join(repaired))
    again = few.command([*headrace, "replay", "--runs-dir", "runs", "--json", "last", "again.csv"])
    assert again.succeeded()["replay"] | {"of_run": ""} == {
        "of_run": "", "numbers": zeros, "loaded": zeros - 1, "rejected_again": 0, "filtered": 1, "dropped": 0,
        "rows_added": 0, "open": 0,
    }  # fmt: skip
    assert few.query("SELECT count(*) FROM out WHERE x = 4")[0][0] >= zeros - 1
    told = few.command([*headrace, "rejects", "--runs-dir", "runs", "--json", first.summary["run_id"]])
    (table,) = told.succeeded()["tables"]
    assert [table[name] for name in ("rejected", "loaded", "filtered", "open")] == [zeros, zeros - 1, 1, 0]


def test_the_second_pass_goes_through_the_query(few: Project) -> None:
    few.execute("CREATE TABLE out (id BIGINT, twin BIGINT UNIQUE)")
    sql = "SELECT id, CASE WHEN id = 200 THEN 100 ELSE id END AS twin FROM orders WHERE id % 2 = 0"
    few.package(package(sql, destination="table: out, target: append"))
    ended = few.run()
    assert ended.exit_code == 1
    assert_snapshot("row_query_second_pass", ended.error.replace(str(few.folder), "FOLDER"))


def test_a_long_query_is_cancelled(few: Project) -> None:
    """It would take an hour."""
    pairs = "SELECT count(*) FROM range(10000000) AS a(x), range(1000000) AS b(y) WHERE x * y = 7"
    few.package(package(f"SELECT id, ({pairs}) AS x FROM orders"))
    with few.started(few.arguments("--streams", "2")) as running:
        few.wait_for_event(running, "progress")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert (ended.exit_code, ended.summary["status"]) == (3, "cancelled"), ended.stderr
    assert few.tables() == [] or few.query("SELECT count(*) FROM out") == [(0,)]


def test_a_failure_that_no_row_is_to_blame_for_names_the_transform(few: Project) -> None:
    few.package(package("SELECT id, repeat(note, 100000000) AS x FROM orders", limit=1000))
    ended = few.run("--streams", "1")
    assert ended.exit_code == 1
    text = ended.error.replace(str(few.folder), "FOLDER")
    assert text.startswith("error: the query of transform `q1` failed\n") and "Out of Memory" in text
    assert "hint: Set a larger `memory`" in text


def test_made_columns_are_those_of_the_row(few: Project) -> None:
    made = (
        "      - {name: row, type: int64, nullable: false, from: row_number}\n"
        "      - {name: file, type: string, nullable: false, from: file_name}\n"
    )
    few.package(package("SELECT id, row * 2 AS twice, file || '!' AS f FROM orders WHERE id % 5 = 0", more=made))
    few.run().succeeded()
    rows = few.query("SELECT id, twice, f FROM out ORDER BY id")
    assert rows == [(n, 2 * (n % 80 + 1), f"orders.{n // 80}!") for n in range(0, 240, 5)]


def test_queries_behind_a_join(project: Project) -> None:
    text = package("SELECT o.*, o.price * 2 AS twice FROM joined AS o WHERE quantity > 1")
    text = text.replace("input: orders, sql", "input: joined, sql")
    text = text.replace(
        "      transforms:\n",
        "        parts: {connection: inbox, files: parts.csv, layout: parts}\n      transforms:\n"
        "        joined: {join: {left: parts, right: orders, on: {key: id}, right_columns: [id, price, quantity]}}\n",
    )
    project.package(text)
    project.file("orders.1", "".join(map(order, range(20))))
    project.file("parts.csv", "".join(f"{key},{key * 10}\n" for key in range(0, 20, 2)))
    account = accounts_of_join(project.run())
    assert project.query("SELECT key, sk, id, quantity, twice = 2 * price FROM out ORDER BY key") == [
        (n, 10 * n, n, n % 7 - 1, True) for n in range(0, 20, 2) if n % 19 and n % 7 - 1 > 1
    ]
    assert account["rows_filtered"] == 10 - account["rows_loaded"]
    # What fails is a reject of the right row, which stands for the joined one.
    text = text.replace("o.price * 2", "1 // (id - 4)").replace("table: out", "table: o2")
    project.package(text)
    failed = project.run()
    assert failed.exit_code == 1
    assert_snapshot("row_query_joined_reject", failed.error.replace(str(project.folder), "FOLDER"))
    project.package(text.replace("limit: 0", "limit: 1"))
    again = accounts_of_join(project.run())
    assert (again["rows_rejected"], again["rows_loaded"], again["rows_filtered"]) == (
        1,
        account["rows_loaded"] - 1,
        account["rows_filtered"],
    )


def accounts_of_join(ended: Ended) -> dict[str, int]:
    (table,) = ended.succeeded()["tables"]
    found: dict[str, int] = table
    return found


def test_into_nothing_and_aggregates(few: Project) -> None:
    few.package(package("SELECT id, quantity + 1 AS more FROM orders WHERE id < 10"))
    ended = few.run("--connection", "warehouse=null:")
    (table,) = ended.succeeded()["tables"]
    more = {column["name"]: column for column in table["columns"]}["more"]
    assert (table["rows_loaded"], table["rows_filtered"], more["rows"], more["min"]) == (10, 230, 10, "0")


def test_the_columns_of_the_layout_are_all_there(few: Project) -> None:
    few.package(package("SELECT " + ", ".join(reversed(COLUMNS)) + " FROM orders"))
    few.run().succeeded()
    assert [row[0] for row in few.query("DESCRIBE out")] == list(reversed(COLUMNS))
