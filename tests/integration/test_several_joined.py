"""Rows of a join that go to several destinations: orders and their lines by what DuckDB says that belongs into each."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Project
from tests.integration.join_scenes import (
    JOIN,
    LATE,
    PAIRS,
    of_type,
    rows_of,
    write_files,
    write_pairs_of_falling_size,
)
from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text
from tests.integration.test_postgres_several_destinations import KILLED as KILLED_BEFORE_THE_SWITCH
from tests.snapshots import assert_snapshot

ORDERS = 3_500
KILLS = int(os.environ.get("KILLS", "2"))
TRANSFORMS = """\
        parted: {input: joined, split: {lonely: "number IS NULL"}}
        clerked:
          input: parted.rest
          lookup: {connection: inbox, files: clerks.csv, layout: clerks, on: {o_clerk: clerk}, add: {clerk_sk: sk},
                   no_match: output}
      destinations:
"""
DESTINATIONS = {
    "facts": "clerked",
    "lonely": "parted.lonely, columns: {o_key: o_key, o_clerk: o_clerk, o_day: o_day}",
    "unknown": "clerked.no_match",
    "every": "joined",
}
# What DuckDB says that belongs into each. Numbers of lines are unique.
NAMES = "o_key, o_clerk, o_day, number, price, line_key"
WANTED = {
    "facts": f"SELECT {NAMES}, sk FROM joined JOIN clerks ON clerk = o_clerk WHERE number IS NOT NULL",
    "lonely": "SELECT o_key, o_clerk, o_day FROM joined WHERE number IS NULL",
    "unknown": f"SELECT {NAMES} FROM joined ANTI JOIN clerks ON clerk = o_clerk WHERE number IS NOT NULL",
    "every": f"SELECT {NAMES} FROM joined",
}


@pytest.fixture(params=["duckdb", "postgres"])
def sales(request: pytest.FixtureRequest) -> Project:
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write(project)
    return project


def write(project: Project) -> None:
    write_files(project, ORDERS)
    project.file("clerks.csv", "".join(f"Clerk of {key},{7 * key}\n" for key in range(1000) if key % 10))
    project.package(package())


def package(
    transforms: str = TRANSFORMS, destinations: dict[str, str] = DESTINATIONS, clauses: str = "", kind: str = "left"
) -> str:
    """A package with these destinations by what they read."""
    head, _, _ = of_type(kind).partition("      destinations:\n")
    clerks = "  clerks: {delimiter: ',', columns: [{name: clerk, type: string}, {name: sk, type: int32}]}\n"
    head = head.replace("default: 1GB}", "default: 2GB}").replace(
        "streams: ${streams}\n", f"{clerks}streams: ${{streams}}\n"
    )
    lines = [
        f'        {name}: {{input: {rows}, connection: warehouse, table: {name}, target: "${{target}}"{clauses}}}\n'
        for name, rows in destinations.items()
    ]
    return head + transforms + "".join(lines)


def wanted(project: Project, query: str, kind: str = "left") -> list[tuple[str | None, ...]]:
    joined = JOIN.format(inbox=project.inbox, kind=kind)
    clerks = "SELECT 'Clerk of ' || n AS clerk, 7 * n AS sk FROM range(1000) AS t(n) WHERE n % 10 > 0"
    return as_text(rows_of(f"WITH joined AS ({joined}), clerks AS ({clerks}) {query}"))


def all_wanted(project: Project) -> dict[str, list[tuple[str | None, ...]]]:
    return {name: wanted(project, query) for name, query in WANTED.items()}


def loaded(project: Project, names: Any = WANTED) -> dict[str, list[tuple[str | None, ...]]]:
    return {name: as_text(project.query(f"SELECT * FROM {name}")) for name in names}


def balanced(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables by name: what has come out of the join was loaded, filtered or rejected behind it on every way."""
    tables = {table["table"]: table for table in summary["tables"]}
    for table in tables.values():
        join, behind = table["join"], 0
        for side in ("left", "right"):
            own = join[side]
            behind += own["rejected_behind"]
            assert own["rows"] == own["matched"] + own["unmatched"]
        assert join["rows_out"] == table["rows_loaded"] + table["rows_filtered"] + behind, table["table"]
    return tables


def test_each_destination_gets_its_rows(sales: Project) -> None:
    rows, accounts = all_wanted(sales), []
    assert all(len(own) > 100 for own in rows.values())
    for streams in (1, 16):
        ended = sales.run(streams=streams)
        ended.succeeded()
        assert loaded(sales) == rows, streams
        tables = balanced(ended.summary)
        assert {name: table["rows_loaded"] for name, table in tables.items()} == {
            name: len(own) for name, own in rows.items()
        }
        (split,) = tables["lonely"]["transforms"]
        assert split["outputs"] == {"lonely": len(rows["lonely"]), "rest": len(rows["facts"]) + len(rows["unknown"])}
        accounts.append({name: table["join"] for name, table in tables.items()})
        # What was read, and left out by the join, is told once.
        size = sum(path.stat().st_size for path in sales.inbox.glob("[ol]*.*"))
        left_out = tables["facts"]["join"]["right"]["filtered"]
        assert ended.summary["bytes_read"] == size
        assert (ended.summary["rows_filtered"], left_out > 0) == (left_out, True)
        assert ended.summary["rows_read"] == tables["facts"]["rows_read"]
    assert accounts[0] == accounts[1]
    assert all(own == accounts[0]["facts"] for own in accounts[0].values())
    assert not isinstance(sales, PostgresProject) or sales.leftovers() == []


def test_null_takes_them_too(project: Project) -> None:
    write(project)
    ended = project.run("--connection", "warehouse=null:")
    tables = balanced(ended.succeeded())
    assert {name: table["rows_loaded"] for name, table in tables.items()} == {
        name: len(own) for name, own in all_wanted(project).items()
    }


def test_what_is_shown(project: Project) -> None:
    write(project)
    shown = project.command([argument for argument in project.arguments() if argument != "--json"])
    assert shown.exit_code == 0, shown.stderr
    told = [part for part in shown.stdout.split("\n\n") if "came out" in part]
    assert_snapshot("several_joined", "---".join(told))
    plan = project.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert plan.stdout.count("joined: orders left join lines on o_key = l_key") == len(DESTINATIONS)
    report = [sys.executable, "-m", "headrace", "report", "last", "--runs-dir", "runs", "--output", "report.html"]
    assert project.command(report).exit_code == 0
    page = (project.folder / "report.html").read_text(encoding="utf-8")
    assert "do not balance" not in page
    assert page.count("load: joined: orders") == 1


# Tables that refuse rows: of all lines and lonely orders, those without a clerk, and those of some days.
STRICT = (
    "CREATE TABLE strict (o_key BIGINT, o_clerk VARCHAR(20) NOT NULL, o_day DATE, number INTEGER, "
    "price DECIMAL(9,2), line_key INTEGER)",
    "CREATE TABLE numbered (o_key BIGINT, o_clerk VARCHAR(20), o_day DATE, number INTEGER NOT NULL, "
    "price DECIMAL(9,2), line_key INTEGER)",
)
REFUSING = TRANSFORMS.replace(",\n                   no_match: output}", ", no_match: reject}").replace(
    "input: parted.rest", "input: joined"
)
REFUSING = REFUSING.replace('        parted: {input: joined, split: {lonely: "number IS NULL"}}\n', "")


@pytest.mark.parametrize("streams", [1, 16])
def test_rows_that_ways_refuse_are_rejects_where_they_stand(sales: Project, streams: int) -> None:
    """At the line, or at the order that has none; one that several ways refuse is one reject."""
    sales.execute(*STRICT)
    destinations = {"facts": "clerked", "strict": "joined", "numbered": "joined", "every": "joined"}
    text = package(REFUSING, destinations, kind="full")
    sales.package(text.replace('rejects: {limit: "${limit}"}', 'rejects: {limit: "${limit}", table: bad}'))
    sales.file("orders.1", (sales.inbox / "orders.1").read_text() + "x|no key|2024-01-01\n")
    ended = sales.run(streams=streams, limit=1_000_000)
    tables = balanced(ended.succeeded())
    (sales.inbox / "orders.1").write_text((sales.inbox / "orders.1").read_text().removesuffix("x|no key|2024-01-01\n"))
    refused = {"facts": "sk IS NULL", "strict": "o_clerk IS NULL", "numbered": "number IS NULL", "every": "false"}
    source = "FROM joined LEFT JOIN clerks ON clerk = o_clerk"
    names = {**dict.fromkeys(destinations, NAMES), "facts": f"{NAMES}, sk"}
    rows = {
        name: wanted(sales, f"SELECT {names[name]} {source} WHERE ({condition}) IS NOT TRUE", "full")
        for name, condition in refused.items()
    }
    assert loaded(sales, rows) == rows
    for name, condition in refused.items():
        for side, has_line in (("left", "number IS NULL AND line_key IS NULL"), ("right", "number IS NOT NULL")):
            ((count,),) = wanted(sales, f"SELECT count(*) {source} WHERE ({condition}) AND {has_line}", "full")
            assert str(tables[name]["join"][side]["rejected_behind"]) == count, (name, side)
    assert all(table["join"]["left"]["rows_rejected"] >= 1 for table in tables.values())
    # Each row once, at its place.
    any_way = " OR ".join(refused.values())
    ((count,),) = wanted(sales, f"SELECT count(*) {source} WHERE {any_way}", "full")
    assert ended.summary["rows_rejected"] == int(str(count)) + 1
    shared = tables["facts"]["shared"]
    assert shared["left_rejected"] + shared["right_rejected"] == shared["rows_rejected"] == int(str(count)) + 1
    assert shared["left_rejected"] - shared["left_rejected_behind"] == 1
    (path,) = [Path(name) for name in tables["facts"]["rejects"]["files"] if name.endswith(".jsonl")]
    rejects = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = {str(file): file.read_text().splitlines() for file in sales.inbox.iterdir()}
    places = {(reject["file"], reject["row"]) for reject in rejects}
    assert len(places) == len(rejects) == int(str(count)) + 1
    texts = [lines[file][row - 1] for file, row in places if row <= len(lines[file])]
    keys = sorted(text.split(",")[0] for text in texts if "," in text)
    numbers = wanted(sales, f"SELECT number {source} WHERE ({any_way}) AND number IS NOT NULL", "full")
    assert keys == sorted(str(number) for (number,) in numbers)
    stored = sales.query("SELECT count(*), count(DISTINCT (file, row_byte)), min(task) FROM bad")
    assert [tuple(map(str, row)) for row in stored] == [(str(len(rejects)), str(len(rejects)), "load")]


@pytest.mark.faults
def test_a_killed_run_goes_on(sales: Project) -> None:
    rows = all_wanted(sales)
    chance = random.Random(str(type(sales)))
    for number in range(KILLS):
        for name in WANTED:
            sales.execute(f"DROP TABLE IF EXISTS {name}")
        with sales.started(sales.arguments(streams=2)) as running:
            sales.wait_for_event(running, "task_started")
            running.wait_until(chance.random() * 0.5)
            running.signal(signal.SIGKILL)
            running.wait()
        there = {name.split(".")[1] for name in sales.tables()} & set(WANTED)
        assert there in (set(), set(WANTED)), "all, or none"
        resumed = sales.resume()
        if resumed.exit_code:  # it had ended before
            assert sales.ledger()[-1] == "success", (number, resumed.stderr)
        assert loaded(sales) == rows, number
        for path in sales.runs.iterdir():
            path.rename(sales.folder / f"{number}-{path.name}")


def killed_before_the_switch(sales: PostgresProject, *arguments: str) -> None:
    killed = sales.command([sys.executable, "-c", KILLED_BEFORE_THE_SWITCH, *sales.arguments(*arguments)[3:]])
    assert killed.exit_code not in (0, 1), killed.stderr


def forget(sales: PostgresProject, name: str) -> None:
    """As if the writers of a table had been a moment later: neither their rows nor their pairs are committed."""
    hidden = f"SELECT tablename FROM pg_tables WHERE schemaname = 'headrace' AND tablename LIKE '%_{name}_%'"
    tables = sales.query(hidden)
    assert tables
    for (table,) in tables:
        sales.execute(f'TRUNCATE headrace."{table}"')
    sales.execute(f"DELETE FROM headrace.commit WHERE task = 'load/{name}'")


@pytest.mark.parametrize("behind", [None, "facts", "every", "lonely"])
def test_pairs_are_read_again_for_those_that_lack_them(warehouse: PostgresProject, behind: str | None) -> None:
    """Of pairs that all have committed the run folder has what the ledger does not tell."""
    write(warehouse)
    rows = all_wanted(warehouse)
    killed_before_the_switch(warehouse, "--streams", "2")
    if behind is not None:
        forget(warehouse, behind)
    ended = warehouse.resume()
    ended.succeeded()
    assert loaded(warehouse) == rows
    tables = balanced(ended.summary)
    assert {name: table["rows_loaded"] for name, table in tables.items()} == {
        name: len(own) for name, own in rows.items()
    }
    size = sum(path.stat().st_size for path in warehouse.inbox.glob("[ol]*.*"))
    assert ended.summary["bytes_read"] == (0 if behind is None else size)
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("is_lost", [False, True])
def test_some_pairs_are_committed_and_the_others_are_not(warehouse: PostgresProject, is_lost: bool) -> None:
    """A destination without its last pairs; the others have them all. With rejects, whose pairs are read again."""
    write(warehouse)
    write_pairs_of_falling_size(warehouse)
    destinations = {"facts": "clerked", "every": "joined"}
    warehouse.package(package(REFUSING, destinations))
    clean = warehouse.run(streams=2, limit=1_000_000).succeeded()
    before = loaded(warehouse, destinations)
    for path in warehouse.runs.iterdir():
        path.rename(warehouse.folder / f"clean-{path.name}")
    killed_before_the_switch(warehouse, "--streams", "2", "--set", "limit=1000000")
    forget(warehouse, "every")
    if is_lost:
        (kept,) = warehouse.runs.glob("*/rejects/*.accounts")
        kept.write_text("no line of ours\n")
    ended = warehouse.resume()
    tables = balanced(ended.succeeded())
    assert loaded(warehouse, destinations) == before
    for table in clean["tables"]:
        own = tables[table["table"]]
        names = ("join", "rows_read", "rows_loaded", "rows_filtered", "rows_rejected", "lines", "shared")
        assert [own.get(name) for name in names] == [table.get(name) for name in names]
    assert ended.summary["rows_rejected"] == clean["rows_rejected"] > 0


def test_a_resumed_run_tells_the_join_of_tables_that_were_complete(sales: Project) -> None:
    bad = "  bad:\n    after: load\n    sql: {connection: warehouse, text: SELECT * FROM nothing}\n"
    sales.package(package() + bad)
    failed = sales.run()
    assert failed.exit_code == 1
    sales.execute("CREATE TABLE nothing (n INT)")
    ended = sales.resume()
    ended.succeeded()
    first, second = balanced(failed.summary), balanced(ended.summary)
    for name in WANTED:
        names = ("join", "rows_read", "rows_loaded", "rows_filtered", "lines", "shared")
        assert [first[name].get(own) for own in names] == [second[name].get(own) for own in names]
    sums = ("rows_read", "rows_filtered", "rows_rejected", "rows_loaded")
    assert [failed.summary[name] for name in sums] == [ended.summary[name] for name in sums]


@pytest.mark.parametrize("clauses", [", load: view", ", load: staged, partition: {hash: {column: o_key, parts: 3}}"])
def test_however_the_tables_are_loaded(warehouse: PostgresProject, clauses: str) -> None:
    write(warehouse)
    warehouse.package(package(clauses=clauses))
    for streams in (3, 1):
        warehouse.run(streams=streams).succeeded()
        assert loaded(warehouse) == all_wanted(warehouse)
        assert warehouse.leftovers() == []


def test_a_row_that_breaks_a_constraint_is_found_in_both_files(warehouse: PostgresProject) -> None:
    write(warehouse)
    columns = "o_key bigint, o_clerk text, o_day date, number int, price numeric(9,2), line_key int"
    warehouse.execute(f"CREATE TABLE every ({columns}, CONSTRAINT late CHECK (number <> {LATE}))")
    ended = warehouse.run(streams=1)
    assert ended.exit_code == 1
    assert_snapshot("several_joined_check", warehouse.stable(ended.error))
    place = ended.summary["error"]["at"]
    text = (warehouse.inbox / f"lines.{PAIRS - 1}").read_text()
    assert text[place["byte"] :].startswith(f"{LATE},")
    assert "public.facts" not in warehouse.tables()


def test_each_table_is_verified_by_joining_once_more(sales: Project) -> None:
    """But for those behind a lookup. A column that a table may not hold as NULL refuses the same rows again."""
    if isinstance(sales, PostgresProject):
        sales.execute("CREATE TABLE every (o_key bigint, o_clerk text NOT NULL, o_day date, number int, "
                      "price numeric(9,2), line_key int)")  # fmt: skip
    sales.run(limit=100_000).succeeded()
    verify = [sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "--json", "last"]
    found = {own["table"].split(".")[-1]: own for own in sales.command(verify).summary["tables"]}
    assert {name: own["status"] for name, own in found.items()} == {
        "facts": "not_comparable",
        "lonely": "equal",
        "unknown": "not_comparable",
        "every": "equal",
    }
    assert all(own["rows_in_source"] == own["rows_in_table"] > 0 for own in (found["lonely"], found["every"]))
    assert (found["every"]["rows_rejected"] > 0) == isinstance(sales, PostgresProject)
    sales.execute("DELETE FROM lonely WHERE o_key = (SELECT min(o_key) FROM lonely)")
    found = {own["table"].split(".")[-1]: own for own in sales.command(verify).summary["tables"]}
    assert (found["lonely"]["status"], found["every"]["status"]) == ("different", "equal")
