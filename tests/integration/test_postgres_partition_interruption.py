"""Loads of divided tables, and loads that commit on the way, that are killed or lose a session: nothing half-loaded is
visible, and the next run, or `resume`, ends with what an undisturbed run would have loaded, in every partition.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Ended
from tests.integration.moments import START_SECONDS, Moments
from tests.integration.partition_scenes import CASES, Scene
from tests.integration.postgres import PostgresProject
from tests.integration.proxy import Proxy
from tests.integration.test_postgres_interruption import (
    AFTERWARDS,
    KILLS,
    TERMINATIONS,
    check_lost_connection,
    terminate,
)
from tests.patience import HANG_SECONDS
from tests.servers.cluster import LOADER, Cluster

pytestmark = pytest.mark.faults

# Slices of which all units have committed. Those with rejects are read once more, for the rejects.
ADOPTED = """
SELECT count(*), coalesce(sum(end_byte - begin_byte) FILTER (WHERE rejected = 0), 0)
FROM (SELECT begin_byte, end_byte, units, count(*) AS found, sum(rows_rejected) AS rejected
  FROM headrace.slice JOIN headrace."commit" USING (run_id, task, slice)
  WHERE slice > 0 AND run_id = (SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)
  GROUP BY slice, begin_byte, end_byte, units) s
WHERE found = units
"""


def _each(total: int) -> int:
    return -(-total // (len(CASES) * len(AFTERWARDS)))


@pytest.fixture(scope="module")
def scenes(postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scene]:
    """Each is made once, when it is first asked for."""
    made: dict[str, Scene] = {}

    def scene(name: str) -> Scene:
        if name not in made:
            made[name] = Scene.make(name, postgres, tmp_path_factory.mktemp("scene"))
        return made[name]

    return scene


def moments_of(scene: Scene, count: int) -> Moments:
    """Spread over the whole run, and a little longer."""
    return Moments(float(scene.summary["seconds"]) * 1.5, count, first=START_SECONDS)


def adopted(project: PostgresProject) -> tuple[int, int]:
    """Complete slices of the last run, and the bytes of them that `resume` need not read."""
    [(slices, size)] = project.query(ADOPTED)
    return int(str(slices)), int(str(size))


def finish(scene: Scene, project: PostgresProject, afterwards: str) -> None:
    """Runs again or resumes, and checks the end."""
    if afterwards == "resume" and project.ledger()[-1] != "success":
        before = adopted(project)[1] if scene.case.is_committing else 0
        ended = project.resume()
        if ended.exit_code == 0:
            check_resumed(scene, project, ended, before)
            return
        # The run ended before the server knew of it: nothing to resume.
        assert ended.summary["error"]["kind"] == "command_line", ended.stderr
    if project.content() == scene.after and project.ledger()[-1] == "success":
        scene.check_complete(project)
        return
    ended = project.command(scene.command(project))
    if scene.case.target == "append" and "resume" in ended.error:
        # Rows that are there are not appended again by another run.
        ended = project.resume()
    ended.succeeded()
    scene.check_complete(project)


def check_resumed(scene: Scene, project: PostgresProject, ended: Ended, adopted_bytes: int) -> None:
    """It has read exactly what was not complete, and says what the whole load was."""
    summary = ended.succeeded()
    scene.check_complete(project)
    scene.check_accounts(project, summary)
    if scene.case.is_committing and summary["bytes_read"] > 0:
        assert summary["bytes_read"] == scene.summary["bytes_read"] - adopted_bytes


@pytest.mark.in_turn("afterwards")
@pytest.mark.parametrize("afterwards", AFTERWARDS)
@pytest.mark.parametrize("name", CASES)
def test_killed(scenes: Callable[[str], Scene], tmp_path: Path, name: str, afterwards: str) -> None:
    scene = scenes(name)
    moments = moments_of(scene, _each(KILLS))
    for number, moment in enumerate(moments):
        with scene.project(tmp_path / str(number)) as project:
            with project.started(scene.command(project)) as running:
                running.wait_until(moment)
                running.end()
                assert running.ended is not None
                moments.in_time(running.ended.exit_code == -signal.SIGKILL)
            scene.check_nothing_half_loaded(project)
            finish(scene, project, afterwards)


@pytest.mark.in_turn("afterwards")
@pytest.mark.parametrize("afterwards", AFTERWARDS)
@pytest.mark.parametrize("name", CASES)
def test_sessions_are_terminated(scenes: Callable[[str], Scene], tmp_path: Path, name: str, afterwards: str) -> None:
    """One session of those that are there, whichever it is: the controlling one or one of the writers."""
    scene = scenes(name)
    moments = moments_of(scene, _each(TERMINATIONS))
    for number, moment in enumerate(moments):
        with scene.project(tmp_path / str(number)) as project:
            with project.started(scene.command(project)) as running:
                running.wait_until(moment)
                found = 0  # a run may have ended before
                while running.poll() is None and not (found := terminate(project)):
                    time.sleep(0.002)
                moments.in_time(found > 0)
                ended = running.wait()
            scene.check_nothing_half_loaded(project)
            if ended.exit_code == 0:
                scene.check_complete(project)
            else:
                check_lost_connection(ended)
                finish(scene, project, afterwards)


# The session that ends the run loses its server behind the last commit.
BEHIND_THE_LAST_COMMIT = f"""
DO $$ BEGIN
  WHILE clock_timestamp() < now() + interval '30 s' LOOP
    PERFORM FROM headrace."commit" WHERE slice = 0
      AND run_id = (SELECT run_id FROM headrace.run ORDER BY started_at OFFSET 1 LIMIT 1);
    IF FOUND THEN
      PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND usename = '{LOADER}';
      RETURN;
    END IF;
    PERFORM pg_sleep(0.0005);
  END LOOP;
END $$
"""


@pytest.mark.parametrize("name", ["hash append committing", "home"])
def test_terminated_behind_the_last_commit(scenes: Callable[[str], Scene], tmp_path: Path, name: str) -> None:
    """The run is a success, also in the ledger: otherwise nobody could append again, and nothing is left to resume."""
    scene = scenes(name)
    with scene.project(tmp_path / "project") as project:
        with project.started(scene.command(project)) as running:
            project.target.psql(BEHIND_THE_LAST_COMMIT)
            running.wait().succeeded()
        scene.check_complete(project)
        project.run(files="early", target="append").succeeded()


# --- between two commits ----------------------------------------------------------------------------------------------

# How many commits of units pass before the client dies in the middle of the next one. Each stream commits its strays
# and then their home; with a commit size the units of an epoch commit behind each other, twelve months or five parts.
BETWEEN = {
    "home": (1, 3),
    "home append": (5,),
    "months": (1, 7),
    "home committing": (1, 9),
    "months committing": (5, 12 + 7),
    "hash append committing": (3, 3 * 5 + 2),
    "server committing": (3,),
    "server any case append committing": (2,),
    "plain committing": (4,),
    "plain append committing": (4,),
}


@pytest.mark.in_turn("arrives")
@pytest.mark.parametrize("arrives", [True, False], ids=["answer lost", "request lost"])
@pytest.mark.parametrize(
    ("name", "commits"), [(name, number) for name, numbers in BETWEEN.items() for number in numbers]
)
def test_killed_between_two_commits(
    scenes: Callable[[str], Scene], tmp_path: Path, name: str, commits: int, arrives: bool
) -> None:
    """Some units of a slice have committed, the next one commits without its client or not at all, the others not."""
    scene = scenes(name)
    port = scene.template.cluster.port
    with (
        Proxy(port, commits=commits, last_arrives=arrives) as proxy,
        scene.project(tmp_path / "p", proxy.port) as project,
    ):
        with project.started(scene.command(project)) as running:
            wait_for(lambda: proxy.is_stalled or running.poll() is not None)
            assert running.poll() is None, running.stderr
            running.end()
        wait_for(lambda: committed_units(project) >= commits + arrives)
        found = committed_units(project)
        scene.check_nothing_half_loaded(project)
        proxy.let_go()
        wait_for(lambda: not sessions(project))
        assert committed_units(project) == found
        scene.check_nothing_half_loaded(project)
        before = adopted(project)
        check_resumed(scene, project, project.resume(), before[1])


def committed_units(project: PostgresProject) -> int:
    """Commit rows of the last run."""
    [(count,)] = project.query(
        'SELECT count(*) FROM headrace."commit" '
        "WHERE run_id = (SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)"
    )
    return int(str(count))


def sessions(project: PostgresProject) -> list[Any]:
    """Those of the loader."""
    return project.query(
        f"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND usename = '{LOADER}'"
    )


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Until it holds."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
