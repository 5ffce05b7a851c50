"""Divided loads into DuckDB that are killed: nothing half-loaded is visible, in the view or in any table of it, and the
next run, or `resume`, ends with what an undisturbed run would have loaded.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.moments import START_SECONDS, Moments

pytestmark = pytest.mark.faults

TABLE = "lineitem"
AFTERWARDS = ("run", "resume")
# `make soak` sets it. Divided over the tests below, at least so many in all.
KILLS = int(os.environ.get("HEADRACE_SOAK_KILLS", "8"))
YEARS = "range: {column: l_shipdate, every: 1 year}"
# Of January 1992 there are some rows, and the last day there are some on is the first of December 1998.
MONTHS = "range: {column: l_shipdate, every: 1 month, from: 1992-02-01, to: 1998-12-01}"


@dataclass(frozen=True)
class Case:
    """How the disturbed run loads into the table that is there. `early`: how that one was made, if otherwise."""

    clauses: str
    target: str
    early: str | None = None


CASES: Final = {
    "view replaced": Case(f"load: view, partition: {{{YEARS}}}", "replace"),
    # Some tables are there, others are made.
    "view appended to": Case(
        f"load: view, partition: {{{YEARS}}}",
        "append",
        f"load: view, partition: {{{YEARS[:-1]}, from: 1992-01-01, to: 1997-01-01}}}}",
    ),
    "view by hash": Case("load: view, partition: {hash: {column: l_orderkey, parts: 5}}", "append"),
    "one partition of a view": Case(
        f"load: view, partition: {{{YEARS}}}, partitions: [lineitem_1998]",
        "replace",
        f"load: view, partition: {{{YEARS}}}",
    ),
    "one table": Case(f"partition: {{{MONTHS}}}", "replace"),
}


def content(project: Project) -> list[tuple[Any, ...]]:
    """How tables and views are defined, a sum over the rows of each, and what the ledger knows of views."""
    kinds = "SELECT table_name, sql FROM duckdb_tables() {0} UNION ALL SELECT view_name, sql FROM duckdb_views() {0}"
    found = project.query(kinds.format("WHERE schema_name = 'main' AND NOT internal") + " ORDER BY 1")
    sums = [project.query(f"SELECT count(*), sum(hash(t))::VARCHAR FROM {name} AS t")[0] for name, _ in found]
    divided = project.query("FROM headrace.divided_view")
    return [*(row + total for row, total in zip(found, sums, strict=True)), *divided]


@dataclass(frozen=True)
class Scene:
    """A database that holds one file; the run adds all files or replaces by them. `summary`: of an undisturbed run."""

    case: Case
    template: Path
    files: Sequence[Path]
    before: list[tuple[Any, ...]] = field(repr=False)
    after: list[tuple[Any, ...]] = field(repr=False)
    summary: dict[str, Any] = field(repr=False)

    @classmethod
    def make(cls, case: Case, files: Sequence[Path], folder: Path) -> Scene:
        """Loads everything once."""
        whole = Case(case.early or case.clauses, "create")
        early = cls(whole, Path(), files[:1], [], [], {}).project(folder / "early")
        early.command(cls.command(whole, early)).succeeded()
        scene = cls(case, early.database, files, content(early), [], {})
        undisturbed = scene.project(folder / "undisturbed")
        summary = undisturbed.command(cls.command(case, undisturbed)).succeeded()
        after = content(undisturbed)
        assert scene.before != after
        assert undisturbed.leftovers() == []
        return cls(case, early.database, files, scene.before, after, summary)

    def project(self, folder: Path) -> Project:
        """A project on a copy of the database."""
        folder.mkdir()
        project = Project(folder)
        project.tpch(TABLE)
        package = (folder / "package.yaml").read_text()
        package = package.replace("      sources:", "      rejects: {limit: 1000000}\n      sources:")
        project.package(package.replace('"${target}"}', f'"${{target}}", {self.case.clauses}}}'))
        project.link(self.files)
        if self.template != Path():
            shutil.copyfile(self.template, project.database)
        return project

    @staticmethod
    def command(case: Case, project: Project) -> list[str]:
        """The run that is disturbed."""
        return project.arguments(target=case.target)

    def moments(self, count: int) -> Moments:
        """Spread over the whole run, and a little longer."""
        return Moments(float(self.summary["seconds"]) * 1.2, count, first=START_SECONDS)

    def kill(self, project: Project, command: list[str], moment: float) -> bool:
        """Whether it was still running; nothing half-loaded must be there."""
        with project.started(command) as running:
            running.wait_until(moment)
            running.end()
            assert running.ended is not None
            was_killed = running.ended.exit_code == -signal.SIGKILL
        assert content(project) in (self.before, self.after), f"killed after {moment:.3f} s"
        return was_killed

    def finish(self, project: Project, afterwards: str) -> None:
        """Runs again or resumes, and checks the end."""
        if project.ledger().count("success") > 1:  # what was there before is the first one
            project.execute()  # killed behind its end, a run leaves DuckDB's log to whoever opens the file next
        else:
            ended = project.resume() if afterwards == "resume" else self.run_again(project)
            if ended.exit_code == 6:  # it died before there was anything to resume
                ended = self.run_again(project)
            for name in ("rows_read", "rows_loaded", "rows_rejected"):
                assert ended.succeeded()[name] == self.summary[name], name
        self.check_complete(project)

    def run_again(self, project: Project) -> Ended:
        """Another run; rows that the one before has appended without saying so are not appended again."""
        ended = project.command(self.command(self.case, project))
        return project.resume() if self.case.target == "append" and "resume" in ended.error else ended

    def check_complete(self, project: Project) -> None:
        """As after an undisturbed run: rows, tables, ledger, and nothing else."""
        assert content(project) == self.after
        assert project.leftovers() == []
        states = project.ledger()
        assert states[-1] == "success"
        assert set(states) <= {"success", "lost"}
        [(rows, rejected)] = project.query(
            'SELECT sum(rows_loaded), sum(rows_rejected) FROM headrace."commit" '
            "WHERE run_id = (SELECT arg_max(run_id, started_at) FROM headrace.run)"
        )
        assert (rows, rejected) == (self.summary["rows_loaded"], self.summary["rows_rejected"])


@pytest.fixture(scope="module")
def scenes(tpch_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scene]:
    """Each is made once, when it is first asked for."""
    made: dict[str, Scene] = {}

    def scene(name: str) -> Scene:
        if name not in made:
            files = sorted(tpch_files.glob(f"{TABLE}.tbl.*"))
            made[name] = Scene.make(CASES[name], files, tmp_path_factory.mktemp("scene"))
        return made[name]

    return scene


@pytest.mark.in_turn("afterwards")
@pytest.mark.parametrize("afterwards", AFTERWARDS)
@pytest.mark.parametrize("name", CASES)
def test_killed(scenes: Callable[[str], Scene], tmp_path: Path, name: str, afterwards: str) -> None:
    scene = scenes(name)
    kills = -(-KILLS // (len(CASES) * len(AFTERWARDS)))
    moments = scene.moments(kills)
    for number, moment in enumerate(moments):
        project = scene.project(tmp_path / str(number))
        moments.in_time(scene.kill(project, scene.command(scene.case, project), moment))
        scene.finish(project, afterwards)


@pytest.mark.parametrize("name", CASES)
def test_killed_while_rows_arrive_and_again(scenes: Callable[[str], Scene], tmp_path: Path, name: str) -> None:
    """In the middle of its transaction; then what goes on with it is killed too, at any moment."""
    scene = scenes(name)
    project = scene.project(tmp_path / "project")
    with project.started(scene.command(scene.case, project)) as running:
        project.wait_for_event(running, "task_started", table=TABLE)
        running.wait_until(random.random() * float(scene.summary["phases"]["load"]))
        running.end()
        assert running.ended is not None
        was_killed = running.ended.exit_code == -signal.SIGKILL
    assert content(project) in (scene.before, scene.after)
    if was_killed:
        scene.kill(project, project.resume_command(), next(iter(scene.moments(1))))
    scene.finish(project, "resume")
