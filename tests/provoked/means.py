"""What makes a limit happen: slow pipes, busy processors, slow disks, narrow links, locks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers.cluster import Database

_STEP_SECONDS = 0.02
_SPIN = "while True: pass"


@contextmanager
def slow_pipe(path: Path, files: Sequence[Path], bytes_per_second: float, seconds: float) -> Iterator[None]:
    """A named pipe that gives the lines of the files again and again, so fast, for about so long."""
    os.mkfifo(path)
    stop = threading.Event()

    def feed() -> None:
        text = b"".join(file.read_bytes() for file in files)
        text = text[: text.rindex(b"\n") + 1]
        try:
            with path.open("wb", buffering=0) as pipe:
                _feed(pipe.write, text, bytes_per_second, time.monotonic() + seconds, stop)
        except BrokenPipeError:
            pass  # the run has ended before

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        # Who has not been opened by a run waits for a reader.
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        thread.join()
        path.unlink()


def _feed(
    write: Callable[[bytes], int | None], text: bytes, bytes_per_second: float, end: float, stop: threading.Event
) -> None:
    """Ends with a whole line."""
    started, given, at = time.monotonic(), 0, 0
    while not stop.is_set():
        now = time.monotonic()
        is_over = now >= end
        due = int((now - started) * bytes_per_second) - given
        if is_over:
            due = text.index(b"\n", at) + 1 - at if at else 0
        while due > 0:
            part = text[at : at + min(due, 1 << 16)]
            done = write(part) or 0
            at = (at + done) % len(text)
            given += done
            due -= done
        if is_over:
            return
        stop.wait(_STEP_SECONDS)


@contextmanager
def busy_processes(count: int, cpu: int | None = None) -> Iterator[None]:
    """Programs that compute without end, on one CPU or on all."""
    prefix = [] if cpu is None else ["taskset", "-c", str(cpu)]
    # In a session of its own each counts as much for the scheduler as the whole load does.
    processes = [
        subprocess.Popen([*prefix, sys.executable, "-S", "-c", _SPIN], start_new_session=True) for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


_CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
_PERIOD_MICROSECONDS = 100_000


@contextmanager
def quota(cpus: float) -> Iterator[list[str]]:
    """A control group that may use so many CPUs: what goes in front of a command that is to run in it. Needs root."""
    group = _CPU_GROUPS / f"headrace-quota-{os.getpid()}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(f"{_PERIOD_MICROSECONDS}")
        (group / "cpu.cfs_quota_us").write_text(f"{cpus * _PERIOD_MICROSECONDS:.0f}")
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()


def missing_for_quotas() -> str | None:
    """Why this machine gives no quota; None if it does."""
    try:
        with quota(1.0):
            return None
    except OSError as error:
        return f"this system gives no control group of version 1 with a quota: {error}"


def slow_files_library(folder: Path) -> Path:
    """`slow_files.c`, compiled."""
    library = folder / "slow_files.so"
    source = Path(__file__).with_name("slow_files.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    library.chmod(0o755)
    return library


def slow_files(library: Path, path: str, bytes_per_second: float, but_not: str | None = None) -> dict[str, str]:
    """The environment of a program for which writes to files of such paths are slow."""
    environment = {"LD_PRELOAD": str(library), "SLOW_PATH": path, "SLOW_BYTES_PER_SECOND": str(bytes_per_second)}
    return environment if but_not is None else {**environment, "SLOW_EXCEPT": but_not}


@contextmanager
def open_transaction(database: Database, statement: str, seconds: float) -> Iterator[None]:
    """A session of somebody else that has done this and rolls it back after so long."""
    script = f"BEGIN; {statement}; SELECT pg_sleep({seconds}); ROLLBACK;"
    thread = threading.Thread(target=lambda: database.as_loader(script), daemon=True)
    thread.start()
    time.sleep(0.3)
    try:
        yield
    finally:
        thread.join()


class NarrowLink:
    """Two ends of a wire that passes so many bits a second; a client's commands run at its end. Needs root."""

    def __init__(self, bits_per_second: float) -> None:
        number = os.getpid() % 200 + 20
        self._name = f"headrace-link-{number}"
        self._device = f"hrl{number}"
        self._rate = bits_per_second
        self.server_address, self.client_address = f"198.18.{number}.1", f"198.18.{number}.2"

    @property
    def inside(self) -> list[str]:
        """In front of a command: it runs at the client's end."""
        return ["nsenter", f"--net=/run/netns/{self._name}", "--"]

    def __enter__(self) -> NarrowLink:
        try:
            self._make()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _make(self) -> None:
        device, peer = self._device, f"{self._device}c"
        _run("ip", "netns", "add", self._name)
        _run("ip", "link", "add", device, "type", "veth", "peer", "name", peer, "netns", self._name)
        _run("ip", "addr", "add", f"{self.server_address}/30", "dev", device)
        _run("ip", "link", "set", device, "up")
        _run(*self.inside, "ip", "addr", "add", f"{self.client_address}/30", "dev", peer)
        _run(*self.inside, "ip", "link", "set", peer, "up")
        _run(*self.inside, "ip", "link", "set", "lo", "up")
        bucket = ["tbf", "rate", f"{self._rate:.0f}", "burst", "128kb", "latency", "30ms"]
        _run(*self.inside, "tc", "qdisc", "add", "dev", peer, "root", *bucket)

    def _close(self) -> None:
        subprocess.run(["ip", "netns", "del", self._name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", self._device], check=False, capture_output=True)


def missing_for_links() -> str | None:
    """Why this machine cannot have a narrow link; None if it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    try:
        with NarrowLink(1e9):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return f"this system gives no network namespace or token bucket: {error}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
