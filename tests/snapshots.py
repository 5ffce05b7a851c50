"""Compare text with what is stored for it.

`assert_snapshot("infer_two_kinds", text)` in `tests/cli/test_infer.py` compares with the text `infer_two_kinds` in
`tests/cli/snapshots/infer.txt`. Each test module has one such file, its topic, in which all its texts can be read from
top to bottom. `assert_file` compares with a whole file. It is for what somebody opens as a file: pictures, JSON
schemas, pages of the documentation.

A difference fails the test and is proposed as a change in `target/snapshots`. `make snapshots` shows the proposed
changes and accepts them (`tests/accept_snapshots.py`); `tests/stale_snapshots.py` proposes to remove texts that no
test asks for.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
# One file per change: processes of one test run write into this folder at the same time.
PENDING = ROOT / "target" / "snapshots"
# With this variable set to 1 differences are proposed and fail no test. Only `make snapshots` sets it.
COLLECT_VARIABLE = "HEADRACE_COLLECT_SNAPSHOTS"
# What has been asked for in this process, with the last text.
ASKED: dict[Snapshot, str] = {}
# A line that begins so begins the next text of a topic, and its name follows.
_HEADER = "######## "
_HEADER_LINE = re.compile(rf"^{_HEADER}(.*)\n", re.MULTILINE)


def assert_snapshot(name: str, text: str) -> None:
    """Fail unless `text` is what the topic of the calling module has under `name`; final newlines do not count."""
    __tracebackhide__ = True
    _compare(Snapshot(topic_of(Path(sys._getframe(1).f_code.co_filename)), name), text)


def assert_file(path: Path, text: str) -> None:
    """Fail unless `text` is the content of the file; final newlines do not count."""
    __tracebackhide__ = True
    _compare(Snapshot(path), text)


def topic_of(module: Path) -> Path:
    """The file with the snapshots of a test module."""
    return module.parent / "snapshots" / f"{module.stem.removeprefix('test_')}.txt"


@dataclass(frozen=True)
class Snapshot:
    """The place of a stored text: `name` in a topic, or the whole file at `path` if there is no name."""

    path: Path
    name: str | None = None

    def __str__(self) -> str:
        return shown_path(self.path) if self.name is None else f"{self.name} in {shown_path(self.path)}"

    def stored(self) -> str | None:
        """None if there is no such text."""
        if self.name is not None:
            return read_topic(self.path).get(self.name)
        return _read(self.path) if self.path.exists() else None

    def store(self, text: str | None) -> None:
        """Replace the stored text; None removes it, and its topic if it was the last one there."""
        if self.name is not None:
            texts = read_topic(self.path)
            texts.pop(self.name, None)
            text = topic_text(texts if text is None else {**texts, self.name: text}) or None
        if text is None:
            self.path.unlink(missing_ok=True)
        else:
            _write(self.path, text)


@dataclass(frozen=True)
class Change:
    """What `text` a test run found where `before` was stored. None: no text was stored, or no test asks for it."""

    snapshot: Snapshot
    before: str | None
    text: str | None

    def kind(self) -> str:
        if self.text is None:
            return "removed, because no test asks for it"
        return "new" if self.before is None else "changed"

    def difference(self) -> str:
        """A unified diff."""
        before, now = (_ended(text)[:-1].split("\n") if text is not None else [] for text in (self.before, self.text))
        return "\n".join(difflib.unified_diff(before, now, "stored", "now", lineterm=""))

    def propose(self) -> None:
        """Keep the change for `make snapshots`."""
        content = [str(self.snapshot.path), self.snapshot.name, self.before, self.text]
        _write(_pending(self.snapshot), json.dumps(content))


def proposed() -> Iterator[Change]:
    """The changes that tests have proposed, sorted by file and name."""
    contents = [json.loads(_read(path)) for path in PENDING.glob("*.json")]
    for path, name, before, text in sorted(contents, key=lambda content: (content[0], content[1] or "")):
        yield Change(Snapshot(Path(path), name), before, text)


def withdraw(snapshot: Snapshot) -> None:
    """Forget the proposed change of a snapshot, if there is one."""
    _pending(snapshot).unlink(missing_ok=True)


def read_topic(path: Path) -> dict[str, str]:
    """The texts of a topic by name. Raises ValueError for a file that `topic_text` cannot have made."""
    if not path.exists():
        return {}
    content = _read(path)
    before, *parts = _HEADER_LINE.split(content + "\n")
    texts = {name: text.removesuffix("\n") for name, text in zip(parts[::2], parts[1::2], strict=True)}
    if before or topic_text(texts) != content:
        raise ValueError(f"{shown_path(path)} is no topic as `make snapshots` writes it: restore it and accept again")
    return texts


def topic_text(texts: Mapping[str, str]) -> str:
    """The content of a topic: each text below a line with its name, an empty line between two of them."""
    return "\n".join(f"{_HEADER}{name}\n{text}" for name, text in sorted(texts.items()))


def is_collecting() -> bool:
    """Whether this is a test run of `make snapshots`."""
    return os.environ.get(COLLECT_VARIABLE) == "1"


def shown_path(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _compare(snapshot: Snapshot, text: str) -> None:
    __tracebackhide__ = True  # pytest shows the call in the test, not this function
    text = _ended(text)
    if snapshot.name is not None:
        _check_fit(snapshot.name, text)
    change = Change(snapshot, snapshot.stored(), text)
    if ASKED.setdefault(snapshot, text) != text:
        raise AssertionError(f"two texts for {snapshot} in one test run: each needs a name of its own\n{text}")
    if change.before is not None and _ended(change.before) == text:
        withdraw(snapshot)
        return
    change.propose()
    if not is_collecting():
        what = "is missing" if change.before is None else "differs"
        raise AssertionError(
            f"{snapshot} {what}:\n{change.difference()}\n\nhint: `make snapshots` shows all changes and accepts them."
        )


def _ended(text: str) -> str:
    """With one newline at its end."""
    return text.rstrip("\n") + "\n"


def _check_fit(name: str, text: str) -> None:
    """Raises ValueError for what could not be read from a topic again."""
    if not re.fullmatch(r"\S(.*\S)?", name):
        raise ValueError(f"the name of a snapshot is one line without blanks around it: {name!r}")
    if header := _HEADER_LINE.search(text):
        raise ValueError(f"snapshot {name} has a line like those between snapshots: {header[0]!r}")


def _pending(snapshot: Snapshot) -> Path:
    return PENDING / f"{sha256(repr((str(snapshot.path), snapshot.name)).encode()).hexdigest()[:32]}.json"


def _read(path: Path) -> str:
    """Without `read_text`, which replaces carriage returns."""
    return path.read_bytes().decode("utf-8")


def _write(path: Path, text: str) -> None:
    """At once, so that no other process reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(text.encode("utf-8"))
    partial.replace(path)
