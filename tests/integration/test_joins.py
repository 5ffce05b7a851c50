"""Joins of files: the rows that DuckDB's own join gives, whatever the streams; order, pairs, rejects, messages."""

from __future__ import annotations

import gzip
import json
import signal
import sys
import textwrap
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.join_scenes import HEADER, PACKAGE, TYPES, expected, of_type, rows_of, write_files
from tests.snapshots import assert_snapshot


@pytest.fixture
def sales(project: Project) -> Project:
    project.package(of_type("inner"))
    write_files(project)
    return project


def stored(project: Project) -> list[tuple[Any, ...]]:
    return project.query("SELECT * FROM sales ORDER BY ALL")


def headrace(project: Project, *arguments: str) -> Ended:
    return project.command([sys.executable, "-m", "headrace", *arguments, "--runs-dir", "runs"])


def joined(ended: Ended) -> dict[str, Any]:
    (table,) = ended.succeeded()["tables"]
    account: dict[str, Any] = table["join"]
    return account


@pytest.mark.parametrize("kind", TYPES)
def test_the_rows_are_those_of_a_join_in_sql(sales: Project, kind: str) -> None:
    sales.package(of_type(kind))
    wanted = expected(sales, kind)
    accounts = []
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        assert stored(sales) == wanted, streams
        accounts.append(joined(ended))
    assert accounts[0] == accounts[1]
    account, summary = accounts[0], ended.summary
    assert (account["name"], account["type"], account["rows_out"]) == ("joined", kind, len(wanted))
    read = [sales.query(f"SELECT count(*) FROM ({side})")[0][0] for side in sides(sales)]
    assert [account[side]["rows"] for side in ("left", "right")] == read
    for side in ("left", "right"):
        own = account[side]
        assert own["rows"] == own["matched"] + own["unmatched"]
        assert own["null_keys"] > 0
        assert own["filtered"] == (0 if kind in (side, "full") else own["unmatched"])
    assert summary["rows_filtered"] == account["left"]["filtered"] + account["right"]["filtered"]
    assert summary["rows_read"] == sum(read)


def sides(project: Project) -> tuple[str, str]:
    inbox = project.folder / "inbox"
    return (
        f"FROM read_csv('{inbox}/orders.*', delim='|', header=false, auto_detect=false, columns="
        "{'a': 'BIGINT', 'b': 'VARCHAR', 'c': 'DATE'})",
        f"FROM read_csv('{inbox}/lines.*', delim=',', header=true, auto_detect=false, columns="
        "{'a': 'INTEGER', 'b': 'INTEGER', 'c': 'DECIMAL(9,2)'})",
    )


@pytest.mark.parametrize(
    "clauses",
    [
        "load: staged, partition: {hash: {column: o_key, parts: 3}}",
        "load: view, partition: {list: {column: o_day, values: {first: [2024-01-01], none: [null]}}, outside: default}",
    ],
)
def test_joined_rows_are_divided(sales: Project, clauses: str) -> None:
    """Twice, because the second run finds the table of the first."""
    package = of_type("full").replace("table: sales, ", f"table: sales, {clauses}, ")
    sales.package(package)
    for streams in (3, 2):
        sales.run(streams=streams).succeeded()
        assert stored(sales) == expected(sales, "full")


def test_compressed_files_are_joined(sales: Project) -> None:
    wanted = expected(sales, "inner")
    for path in (sales.folder / "inbox").glob("lines.*"):
        (path.parent / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    sales.run(streams=3).succeeded()
    assert stored(sales) == wanted


def test_a_small_budget_is_enough(sales: Project) -> None:
    ended = sales.run(streams=16, memory="400MB")
    assert len(stored(sales)) == joined(ended)["rows_out"]
    assert ended.summary["tables"][0]["memory"]["overdraft_blocks"] == 0


def test_lookups_find_by_columns_of_both_sides(sales: Project) -> None:
    looking = PACKAGE.replace(
        "      destinations:",
        """\
        priced:
          input: joined
          lookup: {query: "SELECT number, 10 * number AS tenfold FROM range(100000) AS r(number) WHERE number % 2 = 0",
                   on: {number: number}, add: [tenfold], no_match: {default: -1}}
        clerked:
          input: priced
          lookup: {query: "VALUES ('Clerk of 7', 'seven')", on: {o_clerk: col0}, add: {who: col1},
                   no_match: {default: null}}
      destinations:""",
    ).replace("input: joined, connection", "input: clerked, connection")
    sales.package(of_type("full", looking))
    ended = sales.run()
    count = joined(ended)["rows_out"]
    (table,) = ended.summary["tables"]
    assert [transform["rows"] for transform in table["transforms"]] == [count, count]
    assert [transform["slices_not_counted"] for transform in table["transforms"]] == [0, 0]
    assert len(stored(sales)) == count
    wrong = """SELECT count(*) FROM sales WHERE tenfold <> CASE WHEN number < 100000 AND number % 2 = 0
               THEN 10 * number ELSE -1 END OR (who IS NOT NULL) <> coalesce(o_clerk = 'Clerk of 7', false)"""
    assert sales.query(wrong) == [(0,)]
    assert sales.query("SELECT count(*) > 0 FROM sales WHERE who = 'seven'") == [(True,)]


def test_rows_that_find_nothing_behind_the_join_are_rejects_where_they_stand(sales: Project) -> None:
    """At their line; orders without one at the order. A clerk stands in the other file than the line."""
    looking = PACKAGE.replace(
        "      destinations:",
        """\
        found:
          input: joined
          lookup: {query: "FROM range(70000) AS r(number) WHERE number % 2 = 0", on: {number: number}, add: {n: number}}
        clerked:
          input: found
          lookup: {query: "SELECT 'Clerk of ' || range AS c FROM range(900)", on: {o_clerk: c}, add: {who: c}}
      destinations:""",
    ).replace("input: joined, connection", "input: clerked, connection")
    sales.package(of_type("full", looking))
    accounts = []
    for streams in (1, 16):
        ended = sales.run(streams=streams, limit=1_000_000)
        account = joined(ended)
        accounts.append((account, ended.summary["tables"][0]["rejects"]["by_rule"]))
        rows = expected(sales, "full")
        good = [
            row
            for row in rows
            if row[3] is not None and row[3] < 70000 and row[3] % 2 == 0 and row[1] and int(row[1][9:]) < 900
        ]
        # DuckDB reads the files once more: a line number is unique.
        assert sales.query("SELECT * EXCLUDE (n, who) FROM sales ORDER BY ALL") == good
        assert account["rows_out"] == len(rows)
        behind = account["left"]["rejected_behind"] + account["right"]["rejected_behind"]
        assert behind == len(rows) - len(good) == ended.summary["rows_rejected"]
        assert account["left"]["rejected_behind"] == sum(row[3] is None and row[5] is None for row in rows) > 0
    assert accounts[0] == accounts[1]
    (path,) = sorted(sales.runs.glob("*/rejects/*.jsonl"))[-1:]
    rejects = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rejects) == behind
    texts = {path.name: path.read_bytes() for path in sales.inbox.iterdir()}
    rows_of_file = {name: text.splitlines(keepends=True) for name, text in texts.items()}
    places = set()
    for reject in rejects:
        file = reject["file"].rsplit("/")[-1]
        own = texts[file][reject["row_byte"] : reject["row_byte"] + reject["row_bytes"]]
        assert own == rows_of_file[file][reject["row"] - 1]
        places.add((file, reject["row"]))
        assert (file.startswith("orders"), reject["column"]) in {
            (True, None),  # it has no line, whose number is looked for
            (False, "l_number"),
            (False, None),  # the clerk stands in the order
        }
    assert len(places) == len(rejects), "each stands in a place of its own"
    by_clerk = next(own for own in rejects if own["file"].rsplit("/")[-1].startswith("lines") and own["column"] is None)
    assert_snapshot("join_reject_of_the_other_side", by_clerk["message"])
    refused = sales.run(streams=1)
    assert refused.exit_code == 1
    assert_snapshot("join_reject_behind", sales.stable(refused.error))


def test_rows_that_are_no_rows_are_rejects_of_their_own_files(sales: Project) -> None:
    sales.file("orders.1", "20001|a|2024-01-01\n20002|b|2024-02-30\n20004|c|\n")
    sales.file("lines.1", HEADER + "1,20001,1.0\n2,20001,x\n3,20002,1\n4,20004,7\n")
    refused = sales.run()
    assert refused.exit_code == 1
    assert "orders.1, row 2" in refused.error
    ended = sales.run(limit=5)
    account = joined(ended)
    assert (account["left"]["rows_rejected"], account["right"]["rows_rejected"]) == (1, 1)
    # The line of an order that was rejected has met none.
    kept = "SELECT o_key, number FROM sales WHERE o_key BETWEEN 20000 AND 30000 ORDER BY ALL"
    assert sales.query(kept) == [(20001, 1), (20004, 4)]
    rejects = headrace(sales, "rejects", "last", "--json").summary["tables"][0]["first"]
    assert [(reject["file"].rsplit("/")[-1], reject["row"], reject["column"]) for reject in rejects] == [
        ("orders.1", 2, "o_day"),
        ("lines.1", 3, "l_price"),
    ]
    shown = headrace(sales, "rejects", "last")
    assert "repair a copy" not in shown.stdout
    assert "cannot be replayed" in headrace(sales, "replay", "last").error
    verified = headrace(sales, "verify", "last", "--json").summary["tables"][0]
    assert (verified["status"], verified["rows_rejected"]) == ("equal", 2)


@pytest.mark.parametrize("kind", TYPES)
def test_joined_rows_are_verified_by_joining_once_more(sales: Project, kind: str) -> None:
    sales.package(of_type(kind))
    sales.run().succeeded()
    (verified,) = headrace(sales, "verify", "last", "--json").summary["tables"]
    rows = len(expected(sales, kind))
    assert (verified["status"], verified["rows_in_source"], verified["rows_in_table"]) == ("equal", rows, rows)
    sales.execute("UPDATE sales SET price = price + 1 WHERE number = (SELECT max(number) FROM sales)")
    (verified,) = headrace(sales, "verify", "last", "--json").summary["tables"]
    assert (verified["status"], {own["column"] for own in verified["differences"]}) == ("different", {"price"})


def test_a_table_that_is_there_narrows_and_rejects(sales: Project) -> None:
    sales.execute(
        "CREATE TABLE sales (o_key BIGINT, o_clerk VARCHAR NOT NULL, o_day DATE, number INTEGER NOT NULL, "
        "price DECIMAL(9,2), line_key INTEGER)"
    )
    ended = sales.run(limit=10_000)
    # NULL is a reject in its file also where the row would have met none.
    clerks = sum(not row[1] for row in rows_of(sides(sales)[0]))
    assert joined(ended)["left"]["rows_rejected"] == clerks > 0
    assert stored(sales) == [row for row in expected(sales, "inner") if row[1]]
    sales.package(of_type("left"))
    assert_snapshot("join_not_null", sales.stable(sales.run(limit=10_000).error))


UNFIT = {
    "descends": ("lines.1", HEADER + "1,20001,1\n2,20003,1\n3,20002,1\n"),
    "repeats": ("orders.1", "20001|a|\n20001|b|\n"),
    "torn": ("orders.1", "20001|a|\n40001|b|\n"),
    "no_pair": ("orders.9", "1|a|\n"),
}


@pytest.mark.parametrize("name", sorted(UNFIT))
def test_files_that_do_not_fit(project: Project, name: str) -> None:
    project.package(of_type("inner"))
    for pair, key in ((1, 20001), (2, 40001)):
        project.file(f"orders.{pair}", f"{key}|a|\n{key + 1}|b|\n")
        project.file(f"lines.{pair}", f"{HEADER}{pair},{key},1\n")
    assert joined(project.run())["rows_out"] == 2
    before = stored(project)
    file, text = UNFIT[name]
    project.file(file, text)
    ended = project.run(streams=1)
    assert ended.exit_code != 0
    assert_snapshot(f"join_{name}", project.stable(ended.error))
    assert stored(project) == before


def test_a_side_without_rows_is_refused_unless_it_may_be(project: Project) -> None:
    allowing = PACKAGE.replace("lines: {connection: inbox,", "lines: {connection: inbox, empty: allow,")
    project.package(of_type("left"))
    project.file("orders.1", "1|a|\n2|b|\n")
    project.file("lines.1", HEADER + "1,1,1\n")
    assert joined(project.run())["rows_out"] == 2
    for text in (HEADER, ""):
        project.file("lines.1", text)
        ended = project.run()
        assert (ended.exit_code, len(stored(project))) == (1, 2)
        assert "for source `lines`" in ended.error
    project.file("lines.1", HEADER)
    project.package(of_type("left", allowing))
    assert joined(project.run())["rows_out"] == 2
    assert [row[3] for row in stored(project)] == [None, None]
    # What one side allows the other one need not.
    project.file("orders.1", "")
    assert "source file is empty" in project.run().error


def test_a_side_without_files(project: Project) -> None:
    skipping = PACKAGE.replace("lines: {connection: inbox,", "lines: {connection: inbox, missing: skip,")
    project.file("orders.1", "1|a|\n")
    project.package(of_type("inner", skipping))
    (skipped,) = project.run().succeeded()["skipped"]
    assert "lines.*" in skipped["skipped"]
    project.package(of_type("left", skipping))
    assert "1 file of `orders`: orders.1; 0 files of `lines`\n" in project.run().error
    (project.inbox / "orders.1").unlink()
    # The other side must have files whatever this one allows.
    project.package(of_type("inner", skipping))
    assert "orders.*" in project.run().error


@pytest.mark.rotates
def test_joins_of_a_long_loop_are_added_up(project: Project) -> None:
    head, body = of_type("inner").replace('target: "${target}"', "target: append").split("  load:\n")
    loop = "  turns:\n    foreach:\n      item: turn\n      range: {from: 1, to: 103}\n      tasks:\n        load:\n"
    project.package(head + loop + textwrap.indent(body, "      "))
    project.file("orders.1", "1|a|\n")
    project.file("lines.1", HEADER + "1,1,1\n2,1,1\n3,2,1\n")
    summary = project.run().succeeded()
    assert (summary["rows_loaded"], summary["rows_filtered"], summary["rows_read"]) == (206, 103, 412)
    folded = summary["tables"][-1]
    assert (folded["flows"], folded["join"]["rows_out"], folded["join"]["right"]["rows"]) == (3, 6, 9)
    assert headrace(project, "report", "last", "--output", "report.html").exit_code == 0
    assert "do not balance" not in (project.folder / "report.html").read_text(encoding="utf-8")


def test_the_plan_says_which_files_are_pairs(sales: Project) -> None:
    sales.execute("SELECT 1")  # what is said of a file that is not there is wrapped by the length of its path
    shown = sales.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert_snapshot("join_plan", sales.stable(shown.stdout))


def test_a_run_that_was_killed_goes_on(sales: Project) -> None:
    second = (
        PACKAGE.split("tasks:\n", 1)[1].replace("  load:", "  load_again:", 1).replace("table: sales,", "table: again,")
    )
    sales.package(of_type("full", PACKAGE + second))
    wanted = expected(sales, "full")
    with sales.started(sales.arguments()) as running:
        sales.wait_for_event(running, "task_finished", table="sales")
        running.signal(signal.SIGKILL)
        running.wait()
    ended = sales.resume()
    summary = ended.succeeded()
    assert stored(sales) == wanted
    assert sales.query("SELECT * FROM again ORDER BY ALL") == wanted
    first, other = summary["tables"]
    assert first["join"] == other["join"]
    assert [first[name] for name in ("rows_read", "rows_loaded", "lines")] == [
        other[name] for name in ("rows_read", "rows_loaded", "lines")
    ]


def test_a_run_can_be_cancelled(sales: Project) -> None:
    with sales.started(sales.arguments()) as running:
        sales.wait_for_event(running, "task_started")
        running.signal(signal.SIGINT)
        ended = running.wait()
    assert ended.exit_code in (0, 130)
    assert sales.tables() == ([] if ended.exit_code else ["main.sales"])


def test_the_accounts_are_shown_and_kept(sales: Project) -> None:
    ended = sales.command([argument for argument in sales.arguments() if argument != "--json"])
    assert ended.exit_code == 0
    account = next(part for part in ended.stdout.split("\n\n") if "came out" in part)
    assert_snapshot("join_accounts", account)
    assert headrace(sales, "report", "last", "--output", "report.html").exit_code == 0
    page = (sales.folder / "report.html").read_text(encoding="utf-8")
    assert "do not balance" not in page
    events = [json.dumps(event) for event in sales.events() if event["event"] == "task_finished"]
    assert any('"rows_out"' in event for event in events)
