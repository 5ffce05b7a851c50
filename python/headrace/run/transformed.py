"""What the transforms of a data flow have done: for the summary, and for what its user should know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace import units
from headrace.executors import FlowOutcome
from headrace.model import FlowRows
from headrace.planning import DataFlowPlan, GatheredSqlPlan, LookupPlan, ReunionPlan, SplitPlan, TransformPlan

_COUNTS: Final = ("rows", "matched", "defaulted", "rejected", "null_keys", "filtered")


def lookup_notices(lookup: LookupPlan, report: Mapping[str, Any]) -> list[str]:
    """What is unusual about a lookup that was read: the core's report of it."""
    name, rows, null_keys, ignored = (
        lookup.name,
        int(report["rows"]),
        int(report["null_keys"]),
        int(report["values_ignored"]),
    )
    notices = []
    if rows == 0:
        become = {"reject": "are rejects", "output": "go to its output `no_match`", "default": "get its default"}[
            lookup.no_match
        ]
        notices.append(f"lookup `{name}` has no rows that can be found: all rows {become}")
    if report["duplicates"]:
        were = "was" if report["duplicates"] == 1 else "were"
        rows_left_out = units.plural(int(report["duplicates"]), "row")
        notices.append(f"lookup `{name}`: {rows_left_out} {were} left out, because a row before has the key")
    if null_keys:
        were = "was" if null_keys == 1 else "were"
        notices.append(f"lookup `{name}`: {units.plural(null_keys, 'row')} without a key {were} left out")
    if ignored:
        were = "was" if ignored == 1 else "were"
        notices.append(f"lookup `{name}`: {units.plural(ignored, 'value')} {were} ignored, as its layout says")
    return notices


def transform_accounts(plan: DataFlowPlan, outcome: FlowOutcome) -> list[dict[str, Any]]:
    """The member `transforms` of a table in the summary: rows of all slices that were read, and the lookups.
    `slices_not_counted`: those whose rows an earlier attempt has committed, without a reject.
    """
    slices = outcome.result["slices"] if outcome.result else []
    busy = outcome.result.get("transforms", []) if outcome.result else []
    # Those of a pair are told by its first slice.
    without = [] if plan.join is not None else [item for item in slices if not item.get("transforms")]
    uncounted = [item for item in without if item.get("stream") is None]
    counted = [item["transforms"] for item in slices if item.get("transforms")]
    # Those behind a query over all rows stand with the only slice of its result, if anybody has seen that.
    known = min(map(len, counted), default=len(plan.transforms))
    accounts = []
    reports = iter(outcome.lookups)

    def of(number: int) -> list[Mapping[str, Any]]:
        return [item[number] for item in counted] if number < known else []

    for number, own in enumerate(plan.transforms):
        accounts.append(
            {
                "name": own.name,
                **_kind(own),
                **{count: sum(int(item[count]) for item in of(number)) for count in _COUNTS},
                **_outputs(own, of(number)),
                "slices_not_counted": len(uncounted) + int(number >= known),
                "busy_seconds": round(float(busy[number]["busy_seconds"]), 6) if number < len(busy) else 0.0,
                "lookup": _lookup(own, next(reports, None)) if isinstance(own, LookupPlan) else None,
            }
        )
    return accounts


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


def _lookup(own: LookupPlan, report: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {"files": own.reading.source.paths, **report} if report else None


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


def _added_outputs(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    if "outputs" not in left:
        return {}
    rows = {name: count + right["outputs"][name] for name, count in left["outputs"].items()}
    return {"outputs": rows, "taken": left["taken"]}
