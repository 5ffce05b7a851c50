"""Columns at places of their rows: what the core is told, and every message."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import Layout
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import COMPLETE, change, load, message

COLUMNS = COMPLETE[COMPLETE.index("  orders:\n") : COMPLETE.index("tasks:")]


def fixed(lines: list[str], columns: list[str]) -> str:
    """A package whose layout `orders` says this."""
    settings = "".join(f"    {line}\n" for line in lines)
    own = "".join(f"      - {{{column}}}\n" for column in columns)
    return change(COLUMNS, f"  orders:\n{settings}    columns:\n{own}")


def orders(folder: Path, text: str) -> Layout:
    """The layout of that package."""
    [task] = load(folder, text).flows
    return task.source.layout


TWO = ["name: id, type: int64, width: 5", 'name: amount, type: "decimal(15,2)", width: 9']
RAGGED = [TWO[0], "name: amount, type: string"]
FIXED = ["shape: fixed_width"]

MESSAGES = {
    "overlap": (FIXED, [TWO[0], "name: amount, type: int32, start: 5, width: 9"]),
    "order": (FIXED, ["name: id, type: int64, start: 5", "name: amount, type: int32, start: 2, width: 9"]),
    "no_width": (FIXED, ["name: id, type: int64", TWO[1]]),
    "no_last_width": (FIXED, RAGGED),
    "zero": (FIXED, [TWO[0], "name: amount, type: int32, start: 0, width: 9"]),
    "too_far": (FIXED, [TWO[0], "name: amount, type: int32, start: 99999999999, width: 9"]),
    "last_width": (["shape: ragged_right"], TWO),
    "delimiter": ([*FIXED, "delimiter: '|'"], TWO),
    "qualifier": (["shape: ragged_right", "qualifier: '\"'"], RAGGED),
    "comment": ([*FIXED, "comment: '#'"], TWO),
    "column_delimiter": (FIXED, [TWO[0], f"{TWO[1]}, delimiter: '|'"]),
    "by_name": ([*FIXED, "header: by_name"], TWO),
    "endless_fill": ([*FIXED, "row_end: none", "short_rows: fill"], TWO),
    "endless_characters": ([*FIXED, "row_end: none", "width_unit: characters"], TWO),
    "endless_mixed": ([*FIXED, "row_end: none", "mixed_row_ends: reject"], TWO),
    "endless_ragged": (["shape: ragged_right", "row_end: none"], RAGGED),
    "ragged_keep": (["shape: ragged_right", "extra_fields: keep"], RAGGED),
    "fixed_keep": ([*FIXED, "extra_fields: keep"], TWO),
    "delimited_place": (["delimiter: '|'"], [TWO[0], "name: amount, type: string"]),
    "delimited_unit": (["delimiter: '|'", "width_unit: characters"], RAGGED),
    "delimited_endless": (["delimiter: '|'", "row_end: none"], ["name: id, type: int64", "name: amount, type: string"]),
    "no_delimiter": ([], ["name: id, type: int64", "name: amount, type: string"]),
    "shape": (["shape: fixed"], TWO),
    "utf_16_bytes": ([*FIXED, "encoding: utf-16"], TWO),
    "utf_16_endless": ([*FIXED, "encoding: utf-16le", "row_end: none"], TWO),
    "made": (FIXED, [*TWO, "name: file, type: string, from: file_name, width: 9"]),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"places_{name}", message(tmp_path, fixed(*MESSAGES[name])))


@pytest.mark.parametrize(
    ("lines", "columns", "places"),
    [
        (FIXED, TWO, [(0, 5), (5, 9)]),
        (
            FIXED,
            ["name: id, type: int64, start: 2", "name: amount, type: string, start: 9, width: 1"],
            [(1, 7), (8, 1)],
        ),
        (["shape: ragged_right"], RAGGED, [(0, 5), (5, None)]),
        (["shape: ragged_right"], [TWO[0], "name: amount, type: string, start: 9"], [(0, 5), (8, None)]),
    ],
)
def test_places_of_columns(
    tmp_path: Path, lines: list[str], columns: list[str], places: list[tuple[int, int | None]]
) -> None:
    core = orders(tmp_path, fixed(lines, columns)).to_core()
    assert [(column["place"]["start"], column["place"]["width"]) for column in core["columns"]] == places
    assert (core["shape"], core["width_unit"]) == (lines[0].removeprefix("shape: "), "bytes")
    assert "delimiter" not in core


def test_rows_without_row_ends(tmp_path: Path) -> None:
    layout = orders(tmp_path, fixed([*FIXED, "row_end: none"], TWO))
    assert layout.to_core()["row_end"] == "none"
    assert layout.hidden_row_ends() == ["row_end"]
    assert layout.shortest_row_bytes == 14


def test_the_shortest_row(tmp_path: Path) -> None:
    assert orders(tmp_path, fixed(FIXED, TWO)).shortest_row_bytes == 15
    assert orders(tmp_path, fixed(["shape: ragged_right"], RAGGED)).shortest_row_bytes == 6
    assert orders(tmp_path, COMPLETE).shortest_row_bytes is None


def test_made_columns_have_no_place(tmp_path: Path) -> None:
    layout = orders(tmp_path, fixed(FIXED, [TWO[0], "name: file, type: string, from: file_name", TWO[1]]))
    assert [column["place"] for column in layout.to_core()["columns"]] == [
        {"start": 0, "width": 5},
        {"start": 5, "width": 9},
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252", "utf-16le"])
def test_the_core_is_told_what_places_count(tmp_path: Path, encoding: str) -> None:
    """Also where a character is a byte: messages of rejects say what the layout says."""
    layout = orders(tmp_path, fixed([*FIXED, f"encoding: {encoding}", "width_unit: characters"], TWO))
    assert layout.to_core()["width_unit"] == "characters"
