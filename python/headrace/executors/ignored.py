"""Values of rows that are not those of the file, by column: counted, and kept in the run folder. Of all rows that could
be read, whatever becomes of them behind the parser.

The ledger has their sum. What a resumed run says of a table that an earlier attempt has completed, it reads here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headrace.executors.kept import keep, kept
from headrace.planning import DataFlowPlan

Ignored = dict[str, dict[str, int]]
_KIND: Final = "ignored"


def ignored_by_column(plan: DataFlowPlan, result: Mapping[str, Any] | None) -> Ignored:
    """By column of the layout, `nulls` and `cut`: those of a flow's result, of all attempts of the run."""
    ignored: dict[tuple[int, int], dict[str, int]] = {}
    for item in result["slices"] if result else []:
        for column, counts in item.get("ignored", {}).items():
            place = (plan.source_number(int(item["file"])), int(column))
            own = ignored.setdefault(place, {"nulls": 0, "cut": 0})
            for kind, count in counts.items():
                own[kind] += int(count)
    return {plan.shown_column(*place): counts for place, counts in sorted(ignored.items())}


def keep_ignored(folder: Path, plan: DataFlowPlan, result: Mapping[str, Any]) -> None:
    """Writes them beside the rejects of the task, before its commit. That it cannot fails no load: then only columns
    are not known behind a resume.
    """
    keep(folder, plan.file_stem, _KIND, ignored_by_column(plan, result) or None)


def kept_ignored(folder: Path, file_stem: str, count: int) -> Ignored:
    """Those of a task that has ended, if they add up to the `count` of the ledger; else nothing."""
    if count == 0:
        return {}
    try:
        known: Ignored = kept(folder, file_stem, _KIND)
        found = {name: {kind: int(own[kind]) for kind in ("nulls", "cut")} for name, own in known.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # of an earlier version, or taken away
        return {}
    return found if sum(sum(own.values()) for own in found.values()) == count else {}
