"""Values do not lead paths of a package out of the folder that is written in front of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.model.written_folder import is_below, leads_out, written_folder
from tests.unit.model.packages import change, load, message

WHAT = "a value leads out of the folder that the package names"
PARAMETER = "  day: {type: date, default: 2024-01-31}\n"
VALUES = change(PARAMETER, f"{PARAMETER}  v: {{type: string}}\n  w: {{type: list, default: []}}\n")
GENERATE = "  make: {generate: {tpch: nation, out: OUT}}\n"


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ("${x}", ""),
        ("${x}/a", ""),
        ("a${x}", ""),
        ("a/${x}", "a"),
        ("a/b${x}/c", "a"),
        ("/a/b/${x}", "/a/b"),
        ("../a/${x}", "../a"),
        ("a/*/${x}", "a"),
        ("*/a/${x}", ""),
        ("$${x}/a/${x}", "${x}/a"),
        ({"expr": "x"}, ""),
        (["a"], ""),
    ],
)
def test_written_folders(written: object, folder: str) -> None:
    assert written_folder(written) == folder


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("a", "", True), ("a/../b", "", True), ("..", "", False), ("../a", "", False), ("a/../../b", "", False),
        ("/a", "", False), ("..a", "", True), ("a/b", "a", True), ("a", "a", True), ("ab", "a", False),
        ("a/..", "a", False), ("/a/b", "/a", True), ("/ab", "/a", False), ("/a/../b", "/a", False), ("/a", "/", True),
        ("../a/b", "../a", True), ("../b", "../a", False),
    ],
)  # fmt: skip
def test_below(path: str, folder: str, expected: bool) -> None:
    assert is_below(path, folder) is expected
    assert leads_out("${x}", path) is not is_below(path, "")
    assert not leads_out(path, path)


OUT = ("../x", "/etc/x", "a/../../x")
PLACES = {
    "source": ("files: orders.tbl", "files: WRITTEN"),
    "sources": ("files: orders.tbl", "files: [a.tbl, WRITTEN]"),
    "generated files": ("tasks:\n", f"tasks:\n{GENERATE}".replace("OUT", "WRITTEN")),
    "connection": ("path: data", "path: WRITTEN"),
    "database": ("path: w.duckdb", "path: WRITTEN"),
}


@pytest.mark.parametrize("value", [*OUT, "x", "a/../x"])
@pytest.mark.parametrize("written", ["inner/${v}", "${v}"])
@pytest.mark.parametrize("place", PLACES)
def test_settings(tmp_path: Path, place: str, written: str, value: str) -> None:
    """Where a folder is given, one that is written nowhere is the value: whoever starts the run says where it is."""
    old, new = PLACES[place]
    text = change(old, new.replace("WRITTEN", f'"{written}"'), VALUES)
    is_refused = value in OUT
    if place in ("connection", "database", "generated files") and written == "${v}":
        is_refused = False
    if written == "inner/${v}" and value == "/etc/x":
        is_refused = False  # inner//etc/x
    try:
        load(tmp_path, text, sets=[f"v={value}"])
    except HeadraceError as error:
        found = error.render()
    else:
        found = ""
    if place in ("source", "sources") and value == "/etc/x" and written == "${v}":
        assert found  # no pattern is absolute
    else:
        assert (WHAT in found) is is_refused, found


@pytest.mark.parametrize(("values", "is_refused"), [("a,b/c", False), ("a,../c", True)])
def test_a_list_that_is_put_in_as_a_whole(tmp_path: Path, values: str, is_refused: bool) -> None:
    text = change("files: orders.tbl", 'files: "${w}"', VALUES)
    try:
        load(tmp_path, text, sets=[f"w={values}"])
    except HeadraceError as error:
        assert is_refused and WHAT in error.render()
    else:
        assert not is_refused


@pytest.mark.parametrize("path", ["../x", "../../a/x"])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_written_is_meant(tmp_path: Path, place: str, path: str) -> None:
    old, new = PLACES[place]
    load(tmp_path, change(old, new.replace("WRITTEN", path)))


def test_message(tmp_path: Path) -> None:
    text = change("files: orders.tbl", 'files: "inner/${v}"', VALUES)
    assert WHAT in message(tmp_path, text, sets=["v=../../x"])
