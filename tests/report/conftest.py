"""Run folders and their reports, made once for all tests of a kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.report import write_report
from tests.report import chromium
from tests.report.scenarios import SCENARIOS, postgres_hour

RUN_ID = "20261120-010000-abc123"


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a scenario; read it only. `hour` has 900 moments: as many points as can be drawn, in less time."""
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            folder = tmp_path_factory.mktemp(name) / RUN_ID
            made[name] = postgres_hour(folder, step=4.0) if name == "hour" else SCENARIOS[name](folder)
        return made[name]

    return make


@pytest.fixture(scope="session")
def report_of(run_folder: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The report of a scenario; `duckdb` is compared with `many_slices`."""
    made: dict[str, Path] = {}

    def draw(name: str) -> Path:
        if name not in made:
            against = run_folder("many_slices") if name == "duckdb" else None
            output = tmp_path_factory.mktemp("reports") / f"{name}.html"
            made[name] = write_report(run_folder(name), output, against).path
        return made[name]

    return draw


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    """A headless Chromium. Where there is none the tests are skipped, but fail where it must be there."""
    found = chromium.program()
    if found is None and os.environ.get(chromium.REQUIRED_VARIABLE) == "1":
        raise AssertionError("there is no Chromium, although .ci/install-chromium has run")
    if found is None:
        pytest.skip("NOT CHECKED: the report in a browser needs Chromium (.ci/install-chromium)")
    with chromium.Browser(found) as own:
        yield own
