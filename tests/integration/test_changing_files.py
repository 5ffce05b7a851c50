"""Files that change between plan and end of the load: the run fails, whatever has been read, and nothing is loaded.

The process is frozen as soon as it has begun to load, so that the change always comes in the middle.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.driver import Before, Project
from tests.snapshots import assert_snapshot

ROW = b"1|1.00|2024-01-01|x|" + b"y" * 80 + b"\n"
ROWS = 400_000
ATTEMPTS = 10


def shrink(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(ROW)


def replace(path: Path) -> None:
    other = path.with_name(".other")
    shutil.copy2(path, other)
    other.replace(path)


def overwrite(path: Path) -> None:
    """Same size, other content, as an editor or a copy leaves it."""
    with path.open("r+b") as file:
        file.seek(len(ROW) * (ROWS // 2))
        file.write(ROW.replace(b"1.00", b"2.00"))


def remove(path: Path) -> None:
    path.unlink()


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "orders.tbl.1"
    path.write_bytes(ROW * ROWS)
    return path


@pytest.mark.parametrize("change", [shrink, grow, replace, overwrite, remove], ids=lambda change: change.__name__)
def test_a_file_changes_while_it_is_read(project: Project, large_file: Path, change: Callable[[Path], None]) -> None:
    before = Before.of(project)
    file = project.inbox / "orders.tbl.1"
    attempts = 0
    done = True
    while done:
        attempts += 1
        assert attempts <= ATTEMPTS, "the load always ended before it could be stopped"
        shutil.copy(large_file, file)
        with project.started(project.arguments()) as running:
            project.wait_for_event(running, "task_started")
            running.freeze()
            done = any(event["event"] == "task_finished" for event in project.events())
            if not done:
                change(file)
            running.thaw()
            ended = running.wait()
        # Whether the change came before the last look at the file cannot be seen from here. If it never does, the
        # attempts run out.
        done = done or ended.exit_code == 0
        if done:
            project.database.unlink()
            before = Before.of(project)
    assert ended.exit_code == 1, ended.stderr
    # Whoever opens the file after it has gone says that it cannot be read.
    assert ended.summary["error"]["kind"] in ({"file_changed"} if change is not remove else {"file_changed", "source"})
    if change is not remove:
        text = project.stable(ended.error)
        assert_snapshot(f"changed_{change.__name__}", _without_place(text))
    before.check("failed")


def _without_place(text: str) -> str:
    """A short read is noticed at one place or another, any other change at the end."""
    return "\n".join(line.split(", byte")[0] for line in text.splitlines())
