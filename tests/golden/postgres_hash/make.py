"""Makes `partitions.txt`: which of 31 hash partitions a server puts a value into.

    python tests/golden/postgres_hash/make.py --psql "psql -h /tmp/sockets -d postgres"

A line: type, scale, key, partition. The key is what the router sees: whole number, unscaled decimal, days or
microseconds since 1970; bits/transform/tests/golden.rs` compares the
router with it. `--check` writes nothing and compares the file with what the server says.
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

FILE = Path(__file__).with_name("partitions.txt")
PARTS = 31
RANDOM_VALUES = 40
DAY_MICROSECONDS = 86_400_000_000
_MICROSECONDS = "(extract(epoch FROM k::timestamp) * 1000000)::numeric(38)"


def numbers(bits: int) -> Callable[[random.Random], list[str]]:
    limit = 1 << (bits - 1)

    def values(source: random.Random) -> list[str]:
        edges = [0, 1, -1, limit - 1, -limit]
        return [str(value) for value in [*edges, *(source.randrange(-limit, limit) for _ in range(RANDOM_VALUES))]]

    return values


def decimals(precision: int, scale: int) -> Callable[[random.Random], list[str]]:
    def values(source: random.Random) -> list[str]:
        greatest = 10**precision - 1
        edges = [0, 1, -1, greatest, -greatest, *(10**power for power in range(precision))]
        drawn = [
            source.randrange(-(10 ** source.randrange(1, precision + 1)), 10**precision) for _ in range(RANDOM_VALUES)
        ]
        return [f"{'-' if value < 0 else ''}{shifted(abs(value), scale)}" for value in [*edges, *drawn]]

    return values


def shifted(value: int, scale: int) -> str:
    digits = str(value).rjust(scale + 1, "0")
    return f"{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}" if scale else digits


def words(source: random.Random) -> list[str]:
    drawn = ["".join(source.choice("aZ09 äß€𝄞\\\"',") for _ in range(length)) for length in range(RANDOM_VALUES)]
    return ["", " ", "a ", "  b   ", *drawn]


def days(source: random.Random) -> list[str]:
    drawn = [
        f"{source.randrange(1, 10000):04}-{source.randrange(1, 13):02}-{source.randrange(1, 29):02}"
        for _ in range(RANDOM_VALUES)
    ]
    return ["0001-01-01", "1969-12-31", "1970-01-01", "1999-12-31", "2000-01-01", "2000-02-29", "9999-12-31", *drawn]


def moments(source: random.Random) -> list[str]:
    return [
        f"{day} {source.randrange(24):02}:{source.randrange(60):02}:00.{source.randrange(10**6):06}"
        for day in days(source)
    ]


def clocks(source: random.Random) -> list[str]:
    return ["00:00", "23:59:59.999999", *(moment[11:] for moment in moments(source))]


def floats(source: random.Random) -> list[str]:
    return [
        "0",
        "-0",
        "1",
        "-1.5",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e-30",
        *(repr(source.uniform(-1e9, 1e9)) for _ in range(RANDOM_VALUES)),
    ]


def identifiers(source: random.Random) -> list[str]:
    return [f"{source.getrandbits(128):032x}" for _ in range(RANDOM_VALUES)]


# type, scale, values, key as the router sees it
CASES: list[tuple[str, int, Callable[[random.Random], list[str]], str]] = [
    ("int2", 0, numbers(16), "k::numeric"),
    ("int4", 0, numbers(32), "k::numeric"),
    ("int8", 0, numbers(64), "k::numeric"),
    *(
        (f"numeric({precision},{scale})", scale, decimals(precision, scale), f"trunc(k * 1e{scale}::numeric)")
        for precision, scale in [(15, 2), (18, 0), (9, 9), (38, 0), (38, 38), (38, 5), (20, 7), (12, 4)]
    ),
    ("date", 0, days, "(k - '1970-01-01'::date)::numeric"),
    ("timestamp", 0, moments, _MICROSECONDS),
    ("timestamptz", 0, moments, _MICROSECONDS),
    ("time", 0, clocks, "(extract(epoch FROM k) * 1000000)::numeric(38)"),
    ("float4", 0, floats, "encode(float4send(k), 'hex')"),
    ("float8", 0, floats, "encode(float8send(k), 'hex')"),
    ("bool", 0, lambda source: ["f", "t"], "encode(boolsend(k), 'hex')"),
    ("text", 0, words, "encode(textsend(k), 'hex')"),
    ("varchar", 0, words, "encode(textsend(k), 'hex')"),
    ("char(60)", 0, words, "encode(textsend(k), 'hex')"),
    ("bytea", 0, lambda source: [f"\\x{value}" for value in identifiers(source)], "encode(k, 'hex')"),
    ("uuid", 0, identifiers, "encode(uuid_send(k), 'hex')"),
]


def script() -> str:
    source = random.Random(1)
    statements = ["SET TimeZone = 'UTC'; SET client_encoding = 'UTF8'; SET client_min_messages = 'warning'"]
    for kind, scale, values, key in CASES:
        rows = ", ".join("('" + value.replace("'", "''") + f"'::{kind})" for value in values(source))
        statements += [
            "BEGIN",
            f"CREATE TABLE headrace_hashed (n bigint GENERATED ALWAYS AS IDENTITY, k {kind}) PARTITION BY HASH (k)",
            *(
                f"CREATE TABLE headrace_hashed_{number} PARTITION OF headrace_hashed "
                f"FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {number})"
                for number in range(PARTS)
            ),
            f"INSERT INTO headrace_hashed (k) VALUES {rows}, (NULL)",
            f"SELECT '{kind}', {scale}, coalesce(({key})::text, 'null'), "
            "split_part(tableoid::regclass::text, '_', 3) FROM headrace_hashed ORDER BY n",
            "ROLLBACK",
        ]
    return ";\n".join(statements) + ";\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psql", required=True, help="command line of psql, with the connection")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    command = [*shlex.split(arguments.psql), "-X", "-q", "-A", "-t", "-F", "|", "-v", "ON_ERROR_STOP=1"]
    found = subprocess.run(command, input=script(), check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    if not arguments.check:
        FILE.write_text(found, encoding="utf-8")
        return 0
    is_equal = FILE.read_text(encoding="utf-8") == found
    print("equal" if is_equal else "different")
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
