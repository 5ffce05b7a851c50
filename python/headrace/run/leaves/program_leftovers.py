"""Programs of earlier attempts of a run that still live: Headrace and the guard were killed both. They are ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from headrace.errors import ProcessError
from headrace.run.leaves.base import LeafContext

# Names in the environment of every program: how its processes are known again. Useful for programs, too.
RUN_VARIABLE: Final = "HEADRACE_RUN_ID"
TASK_VARIABLE: Final = "HEADRACE_TASK"
_PROCESSES: Final = Path("/proc")
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_ASKED_SECONDS: Final = 5.0
_STEP_SECONDS: Final = 0.05
# Of what stands behind the name of a program in its `stat`.
_SESSION, _STARTED = 3, 19


def note_of(process: int) -> dict[str, Any]:
    """What is to be remembered of a process, which is the first of its session, before it becomes a program."""
    status = _status(process)
    return {"process": process, "started": None if status is None else int(status[_STARTED]), "boot": _boot()}


def end_leftovers(context: LeafContext) -> None:
    """Ends processes of earlier attempts: SIGTERM, and after 5 seconds SIGKILL. Raises ProcessError if one stays."""
    for note in context.memory.remembered():
        if "process" in note and note.get("boot") == _boot():
            _end(note, context)


def _end(note: Mapping[str, Any], context: LeafContext) -> None:
    left = _left(note, context.run_id)
    if not left:
        return
    context.notice(f"a program of an earlier attempt of {context.instance} still runs: it is ended")
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            with suppress(OSError):
                os.kill(process, number)
        end = time.monotonic() + _ASKED_SECONDS
        while left and time.monotonic() < end:
            context.cancellation.check(f"task {context.instance}")
            time.sleep(_STEP_SECONDS)
            left = _left(note, context.run_id)
    if left:
        raise ProcessError(
            "a program of an earlier attempt still runs and cannot be ended",
            at={"task": context.instance, "process": left[0]},
            hint="End it, or wait for its end; then resume again.",
        )


def _left(note: Mapping[str, Any], run_id: str) -> list[int]:
    """Processes of the session of the program: the first one is known by its start, the others by the environment that
    they have inherited.
    """
    found = []
    for entry in os.listdir(_PROCESSES):
        status = _status(int(entry)) if entry.isdecimal() else None
        if status is None or int(status[_SESSION]) != note["process"] or status[0] in ("Z", "X"):
            continue
        if int(entry) == note["process"]:
            is_ours = int(status[_STARTED]) == note["started"]
        else:
            is_ours = _has_variable(int(entry), f"{RUN_VARIABLE}={run_id}")
        if is_ours:
            found.append(int(entry))
    return found


def _status(process: int) -> list[str] | None:
    """The fields of a process behind its name, which may hold anything: state, parent, group, session, ..."""
    try:
        text = (_PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(") ")[2].split()


def _has_variable(process: int, pair: str) -> bool:
    try:
        return pair.encode() in (_PROCESSES / str(process) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _boot() -> str | None:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return None
