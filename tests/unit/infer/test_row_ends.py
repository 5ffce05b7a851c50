"""Rows that end with carriage returns alone, and values that hold the other row ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.infer import InferOptions, Inferred, infer_files, layout_text
from headrace.infer.checking import check_files
from headrace.model.layout_text import read_layout


def inferred_of(path: Path, text: str) -> Inferred:
    """What a file is inferred to hold; the rows that do not fit are those of which it tells."""
    path.write_bytes(text.encode())
    inferred = infer_files([path], InferOptions(streams=1))
    report = check_files([path], read_layout(layout_text(inferred).encode(), "layout"), 1)
    assert report["rejects"]["count"] == inferred.misfits["count"]
    return inferred


def facts_of(inferred: Inferred) -> tuple[int, list[str], int]:
    """Rows, names of columns, rows that do not fit."""
    return inferred.rows, [column.name for column in inferred.columns], inferred.misfits["count"]


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("id;name\n1;a\n2;b\n3;c\n", {"header": "check"}),
        ("Report\nid;name\n1;a\n2;b\n3;c\n", {"skip_lines": 1, "header": "check"}),
        ("Report\n\nof May\nid;name\n1;a\n2;b\n3;c\n4;d", {"skip_lines": 3, "header": "check"}),
        ("sep=;\nid;name\n1;a\n2;b\n3;c\n", {"skip_lines": 1, "header": "check"}),
        ("id;name;v\n1;a;2\n2;b;3\nTotal\n", {"header": "check", "footer_rows": 1}),
        # The last field is qualified, and no row end behind it.
        ('id;name\n1;"a;b"\n2;"c"', {"qualifier": '"', "header": "check"}),
    ],
)
def test_rows_end_one_way_or_another(text: str, settings: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    plain = inferred_of(path, text)
    assert plain.dialect == {"delimiter": ";", **settings}
    own = inferred_of(path, text.replace("\n", "\r"))
    assert own.dialect == {"delimiter": ";", "row_end": "cr", **settings}
    assert (own.rows, own.columns, own.doubts) == (plain.rows, plain.columns, plain.doubts)


@pytest.mark.parametrize("inner", ["\n", "\r\n"])
def test_line_feeds_in_values_of_rows_that_end_with_carriage_returns(inner: str, tmp_path: Path) -> None:
    rows = [f'{number},"a{inner if number == 7 else " "}b{number}",{2 * number}\r' for number in range(1000)]
    inferred = inferred_of(tmp_path / "file.csv", "id,note,v\r" + "".join(rows))
    assert inferred.dialect == {"delimiter": ",", "qualifier": '"', "row_end": "cr", "header": "check"}
    assert facts_of(inferred) == (1000, ["id", "note", "v"], 0)
    assert inferred.doubts == ()


@pytest.mark.parametrize("row_end", ["\n", "\r\n"])
def test_carriage_returns_in_values_of_rows_that_end_with_line_feeds(row_end: str, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    many = "\r" * 20
    for first, others in ((f'"a{many}b"', f'"a{many}c"'), ("a\rb", "a c")):
        rows = [f"{number},{others if number else first},1{row_end}" for number in range(200)]
        inferred = inferred_of(path, f"id,note,v{row_end}" + "".join(rows))
        assert "row_end" not in inferred.dialect
        assert facts_of(inferred) == (200, ["id", "note", "v"], 0)
        assert inferred.doubts == ()


def test_row_ends_that_are_not_clear_are_a_doubt(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    rows = [f"{number};a{number}\r" for number in range(100)]
    inferred = inferred_of(path, "id;name\r" + "".join(rows) + "100;b\nc\r")
    assert inferred.dialect["row_end"] == "cr"
    assert facts_of(inferred) == (101, ["id", "name"], 0)
    taken = "the former were taken for the ends of rows, the latter for data"
    assert [own.text for own in inferred.doubts] == [f"102 carriage returns stand alone beside 1 line feed: {taken}"]
    inferred = inferred_of(path, "id;name\n1;a\rb\rc\n2;\r\r\rd\n")
    assert "row_end" not in inferred.dialect
    assert facts_of(inferred) == (2, ["id", "name"], 0)
    taken = "the latter were taken for the ends of rows, the former for data"
    assert [own.text for own in inferred.doubts] == [f"5 carriage returns stand alone beside 3 line feeds: {taken}"]


def test_a_long_file_of_rows_that_end_with_carriage_returns(tmp_path: Path) -> None:
    rows = [f"{number},text {number}\r" for number in range(100_000)]
    inferred = inferred_of(tmp_path / "file.csv", "id,text\r" + "".join(rows) + "Total\r")
    # Its end is looked at.
    assert inferred.dialect == {"delimiter": ",", "row_end": "cr", "header": "check", "footer_rows": 1}
    # So are the rows around one that does not fit.
    inferred = inferred_of(tmp_path / "file.csv", "id,text\r" + "".join(rows) + "7,a\\, b\r" + "".join(rows[:20_000]))
    assert inferred.dialect == {"delimiter": ",", "escape": "\\", "row_end": "cr", "header": "check"}
    assert facts_of(inferred) == (120_001, ["id", "text"], 0)
