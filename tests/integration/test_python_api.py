"""Runs from Python: results, failures, resuming, notebooks, threads, Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

import headrace
from headrace.run.event_lines import EVENT_LINES
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def package(folder: Path, name: str = "loads", rows: str = "1,2.50\n2,3.00\n") -> headrace.Package:
    folder.mkdir(exist_ok=True)
    (folder / "orders_2024-01-31.csv").write_text(rows)
    built = headrace.Package(name, folder=folder)
    built.parameter("day", type="date", required=True)
    built.variable("loaded", type="integer")
    built.connection("inbox", type="files", path=".")
    built.connection("warehouse", type="duckdb", path="w.duckdb")
    built.layout(
        "orders", delimiter=",", columns=[{"name": "id", "type": "int64"}, {"name": "amount", "type": "decimal(9,2)"}]
    )
    load = built.data_flow(
        "load",
        rejects={"limit": 1},
        sources={"orders": {"connection": "inbox", "files": "orders_${day}.csv", "layout": "orders"}},
        destinations={"sales": {"input": "orders", "connection": "warehouse", "table": "sales", "target": "append"}},
    )
    built.sql("count", connection="warehouse", text="SELECT count(*) AS n FROM sales", row={"loaded": "n"}, after=load)
    return built


def rows(folder: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(folder / "w.duckdb"), read_only=True) as connection:
        return connection.execute("SELECT id, amount::VARCHAR FROM sales ORDER BY id").fetchall()


def test_a_run_and_its_result(tmp_path: Path) -> None:
    built = package(tmp_path / "p", rows="1,2.50\nx,3.00\n")
    events: list[Mapping[str, Any]] = []
    result = headrace.run(built, parameters={"day": date(2024, 1, 31)}, listener=events.append)
    assert result.ok and result.status == "success" and result.error is None
    assert result.raise_if_failed() is result
    assert (result.rows_loaded, result.rows_rejected) == (1, 1)
    (table,) = result.tables
    assert (table.task, table.table, table.target, table.rows_read) == ("load", "sales", "append", 2)
    assert sorted(path.name for path in result.rejects) == ["sales.bad", "sales.jsonl"]
    assert all(path.exists() for path in result.rejects)
    assert [(task.task, task.kind, task.success) for task in result.tasks] == [
        ("load", "data_flow", 1),
        ("count", "sql", 1),
    ]
    assert result.run_folder.parent == tmp_path / ".headrace" / "runs"
    assert result.summary == json.loads((result.run_folder / "summary.json").read_text())
    assert rows(tmp_path / "p") == [(1, "2.50")]
    assert {event["event"] for event in events} >= {"run_started", "task_started", "task_finished", "run_finished"}
    with pytest.raises(AttributeError):
        result.status = "failed"  # type: ignore[misc]


def test_every_line_of_events_is_declared(tmp_path: Path) -> None:
    built = package(tmp_path / "p")
    for name in ("a", "b"):
        built.variable(name, type="integer")
    built.set("never", {"a": "0"}, when="false")
    built.build("made", connection="warehouse", table="made", target="create", select="SELECT 1 AS a", after="count")
    built.set("fails", {"b": "CAST(system.run_id AS INTEGER)"}, after="made")
    built.sql("broken", connection="warehouse", text="SELECT * FROM nowhere", after="made")
    result = built.run(parameters={"day": "2024-01-31"})
    assert result.status == "failed"
    lines = [json.loads(line) for line in (result.run_folder / "events.jsonl").read_text().splitlines()]
    others = {"progress", "notice", "limit", "slow_streams", "lookup_started", "lookup_read"}
    assert {line["event"] for line in lines} >= set(EVENT_LINES) - others
    for line in lines:
        declared = EVENT_LINES[line["event"]]
        members = set(line) - {"event", "at"} - set(declared.of_some)
        assert members in (set(declared.members), set(declared.members) | set(declared.of_flows)), line


def test_a_run_that_fails_and_goes_on(tmp_path: Path) -> None:
    built = package(tmp_path / "p")
    built.sql("more", connection="warehouse", text="INSERT INTO later SELECT id FROM sales", after="count")
    result = built.run(parameters={"day": date(2024, 1, 31)})
    assert (result.ok, result.status, result.rows_loaded) == (False, "failed", 2)
    assert isinstance(result.error, headrace.HeadraceError)
    with pytest.raises(headrace.HeadraceError, match="more"):
        result.raise_if_failed()
    with duckdb.connect(str(tmp_path / "p" / "w.duckdb")) as connection:
        connection.execute("CREATE TABLE later (id BIGINT)")
    with pytest.raises(headrace.HeadraceError) as caught:
        headrace.resume()
    assert caught.value.hint is not None and "package=" in caught.value.hint
    again = headrace.resume(result.run_id, package=built, raise_on_error=True)
    assert again.run_id == result.run_id and again.ok
    assert rows(tmp_path / "p") == [(1, "2.50"), (2, "3.00")]
    with pytest.raises(headrace.HeadraceError, match="no unfinished run"):
        headrace.resume()


def test_a_saved_package_is_resumed_by_its_file(tmp_path: Path) -> None:
    built = package(tmp_path / "p")
    built.sql("more", connection="warehouse", text="INSERT INTO later SELECT id FROM sales", after="count")
    built.save(tmp_path / "p" / "loads.yaml")
    with pytest.raises(headrace.HeadraceError):
        headrace.run(tmp_path / "p" / "loads.yaml", parameters={"day": "2024-01-31"}, raise_on_error=True)
    with duckdb.connect(str(tmp_path / "p" / "w.duckdb")) as connection:
        connection.execute("CREATE TABLE later (id BIGINT)")
    assert headrace.resume().ok


def test_tasks_and_connections_can_be_chosen(tmp_path: Path) -> None:
    built = package(tmp_path / "p")
    other = tmp_path / "other.duckdb"
    day = {"day": date(2024, 1, 31)}
    result = built.run(parameters=day, connections={"warehouse": f"duckdb://{other}"}, only=["load"])
    assert result.ok and other.exists() and not (tmp_path / "p" / "w.duckdb").exists()
    assert [task.passed for task in result.tasks if task.task == "count"] in ([1], [])
    with pytest.raises(headrace.HeadraceError, match="no task `laod`"):
        built.run(parameters=day, skip=["laod"])
    assert built.plan(parameters=day, skip=["count"]).tables == ("sales",)


def test_code_needs_trust(tmp_path: Path) -> None:
    built = headrace.Package("p")
    built.process("touch", command=["touch", str(tmp_path / "touched")])
    with pytest.raises(headrace.HeadraceError) as caught:
        built.run()
    assert "trust=True" in (caught.value.hint or "") and not (tmp_path / "touched").exists()
    assert built.run(trust=True).ok and (tmp_path / "touched").exists()


def test_inside_a_running_loop(tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> headrace.RunResult:
        return package(tmp_path / "p").run(parameters={"day": date(2024, 1, 31)})

    assert asyncio.run(cell()).ok


def test_several_runs_at_once(tmp_path: Path) -> None:
    def one(number: int) -> headrace.RunResult:
        return package(tmp_path / f"p{number}", f"p{number}").run(parameters={"day": date(2024, 1, 31)})

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(one, range(4)))
    assert [(result.ok, result.rows_loaded, result.package) for result in results] == [
        (True, 2, f"p{number}") for number in range(4)
    ]
    assert len({result.run_id for result in results}) == 4


def test_a_run_is_cancelled_from_another_thread(tmp_path: Path) -> None:
    built = headrace.Package("p")
    built.process("wait", command=["sleep", str(FOR_EVER_SECONDS)])
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    result = built.run(trust=True, cancel=cancel)
    assert result.status == "cancelled" and result.error is not None
    assert time.monotonic() - began < HANG_SECONDS


def test_ctrl_c_ends_the_run_and_is_raised(tmp_path: Path) -> None:
    code = (
        "import signal\n"
        "import headrace\n"
        # A job in the background of a script ignores it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "p = headrace.Package('p')\n"
        f"p.process('wait', command=['sleep', '{FOR_EVER_SECONDS}'])\n"
        "try:\n"
        "    p.run(trust=True, listener=lambda event: print(event['event'], flush=True))\n"
        "except KeyboardInterrupt as error:\n"
        "    print('raised', error, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("task_started"):
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
        assert process.wait(HANG_SECONDS) == 0
    assert lines[-1].startswith("raised run ") and "headrace.resume(" in lines[-1]
