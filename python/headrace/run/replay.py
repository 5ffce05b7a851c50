"""Replays: a run of its own that loads repaired rejects of an earlier run, each at most once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from headrace import core
from headrace.errors import CommandLineError, HeadraceError, InternalError, LedgerError
from headrace.model import BoundPackage, DataFlowTask, FileSource, GatheredSource, RejectBounds, RejectLimits, Task
from headrace.planning import DataFlowPlan, ReplayPlan, RunPlan, SourcePart, SourceSnapshot, counted, display_name
from headrace.private_files import make_folder, open_file
from headrace.run import request as requests
from headrace.run.flow_records import with_late_flows
from headrace.run.flow_sources import PreparedFlow
from headrace.run.folder import DEFAULT_RUNS_FOLDER, REPLAY, RunFolder
from headrace.run.lookup_sources import lookup_sources
from headrace.run.merged_claims import merged_claims
from headrace.run.number_list import Stretch, Stretches, count_numbers, number_list, parse_number_list, union
from headrace.run.redact import Redactor
from headrace.run.reject_accounts import open_beside
from headrace.run.rejected import Choice, RejectedTable, rejected_run
from headrace.run.replay_groups import RowGroups, core_files, repeat_place, row_groups
from headrace.run.replay_rows import loaded_and_dropped, noted_task, repaired
from headrace.run.replay_ways import WayOfReplay, ways_of_replay
from headrace.run.tasks import nameable_flows
from headrace.run.true_hints import load_again
from headrace.targets import Target, capabilities_of, files_of
from headrace.targets.claims import refuse_replaced, refuse_taken

_COPY_BYTES: Final = 1 << 20
_COPY_FOLDER: Final = Path("replay")


@dataclass(frozen=True)
class ReplayOptions:
    """What is replayed: `file` holds the repaired rows. `rows` and `drop` are lists of numbers as they were written;
    `limit`: as many rows may be rejected again, None for any number.
    """

    file: Path | None
    table: str | None = None
    rows: str | None = None
    drop: str | None = None
    limit: int | None = None


@dataclass(frozen=True)
class ReplayRun:
    """A replay that is ready to be executed, and all that has to be known to execute it again.

    `rejects`: as many had the task of run `of_run`; `rows_added`: rows of the file beyond one for each number. `file`:
    the copy, in the run folder; `given`: what it is a copy of. `files`, `groups` and `first_bytes`: as `RowGroups` has
    them. `ways`: of a data flow with several destinations, whose id `task` is, what is claimed for each of them;
    `asks_all`: the ledgers of all are asked, because something is.
    """

    folder: RunFolder
    of_run: str
    task: str
    rejects: int
    loads: Sequence[Stretch]
    drops: Sequence[Stretch]
    rows_added: int
    file: str
    given: str | None
    file_hash: str | None
    files: Sequence[Mapping[str, Any]]
    groups: Sequence[Mapping[str, Any]]
    limit: int | None
    first_bytes: Sequence[int] = ()
    ways: Sequence[WayOfReplay] = ()
    asks_all: bool = True

    @property
    def numbers(self) -> int:
        """How many rejects are taken."""
        return count_numbers(self.loads) + count_numbers(self.drops)

    @property
    def names(self) -> dict[str, str]:
        """How the copy is called where users see it: rows that they repair stand in their own file."""
        return {} if self.given is None else {str(self.folder.path / self.file): self.given}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, kept in the run folder."""
        return {
            "of_run": self.of_run,
            "task": self.task,
            "rejects": self.rejects,
            "loads": number_list(self.loads),
            "drops": number_list(self.drops),
            "rows_added": self.rows_added,
            "file": self.file,
            "given": self.given,
            "file_hash": self.file_hash,
            "files": list(self.files),
            "groups": list(self.groups),
            "limit": self.limit,
            "first_bytes": list(self.first_bytes),
            **({"ways": [way.to_dict() for way in self.ways], "asks_all": self.asks_all} if self.ways else {}),
        }

    @classmethod
    def load(cls, folder: RunFolder) -> ReplayRun:
        """That of an earlier attempt. Raises LedgerError if its folder is not complete."""
        try:
            known = json.loads(folder.replay.read_text(encoding="utf-8"))
            loads, drops = (Stretches(parse_number_list(known[name]) or ()) for name in ("loads", "drops"))
            ways = [WayOfReplay.from_dict(way) for way in known.get("ways", ())]
            return cls(folder, **{**known, "loads": loads, "drops": drops, "ways": ways})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LedgerError(
                f"replay {folder.run_id} cannot be resumed: its folder is not complete",
                at={"file": str(folder.replay)},
                found=getattr(error, "strerror", None) or "not what a replay writes",
                hint="Replay the file once more: `headrace replay`.",
            ) from error

    def package(self, package: BoundPackage) -> BoundPackage:
        """Of the package of the run the one task, which appends what the file holds."""
        of = RunFolder(self.of_run, self.folder.path.parent / self.of_run)
        taken = {way.name for way in self.ways}
        tasks = flows_to_replay(package, of, self.task, taken)
        if self.ways:
            tasks = [task for task in tasks if task.destination.name in taken or task.reject_table is not None]
            lost = sorted(taken - {task.destination.name for task in tasks})
            if lost:  # its rows would count as loaded, and be nowhere
                raise InternalError("a replay does not find a table that lacks rows", found=f"{self.task}/{lost[0]}")
        # One data flow and nothing around it, whatever its package says: it is called as it was inside of a loop.
        alone = Task(self.task, self.task, "data_flow", (), {"data_flow": {}})
        places = {task.destination.name for task in tasks}
        flows = [
            replace(
                task,
                destination=replace(task.destination, target="append", commit=None, takes_back=True),
                when=True,
                definition=alone.id,
                beside=tuple(own for own in task.beside if own.name in places),
            )
            for task in tasks
        ]
        return replace(
            package, flows=flows, tasks=(alone,), variables=(), handlers={}, children={}, streams=1, maximum_errors=0
        )

    def sources(self, package: BoundPackage, is_cancelled: Callable[[], bool]) -> list[PreparedFlow]:
        """The rows of the copy, as the data flow reads them; of each of several destinations those that it lacks."""
        tasks = [flow for flow, _ in nameable_flows(package)]
        files, groups = ([dict(item) for item in items] for items in (self.files, self.groups))
        rows = RowGroups(files, groups, bytes(self.first_bytes))
        found = _find_rows(self.folder, self.file, tasks[0], rows, is_cancelled)
        limit = int(found["rows"]) if self.limit is None else self.limit
        rejects = RejectLimits(RejectBounds(limit))
        prepared = []
        for task in tasks:
            source = SourceSnapshot(
                name=task.source.name,
                files=found["files"],
                slices=[item for item in found["slices"] if self._takes(task, groups[item["file"]])],
                notes=[f"{counted(self._claimed(task).numbers, 'reject')} of run {self.of_run}"],
                may_be_empty=True,
                parts=_parts(task, [rows.source_of(group) for group in groups]),
            )
            # They are read anew: a row that has come since then is found.
            own, beside = (
                lookup_sources(lookups, package.streams, files_of(task.destination.connection), is_cancelled)
                for lookups in (task.lookups, task.lookups_beside)
            )
            source = replace(source, lookups=own, lookups_beside=beside)
            prepared.append(PreparedFlow(replace(task, rejects=rejects), source))
        return prepared

    def planned(self, plan: RunPlan, claimants: Sequence[tuple[DataFlowTask, Target]], redactor: Redactor) -> RunPlan:
        """The plan with its claims; a task that an earlier attempt has finished needs none.

        Raises LedgerError if a reject is taken, or its rows would be those of another table.
        """
        of = {task.id: (task, target) for task, target in claimants}
        claiming = []
        for flow in plan.tasks:
            if isinstance(flow, DataFlowPlan):
                task, target = of[flow.task]
                own = self._claimed(task)
                claim = ReplayPlan(self.of_run, own.loads, own.drops, self.file_hash, own.rows_added)
                check_replay(self.folder.run_id, flow, claim, task, target, redactor)
                flow = replace(flow, replay=claim)
            claiming.append(flow)
        return replace(plan, tasks=tuple(claiming))

    def open_behind(self, claimants: Sequence[tuple[DataFlowTask, Target]]) -> int | None:
        """Rejects of the task that are neither in this replay nor in others that count; None if the ledgers of some of
        several destinations are not asked, because nothing is loaded there.
        """
        if self.ways and not self.asks_all:
            return None
        others = [
            [item for item in target.replays(self.of_run, task.id) if item.run_id != self.folder.run_id]
            for task, target in claimants
        ]
        claims = merged_claims(others) if self.ways else others[0]
        return open_beside(self.rejects, claims, union(self.loads, self.drops))

    def accounts(
        self, tables: Sequence[Mapping[str, Any]], open_behind: int | None, redactor: Redactor
    ) -> dict[str, Any]:
        """What became of the rejects: numbers + rows_added = loaded + rejected_again + filtered + dropped. `tables`: of
        the summary, whose names are without secrets; `open_behind`: as the method says, None if that is not known.

        With several destinations that holds for each of them, and the counts of rows are sums over them.
        """
        ways = {redactor.text(f"{self.task}/{way.name}"): way for way in self.ways}
        done = [table for table in tables if table["status"] == "success"]
        own = [self._accounts_of(table, ways.get(table["task"], self._way(""))) for table in done]
        is_done = bool(done) and ways.keys() <= {table["task"] for table in done}
        return {
            "of_run": self.of_run,
            "numbers": self.numbers if is_done else 0,
            **{name: sum(item[name] for item in own) for name in ("loaded", "rejected_again", "filtered")},
            "dropped": count_numbers(self.drops) if is_done else 0,
            "rows_added": self.rows_added if is_done else 0,
            "open": open_behind,
            **({"tables": own} if self.ways else {}),
        }

    def _accounts_of(self, table: Mapping[str, Any], way: WayOfReplay) -> dict[str, Any]:
        return {
            "table": table["table"],
            "numbers": way.numbers,
            "loaded": int(table["rows_loaded"]),
            "rejected_again": int(table["rows_rejected"]),
            "filtered": int(table["rows_filtered"]),
            "dropped": count_numbers(way.drops),
            "rows_added": way.rows_added,
        }

    def _claimed(self, task: DataFlowTask) -> WayOfReplay:
        return self._way(task.destination.name)

    def _way(self, name: str) -> WayOfReplay:
        """What is claimed for a destination; all of it, if there is one only."""
        if not self.ways:
            return WayOfReplay(name, self.loads, self.drops, self.rows_added)
        return next((way for way in self.ways if way.name == name), WayOfReplay(name, (), ()))

    def _takes(self, task: DataFlowTask, group: Mapping[str, Any]) -> bool:
        return not self.ways or task.destination.name in group.get("destinations", ())


def begin_replay(
    of: RunFolder,
    package: BoundPackage,
    options: ReplayOptions,
    *,
    runs_dir: Path | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> ReplayRun:
    """Takes the file into a new run folder and finds out which rejects its rows stand for. `package`: that of run `of`.

    Raises CommandLineError for options that contradict, PackageError if the package is another one by now, LedgerError
    for what cannot be replayed, and what reading the file raises. Nothing stays behind then.
    """
    names: dict[str, str] = {}
    try:
        requests.check_package(of, package, REPLAY)
        table = _rejected_table(of, options)
        tasks = flows_to_replay(package, of, table.flow or table.task, _names(table))
        task = _replayable(of, tasks, table)
        said = repaired(of.run_id, table.task, table.rejected, options.file, options.rows, options.drop)
        folder = RunFolder.create(runs_dir or DEFAULT_RUNS_FOLDER, datetime.now(UTC))
        try:
            given = None if options.file is None else Redactor(package.secrets).text(_shown(options.file))
            file, file_hash = _keep(folder, options.file, names)
            made = [column for source in task.file_sources for column in source.layout.made]
            rows = row_groups(of, table, made, said, folder.origins)
            found = _find_rows(folder, file, task, rows, is_cancelled)
            if said.takes_all:
                repeat_place(folder.origins, int(found["rows"]))
            loads, drops, rows_added = loaded_and_dropped(said, int(found["rows"]), found.pop("blank"), rows.unclosed)
            stored = _stored(tasks)
            ways = ways_of_replay(table, stored, loads, drops, rows_added) if table.flow else []
            run = ReplayRun(
                folder,
                of.run_id,
                table.flow or table.task,
                table.rejected,
                loads,
                drops,
                rows_added,
                file,
                given,
                file_hash,
                rows.files,
                rows.groups,
                options.limit,
                list(rows.first_bytes),
                ways,
                len(ways) == len(stored),
            )
            folder.write_document(folder.replay, run.to_dict())
        except BaseException:
            with suppress(OSError):
                shutil.rmtree(folder.path)
            raise
        return run
    except HeadraceError as error:
        raise Redactor(package.secrets, names).error(error) from None


def check_replay(
    run_id: str, plan: DataFlowPlan, claim: ReplayPlan, task: DataFlowTask, target: Target, redactor: Redactor
) -> None:
    """Raises LedgerError unless the rows belong to what the run has loaded, and nobody has taken them. `redactor`: of
    the names that are in the ledger.
    """
    name = display_name(task.destination, target.default_schema)
    loaded = target.loaded_table(claim.of_run, plan.task)
    if loaded is None or not loaded.finished:
        raise LedgerError(
            f"run {claim.of_run} cannot be replayed: it has not loaded {name}",
            found="no rows of the run in the ledger there",
            hint="Replay it with the connections that the run had.",
        )
    own = (plan.schema or "", redactor.text(plan.table))
    there = (own[0] if loaded.schema is None else loaded.schema, loaded.table)
    key = target.capabilities.name_key
    if tuple(map(key, own)) != tuple(map(key, there)):
        raise LedgerError(
            f"run {claim.of_run} cannot be replayed: it has loaded another table",
            found=".".join(filter(None, own)),
            expected=".".join(filter(None, there)),
            hint="Replay it with the parameters that the run had.",
        )
    if target.catalog(task.destination.schema, task.destination.table) is None:
        raise LedgerError(
            f"run {claim.of_run} cannot be replayed: table {name} is not there any more",
            hint=f"Load its source files again: `headrace run --only {task.definition}`.",
        )
    later = target.replaced_since(claim.of_run, plan.task, replace(loaded, schema=there[0]))
    refuse_replaced(claim, name, later)
    refuse_taken(run_id, claim, target.replays(claim.of_run, plan.task))


def _parts(task: DataFlowTask, sources: Sequence[int]) -> tuple[SourcePart, ...]:
    """Of a union, whose sources follow one another in numbers of rejects, too. `sources`: the number of the one that
    each group is of.
    """
    if task.union is None:
        return ()
    first = [sum(source < number for source in sources) for number in range(len(task.file_sources))]
    return tuple(
        SourcePart(source.name, file, may_be_empty=True) for source, file in zip(task.file_sources, first, strict=True)
    )


def _rejected_table(of: RunFolder, options: ReplayOptions) -> RejectedTable:
    tables = rejected_run(of, Choice(table=options.table)).tables
    if len(tables) > 1:
        noted = noted_task(of.run_id, options.file)
        tables = [table for table in tables if table.task == noted] or tables
    if len(tables) == 1:
        return tables[0]
    names = [table.table for table in tables]
    if len(set(names)) < len(names):
        names = [table.task for table in tables]
    if not names:
        raise LedgerError(f"run {of.run_id} has rejected no row", hint="There is nothing to replay.")
    raise CommandLineError(
        "a replay loads rejects of one table",
        found=f"rejects of {', '.join(names)}",
        hint=f"Choose one: `--table {names[0]}`.",
    )


def flows_to_replay(package: BoundPackage, of: RunFolder, name: str, names: Collection[str]) -> list[DataFlowTask]:
    """The data flow called `name` as it stands in the documents of a run, which hold no secrets: the ways to its
    destinations, `names` among them, if there are several.
    """
    redactor = Redactor(package.secrets)
    known = with_late_flows(package, of, {name, *(f"{name}/{redactor.text(own)}" for own in names)})
    found = [flow for flow, _ in nameable_flows(known) if redactor.text(flow.flow or flow.id) == name]
    if not found:
        raise LedgerError(f"the package has no task `{name}` any more", hint="Give the parameters of the run.")
    if len({flow.destination.name for flow in found}) < len(found):
        raise LedgerError(
            f"rejects of task {name} cannot be replayed",
            found=f"{len(found)} tasks that are called the same, because secrets in their names are not stored",
            hint="Load the repaired rows from a file of their own, by a package with `target: append`.",
        )
    return found


def _names(table: RejectedTable) -> list[str]:
    """Of the destinations of its flow."""
    return [task.rpartition("/")[2] for task in table.ways]


def _stored(ways: Sequence[DataFlowTask]) -> list[str]:
    """Names of the destinations that keep what they get: nothing lacks in the others."""
    return [way.destination.name for way in ways if capabilities_of(way.destination.connection).stores_tables]


def _replayable(of: RunFolder, ways: Sequence[DataFlowTask], table: RejectedTable) -> DataFlowTask:
    """The first of the ways, unless rows of them cannot be replayed."""
    task = ways[0]

    def refused(
        found: str, hint: str = "Load the repaired rows from a file of their own, by a package with `target: append`."
    ) -> LedgerError:
        return LedgerError(f"rejects of table {table.table} cannot be replayed", found=found, hint=hint)

    if task.destination.partitions:
        raise refused("partitions that the run has loaded anew")
    if task.join is not None:
        raise refused("rows of a join, whose other sides are not read again", load_again(ways, of.run_id))
    gathered = next((way.source for way in ways if isinstance(way.source, GatheredSource)), None)
    if gathered is not None:
        raise refused(
            f"rows in front of the query `{gathered.name}`, which needs all rows: one more changes what was loaded",
            load_again(ways, of.run_id),
        )
    if not isinstance(task.source, FileSource):
        raise refused("rows that no file holds")
    known = requests.load_source_files(of, table.task)
    if not all("dialect" in file for file in known):
        raise refused(f"run {of.run_id} has kept no encoding and row end of its source")
    if task.union is not None and not all("source" in file for file in known):
        raise refused(f"run {of.run_id} has not kept which source each of its files is of")
    return task


def _keep(folder: RunFolder, file: Path | None, names: dict[str, str]) -> tuple[str, str | None]:
    """Copies the file into the run folder, safe from changes and from a power cut; its place there and its SHA-256. In
    `names` the copy gets the name of the file.
    """
    place = _COPY_FOLDER / _copy_name(file)
    copy_path = folder.path / place
    try:
        make_folder(copy_path.parent)
        hashed = hashlib.sha256()
        with open_file(copy_path, "wb") as copy:
            if file is not None:
                with file.open("rb") as source:
                    while window := source.read(_COPY_BYTES):
                        hashed.update(window)
                        copy.write(window)
            copy.flush()
            os.fsync(copy.fileno())
    except OSError as error:
        is_own = file is not None and error.filename == str(file)
        raise LedgerError(
            "the file of repaired rows cannot be " + ("read" if is_own else "kept"),
            at={"file": str(file)} if is_own else {"folder": str(folder.path)},
            found=error.strerror,
            hint="Name the file that holds the repaired rows." if is_own else "Free space there.",
        ) from error
    if file is None:
        return str(place), None
    names[str(copy_path)] = _shown(file)
    return str(place), hashed.hexdigest()


def _copy_name(file: Path | None) -> str:
    """That of the file, if it can be one everywhere."""
    if file is None:
        return "nothing"
    is_name = file.name not in ("", "..") and _shown(file) == str(file.absolute())
    return file.name if is_name else "rows"


def _shown(file: Path) -> str:
    """Its absolute path, also if that is no text."""
    return os.fsencode(file.absolute()).decode(errors="backslashreplace")


def _find_rows(
    folder: RunFolder,
    file: str,
    task: DataFlowTask,
    rows: RowGroups,
    is_cancelled: Callable[[], bool],
) -> dict[str, Any]:
    path = folder.path / file
    spec = {
        "path": str(path),
        "layouts": [source.layout.to_core(set()) for source in task.file_sources],
        "files": core_files(rows.files, path, folder.origins),
        "groups": rows.core_groups(),
        "first_bytes": list(rows.first_bytes),
    }
    return core.replay_rows(spec, is_cancelled)
