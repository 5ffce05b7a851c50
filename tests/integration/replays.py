"""Replays of a project as processes of their own, and moments of them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.integration.driver import GOOD_ROWS, Project, Running
from tests.patience import HANG_SECONDS

_POLL_SECONDS = 0.002


def command(name: str, *arguments: str) -> list[str]:
    """A command that prints JSON."""
    return [sys.executable, "-m", "headrace", name, *arguments, "--runs-dir", "runs", "--json"]


def rejecting_run(project: Project, rejects: int) -> str:
    """A run that has loaded 100 rows and rejected so many, with a repaired copy of them, `repair.tbl`."""
    project.file("orders.tbl.1", GOOD_ROWS + "".join(f"{1000 + number}|x|||\n" for number in range(rejects)))
    run = str(project.run(limit=rejects).succeeded()["run_id"])
    assert project.command(command("rejects", run, "--copy", "repair.tbl")).exit_code == 0
    repair = project.folder / "repair.tbl"
    repair.write_text(repair.read_text().replace("|x|", "|1.00|"))
    return run


def replay_folders(project: Project) -> list[Path]:
    """In the order in which they have begun."""
    paths = project.runs.glob("*/replay.json")
    return [path.parent for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns)]


def wait_for_replay(project: Project, running: Running, event: str) -> None:
    """Until a replay has written this event, or has ended."""
    deadline = time.monotonic() + HANG_SECONDS
    while running.poll() is None and event not in _events(project):
        assert time.monotonic() < deadline, f"no event {event}:\n{running.stderr}"
        time.sleep(_POLL_SECONDS)


def _events(project: Project) -> set[str]:
    texts = (folder / "events.jsonl" for folder in replay_folders(project))
    lines = [line for path in texts if path.exists() for line in path.read_text().splitlines(True)]
    return {json.loads(line)["event"] for line in lines if line.endswith("\n")}
