"""Looking at real servers while they work: what is seen of sessions, of which roles, and what a server can do to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from headrace import core
from headrace.errors import HeadraceError
from headrace.targets.postgres import local_server
from headrace.targets.postgres.local_server import HIDDEN, LocalServer
from headrace.targets.postgres.watched_sessions import HIDDEN_CHECKPOINTER, HIDDEN_SESSIONS, NO_ACTIVITIES
from headrace.targets.postgres.watcher import POOLED, SessionWatcher
from tests.integration.proxy import Proxy
from tests.patience import HANG_SECONDS
from tests.servers.cluster import HOST, LOADER, PASSWORD, Cluster, Database
from tests.servers.farm import Farm

WRITERS = "headrace run task w"
# Of another table of the same data flow.
OTHERS = "headrace run task/other w"
# Computes for ever in little memory: a session that spills waits for its disk.
COMPUTING = f"SELECT count(*) FROM {', '.join(f'generate_series(1, 10000) AS s{number}' for number in range(3))}"


def connect(database: Database, name: str, *, by_socket: bool = False, **changed: Any) -> core.PostgresConnection:
    host = str(database.cluster.sockets) if by_socket else HOST
    return core.PostgresConnection(
        {
            "hosts": [{"host": host, "port": database.cluster.port}],
            "database": database.name,
            "user": LOADER,
            "password": PASSWORD,
            "application_name": name,
            "tls": {"mode": "disable"},
            "connect_timeout_seconds": 10,
            **changed,
        }
    )


class Watch:
    """A watcher, and the notices that it has given."""

    def __init__(self, connect_watch: Callable[[], Any], **options: Any) -> None:
        self.notices: list[str] = []
        self.watcher = SessionWatcher(
            connect_watch,
            [WRITERS, OTHERS],
            self.notices.append,
            start_seconds=0.0,
            **{"retry_seconds": 0.1, **options},
        )

    def until(self, seen: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """What it knows as soon as that is so."""
        deadline = time.monotonic() + HANG_SECONDS
        while not seen(known := self.watcher.look()):
            assert time.monotonic() < deadline, known
            time.sleep(0.02)
        return known


@contextmanager
def watching(database: Database, **changed: Any) -> Iterator[Watch]:
    watch = Watch(lambda: connect(database, "headrace run watch", **changed))
    try:
        yield watch
    finally:
        watch.watcher.close()


@contextmanager
def writer(database: Database, number: int, *statements: str) -> Iterator[core.PostgresConnection]:
    """A session that is called like a writer and executes statements, of which the last ones may take for ever."""
    connection = connect(database, f"{WRITERS}{number}")

    def execute() -> None:
        with suppress(HeadraceError):
            for statement in statements:
                connection.execute(statement)

    thread = threading.Thread(target=execute)
    thread.start()
    try:
        yield connection
    finally:
        connection.cancel()
        thread.join()
        connection.close()


@pytest.fixture
def versions(postgres_versions: Cluster) -> Iterator[Database]:
    """An empty database on a server of each version."""
    with postgres_versions.database() as database:
        yield database


def found(known: dict[str, Any]) -> list[dict[str, int]]:
    return [session["found"] for session in known["sessions"]]


def cpu_seconds(known: dict[str, Any], process_id: int) -> float:
    return sum(float(session["cpu_seconds"]) for session in known["sessions"] if session["process_id"] == process_id)


def is_stable(known: dict[str, Any]) -> bool:
    return len(known["sessions"]) == 2 and all(sum(counts.values()) > 2 for counts in found(known))


def computes(known: dict[str, Any], process_id: int) -> bool:
    return any("cpu" in session["found"] for session in known["sessions"] if session["process_id"] == process_id)


@pytest.mark.parametrize("by_socket", [False, True], ids=["address", "socket"])
def test_sessions_of_every_version(versions: Database, by_socket: bool) -> None:
    """Busy, asleep, idle; the process of each with its CPU time; the server's checkpoints and log."""
    with (
        writer(versions, 1, COMPUTING) as busy,
        writer(versions, 2, "SELECT 1") as idle,
        watching(versions, by_socket=by_socket) as watch,
    ):
        known = watch.until(lambda now: is_stable(now) and computes(now, busy.process_id()))
        logged = known["wal_bytes"]
        versions.psql("CREATE TABLE logged AS SELECT generate_series(1, 10000)")
        grown = watch.until(lambda now: now["wal_bytes"] > logged)
        busy_before = cpu_seconds(known, busy.process_id())
        later = watch.until(lambda now: cpu_seconds(now, busy.process_id()) > busy_before)
    by_process = {session["process_id"]: session for session in known["sessions"]}
    assert set(by_process) == {busy.process_id(), idle.process_id()}
    assert set(by_process[idle.process_id()]["found"]) == {"idle"}
    assert by_process[busy.process_id()]["found"]["cpu"] > 0
    assert by_process[busy.process_id()]["cpu_seconds"] > 0 <= by_process[busy.process_id()]["run_queue_seconds"]
    assert known["is_local"] is True
    assert known["denied"] == [HIDDEN_CHECKPOINTER]
    assert set(known["checkpointer"]) == {"cpu_seconds"}
    assert all(known[name] is not None for name in ("checkpoints_timed", "checkpoint_write_seconds"))
    assert later["samples"] > known["samples"] and grown["wal_bytes"] > 0
    assert watch.notices == []


def test_cpu_of_few_sessions_is_read_at_every_look(database: Database) -> None:
    """Not once a second: what a short session used would be somebody else's."""
    with watching(database) as watch:
        watch.until(lambda now: now["samples"])
        with writer(database, 1, COMPUTING):
            seen = watch.until(lambda now: now["sessions"])
            known = watch.until(lambda now: now["samples"] > seen["samples"])
    assert known["sessions"][0]["cpu_seconds"] is not None


def test_a_member_of_pg_monitor_sees_the_checkpointer(versions: Database) -> None:
    whole = {"idle", "cpu_seconds"}
    versions.psql(f"GRANT pg_monitor TO {LOADER}")
    try:
        with watching(versions) as watch:
            # One look asks several things, one after the other.
            known = watch.until(
                lambda now: now["checkpoints_requested"] is not None and whole <= now["checkpointer"].keys()
            )
            requested = known["checkpoints_requested"]
            versions.psql("CREATE TABLE dirty AS SELECT generate_series(1, 100000); CHECKPOINT")
            later = watch.until(lambda now: now["checkpoints_requested"] > requested)
    finally:
        versions.psql(f"REVOKE pg_monitor FROM {LOADER}")
    assert known["denied"] == []
    assert known["checkpointer"].keys() == whole
    assert later["checkpointer"]["idle"] > known["checkpointer"]["idle"]


def test_who_waits_for_a_lock_and_for_whom(database: Database) -> None:
    database.as_loader("CREATE TABLE taken (n int)")
    holds = ("BEGIN", "LOCK TABLE taken", "SELECT pg_sleep(100)")
    with writer(database, 1, *holds) as holder, watching(database) as watch:
        watch.until(lambda now: [counts for counts in found(now) if "Timeout:PgSleep" in counts])
        with writer(database, 2, "INSERT INTO taken VALUES (1)") as waiter:
            known = watch.until(lambda now: now["sessions"][-1]["found"].get("Lock:relation", 0) > 2)
            holder.cancel()
            free = watch.until(lambda now: now["sessions"][-1]["found"].get("idle"))
    assert known["sessions"][-1]["process_id"] == waiter.process_id()
    assert known["sessions"][-1]["blocked_by"] == [holder.process_id()]
    assert free["sessions"][-1]["blocked_by"] == []
    assert [session["process_id"] for session in free["sessions"]] == [holder.process_id(), waiter.process_id()]


def test_a_role_whose_activities_are_not_tracked(versions: Database) -> None:
    """A superuser has set it so. Waits are told all the same, but not whether a session has anything to do."""
    versions.psql(f"ALTER ROLE {LOADER} SET track_activities = off")
    try:
        with writer(versions, 1, "SELECT pg_sleep(100)"), watching(versions) as watch:
            known = watch.until(lambda now: [counts for counts in found(now) if sum(counts.values()) > 2])
    finally:
        versions.psql(f"ALTER ROLE {LOADER} RESET track_activities")
    assert set(found(known)[0]) == {"Timeout:PgSleep"}
    assert NO_ACTIVITIES in known["denied"]


def test_sessions_of_another_role_are_not_counted(database: Database) -> None:
    """Whoever calls a session as ours are called."""
    with database.session(f"SET application_name = '{WRITERS}7'"), watching(database) as watch:
        known = watch.until(lambda now: now["samples"] > 2)
    assert known["sessions"] == []
    assert HIDDEN_SESSIONS not in known["denied"]


def test_processes_that_the_system_hides(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "read_process_stat", lambda process_id, proc: None)
    with writer(database, 1, "SELECT pg_sleep(100)"), watching(database) as watch:
        known = watch.until(lambda now: now["sessions"])
    assert known["is_local"] is False
    assert HIDDEN in known["denied"]
    assert [known["sessions"][0][name] for name in ("cpu_seconds", "run_queue_seconds", "io_seconds")] == [None] * 3


def test_a_pooler_stands_between(database: Database) -> None:
    """It has made up the process of the session."""

    class Pooled(core.PostgresConnection):
        def process_id(self) -> int:
            return super().process_id() + 1

    def connect_pooled() -> core.PostgresConnection:
        made = connect(database, "headrace run watch")
        made.__class__ = Pooled
        return made

    watch = Watch(connect_pooled)
    known = watch.until(lambda now: now["samples"])
    watch.watcher.close()
    assert known["is_local"] is False
    assert POOLED in known["denied"]


def test_no_session_is_left_over(database: Database) -> None:
    """The role has reached its limit: one notice, and it comes in as soon as there is room."""
    database.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT 1")
    try:
        with writer(database, 1, "SELECT pg_sleep(100)"), watching(database) as watch:
            known = watch.until(lambda now: now["denied"])
            time.sleep(0.5)
            assert len(set(watch.notices)) == 1
            assert "too many connections" in watch.notices[0]
            database.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT -1")
            later = watch.until(lambda now: now["samples"])
    finally:
        database.psql(f"ALTER ROLE {LOADER} CONNECTION LIMIT -1")
    assert (known["samples"], known["sessions"], known["checkpoints_timed"]) == (0, [], None)
    assert "no session for watching it" in known["denied"][0]
    assert not any("no session" in reason for reason in later["denied"])


def test_a_server_that_does_not_tell_of_its_log(database: Database) -> None:
    """The rest is looked at."""
    database.psql("REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC")
    with watching(database) as watch:
        known = watch.until(lambda now: now["samples"] > 7)
    assert [reason for reason in known["denied"] if reason.startswith("its checkpoints and log: ")]
    assert (known["wal_bytes"], known["checkpoints_timed"], watch.notices) == (None, None, [])


def test_a_watch_that_an_administrator_ends(database: Database) -> None:
    """It comes back, and counts on."""
    with writer(database, 1, "SELECT pg_sleep(100)"), watching(database) as watch:
        before = watch.until(lambda now: now["samples"] > 3)
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '% watch'"
        assert database.rows(ended) == [("t",)]
        after = watch.until(lambda now: now["samples"] > before["samples"] + 5)
    assert sum(found(after)[0].values()) > sum(found(before)[0].values())
    assert watch.notices == []


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_stopped_while_it_is_watched(servers: Farm, mode: str) -> None:
    cluster = servers.cluster()
    try:
        with cluster.database() as database, watching(database) as watch:
            watch.until(lambda now: now["samples"] > 2)
            cluster.stop(mode)
            known = watch.until(lambda now: any("session for watching it" in reason for reason in now["denied"]))
            started = time.monotonic()
            watch.watcher.close()
            assert time.monotonic() - started < HANG_SECONDS
            cluster.start()
    finally:
        servers.remove(cluster)
    assert known["samples"] > 2


def test_a_server_that_does_not_answer_is_not_waited_for(database: Database) -> None:
    watch = Watch(lambda: connect(database, "headrace run watch"))
    with database.session("BEGIN; LOCK TABLE pg_catalog.pg_authid IN ACCESS EXCLUSIVE MODE"):
        time.sleep(0.5)
        started = time.monotonic()
        watch.watcher.close()
        assert time.monotonic() - started < HANG_SECONDS


def test_a_network_that_stands_still_is_not_waited_for(database: Database) -> None:
    with Proxy(database.cluster.port) as proxy:
        watch = Watch(lambda: connect(database, "headrace run watch", hosts=[{"host": HOST, "port": proxy.port}]))
        watch.until(lambda now: now["samples"] > 2)
        proxy.stall()
        time.sleep(0.5)
        started = time.monotonic()
        watch.watcher.close()
        assert time.monotonic() - started < HANG_SECONDS
    assert watch.notices == []


def test_nothing_stays_behind(database: Database) -> None:
    """No session, no lock, no transaction; and while it looks it holds no lock that anybody else wants."""
    sessions = f"FROM pg_stat_activity WHERE usename = '{LOADER}'"
    with watching(database) as watch:
        watch.until(lambda now: now["samples"] > 2)
        names = database.rows(f"SELECT application_name {sessions}")
        locks = database.rows(f"SELECT count(*) FROM pg_locks WHERE pid IN (SELECT pid {sessions}) AND NOT fastpath")
    assert names == [("headrace run watch",)]
    assert locks == [("0",)]
    deadline = time.monotonic() + HANG_SECONDS
    while database.rows(f"SELECT application_name {sessions}") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert database.rows(f"SELECT application_name {sessions}") == []


def test_a_load_that_ends_at_once_is_spared_the_session(database: Database) -> None:
    opened = threading.Event()
    watcher = SessionWatcher(lambda: opened.set(), [WRITERS], lambda text: None)  # type: ignore[arg-type,return-value]
    watcher.close()
    assert not opened.is_set()
    assert watcher.look()["samples"] == 0


def test_local_processes_are_those_of_the_server(postgres: Cluster, database: Database) -> None:
    """Numbers of other programs are refused, also the tests' own."""
    with connect(database, "headrace run watch") as connection:
        now = time.time()
        server = local_server.find_local_server(connection.address(), connection.process_id(), now)
        assert isinstance(server, LocalServer)
        assert server.reading(connection.process_id()) is not None
        assert server.reading(1) is None
        process = connection.process_id()
        assert local_server.find_local_server(connection.address(), process, now - 3600) == HIDDEN
        assert local_server.find_local_server(None, 1, now) == HIDDEN
        assert local_server.find_local_server("192.0.2.1:5432", process, now) == local_server.ELSEWHERE
        assert local_server.find_local_server("[2001:db8::1]:5432", process, now) == local_server.ELSEWHERE
        assert server.checkpointer() is not None
