"""Which tests reach which mutations: every test runs once, without any active mutation."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutations.processes import CARGO_SECONDS, PYTEST, run
from tests.mutations.tree import build_environment

_BYTES = 4096


@dataclass(frozen=True)
class Test:
    """A test that passes. `program`: that of cargo it is in; None for one of pytest."""

    __test__ = False

    name: str
    seconds: float
    hits: frozenset[int]
    program: str | None
    folder: str | None


def write_links(tree: Path, scratch: Path, only: Set[str] | None = None) -> None:
    """Runs every test, or only some, and writes `links.json` into the tree.

    Tests of cargo are not run again if that was done.
    """
    folder = tree / "links"
    folder.mkdir(exist_ok=True)
    of_cargo = folder / "cargo.json"
    if not of_cargo.exists():
        of_cargo.write_text(json.dumps(list(_of_cargo(tree, only)), indent=0))
    lines = json.loads(of_cargo.read_text())
    for old in folder.glob("links-*"):
        old.unlink()
    _run_pytest(tree, folder, scratch, only)
    for path in sorted(folder.glob("links-*.jsonl")):
        lines += [json.loads(line) for line in path.read_text().splitlines()]
    (tree / "links.json").write_text(json.dumps(lines, indent=0))
    failed = [line["test"] for line in lines if line["failed"]]
    print(f"{len(lines)} tests; {len(failed)} fail without any mutation, and are left out:", *failed, sep="\n  ")


def read_links(tree: Path) -> list[Test]:
    """The tests that pass and reach a mutation, cargo's first, then from the shortest to the longest."""
    lines: list[dict[str, Any]] = json.loads((tree / "links.json").read_text())
    tests = [
        Test(line["test"], line["seconds"], frozenset(line["hits"]), line.get("program"), line.get("folder"))
        for line in lines
        if line["hits"] and not line["failed"]
    ]
    return sorted(tests, key=lambda test: (test.program is None, test.seconds))


def _run_pytest(tree: Path, folder: Path, scratch: Path, only: Set[str] | None) -> None:
    variables = {"HEADRACE_MUTANT_LINKS": str(folder)}
    shutil.rmtree(scratch / "links", ignore_errors=True)
    command = [*PYTEST, "-n", "4", "--dist", "loadfile", f"--basetemp={scratch / 'links'}"]
    if only is not None:
        listed = folder / "only"
        listed.write_text("".join(f"{name}\n" for name in sorted(only) if ".py::" in name))
        command.append(f"@{listed}")
    ended = run(command, tree, variables, seconds=3 * 3600, output=folder / "pytest.log")
    assert ended in (0, 1), f"pytest ended with {ended}: see {folder / 'pytest.log'}"


def _of_cargo(tree: Path, only: Set[str] | None) -> Iterator[dict[str, Any]]:
    programs = json.loads((tree / "programs.json").read_text())
    environment = build_environment(tree)
    tests = list[tuple[dict[str, str], str]]()
    for program in programs:
        listed = [
            subprocess.run(
                [program["program"], "--list", "--format", "terse", *more],
                cwd=program["folder"], env=environment, stdout=subprocess.PIPE, text=True, check=True,
            ).stdout.splitlines()
            for more in ([], ["--ignored"])
        ]  # fmt: skip
        names = [line.removesuffix(": test") for line in listed[0] if line.endswith(": test")]
        wanted = [name for name in names if only is None or name in only]
        tests += [(program, name) for name in wanted if f"{name}: test" not in listed[1]]
    local = threading.local()

    def reach(item: tuple[dict[str, str], str]) -> dict[str, Any]:
        program, name = item
        if not hasattr(local, "hits"):
            local.hits = Path(tempfile.mkdtemp()) / "hits"
        local.hits.write_bytes(bytes(_BYTES))
        variables = {"HEADRACE_MUTANT_HITS": str(local.hits)}
        started = time.monotonic()
        command = [program["program"], "--exact", name, "--quiet"]
        ended = run(command, Path(program["folder"]), variables, seconds=CARGO_SECONDS, tree=tree)
        hits = [number for number, byte in enumerate(local.hits.read_bytes()) if byte]
        seconds = round(time.monotonic() - started, 3)
        return {"test": name, **program, "seconds": seconds, "hits": hits, "failed": ended != 0}

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(reach, tests)
