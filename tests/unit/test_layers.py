"""The house rules that no compiler checks: who may depend on whom, and what must not be in the repository."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

# Which crates of the workspace each crate may depend on. A missing crate is not built yet; a new one needs a line here.
ALLOWED_CRATES = {
    "types": set(),
    "parse": {"types"},
    "wire": {"types"},
    "transform": {"types"},
    "generate": {"types"},
    "engine": {"types", "parse", "wire", "transform", "generate"},
    "native": {"types", "parse", "wire", "transform", "generate", "engine"},
}
# Crates that get bytes or batches and give bytes or batches. They own no files, sockets or threads.
PURE_CRATES = ("types", "parse", "wire", "transform", "generate")
IO_DEPENDENCIES = {
    "crossbeam-channel",
    "libc",
    "mio",
    "nix",
    "rayon",
    "rustix",
    "rustls",
    "socket2",
    "tempfile",
    "tokio",
}
# What is no I/O of it: advice about memory.
ALLOWED_OF_LIBC = {"transform": {"madvise", "c_void", "MADV_HUGEPAGE"}}
IO_PATHS = re.compile(r"\bstd::(fs|net|thread|process|os)\b|\bstd::io::(stdin|stdout|stderr)\b")


def manifest(crate: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())


def crates() -> list[str]:
    return sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))


def dependencies(crate: str, *, dev: bool = False) -> set[str]:
    tables = ["dependencies", "build-dependencies", *(["dev-dependencies"] if dev else [])]
    return {name for table in tables for name in manifest(crate).get(table, {})}


def test_every_crate_has_its_place() -> None:
    assert set(crates()) <= set(ALLOWED_CRATES)
    assert {"types", "parse", "generate", "engine", "native"} <= set(crates())


@pytest.mark.parametrize("crate", crates())
def test_crate_depends_only_on_lower_crates(crate: str) -> None:
    own = {name.removeprefix("headrace-") for name in dependencies(crate, dev=True) if name.startswith("headrace-")}
    assert own <= ALLOWED_CRATES[crate]


@pytest.mark.parametrize("crate", crates())
def test_crate_is_named_after_its_folder(crate: str) -> None:
    assert manifest(crate)["package"]["name"] == f"headrace-{crate}"


@pytest.mark.parametrize("crate", crates())
def test_only_native_knows_python(crate: str) -> None:
    has_pyo3 = any(name.startswith("pyo3") for name in dependencies(crate, dev=True))
    assert has_pyo3 == (crate == "native")


@pytest.mark.parametrize("crate", [name for name in crates() if name in PURE_CRATES])
def test_pure_crates_do_no_io(crate: str) -> None:
    of_libc = ALLOWED_OF_LIBC.get(crate, set())
    assert dependencies(crate) & IO_DEPENDENCIES == ({"libc"} if of_libc else set())
    for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
        code = path.read_text().split("#[cfg(test)]")[0]
        assert not IO_PATHS.search(code), f"{path.relative_to(ROOT)} uses {IO_PATHS.search(code)}"
        assert set(re.findall(r"\blibc::(\w+)", code)) <= of_libc, path
        assert "use libc" not in code, path


def python_files() -> list[Path]:
    return sorted((ROOT / "python" / "headrace").rglob("*.py"))


def imported_modules(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            modules |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return modules


def test_only_core_imports_the_compiled_module() -> None:
    importers = [path for path in python_files() if any("_native" in name for name in imported_modules(path))]
    assert importers == [ROOT / "python" / "headrace" / "core.py"]


def test_every_instance_of_duckdb_is_a_silent_one() -> None:
    connects = re.compile(r"\bduckdb\.(connect|sql|query|execute|default_connection)\(|\bfrom duckdb import")
    connecting = [path for path in python_files() if connects.search(path.read_text(encoding="utf-8"))]
    assert connecting == [ROOT / "python" / "headrace" / "model" / "duckdb_instance.py"]


def test_python_files_stay_small() -> None:
    too_long = {path.name: count for path in python_files() if (count := len(path.read_text().splitlines())) > 800}
    assert not too_long


def test_runtime_requirements_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements" / "runtime.in").read_text().splitlines()
    assert sorted(project["dependencies"]) == sorted(line for line in lines if line and not line.startswith("#"))


def test_what_the_extras_need_is_installed_for_the_tests() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lines = (ROOT / "requirements" / "dev.in").read_text().splitlines()
    assert {re.split("[<>=]", package)[0] for packages in extras.values() for package in packages} <= set(lines)


def repository_files() -> list[Path]:
    """The files under version control, or all that look like sources where there is no git."""
    try:
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        folders = ["crates", "python", "tests", "docs", "examples", "requirements", ".ci"]
        names = [str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")]
    return [path for name in names if (path := ROOT / name).is_file() and not path.is_symlink()]


# Written so that this file does not match itself. A link to a page for people to read is fine.
MACHINE_PATH = re.compile(
    r"(?<![\w.~-])/(?:" + "|".join(["wor" + "k", "roo" + "t", "hom" + "e", "User" + "s"]) + r")/\w"
)
REGISTRY = re.compile(
    "|".join(
        [
            "index" + "-url",
            "find" + "-links",
            "trusted" + "-host",
            "simple" + r"/?\b.*https?:",
            r"https?://[^\s]*(pypi|crates)\S*mirror",
        ]
    )
)
# pip-tools must be told to leave them out.
REGISTRY_EXCEPTIONS = {"requirements/compile.sh"}


def test_no_file_names_this_machine_or_a_registry() -> None:
    found = []
    for path in repository_files():
        name = str(path.relative_to(ROOT))
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        patterns = [MACHINE_PATH] if name in REGISTRY_EXCEPTIONS else [MACHINE_PATH, REGISTRY]
        found += [f"{name}: {match.group()}" for pattern in patterns for match in pattern.finditer(text)]
    assert not found


@pytest.mark.parametrize("lock_file", ["Cargo.lock", "fuzz/Cargo.lock"])
def test_cargo_lock_names_one_registry_and_no_other_source(lock_file: str) -> None:
    sources = {
        package["source"] for package in tomllib.loads((ROOT / lock_file).read_text())["package"] if "source" in package
    }
    assert [source.partition("+")[0] for source in sources] == ["registry"]
