"""What lookups read of files, looked at before the flow starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from headrace import core
from headrace.model import FileSource, GatheredSource, Lookup, Source
from headrace.planning import SourceSnapshot
from headrace.sources import snapshot_files


def lookup_sources(
    lookups: Sequence[Lookup], streams: int, destination_files: Sequence[Path], is_cancelled: Callable[[], bool]
) -> tuple[SourceSnapshot, ...]:
    """Looks at what lookups read. Raises CancelledError and SourceError."""
    plan_slices = partial(core.plan_slices, is_cancelled=is_cancelled)
    found = []
    for lookup in lookups:
        if not isinstance(lookup.source, FileSource):
            found.append(SourceSnapshot(lookup.name, [], []))
            continue
        source = snapshot_files(lookup.source, streams, plan_slices, destination_files, is_lookup=True)
        assert source is not None  # it may not be missing
        found.append(source)
    return tuple(found)


def with_lookups_before(
    source: Source,
    found: SourceSnapshot,
    streams: int,
    destination_files: Sequence[Path],
    is_cancelled: Callable[[], bool],
) -> SourceSnapshot:
    """What was found of a source, with the lookups in front of the queries over all rows whose result it is."""
    if not isinstance(source, GatheredSource) or found.gathered is None:
        return found
    before = source.before
    known, beside = (
        lookup_sources(lookups, streams, destination_files, is_cancelled)
        for lookups in (before.lookups, before.lookups_beside)
    )
    gathered = with_lookups_before(before.source, found.gathered, streams, destination_files, is_cancelled)
    return replace(found, gathered=replace(gathered, lookups=known, lookups_beside=beside))
