"""The packages of the how-to pages are what the pages say."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headrace.model import BoundPackage, load_package
from headrace.model.spec_leaves import FileTaskSpec, PythonSpec
from headrace.run.leaves.file import FileLeaf
from headrace.run.leaves.python import PythonLeaf
from headrace.run.trust import needs_trust
from tests.docs.documents import blocks
from tests.unit.run.leaves.contexts import Scene


def package_of(page: str, folder: Path) -> BoundPackage:
    files = [block for block in blocks(Path("docs/how-to", page)) if block.file is not None]
    for block in files:
        assert block.file is not None
        (folder / block.file).write_text(block.text, encoding="utf-8")
    return load_package(folder / str(files[0].file))


def test_run_programs_and_python(tmp_path: Path) -> None:
    package = package_of("run-programs-and-python.md", tmp_path)
    assert [task.id for task in needs_trust(package)] == ["space", "rate", "publish"]
    task = package.tasks[1]
    spec = package.binder.task(task, package.scope, task.id)
    assert isinstance(spec, PythonSpec)
    outputs = PythonLeaf().run(spec, Scene(tmp_path).context()).outputs
    assert str(outputs["rate"]) == "1.0834"


@pytest.mark.parametrize("present", [False, True])
def test_move_and_archive_files(tmp_path: Path, present: bool) -> None:
    package = package_of("move-and-archive-files.md", tmp_path)
    assert needs_trust(package) == []
    (tmp_path / "inbox").mkdir()
    if present:
        (tmp_path / "inbox" / "a.csv").write_text("text")
    for task in package.tasks:
        spec = package.binder.task(task, package.scope, task.id)
        assert isinstance(spec, FileTaskSpec)
        FileLeaf().run(spec, Scene(tmp_path).context(instance=task.id))
    assert (tmp_path / "work" / "out").is_dir()
    if present:
        assert gzip.decompress((tmp_path / "inbox" / "archive" / "a.csv.gz").read_bytes()) == b"text"
