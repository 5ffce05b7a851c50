"""What a run has done of its control flow, line by line: from it a resumed run knows where it was.

One JSON document per line, in the order of events:

    {"end": TASK, "status": ..., "set": {...}, "generation": N}   a task or container has ended; one that has ended well
                                                                    although something inside has failed is "failed"
    {"listed": LOOP, "file": ..., "count": N, "hash": ...}          what a loop goes over is written down
    {"turn": LOOP, "number": N, "inside": TEXT, "set": {...}}     the Nth turn, from 1, has ended well; of a `for` with
                                                                    "failures", how many tasks in it have failed
    {"begun": TASK, "set": {...}}                                   first values of variables of its own
    {"note": TASK, "data": {...}}                                   what a task must know that is tried again
    {"redo": TASK, "generation": N}                                 a task that had ended is done anew

`set`: values of variables that were written inside and belong to something further out. A line is written whole, in one
call; only the last one can be cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.errors import LedgerError
from headrace.private_files import FILE_MODE
from headrace.run.true_hints import NEW_RUN


@dataclass
class Entry:
    """What is known of a task from earlier attempts of the run. `status` is None if it has not ended.

    Of a loop, all turns up to `turns` have ended well but for `open_turns`; `turn_sets`: what those have written;
    `failures`: of a `for`, how many tasks have failed in them.
    `ends`: how often it has ended; `line`: where that, or that it is done anew, stands last.
    """

    status: str | None = None
    sets: dict[str, Any] = field(default_factory=dict)
    turn_sets: dict[str, Any] = field(default_factory=dict)
    generation: int = 1
    ends: int = 0
    line: int = 0
    notes: list[dict[str, Any]] = field(default_factory=list)
    turns: int = 0
    open_turns: set[int] = field(default_factory=set)
    failures: int = 0
    listed: dict[str, Any] | None = None


class Journal:
    """The journal of one run. Reading it forgets what is inside of ended turns and containers, so memory is bounded."""

    def __init__(self, path: Path, is_ours: Callable[[], bool]) -> None:
        """`is_ours`: whether no other process has resumed the run. Raises LedgerError if the file cannot be read, or is
        damaged elsewhere than at its end.
        """
        self._path = path
        self._is_ours = is_ours
        self._entries: dict[str, Entry] = {}
        self._lines = 0
        keep = self._read() if path.exists() else 0
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
            if os.fstat(self._file).st_size > keep:
                os.ftruncate(self._file, keep)
        except OSError as error:
            raise self._unusable("cannot write the journal of the run", error) from error

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def before(self, task: str) -> Entry:
        """What earlier attempts have done of a task."""
        return self._entries.get(task) or Entry()

    def knows(self, task: str) -> bool:
        """Whether there is a trace of a task, or of what is inside."""
        return task in self._entries or any(name.startswith(_inside(task)) for name in self._entries)

    def ended(self, task: str, status: str, sets: Mapping[str, Any], generation: int) -> None:
        """A task or container has ended."""
        line: dict[str, Any] = {"end": task, "status": status}
        if sets:
            line["set"] = sets
        if generation > 1:
            line["generation"] = generation
        self._write(line)
        # Nothing of this attempt is kept but what a task needs for its next try.
        known = self._entries.get(task)
        if known is not None and known.notes and status != "failed":
            known.notes.clear()
            if known == Entry():
                del self._entries[task]

    def turn_ended(self, loop: str, number: int, inside: str, sets: Mapping[str, Any], failures: int) -> None:
        """A turn of a loop has ended well. `inside`: how the ids of its tasks begin."""
        line: dict[str, Any] = {"turn": loop, "number": number, "inside": inside}
        if sets:
            line["set"] = sets
        if failures:
            line["failures"] = failures
        self._write(line)

    def begun(self, task: str, sets: Mapping[str, Any]) -> None:
        """Variables of a container or task have their first values."""
        self._write({"begun": task, "set": sets})

    def listed(self, loop: str, listing: Mapping[str, Any]) -> None:
        """What a loop goes over is on disk."""
        self._write({"listed": loop, **listing}, durable=True)

    def note(self, task: str, data: Mapping[str, Any]) -> None:
        """What a task must know if it is tried again by another attempt of the run; on disk when this returns."""
        line = {"note": task, "data": data}
        self._write(line, durable=True)
        self._take(line)

    def redo(self, task: str, generation: int) -> None:
        """A task that has ended is done anew."""
        line = {"redo": task, "generation": generation}
        self._write(line, durable=True)
        self._take(line)

    def _write(self, line: Mapping[str, Any], *, durable: bool = False) -> None:
        if not self._is_ours():
            raise LedgerError("the run was resumed by another process", at={"file": str(self._path)})
        content = json.dumps(line, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        size = os.fstat(self._file).st_size
        try:
            while content:
                content = content[os.write(self._file, content) :]
            if durable:
                os.fsync(self._file)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, size)  # half a line would damage the next one
            raise self._unusable("cannot write the journal of the run", error) from error

    def _read(self) -> int:
        """Reads all whole lines; the number of bytes that they have."""
        position = 0
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if not line.endswith(b"\n"):
                        break  # cut off while it was written
                    try:
                        self._take(json.loads(line))
                    except (ValueError, KeyError, TypeError) as error:
                        raise LedgerError(
                            "the journal of the run is damaged",
                            at={"file": str(self._path), "line": number},
                            found=line[:80].decode("utf-8", "backslashreplace").rstrip(),
                            hint=NEW_RUN,
                        ) from error
                    position += len(line)
        except OSError as error:
            raise self._unusable("cannot read the journal of the run", error) from error
        return position

    def _take(self, line: Mapping[str, Any]) -> None:
        self._lines += 1
        if "begun" in line:
            self._entry(line["begun"]).sets.update(line["set"])
        elif "end" in line:
            entry = self._entry(line["end"])
            entry.status, entry.sets = str(line["status"]), dict(line.get("set", {}))
            entry.generation = int(line.get("generation", 1))
            entry.ends += 1
            entry.line = self._lines
            if entry.status != "failed":
                self._forget(line["end"])
                entry.notes.clear()
                entry.turn_sets.clear()
        elif "turn" in line:
            self._forget(line["inside"])
            entry = self._entry(line["turn"])
            number = int(line["number"])
            entry.open_turns.update(range(entry.turns + 1, number))
            entry.open_turns.discard(number)
            entry.turns = max(entry.turns, number)
            entry.turn_sets.update(line.get("set", {}))
            entry.failures += int(line.get("failures", 0))
        elif "listed" in line:
            self._entry(line["listed"]).listed = dict(line)
        elif "note" in line:
            self._entry(line["note"]).notes.append(dict(line["data"]))
        elif "redo" in line:
            # All that is inside is done anew, too.
            self._forget(line["redo"])
            self._entries.pop(f"{line['redo']}$", None)
            ends = self.before(line["redo"]).ends
            self._entries[line["redo"]] = Entry(generation=int(line["generation"]), ends=ends, line=self._lines)
        else:
            raise KeyError("kind")

    def _entry(self, task: str) -> Entry:
        return self._entries.setdefault(task, Entry())

    def _forget(self, task: str) -> None:
        """What is inside of a task or turn."""
        inside = [name for name in self._entries if name.startswith(_inside(task))]
        for name in inside:
            del self._entries[name]

    def _unusable(self, what: str, error: OSError) -> LedgerError:
        return LedgerError(
            what,
            at={"file": str(self._path)},
            found=error.strerror,
            hint="Free space there, or choose another place with --runs-dir.",
        )


def _inside(task: str) -> tuple[str, ...]:
    """How the names of all begin that is inside of a task."""
    return (f"{task}.", f"{task}[", f"{task}#")
