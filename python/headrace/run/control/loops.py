"""What loops go over: lists, files, rows and ranges, written down before the first turn where they could change."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from headrace.errors import ExpressionFailedError, LedgerError, OutputError, SourceError
from headrace.model import FilesConnection, Rows, Task
from headrace.model.annotations import Slot
from headrace.model.loop_values import LoopValueError, check_values, turn_label
from headrace.model.spec_tasks import ForeachRangeSpec, ForeachSpec
from headrace.model.suggest import show_value
from headrace.model.validation import place_name
from headrace.model.variable_values import UnfitValueError, fitted
from headrace.private_files import make_folder, open_file
from headrace.run.control.journal import Entry, Journal
from headrace.run.control.place import Place
from headrace.run.control.stored_values import SECRET, from_stored, to_stored
from headrace.run.true_hints import NEW_RUN
from headrace.sources.globbing import find_files, natural_key

Values = Mapping[str, object]
Set = Callable[[Mapping[str, Any], tuple[str | int, ...], Place], None]
_COPIED_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Turn:
    """One turn, from 1. `label` tells it from the others in the ids of tasks; `values`: the names that it has;
    `has_ended`: in an earlier attempt of the run.
    """

    number: int
    label: str
    values: Values
    has_ended: bool = False


@dataclass(frozen=True)
class Listing:
    """What a loop goes over, in order, with the labels of the turns. `values` can be read once, or is on disk."""

    values: Iterable[tuple[str, Values]]


class QueryRows(Protocol):
    """Reads the rows of a query of a loop in portions, typed as the loop says."""

    def __call__(self, task: Task, place: Place, instance: str) -> Iterator[Values]: ...


class Loops:
    """The loops of one run. `folder` is where listings are written, as JSON lines."""

    def __init__(
        self,
        folder: Path,
        instance: str,
        journal: Journal,
        is_secret: Callable[[str], bool],
        query_rows: QueryRows,
    ) -> None:
        self._folder = folder
        self._instance = instance
        self._journal = journal
        self._is_secret = is_secret
        self._query_rows = query_rows

    def while_(self, task: Task, place: Place, entry: Entry, set_: Set) -> Iterator[Turn]:
        """Turns of a `for`: asked for one by one, because each depends on what the one before has done. Of a resumed
        loop the values that it had then must be there.
        """
        binder = place.package.binder
        number = entry.turns
        if number == 0:
            set_(task.own.get("initial") or {}, (*task.own_path, "initial"), place)
        while binder.condition(task.own["while"], (*task.own_path, "while"), place.frame.scope()):
            number += 1
            yield Turn(number, str(number), {})

    def each(self, task: Task, listing: Listing, entry: Entry) -> Iterator[Turn]:
        """Turns of a `foreach`; those that an earlier attempt of the run has ended say so."""
        for number, (label, values) in enumerate(listing.values, start=1):
            yield Turn(number, label, values, has_ended=number <= entry.turns and number not in entry.open_turns)

    def values(self, task: Task, place: Place, entry: Entry) -> Listing:
        """What a `foreach` goes over; of a resumed loop, what it went over before."""
        if entry.listed is not None:
            return Listing(self._read(entry.listed))
        own = task.own
        if own.get("files") is not None:
            return self._kept((turn_label(name), {own["item"]: name}) for name in self._files(task, place))
        if own.get("query") is not None:
            rows = self._query_rows(task, place, self._instance)
            return self._kept((str(number), row) for number, row in enumerate(rows, start=1))
        if own.get("rows") is not None:
            return Listing((str(number), row) for number, row in enumerate(self._rows(task, place), start=1))
        if own.get("range") is not None:
            return Listing((turn_label(value), {own["item"]: value}) for value in self._range(task, place))
        listing = [(turn_label(value), {own["item"]: value}) for value in self._list(task, place)]
        # The same package and parameters give the same list; an expression need not.
        return self._kept(listing) if isinstance(own["in"], Mapping) else Listing(listing)

    def _list(self, task: Task, place: Place) -> list[object]:
        path = (*task.own_path, "in")
        slot = Slot(ForeachSpec).child("in", task.own)
        try:
            return check_values(place.package.binder.value(task.own["in"], slot, path, place.frame.scope()))
        except LoopValueError as error:
            raise ExpressionFailedError(
                f"{place_name(path)} {error.what}",
                found=error.found,
                expected="a list of different texts, numbers or dates",
            ) from error

    def _files(self, task: Task, place: Place) -> Sequence[str]:
        """Names below the folder of the connection."""
        spec = place.package.binder.task(task_without_tasks(task), place.frame.scope(), self._instance)
        assert isinstance(spec, ForeachSpec) and spec.files is not None
        connection = place.package.binder.surroundings.names.connections[spec.files.connection]
        assert isinstance(connection, FilesConnection)
        found = find_files(str(connection.path), spec.files.pattern, 1).paths
        if not found and spec.files.missing == "error":
            raise SourceError(
                f"task {self._instance} finds no file",
                at={"folder": str(connection.path)},
                expected=f"files matching {', '.join(f'`{pattern}`' for pattern in spec.files.pattern)}",
                hint="Correct the pattern, or write `missing: skip`.",
            )
        if spec.files.order == "modified":
            found = sorted(found, key=lambda path: (os.stat(path).st_mtime_ns, natural_key(path)))
        return [os.path.relpath(path, connection.path) for path in found]

    def _rows(self, task: Task, place: Place) -> Iterator[Values]:
        rows = place.frame.value(task.own["rows"])
        columns: Mapping[str, str] = task.own["as"]
        if rows is None:
            return
        assert isinstance(rows, Rows)
        missing = [name for name in columns if name not in rows.columns]
        if missing:
            raise ExpressionFailedError(
                f"task {self._instance}: the rows have no column `{missing[0]}`",
                found=", ".join(rows.columns) or "no column",
                expected=", ".join(columns),
                hint="Name the columns in the query.",
            )
        places = {name: rows.columns.index(name) for name in columns}
        for number, row in enumerate(rows.rows, start=1):
            yield {name: self._typed(name, kind, row[places[name]], number) for name, kind in columns.items()}

    def _typed(self, name: str, kind: str, value: object, number: int) -> object:
        try:
            return fitted(kind, "", value)
        except UnfitValueError as error:
            raise ExpressionFailedError(
                f"task {self._instance}: a value of column `{name}` is not of type {kind}",
                at={"row": number},
                found=show_value(value),
                expected=error.expected,
            ) from error

    def _range(self, task: Task, place: Place) -> Iterator[object]:
        path = (*task.own_path, "range")
        slot = Slot(ForeachSpec).child("range", task.own)
        resolved = place.package.binder.value(task.own["range"], slot, path, place.frame.scope())
        spec = ForeachRangeSpec.model_validate(resolved)
        first, last = (_bound(value) for value in (spec.from_, spec.to))
        if first is None or last is None or isinstance(first, int) != isinstance(last, int) or spec.step == 0:
            raise ExpressionFailedError(
                f"{place_name(path)} cannot be gone through",
                found=f"from {show_value(spec.from_)} to {show_value(spec.to)} by {spec.step}",
                expected="two whole numbers or two days, and a step that is not 0",
            )
        return _steps(first, last, spec.step)

    def _kept(self, values: Iterable[tuple[str, Values]]) -> Listing:
        """Writes down what the loop goes over, and reads it from there; in memory only, if there is a secret in it."""
        name = hashlib.sha256(self._instance.encode()).hexdigest()[:16] + ".jsonl"
        path, temporary = self._folder / name, self._folder / f".{name}"
        rest = iter(values)
        count, digest = 0, hashlib.sha256()
        held: list[tuple[str, Values]] | None = None
        try:
            make_folder(self._folder, exist_ok=True)
            with open_file(temporary, "wb") as file:
                for label, row in rest:
                    stored = {key: to_stored(value, self._is_secret) for key, value in row.items()}
                    if SECRET in stored.values() or self._is_secret(label):
                        held = [*self._lines(temporary, file.flush), (label, row), *rest]
                        break
                    line = json.dumps([label, stored], ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
                    file.write(line)
                    digest.update(line)
                    count += 1
                file.flush()
                os.fsync(file.fileno())
            if held is not None:
                temporary.unlink()
                return Listing(held)
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise OutputError(
                f"cannot write down what task {self._instance} goes over",
                at={"file": str(path)},
                found=error.strerror,
                hint="Free space there, or choose another place with --runs-dir.",
            ) from error
        self._journal.listed(self._instance, {"file": name, "count": count, "hash": digest.hexdigest()})
        return Listing(self._lines(path))

    def _read(self, listed: Mapping[str, Any]) -> Iterator[tuple[str, Values]]:
        path = self._folder / str(listed["file"])
        digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                while block := file.read(_COPIED_BYTES):
                    digest.update(block)
        except OSError as error:
            raise self._damaged(path, error.strerror) from error
        if digest.hexdigest() != listed["hash"]:
            raise self._damaged(path, "other content than was written")
        return self._lines(path)

    def _lines(self, path: Path, flush: Callable[[], None] = lambda: None) -> Iterator[tuple[str, Values]]:
        flush()
        with path.open("rb") as file:
            for line in file:
                label, stored = json.loads(line)
                yield label, {name: from_stored(value) for name, value in stored.items()}

    def _damaged(self, path: Path, found: str | None) -> LedgerError:
        return LedgerError(
            f"the run cannot be resumed inside task {self._instance}: what it goes over is damaged",
            at={"file": str(path)},
            found=found,
            hint=NEW_RUN,
        )


def task_without_tasks(task: Task) -> Task:
    """A loop is bound without what is in it, which has other values in each turn."""
    nothing: dict[str, Any] = {"nothing": {"set": {}}}
    return replace(task, raw={**task.raw, task.kind: {**task.own, "tasks": nothing}})


def _bound(value: object) -> int | date | None:
    if isinstance(value, (int, date)) and not isinstance(value, (bool, datetime)):
        return value
    if isinstance(value, str):
        with suppress(ValueError):
            return date.fromisoformat(value)
    return None


def _steps(first: int | date, last: int | date, step: int) -> Iterator[object]:
    behind = 1 if step > 0 else -1
    if isinstance(first, int) and isinstance(last, int):
        yield from range(first, last + behind, step)
        return
    assert isinstance(first, date) and isinstance(last, date)
    # By number: behind the last day that there is no other one can be computed.
    for number in range(first.toordinal(), last.toordinal() + behind, step):
        yield date.fromordinal(number)
