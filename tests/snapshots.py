"""Compare text with a file beside the test: `snapshots/<name>.txt` in the folder of the calling test file.

A missing snapshot is a failure. `HEADRACE_UPDATE_SNAPSHOTS=1` writes the snapshots instead of comparing; look at
the difference before committing it.
"""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path

UPDATE_VARIABLE = "HEADRACE_UPDATE_SNAPSHOTS"


def assert_snapshot(name: str, text: str) -> None:
    """Fail unless `text` equals the stored snapshot; the final newline does not count."""
    caller = Path(sys._getframe(1).f_code.co_filename)
    compare_snapshot(caller.parent / "snapshots" / f"{name}.txt", text)


def compare_snapshot(path: Path, text: str) -> None:
    """As `assert_snapshot`, for a snapshot at any path."""
    text = text.rstrip("\n") + "\n"
    if os.environ.get(UPDATE_VARIABLE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    if not path.exists():
        raise AssertionError(f"no snapshot {path.name}; set {UPDATE_VARIABLE}=1 to write it. Text:\n{text}")
    stored = path.read_text(encoding="utf-8")
    if stored != text:
        difference = "".join(difflib.unified_diff(stored.splitlines(True), text.splitlines(True), "stored", "now"))
        raise AssertionError(f"snapshot {path.name} differs:\n{difference}")
