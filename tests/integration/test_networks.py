"""Loads over networks that are far away, lossy, slow, or gone without a word. Every run ends by itself, and says why;
what a cut has left unfinished is finished by `resume`, with every row once.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.driver import Ended, Running
from tests.integration.postgres import Content, PostgresProject
from tests.patience import HANG_SECONDS, wait_until
from tests.servers.cluster import HOST, LOADER, Cluster, Database
from tests.servers.farm import Farm
from tests.servers.network import Conversation, Faults, Network, missing_for_networks
from tests.stress import go_on, stop

pytestmark = pytest.mark.faults

STALL_SECONDS = 2
SLOW = 1_500_000.0
# The client asks a silent server after a second, and gives it up after two more; so does the server.
CLIENT_KEEPALIVE = "keepalives_idle=1&keepalives_interval=1&keepalives_count=2&connect_timeout=2"
SERVER_KEEPALIVE = {
    "tcp_keepalives_idle": "1",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "3s",
}


class FarProject(PostgresProject):
    """A project whose commands run at the other end of the wire."""

    def __init__(self, folder: Path, database: Database, network: Network) -> None:
        self.network, self.prefix = network, network.inside
        super().__init__(folder, database)
        self.url = f"{database.url.replace(HOST, network.server_address)}?{CLIENT_KEEPALIVE}"
        self.tpch("lineitem")

    def package(self, text: str) -> None:
        """As in `PostgresProject`, with the time limit of these tests."""
        super().package(text)
        path = self.folder / "package.yaml"
        limit = f"lock_timeout_seconds: 60, stall_timeout_seconds: {STALL_SECONDS}"
        path.write_text(path.read_text().replace("lock_timeout_seconds: 1", limit))

    def stable(self, text: str) -> str:
        """Without the addresses of the wire."""
        return super().stable(text).replace(self.network.server_address, "SERVER")


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    missing = missing_for_networks()
    if missing is not None:
        pytest.skip(f"NOT CHECKED: bad networks: {missing}")
    with Network() as network:
        yield network


@pytest.fixture(scope="module")
def far_server(servers: Farm, network: Network) -> Iterator[Cluster]:
    """A server that also listens at its end of the wire."""
    settings = {**SERVER_KEEPALIVE, "listen_addresses": f"'{HOST}, {network.server_address}'"}
    cluster = servers.cluster(settings=settings, started=False)
    with (cluster.data / "pg_hba.conf").open("a") as logins:
        logins.write(f"host all all {network.client_address}/32 scram-sha-256\n")
    cluster.start()
    yield cluster
    servers.remove(cluster)


@pytest.fixture
def far(network: Network, far_server: Cluster, tmp_path: Path, small_files: Path) -> Iterator[FarProject]:
    """An empty database at the other end, and LINEITEM in three files (7 MB)."""
    (tmp_path / "project").mkdir()
    network.heal()
    network.conversations.clear()
    with far_server.database() as database:
        project = FarProject(tmp_path / "project", database, network)
        project.link(small_files.glob("lineitem.*"))
        yield project
        network.heal()


@pytest.fixture(scope="module")
def expected(far_server: Cluster, tmp_path_factory: pytest.TempPathFactory, small_files: Path) -> Content:
    """What an undisturbed run loads."""
    folder = tmp_path_factory.mktemp("near")
    with far_server.database() as database:
        project = PostgresProject(folder, database)
        project.tpch("lineitem")
        project.link(small_files.glob("lineitem.*"))
        project.run().succeeded()
        return project.content()


def check_complete(far: FarProject, expected: Content) -> None:
    """Every row once, and nothing is left of the run that was disturbed."""
    assert far.content() == expected
    assert far.leftovers() == []
    assert far.ledger()[-1] == "success"


def check_given_up(far: FarProject, running: Running, since: float) -> Ended:
    """The run ends by itself, in time, without a stack trace; the rows are not there."""
    ended = running.wait()
    assert time.monotonic() - since < HANG_SECONDS
    assert ended.exit_code == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert far.tables() == []
    return ended


def finish(far: FarProject, expected: Content) -> None:
    """The network is there again: `resume` does the rest."""
    far.network.heal()
    far.resume().succeeded()
    check_complete(far, expected)


def wait_for_bytes(far: FarProject, running: Running, count: int) -> None:
    while far.network.bytes_sent < count:
        assert running.poll() is None, running.stderr
        time.sleep(0.005)


# --- far away, lossy --------------------------------------------------------------------------------------------------


def writers(network: Network) -> list[Conversation]:
    return [found for found in network.conversations.values() if found.client_bytes > 100_000]


def test_round_trips_of_a_writer_do_not_grow_with_its_rows(far: FarProject, expected: Content) -> None:
    """With 50 ms there and back. They are counted, not timed: the machine may be slow."""
    far.network.faults = Faults(delay_seconds=0.025)
    far.run("--streams", "3").succeeded()
    check_complete(far, expected)
    assert len(writers(far.network)) == 3
    # Login 4, its preparation 2, begin, COPY, its end, deferred constraints, ledger, commit.
    assert max(found.round_trips for found in writers(far.network)) <= 14
    # The control connection: 3 for each heartbeat, everything else once per run.
    others = [found for found in far.network.conversations.values() if found.client_bytes <= 100_000]
    assert sum(found.round_trips for found in others) < 150


def test_lost_packets(far: FarProject, expected: Content) -> None:
    far.network.faults = Faults(delay_seconds=0.002, loss=0.01)
    far.run("--streams", "3").succeeded()
    check_complete(far, expected)


# --- gone without a word ----------------------------------------------------------------------------------------------


def test_a_black_hole_in_the_middle_of_a_load(far: FarProject, expected: Content) -> None:
    far.network.faults = Faults(bytes_per_second=SLOW)
    with far.started(far.arguments("--streams", "3")) as running:
        wait_for_bytes(far, running, 2_000_000)
        since = time.monotonic()
        far.network.faults = Faults(is_cut=True)
        ended = check_given_up(far, running, since)
    assert f"no byte has moved for {STALL_SECONDS} s" in ended.error
    assert "What is committed is kept: headrace resume" in ended.error
    finish(far, expected)


def check_all_rows(far: FarProject) -> None:
    """Every row of the files once, and nothing is left of the run that was disturbed."""
    [(name, rows, _)] = far.content().tables
    assert (name, int(rows)) == ("public.lineitem", sum(file.read_bytes().count(b"\n") for file in far.inbox.iterdir()))
    assert far.leftovers() == []


def test_many_writers_in_a_black_hole(far: FarProject, small_files: Path) -> None:
    """It takes no longer with more of them."""
    far.link(small_files.glob("lineitem.*"), copies=6)
    far.network.faults = Faults(bytes_per_second=SLOW)
    with far.started(far.arguments("--streams", "16")) as running:
        wait_for_bytes(far, running, 6_000_000)
        since = time.monotonic()
        far.network.faults = Faults(is_cut=True)
        check_given_up(far, running, since)
    assert len(far.network.conversations) > 16
    far.network.heal()
    far.resume().succeeded()
    check_all_rows(far)


def test_cancelled_in_a_black_hole(far: FarProject) -> None:
    far.network.faults = Faults(bytes_per_second=SLOW)
    with far.started(far.arguments("--streams", "3")) as running:
        wait_for_bytes(far, running, 2_000_000)
        far.network.faults = Faults(is_cut=True)
        since = time.monotonic()
        running.signal(signal.SIGINT)
        assert running.wait().exit_code == 3
        assert time.monotonic() - since < HANG_SECONDS
    assert far.tables() == []


def test_the_server_is_another_one_when_the_network_is_back(far: FarProject, expected: Content) -> None:
    """Half-open connections on our side: nobody told us that their other ends have died."""
    far.network.faults = Faults(bytes_per_second=SLOW)
    with far.started(far.arguments("--streams", "3")) as running:
        wait_for_bytes(far, running, 2_000_000)
        since = time.monotonic()
        far.network.faults = Faults(is_cut=True)
        far.target.cluster.restart("immediate")
        check_given_up(far, running, since)
    finish(far, expected)


@pytest.mark.parametrize("answers", [False, True], ids=["idle", "answering"])
def test_the_machine_of_the_client_vanishes(far: FarProject, expected: Content, answers: bool) -> None:
    """Half-open connections on the server's side: their locks are gone soon, also that of a session whose last answer
    nobody has acknowledged, which keepalive never asks.
    """
    far.network.faults = Faults(bytes_per_second=SLOW)
    with far.started(far.arguments("--streams", "3")) as running:
        wait_for_bytes(far, running, 2_000_000)
        if answers:
            far.network.faults = Faults(bytes_per_second=SLOW, cut_at=b"pg_stat_clear_snapshot")
            while not far.network.faults.is_cut:
                time.sleep(0.01)
        else:
            far.network.faults = Faults(is_cut=True)
        running.end()
    far.network.lose_connections()
    wait_until(lambda: not far.query(f"SELECT application_name FROM pg_stat_activity WHERE usename = '{LOADER}'"))
    far.resume().succeeded()
    check_complete(far, expected)


def test_a_black_hole_while_a_statement_runs(far: FarProject, expected: Content) -> None:
    """Nothing is pending, so nothing is stalled: TCP's keepalive notices that nobody is there."""
    far.run("--streams", "3").succeeded()
    waits = f"SELECT 1 FROM pg_stat_activity WHERE usename = '{LOADER}' AND wait_event_type = 'Lock'"
    reader = far.target.session("BEGIN; LOCK TABLE lineitem IN ACCESS SHARE MODE")
    with reader, far.started(far.arguments("--streams", "3")) as running:
        while not far.query(waits):
            assert running.poll() is None, running.stderr
            time.sleep(0.01)
        since = time.monotonic()
        far.network.faults = Faults(is_cut=True)
        ended = running.wait()
        assert time.monotonic() - since < HANG_SECONDS
        assert ended.exit_code == 1, ended.stderr
        assert far.content() == expected
    assert "was lost" in ended.error
    finish(far, expected)


# --- slow servers -----------------------------------------------------------------------------------------------------


@contextmanager
def frozen_writers(far: FarProject) -> Iterator[None]:
    """The server's processes of all writers stand still."""
    found = far.query(
        f"SELECT pid FROM pg_stat_progress_copy JOIN pg_stat_activity USING (pid) WHERE usename = '{LOADER}'"
    )
    processes = [int(str(pid)) for (pid,) in found]
    assert processes
    for process in processes:
        stop(process)
    try:
        yield
    finally:
        for process in processes:
            go_on(process)


def test_a_server_that_pauses(far: FarProject, expected: Content) -> None:
    """Shorter than the limit."""
    far.network.faults = Faults(bytes_per_second=SLOW)
    with far.started(far.arguments("--streams", "3")) as running:
        wait_for_bytes(far, running, 2_000_000)
        with frozen_writers(far):
            time.sleep(STALL_SECONDS / 2)
        running.wait().succeeded()
    check_complete(far, expected)


def test_a_server_that_stands_still(far: FarProject, tpch_files: Path) -> None:
    """Its system takes bytes until its buffers are full; then nothing moves, although the network is there."""
    far.link(tpch_files.glob("lineitem.*"), copies=2)
    with far.started(far.arguments("--streams", "2")) as running:
        wait_for_bytes(far, running, 3_000_000)
        with frozen_writers(far):
            ended = running.wait()
    assert ended.exit_code == 1, ended.stderr
    assert f"no byte has moved for {STALL_SECONDS} s" in ended.error
    assert far.tables() == []
    far.resume().succeeded()
    check_all_rows(far)


def test_a_slow_link_is_no_stall(far: FarProject, expected: Content) -> None:
    """It takes several times the limit in all."""
    far.network.faults = Faults(bytes_per_second=SLOW)
    summary = far.run("--streams", "3").succeeded()
    assert summary["seconds"] > 2 * STALL_SECONDS
    check_complete(far, expected)


# --- the moment of a commit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [b"WITH fence AS", b"COMMIT\0\0\0"], ids=["ledger", "commit"])
@pytest.mark.parametrize("arrives", [True, False], ids=["answer lost", "request lost"])
def test_cut_in_the_moment_of_a_commit(far: FarProject, expected: Content, commit: bytes, arrives: bool) -> None:
    with far.started(far.arguments("--streams", "3")) as running:
        wait_for_bytes(far, running, 1_000_000)
        far.network.faults = Faults(cut_at=commit, cut_behind=arrives)
        since = time.monotonic()
        check_given_up(far, running, since)
    assert far.network.faults.is_cut
    finish(far, expected)
