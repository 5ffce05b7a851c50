"""What a plan says of footers that are held back, and the memory it keeps for them."""

from __future__ import annotations

from typing import Any

from headrace.planning import SourceSnapshot
from headrace.sources.packed import source_notes


def test_footers_that_are_held_back_are_noted_and_counted() -> None:
    held = {"rows": 2, "text_bytes": 8 << 20, "memory_bytes": 9_000_000}
    files: list[dict[str, Any]] = [
        {"path": "/in/a.gz", "compression": "gzip", "decoder_bytes": 1_000_000, "held": held},
        {"path": "/in/b", "foot": {"bytes": 4, "lines": 1}},
    ]
    source = SourceSnapshot("rows", files, [{"file": 0}, {"file": 1}])
    assert source_notes(source, commits=False)[-1] == (
        "a.gz: the last 2 rows held back until the end is known, up to 8 MB"
    )
    assert source.decoding_bytes(2) == 10_000_000
    in_pieces = SourceSnapshot("rows", files[:1], [{"file": 0}, {"file": 0}, {"file": 0}])
    assert in_pieces.decoding_bytes(2) == 11_000_000, "only the last slice has the footer"
    assert source_notes(SourceSnapshot("rows", files[1:], [{"file": 0}]), commits=False) == []
