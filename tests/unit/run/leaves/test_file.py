"""File tasks: what becomes of files, and what is refused."""

from __future__ import annotations

import errno
import gzip
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CancelledError, FileTaskError
from headrace.model.spec_leaves import FileTaskSpec
from headrace.run.leaves import file_placing
from headrace.run.leaves.base import LeafResult
from headrace.run.leaves.file import FileLeaf
from tests.snapshots import assert_snapshot
from tests.unit.run.leaves.contexts import RUN_ID, Scene

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.context()
    (tmp_path / "inbox").mkdir()
    for name in ("a.csv", "b.csv", "b10.csv", "b9.csv", "c.txt", ".hidden.csv"):
        (tmp_path / "inbox" / name).write_text(name)
        os.utime(tmp_path / "inbox" / name, ns=(7 * HOUR_NS, 5 * HOUR_NS + 123_456_789))
    return scene


def run(scene: Scene, **settings: Any) -> LeafResult:
    return FileLeaf().run(FileTaskSpec(**settings), scene.context())


def tree(folder: Path) -> dict[str, str]:
    """Every file and link below a folder, and what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_text()
        elif path.is_dir() and not any(path.iterdir()):
            found[f"{name}/"] = ""
    found.pop("package.yaml", None)
    return found


def inbox(scene: Scene) -> list[str]:
    return sorted(path.name for path in (scene.folder / "inbox").iterdir())


def other_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every file seems to come from another file system."""
    original = file_placing.place

    def place(source: str, destination: str, *, overwrite: bool) -> None:
        if not os.path.basename(source).startswith(".headrace-"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        original(source, destination, overwrite=overwrite)

    monkeypatch.setattr(file_placing, "place", place)


def no_new_rename(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_placing, "_system_call", lambda: None)


WAYS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "renamed": lambda _: None,
    "linked": no_new_rename,
    "copied": other_disk,
}


@pytest.mark.parametrize("way", WAYS)
def test_move(scene: Scene, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    WAYS[way](monkeypatch)
    (scene.folder / "inbox" / "a.csv").chmod(0o640)
    result = run(scene, move="inbox/*.csv", to="done")
    assert result.details == {"files": 4, "bytes": 23}
    assert inbox(scene) == [".hidden.csv", "c.txt"]
    names = ["a.csv", "b.csv", "b10.csv", "b9.csv"]
    assert tree(scene.folder / "done") == {name: name for name in names}
    status = (scene.folder / "done" / "a.csv").stat()
    assert (status.st_mtime_ns, status.st_mode & 0o777) == (5 * HOUR_NS + 123_456_789, 0o640)


def test_copy(scene: Scene) -> None:
    (scene.folder / "inbox" / "a.csv").chmod(0o640)
    run(scene, copy="inbox/a.csv", to="copy.csv")
    assert inbox(scene) == [".hidden.csv", "a.csv", "b.csv", "b10.csv", "b9.csv", "c.txt"]
    status = (scene.folder / "copy.csv").stat()
    assert (status.st_mtime_ns, status.st_mode & 0o777) == (5 * HOUR_NS + 123_456_789, 0o640)
    assert [path.name for path in scene.folder.iterdir() if path.name.startswith(".")] == []


def test_large_files(scene: Scene) -> None:
    content = os.urandom(3_500_000)
    (scene.folder / "large").write_bytes(content)
    run(scene, copy="large", to="below/")
    run(scene, archive="large", to="packed", compression="gzip")
    assert (scene.folder / "below" / "large").read_bytes() == content
    assert gzip.decompress((scene.folder / "packed" / "large.gz").read_bytes()) == content


def test_delete(scene: Scene) -> None:
    (scene.folder / "inbox" / "empty").mkdir()
    result = run(scene, delete=["inbox/b*.csv", "inbox/.hidden.csv", "inbox/empty", "inbox/b.csv"])
    assert result.details == {"files": 5, "bytes": 29}
    assert inbox(scene) == ["a.csv", "c.txt"]


def test_create(scene: Scene) -> None:
    for _ in range(2):
        assert run(scene, create=["one/two", "three"]).details == {"folders": 2}
    assert {"one/two/", "three/"} <= set(tree(scene.folder))


@pytest.mark.parametrize("way", WAYS)
def test_archive(scene: Scene, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    WAYS[way](monkeypatch)
    archive = scene.folder / "archive"
    archive.mkdir()
    (archive / "a.csv").write_text("earlier")
    run(scene, archive="inbox/[ab].csv", to="archive")
    assert tree(archive) == {"a.csv": "earlier", f"a.{RUN_ID}.csv": "a.csv", "b.csv": "b.csv"}
    (scene.folder / "inbox" / "a.csv").write_text("again")
    run(scene, archive="inbox/a.csv", to="archive")
    assert (archive / f"a.{RUN_ID}-2.csv").read_text() == "again"


def test_archive_by_gzip(scene: Scene) -> None:
    archive = scene.folder / "below" / "archive"
    archive.mkdir(parents=True)
    (archive / "a.csv.gz").write_text("earlier")
    run(scene, archive=["inbox/a.csv", "inbox/b.csv"], to="below/archive", compression="gzip")
    assert sorted(path.name for path in archive.iterdir()) == [f"a.{RUN_ID}.csv.gz", "a.csv.gz", "b.csv.gz"]
    packed = archive / f"a.{RUN_ID}.csv.gz"
    assert gzip.decompress(packed.read_bytes()) == b"a.csv"
    assert packed.stat().st_mtime_ns == 5 * HOUR_NS + 123_456_789
    assert packed.read_bytes()[4:8] == (5 * 3600).to_bytes(4, "little") and b"a.csv\0" in packed.read_bytes()


@pytest.mark.parametrize(
    ("name", "taken"), [("x", f"x.{RUN_ID}"), ("x.tar.gz", f"x.{RUN_ID}.tar.gz"), ("a.b.csv", f"a.b.{RUN_ID}.csv")]
)
def test_names_of_an_archive(scene: Scene, name: str, taken: str) -> None:
    (scene.folder / "archive").mkdir()
    for folder in ("archive", "inbox"):
        (scene.folder / folder / name).touch()
    run(scene, archive=f"inbox/{name}", to="archive")
    assert sorted(tree(scene.folder / "archive")) == sorted([name, taken])


def test_two_files_of_the_same_name_in_an_archive(scene: Scene) -> None:
    (scene.folder / "inbox" / "below").mkdir()
    (scene.folder / "inbox" / "below" / "a.csv").write_text("below")
    run(scene, archive="inbox/**/a.csv", to="archive")
    assert tree(scene.folder / "archive") == {"a.csv": "a.csv", f"a.{RUN_ID}.csv": "below"}


def test_an_archive_below_what_is_archived(scene: Scene) -> None:
    for _ in range(2):
        run(scene, archive="inbox/**/*.csv", to="inbox/archive", missing="skip")
    assert sorted(tree(scene.folder / "inbox" / "archive")) == ["a.csv", "b.csv", "b10.csv", "b9.csv"]
    assert "is in the destination already: it is left out" in scene.notices[0]


def test_a_name_taken_meanwhile(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    original = file_placing.place
    quick = scene.folder / "archive" / "a.csv"

    def place(source: str, destination: str, *, overwrite: bool) -> None:
        quick.touch()
        original(source, destination, overwrite=overwrite)

    monkeypatch.setattr(file_placing, "place", place)
    run(scene, archive="inbox/a.csv", to="archive")
    assert tree(scene.folder / "archive") == {"a.csv": "", f"a.{RUN_ID}.csv": "a.csv"}


def test_overwrite(scene: Scene) -> None:
    (scene.folder / "old.csv").write_text("old")
    run(scene, copy="inbox/a.csv", to="old.csv", overwrite=True)
    assert (scene.folder / "old.csv").read_text() == "a.csv"
    run(scene, move="inbox/b.csv", to="old.csv", overwrite=True)
    assert (scene.folder / "old.csv").read_text() == "b.csv"


def test_a_connection_is_where_paths_start(scene: Scene) -> None:
    run(scene, connection="inbox", move="a.csv", to="below/")
    assert (scene.folder / "inbox" / "below" / "a.csv").exists()


def test_missing_may_be_skipped(scene: Scene) -> None:
    for operation in ("copy", "move", "archive"):
        assert run(scene, **{operation: ["*.none", "none.csv"]}, to="x/", missing="skip").details["files"] == 0
    assert run(scene, delete=["*.none", "inbox/c.txt", "none"], missing="skip").details["files"] == 1
    assert not (scene.folder / "x").exists()


def links(scene: Scene) -> Path:
    """A folder outside, links to it and to a file in it, and one that leads nowhere."""
    outside = scene.folder / "outside"
    outside.mkdir()
    (outside / "kept.csv").write_text("kept")
    (scene.folder / "inbox" / "folder").symlink_to(outside)
    (scene.folder / "inbox" / "link.csv").symlink_to(outside / "kept.csv")
    (scene.folder / "inbox" / "nowhere.csv").symlink_to("nothing")
    return outside


def test_links_are_deleted_themselves(scene: Scene) -> None:
    outside = links(scene)
    run(scene, delete=["inbox/**/*.csv", "inbox/folder/"])
    assert tree(outside) == {"kept.csv": "kept"}
    assert inbox(scene) == [".hidden.csv", "c.txt"]


def test_nothing_behind_a_link_to_a_folder_is_found(scene: Scene) -> None:
    outside = links(scene)
    run(scene, delete="inbox/*/*.csv", missing="skip")
    assert tree(outside) == {"kept.csv": "kept"}
    assert "is behind a link to a folder: it is left out" in scene.notices[0]
    run(scene, delete="inbox/folder/*.csv")  # said in so many words
    assert tree(outside) == {}


@pytest.mark.parametrize("way", WAYS)
def test_links_are_moved_themselves(scene: Scene, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    outside = links(scene)
    WAYS[way](monkeypatch)
    run(scene, move=["inbox/link.csv", "inbox/nowhere.csv", "inbox/folder"], to="done")
    assert tree(scene.folder / "done") == {
        "folder": f"-> {outside}",
        "link.csv": f"-> {outside / 'kept.csv'}",
        "nowhere.csv": "-> nothing",
    }
    assert tree(outside) == {"kept.csv": "kept"}


def test_of_a_link_the_file_is_copied(scene: Scene) -> None:
    links(scene)
    run(scene, copy="inbox/link.csv", to="copy.csv")
    assert (scene.folder / "copy.csv").read_text() == "kept" and not (scene.folder / "copy.csv").is_symlink()


def test_a_link_at_the_destination_is_replaced_itself(scene: Scene) -> None:
    outside = links(scene)
    run(scene, copy="inbox/a.csv", to="inbox/link.csv", overwrite=True)
    assert tree(outside) == {"kept.csv": "kept"}
    assert (scene.folder / "inbox" / "link.csv").read_text() == "a.csv"


def test_a_literal_name_with_brackets(scene: Scene) -> None:
    (scene.folder / "inbox" / "x[1].csv").touch()
    (scene.folder / "inbox" / "x1.csv").touch()
    run(scene, delete="inbox/x[1].csv")
    assert "x1.csv" in inbox(scene) and "x[1].csv" not in inbox(scene)


def _folder_of_that_name(scene: Scene) -> None:
    (scene.folder / "x" / "a.csv").mkdir(parents=True)
    run(scene, move="inbox/a.csv", to="x/")


def _same(scene: Scene) -> None:
    os.link(scene.folder / "inbox" / "a.csv", scene.folder / "same.csv")
    run(scene, move="inbox/a.csv", to="same.csv", overwrite=True)


def _pipe(scene: Scene, **settings: Any) -> None:
    os.mkfifo(scene.folder / "inbox" / "pipe.csv")
    run(scene, **settings)


def _socket(scene: Scene) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(scene.folder / "s"))
        run(scene, move="s", to="t")


def _not_utf8(scene: Scene) -> None:
    Path(os.fsdecode(os.fsencode(scene.folder / "inbox") + b"/caf\xe9.csv")).touch()
    run(scene, delete="inbox/*.csv")


def _two_of_a_name(scene: Scene) -> None:
    (scene.folder / "inbox" / "below").mkdir()
    (scene.folder / "inbox" / "below" / "a.csv").touch()
    run(scene, move="inbox/**/a.csv", to="x")


def _packed_link(scene: Scene) -> None:
    links(scene)
    run(scene, archive="inbox/link.csv", to="x", compression="gzip")


def _dangling(scene: Scene) -> None:
    links(scene)
    run(scene, copy="inbox/nowhere.csv", to="x")


def _no_space(scene: Scene) -> None:
    import resource

    (scene.folder / "large").write_bytes(bytes(2_000_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    try:
        run(scene, copy="large", to="larger")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _refused(number: int) -> Callable[[Scene], None]:
    def work(scene: Scene) -> None:
        with pytest.MonkeyPatch.context() as patch:

            def place(*_: object, **__: object) -> None:
                raise OSError(number, os.strerror(number))

            patch.setattr(file_placing, "place", place)
            run(scene, move="inbox/a.csv", to="x/")

    return work


REFUSALS: dict[str, Callable[[Scene], object]] = {
    "no_file": lambda scene: run(scene, delete="inbox/a.csc"),
    "no_match": lambda scene: run(scene, move="inbox/*.json", to="x"),
    "no_match_among_two": lambda scene: run(scene, move=["inbox/*.csv", "inbox/d.csv"], to="x"),
    "no_folder": lambda scene: run(scene, delete="nowhere/*.csv"),
    "destination_exists": lambda scene: run(scene, copy="inbox/a.csv", to="inbox/b.csv"),
    "destination_is_a_link": lambda scene: (links(scene), run(scene, move="inbox/a.csv", to="inbox/nowhere.csv")),
    "file_of_a_folder": _folder_of_that_name,
    "same_file": lambda scene: run(scene, move="inbox/a.csv", to="inbox/"),
    "same_file_overwrite": lambda scene: run(scene, copy="inbox/a.csv", to="inbox/a.csv", overwrite=True),
    "same_file_by_two_names": _same,
    "folder": lambda scene: run(scene, move="inbox", to="x/"),
    "folder_into_itself": lambda scene: run(scene, copy="inbox", to="inbox/below/"),
    "folder_not_empty": lambda scene: run(scene, delete="inbox"),
    "folder_is_a_file": lambda scene: run(scene, create="inbox/a.csv"),
    "folder_below_a_file": lambda scene: run(scene, create="inbox/a.csv/x"),
    "to_below_a_file": lambda scene: run(scene, move="inbox/b.csv", to="inbox/a.csv/"),
    "pipe": lambda scene: _pipe(scene, delete="inbox/pipe.csv"),
    "socket": _socket,
    "not_utf8": _not_utf8,
    "two_of_a_name": _two_of_a_name,
    "packed_link": _packed_link,
    "dangling": _dangling,
    "no_space": _no_space,
    "name_too_long": lambda scene: run(scene, copy="inbox/a.csv", to="x" * 300),
    "no_right": _refused(errno.EACCES),
    "read_only": _refused(errno.EROFS),
    "connection": lambda scene: run(scene, connection="nothing", delete="a"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_change_nothing(scene: Scene, name: str) -> None:
    before = inbox(scene)
    with pytest.raises(FileTaskError) as caught:
        REFUSALS[name](scene)
    assert_snapshot(f"file_{name}", scene.shown(caught.value))
    assert set(before) <= set(inbox(scene))
    assert not list(scene.folder.rglob(".headrace-*"))


def test_patterns_leave_special_files_out(scene: Scene) -> None:
    _pipe(scene, move="inbox/*.csv", to="x")
    assert (scene.folder / "inbox" / "pipe.csv").exists()
    assert scene.notices == [f"{scene.folder}/inbox/pipe.csv matches `inbox/*.csv` but is a named pipe: it is left out"]


def test_a_file_that_changes_while_it_is_copied(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    large = scene.folder / "large"
    large.write_bytes(bytes(3_000_000))
    original = file_placing._transfer

    def transfer(*arguments: Any) -> None:
        original(*arguments)
        with large.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(file_placing, "_transfer", transfer)
    with pytest.raises(FileTaskError) as caught:
        run(scene, archive="large", to="x", compression="gzip")
    assert_snapshot("file_changes", scene.shown(caught.value))
    assert large.stat().st_size == 3_000_004 and tree(scene.folder / "x") == {}


def test_cancelled_between_blocks(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    (scene.folder / "large").write_bytes(bytes(5_000_000))
    checks = [0]

    def is_set() -> bool:
        checks[0] += 1
        return checks[0] > 4

    monkeypatch.setattr(scene.cancellation, "is_set", is_set)
    with pytest.raises(CancelledError):
        run(scene, copy="large", to="copy")
    assert not (scene.folder / "copy").exists() and not list(scene.folder.glob(".headrace-*"))


def test_two_tasks_at_once_never_overwrite(scene: Scene) -> None:
    for number in range(8):
        (scene.folder / f"s{number}").write_text(str(number))
    outcomes: list[str] = []
    context = scene.context()

    def work(number: int) -> None:
        try:
            FileLeaf().run(FileTaskSpec(move=[f"s{number}"], to="winner"), context)
            outcomes.append(str(number))
        except FileTaskError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 1 and (scene.folder / "winner").read_text() == outcomes[0]
    assert len(list(scene.folder.glob("s[0-9]"))) == 7


def test_descriptions() -> None:
    def shown(**settings: Any) -> list[str]:
        return list(FileLeaf().describe(FileTaskSpec(**settings)))

    assert shown(copy=["a", "b"], to="c/") == ["copies a, b to c/"]
    assert shown(delete="*.csv") == ["deletes *.csv"]
    assert shown(create="x") == ["makes the folder x"]
    assert shown(archive="x", to="y", compression="gzip") == ["archives x to y by gzip"]
