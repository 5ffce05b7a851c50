"""Replays of rejects of a data flow with several destinations: a repaired row goes to the tables that lack it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.integration.connections_scenes import elsewhere, stopped
from tests.integration.driver import Ended, Project
from tests.integration.replays import command, wait_for_replay
from tests.integration.several_scenes import order, package, write_files

ROWS = 300
TABLES = ("archive", "strict", "noted", "labelled")
KEYED = """
        keyed:
          input: orders
          lookup: {connection: inbox, files: customers.csv, layout: customers, on: {customer: code}, add: [label]}
"""
# `strict` and `noted` refuse some rows each, the lookup in front of `labelled` others; one line nobody can read.
COLUMNS = "id BIGINT, customer INTEGER{}, amount DECIMAL(9,2), note VARCHAR(30){}"
CREATE = (
    f"CREATE TABLE strict ({COLUMNS.format(' NOT NULL', '')})",
    f"CREATE TABLE noted ({COLUMNS.format('', ' NOT NULL')})",
)
BAD = "x|1|1.00|bad\n"
MENDED = 9000
Row = tuple[int, int | None, str]


def lines() -> list[str]:
    return [*map(order, range(ROWS)), BAD]


def row_of(line: str) -> Row:
    number, customer, _, note = line.rstrip("\n").split("|")
    return int(number), int(customer) if customer else None, note


def mended(line: str) -> str:
    """What all tables can hold."""
    number, customer, amount, note = line.rstrip("\n").split("|")
    is_known = customer and int(customer) % 3
    number = str(MENDED) if number == "x" else number
    return f"{number}|{customer if is_known else 1}|{amount}|{note or 'mended'}\n"


def lacks(table: str, line: str) -> bool:
    """Whether a line is a reject of the way to a table."""
    if line == BAD:
        return True
    _, customer, note = row_of(line)
    return {
        "archive": False,
        "strict": customer is None,
        "noted": not note,
        "labelled": customer is None or customer % 3 == 0,
    }[table]


def rows_of(table: str, mend: Callable[[str], str] | None) -> list[Row]:
    """What a table has to hold, behind a replay of lines that were mended so, or before it."""
    good = [row_of(line) for line in lines() if not lacks(table, line)]
    return sorted([*good, *(row_of(mend(line)) for line in lines() if lacks(table, line))] if mend else good)


def lacking(table: str) -> int:
    return sum(lacks(table, line) for line in lines())


REJECTED = [line for line in lines() if any(lacks(table, line) for table in TABLES)]


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    """In either place: the package, its files, and the two tables that refuse rows."""
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    project.package(text())
    write(project)
    project.execute(*CREATE)
    return project


def text() -> str:
    found = package(KEYED, {"archive": "orders", "strict": "orders", "noted": "orders", "labelled": "keyed"})
    found = found.replace("target: replace", "target: append").replace('"${limit}"', "1000")
    return found.replace("name: note, type: string", 'name: note, type: "varchar(30)"')


def write(project: Project) -> None:
    write_files(project, ROWS)
    (project.inbox / "orders.3").write_text(BAD)


def loaded(project: Project, table: str) -> list[Row]:
    found = project.query(f"SELECT id, customer, coalesce(note, '') FROM {table}")
    return sorted((int(number), None if customer is None else int(customer), note) for number, customer, note in found)


def repaired(project: Project, run: str, mend: Callable[[str], str] = mended) -> None:
    """A copy of the rejects, `repair.tbl`, with its rows mended."""
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    path = project.folder / "repair.tbl"
    rows = path.read_text().splitlines(keepends=True)
    assert rows == REJECTED
    path.write_text("".join(map(mend, rows)))


def state_of(project: Project, run: str) -> dict[str, int]:
    (table,) = project.command(command("rejects", run)).summary["tables"]
    return {name: table[name] for name in ("open", "loaded", "rejected_again", "filtered", "dropped", "unfinished")}


def rejects_of(ended: Ended) -> list[dict[str, object]]:
    path = next(Path(ended.summary["run_folder"]).glob("rejects/*.jsonl"))
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_row_goes_to_the_tables_that_lack_it(orders: Project) -> None:
    first = orders.run("--streams", "3")
    run = str(first.succeeded()["run_id"])
    assert [reject["destinations"] for reject in rejects_of(first)] == [
        [table for table in TABLES if lacks(table, line)] for line in REJECTED
    ]
    repaired(orders, run)
    ended = orders.command(command("replay", run, "repair.tbl"))
    accounts = ended.succeeded()["replay"]
    assert ended.summary["rows_read"] == len(REJECTED)
    for table in TABLES:
        assert loaded(orders, table) == rows_of(table, mended), table
    told = {own["table"]: (own["numbers"], own["loaded"]) for own in accounts["tables"]}
    assert told == {table: (lacking(table), lacking(table)) for table in TABLES}
    counts = [accounts[name] for name in ("numbers", "loaded", "rejected_again", "filtered", "dropped", "open")]
    sent = sum(map(lacking, TABLES))
    assert counts == [len(REJECTED), sent, 0, 0, 0, 0]
    assert state_of(orders, run) == {
        "open": 0, "loaded": sent, "rejected_again": 0, "filtered": 0, "dropped": 0, "unfinished": 0
    }  # fmt: skip
    again = orders.command(command("replay", run, "repair.tbl"))
    assert again.exit_code == 1
    assert "loaded already" in again.error


def test_what_is_rejected_again_lacks_where_it_lacked(orders: Project) -> None:
    """Rows without a customer stay so, the bad line stays bad, and what has no note is dropped; a replay of the replay
    loads the rest.
    """
    run = str(orders.run().succeeded()["run_id"])

    def badly(line: str) -> str:
        if line == BAD:
            return line
        _, customer, _, note = line.rstrip("\n").split("|")
        return line if not customer and note else "\n" if not note else mended(line)

    repaired(orders, run, badly)
    replay = orders.command(command("replay", run, "repair.tbl"))
    accounts = replay.succeeded()["replay"]
    left = [line for line in REJECTED if badly(line) == line]
    dropped = [line for line in REJECTED if badly(line) == "\n"]
    assert [(reject["destinations"], reject["value"] == "x") for reject in rejects_of(replay)] == [
        (list(TABLES) if line == BAD else ["strict", "labelled"], line == BAD) for line in left
    ]
    for own in accounts["tables"]:
        assert own["numbers"] == sum(own[name] for name in ("loaded", "rejected_again", "filtered", "dropped"))
        lacking_there = [line for line in left if lacks(own["table"], line)]
        assert own["rejected_again"] == len(lacking_there)
        assert own["dropped"] == sum(lacks(own["table"], line) for line in dropped)
    assert (accounts["dropped"], accounts["open"]) == (len(dropped), 0)
    again = str(accounts["of_run"])
    assert again == run
    second = str(replay.summary["run_id"])
    assert orders.command(command("rejects", second, "--copy", "again.tbl")).exit_code == 0
    path = orders.folder / "again.tbl"
    assert path.read_text().splitlines(keepends=True) == left
    path.write_text("".join(map(mended, left)))
    orders.command(command("replay", second, "again.tbl")).succeeded()
    for table in TABLES:
        rows = [row_of(line) for line in lines() if not lacks(table, line)]
        rows += [row_of(mended(line)) for line in REJECTED if lacks(table, line) and badly(line) != "\n"]
        assert loaded(orders, table) == sorted(rows), table


def test_one_reject_becomes_several_rows(orders: Project) -> None:
    run = str(orders.run().succeeded()["run_id"])
    number = 1 + next(
        place for place, line in enumerate(REJECTED) if lacks("noted", line) and not lacks("strict", line)
    )
    lacking_tables = [table for table in TABLES if lacks(table, REJECTED[number - 1])]
    before = {table: len(loaded(orders, table)) for table in TABLES}
    (orders.folder / "rows.tbl").write_text("1|1|1.00|one\n2|1|2.00|two\n3|1|3.00|three\n")
    ended = orders.command(command("replay", run, "rows.tbl", "--rows", str(number)))
    accounts = ended.succeeded()["replay"]
    assert (accounts["numbers"], accounts["rows_added"], accounts["open"]) in (
        (1, 2, len(REJECTED) - 1), (1, 2, None)
    )  # fmt: skip
    more = {table: len(loaded(orders, table)) - before[table] for table in TABLES}
    assert more == {table: 3 if table in lacking_tables else 0 for table in TABLES}
    assert state_of(orders, run)["open"] == len(REJECTED) - 1


@pytest.mark.faults
@pytest.mark.parametrize("event", ["run_started", "task_started", "task_finished"])
def test_a_replay_that_is_killed(orders: Project, event: str) -> None:
    run = str(orders.run().succeeded()["run_id"])
    repaired(orders, run)
    replay = command("replay", run, "repair.tbl")
    with orders.started(replay) as running:
        wait_for_replay(orders, running, event)
        running.end()
    resumed = orders.resume()  # exit code 6: it had ended, or not come to the ledger
    assert resumed.exit_code in (0, 6), resumed.stderr
    again = orders.command(replay)
    assert again.exit_code in (0, 1), again.stderr
    for table in TABLES:
        assert loaded(orders, table) == rows_of(table, mended), table
    assert (state_of(orders, run)["open"], state_of(orders, run)["unfinished"]) == (0, 0)


@pytest.mark.parametrize(("moment", "place"), [("before", 0), ("behind", 0), ("behind", 1)])
@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_a_replay_into_two_places(request: pytest.FixtureRequest, kind: str, moment: str, place: int) -> None:
    """Killed around the commits: `strict` and `labelled` stand in another database than the others."""
    orders: Project = request.getfixturevalue("project" if kind == "duckdb" else "warehouse")
    archive = {"archive_file": "{type: duckdb, path: archive.duckdb, lock_timeout_seconds: 1}"}
    orders.package(elsewhere(text(), archive, {"strict": "archive_file", "labelled": "archive_file"}))
    write(orders)
    orders.execute(CREATE[1])
    with duckdb.connect(str(orders.folder / "archive.duckdb")) as connection:
        connection.execute(CREATE[0])
    run = str(orders.run().succeeded()["run_id"])
    repaired(orders, run)
    arguments = ["replay", run, "repair.tbl", "--runs-dir", "runs", "--json"]
    killed = orders.command([sys.executable, "-c", stopped(moment, place), *arguments])
    assert killed.exit_code not in (0, 1), killed.stderr
    before = state_of(orders, run)
    assert before["unfinished"] == (len(REJECTED) if (moment, place) != ("behind", 1) else 0)
    if (moment, place) == ("behind", 0):
        refused = orders.command(command("replay", run, "repair.tbl"))
        assert "headrace resume" in " ".join(refused.error.split())
    resumed = orders.resume()
    resumed.succeeded()
    found = {"archive": orders, "noted": orders}
    for table in found:
        assert loaded(orders, table) == rows_of(table, mended), table
    with duckdb.connect(str(orders.folder / "archive.duckdb")) as connection:
        for table in ("strict", "labelled"):
            rows = connection.execute(f"SELECT id, customer, coalesce(note, '') FROM {table}").fetchall()
            assert sorted(rows) == rows_of(table, mended), table
    after = state_of(orders, run)
    assert (after["open"], after["unfinished"], after["loaded"]) == (0, 0, sum(map(lacking, TABLES)))


def test_a_row_that_goes_another_way_now_is_filtered(orders: Project) -> None:
    """It lacks in the table of its old way alone, and in no other."""
    parted = """
        parted:
          input: orders
          split: {even: "id % 2 = 0"}
    """
    found = package(parted, {"archive": "orders", "strict": "parted.even", "rest": "parted.rest"})
    orders.package(found.replace('"${limit}"', "1000").replace("note, type: string", 'note, type: "varchar(30)"'))
    (orders.inbox / "orders.3").unlink()
    run = str(orders.run().succeeded()["run_id"])
    even = len(range(0, ROWS, 26))
    assert orders.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    path = orders.folder / "repair.tbl"
    rows = [mended(line) for line in path.read_text().splitlines(keepends=True)]
    assert len(rows) == even
    path.write_text("".join([f"1{rows[0][1:]}", *rows[1:]]))
    before = {table: loaded(orders, table) for table in ("archive", "rest")}
    accounts = orders.command(command("replay", run, "repair.tbl")).succeeded()["replay"]
    (strict,) = accounts["tables"]
    assert [strict[name] for name in ("numbers", "loaded", "filtered", "rejected_again")] == [even, even - 1, 1, 0]
    assert {table: loaded(orders, table) for table in before} == before
    assert accounts["open"] is None, "the ledgers of the others were not asked"
    assert state_of(orders, run) == {
        "open": 0, "loaded": even - 1, "rejected_again": 0, "filtered": 1, "dropped": 0, "unfinished": 0
    }  # fmt: skip


def test_nothing_lacks_in_what_stores_nothing(project: Project) -> None:
    project.package(elsewhere(text(), {"nowhere": "{type: 'null'}"}, {"labelled": "nowhere"}))
    write(project)
    project.execute(*CREATE)
    run = str(project.run().succeeded()["run_id"])
    repaired(project, run)
    accounts = project.command(command("replay", run, "repair.tbl")).succeeded()["replay"]
    assert [own["table"] for own in accounts["tables"]] == ["archive", "strict", "noted"]
    for table in ("archive", "strict", "noted"):
        assert loaded(project, table) == rows_of(table, mended), table


def test_rejects_of_the_replay_stand_in_the_table_of_rejects(orders: Project) -> None:
    orders.package(text().replace("{limit: 1000}", "{limit: 1000, table: bad_orders}"))
    run = str(orders.run().succeeded()["run_id"])
    repaired(orders, run, lambda line: line if line == BAD else mended(line))
    replay = orders.command(command("replay", run, "repair.tbl"))
    found = orders.query("SELECT run_id, count(*) FROM bad_orders GROUP BY run_id")
    told = {str(run_id): int(count) for run_id, count in found}
    assert told == {run: len(REJECTED), str(replay.succeeded()["run_id"]): 1}


def test_a_flow_of_a_loop(orders: Project) -> None:
    """It is bound when it starts, once for each turn; the rejects of one turn are those of its tables."""
    head, _, flow = text().partition("tasks:\n  load:\n")
    flow = flow.replace('files: "orders.*"', 'files: "orders.${n}"').replace("table: archive", 'table: "archive_${n}"')
    indented = "".join(f"      {line}\n" for line in flow.splitlines())
    loop = "  turns:\n    foreach:\n      item: n\n      in: [1, 3]\n      tasks:\n        load:\n"
    for table in ("strict", "noted", "labelled"):
        indented = indented.replace(f"table: {table},", f'table: "{table}_${{n}}",')
    orders.package(f"{head}tasks:\n{loop}{indented}")
    run = str(orders.run().succeeded()["run_id"])
    copied = orders.command(command("rejects", run, "--table", "archive_3", "--copy", "repair.tbl"))
    assert copied.exit_code == 0, copied.stderr
    (orders.folder / "repair.tbl").write_text(mended(BAD))
    orders.command(command("replay", run, "repair.tbl", "--table", "archive_3")).succeeded()
    for table in TABLES:
        assert loaded(orders, f"{table}_3") == [row_of(mended(BAD))], table


def test_a_secret_in_the_name_of_a_destination(project: Project) -> None:
    """What is stored calls it otherwise; its rows are not to be forgotten. The flow is bound when it starts."""
    statement = "SELECT 'orders.*' AS files"
    before = f'  before:\n    sql: {{connection: warehouse, text: "{statement}", row: {{files: files}}}}\n'
    late = text().replace("connections:\n", "variables:\n  files: {type: string}\nconnections:\n", 1)
    late = late.replace('files: "orders.*"', 'files: "${files}"').replace("path: inbox", 'path: "inbox_${env:WORD}"')
    project.package(late.replace("tasks:\n  load:\n", f"tasks:\n{before}  load:\n    after: before\n"))
    (project.folder / "inbox_strict").symlink_to(project.inbox)
    write(project)
    project.execute(*CREATE)
    word = {"WORD": "strict"}
    run = str(project.run(environment=word).succeeded()["run_id"])
    copied = project.command(command("rejects", run, "--copy", "repair.tbl"), word)
    assert copied.exit_code == 0, copied.stderr
    path = project.folder / "repair.tbl"
    path.write_text("".join(map(mended, path.read_text().splitlines(keepends=True))))
    accounts = project.command(command("replay", run, "repair.tbl"), word).succeeded()["replay"]
    for table in TABLES:
        assert loaded(project, table) == rows_of(table, mended), table
    told = {own["table"]: own["numbers"] for own in accounts["tables"]}
    assert told == {table.replace("strict", "***"): lacking(table) for table in TABLES}
    assert accounts["numbers"] == len(REJECTED)


def test_rejects_of_an_earlier_version(project: Project) -> None:
    project.package(text())
    write(project)
    project.execute(*CREATE)
    first = project.run()
    path = next(Path(first.succeeded()["run_folder"]).glob("rejects/*.jsonl"))
    told = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**own, "destinations": None}) + "\n" for own in told))
    repaired(project, str(first.summary["run_id"]))
    refused = project.command(command("replay", str(first.summary["run_id"]), "repair.tbl"))
    assert refused.exit_code == 1
    assert "does not say which of several destinations lack its row" in " ".join(refused.error.split())


def test_rejects_are_dropped_without_a_file(orders: Project) -> None:
    orders.package(text().replace("{limit: 1000}", "{limit: 1000, table: bad_orders}"))
    run = str(orders.run().succeeded()["run_id"])
    before = {table: loaded(orders, table) for table in TABLES}
    # Of the first one `archive`, which has the table of rejects, lacks nothing.
    for named, count in (("1", 1), (f"2-{len(REJECTED)}", len(REJECTED) - 1)):
        accounts = orders.command(command("replay", run, "--drop", named)).succeeded()["replay"]
        assert (accounts["numbers"], accounts["dropped"], accounts["loaded"]) == (count, count, 0)
    assert {table: loaded(orders, table) for table in TABLES} == before
    assert (state_of(orders, run)["open"], state_of(orders, run)["dropped"]) == (0, len(REJECTED))
