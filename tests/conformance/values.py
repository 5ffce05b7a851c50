"""One column per type, with its extremes: the text in the file, and the value that must be found in the destination.

A value is written as canonical text, so that destinations can be compared whatever their client returns:
whole numbers, decimals and dates as usual; floats as Python's repr; times, timestamps and instants as microseconds
since midnight or 1970 (UTC); bytes as upper-case hexadecimal digits; truth values as true and false.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class Case:
    """A column of this type. `values` are pairs of text in the file and canonical value."""

    name: str
    type: str
    values: tuple[tuple[str, str], ...]

    @property
    def kind(self) -> str:
        """The type without its numbers."""
        return self.type.partition("(")[0]


def _same(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, text) for text in texts)


def _microseconds(text: str) -> str:
    moment = datetime.fromisoformat(text)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return str((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


def _moments(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, _microseconds(text)) for text in texts)


def _floats(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, repr(float(text))) for text in texts)


def _single_floats(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple((text, repr(struct.unpack("<f", struct.pack("<f", float(text)))[0])) for text in texts)


def _decimals(precision: int, scale: int) -> Case:
    nines = "9" * precision
    whole, fraction = nines[: precision - scale] or "0", nines[precision - scale :]
    largest = f"{whole}.{fraction}" if scale else whole
    zero = f"0.{'0' * scale}" if scale else "0"
    smallest = f"0.{'0' * (scale - 1)}1" if scale else "1"
    values = (*_same(largest, f"-{largest}", smallest, f"-{smallest}", zero), ("-0", zero), ("+0", zero))
    return Case(f"decimal_{precision}_{scale}", f"decimal({precision},{scale})", values)


# A string view holds up to 12 bytes itself, longer texts elsewhere.
TEXTS = (
    *(
        "a",
        "twelve bytes",
        "thirteen byte",
        "eleven byte",
        "x" * 5000,
        " ",
        " leading and trailing ",
        '"quoted"',
        "NULL",
    ),
    *(
        "é",
        "zwölf Byte!",
        "dreizehn Byé",
        "日本語日",
        "日本語日b",
        "日本語日本語",
        "😀😀😀",
        "😀😀😀!",
        "a\u0301",
        "\u202e",
        "\x7f\x01",
    ),
    *("tab\there", "back\\slash", "%s{}$", "'"),
)

CASES = (
    Case("int16", "int16", (*_same("0", "1", "-1", "32767", "-32768"), ("+7", "7"), ("007", "7"))),
    Case("int32", "int32", _same("0", "2147483647", "-2147483648")),
    Case("int64", "int64", _same("0", "9223372036854775807", "-9223372036854775808", "1234567890123456")),
    *(
        _decimals(precision, scale)
        for precision, scale in [
            *((1, 0), (4, 2), (5, 5), (9, 2), (10, 0), (15, 2), (18, 0), (18, 4), (18, 18)),
            *((19, 0), (19, 4), (20, 20), (38, 0), (38, 2), (38, 19), (38, 37), (38, 38)),
        ]
    ),
    Case(
        "float32",
        "float32",
        _single_floats(
            "0", "-0.0", "0.1", "3.4028235e38", "-3.4028235e38", "1.1754944e-38", "1e-45", "nan", "inf", "-inf"
        ),
    ),
    Case(
        "float64",
        "float64",
        _floats(
            *("0", "-0.0", "0.1", "1.7976931348623157e308", "-1.7976931348623157e308", "5e-324", "nan", "inf", "-inf"),
            *("2.2250738585072014e-308", "9007199254740993", "0.30000000000000004"),
        ),
    ),
    Case("bool", "bool", (*_same("true", "false"), ("t", "true"), ("NO", "false"), ("1", "true"), ("0", "false"))),
    Case("date", "date", _same("0001-01-01", "9999-12-31", "1969-12-31", "1970-01-01", "2000-02-29", "1582-10-10")),
    Case(
        "time",
        "time",
        (
            ("00:00:00", "0"),
            ("23:59:59.999999", "86399999999"),
            ("12:34:56.5", "45296500000"),
            ("00:00:00.000001", "1"),
        ),
    ),
    Case(
        "timestamp",
        "timestamp",
        _moments(
            *(
                "0001-01-01 00:00:00",
                "9999-12-31 23:59:59.999999",
                "1969-12-31 23:59:59.999999",
                "2024-02-29T12:34:56.000001",
            ),
            "1582-10-10 01:02:03",
        ),
    ),
    Case(
        "timestamptz",
        "timestamptz",
        _moments(
            *("0001-01-01 00:00:00+00:00", "9999-12-31 23:59:59.999999+00:00", "2024-03-31 02:30:00+05:30"),
            *("2024-10-27 02:30:00.000001-08:00", "1969-12-31 23:59:59.999999Z"),
        ),
    ),
    Case("string", "string", _same(*TEXTS)),
    Case("char", "char(5)", (("ab   ", "ab"), ("abcde", "abcde"), ("äöüßé  ", "äöüßé"), (" a", " a"), ("   ", ""))),
    Case("char_long", "char(20)", (("twelve bytes", "twelve bytes"), ("thirteen byte       ", "thirteen byte"))),
    Case(
        "varchar",
        "varchar(12)",
        _same("twelve bytes", "zwölf Zeichn", "😀" * 12, "日本語日本語日本語日本語", "a ", " "),
    ),
    Case("bytes", "bytes", (("00FF", "00FF"), ("\\x", ""), ("\\xdeadbeef", "DEADBEEF"), ("00" * 13, "00" * 13))),
    Case(
        "uuid",
        "uuid",
        (
            ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"),
            ("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
            ("0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcdef"),
            ("7fffffff-ffff-ffff-8000-000000000000", "7fffffff-ffff-ffff-8000-000000000000"),
        ),
    ),
    Case("json", "json", _same('{"a": [1, 2.50, null]}', "null", '"äöü"', "12345678901234567890.10", " [ ] ", "true")),
)
ROWS = max(len(case.values) for case in CASES)


def file_rows(cases: Iterable[Case] = CASES) -> list[str]:
    """The rows of the file: an id, and one field per case. A case without further values has an empty field: NULL."""
    cases = list(cases)
    rows = []
    for row in range(ROWS):
        fields = [case.values[row][0] if row < len(case.values) else "" for case in cases]
        rows.append("|".join([str(row), *fields]) + "\n")
    return rows


def expected_column(case: Case) -> list[str | None]:
    """The values of a column by id."""
    return [case.values[row][1] if row < len(case.values) else None for row in range(ROWS)]
