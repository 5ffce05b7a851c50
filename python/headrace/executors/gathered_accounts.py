"""The accounts of a data flow with a query over all rows: what was read in front of it, and what became of its result.

The ledger has the result alone. What a resumed run says of a table that an earlier attempt has committed, it reads in
the run folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from headrace.errors import AccountsError, InternalError
from headrace.executors.kept import keep, kept
from headrace.executors.local import FlowOutcome
from headrace.planning import DataFlowPlan, GatherPlan

_NO_ROWS: Final = {"rows": 0, "matched": 0, "defaulted": 0, "rejected": 0, "null_keys": 0, "filtered": 0}
# Of a result those members that say what has become of rows.
_KEPT: Final = ("slices", "rejects", "transforms")
_KIND: Final = "gathered"
# Of a slice those members that say what was read.
_READ: Final = (
    "bytes", "lines", "skipped", "lf_lines", "crlf_lines", "rows", "rejected", "filtered", "values_ignored"
)  # fmt: skip


def gathered_outcome(plan: DataFlowPlan, before: FlowOutcome, behind: FlowOutcome | None) -> FlowOutcome:
    """The accounts of both flows of a plan as those of one: slices and rejects of the first, rows that arrived of the
    second. `behind`: None if there was no second one, because the first has failed.
    """
    gather = plan.gather
    if gather is None:
        return before
    first = before.result
    not_begun = None if first is None else _with_counts(gather, first, [_NO_ROWS] * (1 + len(plan.transforms)))
    if behind is None:
        return replace(before, result=not_begun)
    if first is None:
        raise InternalError("a flow that has ended well has no result")
    second = behind.result
    return FlowOutcome(
        # A lookup behind the query may have failed, before any row has moved.
        not_begun if second is None else _together(gather, first, second, _rows_out(before)),
        behind.times,
        behind.error,
        before.seconds + behind.seconds,
        before.cpu_seconds + behind.cpu_seconds,
        (*before.warnings, *behind.warnings),
        (*before.lookups, *behind.lookups),
        before.lookup_seconds + behind.lookup_seconds,
    )


def check_gathered(plan: DataFlowPlan, before: FlowOutcome, result: Mapping[str, Any]) -> None:
    """Raises AccountsError unless the second flow of a plan, which has this result, has read all rows of the query."""
    rows, read = _rows_out(before), sum(int(item["rows"]) for item in result["slices"])
    if read != rows:
        raise AccountsError(
            f"the accounts of {plan.task} do not balance; nothing was loaded",
            found=f"rows that the query made: {rows}, rows that were read of them: {read}",
            hint="This is a defect of Headrace. Keep the run folder and report it.",
        )


def keep_gathered(folder: Path, plan: DataFlowPlan, before: FlowOutcome, result: dict[str, Any]) -> None:
    """Writes the accounts of both flows beside the rejects of the task, before the commit of the second one, which has
    this result. That it cannot fails no load: then only they are not known behind a resume.
    """
    if plan.gather is None or before.result is None:
        return
    whole = _together(plan.gather, before.result, result, _rows_out(before))
    _keep(folder, plan, before, whole, gathered_counts(plan, whole))


def keep_gathered_in_front(folder: Path, plan: DataFlowPlan, before: FlowOutcome) -> None:
    """Writes the accounts of the first flow before the second one begins, whose writers may commit before anybody knows
    its result.
    """
    if plan.gather is None or before.result is None:
        return
    rows_in = sum(int(item["out"]) for item in before.result["slices"])
    counts = {"rows_in": rows_in, "rows_out": _rows_out(before)}
    told = _with_counts(plan.gather, before.result, [{**_NO_ROWS, "rows": rows_in, "matched": counts["rows_out"]}])
    slices = [{**item, "out": 0} for item in told["slices"]]
    _keep(folder, plan, before, {**told, "slices": slices, "transforms": _busy(plan.gather, told)}, counts)


def _keep(
    folder: Path, plan: DataFlowPlan, before: FlowOutcome, result: Mapping[str, Any], counts: Mapping[str, int] | None
) -> None:
    document = {
        **{name: result[name] for name in _KEPT},
        "lookups": before.lookups,
        "gathered": counts,
        "is_changed_behind": bool(plan.transforms),
    }
    keep(folder, plan.told.file_stem, _KIND, document)


def kept_gathered(folder: Path, file_stem: str, loaded: int) -> dict[str, Any] | None:
    """Those of a task that has committed so many rows, if they fit them; else None. They are those of a flow's result
    that has read nothing now.
    """
    try:
        known = _with_ledger(kept(folder, file_stem, _KIND), loaded)
        slices = [{**item, "stream": None, "committed": True, "bytes": 0} for item in known["slices"]]
        busy = [{**item, "busy_seconds": 0.0} for item in known["transforms"]]
        fits = sum(int(item["out"]) for item in slices) == loaded
        fits = fits and {"rejects", "lookups", "gathered"} <= known.keys()
    except (OSError, ValueError, KeyError, TypeError):  # taken away
        return None
    return {**known, "slices": slices, "transforms": busy} if fits else None


def _with_ledger(known: dict[str, Any], loaded: int) -> dict[str, Any]:
    """What is kept, if need be with what the ledger has of the second flow, whose result nobody has seen: rows that the
    query made and that are not in the table were left out. Raises ValueError if that cannot be.
    """
    if "filtered_behind" in known["gathered"]:
        return known
    left_out = int(known["gathered"]["rows_out"]) - loaded
    if left_out < 0 or (left_out and not known["is_changed_behind"]):
        raise ValueError("accounts of another attempt")
    slices = [{**item, "out": 0 if number else loaded} for number, item in enumerate(known["slices"])]
    return {**known, "slices": slices, "gathered": {**known["gathered"], "filtered_behind": left_out}}


def resumed_outcome(folder: Path, plan: DataFlowPlan, behind: FlowOutcome) -> FlowOutcome:
    """The accounts of a plan whose rows an earlier attempt has committed: nothing was read now."""
    if plan.gather is None or behind.result is None:
        return behind
    loaded = sum(item.loaded for item in plan.committed.values())
    front = plan.gather.before.transforms
    known = kept_gathered(folder, plan.told.file_stem, loaded)
    if known is not None:
        lookups = (*known["lookups"], *behind.lookups)
        told = {name: known[name] for name in (*_KEPT, "gathered")}
        return replace(behind, result={**behind.result, **told}, lookups=lookups)
    slices = [
        {**item, "transforms": [_NO_ROWS] * (len(front) + 1 + len(plan.transforms))} for item in behind.result["slices"]
    ]
    warnings = (*behind.warnings, not_known(plan.gather.source.name))
    # Those in front were not read.
    lookups = (*({} for _ in plan.gather.before.lookups), *behind.lookups)
    result = {**behind.result, "slices": slices, "gathered": None}
    return replace(behind, result=result, warnings=warnings, lookups=lookups)


def is_source_known(result: Mapping[str, Any]) -> bool:
    """Whether the slices of a result are those of what was read, and not those of a query over all rows, of which
    nothing else is known.
    """
    return bool(result.get("gathered", True))


def not_known(query: str) -> str:
    """What is said of a table of which only the result of a query is known."""
    return f"how many rows the query {query} has read is not known any more: those of its result count as read"


def gathered_counts(plan: DataFlowPlan, result: Mapping[str, Any] | None) -> dict[str, int] | None:
    """The member `gathered` of a table in the summary: how many rows the query over all rows has read and made, and how
    many of these were left out behind it. None without one.
    """
    if plan.gather is None:
        return None
    if result and "gathered" in result:  # of an earlier attempt
        return None if result["gathered"] is None else dict(result["gathered"])
    place = len(plan.gather.before.transforms)
    counts = [item["transforms"][place:] for item in (result or {"slices": []})["slices"] if item.get("transforms")]
    return {
        "rows_in": sum(int(own["rows"]) for own, *_ in counts),
        "rows_out": sum(int(own["matched"]) for own, *_ in counts),
        "filtered_behind": sum(int(own["filtered"]) for _, *behind in counts for own in behind),
    }


def _rows_out(before: FlowOutcome) -> int:
    """The rows of the query's result."""
    return before.times.rows_loaded if before.times else 0


def _together(gather: GatherPlan, first: dict[str, Any], second: dict[str, Any], gathered: int) -> dict[str, Any]:
    """`gathered`: the rows of the query's result."""
    rows_in = sum(int(item["out"]) for item in first["slices"])
    out = sum(int(item["out"]) for item in second["slices"])
    own = {**_NO_ROWS, "rows": rows_in, "matched": gathered}
    counts = [item["transforms"] for item in second["slices"] if item.get("transforms")]
    behind = counts[0] if counts else [_NO_ROWS] * len(second.get("transforms", []))
    # Files that are empty have no slice, and some queries make a row of nothing.
    nothing = [{**item, **dict.fromkeys(_READ, 0), "transforms": []} for item in second["slices"]]
    told = _with_counts(gather, {**first, "slices": first["slices"] or nothing}, [own, *behind])
    slices = [{**item, "out": 0 if number else out} for number, item in enumerate(told["slices"])]
    busy = [*_busy(gather, first), *second.get("transforms", [])]
    return {**first, "slices": slices, "sink": second["sink"], "columns": second["columns"], "transforms": busy}


def _busy(gather: GatherPlan, first: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How long the transforms of the first flow were at work, and the query, of which that is not known."""
    return [*first.get("transforms", []), {"name": gather.source.name, "busy_seconds": 0.0}]


def _with_counts(gather: GatherPlan, result: dict[str, Any], counts: list[dict[str, Any]]) -> dict[str, Any]:
    """With those of the query and of what stands behind it, which belong to no slice: they are told with the first."""
    # Those of a pair of a join are told by its first slice.
    in_front, nothing = [_NO_ROWS for _ in gather.before.transforms], [_NO_ROWS for _ in counts]
    slices = [
        {**item, "transforms": [*(item.get("transforms") or in_front), *(nothing if number else counts)]}
        for number, item in enumerate(result["slices"])
    ]
    return {**result, "slices": slices}
