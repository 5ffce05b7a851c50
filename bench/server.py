"""The PostgreSQL server that methods load into: started by the measuring process, emptied before every measurement."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.servers import installations
from tests.servers.cluster import HOST, LOADER, PASSWORD, Cluster
from tests.servers.farm import Farm

# What a loader would ask for: nothing is given up that the rows need, and no checkpoint falls into a measurement.
SETTINGS = {
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "fsync": "on",
    "full_page_writes": "on",
    "log_connections": "off",
    "log_statement": "none",
    "max_wal_senders": "0",
    "max_wal_size": "32GB",
    "shared_buffers": "4GB",
    "synchronous_commit": "off",
    "wal_level": "minimal",
}
_TICKS = os.sysconf("SC_CLK_TCK")
_DATABASE = "bench"
_END_SECONDS = 60


class Server:
    """A cluster on the cores of the measurement. Clients get to it by the variables of libpq. `changed`: settings that
    differ from those of the kit.
    """

    def __init__(self, cores: Sequence[int], changed: Mapping[str, str]) -> None:
        self._farm = Farm()
        # That of the system if there is one: it is what people run, and what earlier figures were made with.
        found = installations.with_tls() or installations.installation()
        self.settings = settings = {**SETTINGS, **changed}
        prefix = ["taskset", "--cpu-list", ",".join(map(str, cores))]
        self.cluster: Cluster = self._farm.cluster(found, settings, prefix)
        [(version,)] = self.cluster.rows("SHOW server_version")
        self.version = str(version).split(" ", maxsplit=1)[0]

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._farm.close()

    @property
    def environment(self) -> dict[str, str]:
        """For clients: where the server is, and its psql."""
        return {
            "PATH": f"{self.cluster.installation.programs}:{os.environ['PATH']}",
            "PGHOST": HOST,
            "PGPORT": str(self.cluster.port),
            "PGUSER": LOADER,
            "PGPASSWORD": PASSWORD,
            "PGDATABASE": _DATABASE,
        }

    def reset(self) -> None:
        """An empty database; what the measurement before has written is on the disk."""
        self.cluster.psql(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
        self.cluster.create_database(_DATABASE)
        self.cluster.psql("CHECKPOINT")

    def cpu_seconds(self) -> float:
        """Of the whole server so far, user and system: backends that have ended, and all processes that live.

        Waits until the sessions of the loader have ended.
        """
        deadline = time.monotonic() + _END_SECONDS
        while any(f"postgres: {LOADER} " in title for _, title in self._children()):
            if time.monotonic() > deadline:
                raise TimeoutError("a session of the loader does not end")
            time.sleep(0.01)
        own = _stat(self.cluster.process_id)
        ticks = sum(own[11:15])  # utime, stime, and those of children that have ended
        return (ticks + sum(sum(_stat(child)[11:13]) for child, _ in self._children())) / _TICKS

    def _children(self) -> list[tuple[int, str]]:
        parent = self.cluster.process_id
        listed = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()
        found = []
        for child in map(int, listed):
            try:
                title = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            found.append((child, title.decode(errors="replace")))
        return found


def _stat(process_id: int) -> list[int]:
    """The numbers of /proc/PID/stat behind the name; [11] is utime."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8")
    except OSError:
        return [0] * 20
    return [int(word) if word.lstrip("-").isdecimal() else 0 for word in text.rpartition(")")[2].split()]
