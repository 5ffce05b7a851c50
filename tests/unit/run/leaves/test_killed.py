"""`kill -9` of Headrace: nothing that a task has started lives on, and what does is found when the run is resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.errors import ProcessError
from headrace.model.spec_leaves import ProcessSpec
from headrace.run.leaves.process import ProcessLeaf
from headrace.run.leaves.program_leftovers import RUN_VARIABLE, note_of
from tests.patience import HANG_SECONDS
from tests.stress import stop
from tests.unit.run.leaves.contexts import RUN_ID, Notes, Scene
from tests.unit.run.leaves.processes import lives, wait_until

ROOT = Path(__file__).parents[4]
# Two below the program: one that waits, one that holds its pipes and does not listen to SIGTERM or SIGHUP.
SCRIPT = """
trap '' TERM HUP
sleep 300 & echo $! > one
(trap '' TERM HUP INT; sleep 300) & echo $! > two
echo $$ > program; echo $PPID > guard
touch began; wait
"""
HEADRACE = """
import sys
from pathlib import Path
from headrace.model.spec_leaves import ProcessSpec
from headrace.run.leaves.process import ProcessLeaf
from tests.unit.run.leaves.contexts import Scene
scene = Scene(Path(sys.argv[1]))
ProcessLeaf().run(ProcessSpec(command=["sh", "-c", sys.argv[2]]), scene.context())
"""


def number(folder: Path, name: str) -> int:
    return int((folder / name).read_text())


@pytest.fixture
def headrace(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", HEADRACE, str(tmp_path), SCRIPT], cwd=ROOT)
    try:
        wait_until((tmp_path / "began").exists)
        yield process
    finally:
        process.kill()
        process.wait()
        for name in ("one", "two", "program"):
            with suppress(OSError):
                os.kill(number(tmp_path, name), signal.SIGKILL)


def test_nothing_survives(tmp_path: Path, headrace: subprocess.Popen[bytes]) -> None:
    everything = [number(tmp_path, name) for name in ("program", "one", "two", "guard")]
    assert all(lives(process) for process in everything)
    headrace.kill()
    headrace.wait()
    wait_until(lambda: not any(lives(process) for process in everything), 3.0)


def test_a_killed_guard_takes_its_program_along(tmp_path: Path, headrace: subprocess.Popen[bytes]) -> None:
    os.kill(number(tmp_path, "guard"), signal.SIGKILL)
    wait_until(lambda: not lives(number(tmp_path, "program")))
    assert headrace.wait(HANG_SECONDS) == 1


def test_signals_for_the_terminal_do_not_reach_it(tmp_path: Path, headrace: subprocess.Popen[bytes]) -> None:
    for name in ("guard", "program"):
        assert os.getsid(number(tmp_path, name)) != os.getsid(headrace.pid)


def test_what_survives_both_is_ended_by_resume(
    tmp_path: Path, headrace: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.run.leaves.program_leftovers._ASKED_SECONDS", 0.3)
    program = number(tmp_path, "program")
    scene = Scene(tmp_path, notes=Notes([note_of(program)]))
    stop(headrace.pid)
    os.kill(number(tmp_path, "guard"), signal.SIGKILL)
    headrace.kill()
    headrace.wait()
    wait_until(lambda: not lives(program))
    left = [number(tmp_path, name) for name in ("one", "two")]
    assert all(lives(process) for process in left)
    ProcessLeaf().run(ProcessSpec(command=["true"]), scene.context(is_resumed=True))
    assert not any(lives(process) for process in left)
    assert scene.notices == ["a program of an earlier attempt of loop[1].work still runs: it is ended"]


def test_processes_of_others_are_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    same_session = subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!; wait"], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    try:
        assert same_session.stdout is not None
        child = int(same_session.stdout.readline())
        notes = [
            {**note_of(other.pid), "started": 1},
            {**note_of(same_session.pid), "started": 1},
            {**note_of(other.pid), "boot": "another"},
            {"other": "note"},
        ]
        scene = Scene(tmp_path, notes=Notes(list(notes)))
        ProcessLeaf().run(ProcessSpec(command=["true"]), scene.context(is_resumed=True))
        assert lives(other.pid) and lives(child) and not scene.notices
    finally:
        for process in (other, same_session):
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def test_what_cannot_be_ended_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.run.leaves.program_leftovers._ASKED_SECONDS", 0.1)
    monkeypatch.setattr("headrace.run.leaves.program_leftovers.os.kill", lambda *_: None)
    process = subprocess.Popen(["sleep", "60"], start_new_session=True, env={**os.environ, RUN_VARIABLE: RUN_ID})
    try:
        scene = Scene(tmp_path, notes=Notes([note_of(process.pid)]))
        with pytest.raises(ProcessError, match="still runs and cannot be ended"):
            ProcessLeaf().run(ProcessSpec(command=["true"]), scene.context(is_resumed=True))
    finally:
        monkeypatch.undo()
        process.kill()
        process.wait()
