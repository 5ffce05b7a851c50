"""What the transforms of a data flow have done with its rows.

The ledger has none of it. What a resumed run says of a table that an earlier attempt has completed, it reads in the run
folder; of the slices of others the core keeps it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headrace.executors.kept import keep, kept
from headrace.model import FlowRows
from headrace.planning import DataFlowPlan, GatheredSqlPlan, LookupPlan, ReunionPlan, SplitPlan, TransformPlan

_KIND: Final = "transforms"
_COUNTS: Final = ("rows", "matched", "defaulted", "rejected", "null_keys", "filtered")
# Of a slice, what its ledger has too.
_OF_LEDGER: Final = ("out", "rejected", "filtered")


def transform_counts(plan: DataFlowPlan, result: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Rows of all slices, of this attempt of the run and before. `slices_not_counted`: those that an earlier attempt
    has committed, and of which neither the run folder nor their file can tell what has become of their rows.
    """
    slices = result["slices"] if result else []
    busy = result.get("transforms", []) if result else []
    # Those of a pair are told by its first slice.
    without = [] if plan.join is not None else [item for item in slices if not item.get("transforms")]
    uncounted = [item for item in without if item.get("stream") is None]
    counted = [item["transforms"] for item in slices if item.get("transforms")]
    # Those behind a query over all rows stand with the only slice of its result, if anybody has seen that.
    known = min(map(len, counted), default=len(plan.transforms))

    def of(number: int) -> list[Mapping[str, Any]]:
        return [item[number] for item in counted] if number < known else []

    return [
        {
            "name": own.name,
            **_kind(own),
            **{count: sum(int(item[count]) for item in of(number)) for count in _COUNTS},
            **_outputs(own, of(number)),
            "slices_not_counted": len(uncounted) + int(number >= known),
            "busy_seconds": round(float(busy[number]["busy_seconds"]), 6) if number < len(busy) else 0.0,
        }
        for number, own in enumerate(plan.transforms)
    ]


def keep_transformed(folder: Path, plan: DataFlowPlan, result: Mapping[str, Any]) -> None:
    """Writes them beside the rejects of the task, before its commit. That it cannot fails no load: then only they are
    not known behind a resume.
    """
    if plan.transforms:
        document = {"transforms": transform_counts(plan, result), "rows": _rows(result["slices"])}
        keep(folder, plan.file_stem, _KIND, document)


def kept_transformed(folder: Path, file_stem: str, rows: Sequence[int], query: str) -> list[dict[str, Any]]:
    """Those of a task that has ended, if they fit the rows that the ledger has; else none. `rows`: loaded, rejected and
    filtered; `query`: the last one over all rows, without which these are those in front of it; empty without one.
    """
    try:
        known = kept(folder, file_stem, _KIND)
        transforms = [{**own, "busy_seconds": 0.0, "lookup": None} for own in known["transforms"]]
        fits = known["rows"] == list(rows) and (not query or any(own["name"] == query for own in transforms))
        return transforms if fits else []
    except (OSError, ValueError, KeyError, TypeError):  # of an earlier version, or taken away
        return []


def added_accounts(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Those of two flows of one task together; of lookups nothing is told, because each flow has its own."""
    if not one or not other:
        return [{**account, "lookup": None} for account in one or other]
    return [
        {
            "name": left["name"],
            **{name: left[name] for name in ("kind", "no_match")},
            **{count: left[count] + right[count] for count in (*_COUNTS, "slices_not_counted")},
            **_added_outputs(left, right),
            "busy_seconds": round(left["busy_seconds"] + right["busy_seconds"], 6),
            "lookup": None,
        }
        for left, right in zip(one, other, strict=True)
    ]


def _rows(slices: Sequence[Mapping[str, Any]]) -> list[int]:
    return [sum(int(item[name]) for item in slices) for name in _OF_LEDGER]


def _kind(own: TransformPlan) -> dict[str, Any]:
    if isinstance(own, LookupPlan):
        return {"kind": "lookup", "no_match": own.no_match}
    if isinstance(own, GatheredSqlPlan):
        return {"kind": "gathered", "no_match": None}
    if isinstance(own, ReunionPlan):
        return {"kind": "union", "no_match": None}
    return {"kind": "split" if isinstance(own, SplitPlan) else "sql", "no_match": None}


def _outputs(own: TransformPlan, counts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a transform with several outputs the rows of those with a name, and by which of them the way goes on."""
    others = [item.get("outputs", []) for item in counts]

    def of(names: Sequence[str]) -> dict[str, int]:
        return {name: sum(int(item[place]) for item in others if place < len(item)) for place, name in enumerate(names)}

    if isinstance(own, SplitPlan):
        first, *names = own.split.outputs
        return {
            "outputs": {first: sum(int(item["matched"]) for item in counts), **of(names)},
            "taken": _shown(own.taken),
        }
    if isinstance(own, LookupPlan) and own.lookup.sends_misses:
        return {"outputs": of(["no_match"]), "taken": _shown(own.taken)}
    return {}


def _shown(taken: Sequence[FlowRows]) -> list[str]:
    return [rows.shown for rows in taken]


def _added_outputs(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    if "outputs" not in left:
        return {}
    rows = {name: count + right["outputs"][name] for name, count in left["outputs"].items()}
    return {"outputs": rows, "taken": left["taken"]}
