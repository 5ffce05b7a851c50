"""More than one join in a data flow: the rows that DuckDB's own joins give, whatever the streams; what stands between
joins and behind them; order, files, rejects, messages.
"""

from __future__ import annotations

import gzip
import json
import signal
import sys
import textwrap

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.join_tree_scenes import (
    DETAILED,
    DETAILED_SQL,
    KINDS,
    SENT,
    SENT_SQL,
    expected,
    joined,
    package,
    stored,
    write_files,
)
from tests.snapshots import assert_snapshot


@pytest.fixture
def sales(project: Project) -> Project:
    write_files(project)
    project.package(package([DETAILED, SENT]))
    return project


def headrace(project: Project, *arguments: str) -> Ended:
    return project.command([sys.executable, "-m", "headrace", *arguments, "--runs-dir", "runs"])


def of_kind(join: str, kind: str) -> str:
    return join.replace("on:", f"type: {kind}, on:")


def behind(rows: str) -> str:
    """The second join, of what the first one has become."""
    return SENT.replace("right: detailed", f"right: {rows}")


@pytest.mark.parametrize("inner", KINDS)
@pytest.mark.parametrize("outer", KINDS)
def test_the_rows_are_those_of_two_joins_in_sql(sales: Project, inner: str, outer: str) -> None:
    sales.package(package([of_kind(DETAILED, inner), of_kind(SENT, outer)]))
    detailed = f"SELECT * FROM orders {inner} JOIN lines ON o_key = l_key"
    wanted = expected(sales, f"SELECT * FROM parcels {outer} JOIN ({detailed}) ON p_key = o_key")
    accounts = []
    for streams in (1, 16):
        accounts.append(joined(sales.run(streams=streams)))
        assert stored(sales) == wanted, streams
    assert accounts[0] == accounts[1]
    account = accounts[0]
    told = account["right"]["join"]
    assert (account["name"], account["rows_out"], told["name"]) == ("sent", len(wanted), "detailed")
    assert told["rows_out"] == account["right"]["rows"] == len(expected(sales, detailed))
    for join, kind in ((account, outer), (told, inner)):
        for side in ("left", "right"):
            own = join[side]
            assert own["rows"] == own["matched"] + own["unmatched"]
            assert own["filtered"] == (0 if kind in (side, "full") else own["unmatched"])
    read = {source: len(expected(sales, f"FROM {source}")) for source in ("parcels", "orders", "lines")}
    assert read == {"parcels": account["left"]["rows"], "orders": told["left"]["rows"], "lines": told["right"]["rows"]}


SHAPES = {
    "left_deep": (
        [
            "paid: {join: {left: orders, right: bills, on: {o_key: b_key}, type: left}}",
            "sent: {join: {left: paid, right: parcels, on: {o_key: p_key}, type: full}}",
            "last: {join: {left: sent, right: lines, on: {o_key: l_key}, type: right}}",
        ],
        "SELECT * FROM ((orders LEFT JOIN bills ON o_key = b_key) FULL JOIN parcels ON o_key = p_key) "
        "RIGHT JOIN lines ON o_key = l_key",
    ),
    "right_deep": (
        [
            "last: {join: {left: bills, right: sent, on: {b_key: p_key}, type: full}}",
            "sent: {join: {left: parcels, right: detailed, on: {p_key: l_key}, type: right}}",
            "detailed: {join: {left: orders, right: lines, on: {o_key: l_key}, type: right}}",
        ],
        "SELECT * FROM bills FULL JOIN (SELECT * FROM parcels RIGHT JOIN (SELECT * FROM orders RIGHT JOIN lines ON "
        "o_key = l_key) ON p_key = l_key) ON b_key = p_key",
    ),
    "bushy": (
        [
            "paid: {join: {left: orders, right: bills, on: {o_key: b_key}, type: full}}",
            "sent: {join: {left: parcels, right: lines, on: {p_key: l_key}, type: left}}",
            "last: {join: {left: paid, right: sent, on: {b_key: p_key}, type: left}}",
        ],
        "SELECT * FROM (SELECT * FROM orders FULL JOIN bills ON o_key = b_key) LEFT JOIN (SELECT * FROM parcels "
        "LEFT JOIN lines ON p_key = l_key) ON b_key = p_key",
    ),
    "columns": (
        [
            "sent: {join: {left: parcels, right: detailed, on: {p_key: l_key}, left_columns: {k: p_key}, "
            "right_columns: {note: l_note, p_value: o_value}}}",
            "detailed: {join: {left: orders, right: lines, on: {o_key: l_key}, left_columns: [o_value], "
            "right_columns: [l_note, l_key]}}",
            "last: {join: {left: bills, right: sent, on: {b_key: k}, left_columns: [b_value]}}",
        ],
        "SELECT b_value, p_key AS k, l_note AS note, o_value AS p_value FROM bills JOIN (SELECT p_key, l_note, o_value "
        "FROM parcels JOIN (SELECT * FROM orders JOIN lines ON o_key = l_key) ON p_key = l_key) ON b_key = p_key",
    ),
}


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_trees_of_any_shape_give_the_rows_of_sql(sales: Project, shape: str) -> None:
    transforms, sql = SHAPES[shape]
    sales.package(package(transforms, {"facts": "last"}, sources=("orders", "lines", "parcels", "bills")))
    wanted, accounts = expected(sales, sql), []
    assert len(wanted) > 500
    for streams in (1, 16):
        accounts.append(joined(sales.run(streams=streams)))
        assert stored(sales) == wanted, streams
    assert accounts[0] == accounts[1]


BETWEEN = {
    "query": (
        ['priced: {input: detailed, sql: "SELECT *, l_value * 2 AS twice FROM detailed WHERE o_value < 60"}'],
        "priced",
        "SELECT *, l_value * 2 AS twice FROM ({detailed}) WHERE o_value < 60",
    ),
    "lookup": (
        [
            "priced: {input: detailed, lookup: {connection: inbox, files: labels.csv, layout: labels, "
            "on: {l_value: code}, add: [label], no_match: output}, discard: [no_match]}"
        ],
        "priced",
        "SELECT * FROM ({detailed}) JOIN labels ON l_value = code",
    ),
    "defaults": (
        [
            "priced: {input: detailed, lookup: {connection: inbox, files: labels.csv, layout: labels, "
            "on: {l_value: code}, add: [label], no_match: {default: none}}}"
        ],
        "priced",
        "SELECT * EXCLUDE (label, code), coalesce(label, 'none') FROM ({detailed}) LEFT JOIN labels ON l_value = code",
    ),
    "split": (
        ['priced: {input: detailed, split: {cheap: "l_value < 50"}, discard: [rest]}'],
        "priced.cheap",
        "SELECT * FROM ({detailed}) WHERE l_value < 50",
    ),
    "union": (
        [
            'parted: {input: detailed, split: {cheap: "l_value < 50", dear: "l_value > 70"}, discard: [rest]}',
            'dearer: {input: parted.dear, sql: "SELECT * REPLACE (l_value + 1 AS l_value) FROM parted"}',
            "priced: {union: {inputs: [parted.cheap, dearer]}}",
        ],
        "priced",
        "SELECT * REPLACE (IF(l_value > 70, l_value + 1, l_value) AS l_value) FROM ({detailed}) "
        "WHERE l_value < 50 OR l_value > 70",
    ),
    "everywhere": (
        [
            'open: {input: orders, sql: "SELECT o_key, o_note FROM orders WHERE o_value > 10"}',
            "detailed: {join: {left: open, right: lines, on: {o_key: l_key}}}",
            'big: {input: parcels, split: {big: "p_value > 20"}, discard: [rest]}',
            'priced: {input: detailed, sql: "SELECT o_key, l_value FROM detailed WHERE l_value > 5"}',
            "sent: {join: {left: big.big, right: priced, on: {p_key: o_key}}}",
            'last: {input: sent, sql: "SELECT *, p_value + l_value AS sum FROM sent WHERE l_value < 80"}',
        ],
        "",
        "SELECT p_key, p_value, p_note, o_key, l_value, p_value + l_value AS sum FROM parcels JOIN (SELECT o_key, "
        "l_value FROM orders JOIN lines ON o_key = l_key WHERE o_value > 10 AND l_value > 5) ON p_key = o_key "
        "WHERE p_value > 20 AND l_value < 80",
    ),
}


@pytest.mark.parametrize("name", sorted(BETWEEN))
def test_transforms_between_joins(sales: Project, name: str) -> None:
    transforms, rows, sql = BETWEEN[name]
    text = package([DETAILED, *transforms, behind(rows)]) if rows else package(transforms, {"facts": "last"})
    sales.package(text)
    between = sql.format(detailed=DETAILED_SQL)
    wanted = expected(sales, f"SELECT * FROM parcels JOIN ({between}) ON p_key = o_key" if rows else between)
    if name == "lookup":
        wanted = expected(sales, f"SELECT * EXCLUDE (code) FROM parcels JOIN ({between}) ON p_key = o_key")
    assert len(wanted) > 100
    for streams in (1, 16):
        account = joined(sales.run(streams=streams))
        right = account["right"]
        assert stored(sales) == wanted
        assert right["join"]["rows_out"] == right["rows"] + right["filtered_in_front"]
        assert (right["filtered_in_front"] > 0) == (name != "defaults")


@pytest.mark.parametrize("between", [True, False])
def test_lookups_of_a_table_in_front_of_a_join(sales: Project, between: bool) -> None:
    """Their types are known when the run has looked: in front of an inner join, and between two."""
    sales.execute(
        "CREATE TABLE names AS SELECT range::INT AS code, 'n' || range AS label FROM range(100) WHERE range % 3 > 0"
    )
    source = "detailed" if between else "lines"
    keyed = (
        f"keyed: {{input: {source}, lookup: {{connection: warehouse, table: names, on: {{l_value: code}}, "
        "add: [label], no_match: output}, discard: [no_match]}"
    )
    joins = [DETAILED, behind("keyed")] if between else [DETAILED.replace("right: lines", "right: keyed"), SENT]
    sales.package(package([keyed, *joins]))
    sql = f"SELECT * FROM parcels JOIN (SELECT * FROM ({DETAILED_SQL}) JOIN labels ON l_value = code) ON p_key = o_key"
    joined(sales.run())
    assert stored(sales) == expected(sales, f"SELECT * EXCLUDE (code) REPLACE ('n' || code AS label) FROM ({sql})")


def test_compressed_files_meet(sales: Project) -> None:
    wanted = expected(sales, SENT_SQL)
    for path in [*sales.inbox.glob("lines.*"), *sales.inbox.glob("parcels.*")]:
        (path.parent / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    joined(sales.run(streams=3))
    assert stored(sales) == wanted


def test_a_small_budget_is_enough(sales: Project) -> None:
    wanted = expected(sales, SENT_SQL)
    ended = sales.run(memory="600MB", streams=16)
    assert (joined(ended)["rows_out"], stored(sales)) == (len(wanted), wanted)
    assert ended.summary["tables"][0]["memory"]["overdraft_blocks"] == 0


def test_a_table_that_is_there_refuses_null(sales: Project) -> None:
    """Rows that do not fit are rejects where they stand."""
    columns = "p_key BIGINT, p_value INT, p_note VARCHAR, o_key BIGINT, o_value INT NOT NULL, o_note VARCHAR"
    sales.execute(f"CREATE TABLE facts ({columns}, l_key BIGINT, l_value INT, l_note VARCHAR)")
    ended = sales.run(limit=100_000)
    account = joined(ended)
    rows = expected(sales, SENT_SQL)
    good = [row for row in rows if row[4] is not None]
    assert stored(sales) == good
    refused = len(rows) - len(good)
    assert [account[side]["rejected_behind"] for side in ("left", "right")] == [0, refused]
    assert account["right"]["join"]["right"]["rejected_behind"] == refused == ended.summary["rows_rejected"] > 0


def test_the_accounts_are_shown_and_kept(sales: Project) -> None:
    query = "SELECT *, IF(l_value = 20, error('x'), 1) AS odd FROM detailed WHERE l_value < 60"
    text = f'priced: {{input: detailed, sql: "{query}"}}'
    sales.package(package([DETAILED, text, of_kind(behind("priced"), "left")]))
    ended = sales.command([own for own in sales.arguments(limit=10_000) if own != "--json"])
    assert ended.exit_code == 0, ended.stderr
    account = next(part for part in ended.stdout.split("\n\n") if "came out" in part)
    assert_snapshot("join_tree_accounts", account)
    assert headrace(sales, "report", "last", "--output", "report.html").exit_code == 0
    page = (sales.folder / "report.html").read_text(encoding="utf-8")
    assert "do not balance" not in page and "detailed" in page
    events = [json.dumps(event) for event in sales.events() if event["event"] == "task_finished"]
    assert any('"detailed"' in event for event in events)


@pytest.mark.rotates
def test_joins_of_a_long_loop_are_added_up(project: Project) -> None:
    head, body = package([DETAILED, SENT]).replace("target: replace", "target: append").split("  load:\n")
    loop = "  turns:\n    foreach:\n      item: turn\n      range: {from: 1, to: 103}\n      tasks:\n        load:\n"
    project.package(head + loop + textwrap.indent(body, "      "))
    project.file("orders.1", "1|1|a\n3|1|a\n")
    project.file("lines.1", "1|1|a\n1|2|a\n2|3|a\n")
    project.file("parcels.1", "1|1|a\n9|1|a\n")
    summary = project.run().succeeded()
    assert (summary["rows_loaded"], summary["rows_filtered"], summary["rows_read"]) == (206, 309, 721)
    folded = summary["tables"][-1]["join"]
    told = folded["right"]["join"]
    assert (folded["rows_out"], told["rows_out"], told["left"]["rows"]) == (6, 6, 6)
    assert headrace(project, "report", "last", "--output", "report.html").exit_code == 0
    assert "do not balance" not in (project.folder / "report.html").read_text(encoding="utf-8")


def test_a_run_that_was_killed_goes_on(sales: Project) -> None:
    """What the first table has got is told as it was."""
    text = package([DETAILED, BETWEEN["query"][0][0], behind("priced")])
    task = text.split("tasks:\n", 1)[1]
    sales.package(text + task.replace("  load:", "  load_again:", 1).replace("table: facts,", "table: again,"))
    between = BETWEEN["query"][2].format(detailed=DETAILED_SQL)
    wanted = expected(sales, f"SELECT * FROM parcels JOIN ({between}) ON p_key = o_key")
    with sales.started(sales.arguments()) as running:
        sales.wait_for_event(running, "task_finished", table="facts")
        running.signal(signal.SIGKILL)
        running.wait()
    first, other = sales.resume().succeeded()["tables"]
    assert stored(sales) == stored(sales, "again") == wanted
    assert first["join"] == other["join"]
    assert [first[name] for name in ("rows_read", "rows_loaded", "lines")] == [
        other[name] for name in ("rows_read", "rows_loaded", "lines")
    ]


def test_joined_rows_are_verified_by_joining_once_more(sales: Project) -> None:
    sales.run().succeeded()
    (verified,) = headrace(sales, "verify", "last", "--json").summary["tables"]
    rows = len(expected(sales, SENT_SQL))
    assert (verified["status"], verified["rows_in_source"], verified["rows_in_table"]) == ("equal", rows, rows)
    sales.execute("UPDATE facts SET l_value = l_value + 1 WHERE l_key = (SELECT max(l_key) FROM facts)")
    (verified,) = headrace(sales, "verify", "last", "--json").summary["tables"]
    assert (verified["status"], {own["column"] for own in verified["differences"]}) == ("different", {"l_value"})


def test_the_plan_says_which_files_belong_together(sales: Project) -> None:
    sales.package(package([DETAILED, *BETWEEN["lookup"][0], behind("priced")]))
    sales.execute("SELECT 1")  # what is said of a file that is not there is wrapped by the length of its path
    shown = sales.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert_snapshot("join_tree_plan", sales.stable(shown.stdout))
