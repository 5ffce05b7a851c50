"""Fixtures of the integration tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import core
from tests.integration.driver import Project

_KEPT_BYTES = 5_000_000


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty project. Its large files do not outlive the test: pytest keeps folders for a while."""
    folder = tmp_path / "project"
    folder.mkdir()
    yield Project(folder)
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size > _KEPT_BYTES:
            path.unlink()


@pytest.fixture(scope="session")
def tpch_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TPC-H text of scale 0.05 (54 MB), made by the command line: eight files per large table."""
    project = Project(tmp_path_factory.mktemp("tpch"))
    command = [sys.executable, "-m", "headrace", "generate", "tpch"]
    ended = project.command([*command, "--scale", "0.05", "--chunks", "8", "--out", str(project.inbox), "--json"])
    assert ended.exit_code == 0, ended.stderr
    return project.inbox


@pytest.fixture(params=core.cpu_paths())
def cpu_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every instruction set of this machine, for the command lines that a test runs."""
    monkeypatch.setenv("HEADRACE_CPU", request.param)
    return str(request.param)
