"""Each sentence of the threat model names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "threat-model.md"
_TEST = re.compile(r"`((?:tests|crates|fuzz)/[^`]+)`")
_DEFINED = {".py": "def {}(", ".rs": "fn {}("}


def claims() -> list[tuple[str, list[str]]]:
    """The sentences of the page and the tests behind each."""
    items = re.findall(r"^- (.*(?:\n  .*)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [(" ".join(_TEST.sub("", item).split()), _TEST.findall(item)) for item in items]


@pytest.mark.parametrize(("sentence", "tests"), claims())
def test_a_claim(sentence: str, tests: list[str]) -> None:
    assert tests, sentence
    assert sentence.endswith("."), "one sentence"
    assert not re.search(r"[.!?] [A-Z]", sentence), "one sentence"
    for test in tests:
        file, _, name = test.partition("::")
        path = ROOT / file
        assert path.is_file(), test
        if name:
            assert _DEFINED[path.suffix].format(name) in path.read_text(encoding="utf-8"), test


def test_nothing_is_said_elsewhere() -> None:
    """Between the sentences there are headings, and for each one who is meant."""
    text = PAGE.read_text(encoding="utf-8")
    rest = re.sub(r"^- .*(?:\n  .*)*", "", text, flags=re.MULTILINE)
    parts = re.split(r"^#+ .*$", rest, flags=re.MULTILINE)
    assert all(len(part.strip().split("\n\n")) <= 1 for part in parts)
    assert len(claims()) > 30


def test_the_page_is_in_the_index() -> None:
    assert "(docs/explanation/threat-model.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
