"""What the transforms of a data flow have done: for the summary, and for what its user should know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import units
from headrace.executors import FlowOutcome, transform_counts
from headrace.planning import DataFlowPlan, LookupPlan


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
    """The member `transforms` of a table in the summary: rows of all slices, and the lookups."""
    reports = iter(outcome.lookups)
    return [
        {**counts, "lookup": _lookup(own, next(reports, None)) if isinstance(own, LookupPlan) else None}
        for own, counts in zip(plan.transforms, transform_counts(plan, outcome.result), strict=True)
    ]


def _lookup(own: LookupPlan, report: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {"files": own.reading.source.paths, **report} if report else None
