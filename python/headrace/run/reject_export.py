"""Rejects in files of the user's: as JSON lines or Parquet, or the original bytes, to be repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import duckdb

from headrace.errors import CommandLineError, OutputError
from headrace.model import new_instance
from headrace.private_files import open_file, write_text
from headrace.run.number_list import Stretches, count_numbers, number_list, stretches
from headrace.run.rejected import Choice, RejectedRun, RejectedTable
from headrace.run.whole_file import written_whole

# Of Parquet, in this order; whatever a run of another version has not written is NULL.
_COLUMNS: Final = {
    "run_id": "VARCHAR",
    "task": "VARCHAR",
    "table": "VARCHAR",
    "number": "BIGINT",
    "file": "VARCHAR",
    "file_number": "INTEGER",
    "row": "BIGINT",
    "byte": "BIGINT",
    "column": "VARCHAR",
    "column_number": "INTEGER",
    "type": "VARCHAR",
    "value": "VARCHAR",
    "rule": "VARCHAR",
    "code": "VARCHAR",
    "message": "VARCHAR",
    "also": "JSON",
    "row_byte": "BIGINT",
    "row_bytes": "BIGINT",
    "bad_byte": "BIGINT",
    "bad_bytes": "BIGINT",
    "destinations": "VARCHAR[]",
}
_ENDINGS: Final = (".jsonl", ".parquet")
_MEMORY: Final = "256MB"
NUMBERS_ENDING: Final = ".numbers"


def export_rejects(run: RejectedRun, choice: Choice, path: Path) -> int:
    """Writes the rejects that are meant into one file, whole or not at all; how many. Its ending says as what.

    Raises CommandLineError for another ending, OutputError, and LedgerError for files that are not complete.
    """
    if path.suffix not in _ENDINGS:
        raise CommandLineError(
            "rejects are written as JSON lines or Parquet",
            found=str(path),
            expected=f"a name that ends with {' or '.join(_ENDINGS)}",
            hint="The original bytes are written by --copy.",
        )
    with _written(path) as unfinished:
        if path.suffix == ".jsonl":
            return _write_lines(run, choice, unfinished)
        lines = unfinished.with_name(f"{unfinished.name}.jsonl")
        try:
            count = _write_lines(run, choice, lines)
            _convert(lines, unfinished)
        finally:
            with suppress(OSError):
                lines.unlink(missing_ok=True)
        return count


def copy_rejects(run: RejectedRun, choice: Choice, path: Path) -> tuple[int, int]:
    """Writes the original bytes of the open rejects that are meant, those of one task, and beside them their numbers.

    How many, and how many were left out because the run has kept only a part of them.

    Raises CommandLineError, OutputError, and LedgerError for files that are not complete.
    """
    table = _only_table(run.tables)
    numbers_path = path.with_name(path.name + NUMBERS_ENDING)
    for own in (path, numbers_path):
        if own.exists():
            raise CommandLineError(
                "a copy of rejects overwrites nothing",
                at={"file": str(own)},
                found="a file of this name",
                hint="Choose another name: a repaired copy would be lost.",
            )
    cut = 0

    def copied(source: BinaryIO, copy: BinaryIO) -> Iterator[int]:
        nonlocal cut
        for row in table.open(choice):
            if row.is_cut:
                cut += 1
                continue
            source.seek(row.begin_byte)
            _copy(source, copy, row.end_byte - row.begin_byte)
            yield row.number

    with _written(path) as unfinished, table.files.open_rows() as source, unfinished.open("wb") as copy:
        named = Stretches(stretches(copied(source, copy)))
        # Numbers first: a copy without them would stand for all rejects of the task.
        with _written(numbers_path) as unfinished_numbers:
            document = {"run": run.run_id, "task": table.task, "numbers": number_list(named)}
            unfinished_numbers.write_text(json.dumps(document) + "\n", encoding="utf-8")
    return count_numbers(named), cut


def _only_table(tables: Sequence[RejectedTable]) -> RejectedTable:
    if len(tables) == 1:
        return tables[0]
    names = [table.table for table in tables]
    if len(set(names)) < len(names):
        names = [table.task for table in tables]
    raise CommandLineError(
        "a copy holds rejects of one table",
        found=", ".join(names) if names else "no reject",
        hint=f"Choose one: `--table {names[0]}`." if names else None,
    )


def _copy(source: BinaryIO, copy: BinaryIO, count: int) -> None:
    while count > 0:
        window = source.read(min(count, 1 << 20))
        copy.write(window)
        count -= len(window) or count


def _write_lines(run: RejectedRun, choice: Choice, path: Path) -> int:
    count = 0
    with open_file(path, "w", encoding="utf-8") as lines:
        for table in run.tables:
            of_table = {"run_id": run.run_id, "task": table.task, "table": table.table}
            for row in table.chosen(choice):
                members: dict[str, Any] = {**of_table, **row.members}
                lines.write(json.dumps(members, ensure_ascii=False, separators=(",", ":")) + "\n")
                count += 1
    return count


def _convert(lines: Path, parquet: Path) -> None:
    columns = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in _COLUMNS.items())
    read = f"read_json({_quoted(str(lines))}, format = 'newline_delimited', columns = {{{columns}}})"
    try:
        with new_instance({"memory_limit": _MEMORY, "threads": "1"}) as connection:
            options = "FORMAT parquet, USE_TMP_FILE false"  # a file of another name would be everybody's to read
            connection.execute(f"COPY (SELECT * FROM {read}) TO {_quoted(str(parquet))} ({options})")
    except duckdb.Error as error:
        raise OutputError(
            "rejects cannot be written as Parquet", at={"file": str(parquet)}, found=str(error).split("\n")[0]
        ) from error


def _quoted(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    """A name to write under, which becomes `path` when all is written, and which only its owner may read."""
    try:
        with written_whole(path) as unfinished:
            if unfinished != path:
                write_text(unfinished, "")  # whoever writes to it later: nobody else may read rows
            yield unfinished
    except OSError as error:
        raise OutputError(
            "rejects cannot be written",
            at={"file": str(path)},
            found=error.strerror,
            hint="Free space there, or choose another place.",
        ) from error
