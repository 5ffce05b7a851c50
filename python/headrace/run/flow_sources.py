"""What the sources of data flows have today: their files, looked at once for all ways of a flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headrace import core
from headrace.errors import SourceError
from headrace.model import DataFlowTask, Destination, FileSource, GatheredSource, Join
from headrace.planning import SkippedTask, SourceSnapshot
from headrace.planning.gathered import as_read_by, gathered_snapshot
from headrace.planning.joins import paired
from headrace.planning.unions import united
from headrace.planning.wording import stream_name
from headrace.run.missing_files import no_files
from headrace.sources import FileCommit, check_streams, format_notes, snapshot_files, snapshot_generated
from headrace.targets import capabilities_of


@dataclass(frozen=True)
class PreparedFlow:
    """A data flow whose source has been looked at. `lacking`: the source without files for which what its rows would
    come together with is passed over, while those of sources apart are loaded.
    """

    task: DataFlowTask
    source: SourceSnapshot
    lacking: FileSource | None = None


def look_at(
    task: DataFlowTask,
    streams: int,
    destination_files: Sequence[Path],
    is_cancelled: Callable[[], bool],
    missing: list[FileSource],
) -> PreparedFlow | SkippedTask:
    """What there is for all ways of the flow that `task` is, or is one of. `missing` gets the source that lets all of
    it be skipped, if it is.
    """
    source = task.source
    if isinstance(source, GatheredSource):
        before = look_at(source.before, streams, destination_files, is_cancelled, missing)
        if isinstance(before, SkippedTask):
            return replace(before, task=task.id, table=task.destination.table)
        return PreparedFlow(task, gathered_snapshot(source.name, before.source))
    if not isinstance(source, FileSource):
        return PreparedFlow(task, snapshot_generated(source))
    plan_slices = partial(core.plan_slices, is_cancelled=is_cancelled)
    commit = _commit_of(task.destination)
    sources, found = task.file_sources, list[SourceSnapshot]()
    without: list[FileSource] = []
    brought = () if task.together is None else task.together.brought
    for own in sources:
        # The rows of a pair are read by one stream.
        is_whole = task.join is not None and own in brought
        snapshot = snapshot_files(own, streams, plan_slices, destination_files, commit, is_whole=is_whole)
        if snapshot is None:
            without.append(own)
            notes = [f"{no_files(own)}: it gives no rows"] if task.union is not None and own in brought else []
            snapshot = SourceSnapshot(own.name, [], [], notes)
        slow = core.field_by_field(own.layout.to_core())
        found.append(replace(snapshot, notes=[*snapshot.notes, *format_notes(slow)]))
    lacking = _lacking(task, without)
    if len(without) == len(sources) or (lacking is not None and not any(own.files for own in found[len(brought) :])):
        missing.append(without[0])
        return SkippedTask(task.id, task.destination.table, no_files(without[0]), missing_files=True)
    if lacking is not None:
        found[: len(brought)] = [SourceSnapshot(own.name, [], []) for own in brought]
    if task.together is None:
        return PreparedFlow(task, found[0])
    if isinstance(task.together, Join):
        snapshot = paired(task.together, found)
    else:
        snapshot = united(task.together, found)
    check_streams(snapshot, streams, commits=commit is not None)
    return PreparedFlow(task, snapshot, lacking)


def _lacking(task: DataFlowTask, without: Sequence[FileSource]) -> FileSource | None:
    """The source of which there are no files, if nothing comes together for that. Without one side an inner join has no
    rows; any other one lacks files, which is said elsewhere.
    """
    brought = () if task.together is None else task.together.brought
    lacking = [own for own in without if own in brought]
    if len(lacking) == len(brought):
        return next(iter(lacking), None)
    needed = () if task.join is None else task.join.needed
    return next((own for own in lacking if own in needed), None)


def way_of(task: DataFlowTask, known: PreparedFlow | SkippedTask) -> PreparedFlow | SkippedTask:
    """One way of a data flow, of which this or another one was looked at: they read the same. What gets the rows of one
    of several sources alone has nothing to do if that has no files.
    """
    if isinstance(known, SkippedTask):
        own = no_files(task.source) if task.is_apart and isinstance(task.source, FileSource) else known.reason
        return replace(known, task=task.id, table=task.destination.table, reason=own)
    source = known.source
    if known.lacking is not None and not task.is_apart:
        return SkippedTask(task.id, task.destination.table, no_files(known.lacking), missing_files=True)
    if isinstance(task.source, FileSource) and task.front is not None and not source.files_of(task.front):
        return SkippedTask(task.id, task.destination.table, no_files(task.source), missing_files=True)
    return PreparedFlow(task, source if known.task is task else as_read_by(task.source, source.first))


def refuse_shared_input(flows: Sequence[PreparedFlow]) -> None:
    """Whoever reads a stream first leaves nothing for the others."""
    readers: dict[str, str] = {}
    for flow in flows:
        for path in flow.source.streams:
            own = flow.task.flow or flow.task.id
            first = readers.setdefault(path, own)
            if first != own:
                raise SourceError(
                    f"{stream_name(path)} is the source of two tasks, and can be read once only",
                    found=f"tasks `{first}` and `{flow.task.id}`",
                    hint="Write the rows to a file first.",
                )


def _commit_of(destination: Destination) -> FileCommit | None:
    """How files are cut for a destination that commits inside them; None if it commits once."""
    commit = destination.commit
    if commit is None or not capabilities_of(destination.connection).commits_inside:
        return None
    # All streams may fill one partition together.
    return FileCommit(commit, is_shared=destination.partition is not None)
