"""What a run was asked to do, kept in its folder: `resume` and `verify` repeat it, and refuse if the world has changed
since.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from headrace.errors import CommandLineError, FileChangedError, LedgerError, PackageError
from headrace.model import BoundPackage
from headrace.planning import Partitioning, RunPlan, SourceSnapshot, counted
from headrace.private_files import write_text
from headrace.run.control.selection import ALL_TASKS, Choice
from headrace.run.flow_records import FlowRecords, add_record, records
from headrace.run.folder import RESUME, VERIFY, Purpose, RunFolder
from headrace.run.redact import Redactor
from headrace.run.true_hints import NEW_RUN
from headrace.run.trust import is_own

# Members of a file by which its rows are read.
_DIALECT: Final = ("row_end", "columns", "encoding")


@dataclass(frozen=True)
class RunRequest:
    """The command line of a run. `sets` and `connections` are `name=value` options; relative paths in them start at
    `folder`.
    """

    package: Path
    folder: Path
    sets: tuple[str, ...]
    connections: tuple[str, ...]
    streams: int | None
    choice: Choice = ALL_TASKS
    environment: str | None = None
    trusted: bool = False
    max_concurrent: int | None = None
    log_level: str | None = None

    @classmethod
    def of(
        cls, package: Path, sets: Sequence[str], connections: Sequence[str], streams: int | None, folder: Path
    ) -> RunRequest:
        """The request of a command line that was given in `folder`."""
        return cls((folder / package).absolute(), folder, tuple(sets), tuple(connections), streams)

    def again_with(self, sets: Sequence[str], connections: Sequence[str]) -> RunRequest:
        """The same request; options that are given now take the place of those stored under their names."""
        return replace(self, sets=_exchanged(self.sets, sets), connections=_exchanged(self.connections, connections))


def save(
    folder: RunFolder, request: RunRequest, package: BoundPackage, redactor: Redactor, began_us: int | None = None
) -> None:
    """Writes the request into the run folder. Options that hold a secret are named there, not stored. `began_us`: when
    the run began, microseconds since 1970.
    """
    folder.write_document(
        folder.request,
        {
            "package": str(request.package),
            "package_hash": package.content_hash,
            "folder": str(request.folder),
            "sets": _options(request.sets, redactor),
            "connections": _options(request.connections, redactor),
            "streams": package.streams,
            "only": list(request.choice.only),
            "from": request.choice.start,
            "skip": list(request.choice.skip),
            "environment": request.environment,
            "trusted": request.trusted,
            "max_concurrent": request.max_concurrent,
            "log_level": request.log_level,
            "began_us": began_us,
        },
    )


def attempt(folder: RunFolder, *, is_resumed: bool) -> int:
    """Which attempt of the run this is, from 1; counts it."""
    if not is_resumed:
        return 1
    path = folder.path / "attempts"
    try:
        number = int(path.read_text(encoding="ascii")) + 1
    except (OSError, ValueError):
        number = 2
    write_text(path, str(number), encoding="ascii")
    return number


def microseconds(time: datetime) -> int:
    """Since 1970, UTC; exact."""
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def began(folder: RunFolder) -> int | None:
    """When the run began, microseconds since 1970; None for a run of a version that loaded no such time."""
    return _read(folder, folder.request).get("began_us")


def load(folder: RunFolder, sets: Sequence[str], connections: Sequence[str]) -> RunRequest:
    """The request of an earlier run, with what is given anew. Raises LedgerError if it is not there, CommandLineError
    if an option that was not stored is missing.
    """
    stored = _read(folder, folder.request)
    request = RunRequest(
        Path(stored["package"]),
        Path(stored["folder"]),
        _known(stored["sets"], sets, "--set"),
        _known(stored["connections"], connections, "--connection"),
        int(stored["streams"]),
        Choice(tuple(stored.get("only", ())), stored.get("from"), tuple(stored.get("skip", ()))),
        stored.get("environment"),
        bool(stored.get("trusted")) and is_own(folder.request),
        stored.get("max_concurrent"),
        stored.get("log_level"),
    )
    return request.again_with(sets, connections)


def was_trusted(folder: RunFolder) -> bool:
    """Whether the request says that the package was trusted, whoever has written that."""
    return bool(_read(folder, folder.request).get("trusted"))


def check_package(folder: RunFolder, package: BoundPackage, purpose: Purpose = RESUME) -> None:
    """Raises PackageError if the package or one of its layouts is not what it was when the run started."""
    stored = _read(folder, folder.request)
    if stored["package_hash"] == package.content_hash:
        return
    what = "the package or a layout" if stored.get("environment") is None else "the package, a layout or environment"
    raise PackageError(
        f"run {folder.run_id} cannot be {purpose.participle}: {what} has changed since it started",
        at={"file": str(package.path)},
        hint=NEW_RUN if purpose is RESUME else f"Put them back as they were: then it can be {purpose.participle}.",
    )


def save_sources(folder: RunFolder, sources: Mapping[str, SourceSnapshot], redactor: Redactor) -> None:
    """Writes what the run reads: files and slices of each task."""
    folder.write_document(folder.sources, _described(sources, redactor))


def add_dialects(folder: RunFolder, task: str, dialects: Mapping[int, Mapping[str, Any]]) -> None:
    """Writes how the rows of files are written, by index, that could not tell it before they were read."""
    sources = _read(folder, folder.sources)
    record = None if task in sources else FlowRecords(folder).of(task)
    files = sources[task]["files"] if record is None else record["source"]["files"]
    for index, dialect in dialects.items():
        files[index]["dialect"] = _dialect(dialect)
    if record is None:
        folder.write_document(folder.sources, sources)
    else:
        add_record(folder, record)


def load_source_files(folder: RunFolder, task: str) -> list[dict[str, Any]]:
    """The files that a task of an earlier run has read: path as shown, dialect if it was kept, of a union `source`, the
    number of its source, and of a replay `origin`, the path of the file in which the rejects stood, if columns show it.
    """
    return [dict(file) for file in _sources(folder).get(task, {"files": []})["files"]]


def _sources(folder: RunFolder) -> dict[str, Any]:
    """What all tasks read: those that were planned before the run, and those that were planned when they started."""
    return {**_read(folder, folder.sources), **{record["task"]: record["source"] for record in records(folder)}}


def described(source: SourceSnapshot, redactor: Redactor) -> dict[str, Any]:
    """What one task reads, for a record of it."""
    return dict(_described({"": source}, redactor)[""])


def check_source(folder: RunFolder, before: Mapping[str, Any], source: SourceSnapshot, redactor: Redactor) -> None:
    """As `check_sources`, of one task."""
    _compare(folder, {"": before}, {"": described(source, redactor)}, RESUME)


def check_sources(
    folder: RunFolder,
    sources: Mapping[str, SourceSnapshot],
    redactor: Redactor,
    purpose: Purpose = RESUME,
    without: Collection[str] = (),
) -> None:
    """Raises FileChangedError unless every task reads the same slices of the same, unchanged files. `without`: tasks
    that have no files now.
    """
    now = _described(sources, redactor)
    looked_at = {*now, *(redactor.text(task) for task in without)}
    before = {task: source for task, source in _sources(folder).items() if task in looked_at}
    _compare(folder, before, now, purpose)


def _compare(folder: RunFolder, old: Mapping[str, Any], new: Mapping[str, Any], purpose: Purpose) -> None:
    before, now = _without_dialects(old), _without_dialects(new)
    if purpose is VERIFY:  # flows with lookups are not compared
        before, now = ({task: {**own, "lookups": {}} for task, own in known.items()} for known in (before, now))
    for task, source in before.items():
        there = now.get(task, {"files": []})
        # Of several sources one may have lost its files, and its task has nothing: those that are gone are told.
        files = source["files"] if task in now else sorted(source["files"], key=lambda own: Path(own["path"]).exists())
        _compare_files(folder, files, there["files"], purpose, "its source files")
        lookups = there.get("lookups", {})
        for name, files in source.get("lookups", {}).items():
            _compare_files(folder, files, lookups.get(name, []), purpose, f"the files of lookup `{name}`")
    # Of several sources one may have had no files; those of the others are known, also where their tasks have ended.
    paths = {file["path"] for source in _sources(folder).values() for file in source["files"]} if now != before else ()
    for task in (task for task in now if task not in before):
        found = [file for file in now[task]["files"] if file["path"] not in paths]
        _compare_files(folder, [], found, purpose, "its source files")
    if before != now:
        raise _changed(folder, purpose, None, "its files are cut into other slices")


def _compare_files(
    folder: RunFolder,
    before: Sequence[Mapping[str, Any]],
    now: Sequence[Mapping[str, Any]],
    purpose: Purpose,
    which: str,
) -> None:
    known, found = ({file["path"]: file for file in files} for files in (before, now))
    for path in [*known, *found]:
        if known.get(path) != found.get(path):
            raise _changed(folder, purpose, path, _difference(known.get(path), found.get(path)), which)


def save_partitions(folder: RunFolder, keys: Mapping[str, Any], plan: RunPlan, redactor: Redactor) -> None:
    """Writes how the tables are divided, and the answers about keys from which that was planned."""
    document = {"keys": _by_task(keys, redactor), "partitions": _by_task(_partitions(plan), redactor)}
    folder.write_document(folder.partitions, document)


def load_keys(folder: RunFolder, tasks: Iterable[str], redactor: Redactor) -> dict[str, Any]:
    """The answers about keys of an earlier attempt, by task; empty for a run that has divided nothing."""
    known = _read(folder, folder.partitions)["keys"] if folder.partitions.exists() else {}
    return {task: known[redactor.text(task)] for task in tasks if redactor.text(task) in known}


def load_partitions(folder: RunFolder, tasks: Iterable[str], redactor: Redactor) -> dict[str, Partitioning]:
    """How an earlier run has divided its tables, by task; empty if none was."""
    known = _read(folder, folder.partitions)["partitions"] if folder.partitions.exists() else {}
    known |= {record["task"]: record["partitions"] for record in records(folder)}
    found = {task: known.get(redactor.text(task)) for task in tasks}
    return {task: Partitioning.from_dict(members) for task, members in found.items() if members is not None}


def check_partitions(folder: RunFolder, plan: RunPlan, redactor: Redactor) -> None:
    """Raises LedgerError unless the tables are divided as they were planned when the run started."""
    before = _read(folder, folder.partitions)["partitions"] if folder.partitions.exists() else {}
    now = _by_task(_partitions(plan), redactor)
    for flow in plan.flows:
        task = redactor.text(flow.task)
        if task in before and before[task] != now.get(task):
            raise LedgerError(
                f"run {folder.run_id} cannot be resumed: table {flow.table} would be divided otherwise than when it "
                "started",
                found=_division(now.get(task)),
                expected=_division(before[task]),
                hint=NEW_RUN,
            )


def _by_task(documents: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    return {redactor.text(task): document for task, document in documents.items()}


def _partitions(plan: RunPlan) -> dict[str, Any]:
    return {flow.task: flow.partitioning.to_dict() for flow in plan.flows if flow.partitioning is not None}


def _division(partitioning: Mapping[str, Any] | None) -> str:
    if partitioning is None:
        return "no partitions"
    parts = [f"{part['table']} ({part['action']})" for part in partitioning["partitions"]]
    shown = ", ".join(parts if len(parts) <= 4 else [*parts[:2], "...", parts[-1]])
    return f"{counted(len(parts), 'partition')} by {partitioning['strategy']}, way {partitioning['way']}: {shown}"


def _changed(
    folder: RunFolder, purpose: Purpose, path: str | None, found: str, which: str = "its source files"
) -> FileChangedError:
    return FileChangedError(
        f"run {folder.run_id} cannot be {purpose.participle}: {which} have changed since it started",
        at=None if path is None else {"file": path},
        found=found,
        hint=NEW_RUN if purpose is RESUME else f"Put them back as they were: then it can be {purpose.participle}.",
    )


def _difference(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> str:
    if before is None:
        return "a file that was not there"
    if now is None:
        return "no such file any more"
    if before["size_bytes"] != now["size_bytes"]:
        return f"{now['size_bytes']} bytes instead of {before['size_bytes']}"
    return "another modification time"


def _described(sources: Mapping[str, SourceSnapshot], redactor: Redactor) -> dict[str, Any]:
    return {
        redactor.text(task): {
            "files": [
                {
                    **_state(file, redactor),
                    # Kept for replays; what a stream tells only when it is read is added then.
                    **({} if file.get("stream") else {"dialect": _dialect(file)}),
                    **({"source": source.part_of(number)} if source.parts else {}),
                    **({"origin": redactor.text(origin)} if (origin := _origin(file)) else {}),
                }
                for number, file in enumerate(source.files)
            ],
            "slices": [[item["file"], item["begin_byte"], item["end_byte"]] for item in source.slices],
            **(
                {"lookups": {own.name: [_state(file, redactor) for file in own.files] for own in source.lookups}}
                if source.lookups
                else {}
            ),
        }
        for task, source in ((task, own.first) for task, own in sources.items())
    }


def _state(file: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """By what it is seen that a file is not what it was."""
    return {
        "path": redactor.text(str(file["path"])),
        "size_bytes": file.get("size_bytes", 0),
        "modified_ns": file.get("modified_ns", 0),
    }


def _origin(file: Mapping[str, Any]) -> str:
    return str((file.get("origin") or {}).get("path", ""))


def _dialect(file: Mapping[str, Any]) -> dict[str, Any]:
    return {name: file[name] for name in _DIALECT if name in file}


def _without_dialects(sources: Mapping[str, Any]) -> dict[str, Any]:
    """What replays alone need, and runs of earlier versions have not kept: a file that has not changed is written in
    the same dialect, and is of the same source.
    """
    return {
        task: {
            **source,
            "files": [
                {name: file[name] for name in file if name not in ("dialect", "source")} for file in source["files"]
            ],
        }
        for task, source in sources.items()
    }


def _read(folder: RunFolder, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"run {folder.run_id} cannot be repeated: its folder is not complete",
            at={"file": str(path)},
            found=getattr(error, "strerror", None) or "not a JSON document",
            hint="Restore the run folder.",
        ) from error
    return dict(document)


def _options(options: Sequence[str], redactor: Redactor) -> dict[str, str | None]:
    """Values by name; None for one that holds a secret."""
    pairs = (option.partition("=") for option in options)
    return {name: None if redactor.hides(value) else value for name, _, value in pairs}


def _known(stored: Mapping[str, str | None], given: Sequence[str], option: str) -> tuple[str, ...]:
    given_names = {text.partition("=")[0] for text in given}
    missing = [name for name, value in stored.items() if value is None and name not in given_names]
    if missing:
        raise CommandLineError(
            f"`{missing[0]}` has to be given again: it held a secret, and secrets are not stored",
            expected=f"{option} {missing[0]}=...",
            hint=f"Add the {option} that the run was started with.",
        )
    return tuple(f"{name}={value}" for name, value in stored.items() if value is not None)


def _exchanged(stored: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    names = {option.partition("=")[0] for option in given}
    return (*(option for option in stored if option.partition("=")[0] not in names), *given)
