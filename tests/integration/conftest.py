"""Fixtures of the integration tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace import core
from tests.integration.driver import Project
from tests.integration.postgres import PostgresProject
from tests.servers.cluster import Database

_KEPT_BYTES = 5_000_000


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """An empty project. Its large files do not outlive the test: pytest keeps folders for a while."""
    with _small_folder(tmp_path) as folder:
        yield Project(folder)


@pytest.fixture
def warehouse(tmp_path: Path, database: Database) -> Iterator[PostgresProject]:
    """An empty project that loads into an empty PostgreSQL database."""
    with _small_folder(tmp_path) as folder:
        yield PostgresProject(folder, database)


@contextmanager
def _small_folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "project"
    folder.mkdir()
    yield folder
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size > _KEPT_BYTES:
            path.unlink()


@pytest.fixture(scope="session")
def tpch_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TPC-H text of scale 0.05 (54 MB): eight files per large table."""
    return _generated(tmp_path_factory.mktemp("tpch"), "0.05", chunks=8)


@pytest.fixture(scope="session")
def brief_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same at scale 0.02 (21 MB), for loads that are repeated often."""
    return _generated(tmp_path_factory.mktemp("brief"), "0.02", chunks=8)


@pytest.fixture(scope="session")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All eight tables at scale 0.01, in three chunks."""
    return _generated(tmp_path_factory.mktemp("small"), "0.01", chunks=3)


def _generated(folder: Path, scale: str, chunks: int) -> Path:
    """TPC-H text, made by the command line."""
    project = Project(folder)
    command = [sys.executable, "-m", "headrace", "generate", "tpch", "--scale", scale, "--chunks", str(chunks)]
    ended = project.command([*command, "--out", str(project.inbox), "--json"])
    assert ended.exit_code == 0, ended.stderr
    return project.inbox


@pytest.fixture(params=core.cpu_paths())
def cpu_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every instruction set of this machine, for the command lines that a test runs."""
    monkeypatch.setenv("HEADRACE_CPU", request.param)
    return str(request.param)
