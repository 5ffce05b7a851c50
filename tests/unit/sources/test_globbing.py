"""Which files a pattern means, in which order, and what is said when there are none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headrace.errors import SourceError
from headrace.sources.globbing import find_files, natural_key, no_files
from tests.snapshots import assert_snapshot


def make(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1|\n")
    return folder


def found(folder: Path, *patterns: str, streams: int = 4) -> list[str]:
    paths = find_files(str(folder), patterns, streams).paths
    return [str(Path(path).relative_to(folder)) for path in paths]


@pytest.mark.parametrize(
    ("files", "patterns", "expected"),
    [
        (["x.tbl.10", "x.tbl.2", "x.tbl.1"], ["x.tbl.*"], ["x.tbl.1", "x.tbl.2", "x.tbl.10"]),
        (["x.tbl"], ["x.tbl", "x.tbl.*"], ["x.tbl"]),
        (["x.tbl.1"], ["x.tbl", "x.tbl.*"], ["x.tbl.1"]),
        (["a1", "a2"], ["a*", "a1", "?2"], ["a1", "a2"]),
        (["x.tbl.1", ".x.tbl.2", ".tmp"], ["*", ".tmp"], ["x.tbl.1"]),
        (["d/a.csv", "d/.b.csv"], ["d/*.csv"], ["d/a.csv"]),
        (["a.csv", "d/b.csv", "d/e/c.csv"], ["**/*.csv"], ["a.csv", "d/b.csv", "d/e/c.csv"]),
        (["a[1].csv", "a1.csv"], ["a[[]1].csv"], ["a[1].csv"]),
        (["a[1].csv", "a1.csv"], ["a[1].csv"], ["a[1].csv"]),
        (["a1.csv"], ["a[1].csv"], ["a1.csv"]),
        (["*", "a.csv"], ["*"], ["*", "a.csv"]),
        ([".a[1].csv"], [".a[1].csv"], []),
        (["x.1", "x.2", "x.3", "x.4", "x.5"], ["x.{stream}"], ["x.1", "x.2", "x.3", "x.4"]),
        (["x.1"], ["y.*", "y"], []),
        ([], ["x.{stream}"], []),
    ],
)
def test_find(tmp_path: Path, files: list[str], patterns: list[str], expected: list[str]) -> None:
    assert found(make(tmp_path, *files), *patterns) == expected


def test_a_folder_with_pattern_characters_in_its_name(tmp_path: Path) -> None:
    assert found(make(tmp_path / "a[1]*", "x.csv"), "*.csv") == ["x.csv"]


def test_natural_order() -> None:
    names = ["b", "a10", "a9", "a09b", "10", "9", "a"]
    assert sorted(names, key=natural_key) == ["9", "10", "a", "a09b", "a9", "a10", "b"]


def test_a_folder_among_the_matches_is_said(tmp_path: Path) -> None:
    make(tmp_path, "a.csv", "b.csv/x")
    files = find_files(str(tmp_path), ["*.csv"], 1)
    assert len(files.paths) == 1
    assert files.notes == [f"{tmp_path}/b.csv matches `*.csv` but is a folder; it is not read"]


def error(folder: Path, *patterns: str) -> str:
    with pytest.raises(SourceError) as caught:
        found(folder, *patterns)
    return caught.value.render().replace(str(folder), "DATA").replace(str(folder.parent), "PARENT")


@pytest.mark.parametrize("pattern", ["*.csv", "linked.csv", "folder/*.csv", "folder/own.csv"])
def test_links_to_files_are_found(tmp_path: Path, pattern: str) -> None:
    """What is loaded from a folder is for whoever may write there to say."""
    inbox, beside = tmp_path / "inbox", tmp_path / "beside"
    inbox.mkdir()
    beside.mkdir()
    (beside / "own.csv").write_text("1\n")
    (inbox / "linked.csv").symlink_to(beside / "own.csv")
    (inbox / "folder").symlink_to(beside)
    (found,) = find_files(str(inbox), [pattern], 1).paths
    assert Path(found).read_text() == "1\n"


def test_folder_in_place_of_a_file(tmp_path: Path) -> None:
    """Of a stream's own file there is no folder; otherwise it stands for the files in it."""
    assert_snapshot("folder_as_file", error(make(tmp_path, "x.1/a", "x.2/a", "x.3/a", "x.4/a"), "x.{stream}"))


def test_missing_folder(tmp_path: Path) -> None:
    make(tmp_path, "inbox/a")
    assert_snapshot("missing_folder", error(tmp_path / "imbox", "*"))


def test_file_in_place_of_the_folder(tmp_path: Path) -> None:
    make(tmp_path, "inbox")
    assert_snapshot("file_as_folder", error(tmp_path / "inbox", "*"))


@pytest.mark.parametrize("folder", [".", "sub"])
def test_a_folder_that_cannot_be_listed_is_not_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    make(tmp_path, "sub/a.csv")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if os.path.normpath(path) == os.path.normpath(tmp_path / folder):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert_snapshot(f"unreadable_{'folder' if folder == '.' else folder}", error(tmp_path, "sub/*.csv"))


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.csv")).write_text("1|\n")
    assert_snapshot("not_utf_8", error(tmp_path, "*.csv"))
    text = no_files(str(tmp_path), ["a.csv"], "orders").render()
    assert "a\\xff.csv" in text.encode().decode()
    assert found(make(tmp_path, "b.csv"), "b*") == ["b.csv"]


def test_some_files_of_the_streams_are_missing(tmp_path: Path) -> None:
    assert_snapshot("streams_incomplete", error(make(tmp_path, "x.1", "x.3"), "x.{stream}"))


def test_no_file_matches(tmp_path: Path) -> None:
    make(tmp_path, "orders.tbl.1", "orders.tbl.2", "customer.tbl.1", "notes.txt")
    text = no_files(str(tmp_path), ["order.tbl", "order.tbl.*"], "orders").render()
    assert_snapshot("no_match", text.replace(str(tmp_path), "DATA"))


def test_no_file_matches_in_an_empty_folder(tmp_path: Path) -> None:
    text = no_files(str(tmp_path), ["*.csv"], "orders").render()
    assert_snapshot("no_match_empty_folder", text.replace(str(tmp_path), "DATA"))
