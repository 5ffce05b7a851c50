"""Whose rows stand in a file of repaired ones: in which dialect each is written, and where it stood as a reject."""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from headrace.errors import LedgerError
from headrace.model import Column
from headrace.model.url_logins import REPLACEMENT
from headrace.private_files import open_file
from headrace.run import request as requests
from headrace.run.folder import RunFolder
from headrace.run.number_list import Stretch
from headrace.run.reject_files import RejectRow
from headrace.run.rejected import RejectedTable
from headrace.run.replay_rows import Repaired, refuse_cut
from headrace.run.replay_ways import lacking

_PATHS: Final = frozenset({"file_name", "file_path"})
_PLACES: Final = frozenset({"row_number", "byte_offset"})
# Row, from 1, and first byte: as the core reads them.
_PLACE: Final = struct.Struct("<QQ")
_PLACES_AT_ONCE: Final = 65_536
_UNCLOSED: Final = "unclosed_qualifier"
# No byte order mark is longer.
_MARK_BYTES: Final = 3


@dataclass
class RowGroups:
    """`files`: as which source files rows are written: dialect, of several sources `source`, the number of the one that
    they are of, and, if a column asks, `origin`, the path of the file. `groups`: so many rows of one of them, then of
    another one; the last group has the rest. With several destinations each group says which of them lack its rows.
    `first_bytes` of the first reject: as many as a byte order mark has. `unclosed`: the first reject with a qualifier
    that nothing closes.
    """

    files: list[dict[str, Any]] = field(default_factory=list)
    groups: list[dict[str, Any]] = field(default_factory=list)
    first_bytes: bytes = b""
    unclosed: int | None = None

    def index_of(self, file: dict[str, Any]) -> int:
        """The number of a file, from 0."""
        if file not in self.files:
            self.files.append(file)
        return self.files.index(file)

    def add(self, index: int, destinations: Sequence[str]) -> None:
        """One more row, of a file by its number, which these of several destinations lack."""
        own = {"file": index, **({"destinations": list(destinations)} if destinations else {})}
        if self.groups and self.groups[-1] == {**own, "rows": self.groups[-1]["rows"]}:
            self.groups[-1]["rows"] += 1
        else:
            self.groups.append({**own, "rows": 1})

    def core_groups(self) -> list[dict[str, Any]]:
        """The groups as the core wants them."""
        return [
            {"file": group["file"], "layout": self.source_of(group), "rows": group["rows"]} for group in self.groups
        ]

    def source_of(self, group: Mapping[str, Any]) -> int:
        """The number of the source whose rows a group has, from 0."""
        return int(self.files[group["file"]].get("source", 0))


def row_groups(of: RunFolder, table: RejectedTable, made: Sequence[Column], said: Repaired, places: Path) -> RowGroups:
    """Looks the rejects of run `of` up whose rows the file holds. Where they stood is written to `places`, if one of
    the columns `made` asks.

    Raises LedgerError for rejects that are not complete, that were cut and are not named one by one, or whose path is
    not known any more.
    """
    source = _Source(of, table, made)
    found = RowGroups()
    index_of = functools.cache(lambda number: found.index_of(source.file(number)))
    cut: list[int] = []
    rows = _chosen(table.files.rows(), said.rows)
    with _written(places) if source.asks_places else nullcontext() as output, source.places_before() as before:
        for row in rows:
            if not found.groups:
                found.first_bytes = _first_bytes(table, row)
            found.add(index_of(source.number_of(row)), lacking(row) if table.flow else ())
            if found.unclosed is None and row.members.get("rule") == _UNCLOSED:
                found.unclosed = row.number
            if row.is_cut:
                cut.append(row.number)
            if output is not None:
                output.write(source.place_of(row, before))
    if not said.is_named:
        refuse_cut(cut)
    if not found.groups:
        found.add(index_of(0), ())  # for a file without rows
    found.groups[-1]["rows"] = None
    return found


def _first_bytes(table: RejectedTable, row: RejectRow) -> bytes:
    with table.files.open_rows() as kept:
        kept.seek(row.begin_byte)
        return kept.read(min(_MARK_BYTES, row.end_byte - row.begin_byte))


def repeat_place(places: Path, rows: int) -> None:
    """All rows of the file come from one reject: each has its place."""
    if not places.exists():
        return
    place = places.read_bytes()
    with _written(places) as output:
        while rows > 0:
            count = min(rows, _PLACES_AT_ONCE)
            output.write(place * count)
            rows -= count


def core_files(files: Sequence[Mapping[str, Any]], path: Path, places: Path) -> list[dict[str, Any]]:
    """The files of groups as the core wants them: their rows stand at `path` now."""
    kept = {"places": str(places)} if places.exists() else {}
    described = []
    for file in files:
        members = {name: value for name, value in file.items() if name not in ("origin", "source")}
        origin = {"origin": {"path": file.get("origin", ""), **kept}} if kept or "origin" in file else {}
        described.append({**members, "path": str(path), **origin})
    return described


class _Source:
    """The source files of a task of an earlier run, as its columns show them."""

    def __init__(self, of: RunFolder, table: RejectedTable, made: Sequence[Column]) -> None:
        self._of = of
        self._table = table
        self._paths = [column for column in made if column.from_ in _PATHS]
        self.asks_places = any(column.from_ in _PLACES for column in made)
        self._files = requests.load_source_files(of, table.task)

    def number_of(self, row: RejectRow) -> int:
        """The file of a row, from 0."""
        number = int(row.members["file_number"])
        if not 1 <= number <= len(self._files):
            raise LedgerError(
                f"the rejects of run {self._of.run_id} are not complete",
                at={"file": str(self._table.files.paths[0])},
                found=f"reject {row.number} stands in a file that the run has not read",
                hint="Restore the run folder.",
            )
        return number - 1

    def file(self, number: int) -> dict[str, Any]:
        """As what rows of a file are written, and by which path they are shown."""
        file = self._files[number]
        written = {**file["dialect"], **({"source": file["source"]} if "source" in file else {})}
        return {**written, "origin": self._path(file)} if self._paths else written

    def _path(self, file: Mapping[str, Any]) -> str:
        # Of a replay: the files of the run whose rejects it has loaded.
        path = str(file.get("origin") or file["path"])
        for column in self._paths:
            shown = path if column.from_ == "file_path" else path.rpartition("/")[2]
            if REPLACEMENT in shown:
                raise LedgerError(
                    f"rejects of table {self._table.table} cannot be replayed",
                    found=f"column `{column.name}`, which shows a path with a secret: those are not stored",
                    hint="Load the repaired rows from a file of their own, by a package with `target: append`.",
                )
        return path

    @contextmanager
    def places_before(self) -> Iterator[IO[bytes] | None]:
        """Where the rows of a replay stood before; None for a run that is none."""
        if not (self.asks_places and self._of.origins.exists()):
            yield None
            return
        with self._of.origins.open("rb") as places:
            yield places

    def place_of(self, row: RejectRow, before: IO[bytes] | None) -> bytes:
        """Where a reject stood, as it is written for the core."""
        if before is None:
            return _PLACE.pack(int(row.members["row"]), int(row.members["row_byte"]))
        before.seek((int(row.members["row"]) - 1) * _PLACE.size)
        place = before.read(_PLACE.size)
        if len(place) < _PLACE.size:
            raise LedgerError(
                f"the rejects of run {self._of.run_id} are not complete",
                at={"file": str(self._of.origins)},
                found=f"no place for row {row.members['row']}",
                hint="Restore the run folder.",
            )
        return place


def _chosen(rows: Iterator[RejectRow], named: Sequence[Stretch]) -> Iterator[RejectRow]:
    """The rejects of ascending stretches; all are read, because damage has to be found."""
    stretches = iter(named)
    first, last = next(stretches, (0, 0))
    for row in rows:
        while last and row.number > last:
            first, last = next(stretches, (0, 0))
        if last and row.number >= first:
            yield row


@contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """A file that a power cut does not take away."""
    try:
        with open_file(path, "wb") as output:
            yield output
            output.flush()
            os.fsync(output.fileno())
    except OSError as error:
        raise LedgerError(
            "it cannot be kept where the rejects stood",
            at={"file": str(path)},
            found=error.strerror,
            hint="Free space there.",
        ) from error
