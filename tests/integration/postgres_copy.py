"""Random values of all types, encoded by `headrace-wire`, loaded by a server, and read back as the server prints them.

    cargo build -p headrace-wire --example encode_rows
    python tests/integration/postgres_copy.py --encoder target/debug/examples/encode_rows --psql "psql -h /tmp/sockets"

The server parses the same texts itself: both columns must be equal, to the last digit (`::text`, and the bytes that the
type's send function writes).
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

Numbers = random.Random
LETTERS = string.ascii_letters + string.digits + " \\'\"\t\n,|äß€🦀"
NULL_SHARE = 0.1


@dataclass(frozen=True)
class Column:
    """A column: type in the batch, form on the wire, type in the server, texts of its values."""

    type: dict[str, Any]
    form: str
    server_type: str
    value: Callable[[Numbers], str]


def integer(bits: int) -> Callable[[Numbers], str]:
    def value(numbers: Numbers) -> str:
        size = numbers.randrange(bits)
        return str(max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, numbers.randint(-(2**size), 2**size))))

    return value


def decimal(precision: int, scale: int) -> Callable[[Numbers], str]:
    def value(numbers: Numbers) -> str:
        # Zeros at both ends and in the middle: whole digits of the server are empty then.
        digits = "".join(numbers.choice("0000123456789") for _ in range(numbers.randint(1, precision)))
        digits = (digits + "0" * numbers.choice((0, 0, 4, 8)))[:precision].rjust(scale + 1, "0")
        whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
        return numbers.choice(("", "-")) + whole + ("." + fraction if scale else "")

    return value


def day(numbers: Numbers) -> str:
    return (date.min + timedelta(days=numbers.randrange((date.max - date.min).days + 1))).isoformat()


def time(numbers: Numbers) -> str:
    microseconds = numbers.choice((0, 1, 999_999, numbers.randrange(1_000_000)))
    return f"{numbers.randrange(24):02}:{numbers.randrange(60):02}:{numbers.randrange(60):02}.{microseconds:06}"


def text(most: int) -> Callable[[Numbers], str]:
    def value(numbers: Numbers) -> str:
        return "".join(numbers.choice(LETTERS) for _ in range(numbers.randint(0, numbers.randint(0, most))))

    return value


def float_text(numbers: Numbers) -> str:
    special = numbers.choice(("NaN", "inf", "-inf", "0", "-0"))
    return numbers.choice((special, repr(numbers.uniform(-1e6, 1e6)), repr(numbers.uniform(-1, 1) * 1e-30)))


def document(numbers: Numbers) -> str:
    return json.dumps({"a": [numbers.randrange(1000), text(90)(numbers)], "b": None}, ensure_ascii=False)


def kind(name: str, **more: int) -> dict[str, Any]:
    return {"kind": name, **more}


def columns() -> list[Column]:
    made = [
        Column(kind("int16"), "int2", "int2", integer(16)),
        Column(kind("int32"), "int4", "int4", integer(32)),
        Column(kind("int64"), "int8", "int8", integer(64)),
        Column(kind("int16"), "int8", "int8", integer(16)),
        Column(kind("int32"), "numeric", "numeric", integer(32)),
        Column(kind("int64"), "numeric", "numeric(19)", integer(64)),
        Column(kind("int32"), "float8", "float8", integer(32)),
        Column(kind("float32"), "float4", "float4", float_text),
        Column(kind("float64"), "float8", "float8", float_text),
        Column(kind("bool"), "bool", "bool", lambda numbers: numbers.choice("tf")),
        Column(kind("date"), "date", "date", day),
        Column(kind("date"), "timestamp", "timestamp", day),
        Column(kind("time"), "time", "time", time),
        Column(kind("timestamp"), "timestamp", "timestamp", lambda numbers: f"{day(numbers)} {time(numbers)}"),
        Column(kind("timestamptz"), "timestamptz", "timestamptz", lambda numbers: f"{day(numbers)} {time(numbers)}+00"),
        Column(kind("string"), "text", "text", text(200)),
        Column(kind("varchar", length=10), "text", "varchar(10)", text(10)),
        Column(kind("char", length=12), "text", "char(12)", lambda numbers: text(12)(numbers).rstrip(" ")),
        Column(kind("bytes"), "bytea", "bytea", lambda numbers: "\\x" + numbers.randbytes(numbers.randrange(90)).hex()),
        Column(kind("uuid"), "uuid", "uuid", lambda numbers: numbers.randbytes(16).hex()),
        Column(kind("json"), "json", "json", document),
        Column(kind("json"), "jsonb", "jsonb", document),
        Column(kind("json"), "text", "text", document),
    ]
    shapes = [
        (4, 0),
        (15, 2),
        (18, 0),
        (18, 7),
        (18, 18),
        (19, 1),
        (28, 10),
        (38, 0),
        (38, 1),
        (38, 19),
        (38, 37),
        (38, 38),
    ]
    for precision, scale in shapes:
        data_type = kind("decimal", precision=precision, scale=scale)
        server_type = f"numeric({precision},{scale})"
        made.append(Column(data_type, "numeric", server_type, decimal(precision, scale)))
    return made


def literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


def load(psql: list[str], encoder: str, wanted: list[Column], rows: list[list[str | None]], folder: Path) -> list[str]:
    """Loads the rows twice, encoded and as text; returns what differs."""
    lines = [json.dumps([{"type": column.type, "form": column.form} for column in wanted])]
    lines += [json.dumps(row) for row in rows]
    stream = subprocess.run([encoder], input="\n".join(lines).encode(), check=True, stdout=subprocess.PIPE).stdout
    (folder / "rows.copy").write_bytes(stream)
    definitions = ", ".join(f"c{index} {column.server_type}" for index, column in enumerate(wanted))
    values = ",\n".join(
        "("
        + ", ".join(f"{literal(value)}::{column.server_type}" for value, column in zip(row, wanted, strict=True))
        + f", {number})"
        for number, row in enumerate(rows)
    )
    names = [f"c{index}" for index in range(len(wanted))]
    different = " UNION ALL ".join(
        f"SELECT number, '{name} {column.server_type}', e.{name}::text, t.{name}::text"
        f" FROM encoded e JOIN typed t USING (number)"
        f" WHERE e.{name}::text IS DISTINCT FROM t.{name}::text"
        f" OR {sender(column)}(e.{name}) IS DISTINCT FROM {sender(column)}(t.{name})"
        for name, column in zip(names, wanted, strict=True)
    )
    script = f"""
SET TimeZone = 'UTC';
CREATE TEMP TABLE encoded ({definitions}, number serial);
\\copy encoded ({", ".join(names)}) from '{folder / "rows.copy"}' (format binary)
UPDATE encoded SET number = number - 1;
CREATE TEMP TABLE typed ({definitions}, number int);
INSERT INTO typed VALUES {values};
SELECT CASE WHEN (SELECT count(*) FROM encoded) = {len(rows)} THEN NULL ELSE 'rows are missing' END WHERE
  (SELECT count(*) FROM encoded) <> {len(rows)};
{different};
"""
    command = [*psql, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]
    found = subprocess.run(command, input=script.encode(), check=True, stdout=subprocess.PIPE).stdout
    return found.decode().splitlines()


def sender(column: Column) -> str:
    """The server's function that writes the type's binary form."""
    name = column.server_type.partition("(")[0]
    special = {
        "date": "date_send",
        "text": "textsend",
        "varchar": "varcharsend",
        "char": "bpcharsend",
        "bytea": "byteasend",
    }
    underlined = {"numeric", "time", "timestamp", "timestamptz", "uuid", "json", "jsonb"}
    return special.get(name, f"{name}_send" if name in underlined else f"{name}send")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psql", required=True, help="command line of psql, with the connection")
    parser.add_argument("--encoder", required=True, help="the built example encode_rows")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    numbers = Numbers(arguments.seed)
    for number in range(arguments.rounds):
        wanted = columns()
        numbers.shuffle(wanted)
        null_share = [numbers.choice((0.0, NULL_SHARE)) for _ in wanted]
        rows: list[list[str | None]] = [
            [
                None if numbers.random() < share else column.value(numbers)
                for column, share in zip(wanted, null_share, strict=True)
            ]
            for _ in range(arguments.rows)
        ]
        with tempfile.TemporaryDirectory() as folder:
            different = load(shlex.split(arguments.psql), arguments.encoder, wanted, rows, Path(folder))
        if different:
            print(f"round {number}: {len(different)} values differ", *different[:10], sep="\n")
            return 1
    print(f"{arguments.rounds} rounds of {arguments.rows} rows and {len(columns())} columns: all equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
