"""The accounts of a union: what was read of each of its sources.

The ledger does not tell sources apart. What a resumed run says of a table that an earlier attempt has completed, it
reads in the run folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headrace.executors.kept import keep, kept
from headrace.planning import DataFlowPlan

_KIND: Final = "union"
# Members of the accounts of a source, and of what the core tells of its slices.
_COUNTS: Final = {"lines": "lines", "rows_skipped": "skipped", "rows_read": "rows", "rows_rejected": "rejected"}


def union_accounts(plan: DataFlowPlan, result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The member `union` of a table in the summary; None without a union, or without a result. Of each source: lines =
    rows_skipped + rows_read.
    """
    if plan.union is None or not result:
        return None
    sources = []
    for number, name in enumerate(plan.union.source_names[: plan.union.first_apart]):
        own = [item for item in result["slices"] if plan.source_number(int(item["file"])) == number]
        counts = {count: sum(int(item[member]) for item in own) for count, member in _COUNTS.items()}
        sources.append({"source": name, **counts})
    return {"name": plan.union.name, "sources": sources}


def added_unions(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Those of two flows of one task together."""
    sources = [
        {**own, **{count: own[count] + theirs[count] for count in _COUNTS}}
        for own, theirs in zip(one["sources"], other["sources"], strict=True)
    ]
    return {**one, "sources": sources}


def union_without_rows(one: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a flow that has read nothing."""
    return {**one, "sources": [{**own, **dict.fromkeys(_COUNTS, 0)} for own in one["sources"]]}


def keep_united(folder: Path, plan: DataFlowPlan, result: Mapping[str, Any]) -> None:
    """Writes them beside the rejects of the task, before its commit."""
    accounts = union_accounts(plan, result)
    if accounts is not None:
        keep(folder, plan.file_stem, _KIND, accounts)


def kept_united(folder: Path, file_stem: str, rows: int, rejected: int) -> dict[str, Any] | None:
    """Those of a task that has ended, if they fit the rows that the ledger has; else None. `rows`: rejected ones
    included.
    """
    try:
        known: dict[str, Any] = kept(folder, file_stem, _KIND)
        sums = [sum(int(own[count]) for own in known["sources"]) for count in ("rows_read", "rows_rejected")]
    except (OSError, ValueError, KeyError, TypeError):  # taken away
        return None
    return known if sums == [rows, rejected] else None
