"""Random tables, loaded by Headrace and by DuckDB's own CSV reader: the same rows.

DuckDB is an oracle only where it does not change a value. What it takes and docs/spec/text-to-types.md does not is
never written here: decimals with more digits than the scale (it rounds), points and exponents in whole numbers (it
rounds or accepts), blanks around values (it trims), floats beyond the range (it makes them infinite), `24:00:00`, dates
and times with single digits. Blank lines and empty files are left out as well. Quotes are plain characters on both
sides.

HEADRACE_RANDOM_TABLES=N tests N runs of five tables instead of the usual few.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from tests.integration.driver import Project

TABLES_OF_A_RUN = 5
RUNS = int(os.environ.get("HEADRACE_RANDOM_TABLES", "6"))
CHARACTERS = "abcXYZ 09-+.\"'\\#~é€😀\u00a0\u0301\x01\x7f"
NULL_TOKENS = ("NULL", "\\N", "n/a")


@dataclass(frozen=True)
class Kind:
    """A type here and there, and a text that both read alike."""

    name: str
    duckdb: str
    text: Callable[[random.Random], str]


def digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices("0123456789", k=count))


def integer(bits: int) -> Callable[[random.Random], str]:
    limit = 1 << (bits - 1)

    def text(rng: random.Random) -> str:
        value = rng.choice(
            [0, limit - 1, -limit, 10 ** rng.randrange(5), rng.randrange(-limit, limit), rng.randrange(100)]
        )
        sign = "+" if value >= 0 and rng.random() < 0.1 else ""
        zeros = "0" * rng.randrange(20) if value > 0 and rng.random() < 0.1 else ""
        return f"{sign}{zeros}{value}"

    return text


def decimal(precision: int, scale: int) -> Callable[[random.Random], str]:
    def text(rng: random.Random) -> str:
        whole = digits(rng, rng.randint(0, precision - scale))
        fraction = digits(rng, rng.choice([scale, scale, rng.randint(0, scale)]))
        if rng.random() < 0.1:
            whole, fraction = "9" * (precision - scale), "9" * scale
        if not whole + fraction:
            whole = "0" if precision > scale else ""
            fraction = "" if whole else "0"
        point = "." if fraction or rng.random() < 0.1 else ""
        return rng.choice(["", "", "-", "+"]) + whole + point + fraction

    return text


def floating(*, single: bool) -> Callable[[random.Random], str]:
    def text(rng: random.Random) -> str:
        exponent = rng.randint(-30, 30) if single else rng.randint(-300, 290)
        return rng.choice(
            [
                rng.choice(["0", "-0.0", "inf", "-Infinity", "NaN", "1e-400", ".5", "5."]),
                f"{rng.uniform(-1000, 1000):.3f}",
                repr(rng.uniform(-1e6, 1e6)),
                f"{digits(rng, rng.randint(1, 17))}.{digits(rng, rng.randint(1, 17))}",
                f"{rng.choice(['', '-', '+'])}{rng.randint(1, 9)}.{digits(rng, 8)}{rng.choice('eE')}{exponent:+d}",
            ]
        )

    return text


def date(rng: random.Random) -> str:
    year = rng.choice([1, 1600, 1900, 1969, 1970, 2000, 9999, rng.randint(1, 9999), rng.randint(1990, 2030)])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    month = rng.randint(1, 12)
    last = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    return f"{year:04}-{month:02}-{rng.choice([1, last, rng.randint(1, last)]):02}"


def time(rng: random.Random) -> str:
    text = f"{rng.randrange(24):02}:{rng.randrange(60):02}"
    if rng.random() < 0.8:
        text += f":{rng.randrange(60):02}"
        if rng.random() < 0.5:
            text += f".{digits(rng, rng.randint(1, 6))}"
    return text


def string(longest: int) -> Callable[[random.Random], str]:
    def text(rng: random.Random) -> str:
        length = min(rng.choice([1, 4, 11, 12, 12, 13, 13, 14, rng.randint(1, 40)]), longest)
        choices = rng.choice(["abc", "é€😀", CHARACTERS])
        return "".join(rng.choices(choices, k=length))

    return text


KINDS = [
    Kind("int16", "SMALLINT", integer(16)),
    Kind("int32", "INTEGER", integer(32)),
    Kind("int64", "BIGINT", integer(64)),
    *(
        Kind(f"decimal({precision},{scale})", f"DECIMAL({precision},{scale})", decimal(precision, scale))
        for precision, scale in [(4, 2), (9, 0), (15, 2), (18, 8), (18, 18), (19, 2), (38, 10)]
    ),
    Kind("float32", "FLOAT", floating(single=True)),
    Kind("float64", "DOUBLE", floating(single=False)),
    Kind("bool", "BOOLEAN", lambda rng: rng.choice(["true", "FALSE", "t", "F", "1", "0", "yes", "No", "y", "n"])),
    Kind("date", "DATE", date),
    Kind("time", "TIME", time),
    Kind("timestamp", "TIMESTAMP", lambda rng: f"{date(rng)}{rng.choice(' T')}{time(rng)}"),
    Kind("string", "VARCHAR", string(1000)),
    Kind("varchar(13)", "VARCHAR", string(13)),
]


class RandomTable:
    """A layout, a file of it, and the same table by DuckDB."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name = name
        self.delimiter = rng.choice("|,;\t")
        self.row_end = rng.choice(["\n", "\n", "\r\n"])
        self.trailing = rng.random() < 0.4
        self.header_rows = rng.choice([0, 0, 1, 3])
        self.tokens = rng.sample(NULL_TOKENS, rng.randrange(3))
        self.columns = [(kind, rng.random() < 0.5) for kind in rng.choices(KINDS, k=rng.randint(2, 9))]
        # Around the sizes of tiles and vector groups, and beyond a block of the smallest size.
        rows = rng.choice([1, 7, 8, 9, 255, 256, 257, 700, 5000])
        self.lines = [self._line(rng) for _ in range(rows)]
        self.last_end = rng.random() < 0.8

    def _line(self, rng: random.Random) -> str:
        fields = [self._field(kind, nullable, rng) for kind, nullable in self.columns]
        return self.delimiter.join(fields) + (self.delimiter if self.trailing else "")

    def _field(self, kind: Kind, nullable: bool, rng: random.Random) -> str:
        if nullable and rng.random() < 0.15:
            return rng.choice(["", *self.tokens])
        while True:
            text = kind.text(rng)
            if self.delimiter not in text and text not in NULL_TOKENS:
                return text

    def write(self, path: Path) -> None:
        header = [f"line {number} of the header" for number in range(self.header_rows)]
        text = self.row_end.join(header + self.lines) + (self.row_end if self.last_end else "")
        path.write_bytes(text.encode())

    @property
    def layout(self) -> str:
        escaped = {"\t": "\\t"}.get(self.delimiter, self.delimiter)
        tokens = ", ".join(f"'{token}'" for token in self.tokens)
        columns = "".join(
            f'      - {{name: c{index}, type: "{kind.name}", nullable: {str(nullable).lower()}}}\n'
            for index, (kind, nullable) in enumerate(self.columns)
        )
        return (
            f'  {self.name}:\n    delimiter: "{escaped}"\n    trailing_delimiter: {str(self.trailing).lower()}\n'
            f"    skip_lines: {self.header_rows}\n    null_tokens: [{tokens}]\n    columns:\n{columns}"
        )

    @property
    def task(self) -> str:
        return (
            f"  load_{self.name}:\n    data_flow:\n"
            f"      sources: {{rows: {{connection: inbox, files: {self.name}.txt, layout: {self.name}}}}}\n"
            f"      destinations:\n"
            f"        loaded: {{input: rows, connection: warehouse, table: {self.name}, target: create}}\n"
        )

    def read_csv(self, path: Path) -> str:
        columns = {f"c{index}": kind.duckdb for index, (kind, _) in enumerate(self.columns)}
        if self.trailing:
            columns["behind"] = "VARCHAR"
        names = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
        tokens = ", ".join(f"'{token}'" for token in ["", *self.tokens])
        row_end = {"\n": "\\n", "\r\n": "\\r\\n"}[self.row_end]
        options = (
            f"delim = '{self.delimiter}', new_line = '{row_end}', header = false, skip = {self.header_rows}, "
            f"auto_detect = false, quote = '', escape = '', comment = '', nullstr = [{tokens}], columns = {{{names}}}"
        )
        return f"SELECT {'* EXCLUDE behind' if self.trailing else '*'} FROM read_csv('{path}', {options})"


@pytest.mark.parametrize("seed", range(RUNS))
def test_random_tables_are_loaded_as_duckdb_reads_them(project: Project, seed: int) -> None:
    rng = random.Random(seed)
    tables = [RandomTable(f"t{number}", rng) for number in range(TABLES_OF_A_RUN)]
    for table in tables:
        table.write(project.inbox / f"{table.name}.txt")
    project.package(
        "headrace: 1\npackage: random\nconnections:\n  inbox: {type: files, path: inbox}\n"
        "  warehouse: {type: duckdb, path: warehouse.duckdb}\n"
        f"layouts:\n{''.join(table.layout for table in tables)}streams: {rng.randint(1, 3)}\n"
        f"tasks:\n{''.join(table.task for table in tables)}"
    )
    project.run().succeeded()
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{project.database}' AS loaded (READ_ONLY)")
        for table in tables:
            found, expected = f"loaded.{table.name}", f"memory.{table.name}"
            connection.execute(f"CREATE TABLE {expected} AS {table.read_csv(project.inbox / f'{table.name}.txt')}")
            for left, right in [(found, expected), (expected, found)]:
                difference = connection.execute(f"FROM {left} EXCEPT ALL FROM {right}").fetchmany(3)
                assert difference == [], f"only in {left}: {table.layout}"
            count = connection.execute(f"SELECT count(*) FROM {found}").fetchone()
            assert count == (len(table.lines),)
