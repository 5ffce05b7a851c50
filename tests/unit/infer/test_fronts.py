"""What stands before the rows of a file, however long it is: titles, settings, comments, headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import SourceError
from headrace.infer import Given, InferOptions, Inferred, infer_files, layout_text, looking
from headrace.infer.checking import check_files
from headrace.model.layout_text import read_layout

_LENGTHS = (1, 29, 30, 31, 199, 200, 201, 250)
_ROWS = "".join(f"{number};n{number};{number}.5\n" for number in range(300))


def inferred_of(path: Path, text: str, header: bool | None = None) -> Inferred:
    """What a file is inferred to hold, all of which loads."""
    path.write_text(text, encoding="utf-8")
    inferred = infer_files([path], InferOptions(given=Given(header=header), streams=1))
    report = check_files([path], read_layout(layout_text(inferred).encode(), "layout"), 1)
    assert (report["rejects"]["count"], inferred.misfits["count"]) == (0, 0)
    return inferred


def names_of(inferred: Inferred) -> list[str]:
    return [column.name for column in inferred.columns]


@pytest.mark.parametrize("header", [None, True, False])
@pytest.mark.parametrize("length", _LENGTHS)
def test_lines_in_front_are_skipped(length: int, header: bool | None, tmp_path: Path) -> None:
    front = "".join(f"Instrument setting {number}\n" for number in range(length))
    inferred = inferred_of(tmp_path / "file.csv", f"{front}id;name;value\n{_ROWS}", header)
    assert inferred.dialect["skip_lines"] == length
    told = [doubt.text for doubt in inferred.doubts if doubt.topic == "rows before"]
    assert len(told) == 1 and '"Instrument setting 0"' in told[0]
    if header is False:
        assert (names_of(inferred), inferred.rows) == (["column_1", "column_2", "column_3"], 301)
    else:
        assert (names_of(inferred), inferred.rows) == (["id", "name", "value"], 300)


@pytest.mark.parametrize("length", _LENGTHS[1:])
def test_comments_in_front_are_comments(length: int, tmp_path: Path) -> None:
    front = "".join(f"# setting {number}\n" for number in range(length))
    inferred = inferred_of(tmp_path / "file.csv", f"{front}id;name;value\n{_ROWS}")
    assert inferred.dialect == {"delimiter": ";", "comment": "#", "header": "check"}
    assert (names_of(inferred), inferred.rows) == (["id", "name", "value"], 300)
    # One line that is none: all of them are skipped.
    inferred = inferred_of(tmp_path / "file.csv", f"{front}\nby me\nid;name;value\n{_ROWS}")
    assert inferred.dialect == {"delimiter": ";", "skip_lines": length + 2, "header": "check"}
    assert (names_of(inferred), inferred.rows) == (["id", "name", "value"], 300)


def test_a_header_may_begin_as_comments_do(tmp_path: Path) -> None:
    inferred = inferred_of(tmp_path / "file.csv", f"# made today\n# by me\n# id;name;value\n{_ROWS}")
    assert inferred.dialect == {"delimiter": ";", "skip_lines": 2, "header": "check"}
    assert (names_of(inferred), inferred.rows) == (["# id", "name", "value"], 300)


@pytest.mark.parametrize("length", [2, 40, 250])
def test_a_header_below_many_lines(length: int, tmp_path: Path) -> None:
    front = "".join(f"Instrument setting {number}\n" for number in range(length))
    # A header without a name for the number of the row.
    inferred = inferred_of(tmp_path / "file.csv", f"{front}\nname;value\n{_ROWS}")
    assert inferred.dialect == {"delimiter": ";", "skip_lines": length + 1, "header": "skip"}
    assert (names_of(inferred), inferred.rows) == (["column_1", "name", "value"], 300)
    assert [doubt.topic for doubt in inferred.doubts] == ["rows before", None]
    # One with units below it.
    inferred = inferred_of(tmp_path / "file.csv", f"{front}time;name;temp\ns;;degC\n{_ROWS}")
    assert inferred.dialect == {"delimiter": ";", "skip_lines": length + 1, "header": "skip"}
    assert (names_of(inferred), inferred.rows) == (["time", "name", "temp"], 300)


@pytest.mark.parametrize("name", ["x" * 255, "é" * 255, "\U0001d4d0" * 255])
def test_a_name_may_have_255_characters(name: str, tmp_path: Path) -> None:
    inferred = inferred_of(tmp_path / "file.csv", f"{name};b\n1;2\n3;4\n")
    assert (inferred.dialect["header"], names_of(inferred), inferred.doubts) == ("check", [name, "b"], ())
    inferred = inferred_of(tmp_path / "file.csv", f"{name}{name[0]};b\n1;2\n3;4\n")
    assert (inferred.dialect["header"], names_of(inferred)) == ("skip", ["column_1", "b"])
    assert [doubt.text[:19] for doubt in inferred.doubts] == ["names in the header"]


def test_a_value_in_braces_is_no_document(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    guids = "".join(f"{{0123abcd-0000-4000-8000-{number:012}}};{number}\n" for number in range(3))
    assert inferred_of(path, guids).rows == 3
    for text in ('{"a": 1}\n', "{\n", "{}\n", '{ "a": 1,\n"b": 2}\n'):
        path.write_text(text)
        with pytest.raises(SourceError) as raised:
            infer_files([path], InferOptions(streams=1))
        assert raised.value.found == "JSON"


def test_a_first_row_longer_than_the_sample(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    inferred = inferred_of(path, f"1;{'x' * 1_200_000}\n2;y\n3;z\n")
    assert [str(column.type) for column in inferred.columns] == ["int16", "string"]
    assert inferred.rows == 3
    # Lines without a byte, and rows behind them.
    inferred = inferred_of(path, "\n" * 1_100_000 + "id;name\n1;a\n2;b\n")
    assert (names_of(inferred), inferred.rows) == (["id", "name"], 2)


@pytest.mark.parametrize(("text", "found"), [("x" * 3000, "no row end"), ("\n" * 3000, "blank lines only")])
def test_a_front_without_a_row(text: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "LOOK_BYTES", 1000)
    monkeypatch.setattr(looking, "_FURTHER_LOOKS", (1500, 2000))
    path = tmp_path / "file.csv"
    path.write_text(f"{text}\n1;2\n")
    with pytest.raises(SourceError) as raised:
        infer_files([path], InferOptions(streams=1))
    assert raised.value.what == "a file holds no row that could be loaded"
    assert raised.value.found == f"{found} in the first 2,000 bytes"
    # What is no delimited text is called so.
    path.write_text(f"[{'[1, 2], ' * 1000}3]\n")
    with pytest.raises(SourceError) as raised:
        infer_files([path], InferOptions(streams=1))
    assert raised.value.found == "JSON"
