"""A copy of the product with all mutations in it, each behind the run-time switch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.mutations.mutation_set import Mutation, splice

ROOT = Path(__file__).parents[2]
WORK = ROOT / "target" / "mutations"
# All trees share what cargo has compiled of other packages.
_CARGO_TARGET = WORK / "cargo"
_RUNTIME = Path(__file__).parent / "runtime"
_MANIFEST = """[package]
name = "headrace-mutants"
version.workspace = true
edition.workspace = true

[lib]
path = "headrace_mutants.rs"
"""
_CRATES = ("parse", "engine")
Spans = dict[str, dict[int, tuple[int, int]]]


def make_sources(tree: Path, product: Path, tests: Path, mutations: Iterable[Mutation]) -> tuple[Spans, list[Mutation]]:
    """Copies the sources of a checkout, takes the tests of another one (`tests`, or the same), and adds mutations.

    Returns where they are in the mutated files, and those whose text is gone.
    """
    _copy(product, tree)
    if tests != product:
        for folder in ["tests", *(f"crates/{path.parent.name}/tests" for path in product.glob("crates/*/Cargo.toml"))]:
            shutil.rmtree(tree / folder, ignore_errors=True)
        _copy(tests, tree, "tests", "crates/*/tests/**")
    mutants = tree / "mutants"
    mutants.mkdir(exist_ok=True)
    for path in _RUNTIME.glob("headrace_mutants*"):
        shutil.copy(path, mutants)
    (mutants / "Cargo.toml").write_text(_MANIFEST)
    for crate in _CRATES:
        manifest = tree / "crates" / crate / "Cargo.toml"
        dependency = 'headrace-mutants = { path = "../../mutants" }'
        manifest.write_text(manifest.read_text().replace("\n[dependencies]\n", f"\n[dependencies]\n{dependency}\n"))
    return add_mutations(tree, product, mutations)


def add_mutations(tree: Path, product: Path, mutations: Iterable[Mutation]) -> tuple[Spans, list[Mutation]]:
    """Writes the mutated files anew, from those of the product."""
    spans: Spans = {}
    gone = list[Mutation]()
    found: defaultdict[str, list[tuple[int, Mutation]]] = defaultdict(list)
    for mutation in mutations:
        file, start = locate(product, mutation)
        if start is None:
            gone.append(mutation)
        else:
            found[file].append((start, mutation))
    for file, placed in found.items():
        source, spans[file] = splice((product / file).read_bytes(), placed)
        if file.endswith(".py"):
            compile(source, file, "exec")
        (tree / file).write_bytes(source)
    return spans, gone


def locate(product: Path, mutation: Mutation) -> tuple[str, int | None]:
    """The file and byte where a mutation is now; a file that has moved is found by the lines in it."""
    if (product / mutation.file).exists():
        return mutation.file, mutation.locate((product / mutation.file).read_bytes())
    folder = product / "/".join(mutation.file.split("/")[:2])
    others = folder.rglob(f"*{Path(mutation.file).suffix}")
    places = [(path, start) for path in others if (start := mutation.locate(path.read_bytes())) is not None]
    if len(places) != 1:
        return mutation.file, None
    return places[0][0].relative_to(product).as_posix(), places[0][1]


def build(tree: Path, *, only_tests: bool = False) -> None:
    """Compiles test programs and package as `make test` does, into an environment of the tree."""
    environment = build_environment(tree)
    requirements = [f"requirements/{name}.txt" for name in ("runtime", "build", "dev")]
    subprocess.run(["requirements/venv.sh", ".venv-ci", *requirements], cwd=tree, check=True)
    (packages,) = (tree / ".venv-ci" / "lib").glob("python*/site-packages")
    (packages / "headrace_mutants.pth").write_text(f"{tree / 'mutants'}\n")
    # Cargo.lock gets the crate of the switch, and no other version of anything.
    subprocess.run(["cargo", "metadata", "--format-version", "1"], cwd=tree, stdout=subprocess.DEVNULL, check=True)
    options = ["--workspace", "--lib", "--tests", "--locked", "--profile", "ci"]
    messages = cargo(tree, ["test", *options, "--no-run"], environment)
    programs = [
        {"name": message["target"]["name"], "program": message["executable"], "folder": folder}
        for message in messages
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
        for folder in [str(Path(message["manifest_path"]).parent)]
    ]
    (tree / "programs.json").write_text(json.dumps(programs, indent=1))
    subprocess.run(
        ["maturin", "develop", "--quiet", "--profile", "ci", "--locked"], cwd=tree, env=environment, check=True
    )


def build_environment(tree: Path) -> dict[str, str]:
    """The variables with which the Makefile and `.ci/steps` build and test."""
    kept = {
        name: value for name, value in os.environ.items() if name not in ("CONDA_PREFIX", "PYTHONDONTWRITEBYTECODE")
    }
    venv = tree / ".venv-ci"
    python = venv / "bin" / "python"
    return {
        **kept,
        "CARGO_TARGET_DIR": str(_CARGO_TARGET),
        "PATH": f"{venv / 'bin'}:{kept['PATH']}",
        "PYO3_PYTHON": str(python) if python.exists() or tree.joinpath("requirements").exists() else sys.executable,
        "VIRTUAL_ENV": str(venv),
    }


def cargo(folder: Path, arguments: Sequence[str], environment: dict[str, str]) -> list[dict[str, Any]]:
    """The messages of a cargo command. Raises CompileError if it fails."""
    command = ["cargo", *arguments, "--message-format", "json", "--quiet"]
    ended = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
    messages: list[dict[str, Any]] = [json.loads(line) for line in ended.stdout.splitlines()]
    if ended.returncode:
        raise CompileError(
            [message["message"] for message in messages if message.get("message", {}).get("level") == "error"]
        )
    return messages


class CompileError(Exception):
    """The sources do not compile; `errors` are the messages of rustc."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__("\n".join(error["rendered"] for error in errors))
        self.errors = errors


def _copy(source: Path, tree: Path, *paths: str) -> None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *paths]
    listed = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (source / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, tree / name, follow_symlinks=False)
