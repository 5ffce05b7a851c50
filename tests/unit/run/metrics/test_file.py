"""Lines of metrics.jsonl: whole, without secrets, given up when there is no room, never in another's way."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.run.metrics import MetricsFile
from headrace.run.redact import Redactor
from tests.unit.run.metrics.lines import FLOW

CANARY = "c4n4ry-S3cret-pw"


class Written:
    """A file, its notices, and its lines."""

    def __init__(self, path: Path, *secrets: str, is_ours: bool = True) -> None:
        self.path = path
        self.notices: list[str] = []
        self.is_ours = is_ours
        self.file = MetricsFile(path, Redactor(set(secrets)), self.notices.append, lambda: self.is_ours)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]


def test_lines(tmp_path: Path) -> None:
    written = Written(tmp_path / "metrics.jsonl")
    for number in range(3):
        written.file.append({"kind": "machine", "t": number, "name": "é\n\udcff"})
    written.file.close()
    written.file.append({"kind": "late"})
    assert [line["t"] for line in written.lines()] == [0, 1, 2]
    assert written.lines()[0]["name"] == "é\n\udcff"
    assert written.notices == []


@pytest.mark.parametrize(
    "secret",
    [CANARY, 'quote"d', "back\\slash", "two\nlines", "tab\there", "ü", "7", "postgres"],
    ids=["plain", "quote", "backslash", "line end", "tab", "no ASCII", "digit", "word of a line"],
)
def test_secrets(tmp_path: Path, secret: str) -> None:
    """In texts of users and servers they are hidden; numbers and words of Headrace stay what they are."""
    written = Written(tmp_path / "metrics.jsonl", secret)
    document: Mapping[str, Any] = {
        "kind": "destination",
        "type": "postgres",
        "task": f"load {secret}",
        "denied": [f"a message with {secret} inside", "postgresql://loader:hidden@host/base"],
        "samples": 17,
        "sessions": [{"process_id": 7, "found": {"client": 7}}],
    }
    written.file.append(document)
    [line] = written.lines()
    assert line["task"] == "load ***"
    assert secret not in "".join(line["denied"])
    assert "hidden" not in line["denied"][1]
    assert {name: line[name] for name in ("kind", "type", "samples", "sessions")} == {
        name: document[name] for name in ("kind", "type", "samples", "sessions")
    }


def test_secrets_that_are_found_while_the_run_goes_on(tmp_path: Path) -> None:
    secrets: set[str] = set()
    notices: list[str] = []
    file = MetricsFile(tmp_path / "metrics.jsonl", Redactor(secrets), notices.append)
    file.append({"task": CANARY})
    secrets.add(CANARY)
    file.append({"task": CANARY})
    first, second = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert (CANARY in first, CANARY in second) == (True, False)


def test_the_file_is_given_up_once() -> None:
    """On a device that is always full."""
    written = Written(Path("/dev/full"))
    for _ in range(3):
        written.file.append({"kind": "machine"})
    assert written.notices == ["what the run measures is not written to /dev/full (any more): No space left on device"]


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    written = Written(tmp_path / "nowhere" / "metrics.jsonl")
    written.file.append({"kind": "machine"})
    written.file.close()
    assert len(written.notices) == 1
    assert written.notices[0].endswith("No such file or directory")


def test_a_line_that_was_cut_off_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    """Its process was killed; the run was resumed."""
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind":"machine","t":1}\n{"kind":"mach')
    written = Written(path)
    written.file.append({"kind": "machine", "t": 2})
    assert path.read_text() == '{"kind":"machine","t":1}\n{"kind":"mach\n{"kind":"machine","t":2}\n'
    assert Written(path).notices == []
    assert path.read_text().count("\n") == 3


def test_a_run_that_another_process_has_resumed(tmp_path: Path) -> None:
    written = Written(tmp_path / "metrics.jsonl")
    written.file.append({"t": 1})
    written.is_ours = False
    written.file.append({"t": 2})
    assert [line["t"] for line in written.lines()] == [1]


def test_numbers_that_are_none(tmp_path: Path) -> None:
    written = Written(tmp_path / "metrics.jsonl")
    with pytest.raises(ValueError, match="not JSON compliant"):
        written.file.append({"t": float("nan")})
    assert written.lines() == []


def test_lines_of_many_threads(tmp_path: Path) -> None:
    written = Written(tmp_path / "metrics.jsonl")

    def append() -> None:
        for number in range(50):
            written.file.append({**FLOW, "t": number})

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line["t"] for line in written.lines()) == sorted(list(range(50)) * 4)
