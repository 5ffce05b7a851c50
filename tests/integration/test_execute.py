"""Whole runs of small packages into DuckDB: what a run leaves behind, whatever happens to it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headrace.run as run
from headrace.diagnose import RunJudge
from headrace.model import load_package
from headrace.run import Summary
from tests.cancelling import CancelledOnceStarted
from tests.snapshots import assert_snapshot

ROWS = 1000
CANARY = "c4n4ry-S3cret"
PACKAGE = """
headrace: 1
package: sales
parameters:
  data: {type: path, required: true}
  folder: {type: string, default: .}
  target: {type: string, default: replace}
  table: {type: string, default: orders}
  files: {type: string, default: "orders.tbl.*"}
  missing: {type: string, default: error}
  empty: {type: string, default: error}
  limit: {type: integer, default: 0}
connections:
  inbox: {type: files, path: "${data}/${folder}"}
  warehouse: {type: duckdb, path: "${data}/w.duckdb", lock_timeout_seconds: 1}
streams: 3
tasks:
  load_orders:
    data_flow:
      rejects: {limit: "${limit}"}
      sources:
        orders:
          connection: inbox
          files: "${files}"
          missing: "${missing}"
          empty: "${empty}"
          layout:
            delimiter: "|"
            columns:
              - {name: id, type: int64, nullable: false}
              - {name: amount, type: "decimal(15,2)"}
      destinations:
        sales: {input: orders, connection: warehouse, table: "${table}", target: "${target}"}
"""


def foreach(items: str, **replaced: str) -> str:
    """The package with its task once per item `t`, in place of some of its parameters."""
    head, task = PACKAGE.split("tasks:\n")
    for name, value in replaced.items():
        task = task.replace(f'"${{{name}}}"', value)
    lines = "".join(f"      {line}\n" for line in task.splitlines())
    return f"{head}tasks:\n  all:\n    foreach:\n      item: t\n      in: {items}\n      tasks:\n{lines}"


AGAIN = """
  again:
    data_flow:
      sources:
        orders:
          connection: inbox
          files: "orders.tbl.*"
          layout: {delimiter: "|", columns: [{name: id, type: int64}, {name: amount, type: "decimal(15,2)"}]}
      destinations:
        sales: {input: orders, connection: warehouse, table: orders, target: append}
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for file in (1, 2):
        rows = (f"{file * ROWS + number}|{number}.25\n" for number in range(ROWS))
        (tmp_path / f"orders.tbl.{file}").write_text("".join(rows))
    return tmp_path


def bind(data: Path, text: str = PACKAGE, environ: Mapping[str, str] | None = None, **parameters: object) -> Any:
    path = data / "package.yaml"
    path.write_text(text)
    sets = [f"{name}={value}" for name, value in {"data": data, **parameters}.items()]
    return load_package(path, sets=sets, environ=environ or {})


def execute(data: Path, text: str = PACKAGE, **parameters: object) -> Summary:
    return run.execute(bind(data, text, None, **parameters), runs_dir=data / "runs", judge=RunJudge())


def query(data: Path, text: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(data / "w.duckdb"), read_only=True) as connection:
        return connection.execute(text).fetchall()


def failure(summary: Summary, data: Path) -> str:
    assert summary.failure is not None
    assert summary.status == "failed"
    return summary.failure.render().replace(str(data), "DATA")


def test_success(data: Path) -> None:
    events: list[Mapping[str, Any]] = []
    summary = run.execute(bind(data), runs_dir=data / "runs", listener=events.append, judge=RunJudge())
    document = summary.to_dict()
    assert (document["status"], document["rows_loaded"], summary.exit_code) == ("success", 2 * ROWS, 0)
    assert query(data, "SELECT count(*), sum(amount) FROM orders") == query(
        data, "SELECT 2000, 2 * (999 * 500 + 250)::DECIMAL(15,2)"
    )
    folder = Path(summary.run_folder)
    assert json.loads((folder / "summary.json").read_text()) == document
    assert sorted(item.name for item in folder.iterdir()) == [
        "events.jsonl",
        "journal.jsonl",
        "metrics.jsonl",
        "summary.json",
    ]
    # There is a verdict only if the machine was so busy that this took more than half a second.
    names = [event["event"] for event in events if event["event"] not in ("progress", "limit", "slow_streams")]
    assert names == ["run_started", "notice", "task_started", "task_finished", "run_finished"]
    assert set(document["phases"]) == {"plan", "start", "prepare", "load", "commit", "finish"}
    # They do not overlap; what is between them takes as long as the machine lets it.
    assert 0 < sum(document["phases"].values()) <= document["seconds"]
    assert (document["limit"] is None) == (not [event for event in events if event["event"] == "limit"])


@pytest.mark.parametrize("affinity", ["cores", "numa"])
def test_streams_that_keep_to_cpus(data: Path, affinity: str) -> None:
    """Each thread of the core is asked for by the system; that it may not run elsewhere is tested there."""
    package = bind(data, PACKAGE.replace("package: ", f"affinity: {affinity}\npackage: ", 1))
    assert run.plan_package(package).affinity == affinity
    assert run.execute(package, runs_dir=data / "runs").status == "success"


def test_run_twice_gives_the_same(data: Path) -> None:
    execute(data)
    execute(data)
    assert query(data, "SELECT count(*), count(DISTINCT id) FROM orders") == [(2 * ROWS, 2 * ROWS)]
    assert query(data, "SELECT status, count(*) FROM headrace.run GROUP BY ALL") == [("success", 2)]


def test_a_later_task_finds_the_table_of_an_earlier_one(data: Path) -> None:
    summary = execute(data, PACKAGE + AGAIN, target="create")
    assert summary.failure is None
    assert query(data, "SELECT count(*) FROM orders") == [(4 * ROWS,)]
    summary = execute(data, PACKAGE + AGAIN, target="create")
    assert "exists already" in failure(summary, data)
    assert query(data, "SELECT count(*) FROM orders") == [(4 * ROWS,)]


def test_a_failed_task_ends_the_run_and_keeps_what_was_there(data: Path) -> None:
    execute(data)
    with (data / "orders.tbl.2").open("a") as file:
        file.write("not a number|1.00\n")
    summary = execute(data, PACKAGE + AGAIN)
    assert "orders.tbl.2, row 1001, byte" in failure(summary, data)
    assert [table.plan.task for table in summary.tables] == ["load_orders"]
    assert query(data, "SELECT count(*) FROM orders") == [(2 * ROWS,)]
    assert query(data, "SELECT status FROM headrace.run ORDER BY started_at") == [("success",), ("failed",)]


def test_a_failed_run_says_what_it_has_appended(data: Path) -> None:
    (data / "late.tbl").write_text("not a number|1.00\n", encoding="utf-8")
    events: list[Mapping[str, Any]] = []
    package = bind(data, PACKAGE + AGAIN.replace('"orders.tbl.*"', "late.tbl"), target="append")
    summary = run.execute(package, runs_dir=data / "runs", listener=events.append)
    assert summary.status == "failed"
    assert [event["text"] for event in events if event["event"] == "notice"][-1] == (
        f"committed already: orders; `headrace resume {summary.run_id}` goes on behind that"
    )


def test_rejects_within_the_limit_are_accounted_for(data: Path) -> None:
    with (data / "orders.tbl.2").open("a") as file:
        file.write("not a number|1.00\n")
    document = execute(data, limit=1).to_dict()
    counts = [document[name] for name in ("status", "rows_read", "rows_loaded", "rows_rejected")]
    assert counts == ["success", 2 * ROWS + 1, 2 * ROWS, 1]
    assert all(Path(path).exists() for path in document["tables"][0]["rejects"]["files"])


@pytest.mark.parametrize(
    ("case", "parameters"),
    [
        ("no_match", {"files": "order.*"}),
        ("streams", {"files": "orders.tbl.{stream}"}),
        ("folder", {"folder": "orders"}),
    ],
)
def test_missing_files(data: Path, case: str, parameters: dict[str, str]) -> None:
    assert_snapshot(f"missing_{case}", failure(execute(data, **parameters), data))
    assert not (data / "w.duckdb").exists()


def test_empty_files(data: Path) -> None:
    for file in (1, 2):
        (data / f"orders.tbl.{file}").write_text("")
    assert_snapshot("empty", failure(execute(data), data))
    summary = execute(data, empty="allow")
    assert summary.failure is None
    assert query(data, "SELECT count(*) FROM orders") == [(0,)]


@pytest.mark.parametrize("count", [1, 2])
def test_files_without_a_data_row(data: Path, count: int) -> None:
    execute(data)
    for file in range(1, count + 1):
        (data / f"head.{file}").write_text("id|amount\n" + "\n" * (file - 1))
    text = PACKAGE.replace('delimiter: "|"', 'delimiter: "|"\n            header: skip')
    assert_snapshot(f"header_only_{count}", failure(execute(data, text, files="head.*"), data))
    assert query(data, "SELECT count(*) FROM orders") == [(2 * ROWS,)]
    assert execute(data, text, files="head.*", empty="allow").failure is None
    assert query(data, "SELECT count(*) FROM orders") == [(0,)]


def test_rows_that_were_all_rejected_are_data_rows(data: Path) -> None:
    (data / "bad.tbl").write_text("x|1.00\n")
    assert execute(data, files="bad.tbl", limit=1).failure is None


def test_a_source_without_files_is_skipped(data: Path) -> None:
    events: list[Mapping[str, Any]] = []
    package = bind(data, files="order.*", missing="skip")
    summary = run.execute(package, runs_dir=data / "runs", listener=events.append)
    assert (summary.status, summary.exit_code, summary.to_dict()["rows_loaded"]) == ("success", 0, 0)
    assert [task.task for task in summary.skipped] == ["load_orders"]
    notice = next(event["text"] for event in reversed(events) if event["event"] == "notice")
    assert notice == f"nothing to load: no file in {data / '.'} matches `order.*`"
    assert not (data / "w.duckdb").exists()


def test_several_sources_without_any_file_look_like_the_wrong_folder(data: Path) -> None:
    text = foreach('["a", "b"]', missing="skip", files='"${t}.tbl"')
    assert_snapshot("missing_all_skipped", failure(execute(data, text), data))
    (data / "b.tbl").write_text("1|1.00\n")
    summary = execute(data, text)
    assert (summary.status, len(summary.skipped), len(summary.tables)) == ("success", 1, 1)


def test_a_table_that_does_not_fit_is_refused_before_anything_happens(data: Path) -> None:
    with duckdb.connect(str(data / "w.duckdb")) as connection:
        connection.execute("CREATE TABLE orders (id DOUBLE, amount DECIMAL(15,2), remark VARCHAR NOT NULL)")
    assert_snapshot("does_not_fit", failure(execute(data), data))
    assert query(data, "SELECT count(*) FROM duckdb_tables()") == [(1,)]


def test_cancelled_before_the_files_are_looked_at(data: Path) -> None:
    """The database is not opened."""
    cancel = threading.Event()
    cancel.set()
    summary = run.execute(bind(data), runs_dir=data / "runs", cancel=cancel)
    assert (summary.status, summary.exit_code) == ("cancelled", 3)
    assert summary.failure is not None and summary.failure.what == "cutting the files was cancelled"
    assert not (data / "w.duckdb").exists()


def test_cancelled_before_the_first_row(data: Path) -> None:
    summary = run.execute(bind(data), runs_dir=data / "runs", cancel=CancelledOnceStarted(data / "runs"))
    assert (summary.status, summary.exit_code) == ("cancelled", 3)
    assert query(data, "SELECT status FROM headrace.run") == [("cancelled",)]
    assert query(data, "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'main'") == [(0,)]


def test_plan_changes_nothing(data: Path) -> None:
    before = sorted(data.iterdir())
    plan = run.plan_package(bind(data))
    json.dumps(plan.to_dict())
    assert [flow.table for flow in plan.flows] == ["orders"]
    assert sorted(data.iterdir()) == sorted([*before, data / "package.yaml"])


def test_plan_of_an_existing_database_changes_nothing(data: Path) -> None:
    execute(data)
    before = (data / "w.duckdb").read_bytes()
    assert run.plan_package(bind(data)).flows[0].steps[0].kind == "delete_rows"
    assert (data / "w.duckdb").read_bytes() == before


def test_reject_files_of_different_tables_stay_apart(data: Path) -> None:
    (data / "bad.tbl").write_text("x|1.00\n")
    tables = ["a b", "a_b", "a_b_2", "A-B", "a-b_2", "orders", "orders_2"]
    text = foreach(json.dumps(tables), table='"${t}"', limit="1", files="bad.tbl")
    again = AGAIN.replace("orders.tbl.*", "bad.tbl").replace("sources", "rejects: {limit: 1}\n      sources")
    summary = execute(data, text + again)
    assert summary.failure is None
    files = [path for table in summary.to_dict()["tables"] for path in table["rejects"]["files"]]
    rejects = [Path(path).read_text(encoding="utf-8").splitlines() for path in files if path.endswith(".jsonl")]
    assert [len(lines) for lines in rejects] == [1] * (len(tables) + 1)
    assert len({path.casefold() for path in files}) == len(files)


def test_a_table_is_not_replaced_behind_another_task(data: Path) -> None:
    replacing = AGAIN.replace("target: append", "target: replace").replace("table: orders", "table: ORDERS")
    assert_snapshot("replaced_twice", failure(execute(data, PACKAGE + replacing), data))
    assert not (data / "w.duckdb").exists()
    sets = [f"data={data}"]
    package = load_package(data / "package.yaml", sets=sets, connections=["warehouse=null:"], environ={})
    assert len(run.plan_package(package).flows) == 2


@pytest.mark.parametrize("name", ["w.duckdb", "w.duckdb.wal", "link"])
def test_the_destination_is_no_source(data: Path, name: str) -> None:
    execute(data)
    (data / "link").symlink_to(data / "w.duckdb")
    if name.endswith(".wal"):
        (data / name).write_text("")
    before = (data / "w.duckdb").read_bytes()
    assert_snapshot(f"destination_is_source_{name}", failure(execute(data, files=name), data))
    assert (data / "w.duckdb").read_bytes() == before


def test_secrets_in_names_do_not_reach_the_ledger(data: Path) -> None:
    """Items of a foreach are part of the names of tasks; two that differ in the secret alone stay two."""
    secrets = {"FIRST": CANARY, "SECOND": f"{CANARY}-2", "THIRD": "third-S3cret"}
    (data / "orders.tbl.2").write_text("x|1.00\n")
    items = json.dumps([f"${{env:{name}}}" for name in secrets])
    package = bind(data, foreach(items, table='"tab_${t}"', limit="1"), secrets)
    seen: list[Mapping[str, Any]] = []
    summary = run.execute(package, runs_dir=data / "runs", listener=seen.append)
    assert summary.failure is None
    names = {f"all[***].load_orders{number}" for number in ("", "#2", "#3")}
    for table in ("slice", "commit"):
        assert {row[0] for row in query(data, f'SELECT DISTINCT task FROM headrace."{table}"')} == names
    ledger = [query(data, f'SELECT t::VARCHAR FROM headrace."{table}" t') for table in ("run", "slice", "commit")]
    written = [path.read_text() + str(path) for path in (data / "runs").rglob("*") if path.is_file()]
    assert len(written) > 3
    everything = str(ledger) + str(seen) + str(summary.to_dict()) + "".join(written)
    assert [secret for secret in secrets.values() if secret in everything] == []
    assert {task["task"] for task in seen[0]["tasks"]} == names


@pytest.mark.parametrize("secret", ["rows", "tables", "seconds", "load", "success"])
def test_secrets_that_are_words_of_headrace(data: Path, secret: str) -> None:
    """They disappear from values; the documents keep their members."""
    (data / f"{secret}.csv").write_text("1|1.00\n")
    plain = execute(data, files=f"{secret}*.csv").to_dict()
    package = bind(data, PACKAGE.replace("${files}", "${env:FEED}*.csv"), {"FEED": secret})
    document = run.execute(package, runs_dir=data / "runs").to_dict()
    assert (document["status"], document["rows_loaded"]) == ("success", 1)
    assert list(document) == list(plain)
    assert list(document["tables"][0]) == list(plain["tables"][0])
    assert list(document["phases"]) == list(plain["phases"])


@pytest.mark.parametrize("files", ["orders.tbl.*", "*.none"])
def test_secrets_leave_no_trace(data: Path, files: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder whose name is a secret: it is part of every file name."""
    secret = data / CANARY
    secret.mkdir()
    for file in (1, 2):
        (secret / f"orders.tbl.{file}").write_text("1|1.00\n")
    text = PACKAGE.replace("${folder}", "${env:FOLDER}")
    package = bind(data, text, {"FOLDER": CANARY}, files=files)
    summary = run.execute(package, runs_dir=data / "runs", listener=lambda event: print(event))
    text = "" if summary.failure is None else summary.failure.render() + repr(summary.failure)
    assert CANARY not in text + str(capfd.readouterr())
    leaks = [path for path in (data / "runs").rglob("*") if path.is_file() and CANARY in path.read_text()]
    assert leaks == []
    if (data / "w.duckdb").exists():
        assert CANARY.encode() not in (data / "w.duckdb").read_bytes()
        assert query(data, f"SELECT count(*) FROM headrace.slice WHERE contains(file, '{CANARY}')") == [(0,)]


def test_events_are_complete(data: Path) -> None:
    summary = execute(data)
    lines = (Path(summary.run_folder) / "events.jsonl").read_text().splitlines()
    events = {event["event"]: event for event in map(json.loads, lines)}
    assert events["task_started"]["files"] == 2
    assert events["task_finished"]["rows_loaded"] == 2 * ROWS
    assert events["run_finished"]["status"] == "success"
