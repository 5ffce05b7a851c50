"""Generated files: complete ones are kept, others are written anew."""

from __future__ import annotations

import math
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CancelledError, OutputError, TaskTimeoutError
from headrace.model.spec_leaves import GenerateTaskSpec
from headrace.run.leaves import generate as module
from headrace.run.leaves.generate import GenerateLeaf
from tests.snapshots import assert_snapshot
from tests.unit.run.leaves.contexts import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def run(scene: Scene, *tables: str, scale: str = "0.001", **settings: Any) -> dict[str, Any]:
    spec = GenerateTaskSpec(tpch=list(tables), scale=Decimal(scale), out="data", **settings)  # type: ignore[arg-type]
    return dict(GenerateLeaf().run(spec, scene.context()).details)


def looks(scene: Scene) -> dict[str, tuple[int, int]]:
    files = (scene.folder / "data").glob("[a-z]*")
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


def test_files_are_written_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    # However long a busy machine takes.
    monkeypatch.setattr(module, "_NOTICE_SECONDS", math.inf)
    assert run(scene, "region", "orders", chunks=2)["files"] == 3
    before = looks(scene)
    assert sorted(before) == ["orders.tbl.1", "orders.tbl.2", "region.tbl"]
    assert run(scene, "region", "orders", "nation", chunks=2) == {"files": 1, "bytes": 2224}
    after = looks(scene)
    del after["nation.tbl"]
    assert after == before
    assert scene.notices == [
        "region is there already: its files are kept",
        "orders is there already: its files are kept",
    ]


@pytest.mark.parametrize("change", ["touched", "removed", "scale", "note"])
def test_other_files_are_written_anew(scene: Scene, change: str) -> None:
    run(scene, "supplier")
    file = scene.folder / "data" / "supplier.tbl"
    text = file.read_bytes()
    if change == "touched":
        file.write_bytes(text[:-10])
    elif change == "removed":
        file.unlink()
    elif change == "note":
        (scene.folder / "data" / ".headrace-tpch-supplier.json").write_text("[]")
    assert run(scene, "supplier", scale="0.002" if change == "scale" else "0.001")["files"] == 1
    assert (len(file.read_bytes()) > len(text)) if change == "scale" else (file.read_bytes() == text)


def test_the_same_scale_in_other_words(scene: Scene) -> None:
    run(scene, "region", scale="0.001")
    assert run(scene, "region", scale="0.0010")["files"] == 0


def test_other_chunks_are_refused(scene: Scene) -> None:
    run(scene, "orders")
    with pytest.raises(OutputError) as caught:
        run(scene, "orders", chunks=2)
    assert_snapshot("generate_other_chunks", scene.shown(caught.value))


def test_a_file_in_place_of_the_folder(scene: Scene) -> None:
    (scene.folder / "data").touch()
    with pytest.raises(OutputError) as caught:
        run(scene, "orders")
    assert_snapshot("generate_no_folder", scene.shown(caught.value))


def test_progress(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first notice cancels it: on no machine has so much text been written by then."""
    monkeypatch.setattr(module, "_NOTICE_SECONDS", 0.0)
    context, notices = scene.context(), list[str]()

    def notice(text: str) -> None:
        notices.append(text)
        scene.cancellation.set()

    object.__setattr__(context, "notice", notice)
    with pytest.raises(CancelledError):
        GenerateLeaf().run(GenerateTaskSpec(tpch=["lineitem"], scale=Decimal(10), out="data"), context)
    assert notices[0].startswith("generating lineitem: ") and notices[0].endswith(" MB")


@pytest.mark.parametrize("reason", ["cancelled", "timeout"])
def test_cancelling_leaves_no_unfinished_file(scene: Scene, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    monkeypatch.setattr(module, "_NOTICE_SECONDS", 0.0)
    context = scene.context()
    stop = scene.cancellation.set if reason == "cancelled" else lambda: scene.cancellation.time_out(3.0)
    object.__setattr__(context, "notice", lambda _: stop())
    spec = GenerateTaskSpec(tpch=["lineitem"], scale=Decimal(10), out="data")
    with pytest.raises(CancelledError if reason == "cancelled" else TaskTimeoutError):
        GenerateLeaf().run(spec, context)
    assert os.listdir(scene.folder / "data") == []


def test_description() -> None:
    spec = GenerateTaskSpec(tpch=["orders", "part"], scale=Decimal("0.5"), chunks=3, out="x")
    assert GenerateLeaf().describe(spec) == ["writes orders, part of TPC-H at scale 0.5 into x, 3 files each"]
