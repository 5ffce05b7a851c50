"""Quantities and tables as people read them."""

from __future__ import annotations

import pytest

from headrace import units
from headrace.cli.text_table import TextColumn, render_table


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (9_994, "9.99 kB"),
        (9_996, "10.0 kB"),
        (77_123_456, "77.1 MB"),
        (999_499_999, "999 MB"),
        (999_500_000, "1.00 GB"),
        (1_180_000_000_000, "1.18 TB"),
        (2_500_000_000_000_000, "2,500 TB"),
    ],
)
def test_size(size_bytes: int, text: str) -> None:
    assert units.size(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 s"),
        (0.417, "0.42 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (99.94, "99.9 s"),
        (99.96, "1 min 40 s"),
        (185.4, "3 min 05 s"),
        (3599.6, "1 h 00 min"),
        (7621.0, "2 h 07 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert units.duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.1, "1 s"), (12.4, "12 s"), (99.6, "1 min 40 s")])
def test_remaining(seconds: float, text: str) -> None:
    assert units.remaining(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "seconds", "text"), [(1, 0.0, "-"), (5_000_000, 2.0, "2.5"), (658_000_000, 1.0, "658")]
)
def test_megabytes_per_second(size_bytes: int, seconds: float, text: str) -> None:
    assert units.megabytes_per_second(size_bytes, seconds) == text


def test_plural() -> None:
    assert units.plural(1, "row") == "1 row"
    assert units.plural(0, "row") == "0 rows"
    assert units.plural(2_000, "boundary", "boundaries") == "2,000 boundaries"


COLUMNS = [TextColumn("table", words=True), TextColumn("lines", drop_when_narrow=1), TextColumn("rows")]


def test_table_with_total() -> None:
    text = render_table(COLUMNS, [["a", "1", "1"], ["long name", "22", "1,000"]], total=["total", "23", "1,001"])
    assert text.splitlines() == [
        "table      lines   rows",
        "a              1      1",
        "long name     22  1,000",
        "-----------------------",
        "total         23  1,001",
    ]


def test_narrow_table_loses_a_column_but_no_digit() -> None:
    text = render_table(COLUMNS, [["a", "123,456", "123,456"]], width=15)
    assert text.splitlines() == ["table     rows", "a      123,456"]


def test_a_table_without_rows_has_its_heading() -> None:
    assert render_table(COLUMNS, []) == "table  lines  rows"
