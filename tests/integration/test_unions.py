"""Unions into DuckDB: what plain DuckDB makes of the same files, by 1 and 16 streams; accounts of each source; rejects;
what may stand behind them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Thread

import pytest

from tests.integration.driver import Project
from tests.integration.gate import BEHIND
from tests.integration.union_scenes import ROWS, differences, package, sources, spoil, write_files
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot

IN_ORDER = "SELECT id, amount, day, note, channel FROM rows"
DAYS = "lookup: {connection: inbox, files: days.csv, layout: days, on: {day: day}, add: [season]"


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project)
    project.file("days.csv", "".join(f"2024-{month:02}-{own:02},season {month // 3}\n" for month in range(1, 13)
                                     for own in range(1, 28)))  # fmt: skip
    return project


@pytest.mark.parametrize("streams", ["1", "16"])
def test_the_table_has_the_rows_of_all_sources(orders: Project, streams: str) -> None:
    orders.package(package())
    ended = orders.run(streams=streams)
    assert differences(orders, IN_ORDER) == (0, 0, sum(ROWS.values()))
    assert sources(ended) == {
        "old": (4003, 3, 4000, 0),
        "new": (3002, 2, 3000, 0),
        "placed": (1000, 0, 1000, 0),
    }
    (table,) = ended.summary["tables"]
    assert table["rows_loaded"] == table["rows_read"] == sum(ROWS.values())
    (event,) = [own for own in orders.events() if own["event"] == "task_finished" and own["task"] == "load"]
    assert event["union"] == table["union"]
    types = "SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 'orders' ORDER BY 1"
    assert [name for name, _ in orders.query(types)] == ["amount", "channel", "day", "id", "note"]
    assert orders.leftovers() == []


def test_plan(orders: Project) -> None:
    orders.execute("SELECT 1")  # what is said of a file that is not there is wrapped by the length of its path
    orders.package(package())
    plan = orders.command([sys.executable, "-m", "headrace", "plan", "package.yaml"])
    assert_snapshot("union/plan", orders.stable(plan.stdout))
    told = json.loads(orders.command([sys.executable, "-m", "headrace", "plan", "package.yaml", "--json"]).stdout)
    (task,) = told["tasks"]
    assert task["union"]["sources"] == ["old", "new", "placed"]
    own = task["flow"]["union"]
    assert [source["first_file"] for source in own["sources"]] == [0, 3, 5]
    assert [source["places"] for source in own["sources"]] == [
        [0, 1, 2, 3, None],
        [1, 3, 0, None, 2],
        [1, 2, 0, None, None],
    ]
    assert ["layout" in source for source in own["sources"]] == [False, True, True]


def test_a_table_says_how_columns_are_read_in_every_layout(orders: Project) -> None:
    """Amounts of more than 100 do not fit into the table, and a number may not be NULL there."""
    orders.execute("CREATE TABLE orders (day DATE, amount DECIMAL(5,2), id INTEGER NOT NULL, note VARCHAR, "
                   "channel VARCHAR)")  # fmt: skip
    orders.package(package())
    ended = orders.run(limit=8_000)
    told = sources(ended)
    only, missing, loaded = differences(
        orders, "SELECT day, amount, id, note, channel FROM rows WHERE (amount < 1000 OR amount IS NULL) "
        "AND id IS NOT NULL"
    )  # fmt: skip
    assert (only, missing) == (0, 0)
    assert loaded == sum(rows - rejected for _, _, rows, rejected in told.values())
    assert told["placed"][3] == 0
    without = [number for part in (100_000, 110_000) for number in range(part, part + 1500) if number % 11 == 0]
    assert told["old"][3] > 3000
    assert told["new"][3] == len(without)


def test_a_column_that_a_source_lacks_cannot_be_not_null(orders: Project) -> None:
    orders.execute("CREATE TABLE orders (id BIGINT, amount DECIMAL(9,2), day DATE, note VARCHAR NOT NULL, "
                   "channel VARCHAR(8))")  # fmt: skip
    orders.package(package())
    assert_snapshot("union/not_null", orders.stable(orders.run().error))


def test_rejects_are_told_with_the_file_and_the_columns_of_their_source(orders: Project) -> None:
    spoil(orders)
    orders.package(package())
    ended = orders.run(limit=3)
    assert {name: own[3] for name, own in sources(ended).items()} == {"old": 1, "new": 1, "placed": 1}
    (table,) = ended.summary["tables"]
    lines = [json.loads(line) for line in Path(orders.folder, table["rejects"]["files"][0]).read_text().splitlines()]
    assert [
        (Path(own["file"]).name, own["row"], own["column"], own["column_number"], own["value"]) for own in lines
    ] == [
        ("old.1.csv", 2002, "amount", 2, "1,x"),
        ("new.9", 2, "Day", 1, "2024-13-01"),
        ("placed.txt", 1001, "amount", 3, " " * 10),
    ]
    # NULL in place of a value that is none, as the layout of that source says.
    assert table["ignored"] == {"new.amount": {"nulls": 1, "cut": 0}}
    assert "column `new.amount`: 1 value was no decimal(9,2), so NULL" in table["notes"]
    shown = orders.command([sys.executable, "-m", "headrace", "rejects", "--runs-dir", "runs", "last"])
    assert "Day" in shown.stdout and "placed.txt" in shown.stdout
    failed = orders.run(limit=2)
    assert failed.exit_code == 1


@pytest.mark.parametrize("streams", ["1", "4"])
def test_transforms_behind_it(orders: Project, streams: str) -> None:
    orders.package(
        package(
            f"keyed: {{input: united, {DAYS}, no_match: {{default: none}}}}}}",
            'big: {input: keyed, sql: "SELECT id, amount * 2 AS twice, season, note FROM keyed WHERE amount > 100"}',
            input="big",
        )
    )
    ended = orders.run(streams=streams)
    sql = (
        "SELECT id, amount * 2 AS twice, CASE WHEN day(day) < 28 THEN 'season ' || month(day) // 3 ELSE 'none' END, "
        "note FROM rows WHERE amount > 100"
    )
    assert differences(orders, sql)[:2] == (0, 0)
    assert sources(ended)["old"][2] == ROWS["old"]


def test_each_table_tells_its_sources_once(orders: Project) -> None:
    orders.package(package())
    ended = orders.command([sys.executable, "-m", "headrace", "run", "package.yaml", "--runs-dir", "runs"])
    assert "orders: union united: old 4,000 rows, new 3,000 rows, placed 1,000 rows" in " ".join(ended.stdout.split())


def test_queries_over_all_rows_behind_it(orders: Project) -> None:
    sql = "SELECT channel, count(*) AS n, sum(amount) AS total FROM united GROUP BY channel"
    orders.package(package(f'sums: {{input: united, sql: "{sql}"}}', input="sums"))
    ended = orders.run()
    assert differences(orders, sql.replace("FROM united", "FROM rows"))[:2] == (0, 0)
    assert {name: own[2] for name, own in sources(ended).items()} == ROWS


def test_several_destinations_behind_it(orders: Project) -> None:
    orders.package(
        package(
            "parted: {input: united, split: {web: \"channel = 'web'\"}}",
            destinations="web: {input: parted.web, connection: warehouse, table: orders, target: replace}\n"
            "        rest: {input: parted.rest, connection: warehouse, table: others, target: replace}",
        )
    )
    ended = orders.run()
    assert differences(orders, f"{IN_ORDER} WHERE channel = 'web'")[:2] == (0, 0)
    assert differences(orders, f"{IN_ORDER} WHERE channel IS DISTINCT FROM 'web'", "others")[:2] == (0, 0)
    assert {name: own[2] for name, own in sources(ended).items()} == ROWS
    shown = orders.command([sys.executable, "-m", "headrace", "run", "package.yaml", "--runs-dir", "runs"])
    line = "load: union united: old 4,000 rows, new 3,000 rows, placed 1,000 rows"
    assert " ".join(shown.stdout.split()).count(line) == 1


def test_a_view_of_partitions(orders: Project) -> None:
    orders.package(package(more="load: view, partition: {hash: {column: id, parts: 3}}"))
    orders.run().succeeded()
    assert differences(orders, IN_ORDER) == (0, 0, sum(ROWS.values()))


def test_columns_that_are_made(orders: Project) -> None:
    text = package(more="columns: {id: id, file: file, row: row}")
    text = text.replace(
        "- {name: note, type: string}", "- {name: row, type: int64, from: row_number}\n      - {name: file, type: "
        "string, from: file_name}\n      - {name: note, type: string}"
    )  # fmt: skip
    text = text.replace("- {name: channel,", "- {name: file, type: string, from: file_name}\n      - {name: channel,")
    orders.package(text)
    orders.run(streams="16").succeeded()
    assert orders.query("SELECT file, count(*), count(row), max(row) FROM orders GROUP BY 1 ORDER BY 1") == [
        ("new.0.gz", 1500, 0, None),
        ("new.1.gz", 1500, 0, None),
        ("old.0.csv", 1000, 1000, 1001),
        ("old.1.csv", 2000, 2000, 2001),
        ("old.2.csv", 1000, 1000, 1001),
        (None, 1000, 0, None),
    ]


MIXED = """
headrace: 1
package: mixed
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb}
layouts:
  old:
    delimiter: ";"
    header: skip
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: origin, type: string, from: file_name}
      - {name: n, type: int64, from: row_number}
  new: {delimiter: "|", columns: [{name: Origin, type: string}, {name: n, type: int64}, {name: ID, type: int64}]}
tasks:
  loop:
    foreach:
      in: [1, 2]
      item: turn
      tasks:
        load:
          data_flow:
            sources:
              old: {connection: inbox, files: o.csv, layout: old}
              new: {connection: inbox, files: n.txt, layout: new}
            transforms:
              all: {union: {sources: [old, new]}}
              turned: {input: all, sql: 'SELECT id, origin, n, $turn AS turn FROM "all"'}
            destinations:
              out: {input: turned, connection: warehouse, table: t, target: append}
  flat:
    after: loop
    data_flow:
      sources:
        new: {connection: inbox, files: n.txt, layout: new}
        old: {connection: inbox, files: o.csv, layout: old}
      transforms:
        all: {union: {sources: [new, old]}}
      destinations:
        out: {input: all, connection: warehouse, table: t2, target: replace, columns: {i: ID, o: Origin}}
"""


def test_a_column_that_one_source_makes_and_another_one_reads(project: Project) -> None:
    """In turns of a loop, whose sources are told together; and where nobody asks for numbers of rows."""
    project.package(MIXED)
    project.file("o.csv", "id\n1\n2\n")
    project.file("n.txt", "src|7|5\n|8|6\n")
    command = [sys.executable, "-m", "headrace", "run", "package.yaml", "--runs-dir", "runs", "--quiet"]
    ended = project.command(command)
    assert ended.exit_code == 0, ended.stderr
    assert "t: union all: old 4 rows, new 4 rows\nt2: union all: new 2 rows, old 2 rows\n" in ended.stdout
    rows = [(1, "o.csv", 2), (2, "o.csv", 3), (5, "src", 7), (6, None, 8)]
    assert project.query("SELECT id, origin, n FROM t WHERE turn = 2 ORDER BY 1") == rows
    assert project.query("SELECT i, o FROM t2 ORDER BY 1") == [row[:2] for row in rows]
    ended = project.run("--connection", "warehouse=null:")
    assert [table["columns"][0]["sum"] for table in ended.succeeded()["tables"]] == ["14", "14", None]


def test_sources_without_files_or_rows(orders: Project) -> None:
    orders.package(package())
    missing = orders.run(old="none.*")
    assert_snapshot("union/no_files", orders.stable(missing.error))
    ended = orders.run(old="none.*", missing="skip")
    assert {name: own[2] for name, own in sources(ended).items()} == {**ROWS, "old": 0}
    assert "old: no file in" in " ".join(ended.summary["tables"][0]["notes"])
    orders.file("bare.csv", "id;amount;day;note\r\n")
    assert_snapshot("union/no_rows", orders.stable(orders.run(old="bare.*").error))
    ended = orders.run(old="bare.*", empty="allow")
    assert sources(ended)["old"] == (1, 1, 0, 0)
    for path in orders.inbox.iterdir():
        path.unlink()
    ended = orders.run(missing="skip")
    assert ended.exit_code == 0
    assert [own["task"] for own in ended.summary["skipped"]] == ["load"]


def test_a_file_of_two_sources_is_refused(orders: Project) -> None:
    orders.package(package())
    # Rows that end as the layouts of both say.
    placed = orders.inbox / "placed.txt"
    placed.write_bytes(placed.read_bytes().replace(b"\n", b"\r\n"))
    assert_snapshot("union/one_file_twice", orders.stable(orders.run(old="old.*,placed.txt").error))


def test_a_row_that_breaks_a_constraint_is_named(orders: Project) -> None:
    orders.execute("CREATE TABLE orders (id BIGINT CHECK (id <> 200001), amount DECIMAL(9,2), day DATE, note VARCHAR, "
                   "channel VARCHAR)")  # fmt: skip
    orders.package(package(more="").replace("target: replace", "target: append"))
    error = orders.stable(orders.run().error)
    assert "placed.txt, row 2" in error, error


def test_verify_compares_all_rows(orders: Project) -> None:
    orders.package(package())
    orders.run().succeeded()
    command = [sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "last"]
    verified = orders.command(command)
    assert (verified.exit_code, "equal" in verified.stdout) == (0, True), verified.stdout + verified.stderr
    orders.execute("UPDATE orders SET amount = amount + 1 WHERE id = 200005")
    verified = orders.command(command)
    assert (verified.exit_code, "amount" in verified.stdout) == (1, True)


def test_report_and_graph(orders: Project) -> None:
    orders.package(package())
    orders.run().succeeded()
    orders.command([sys.executable, "-m", "headrace", "report", "--runs-dir", "runs", "last"])
    (page,) = orders.runs.glob("*/report.html")
    assert "Rows of each source" in page.read_text()
    graph = orders.command([sys.executable, "-m", "headrace", "plan", "package.yaml", "--graph", "mermaid"])
    assert_snapshot("union/graph", graph.stdout)


def test_pipes_of_any_source(orders: Project) -> None:
    """Not more of them than there are streams; each is opened by its own layout."""
    for path in [*orders.inbox.glob("old*"), *orders.inbox.glob("new*")]:
        path.unlink()
    pipes = [orders.inbox / f"old.{number}" for number in range(2)]
    new = orders.file("new.txt", "id|Day|channel|amount\n8|2024-01-01|web|2.5\n")
    for path in pipes:
        os.mkfifo(path)
    orders.package(package())
    assert_snapshot("union/pipes", orders.stable(orders.run(streams=1, old="old.0,old.1").error))
    with orders.started(orders.arguments(streams=2, old="old.0,old.1")) as running:
        text = "id;amount;day;note\r\n7;1,5;01.02.2024;x\r\n"
        writers = [Thread(target=path.write_text, args=(text,), daemon=True) for path in pipes]
        for writer in writers:
            writer.start()
        ended = running.wait()
        for writer in writers:
            writer.join(HANG_SECONDS)
    assert [own[2] for own in sources(ended).values()] == [2, 1, 1000]
    assert orders.query("SELECT id, amount::VARCHAR, channel FROM orders WHERE id < 100 ORDER BY 1") == [
        (7, "1.50", None),
        (7, "1.50", None),
        (8, "2.50", "web"),
    ]
    text = new.read_text()
    new.unlink()
    os.mkfifo(new)
    orders.file("old.csv", "id;amount;day;note\r\n7;1,5;01.02.2024;x\r\n")
    with orders.started(orders.arguments(streams=2, old="old.csv", new="new.txt")) as running:
        writer = Thread(target=new.write_text, args=(text,), daemon=True)
        writer.start()
        ended = running.wait()
        writer.join(HANG_SECONDS)
    assert [own[2] for own in sources(ended).values()] == [1, 1, 1000]
    assert orders.query("SELECT id, amount::VARCHAR, channel FROM orders WHERE id < 100 ORDER BY 1") == [
        (7, "1.50", None),
        (8, "2.50", "web"),
    ]


def test_secrets_in_paths_are_not_told(orders: Project) -> None:
    spoil(orders)
    orders.package(package().replace("path: inbox", 'path: "${env:PLACE}"'))
    orders.inbox.rename(orders.folder / "canary")
    ended = orders.run(environment={"PLACE": str(orders.folder / "canary")}, limit=3)
    assert [own[3] for own in sources(ended).values()] == [1, 1, 1]
    written = b"".join(path.read_bytes() for path in orders.runs.rglob("*") if path.is_file())
    assert b"canary" not in written + ended.stdout.encode() + ended.stderr.encode()
    assert orders.query("SELECT count(*) FROM headrace.slice WHERE contains(file, 'canary')") == [(0,)]


@pytest.mark.parametrize("query", ["", "SELECT channel, count(*) AS n FROM united GROUP BY channel"])
def test_a_resumed_run_tells_what_the_sources_of_a_finished_table_were(orders: Project, query: str) -> None:
    spoil(orders)
    with (orders.inbox / "placed.txt").open("a") as file:
        file.write("2024-13-01     301      1.00\n")  # column 1, as `Day` of another source
    orders.execute("CREATE TABLE gate (open BOOL)")
    transforms = [f'sums: {{input: united, sql: "{query}"}}'] if query else []
    orders.package(package(*transforms, input="sums" if query else "united") + BEHIND)
    failed = orders.run(limit=5)
    assert failed.exit_code == 1
    table = failed.summary["tables"][0]
    assert [own["rows_rejected"] for own in table["union"]["sources"]] == [1, 1, 2]
    orders.execute("INSERT INTO gate VALUES (true)")
    resumed = orders.resume().succeeded()["tables"][0]
    found, expected = ({(kind["column"], kind["rule"], kind["count"]) for kind in own["rejects"]["by_column"]}
                       for own in (resumed, table))  # fmt: skip
    assert found == expected >= {("Day", "bad_date", 1), ("day", "bad_date", 1)}
    for name in ("union", "ignored", "rows_read", "rows_rejected", "rows_loaded", "lines"):
        assert resumed[name] == table[name], name


def test_what_nobody_knows_of_the_sources_any_more_is_not_told(orders: Project) -> None:
    orders.execute("CREATE TABLE gate (open BOOL)")
    orders.package(package() + BEHIND)
    orders.run()
    (kept,) = orders.runs.glob("*/rejects/orders.union.json")
    kept.unlink()
    orders.execute("INSERT INTO gate VALUES (true)")
    (table,) = orders.resume().succeeded()["tables"][:1]
    assert (table["union"], table["rows_read"]) == (None, sum(ROWS.values()))


TWO_TASKS = """
headrace: 1
package: two
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb}
layouts:
  ids: {delimiter: "|", columns: [{name: id, type: int64}]}
tasks:
  one:
    data_flow:
      sources:
        a: {connection: inbox, files: a, layout: ids}
        b: {connection: inbox, files: b, layout: ids}
      transforms: {all: {union: {sources: [a, b]}}}
      destinations:
        out: {input: all, connection: warehouse, table: t, target: append}
  two:
    after: one
    data_flow:
      sources:
        b: {connection: inbox, files: b, layout: ids}
        c: {connection: inbox, files: c, layout: ids}
        d: {connection: inbox, files: d, layout: ids}
      transforms: {all: {union: {sources: [b, c, d]}}}
      destinations:
        out: {input: all, connection: warehouse, table: t, target: append}
"""


def test_unions_of_other_sources_into_one_table(project: Project) -> None:
    project.package(TWO_TASKS)
    for name in "abcd":
        project.file(name, "1\n")
    ended = project.command([sys.executable, "-m", "headrace", "run", "package.yaml", "--quiet"])
    assert ended.exit_code == 0, ended.stderr
    assert "t: union all: a 1 row, b 1 row\nt: union all: b 1 row, c 1 row, d 1 row\n" in ended.stdout
