"""File tasks are done once, wherever the process was killed: every system call of a task is its last one, in turn."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import FileTaskError
from headrace.model.spec_leaves import FileTaskSpec
from headrace.run.leaves import file_placing
from headrace.run.leaves.file import FileLeaf
from tests.snapshots import assert_snapshot
from tests.unit.run.leaves.contexts import RUN_ID, Killed, Notes, Scene
from tests.unit.run.leaves.test_file import WAYS, tree

# What changes files, or makes changes durable.
CALLS = ("unlink", "symlink", "link", "replace", "open", "fsync", "rmdir", "mkdir")
TASKS: dict[str, dict[str, Any]] = {
    "move": {"move": "inbox/*.csv", "to": "done"},
    "move_over": {"move": "inbox/a.csv", "to": "old.csv", "overwrite": True},
    "copy": {"copy": "inbox/*.csv", "to": "done"},
    "copy_over": {"copy": "inbox/a.csv", "to": "old.csv", "overwrite": True},
    "delete": {"delete": ["inbox/*.csv", "inbox/empty"]},
    "archive": {"archive": "inbox/*.csv", "to": "archive"},
    "archive_by_gzip": {"archive": "inbox/*.csv", "to": "archive", "compression": "gzip"},
    "create": {"create": ["one/two", "three"]},
    "move_links": {"move": "inbox/link*", "to": "done"},
}


def file_task(**settings: Any) -> FileTaskSpec:
    """One text stands for a list of one."""
    return FileTaskSpec(**settings)


def prepare(folder: Path) -> Scene:
    scene = Scene(folder)
    scene.context()
    for name in ("inbox/a.csv", "inbox/b.csv", "old.csv", "archive/a.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (folder / "archive" / "a.csv.gz").write_bytes(gzip.compress(b"old", mtime=0))
    (folder / "inbox" / "empty").mkdir()
    (folder / "inbox" / "link1").symlink_to("a.csv")
    (folder / "inbox" / "link2").symlink_to("nothing")
    return scene


def contents(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.suffix == ".gz":
            found[name] = gzip.decompress(path.read_bytes()).decode()
        else:
            found[name] = path.read_text() if path.is_file() else ""
    return found


@contextmanager
def killed_at(number: int, patch: pytest.MonkeyPatch, *, behind: bool) -> Iterator[list[int]]:
    """The `number`th call is the last one: it is not done, or done but never returns. Nor is any call behind it."""
    count = [0]

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            count[0] += 1
            if count[0] == number and behind:
                original(*arguments, **options)
            if count[0] >= number:
                raise Killed
            return original(*arguments, **options)

        return call

    with patch.context() as inner:
        for name in CALLS:
            inner.setattr(os, name, wrapped(getattr(os, name)))
        rename = file_placing._system_call()
        if rename is not None:
            call = wrapped(rename)
            inner.setattr(file_placing, "_system_call", lambda: call)
        yield count


@pytest.mark.faults
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", TASKS)
def test_killed_anywhere_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, way: str) -> None:
    settings = file_task(**TASKS[task])
    WAYS[way](monkeypatch)
    (tmp_path / "undisturbed").mkdir()
    undisturbed = prepare(tmp_path / "undisturbed")
    FileLeaf().run(settings, undisturbed.context())
    expected = contents(undisturbed.folder)
    for behind in (False, True):
        for number in range(1, 200):
            folder = tmp_path / f"{behind}-{number}"
            folder.mkdir()
            scene = prepare(folder)
            context = scene.context()
            with killed_at(number, monkeypatch, behind=behind) as count, suppress(Killed):
                FileLeaf().run(settings, context)
            scene.notes = Notes([json.loads(json.dumps(note)) for note in scene.notes.made])
            # Files that have come since are none of its business.
            if scene.notes.before:
                (folder / "inbox" / "late.csv").write_text("late")
            FileLeaf().run(settings, scene.context(is_resumed=True))
            (folder / "inbox" / "late.csv").unlink(missing_ok=True)
            assert contents(folder) == expected
            if count[0] < number:
                break
        assert number > 1


@pytest.mark.parametrize("stop_behind", [1, 2, 3])
def test_killed_at_a_note(tmp_path: Path, stop_behind: int) -> None:
    scene = prepare(tmp_path)
    scene.notes.stop_behind = stop_behind
    settings = file_task(archive="inbox/*.csv", to="archive", compression="gzip")
    with pytest.raises(Killed):
        FileLeaf().run(settings, scene.context())
    scene.notes = scene.notes.next_attempt()
    FileLeaf().run(settings, scene.context(is_resumed=True))
    found = contents(tmp_path / "archive")
    assert found == {
        "a.csv": "archive/a.csv",
        "a.csv.gz": "old",
        f"a.{RUN_ID}.csv.gz": "inbox/a.csv",
        "b.csv.gz": "inbox/b.csv",
    }


def resumed(scene: Scene, settings: FileTaskSpec, change: Callable[[], object]) -> None:
    """An attempt that is killed when it has written down what it is about to do; then `change`, then another one."""
    scene.notes.stop_behind = 1
    with pytest.raises(Killed):
        FileLeaf().run(settings, scene.context())
    change()
    scene.notes = scene.notes.next_attempt()
    FileLeaf().run(settings, scene.context(is_resumed=True))


def replaced(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, ns=(1, 1))


def test_a_new_file_of_the_name_is_not_deleted(tmp_path: Path) -> None:
    scene = prepare(tmp_path)
    resumed(scene, file_task(delete="inbox/*.csv"), lambda: replaced(tmp_path / "inbox" / "a.csv", "new"))
    assert (tmp_path / "inbox" / "a.csv").read_text() == "new" and not (tmp_path / "inbox" / "b.csv").exists()
    assert scene.warnings == [f"{tmp_path}/inbox/a.csv is kept: it is not the file any more that was to be deleted"]


@pytest.mark.parametrize("name", ["gone", "changed", "taken"])
def test_what_has_changed_since_is_said(tmp_path: Path, name: str) -> None:
    scene = prepare(tmp_path)
    file = tmp_path / "inbox" / "a.csv"
    changes: dict[str, Callable[[], object]] = {
        "gone": file.unlink,
        "changed": lambda: replaced(file, "other text"),
        "taken": (tmp_path / "done" / "a.csv").touch,
    }
    with pytest.raises(FileTaskError) as caught:
        resumed(scene, file_task(move="inbox/*.csv", to="done"), changes[name])
    assert_snapshot(f"file_resumed_{name}", scene.shown(caught.value))


def test_secrets_do_not_stand_in_notes(tmp_path: Path) -> None:
    folder = tmp_path / "hunter22"
    folder.mkdir()
    scene = prepare(folder)
    scene.secrets = frozenset({"hunter22", "unused99", "hunter"})
    settings = file_task(move=f"{folder}/inbox/*.csv", to=f"{folder}/hunter22-done")
    scene.notes.stop_behind = 1
    with pytest.raises(Killed):
        FileLeaf().run(settings, scene.context())
    text = json.dumps(list(scene.notes.made))
    assert "hunter" not in text
    scene.notes = Notes(json.loads(text))
    FileLeaf().run(settings, scene.context(is_resumed=True))
    assert sorted(tree(folder / "hunter22-done")) == ["a.csv", "b.csv"]


def test_other_secrets_than_before(tmp_path: Path) -> None:
    scene = prepare(tmp_path)
    settings = file_task(move="inbox/*.csv", to="done")
    scene.notes.stop_behind = 1
    with pytest.raises(Killed):
        FileLeaf().run(settings, scene.context())
    scene.notes = scene.notes.next_attempt()
    scene.secrets = frozenset({"inbox"})
    with pytest.raises(FileTaskError) as caught:
        FileLeaf().run(settings, scene.context(is_resumed=True))
    assert_snapshot("file_resumed_other_secrets", scene.shown(caught.value))


def test_onto_another_disk(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system")
    scene = prepare(tmp_path)
    place = memory / f"headrace-test-{os.getpid()}"
    try:
        FileLeaf().run(file_task(move=["inbox/*.csv", "inbox/link1"], to=f"{place}/"), scene.context())
        assert tree(place) == {"a.csv": "inbox/a.csv", "b.csv": "inbox/b.csv", "link1": "-> a.csv"}
        assert not list((tmp_path / "inbox").glob("*.csv"))
    finally:
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
