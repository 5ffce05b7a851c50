"""What a source looks like to the planner. The core's slicing is replaced by one slice per file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest

from headrace.errors import SourceError
from headrace.model import CommitInterval, FileSource, GenerateSource, Layout
from headrace.sources import FileCommit, snapshot_files, snapshot_generated
from tests.snapshots import assert_snapshot

LAYOUT = Layout.model_validate({"delimiter": "|", "columns": [{"name": "a", "type": "int64"}]})


def plan_slices(spec: dict[str, Any]) -> dict[str, Any]:
    files = [{"path": path, "size_bytes": os.path.getsize(path)} for path in spec["files"]]
    full = [number for number, file in enumerate(files) if file["size_bytes"]]
    slices = [{"number": number, "file": file} for number, file in enumerate(full, start=1)]
    return {"files": files, "slices": slices}


def source(
    folder: Path, missing: Literal["error", "skip"] = "error", empty: Literal["error", "allow"] = "error"
) -> FileSource:
    return FileSource("orders", "inbox", folder, ["*.tbl"], LAYOUT, missing, empty)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.tbl").write_text("1\n2\n")
    (tmp_path / "b.tbl").write_text("")
    snapshot = snapshot_files(source(tmp_path), 4, plan_slices)
    assert snapshot is not None
    assert [file["size_bytes"] for file in snapshot.files] == [4, 0]
    assert snapshot.bytes_total == 4
    assert len(snapshot.slices) == 1
    assert snapshot.notes == [f"{tmp_path}/b.tbl is empty"]
    assert "generate" not in snapshot.to_core()


def test_the_files_are_looked_at_once(tmp_path: Path) -> None:
    """Their sizes decide the length of the slices before the core opens them."""
    (tmp_path / "a.tbl").write_bytes(b"1\n")
    with (tmp_path / "b.tbl").open("wb") as file:
        file.truncate(1_000_000_000)
    specs: list[dict[str, Any]] = []

    def look(spec: dict[str, Any]) -> dict[str, Any]:
        specs.append(spec)
        return plan_slices(spec)

    assert snapshot_files(source(tmp_path), 4, look) is not None
    assert [spec["slice_bytes"] for spec in specs] == [1_000_000_002 // 32]


@pytest.mark.parametrize(
    ("interval", "is_shared", "expected", "row_bytes"),
    [
        (CommitInterval(bytes=1_000_000), False, 1_000_000, 1.0),
        (CommitInterval(bytes=1_000_000), True, 250_000, 1.0),
        (CommitInterval(rows=50_000), False, 600_000, 12.0),
        (CommitInterval(rows=50_000), True, 150_000, 12.0),
    ],
)
def test_slices_are_cut_for_commits(
    tmp_path: Path, interval: CommitInterval, is_shared: bool, expected: int, row_bytes: float
) -> None:
    (tmp_path / "a.tbl").write_text("12345678901\n" * 200_000)
    (tmp_path / "b.tbl").write_text("")
    specs: list[dict[str, Any]] = []

    def look(spec: dict[str, Any]) -> dict[str, Any]:
        specs.append(spec)
        return plan_slices(spec)

    snapshot = snapshot_files(source(tmp_path), 4, look, (), FileCommit(interval, is_shared))
    assert snapshot is not None
    assert snapshot.row_bytes == pytest.approx(row_bytes, rel=0.001)
    assert [spec["slice_bytes"] for spec in specs] == [pytest.approx(expected, rel=0.001)]


def test_a_file_that_is_gone_is_left_to_the_core(tmp_path: Path) -> None:
    (tmp_path / "a.tbl").symlink_to("nowhere")

    def refuse(spec: dict[str, Any]) -> dict[str, Any]:
        raise SourceError(f"cannot open {spec['files'][0]}")

    with pytest.raises(SourceError, match="cannot open"):
        snapshot_files(source(tmp_path), 4, refuse)


def test_many_empty_files_are_counted(tmp_path: Path) -> None:
    (tmp_path / "z.tbl").write_text("1\n")
    for number in range(6):
        (tmp_path / f"{number}.tbl").write_text("")
    snapshot = snapshot_files(source(tmp_path), 4, plan_slices)
    assert snapshot is not None
    assert snapshot.notes[-1] == "3 more files are empty"


def test_missing_files_can_be_skipped(tmp_path: Path) -> None:
    assert snapshot_files(source(tmp_path, missing="skip"), 4, plan_slices) is None
    with pytest.raises(SourceError):
        snapshot_files(source(tmp_path), 4, plan_slices)


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_but_empty_files(tmp_path: Path, count: int) -> None:
    for number in range(count):
        (tmp_path / f"{number}.tbl").write_text("")
    with pytest.raises(SourceError) as caught:
        snapshot_files(source(tmp_path), 4, plan_slices)
    assert_snapshot(f"empty_{count}", caught.value.render().replace(str(tmp_path), "DATA"))
    allowed = snapshot_files(source(tmp_path, empty="allow"), 4, plan_slices)
    assert allowed is not None
    assert allowed.slices == []


@pytest.mark.parametrize(
    ("table", "chunks", "names"),
    [
        ("lineitem", 3, ["lineitem.tbl.1", "lineitem.tbl.2", "lineitem.tbl.3"]),
        ("orders", 1, ["orders.tbl"]),
        ("nation", 8, ["nation.tbl"]),
        ("region", 8, ["region.tbl"]),
    ],
)
def test_generated(table: str, chunks: int, names: list[str]) -> None:
    snapshot = snapshot_generated(GenerateSource("rows", "tpch", table, 0.1, chunks, LAYOUT))
    core = snapshot.to_core()
    assert snapshot.notes == ["the generator keeps 300 MB of text in memory, beside the budget of the run"]
    assert [file["path"] for file in core["files"]] == names
    assert core["generate"] == {"table": table, "scale": 0.1, "chunks": len(names)}
    assert [(item["number"], item["file"]) for item in core["slices"]] == [
        (number + 1, number) for number in range(len(names))
    ]
