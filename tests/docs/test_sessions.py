"""Pages that show a session: their commands are run in order, and what they print is what the page shows.

Run ids, times and speeds may differ. A line `...` on the page stands for any lines.
Where a page differs, `make snapshots` writes what is printed into it; cut long outputs again.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.filters import stable
from tests.docs.documents import ROOT, Block, blocks
from tests.snapshots import assert_file

SESSIONS = [
    Path("README.md"),
    Path("docs/how-to/build-a-fact-table.md"),
    Path("docs/how-to/bring-rows-together.md"),
    Path("docs/how-to/aggregate-rows.md"),
    Path("docs/how-to/derive-columns.md"),
    Path("docs/how-to/fill-several-tables.md"),
    Path("docs/how-to/join-files.md"),
    Path("docs/how-to/look-rows-up.md"),
    Path("docs/how-to/union-sources.md"),
    Path("docs/tutorial/unknown-files.md"),
    Path("docs/tutorial/nightly-package.md"),
]
# What builds the program is no part of a session.
_SET_UP = ("make ", ".venv/bin/headrace ")
# How long a phase takes decides where its line breaks.
_PHASES = re.compile(r"^  plan TIME.*(\n    .*)*", re.MULTILINE)
_MINUTE = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_ANYTHING = "..."


class Session:
    """A shell in a folder that has the examples, as a clone has."""

    def __init__(self, folder: Path) -> None:
        programs = folder / "bin"
        programs.mkdir()
        for name, arguments in (("headrace", [sys.executable, "-m", "headrace"]), ("python", [sys.executable])):
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(arguments)} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        self.folder = folder / "clone"
        self.folder.mkdir()
        (self.folder / "examples").symlink_to(ROOT / "examples")
        self._place = folder / "place"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "COLUMNS": "80",
            "NO_COLOR": "1",
            # So that the order of lines is that of a terminal.
            "PYTHONUNBUFFERED": "1",
            "LC_ALL": "C.UTF-8",
        }

    def run(self, command: str) -> tuple[int, str]:
        """The exit code, and what a terminal shows."""
        script = f"{command}\ncode=$?\npwd > {shlex.quote(str(self._place))}\nexit $code"
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.folder = Path(self._place.read_text(encoding="utf-8").strip())
        return ended.returncode, ended.stdout.decode()

    def write(self, block: Block) -> None:
        """Make a file."""
        assert block.file is not None
        path = self.folder / block.file
        path.parent.mkdir(exist_ok=True)
        path.write_text(block.text, encoding=block.encoding)

    def edit(self, block: Block) -> None:
        """Replace the lines of a difference: each must be there once."""
        assert block.edit is not None
        path = self.folder / block.edit
        text = path.read_bytes().decode(block.encoding)
        for old, new in re.findall(r"^-(.*)\n\+(.*)$", block.text, re.MULTILINE):
            pattern = re.compile(rf"^{re.escape(old)}(?=\r?$)", re.MULTILINE)
            assert len(pattern.findall(text)) == 1, f"{block.edit} has not one line {old!r}:\n{text}"
            text = pattern.sub(new.replace("\\", "\\\\"), text)
        path.write_bytes(text.encode(block.encoding))


def shown(block: Block) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that the page shows."""
    parts: list[tuple[str, str]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            parts.append((line[2:], ""))
        else:
            parts[-1] = (parts[-1][0], f"{parts[-1][1]}{line}\n")
    return parts


def comparable(text: str, folder: Path) -> str:
    """Without what differs from run to run."""
    lines = [line.rstrip() for line in stable(text, folder).splitlines()]
    return _MINUTE.sub("MINUTE", _PHASES.sub("  plan TIMES", "\n".join(lines)))


def is_as_shown(expected: str, printed: str, folder: Path) -> bool:
    """Whether the page tells what was printed; it may leave out lines."""
    lines = comparable(expected, folder).splitlines()
    pattern = "".join(r"(?:.*\n)*" if line == _ANYTHING else re.escape(f"{line}\n") for line in lines)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in comparable(printed, folder).splitlines())) is not None


@pytest.mark.parametrize("page", SESSIONS, ids=str)
def test_a_session_is_as_the_page_shows_it(page: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    printed: dict[int, str] = {}
    for block in blocks(page):
        if block.edit is not None:
            session.edit(block)
        if block.file is not None:
            session.write(block)
        if block.language != "console" or block.text.removeprefix("$ ").startswith(_SET_UP):
            continue
        outputs = []
        for command, expected in shown(block):
            code, output = session.run(command)
            assert code == block.exit_code, f"{command} ended with {code}:\n{output}"
            is_right = is_as_shown(expected, output, session.folder)
            outputs.append((is_right, f"$ {command}\n{expected if is_right else output}"))
        if not all(is_right for is_right, _ in outputs):
            printed[block.line] = "".join(text for _, text in outputs)
    assert_file(ROOT / page, with_outputs(page, printed))


def with_outputs(page: Path, printed: dict[int, str]) -> str:
    """The page with other outputs: put in from its end on, so that lines above keep their numbers."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    for first, text in sorted(printed.items(), reverse=True):
        last = lines.index("```", first)
        lines[first:last] = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("expected", "printed", "is_same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc\n", "a\nb\nc\n", True),
        ("a\n...\nc\n", "a\nc\n", True),
        ("a\n...\nc\n", "a\nb\nd\n", False),
        ("...\n", "x\n", True),
        ("run 20261122-134100-ab12cd: 0.1 s\n", "run 20270101-000000-000000: 12.5 s\n", True),
        ("", "x\n", False),
    ],
)
def test_what_is_as_shown(expected: str, printed: str, is_same: bool, tmp_path: Path) -> None:
    assert is_as_shown(expected, printed, tmp_path) == is_same
