"""Replays of rejects of a union: rows of each source in its own dialect in one file of repairs, which go the way of
their source.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.replays import command, wait_for_replay
from tests.integration.tables import as_text
from tests.integration.union_scenes import ROWS, package, sources, united, write_files

COLUMNS = "id, amount, day, note, channel"
# What stands in the files, and what it is mended to, in the order of the sources. The row of two lines has a qualifier.
BAD_OLD = ("77;1,x;01.02.2024;schlecht\r\n", "78;1,00;31.02.2024;'größer\r\nals; je'\r\n")
BAD_NEW = ("1|2024-13-01|web|1.00\n", "2|2024-01-01|much too long|2.00\n")
BAD_PLACED = "2024-01-01     300          \n"
GOOD_OLD = ("77;1,50;01.02.2024;schlecht\r\n", "78;1,00;29.02.2024;'größer\r\nals; je'\r\n")
GOOD_NEW = ("1|2024-12-01|web|1.00\n", "2|2024-01-01|longer|2.00\n")
GOOD_PLACED = "2024-01-01     300      7.00\n"
HEAD_NEW = "id|Day|channel|amount\n"
BAD = "".join((*BAD_OLD, *BAD_NEW, BAD_PLACED)).encode("cp1252")
GOOD = "".join((*GOOD_OLD, *GOOD_NEW, GOOD_PLACED)).encode("cp1252")
Row = tuple[str | None, ...]


@pytest.fixture(params=["duckdb", "postgres"])
def orders(request: pytest.FixtureRequest) -> Project:
    """In either place: files of three sources, each with bad rows behind the good ones of a file."""
    project: Project = request.getfixturevalue("project" if request.param == "duckdb" else "warehouse")
    write_files(project)
    add(project, BAD_OLD, BAD_NEW, BAD_PLACED)
    return project


def add(project: Project, old: tuple[str, ...], new: tuple[str, ...], placed: str) -> None:
    with (project.inbox / "old.1.csv").open("ab") as file:
        file.write("".join(old).encode("cp1252"))
    (project.inbox / "new.9").write_text(HEAD_NEW + "".join(new))
    with (project.inbox / "placed.txt").open("a") as file:
        file.write(placed)


def loaded(project: Project, table: str = "orders", columns: str = COLUMNS) -> list[Row]:
    return as_text(project.query(f"SELECT {columns} FROM {table}"))


def mended(project: Project, columns: str = COLUMNS) -> list[Row]:
    """The rows of DuckDB's own union of files in which nothing was bad."""
    write_files(project)
    add(project, GOOD_OLD, (), GOOD_PLACED)
    # As DuckDB is told to read all files of the source.
    text = "channel|amount|extra|id|Day\nweb|1.00|x|1|2024-12-01\nlonger|2.00|x|2|2024-01-01\n"
    (project.inbox / "new.9").write_bytes(gzip.compress(text.encode()))
    return as_text(united(project, columns))


def copied(project: Project, run: str, name: str = "repair.txt") -> Path:
    ended = project.command(command("rejects", run, "--copy", name))
    assert ended.exit_code == 0, ended.stderr
    return project.folder / name


def replayed(project: Project, run: str, *arguments: str) -> Ended:
    return project.command(command("replay", run, *arguments))


@pytest.mark.parametrize("streams", ["1", "16"])
def test_repaired_rows_are_read_by_the_layouts_of_their_sources(orders: Project, streams: str) -> None:
    orders.package(package())
    run = str(orders.run(limit=5, streams=streams).succeeded()["run_id"])
    copy = copied(orders, run)
    assert copy.read_bytes() == BAD
    copy.write_bytes(GOOD)
    ended = replayed(orders, run, "repair.txt")
    assert {name: own[2:] for name, own in sources(ended).items()} == {"old": (2, 0), "new": (2, 0), "placed": (1, 0)}
    assert ended.summary["replay"]["loaded"] == 5 and ended.summary["replay"]["open"] == 0
    again = replayed(orders, run, "repair.txt")
    assert again.exit_code == 1 and "were loaded already" in again.error
    found = loaded(orders)
    assert found == mended(orders)


def test_rows_that_are_rejected_again_dropped_and_named(orders: Project) -> None:
    """A replay of the rejects of a replay knows its sources, too: theirs are those of the files in front of all."""
    orders.package(package())
    run = str(orders.run(limit=5).succeeded()["run_id"])
    copy = copied(orders, run)
    # The first row of each source is mended, the second one of `old` is left as it is, that of `new` is emptied.
    copy.write_bytes("".join((GOOD_OLD[0], BAD_OLD[1], GOOD_NEW[0], "\n", GOOD_PLACED)).encode("cp1252"))
    ended = replayed(orders, run, "repair.txt")
    assert {name: own[2:] for name, own in sources(ended).items()} == {"old": (2, 1), "new": (1, 0), "placed": (1, 0)}
    found = ended.summary["replay"]
    assert [found[name] for name in ("loaded", "rejected_again", "dropped", "open")] == [3, 1, 1, 0]
    later = str(ended.summary["run_id"])
    again = copied(orders, later, "again.txt")
    assert again.read_bytes() == BAD_OLD[1].encode("cp1252")
    again.write_bytes(GOOD_OLD[1].encode("cp1252"))
    assert replayed(orders, later, "again.txt").summary["replay"]["loaded"] == 1
    assert loaded(orders) == [row for row in mended(orders) if row[4] != "longer"]


def test_named_rows_of_two_sources(orders: Project) -> None:
    """Rows of some sources alone; the others keep their rejects."""
    orders.package(package())
    run = str(orders.run(limit=5).succeeded()["run_id"])
    (orders.folder / "some.txt").write_text(GOOD_NEW[1] + GOOD_PLACED)
    ended = replayed(orders, run, "some.txt", "--rows", "4-5")
    assert {name: own[2:] for name, own in sources(ended).items()} == {"old": (0, 0), "new": (1, 0), "placed": (1, 0)}
    assert ended.summary["replay"]["open"] == 3
    assert {("2", "2.00", "2024-01-01", None, "longer"), ("300", "7.00", "2024-01-01", None, None)} <= {*loaded(orders)}
    (orders.folder / "one.txt").write_bytes(GOOD_OLD[1].encode("cp1252") * 2)
    ended = replayed(orders, run, "one.txt", "--rows", "2")
    assert (ended.summary["replay"]["loaded"], ended.summary["replay"]["rows_added"]) == (2, 1)


MADE = (
    ("      - {name: note, type: string}\n", "      - {name: file, type: string, from: file_name}\n"
     "      - {name: place, type: int64, from: row_number}\n"),
    ("on_error: ignore}\n", "on_error: ignore}\n      - {name: file, type: string, from: file_name}\n"),
)  # fmt: skip


def test_where_rows_stood_and_several_tables(orders: Project) -> None:
    """Columns that are made tell of the reject, in the sources that have them; a row goes where the split sends it."""
    text = package(
        "ways: {input: united, split: {early: \"day < DATE '2024-06-01'\", late: else}}",
        destinations="early: {input: ways.early, connection: warehouse, table: early, target: replace}\n"
        "        late: {input: ways.late, connection: warehouse, table: late, target: replace}",
    )
    first, second = MADE
    text = text.replace(first[0], first[0] + first[1]).replace(*("on_error: ignore}\n", second[1]))
    orders.package(text)
    run = str(orders.run(limit=5).succeeded()["run_id"])
    copied(orders, run).write_bytes(GOOD)
    ended = replayed(orders, run, "repair.txt")
    assert ended.exit_code == 0, ended.stderr
    columns = f"{COLUMNS}, file, place"
    found = [*loaded(orders, "early", columns), *loaded(orders, "late", columns)]
    told = {row[:5]: row[5:] for row in found}
    assert told["77", "1.50", "2024-02-01", "schlecht", None] == ("old.1.csv", "2002")
    assert told["78", "1.00", "2024-02-29", "größer\r\nals; je", None] == ("old.1.csv", "2003")
    assert told["1", "1.00", "2024-12-01", None, "web"] == ("new.9", None)
    assert told["300", "7.00", "2024-01-01", None, None] == (None, None)
    assert as_text([row[:5] for row in found]) == mended(orders)


@pytest.mark.faults
@pytest.mark.parametrize("event", ["run_started", "task_started", "task_finished"])
def test_a_replay_that_is_killed(orders: Project, event: str) -> None:
    """What it has taken is in its run folder, with the source of each row."""
    orders.package(package())
    run = str(orders.run(limit=5).succeeded()["run_id"])
    copied(orders, run).write_bytes(GOOD)
    with orders.started(command("replay", run, "repair.txt")) as running:
        wait_for_replay(orders, running, event)
        running.end()
    resumed = orders.resume()  # exit code 6: it had ended, or not come to the ledger
    assert resumed.exit_code in (0, 6), resumed.stderr
    again = replayed(orders, run, "repair.txt")
    assert again.exit_code in (0, 1), again.stderr
    assert loaded(orders) == mended(orders)


def test_repaired_rows_pass_what_stands_in_front_of_their_source(orders: Project) -> None:
    """A row that a query refuses is a reject as any other; the mended one passes the query again."""
    text = package()
    before = 'united: {union: {sources: [old, new, placed], missing: "null"}}'
    assert before in text
    doubled = (
        'doubled: {input: new, sql: "SELECT id, CAST(amount * 2 AS DECIMAL(9,2)) AS amount, day, '
        'CAST(CAST(channel AS INTEGER) AS VARCHAR) AS channel FROM new WHERE id <> 7"}'
    )
    text = text.replace(
        before, f'{doubled}\n        united: {{union: {{inputs: [old, doubled, placed], missing: "null"}}}}'
    )
    orders.package(text.replace("varchar(8)", "string"))
    for path in orders.inbox.glob("new.*"):
        path.unlink()
    orders.file("new.1", "id|day|channel|amount\n5|2024-01-05|55|5.00\n6|2024-01-06|web|6.00\n7|2024-01-07|77|7.00\n")
    ended = orders.run(limit=6)
    assert sources(ended)["new"] == (4, 1, 3, 1)
    run = str(ended.summary["run_id"])
    copy = copied(orders, run)
    assert copy.read_bytes() == "".join((*BAD_OLD, "6|2024-01-06|web|6.00\n", BAD_PLACED)).encode("cp1252")
    copy.write_bytes("".join((*GOOD_OLD, "6|2024-01-06|66|6.00\n", GOOD_PLACED)).encode("cp1252"))
    ended = replayed(orders, run, "repair.txt")
    assert {name: own[2:] for name, own in sources(ended).items()} == {"old": (2, 0), "new": (1, 0), "placed": (1, 0)}
    found = [row for row in loaded(orders) if row[4] is not None]
    assert found == [("5", "10.00", "2024-01-05", None, "55"), ("6", "12.00", "2024-01-06", None, "66")]


def test_a_qualifier_of_one_source_is_text_in_another(orders: Project) -> None:
    """Rows are told apart by the layout of their own source: a quote that opens nothing there swallows no row."""
    orders.package(package())
    new = ("'web|1|{}|1.00\n", "shop|2|{}|2.00\n")
    (orders.inbox / "new.9").write_text("channel|id|Day|amount\n" + "".join(own.format("2024-13-01") for own in new))
    run = str(orders.run(limit=5).succeeded()["run_id"])
    good = (*GOOD_OLD, *(own.format("2024-12-01") for own in new), GOOD_PLACED)
    copied(orders, run).write_bytes("".join(good).encode("cp1252"))
    ended = replayed(orders, run, "repair.txt")
    assert {name: own[2:] for name, own in sources(ended).items()} == {"old": (2, 0), "new": (2, 0), "placed": (1, 0)}
    assert ("1", "1.00", "2024-12-01", None, "'web") in loaded(orders)


def test_a_row_of_one_source_lacks_in_the_tables_of_that_source(orders: Project) -> None:
    """One table has the rows of `new` alone, which stand in front of the union."""
    out, beside = (
        f"{name}: {{input: {rows}, connection: warehouse, table: {table}, target: replace}}"
        for name, rows, table in (("out", "united", "orders"), ("raw", "new", "raw"))
    )
    orders.package(package(destinations=f"{beside}\n        {out}"))
    run = str(orders.run(limit=5).succeeded()["run_id"])
    copied(orders, run).write_bytes(GOOD)
    ended = replayed(orders, run, "repair.txt")
    found = {own["table"]: (own["numbers"], own["loaded"]) for own in ended.summary["replay"]["tables"]}
    assert found == {"orders": (5, 5), "raw": (2, 2)}, ended.stderr
    assert ended.summary["replay"]["open"] == 0
    assert loaded(orders) == mended(orders)
    raw = loaded(orders, "raw", "id, amount, channel")
    assert len(raw) == ROWS["new"] + 2
    assert {("1", "1.00", "web"), ("2", "2.00", "longer")} <= {*raw}
