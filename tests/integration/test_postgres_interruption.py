"""Clients that are killed, sessions that are ended, servers that restart, connections that are cut: nothing half-loaded
is ever visible, and the next run, or `resume`, ends with what an undisturbed run would have loaded.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.driver import Ended, Running
from tests.integration.moments import START_SECONDS, Moments
from tests.integration.postgres import CREATE_ORDERS, Content, PostgresProject
from tests.integration.proxy import Proxy
from tests.patience import HANG_SECONDS
from tests.servers.cluster import LOADER, Cluster, Database
from tests.servers.farm import Farm
from tests.snapshots import assert_snapshot

pytestmark = pytest.mark.faults

# Loaded in this order.
LOADED = ("orders", "lineitem", "partsupp")
MODES = ("staged", "single")
AFTERWARDS = ("run", "resume")
# `make soak` sets these. Divided over the tests below, at least so many in all.
KILLS = int(os.environ.get("HEADRACE_SOAK_KILLS", "8"))
TERMINATIONS = int(os.environ.get("HEADRACE_SOAK_TERMINATIONS", "8"))
SESSIONS = f"datname = current_database() AND usename = '{LOADER}'"


def _each(total: int) -> int:
    combinations = len(MODES) * len(AFTERWARDS)
    return -(-total // combinations)


@dataclass(frozen=True)
class Scene:
    """A database that holds the first files of three tables; the run replaces them by all files.

    `seconds`: how long that takes undisturbed; `rows`: what it loads.
    """

    mode: str
    files: Path
    template: Database
    before: Content
    after: Content
    seconds: float
    rows: int

    @classmethod
    def make(cls, mode: str, cluster: Cluster, all_files: Path, folder: Path) -> Scene:
        """Loads the first files into a database that serves as template, and all files into a copy of it."""
        first_files = folder / "first"
        first_files.mkdir()
        for file in all_files.glob("*.tbl.1"):
            (first_files / file.name).symlink_to(file)
        (folder / "before").mkdir()
        project = PostgresProject(folder / "before", cluster.create_database())
        project.command(project.example(first_files, mode=mode, tables=LOADED)).succeeded()
        before = project.content()
        assert project.left_in_database() == []
        (folder / "after").mkdir()
        with cluster.database(options=f'TEMPLATE "{project.target.name}"') as database:
            undisturbed = PostgresProject(folder / "after", database)
            summary = undisturbed.command(undisturbed.example(all_files, mode=mode, tables=LOADED)).succeeded()
            after = undisturbed.content()
        assert all(before.only(table) != after.only(table) for table in LOADED)
        return cls(mode, all_files, project.target, before, after, summary["seconds"], summary["rows_loaded"])

    @contextmanager
    def project(self, folder: Path, proxy_port: int | None = None) -> Iterator[PostgresProject]:
        """A project on a fresh copy of the template."""
        folder.mkdir()
        with self.template.cluster.database(options=f'TEMPLATE "{self.template.name}"') as database:
            project = PostgresProject(folder, database)
            if proxy_port is not None:
                project.url = project.url.replace(f":{database.cluster.port}", f":{proxy_port}")
            yield project

    def command(self, project: PostgresProject) -> list[str]:
        """The run that is disturbed."""
        return project.example(self.files, mode=self.mode, tables=LOADED)

    def moments(self, count: int) -> Moments:
        """Spread over the whole run."""
        return Moments(self.seconds, count, first=START_SECONDS)

    def check_nothing_half_loaded(self, project: PostgresProject) -> None:
        """Every table is as before or as after the run, with all its partitions, and there are no other tables."""
        content = project.content()
        parts = [content.only(table) for table in LOADED]
        for table, part in zip(LOADED, parts, strict=True):
            assert part in (self.before.only(table), self.after.only(table)), table
        assert sorted(entry for part in parts for entry in part.tables) == sorted(content.tables)

    def check_complete(self, project: PostgresProject) -> None:
        """As after an undisturbed run: rows, ledger, and nothing else."""
        assert project.content() == self.after
        assert project.left_in_database() == []
        states = project.ledger()
        assert states[-1] == "success"
        assert set(states) <= {"success", "lost", "failed"}
        committed = project.query(
            'SELECT sum(rows_loaded) FROM headrace."commit" '
            "WHERE run_id = (SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)"
        )
        assert committed == [(str(self.rows),)]

    def finish(self, project: PostgresProject, afterwards: str) -> None:
        """Runs again or resumes, and checks the end."""
        command = self.command(project)
        if afterwards == "resume":
            unfinished = project.ledger()[-1] == "running"
            ended = project.resume()
            assert ended.exit_code == 0 or not unfinished, ended.stderr
            # Otherwise the run ended before the server knew of it, or as a success or failure: nothing to resume.
            assert "Traceback" not in ended.stderr
            if ended.exit_code == 0 or project.content() == self.after:
                return self.check_complete(project)
        project.command(command).succeeded()
        return self.check_complete(project)


@pytest.fixture(scope="module", params=MODES)
def scene(
    request: pytest.FixtureRequest, postgres: Cluster, brief_files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    return Scene.make(request.param, postgres, brief_files, tmp_path_factory.mktemp("scene"))


# --- the client dies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_killed(scene: Scene, tmp_path: Path, afterwards: str) -> None:
    moments = scene.moments(_each(KILLS))
    for number, moment in enumerate(moments):
        with scene.project(tmp_path / str(number)) as project:
            with project.started(scene.command(project)) as running:
                running.wait_until(moment)
                running.end()
                assert running.ended is not None
                moments.in_time(running.ended.exit_code == -signal.SIGKILL)
            scene.check_nothing_half_loaded(project)
            scene.finish(project, afterwards)


@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_killed_again_and_again(scene: Scene, tmp_path: Path, afterwards: str) -> None:
    """Each time on what the run before has left."""
    with scene.project(tmp_path / "project") as project:
        moments = scene.moments(4)
        for moment in moments:
            command = scene.command(project)
            if afterwards == "resume" and project.ledger()[-1] == "running":
                command = project.resume_command()
            with project.started(command) as running:
                running.wait_until(moment)
                running.end()
                assert running.ended is not None
                moments.in_time(running.ended.exit_code == -signal.SIGKILL)
            scene.check_nothing_half_loaded(project)
        scene.finish(project, afterwards)


@pytest.mark.parametrize("moment", range(4))
def test_killed_while_appending(warehouse: PostgresProject, tpch_files: Path, moment: int) -> None:
    """Writers of `append` commit one after the other: what is committed stays, and is never appended twice."""
    warehouse.tpch("lineitem")
    warehouse.link(tpch_files.glob("lineitem.*"))
    rows = sum(file.read_bytes().count(b"\n") for file in tpch_files.glob("lineitem.*"))
    undisturbed = warehouse.run("--streams", "4", target="append")
    assert undisturbed.succeeded()["rows_loaded"] == rows
    single = warehouse.content()
    with warehouse.started(warehouse.arguments("--streams", "4", target="append")) as running:
        # The last quarter of the run holds the commits.
        running.wait_until(START_SECONDS + undisturbed.summary["seconds"] * (0.7 + 0.1 * moment))
        running.end()
    [(committed, last)] = warehouse.query(
        "SELECT coalesce(sum(rows_loaded), 0), (SELECT status FROM headrace.run ORDER BY started_at DESC LIMIT 1) "
        'FROM headrace."commit"'
    )
    assert warehouse.query("SELECT count(*) FROM lineitem") == [(committed,)]
    if last == "running" and rows < int(str(committed)) < 2 * rows:
        again = warehouse.run(target="append")
        assert again.exit_code == 1
        assert "resume" in again.error
        assert warehouse.query("SELECT count(*) FROM lineitem") == [(committed,)]
    if last == "running":
        warehouse.resume().succeeded()
    elif int(str(committed)) == rows:
        warehouse.run(target="append").succeeded()
    [(name, count, total)] = warehouse.content().tables
    assert (name, int(count), int(total)) == ("public.lineitem", 2 * rows, 2 * int(single.tables[0][2]))
    assert warehouse.left_in_database() == []


@pytest.fixture
def half_appended(warehouse: PostgresProject) -> PostgresProject:
    """A run has died between the commits of its two writers, as the ledger says."""
    warehouse.execute(CREATE_ORDERS)
    warehouse.file("orders.tbl.1")
    warehouse.file("orders.tbl.2")
    assert warehouse.run(target="append").succeeded()["rows_loaded"] == 2 * 100
    warehouse.execute(
        "UPDATE headrace.run SET status = 'failed'",
        'DELETE FROM headrace."commit" WHERE slice = (SELECT max(slice) FROM headrace."commit")',
    )
    return warehouse


def test_what_was_half_appended_is_given_up_by_hand(half_appended: PostgresProject) -> None:
    """Resume would go on, --abandon starts anew."""
    refused = half_appended.run(target="append")
    assert (refused.exit_code, half_appended.query("SELECT count(*) FROM orders")) == (1, [("200",)])
    assert_snapshot("postgres_half_appended_by_another_run", half_appended.stable(refused.error))
    half_appended.run("--abandon", target="append").succeeded()
    half_appended.run(target="append").succeeded()
    assert half_appended.query("SELECT count(*) FROM orders") == [("600",)]
    assert half_appended.ledger() == ["abandoned", "success", "success"]


def test_what_was_half_appended_and_replaced_since_is_in_nobodys_way(half_appended: PostgresProject) -> None:
    half_appended.run(target="replace").succeeded()
    half_appended.run(target="append").succeeded()
    assert half_appended.query("SELECT count(*) FROM orders") == [("400",)]
    assert half_appended.ledger() == ["failed", "success", "success"]


# --- the server ends sessions -----------------------------------------------------------------------------------------


def terminate(project: PostgresProject, condition: str = "true", limit: int = 1) -> int:
    """Ends so many of the loader's sessions; the number of those that were there."""
    return len(
        project.query(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity "
            f"WHERE {SESSIONS} AND {condition} ORDER BY random() LIMIT {limit}) s"
        )
    )


def check_lost_connection(ended: Ended) -> None:
    """The run failed, and said that trying again can help.

    Who notices first is chance, and so whether the message has the server's last words or those of the system.
    """
    assert ended.exit_code == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    error = ended.summary["error"]
    assert (error["kind"], error["retryable"]) == ("target_busy", True), ended.error


@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_sessions_are_terminated(scene: Scene, tmp_path: Path, afterwards: str) -> None:
    """One session of those that are there, whichever it is: the controlling one or a writer."""
    moments = scene.moments(_each(TERMINATIONS))
    for number, moment in enumerate(moments):
        with scene.project(tmp_path / str(number)) as project:
            with project.started(scene.command(project)) as running:
                running.wait_until(moment)
                found = 0  # a run may have ended before
                while running.poll() is None and not (found := terminate(project)):
                    time.sleep(0.002)
                ended = running.wait()
                moments.in_time(found > 0)
            scene.check_nothing_half_loaded(project)
            if ended.exit_code == 0:
                scene.check_complete(project)
            else:
                check_lost_connection(ended)
                scene.finish(project, afterwards)


@pytest.fixture
def long_run(warehouse: PostgresProject, tpch_files: Path) -> list[str]:
    """The command for a package whose second table takes long: 4 GB of text."""
    warehouse.tpch("region", "lineitem")
    warehouse.link(tpch_files.glob("lineitem.*"), copies=100)
    warehouse.link([tpch_files / "region.tbl"])
    return warehouse.arguments()


@contextmanager
def loading(project: PostgresProject, command: list[str]) -> Iterator[Running]:
    """A run whose writers are in the middle of the second table."""
    with project.started(command) as running:
        project.wait_for_event(running, "task_started", table="lineitem")
        copying = f"SELECT 1 FROM pg_stat_progress_copy JOIN pg_stat_activity USING (pid, datname) WHERE {SESSIONS}"
        deadline = time.monotonic() + HANG_SECONDS
        while not project.query(f"{copying} AND tuples_processed > 1000"):
            assert running.poll() is None and time.monotonic() < deadline, running.stderr
            time.sleep(0.01)
        yield running


def check_shorter_run(project: PostgresProject) -> None:
    """The same package with one file of LINEITEM succeeds, and clears away what the run before has left."""
    for file in sorted(project.inbox.glob("lineitem.*"))[1:]:
        file.unlink()
    project.run().succeeded()
    assert (project.tables(), project.leftovers()) == (["public.lineitem", "public.region"], [])


WRITING = "pid IN (SELECT pid FROM pg_stat_progress_copy)"


@pytest.mark.parametrize(
    "condition", [WRITING, f"NOT {WRITING}", "true"], ids=["a writer", "the control connection", "all"]
)
def test_terminated_while_loading(warehouse: PostgresProject, long_run: list[str], condition: str) -> None:
    with loading(warehouse, long_run) as running:
        asked = time.monotonic()
        assert terminate(warehouse, condition, limit=1 if condition == WRITING else 100)
        ended = running.wait()
        assert time.monotonic() - asked < HANG_SECONDS
    check_lost_connection(ended)
    assert warehouse.tables() == ["public.region"]
    check_shorter_run(warehouse)


def test_application_names_say_who_a_session_is(warehouse: PostgresProject, long_run: list[str]) -> None:
    """Run, task and writer, in at most 63 bytes."""
    with loading(warehouse, long_run) as running:
        [run_started] = [event for event in warehouse.events() if event["event"] == "run_started"]
        names = warehouse.query(f"SELECT application_name, {WRITING} FROM pg_stat_activity WHERE {SESSIONS}")
        running.end()
    assert len(names) >= 2
    assert len({name for name, writing in names if writing == "t"}) == sum(writing == "t" for _, writing in names)
    for name, writing in names:
        assert name is not None and str(run_started["run_id"])[-6:] in name and len(name.encode()) <= 63
        assert writing == "f" or "lineitem" in name


# --- the server restarts, or cannot be reached ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_cluster(servers: Farm) -> Iterator[Cluster]:
    cluster = servers.cluster()
    yield cluster
    servers.remove(cluster)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_the_server_restarts(own_cluster: Cluster, tpch_files: Path, tmp_path: Path, mode: str) -> None:
    with own_cluster.database() as database:
        (tmp_path / "project").mkdir()
        project = PostgresProject(tmp_path / "project", database)
        project.tpch("region", "lineitem")
        project.link(tpch_files.glob("lineitem.*"), copies=100)
        project.link([tpch_files / "region.tbl"])
        with loading(project, project.arguments()) as running:
            own_cluster.restart(mode)
            ended = running.wait()
        check_lost_connection(ended)
        assert project.tables() == ["public.region"]
        check_shorter_run(project)


def test_the_server_is_stopped(own_cluster: Cluster, tmp_path: Path) -> None:
    """Refused while it is down; the same command works when it is up again."""
    with own_cluster.database() as database:
        (tmp_path / "project").mkdir()
        project = PostgresProject(tmp_path / "project", database)
        project.file("orders.tbl.1")
        own_cluster.stop()
        ended = project.run()
        own_cluster.start()
        check_lost_connection(ended)
        assert_snapshot("postgres_refused", project.stable(ended.error))
        assert project.run().succeeded()["rows_loaded"] == 100


@pytest.mark.in_turn("scene")
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.4, 0.7, 0.95, 0.9999])
def test_the_connection_is_cut(scene: Scene, tmp_path: Path, share: float) -> None:
    """When this share of the bytes of an undisturbed run has been sent; the last one hits the end of the run."""
    port = scene.template.cluster.port
    with Proxy(port) as proxy, scene.project(tmp_path / "measured", proxy.port) as project:
        project.command(scene.command(project)).succeeded()
        total = proxy.bytes_sent
    cut_after = max(1, int(total * share))
    with Proxy(port, cut_after) as proxy, scene.project(tmp_path / "cut", proxy.port) as project:
        ended = project.command(scene.command(project))
        scene.check_nothing_half_loaded(project)
        if ended.exit_code == 0:
            scene.check_complete(project)
            return
        check_lost_connection(ended)
        scene.finish(project, AFTERWARDS[int(share * 1000) % 2])


def test_cut_while_loading(warehouse: PostgresProject, long_run: list[str]) -> None:
    with Proxy(warehouse.target.cluster.port) as proxy:
        warehouse.url = warehouse.url.replace(f":{warehouse.target.cluster.port}", f":{proxy.port}")
        warehouse.tpch("region", "lineitem")
        with loading(warehouse, long_run) as running:
            proxy.cut()
            ended = running.wait()
    check_lost_connection(ended)


# --- cancelled --------------------------------------------------------------------------------------------------------


def check_cancelled(running: Running, send: Callable[[], None]) -> Ended:
    """Ends with 3, soon."""
    asked = time.monotonic()
    send()
    ended = running.wait()
    assert ended.exit_code == 3, ended.stderr
    assert time.monotonic() - asked < HANG_SECONDS
    assert "Traceback" not in ended.stderr
    return ended


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_cancelled(warehouse: PostgresProject, long_run: list[str], number: signal.Signals) -> None:
    with loading(warehouse, long_run) as running:
        ended = check_cancelled(running, lambda: running.signal(number))
    assert_snapshot("postgres_cancelled", warehouse.stable(ended.error))
    assert ended.summary["rows_loaded"] == 5
    assert (warehouse.tables(), warehouse.ledger(), warehouse.leftovers()) == (["public.region"], ["cancelled"], [])


def test_cancelled_while_the_network_is_stalled(warehouse: PostgresProject, long_run: list[str]) -> None:
    with Proxy(warehouse.target.cluster.port) as proxy:
        warehouse.url = warehouse.url.replace(f":{warehouse.target.cluster.port}", f":{proxy.port}")
        warehouse.tpch("region", "lineitem")
        with loading(warehouse, long_run) as running:
            proxy.stall()
            time.sleep(0.5)
            check_cancelled(running, lambda: running.signal(signal.SIGINT))


def test_cancelled_while_waiting_for_a_lock(warehouse: PostgresProject, long_run: list[str]) -> None:
    warehouse.lock_timeout_seconds = 60
    warehouse.tpch("region", "lineitem")
    with loading(warehouse, long_run) as first:
        with warehouse.started([*long_run, "--runs-dir", "others"]) as second:
            while second.poll() is None and "waiting up to 60 seconds" not in second.stderr:
                time.sleep(0.01)
            ended = check_cancelled(second, lambda: second.signal(signal.SIGINT))
        assert first.poll() is None
    assert_snapshot("postgres_cancelled_while_waiting", warehouse.stable(ended.error))


# --- several runs, and runs that are not quite dead -------------------------------------------------------------------


@pytest.mark.parametrize("target", ["replace", "append"])
def test_two_runs_into_one_target(warehouse: PostgresProject, tpch_files: Path, target: str) -> None:
    """One waits for the other."""
    warehouse.lock_timeout_seconds = 60
    warehouse.tpch("orders")
    warehouse.link(tpch_files.glob("orders.*"))
    rows = warehouse.run(target="create").succeeded()["rows_loaded"]
    [(_, _, total)] = warehouse.content().tables
    first = warehouse.arguments(target=target)
    second = warehouse.arguments("--runs-dir", "others", target=target)
    with warehouse.started(first) as one, warehouse.started(second) as two:
        one.wait().succeeded()
        two.wait().succeeded()
    factor = 1 if target == "replace" else 3
    assert warehouse.content().tables == (("public.orders", str(factor * rows), str(factor * int(total))),)
    assert warehouse.ledger() == ["success"] * 3
    assert warehouse.left_in_database() == []


def test_the_target_is_busy(warehouse: PostgresProject, long_run: list[str]) -> None:
    """The other run is frozen: after a while the second one says who holds the target."""
    with loading(warehouse, long_run) as first:
        first.freeze()
        ended = warehouse.command([*long_run, "--runs-dir", "others"])
        check_lost_connection(ended)
        assert_snapshot("postgres_busy", warehouse.stable(ended.error))
        first.thaw()
        check_cancelled(first, lambda: first.signal(signal.SIGINT))
    assert warehouse.left_in_database() == []


@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_a_zombie_changes_nothing(scene: Scene, tmp_path: Path, afterwards: str) -> None:
    """A run stands still; the server has given its lock away, but its writers are in the middle of their work."""
    with scene.project(tmp_path / "project") as project:
        with project.started(scene.command(project)) as zombie:
            project.wait_for_event(zombie, "task_started", table="lineitem")
            zombie.freeze()
            assert zombie.ended is None
            terminate(project, f"NOT {WRITING}", limit=100)
            scene.finish(project, afterwards)
            zombie.thaw()
            ended = zombie.wait()
            assert ended.exit_code == 1
            assert "Traceback" not in ended.stderr
        scene.check_complete(project)


# Somebody else seems to be committing the last slice of the run: its writer waits to see what becomes of that.
HOLD_LAST_SLICE = """
BEGIN;
INSERT INTO headrace."commit"
SELECT run.run_id, earlier.task, earlier.slice, earlier."partition", 0, 0, 0, 0, 0, now()
FROM headrace.run, headrace."commit" AS earlier
WHERE status = 'running' AND slice = (SELECT max(slice) FROM headrace."commit")
"""


@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_a_zombie_appends_nothing(warehouse: PostgresProject, tpch_files: Path, afterwards: str) -> None:
    """Its writers have loaded what they took, and wait in open transactions for the word to commit."""
    warehouse.tpch("lineitem")
    warehouse.link(tpch_files.glob("lineitem.*"))
    rows = warehouse.run("--streams", "4").succeeded()["rows_loaded"]
    idle = f"SELECT 1 FROM pg_stat_activity WHERE {SESSIONS} AND state = 'idle in transaction'"
    with warehouse.started(warehouse.arguments("--streams", "4", target="append")) as zombie:
        while not warehouse.query("SELECT 1 FROM headrace.run WHERE status = 'running'"):
            assert zombie.poll() is None, zombie.stderr
        with warehouse.target.session(HOLD_LAST_SLICE):  # one writer waits, so none is told to commit
            while not warehouse.query(f"{idle} AND query LIKE '%commit%'"):
                assert zombie.poll() is None, zombie.stderr
            zombie.freeze()
        assert terminate(warehouse, "application_name LIKE '%control'") == 1
        if afterwards == "resume":
            warehouse.resume().succeeded()
        else:
            warehouse.run("--streams", "4", "--abandon", target="append").succeeded()
        assert warehouse.query(idle) == []
        zombie.thaw()
        assert zombie.wait().exit_code == 1
    assert warehouse.query("SELECT count(*) FROM lineitem") == [(str(2 * rows),)]
    assert warehouse.left_in_database() == []


@pytest.mark.parametrize("change", ["a file", "the package", "no password"])
def test_resume_refuses_what_has_changed(warehouse: PostgresProject, long_run: list[str], change: str) -> None:
    with loading(warehouse, long_run) as running:
        running.end()
    environment = {}
    if change == "a file":
        file = min(warehouse.inbox.glob("lineitem.*"))  # REGION is loaded, nobody asks for its file any more
        with file.open() as text:
            first = text.readline()
        file.unlink()
        file.write_text(first)
    elif change == "the package":
        package = warehouse.folder / "package.yaml"
        package.write_text(package.read_text().replace("streams: 4", "streams: 3"))
    else:
        environment = {"PGPASSWORD": ""}
    ended = warehouse.command(warehouse.resume_command(), environment)
    assert ended.exit_code != 0
    assert "Traceback" not in ended.stderr
    assert_snapshot(f"postgres_resume_{change.replace(' ', '_')}", warehouse.stable(ended.error))
