"""Long loops leave nothing behind in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = """\
headrace: 1
package: long
parameters: {n: {type: integer, required: true}}
variables: {i: {type: integer, value: 0}, total: {type: integer, value: 0}}
tasks:
  loop:
    for:
      while: "i < n"
      step: {i: "i + 1"}
      tasks:
        add: {set: {total: "total + i"}}
        never: {after: add, when: "total < 0", set: {total: 0}}
"""
MAXIMUM_GROWTH_BYTES = 8_000_000


@pytest.mark.rotates
def test_turns_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "package.yaml").write_text(PACKAGE, encoding="utf-8")
    few, many = (peak(tmp_path, turns) for turns in (200, 3_000))
    assert many - few < MAXIMUM_GROWTH_BYTES


def peak(folder: Path, turns: int) -> int:
    """Largest resident memory of a run, bytes."""
    command = [sys.executable, "-m", "headrace", "run", "package.yaml", "--set", f"n={turns}", "--json", "--quiet"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    summary = json.loads(ended.stdout)
    (loop, add, never) = (next(task for task in summary["tasks"] if task["task"] == name) for name in NAMES)
    assert (loop["success"], add["success"], never["skipped"]) == (1, turns, turns)
    return int(summary["peak_resident_bytes"])


NAMES = ("loop", "loop.add", "loop.never")
