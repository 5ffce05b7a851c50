"""The rows of a file of repaired rejects, as the core finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace import core
from headrace.errors import CancelledError, SourceError
from headrace.model import Layout

LAYOUT = Layout.model_validate(
    {
        "delimiter": ";",
        "qualifier": '"',
        "header": "skip",
        "skip_lines": 2,
        "comment": "#",
        "columns": [{"name": "id", "type": "int32"}, {"name": "note", "type": "string"}],
    }
).to_core(set())


def found(path: Path, content: bytes, row_ends: list[Any], groups: list[tuple[int, int | None]]) -> dict[str, Any]:
    path.write_bytes(content)
    files = [{"path": "gone", "row_end": row_end} for row_end in row_ends]
    spec = {
        "path": str(path),
        "layouts": [LAYOUT],
        "files": files,
        "groups": [{"file": file, "rows": rows} for file, rows in groups],
    }
    return core.replay_rows(spec)


def ranges(replay: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [(item["begin_byte"], item["end_byte"], item["first_row"]) for item in replay["slices"]]


def test_rows_are_those_of_the_layout(tmp_path: Path) -> None:
    """Nothing is skipped as header or first lines; blank rows and comments are told."""
    content = b'\xef\xbb\xbf1;"x\ny"\r\n\n#2;a long comment\n3;last'
    replay = found(tmp_path / "rows", content, ["only_crlf"], [(0, None)])
    assert (replay["rows"], replay["blank"], ranges(replay)) == (4, [[2, 3]], [(3, len(content), 0)])
    assert replay["files"][0]["row_end"] == "either"


def test_groups_have_their_own_row_ends(tmp_path: Path) -> None:
    replay = found(tmp_path / "rows", b"1;a\nb|\n2;c\n\n", [{"exactly": "|\n"}, "only_lf"], [(0, 1), (1, None)])
    assert (replay["rows"], replay["blank"], ranges(replay)) == (3, [[3, 3]], [(0, 7, 0), (7, 12, 1)])
    few = found(tmp_path / "rows", b"1;a\n", ["either"], [(0, 3), (0, None)])
    assert (few["rows"], ranges(few)) == (1, [(0, 4, 0)])
    assert found(tmp_path / "rows", b"", ["either"], [(0, None)])["slices"] == []


def test_rows_longer_than_windows(tmp_path: Path) -> None:
    long = b"x" * 600_000
    replay = found(tmp_path / "rows", b'1;"' + long + b'\n"\n2;b\n\n', ["either"], [(0, 1), (0, None)])
    assert (replay["rows"], replay["blank"]) == (3, [[3, 3]])
    assert replay["slices"][0]["end_byte"] == len(long) + 6


def test_what_cannot_be_read(tmp_path: Path) -> None:
    spec: dict[str, object] = {"path": str(tmp_path / "none"), "layouts": [LAYOUT], "files": [], "groups": []}
    with pytest.raises(SourceError):
        core.replay_rows(spec)
    (tmp_path / "none").write_bytes(b"1;a\n")
    spec |= {"files": [{"path": "gone"}], "groups": [{"file": 0, "rows": None}]}
    with pytest.raises(CancelledError):
        core.replay_rows(spec, lambda: True)
