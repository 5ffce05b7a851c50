"""Values that are put into the paths of file tasks do not lead out of the folder that is written in the package."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import FileTaskError
from headrace.model.spec_leaves import FileTaskSpec
from headrace.run.leaves import file_placing
from headrace.run.leaves.base import LeafResult
from headrace.run.leaves.file import FileLeaf
from tests.snapshots import assert_snapshot
from tests.unit.run.leaves.contexts import Scene
from tests.unit.run.leaves.test_file import tree

SETTINGS = ("copy", "move", "delete", "create", "archive", "to")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A folder with files and links, and one beside it that is nobody's business."""
    scene = Scene(tmp_path)
    scene.context()
    for folder in ("inbox/deep/down", "inbox/empty", "secret/empty"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("inbox/a.csv", "inbox/deep/b.csv", "inbox/deep/down/c.csv", "secret/s.csv", "s.csv"):
        (tmp_path / name).write_text(name)
    links = {
        "out": "../secret",
        "absolute_out": str(tmp_path / "secret"),
        "up": "..",
        "in": "deep",
        "absolute_in": str(tmp_path / "inbox" / "deep"),
        "round": "deep/../deep",
        "chain": "in/down",
        "here": ".",
        "deep/back": "..",
        "deep/far": "../../secret",
        "file_out": "../secret/s.csv",
        "file_in": "deep/b.csv",
        "endless": "endless",
    }
    for name, target in links.items():
        (tmp_path / "inbox" / name).symlink_to(target)
    return scene


def run(scene: Scene, written: dict[str, Any], **values: Any) -> LeafResult:
    """A task with settings as they are `written`, some of which have become `values`."""
    context = scene.context()
    own = {"connection": "inbox", **written}
    context = replace(context, task=replace(context.task, kind="file", raw={"file": own}))
    return FileLeaf().run(FileTaskSpec(**{**own, **values}), context)


def beside(scene: Scene) -> dict[str, str]:
    """What is outside of the inbox."""
    return {name: text for name, text in tree(scene.folder).items() if not name.startswith("inbox")}


def task_of(setting: str, value: str, written: str = "${name}") -> tuple[dict[str, Any], dict[str, Any]]:
    if setting == "to":
        return {"move": "a.csv", "to": written}, {"to": value}
    more = {} if setting in ("create", "delete") else {"to": "moved/"}
    return {setting: written, **more}, {setting: value}


OUTSIDE = (
    "../s.csv", "..", "deep/../../s.csv", "out/s.csv", "absolute_out/s.csv", "up/s.csv", "up/secret/s.csv",
    "deep/far/s.csv", "in/far/s.csv", "chain/../../../../s.csv", "deep/back/up/s.csv", "here/out/s.csv",
)  # fmt: skip


@pytest.mark.parametrize("value", OUTSIDE)
@pytest.mark.parametrize("setting", SETTINGS)
def test_nothing_leads_out(scene: Scene, setting: str, value: str) -> None:
    before = beside(scene)
    written, values = task_of(setting, value)
    with pytest.raises(FileTaskError, match="a value leads out of the folder"):
        run(scene, written, **values)
    assert beside(scene) == before


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_absolute_path(scene: Scene, setting: str) -> None:
    before = beside(scene)
    written, values = task_of(setting, str(scene.folder / "secret" / "s.csv"))
    with pytest.raises(FileTaskError, match="a value leads out of the folder"):
        run(scene, written, **values)
    assert beside(scene) == before


@pytest.mark.parametrize(
    "value",
    ["a.csv", "./a.csv", "deep/../a.csv", "deep/b.csv", "in/b.csv", "absolute_in/b.csv", "round/b.csv", "chain/c.csv",
     "here/deep/b.csv", "deep/back/a.csv", "deep/back/in/down/c.csv", "endless"],
)  # fmt: skip
@pytest.mark.parametrize("setting", ["move", "delete", "archive"])
def test_what_is_below_is_reached(scene: Scene, setting: str, value: str) -> None:
    source = scene.folder / "inbox" / os.path.normpath(value)
    assert os.path.lexists(source)
    written, values = task_of(setting, value)
    assert run(scene, written, **values).details["files"] == 1
    assert not os.path.lexists(source)


def test_what_is_copied_is_the_file_that_a_link_below_leads_to(scene: Scene) -> None:
    run(scene, {"copy": "${name}", "to": "copied.csv"}, copy="file_in")
    assert (scene.folder / "inbox" / "copied.csv").read_text() == "inbox/deep/b.csv"
    with pytest.raises(FileTaskError) as caught:
        run(scene, {"copy": "${name}", "to": "stolen.csv"}, copy="file_out")
    assert not (scene.folder / "inbox" / "stolen.csv").exists()
    assert_snapshot("file_reach_link", scene.shown(caught.value))


def test_message(scene: Scene) -> None:
    with pytest.raises(FileTaskError) as caught:
        run(scene, {"delete": "deep/${name}"}, delete="deep/../../s.csv")
    assert_snapshot("file_reach_value", scene.shown(caught.value))


@pytest.mark.parametrize(
    ("written", "value", "is_allowed"),
    [
        ("deep/${name}", "deep/b.csv", True),
        ("deep/${name}", "deep/../a.csv", False),
        ("deep/${name}", "deep/down/../b.csv", True),
        ("deep/${day}/${name}", "deep/down/c.csv", True),
        ("deep/${day}/${name}", "deep/../a.csv", False),
        ("de${rest}", "deep/b.csv", True),
        ("deep/*${name}", "deep/*b.csv", True),
        ("${name}", "a.csv", True),
        ("../${name}", "../s.csv", True),
        ("../${name}", "../secret/s.csv", True),
        ("../secret/${name}", "../s.csv", False),
        ({"expr": "name"}, "a.csv", True),
        ({"expr": "name"}, "../s.csv", False),
        (["a.csv", "${name}"], ["a.csv", "deep/b.csv"], True),
        (["a.csv", "${name}"], ["a.csv", "../s.csv"], False),
        ("${names}", ["a.csv", "deep/b.csv"], True),
        ("${names}", ["a.csv", "../s.csv"], False),
    ],
)
def test_which_folder_is_written(scene: Scene, written: Any, value: Any, is_allowed: bool) -> None:
    if is_allowed:
        assert run(scene, {"delete": written}, delete=value).details["files"]
        return
    before = tree(scene.folder)
    with pytest.raises(FileTaskError, match="a value leads out of the folder"):
        run(scene, {"delete": written}, delete=value)
    assert tree(scene.folder) == before


@pytest.mark.parametrize("path", ["../s.csv", "out/s.csv", "up/s.csv"])
def test_what_is_written_is_meant(scene: Scene, path: str) -> None:
    """Without a value a path leads where its author has seen that it leads."""
    assert run(scene, {"delete": path}).details["files"] == 1


@pytest.mark.parametrize("path", ["../s.csv", "out/s.csv", "up/s.csv"])
def test_outside_may_be_allowed(scene: Scene, path: str) -> None:
    assert run(scene, {"delete": "${name}", "outside": True}, delete=path).details["files"] == 1


SWAPS: dict[str, Callable[..., Any]] = {"place": file_placing.place, "copy": file_placing.copy}


@pytest.mark.parametrize(
    ("operation", "step"), [("move", "place"), ("copy", "copy"), ("copy", "place"), ("archive", "place")]
)
@pytest.mark.parametrize("swapped", ["deep", "moved"])
def test_a_link_that_comes_between(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, operation: str, step: str, swapped: str
) -> None:
    """Whoever exchanges a folder for a link while the task runs gains nothing: it goes on in the folder that it has
    opened, or fails.
    """
    inbox, before = scene.folder / "inbox", beside(scene)
    real = SWAPS[step]

    def attacked(*arguments: Any, **named: Any) -> Any:
        if not (inbox / swapped).is_symlink():
            (inbox / swapped).rename(inbox / "aside")
            (inbox / swapped).symlink_to("../secret")
        return real(*arguments, **named)

    (inbox / "moved").mkdir()
    (scene.folder / "secret" / "b.csv").write_text("not yours")
    before = beside(scene)
    monkeypatch.setattr(file_placing, step, attacked)
    with suppress(FileTaskError):
        run(scene, {operation: "${name}", "to": "${folder}/"}, **{operation: "deep/b.csv"}, to="moved/")
    assert (inbox / swapped).is_symlink()
    assert beside(scene) == before
    texts = [path.read_text() for path in inbox.rglob("*") if path.is_file() and not path.is_symlink()]
    assert "not yours" not in texts


@pytest.mark.parametrize("seed", range(60))
def test_random_paths(scene: Scene, seed: int) -> None:
    """Whatever the value: what is outside stays as it is; what is inside is reached as the system reaches it."""
    luck = random.Random(seed)
    folders = ["..", ".", "deep", "down", "in", "up", "out", "back", "here", "far", "chain"]
    names = ["a.csv", "b.csv", "c.csv", "s.csv", "empty"]
    inbox = scene.folder / "inbox"
    for _ in range(20):
        value = "/".join([*luck.choices(folders, k=luck.randint(0, 5)), luck.choice(names)])
        path = inbox / os.path.normpath(value)
        folder = os.path.realpath(path.parent)
        is_inside = os.path.commonpath([folder, inbox]) == str(inbox) and not os.path.normpath(value).startswith("..")
        is_file = path.is_file()
        content = path.read_text() if is_file else ""
        before = beside(scene)
        try:
            run(scene, {"move": "${value}", "to": "got.csv"}, move=value)
        except FileTaskError:
            assert not (is_inside and is_file), value
        else:
            assert is_inside, value
            assert (inbox / "got.csv").read_text() == content
            (inbox / "got.csv").rename(Path(folder) / path.name)
        assert beside(scene) == before


@pytest.mark.parametrize("operation", ["copy", "move", "archive"])
def test_files_of_any_number_of_folders(scene: Scene, operation: str) -> None:
    """Few folders are open at a time."""
    inbox = scene.folder / "inbox"
    for number in range(60):
        (inbox / "many" / str(number)).mkdir(parents=True)
        (inbox / "many" / str(number) / f"{number}.txt").write_text(str(number))
    before = len(os.listdir("/proc/self/fd"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 45, limits[1]))
    try:
        done = run(scene, {operation: "${pattern}", "to": "${folder}/"}, **{operation: "many/*/*.txt"}, to="all/")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert done.details["files"] == 60
    assert {path.name: path.read_text() for path in (inbox / "all").iterdir()} == {
        f"{n}.txt": str(n) for n in range(60)
    }
    assert len(os.listdir("/proc/self/fd")) == before
