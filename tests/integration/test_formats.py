"""Formats of columns against what the servers say of the same texts, where their functions know one meaning for a text.

Every text is loaded twice, as a value and as a text; the server converts the text and compares. DuckDB's strptime and
PostgreSQL's to_date, to_timestamp and to_number accept more than a format does (single digits, groups of any size), so
only texts that a format accepts are written here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject

ROWS = 700  # several tiles of rows, and a rest
PACKAGE = """
headrace: 1
package: formats
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  rows:
    delimiter: "|"
    columns:
"""
TASKS = """
tasks:
  load:
    data_flow:
      sources:
        rows: {connection: inbox, files: rows.txt, layout: rows}
      destinations:
        loaded: {input: rows, connection: warehouse, table: formats, target: replace, load: single}
"""


@dataclass(frozen=True)
class Kind:
    """A column: type, format as YAML, a text; what the text is in SQL of both servers, `{}` being its column."""

    type: str
    format: str
    text: Callable[[random.Random], str]
    duckdb: str
    postgres: str


def moment(python: str, *, microseconds: int = 0) -> Callable[[random.Random], str]:
    """Texts of strftime, in years that PostgreSQL takes from four digits."""

    def text(rng: random.Random) -> str:
        value = datetime(1000, 1, 1) + timedelta(seconds=rng.randrange(283_996_800_000))
        return (value + timedelta(microseconds=rng.randrange(microseconds + 1))).strftime(python)

    return text


def amount(rng: random.Random) -> Decimal:
    return Decimal(rng.randrange(10 ** rng.randrange(1, 12))).scaleb(-2) * rng.choice([1, 1, -1])


def german(rng: random.Random) -> str:
    return f"{amount(rng):,.2f}".translate(str.maketrans(",.", ".,"))


def refund(rng: random.Random) -> str:
    value = amount(rng)
    return f"$ {abs(value):,.2f}{'-' if value < 0 else ''}"


def measured(rng: random.Random) -> str:
    return f"{rng.uniform(-1000, 1000):.{rng.randrange(1, 15)}f}".replace(".", ",")


KINDS = {
    "german_day": Kind(
        "date", "dd.MM.yyyy", moment("%d.%m.%Y"), "strptime({}, '%d.%m.%Y')", "to_date({}, 'DD.MM.YYYY')",
    ),
    "short_day": Kind(
        "date", "M/d/yyyy", moment("%-m/%-d/%Y"), "strptime({}, '%m/%d/%Y')", "to_date({}, 'MM/DD/YYYY')",
    ),
    "plain_day": Kind("date", "yyyyMMdd", moment("%Y%m%d"), "strptime({}, '%Y%m%d')", "to_date({}, 'YYYYMMDD')"),
    "named_day": Kind(
        "date", "{pattern: d MMMM yyyy, locale: en}", moment("%-d %B %Y"),
        "strptime({}, '%d %B %Y')", "to_date({}, 'DD Month YYYY')",
    ),
    "abbreviated_day": Kind(
        "date", "{pattern: dd-MMM-yyyy, locale: en}", lambda rng: moment("%d-%b-%Y")(rng).upper(),
        "strptime({}, '%d-%b-%Y')", "to_date({}, 'DD-Mon-YYYY')",
    ),
    "american": Kind(
        "timestamp", '"M/d/yyyy h:mm:ss tt"', moment("%-m/%-d/%Y %-I:%M:%S %p"),
        "strptime({}, '%m/%d/%Y %I:%M:%S %p')", "to_timestamp({}, 'MM/DD/YYYY HH12:MI:SS AM')::timestamp",
    ),
    "precise": Kind(
        "timestamp", '"dd.MM.yyyy HH:mm:ss,ffffff"', moment("%d.%m.%Y %H:%M:%S,%f", microseconds=999_999),
        "strptime({}, '%d.%m.%Y %H:%M:%S,%f')", "to_timestamp({}, 'DD.MM.YYYY HH24:MI:SS,US')::timestamp",
    ),
    "digits": Kind(
        "timestamp", "yyyyMMddHHmmss", moment("%Y%m%d%H%M%S"),
        "strptime({}, '%Y%m%d%H%M%S')", "to_timestamp({}, 'YYYYMMDDHH24MISS')::timestamp",
    ),
    "seconds": Kind(
        "timestamp", "{epoch: s}", lambda rng: str(rng.randrange(-30_000_000_000, 250_000_000_000)),
        "make_timestamp({}::bigint * 1000000)", "timestamp '1970-01-01' + make_interval(secs => {}::float8)",
    ),
    "money": Kind(
        "decimal(15,2)", '{decimal: ",", group: "."}', german,
        "replace(replace({}, '.', ''), ',', '.')::decimal(15,2)",
        "to_number(translate({}, '.,', ',.'), 'S999G999G999G999D99')",
    ),
    "refund": Kind(
        "decimal(15,2)", '{group: ",", negative: trailing_minus, currency: $}',
        refund,
        "(CASE WHEN {0} LIKE '%-' THEN '-' ELSE '' END || translate({0}, '$ ,-', ''))::decimal(15,2)",
        "to_number(ltrim({}, '$ '), '999G999G999G999D99S')",
    ),
    "measured": Kind(
        "float64", '{decimal: ","}', measured,
        "replace({}, ',', '.')::double", "replace({}, ',', '.')::float8",
    ),
    "scientific": Kind(
        "decimal(20,6)", "{scientific: true}",
        lambda rng: f"{rng.randrange(10**6)}.{rng.randrange(10)}e{rng.randrange(-5, 6)}",
        "{}::double::decimal(20,6)", "{}::numeric",
    ),
    "mask": Kind(
        "int32", "{hex: true}", lambda rng: f"{rng.randrange(2**31):#x}",
        "{}::bigint", "('x' || lpad(substr({}, 3), 8, '0'))::bit(32)::int",
    ),
    "paid": Kind(
        "bool", "{true: [Ja, J], false: [Nein, N]}", lambda rng: rng.choice(["Ja", "j", "NEIN", "N", "nein"]),
        "upper({}) LIKE 'J%'", "upper({}) LIKE 'J%'",
    ),
}  # fmt: skip


def prepare(project: Project, seed: int) -> None:
    """Writes the file and the package that loads it."""
    rng = random.Random(seed)
    rows = [[kind.text(rng) for kind in KINDS.values()] for _ in range(ROWS)]
    project.file("rows.txt", "".join("|".join([*row, *row]) + "\n" for row in rows))
    columns = [f'{{name: {name}, type: "{kind.type}", format: {kind.format}}}' for name, kind in KINDS.items()]
    columns += [f"{{name: {name}_text, type: string}}" for name in KINDS]
    project.package(PACKAGE + "".join(f"      - {column}\n" for column in columns) + TASKS)


def differences(name: str, sql: str) -> str:
    return f"SELECT {name}_text, {name} FROM formats WHERE {name} IS DISTINCT FROM ({sql.format(f'{name}_text')})"


@pytest.mark.parametrize("seed", range(3))
def test_duckdb_reads_the_same_from_every_text(project: Project, seed: int, cpu_path: str) -> None:
    prepare(project, seed)
    assert project.run().succeeded()["rows_loaded"] == ROWS
    for name, kind in KINDS.items():
        assert project.query(differences(name, kind.duckdb)) == [], name


def test_postgresql_reads_the_same_from_every_text(warehouse: PostgresProject) -> None:
    prepare(warehouse, 7)
    assert warehouse.run().succeeded()["rows_loaded"] == ROWS
    for name, kind in KINDS.items():
        assert warehouse.query(differences(name, kind.postgres)) == [], name
