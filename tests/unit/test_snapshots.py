"""Snapshots: topics hold any text exactly, a difference is proposed, and what was proposed is accepted."""

from __future__ import annotations

import ast
import multiprocessing
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import accept_snapshots, snapshots
from tests.snapshots import ROOT, Change, Snapshot, proposed, read_topic, topic_of

NAMES = st.text("ab_/. #äß日", min_size=1).filter(lambda name: name == name.strip())
# Lines that are almost those between two snapshots are frequent.
LINES = st.one_of(st.text(), st.sampled_from(["", " ", "########", " ######## a", "#### a", "\r", "ä\u2028b"]))
TEXTS = st.lists(LINES).map(lambda lines: "\n".join(lines)).filter(lambda text: not re.search("^######## ", text, re.M))


@pytest.fixture(autouse=True)
def pending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test here proposes anything for the snapshots of the repository, also in a run that collects."""
    monkeypatch.setattr(snapshots, "PENDING", tmp_path / "pending")
    monkeypatch.setattr(snapshots, "ASKED", {})
    monkeypatch.delenv(snapshots.COLLECT_VARIABLE, raising=False)
    return tmp_path / "pending"


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    path = tmp_path / "snapshots" / "shapes.txt"
    for name in ("circle", "square"):
        Snapshot(path, name).store(f"a {name}\n")
    return path


def asked(snapshot: Snapshot, text: str) -> None:
    """What a test does."""
    snapshots._compare(snapshot, text)


def refused(snapshot: Snapshot, text: str) -> str:
    with pytest.raises(AssertionError) as caught:
        asked(snapshot, text)
    return str(caught.value)


def test_a_topic_can_be_read_from_top_to_bottom(topic: Path) -> None:
    Snapshot(topic, "oval").store("long\n\nand round\n")
    assert topic.read_text() == (
        "######## circle\na circle\n\n######## oval\nlong\n\nand round\n\n######## square\na square\n"
    )


@given(texts=st.dictionaries(NAMES, TEXTS))
def test_topics_hold_every_text_exactly(texts: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.unlink(missing_ok=True)
    wanted = {name: text.rstrip("\n") + "\n" for name, text in texts.items()}
    for name, text in wanted.items():
        snapshots._check_fit(name, text)
        Snapshot(path, name).store(text)
    assert read_topic(path) == wanted
    for name in texts:
        Snapshot(path, name).store(None)
    assert not path.exists()


def test_the_same_text_passes(topic: Path) -> None:
    """Whatever is at its end; what was proposed before is forgotten."""
    refused(Snapshot(topic, "circle"), "no circle")
    snapshots.ASKED.clear()
    for end in ("", "\n", "\n\n"):
        asked(Snapshot(topic, "circle"), "a circle" + end)
    assert list(proposed()) == []


def test_a_difference_is_shown_and_proposed(topic: Path) -> None:
    circle, oval = Snapshot(topic, "circle"), Snapshot(topic, "oval")
    message = refused(circle, "an oval")
    assert "circle in " in message and " differs:\n" in message
    assert "\n-a circle\n+an oval\n" in message and "`make snapshots`" in message
    assert " is missing:\n" in refused(oval, "an oval")
    assert list(proposed()) == [Change(circle, "a circle\n", "an oval\n"), Change(oval, None, "an oval\n")]
    assert read_topic(topic) == {"circle": "a circle\n", "square": "a square\n"}


def test_collecting_fails_no_test(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(snapshots.COLLECT_VARIABLE, "1")
    asked(Snapshot(topic, "circle"), "an oval")
    assert [change.text for change in proposed()] == ["an oval\n"]


def test_the_topic_is_that_of_the_calling_module() -> None:
    with pytest.raises(AssertionError, match=r"nowhere in tests/unit/snapshots/snapshots\.txt is missing"):
        snapshots.assert_snapshot("nowhere", "text")
    assert [change.snapshot.path for change in proposed()] == [topic_of(Path(__file__))]


def test_a_file_is_compared_as_a_whole(tmp_path: Path) -> None:
    picture = Snapshot(tmp_path / "picture.svg")
    assert " is missing:\n" in refused(picture, "<svg/>")
    assert accept_snapshots.main(["--accept"]) == 0
    assert picture.path.read_text() == "<svg/>\n"
    snapshots.assert_file(picture.path, "<svg/>")


@pytest.mark.parametrize("text", ["######## x", "a\n######## x\nb", "########  "])
def test_text_that_looks_like_a_topic_is_refused(topic: Path, text: str) -> None:
    with pytest.raises(ValueError, match="has a line like those between snapshots"):
        asked(Snapshot(topic, "circle"), text)


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb"])
def test_names_that_are_no_line_are_refused(topic: Path, name: str) -> None:
    with pytest.raises(ValueError, match="one line without blanks around it"):
        asked(Snapshot(topic, name), "text")


def test_two_texts_for_one_name_are_refused(topic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While changes are collected nothing else would tell."""
    monkeypatch.setenv(snapshots.COLLECT_VARIABLE, "1")
    asked(Snapshot(topic, "circle"), "one")
    assert "two texts for circle in " in refused(Snapshot(topic, "circle"), "other")


@pytest.mark.parametrize(
    "content",
    [
        "text before\n######## a\na\n",
        "######## b\nb\n\n######## a\na\n",
        "######## a\na\n\n######## a\na\n",
    ],
)
def test_topics_changed_by_hand_are_refused(topic: Path, content: str) -> None:
    """Also what merges may leave: names twice, or in another order."""
    topic.write_text(content)
    with pytest.raises(ValueError, match="is no topic as `make snapshots` writes it"):
        read_topic(topic)


def _propose_many(path: Path, pending: Path, process: int) -> None:
    snapshots.PENDING = pending
    for number in range(40):
        Change(Snapshot(path, f"own {process} {number}"), None, f"{process}\n").propose()
        Change(Snapshot(path, "of all"), None, f"{process}\n" * 1000).propose()


def test_processes_propose_at_the_same_time(topic: Path, pending: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_propose_many, args=(topic, pending, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    changes = {change.snapshot.name: change.text for change in proposed()}
    assert len(changes) == 3 * 40 + 1
    assert changes["of all"] in {f"{number}\n" * 1000 for number in range(3)}
    assert {path.suffix for path in pending.iterdir()} == {".json"}


def test_accepting_changes_topics(topic: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else in them; a topic without snapshots is removed."""
    other = Snapshot(tmp_path / "others.txt", "last")
    other.store("text\n")
    for change in (
        Change(Snapshot(topic, "circle"), "a circle\n", "round\n"),
        Change(Snapshot(topic, "oval"), None, "long\n"),
        Change(other, "text\n", None),
    ):
        change.propose()
    assert accept_snapshots.main([]) == 1  # nobody is asked without a terminal
    assert read_topic(topic) == {"circle": "a circle\n", "square": "a square\n"}
    assert "changes not accepted: 3" in capsys.readouterr().out
    assert accept_snapshots.main(["--accept"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^==== .*/(.*)", printed, re.M) == ["others.txt", "shapes.txt"]
    assert re.findall(r"^\w+ \(.*", printed, re.M) == [
        "last (removed, because no test asks for it)",
        "circle (changed)",
        "oval (new)",
    ]
    assert "\n-a circle\n+round\n" in printed and "\n+long\n" in printed and "\n-text\n" in printed
    assert read_topic(topic) == {"circle": "round\n", "oval": "long\n", "square": "a square\n"}
    assert not other.path.exists()
    assert accept_snapshots.main([]) == 0
    assert capsys.readouterr().out == "no changes of snapshots\n"


@pytest.mark.parametrize(
    ("answer", "code", "text"), [("y", 0, "round\n"), ("", 1, "a circle\n"), ("n", 1, "a circle\n")]
)
def test_on_a_terminal_there_is_a_question(
    topic: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, text: str
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: answer)
    Change(Snapshot(topic, "circle"), "a circle\n", "round\n").propose()
    assert accept_snapshots.main([]) == code
    assert read_topic(topic)["circle"] == text


def test_outdated_changes_are_left_out(topic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of snapshots that somebody has changed since their test ran, or changed just so."""
    Change(Snapshot(topic, "circle"), "a ring\n", "round\n").propose()
    Change(Snapshot(topic, "square"), None, "a square\n").propose()
    assert accept_snapshots.main(["--accept"]) == 0
    printed = capsys.readouterr().out
    assert "left out: circle in " in printed and "square" not in printed
    assert list(proposed()) == []
    assert read_topic(topic) == {"circle": "a circle\n", "square": "a square\n"}


def test_stored_snapshots_have_a_test() -> None:
    """Topics are as they are written, and in each module something could ask for each name."""
    for path in sorted((ROOT / "tests").glob("**/snapshots/*")):
        if path.suffix != ".txt":
            modules = [module.read_text(encoding="utf-8") for module in path.parents[1].glob("test_*.py")]
            assert any(f'"{path.name}"' in text for text in modules), f"remove {path}: no test names it"
            continue
        module = path.parents[1] / f"test_{path.stem}.py"
        assert module.exists(), f"remove or rename {path}: there is no {module.name}"
        patterns = [re.compile(pattern, re.DOTALL) for pattern in _patterns(module)]
        for name in read_topic(path):
            assert any(pattern.fullmatch(name) for pattern in patterns), f"{module} does not ask for {name}"


def _patterns(module: Path) -> list[str]:
    """Patterns for all names of snapshots that a module could ask for."""
    found = []
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "assert_snapshot":
            name = node.args[0]
            parts = name.values if isinstance(name, ast.JoinedStr) else [name]
            found.append("".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in parts))
    return found
