"""LINEITEM in other forms: the same rows with other marks, in other encodings, compressed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.columns import Column
from bench.data import DataSet, read_once
from bench.tables import Table

_DELIMITER = b"|"
_ACCENT = "é".encode()
# Every so many rows one has letters with accents.
_ROWS_PER_ACCENT = 10
# The level at which most files are compressed.
_GZIP_LEVEL = 6


@dataclass(frozen=True)
class Form:
    """How the rows are written. `row`: a row of the plain form, and its number, in this one.

    `layout`: what the layout of the plain form has besides. `columns`: in place of its own.
    """

    folder: str
    row: Callable[[bytes, int], bytes] = lambda row, number: row
    layout: tuple[tuple[str, Any], ...] = ()
    columns: tuple[Column, ...] | None = None
    delimiter: str | None = None
    is_compressed: bool = False

    def data(self, plain: DataSet) -> DataSet:
        """The files in this form; the size is that of the plain ones."""
        dialect = replace(plain.table.dialect, more=self.layout)
        if self.delimiter is not None:
            dialect = replace(dialect, delimiter=self.delimiter, trailing_delimiter=False)
        table = replace(plain.table, columns=self.columns or plain.table.columns, dialect=dialect)
        return DataSet(table, plain.folder.with_name(f"{plain.folder.name}-{self.folder}"))


def _local(row: bytes, _number: int) -> bytes:
    """Decimal commas, points between groups of three digits, days before months before years."""
    fields = row.split(_DELIMITER)
    for column in (4, 5, 6, 7):
        whole, point, fraction = fields[column].partition(b".")
        groups = f"{int(whole):,}".replace(",", ".").encode()
        fields[column] = groups + (b"," if point else b"") + fraction
    for column in (10, 11, 12):
        fields[column] = b".".join(reversed(fields[column].split(b"-")))
    return _DELIMITER.join(fields)


def _accents(row: bytes, number: int) -> bytes:
    if number % _ROWS_PER_ACCENT:
        return row
    before, _, behind = row.rpartition(_DELIMITER)[0].rpartition(_DELIMITER)
    return before + _DELIMITER + behind.replace(b"e", _ACCENT, 2) + row[-2:]


def _accents_1252(row: bytes, number: int) -> bytes:
    return _accents(row, number).decode().encode("cp1252")


_LOCAL_LAYOUT = (("formats", {"number": {"decimal": ",", "group": "."}, "date": "dd.MM.yyyy"}),)
FORMS = {
    "local": Form("local", _local, _LOCAL_LAYOUT),
    "utf-8": Form("accents", _accents),
    "windows-1252": Form("accents-1252", _accents_1252, (("encoding", "windows-1252"),)),
    "gzip": Form("gzip", is_compressed=True),
    # A character that no row holds: the only column is the row.
    "gzip-lines": Form("gzip", columns=(Column("line", "string"),), delimiter="\x01", is_compressed=True),
}


def prepare_forms(sets: list[DataSet]) -> None:
    """Writes the files of every form, once, and reads them into the page cache."""
    for plain in sets:
        wanted = {file.name: [file.stat().st_size, file.stat().st_mtime_ns] for file in plain.files}
        for form in {form.folder: form for form in FORMS.values()}.values():
            data = form.data(plain)
            stamp = data.folder / "complete.json"
            if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != wanted:
                data.folder.mkdir(exist_ok=True)
                for file in plain.files:
                    _write(file, data.folder, form)
                stamp.write_text(json.dumps(wanted), encoding="utf-8")
            for file in data.files:
                read_once(file)


def _write(source: Path, folder: Path, form: Form) -> None:
    with source.open("rb") as rows:
        if form.is_compressed:
            with gzip.open(folder / f"{source.name}.gz", "wb", compresslevel=_GZIP_LEVEL) as compressed:
                while text := rows.read(1 << 22):
                    compressed.write(text)
            return
        with (folder / source.name).open("wb") as output:
            output.writelines(form.row(row, number) for number, row in enumerate(rows))


def of(table: Table, folder: Path, form: str) -> DataSet:
    """The files of a form beside those of the plain folder; those themselves, if it is no form."""
    plain = DataSet(table, folder)
    return FORMS[form].data(plain) if form in FORMS else plain
