"""What looks at a destination add up to: rows of a server's views, sizes of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.machine.processes import parse_process_stat
from headrace.targets.duckdb.watcher import FileWatcher
from headrace.targets.postgres import local_server
from headrace.targets.postgres.local_server import HIDDEN, LocalServer, find_local_server
from headrace.targets.postgres.watched_server import WatchedServer
from headrace.targets.postgres.watched_sessions import (
    HIDDEN_CHECKPOINTER,
    HIDDEN_SESSIONS,
    NO_ACTIVITIES,
    WatchedSessions,
)
from headrace.targets.postgres.watcher import Unwatched

STARTED = "1795397084.5"
CHECKPOINTER = ["9", "1.5", "t", None, "Activity", "CheckpointerMain", None, None]


def session(
    process_id: int,
    state: str | None = "active",
    wait: str | None = None,
    *,
    started: str = STARTED,
    tuples: int | None = None,
    blocked_by: str | None = None,
) -> list[str | None]:
    """A row of watched_sessions.sql."""
    wait_type, _, wait_event = (wait or "").partition(":")
    copied = None if tuples is None else str(tuples)
    return [str(process_id), started, "f", state, wait_type or None, wait_event or None, copied, blocked_by]


def after(*looks: list[list[str | None]]) -> dict[str, Any]:
    sessions = WatchedSessions()
    for rows in looks:
        sessions.add(rows)
    return {**sessions.to_dict(), "denied": sorted(sessions.denied)}


@pytest.mark.parametrize(
    ("state", "wait", "doing"),
    [
        ("active", None, "cpu"),
        ("active", "Client:ClientRead", "client"),
        ("active", "Client:ClientWrite", "Client:ClientWrite"),
        ("active", "IO:WALWrite", "IO:WALWrite"),
        ("active", "LWLock:WALInsert", "LWLock:WALInsert"),
        ("active", "Lock:extend", "Lock:extend"),
        ("fastpath function call", None, "cpu"),
        ("starting", None, "cpu"),
        ("idle", "Client:ClientRead", "idle"),
        ("idle in transaction", "Client:ClientRead", "idle"),
        ("idle in transaction (aborted)", "Client:ClientRead", "idle"),
        ("disabled", "Client:ClientRead", "client"),
        ("disabled", None, "cpu"),
    ],
)
def test_what_a_session_does(state: str, wait: str | None, doing: str) -> None:
    known = after([session(1, state, wait), CHECKPOINTER], [session(1, state, wait), CHECKPOINTER])
    assert known["sessions"][0]["found"] == {doing: 2}
    assert known["denied"] == ([NO_ACTIVITIES] if state == "disabled" else [])


def test_what_the_server_does_not_tell() -> None:
    known = after([session(1, None)])
    assert known["sessions"][0]["found"] is None
    assert known["checkpointer"] is None
    assert known["denied"] == sorted([HIDDEN_SESSIONS, HIDDEN_CHECKPOINTER])


def test_the_checkpointer() -> None:
    writes = ["9", "1.5", "t", None, "IO", "DataFileWrite", None, None]
    paces = ["9", "1.5", "t", None, "Timeout", "CheckpointWriteDelay", None, None]
    works = ["9", "1.5", "t", None, None, None, None, None]
    known = after([CHECKPOINTER], [writes], [paces], [works], [works])
    assert known["checkpointer"] == {"idle": 1, "IO:DataFileWrite": 1, "Timeout:CheckpointWriteDelay": 1, "cpu": 2}
    assert known["samples"] == 5


def test_sessions_that_come_and_go() -> None:
    """A number is used again: those are two sessions. Who has ended waits for nobody."""
    known = after(
        [session(1), session(2, wait="Lock:relation", blocked_by="1 0")],
        [session(2, wait="Lock:relation", blocked_by="1")],
        [session(1, started="1795397099.0"), session(3)],
    )
    assert [(item["process_id"], sum(item["found"].values())) for item in known["sessions"]] == [
        (1, 1),
        (2, 2),
        (1, 1),
        (3, 1),
    ]
    assert [item["blocked_by"] for item in known["sessions"]] == [[], [], [], []]
    assert after([session(2, wait="Lock:relation", blocked_by="1 0")])["sessions"][0]["blocked_by"] == [1, 0]


def test_very_many_sessions_do_not_fill_the_lines() -> None:
    """Of those that have ended the last ones stay, and all that are there."""
    looks = [[session(number)] for number in range(1000)]
    known = after(*looks, [session(number) for number in range(2000, 2300)])
    numbers = [item["process_id"] for item in known["sessions"]]
    assert numbers == [*range(900, 1000), *range(2000, 2300)]


def test_rows_of_several_copies_add_up() -> None:
    looks = [[session(1, tuples=tuples)] for tuples in (10, 500, None, 20, 30)]
    assert after(*looks)["sessions"][0]["tuples"] == 530
    assert after([session(1)])["sessions"][0]["tuples"] is None


@given(
    st.lists(
        st.lists(
            st.builds(
                session,
                st.integers(1, 4),
                st.sampled_from(["active", "idle", "disabled", None]),
                st.sampled_from([None, "Client:ClientRead", "IO:WALWrite"]),
                tuples=st.none() | st.integers(0, 1000),
            ),
            max_size=5,
        ),
        max_size=20,
    )
)
def test_counters_never_fall(looks: list[list[list[str | None]]]) -> None:
    sessions = WatchedSessions()
    before: dict[int, tuple[int, int]] = {}
    for rows in looks:
        sessions.add(rows)
        known = sessions.to_dict()["sessions"]
        now = {item["process_id"]: (sum((item["found"] or {}).values()), item["tuples"] or 0) for item in known}
        assert set(before) <= set(now)
        for process_id, (found, tuples) in before.items():
            assert now[process_id][0] >= found and now[process_id][1] >= tuples
        before = now


def test_the_log_and_checkpoints_of_a_server() -> None:
    """Milliseconds become seconds; statistics that an administrator resets stand still."""
    server = WatchedServer()
    assert set(server.to_dict().values()) == {None}
    server.add(["5", "2", "1500", "250", "28245752"])
    server.add(["6", "2", "1750.5", "250", "28245852"])
    server.add(["0", "0", "0", "0", "28245900"])
    server.add(["0", "1", "0", "0", None])
    assert server.to_dict() == {
        "checkpoints_timed": 6,
        "checkpoints_requested": 3,
        "checkpoint_write_seconds": 1.7505,
        "checkpoint_sync_seconds": 0.25,
        "wal_bytes": 148,
    }


def test_a_server_that_is_not_watched() -> None:
    unwatched = Unwatched("2 sessions are left over")
    assert unwatched.look() == {
        "type": "postgres",
        "denied": ["what the server does: 2 sessions are left over"],
        "samples": 0,
        "sessions": [],
    }
    unwatched.close()


# --- processes of a local server --------------------------------------------------------------------------------------


class Processes:
    """A folder like /proc with a server whose postmaster is process 100."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("stat", "btime 1000\n")
        self.process(101, "postgres", parent=100, start_ticks=500)
        self.process(102, "postgres", parent=100, title="postgres: checkpointer ")
        self.process(103, "postgres", parent=200, title="postgres: checkpointer ")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def process(
        self, number: int, program: str, *, parent: int, start_ticks: int = 0, title: str = "", delay_ticks: int = 0
    ) -> None:
        fields = f"S {parent} 0 0 0 -1 0 0 0 0 0 300 100 0 0 20 0 1 0 {start_ticks} 0 0 " + "0 " * 17
        text = f"{number} ({program}) {fields}{delay_ticks} 0 0\n"
        stat = parse_process_stat(text)
        assert stat is not None and stat.block_io_seconds * 100 == delay_ticks
        self.write(f"{number}/stat", text)
        self.write(f"{number}/cmdline", title)

    def find(self, process_id: int = 101, started_at: float = 1005.2) -> LocalServer | str:
        return find_local_server(None, process_id, started_at, str(self.folder))


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


def test_a_local_server(processes: Processes) -> None:
    server = processes.find()
    assert isinstance(server, LocalServer)
    reading = server.reading(101)
    assert reading is not None
    assert (reading.cpu_seconds, reading.run_queue_seconds, reading.io_seconds) == (4.0, None, None)
    processes.write("101/schedstat", "4321000000 1500000000 7\n")
    processes.write("sys/kernel/task_delayacct", "1\n")
    server = processes.find()
    assert isinstance(server, LocalServer)
    reading = server.reading(101)
    assert reading is not None
    assert (reading.cpu_seconds, reading.run_queue_seconds, reading.io_seconds) == (4.321, 1.5, 0.0)
    assert server.checkpointer() == 102
    assert server.reading(103) is None  # of another server
    assert server.reading(999) is None


def test_block_delays_of_a_kernel_without_the_switch(processes: Processes) -> None:
    processes.process(104, "postgres", parent=100, delay_ticks=250)
    server = processes.find()
    assert isinstance(server, LocalServer)
    reading = server.reading(104)
    assert reading is not None and reading.io_seconds == 2.5


@pytest.mark.parametrize("started_at", [995.0, 1009.0, 0.0])
def test_a_process_that_started_at_another_time(processes: Processes, started_at: float) -> None:
    """The number is that of a process in a container; here it is somebody else's."""
    assert processes.find(started_at=started_at) == HIDDEN


def test_processes_that_are_no_servers(processes: Processes) -> None:
    processes.process(101, "python", parent=100, start_ticks=500)
    assert processes.find() == HIDDEN
    processes.process(101, "python", parent=100, start_ticks=500, title="postgres: loader sales 10.0.0.7(5) COPY")
    assert isinstance(processes.find(), LocalServer)
    assert processes.find(process_id=7) == HIDDEN
    processes.write("101/stat", "")
    assert processes.find() == HIDDEN


@pytest.mark.parametrize("address", ["", "nonsense", "10.0.0.7", "host:5432", "[fe80::1%nowhere]:5432", "0.0.0.0.0:1"])
def test_addresses_that_are_not_ours(processes: Processes, address: str) -> None:
    assert find_local_server(address, 101, 1005.0, str(processes.folder)) == local_server.ELSEWHERE


# --- DuckDB -----------------------------------------------------------------------------------------------------------


def test_sizes_of_files(tmp_path: Path) -> None:
    path, spill = tmp_path / "w.duckdb", tmp_path / "spill"
    watcher = FileWatcher(path, str(spill))
    sizes = ("file_bytes", "wal_bytes", "spill_bytes")
    assert [watcher.look()[name] for name in sizes] == [None, 0, 0]
    path.write_bytes(bytes(100))
    (tmp_path / "w.duckdb.wal").write_bytes(bytes(10))
    spill.mkdir()
    (spill / "duckdb_temp_storage_DEFAULT-0.tmp").write_bytes(bytes(7))
    (spill / "duckdb_temp_storage_DEFAULT-1.tmp").write_bytes(bytes(8))
    assert [watcher.look()[name] for name in sizes] == [100, 10, 15]
    assert FileWatcher(path, None).look()["spill_bytes"] is None
    watcher.close()
