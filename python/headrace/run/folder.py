"""The folder of one run: `<runs>/<run id>/` with JSON documents (request, environment, sources,
partitions, summary), events.jsonl, metrics.jsonl and rejects/. Only its owner may look into it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from headrace.errors import CommandLineError, LedgerError
from headrace.private_files import make_folder, open_file, write_text

DEFAULT_RUNS_FOLDER = Path(".headrace") / "runs"
_ATTEMPTS = 5


def new_run_id(now: datetime) -> str:
    """An id that sorts by time of start (UTC): `20261120-101530-ab12cd`, where `ab1` is the time behind the second, in
    parts of 1/4096, and `2cd` a random number.
    """
    fraction = now.microsecond * 4096 // 1_000_000
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{fraction:03x}{secrets.randbelow(4096):03x}"


@dataclass(frozen=True)
class Purpose:
    """What an earlier run is wanted for, and how a refusal says that a run is not fit for it.

    `fit` gets how a run has ended (None: it did not come to say it) and whether it is a replay. `last` is the last run
    that is fit, but a replay only if `last_is_any`, and, with `last_is_open`, none that a later one has followed.
    """

    participle: str
    fit: Callable[[str | None, bool], bool]
    last_is_any: bool = True
    last_is_open: bool = False
    wanted: str = "fitting"
    unfit: str = "is not fit"
    consequence: str = "it cannot be used"
    hint: str = "Name another run."


RESUME: Final = Purpose(
    "resumed",
    fit=lambda status, _is_replay: status != "success",
    last_is_open=True,
    wanted="unfinished",
    unfit="is complete",
    consequence="there is nothing to resume",
    hint="Nothing is left to load: `headrace report` shows what the runs did.",
)
VERIFY: Final = Purpose(
    "verified",
    fit=lambda status, is_replay: status == "success" and not is_replay,
    wanted="successful",
    unfit="did not end with success",
    consequence="its tables are not all there",
    hint="Complete it first with `headrace resume`, or verify another run.",
)
# Of a replay that is complete, what verifying it says.
_OF_REPLAY: Final = replace(
    VERIFY,
    unfit="is a replay",
    consequence="its rows are beside those of another run",
    hint="Verify a run that has loaded rows of files.",
)
REJECTS: Final = Purpose("looked at", fit=lambda _status, _is_replay: True)
REPORT: Final = Purpose("reported", fit=lambda _status, _is_replay: True)
REPLAY: Final = Purpose(
    "replayed",
    fit=lambda status, _is_replay: status == "success",
    last_is_any=False,
    wanted="successful",
    unfit="did not end with success",
    consequence="its rejects are not final",
    hint="Complete it first with `headrace resume`.",
)


class RunFolder:
    """A folder that belongs to one run alone. All paths are absolute."""

    def __init__(self, run_id: str, path: Path) -> None:
        self.run_id = run_id
        self.path = path
        self.rejects = path / "rejects"
        self.spill = path / "spill"
        self.events = path / "events.jsonl"
        self.metrics = path / "metrics.jsonl"
        self.summary = path / "summary.json"
        self.request = path / "request.json"
        self.environment = path / "environment.json"
        self.sources = path / "sources.json"
        self.partitions = path / "partitions.json"
        self.replay = path / "replay.json"
        self.journal = path / "journal.jsonl"
        self.flows = path / "flows.jsonl"
        self.lookups = path / "lookups.jsonl"
        self.builds = path / "builds.jsonl"
        self.loops = path / "loops"
        # Of a replay, if a column asks: where each row of its file stood, as the core reads it.
        self.origins = path / "origins"
        self._attempt_file = path / "attempt"
        # Of an attempt behind the first one.
        self._attempt = ""

    @classmethod
    def create(cls, runs_folder: Path, now: datetime) -> RunFolder:
        """Makes the folder of a new run. Raises LedgerError if that is not possible."""
        runs_folder = runs_folder.absolute()
        try:
            runs_folder.mkdir(parents=True, exist_ok=True)
            for _ in range(_ATTEMPTS):
                folder = cls((run_id := new_run_id(now)), runs_folder / run_id)
                try:
                    make_folder(folder.path)
                except FileExistsError:
                    continue
                make_folder(folder.rejects)
                return folder
        except OSError as error:
            raise LedgerError(
                "cannot create the folder of the run",
                at={"folder": str(runs_folder)},
                found=error.strerror,
                hint="Choose another place with --runs-dir.",
            ) from error
        raise LedgerError("cannot find a new run id", at={"folder": str(runs_folder)})

    @classmethod
    def find(cls, runs_folder: Path, run: str, purpose: Purpose) -> RunFolder:
        """The folder of a run that is fit for a purpose. `run` is `last`, the beginning of an id, or a path.

        Raises CommandLineError if there is none, or more than one.
        """
        if run != "last" and is_there(Path(run) / "request.json"):
            path = Path(run).absolute()
            folders = [cls(path.name, path)]
        else:
            folders = _folders(runs_folder.absolute(), "" if run == "last" else run)
        if not folders:
            raise CommandLineError(
                "there is no such run" if run != "last" else f"there is no run that could be {purpose.participle}",
                at={"folder": str(runs_folder.absolute())},
                found=None if run == "last" else run,
                expected="the beginning of a run id, the path of a run folder, or `last`",
                hint="Name the folder of the runs with --runs-dir.",
            )
        fit = [folder for folder in folders if purpose.fit(folder.status(), folder.is_replay)]
        if run == "last" and not purpose.last_is_any:
            fit = [folder for folder in fit if not folder.is_replay]
        if run == "last" and purpose.last_is_open and fit:
            last = fit[-1]
            fit = [folder for folder in fit if _followed(folder, folders) is None]
            if not fit:
                raise _all_followed(last, _followed(last, folders), purpose)
        if not fit:
            is_ended_replay = folders[-1].is_replay and folders[-1].status() == "success"
            told = _OF_REPLAY if is_ended_replay and purpose is VERIFY else purpose
            unfit = f"run {folders[-1].run_id} {told.unfit}"
            raise CommandLineError(
                f"there is no {told.wanted} run" if run == "last" else f"{unfit}: {told.consequence}",
                found=unfit if run == "last" else None,
                at={"folder": str(folders[-1].path)},
                hint=told.hint,
            )
        if run != "last" and len(folders) > 1:
            raise CommandLineError(
                f"several runs begin with `{run}`",
                found=", ".join(folder.run_id for folder in folders),
                hint="Write more of the id.",
            )
        return fit[-1]

    def reopen(self) -> None:
        """Makes the folder ready for another attempt of its run: what the attempt before said of its end is gone, its
        files of rejects stay. From now on nothing that it does changes the folder, should its process come back.

        Raises LedgerError.
        """
        token = secrets.token_hex(8)
        try:
            write_text(self._attempt_file, token, encoding="ascii")
            self._attempt = token
            self.summary.unlink(missing_ok=True)
            self._renew_rejects()
        except OSError as error:
            raise LedgerError(
                f"cannot resume run {self.run_id}",
                at={"folder": str(self.path)},
                found=error.strerror,
                hint="Get the right to write there.",
            ) from error

    def is_ours(self) -> bool:
        """False if another process has resumed the run since."""
        try:
            return self._attempt_file.read_text(encoding="ascii") == self._attempt
        except OSError:
            return self._attempt == ""

    def _renew_rejects(self) -> None:
        """Moves complete files into a new folder: the core writes into the one that it has opened."""
        old = self.path / "rejects.old"
        if self.rejects.exists() and not old.exists():
            self.rejects.rename(old)
        make_folder(self.rejects, exist_ok=True)
        if old.exists():
            for file in old.iterdir():
                if not file.name.startswith("."):
                    file.replace(self.rejects / file.name)
            shutil.rmtree(old)

    def remove_rejects(self, stem: str) -> None:
        """Removes the files of rejects whose names begin so, if there are any. Raises LedgerError."""
        if not self.is_ours():
            return
        for path in (self.rejects / f"{stem}.jsonl", self.rejects / f"{stem}.bad"):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise LedgerError(
                    "rejects of an earlier try cannot be removed",
                    at={"file": str(path)},
                    found=error.strerror,
                    hint="Get the right to write there.",
                ) from error

    @property
    def is_replay(self) -> bool:
        """True for a run that loads rejects of another one."""
        return self.replay.exists()

    def what(self) -> tuple[Any, ...] | None:
        """The package of the run, its environment and the connections that were given; None if that is not known."""
        try:
            request = json.loads(self.request.read_text(encoding="utf-8"))
            return request["package"], request.get("environment"), request["connections"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def status(self) -> str | None:
        """How the run ended, as its summary says; None if it did not come to write one."""
        try:
            summary = json.loads(self.summary.read_text(encoding="utf-8"))
            # Some tasks may fail without failing the run; `resume` tries them again.
            status = str(summary["status"])
            return "incomplete" if status == "success" and summary.get("tasks_failed") else status
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_summary(self, document: dict[str, Any]) -> None:
        """Writes summary.json whole or not at all. Raises LedgerError, also if another process has resumed the run."""
        if not self.is_ours():
            raise LedgerError(f"run {self.run_id} was resumed by another process", at={"folder": str(self.path)})
        self.write_document(self.summary, document)

    def write_document(self, path: Path, document: dict[str, Any]) -> None:
        """Writes a JSON document whole or not at all: a temporary name, then rename. Raises LedgerError."""
        temporary = path.with_name(f".{path.name}")
        try:
            with open_file(temporary, "w", encoding="utf-8", errors="backslashreplace") as file:
                json.dump(document, file, indent=2, ensure_ascii=False)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            raise LedgerError(
                f"cannot write {path.name} of the run",
                at={"file": str(path)},
                found=error.strerror,
                hint="Free space there, or choose another place with --runs-dir.",
            ) from error

    def tidy(self) -> None:
        """Removes what an ended run does not need: empty folders for rejects and spilling. What cannot stays."""
        if not self.is_ours():
            return
        with suppress(OSError):
            for folder in (self.rejects, self.spill, self.loops):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()


def _followed(folder: RunFolder, folders: Sequence[RunFolder]) -> RunFolder | None:
    """The run that has taken the place of one that was not finished: a later one of the same package into the same
    databases, whose ledgers would refuse to go on with that one, and which is complete. None if there is none.
    """
    what = folder.what()
    if folder.is_replay or what is None:
        return None  # what a replay appends, no other run does
    later = (other for other in reversed(folders) if other.run_id > folder.run_id and not other.is_replay)
    return next((other for other in later if other.what() == what and other.status() == "success"), None)


def _all_followed(folder: RunFolder, later: RunFolder | None, purpose: Purpose) -> CommandLineError:
    complete = "" if later is None else f", and run {later.run_id} of its package, which began later, is complete"
    return CommandLineError(
        f"there is no {purpose.wanted} run that could be {purpose.participle}",
        found=f"run {folder.run_id} was not finished{complete}",
        at={"folder": str(folder.path)},
        hint=purpose.hint,
    )


def is_there(path: Path) -> bool:
    """Whether there is such a file; what cannot be looked at, or be a name at all, is not there."""
    try:
        return path.exists()
    except OSError:
        return False


def _folders(runs_folder: Path, prefix: str) -> list[RunFolder]:
    """The runs whose id begins with `prefix` and that have kept their request, oldest first."""
    try:
        named = [RunFolder(path.name, path) for path in runs_folder.iterdir() if path.name.startswith(prefix)]
        begun = [folder for folder in named if folder.request.exists()]
        return sorted(begun, key=lambda folder: folder.run_id)
    except OSError:
        return []
