"""The accounts of a data flow with queries over all rows: what was read in front of it, and what became of its result.

The ledger has the result alone. What a resumed run says of a table that an earlier attempt has committed, it reads in
the run folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from headrace.errors import AccountsError, InternalError
from headrace.executors.ignored import keep_ignored
from headrace.executors.joined import keep_joined
from headrace.executors.kept import keep, kept
from headrace.executors.local import FlowOutcome
from headrace.executors.rows_left import left_out_or_elsewhere
from headrace.executors.transformed import keep_transformed
from headrace.executors.united import keep_united
from headrace.planning import NO_REJECTS, DataFlowPlan, GatherPlan

_NO_ROWS: Final = {"rows": 0, "matched": 0, "defaulted": 0, "rejected": 0, "null_keys": 0, "filtered": 0}
# Of a result those members that say what has become of rows.
_KEPT: Final = ("slices", "rejects", "transforms", "shared")
# The result of a flow that has failed before its first row.
_NOTHING: Final[Mapping[str, Any]] = {"slices": [], "sink": None, "columns": None}
_KIND: Final = "gathered"
_COUNTS: Final = ("rows_in", "rows_out", "filtered_behind")
# Of a slice those members that say what was read.
_READ: Final = (
    "bytes", "lines", "skipped", "lf_lines", "crlf_lines", "rows", "rejected", "filtered", "values_ignored"
)  # fmt: skip


def gathered_outcomes(
    plans: Sequence[DataFlowPlan],
    before: FlowOutcome,
    behind: Sequence[FlowOutcome] | None,
    *,
    is_told: bool = True,
) -> tuple[FlowOutcome, ...]:
    """The accounts of both flows as those of one, for each destination: slices and rejects of the first, rows that
    arrived of the second. `behind`: None if there was no second one, because the first has failed. `is_told`: what the
    first one has used and rejected is told with the first destination, and not with one of others that it had.
    """
    first = [is_told and number == 0 for number in range(len(plans))]
    if behind is None:
        return tuple(_without_second(plan, before, is_told=told) for plan, told in zip(plans, first, strict=True))
    return tuple(
        _outcome(plan, before, own, is_told=told) for plan, own, told in zip(plans, behind, first, strict=True)
    )


def _without_second(plan: DataFlowPlan, before: FlowOutcome, *, is_told: bool) -> FlowOutcome:
    told, gather = before if is_told else _told_elsewhere(before), plan.gather
    if told.result is None or gather is None:
        return told
    counts = [_NO_ROWS] * (1 + len(plan.transforms))
    return replace(told, result=_of_way(plan, _with_counts(gather, told.result, counts), is_told=is_told))


def _outcome(plan: DataFlowPlan, before: FlowOutcome, behind: FlowOutcome, *, is_told: bool) -> FlowOutcome:
    if before.result is None:
        raise InternalError("a flow that has ended well has no result")
    first = before if is_told else _told_elsewhere(before)
    return FlowOutcome(
        _together(plan, before, behind.result or _NOTHING, is_told=is_told),
        behind.times,
        behind.error,
        before.seconds + behind.seconds,
        first.cpu_seconds + behind.cpu_seconds,
        (*first.warnings, *behind.warnings),
        (*before.lookups, *behind.lookups),
        first.lookup_seconds + behind.lookup_seconds,
    )


def _told_elsewhere(before: FlowOutcome) -> FlowOutcome:
    """What the first flow has used is told with another destination."""
    return replace(before, cpu_seconds=0.0, lookup_seconds=0.0, warnings=())


def check_gathered(plan: DataFlowPlan, before: FlowOutcome, result: Mapping[str, Any]) -> None:
    """Raises AccountsError unless the second flow of a plan, which has this result, has read all rows of the query."""
    rows, read = _rows_out(before), sum(int(item["rows"]) for item in result["slices"])
    if read != rows:
        raise AccountsError(
            f"the accounts of {plan.task} do not balance; nothing was loaded",
            found=f"rows that the query made: {rows}, rows that were read of them: {read}",
            hint="This is a defect of Headrace. Keep the run folder and report it.",
        )


def keep_gathered(
    folder: Path,
    plans: Sequence[DataFlowPlan],
    number: int,
    before: FlowOutcome,
    result: dict[str, Any],
    *,
    is_told: bool = True,
) -> None:
    """Writes the accounts of both flows beside the rejects of the task, before the commit of the second one, which has
    this result for the destination of that number. That it cannot fails no load: then only they are not known behind a
    resume. `is_told`: see `gathered_outcomes`.
    """
    plan = plans[number]
    if plan.gather is None or before.result is None:
        return
    whole = _together(plan, before, result, is_told=is_told and number == 0)
    _keep(folder, plan, before, whole, gathered_counts(plan, whole))
    told = plan.told
    keep_transformed(folder, told, whole)
    if number:  # those of the first one were kept when the first flow has ended
        keep_ignored(folder, told, whole)
        keep_joined(folder, told, whole)
        keep_united(folder, told, whole)


def keep_gathered_in_front(folder: Path, plans: Sequence[DataFlowPlan], before: FlowOutcome) -> None:
    """Writes the accounts of the first flow before the second one begins, whose writers may commit before anybody knows
    its result. Of one query and one destination alone: where rows go different ways behind it, the ledger does not say
    what each transform has done. Where they went to other tables, too, all of it begins anew unless all is visible.
    """
    plan = plans[0]
    gather = plan.gather
    if gather is None or before.result is None or len(plans) > 1 or gather.before.gather is not None or plan.feeds:
        return
    rows_in = sum(int(item["out"]) for item in before.result["slices"])
    counts = {"rows_in": rows_in, "rows_out": _rows_out(before)}
    told = _with_counts(gather, before.result, [{**_NO_ROWS, "rows": rows_in, "matched": counts["rows_out"]}])
    slices = [{**item, "out": 0} for item in told["slices"]]
    _keep(folder, plan, before, {**told, "slices": slices, "transforms": _busy(gather, told)}, counts)


def _keep(
    folder: Path, plan: DataFlowPlan, before: FlowOutcome, result: Mapping[str, Any], counts: Mapping[str, Any] | None
) -> None:
    document = {
        **{name: result[name] for name in _KEPT if name in result},
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
        fits = fits and {"rejects", "lookups"} <= known.keys() and int(known["gathered"]["rows_in"]) >= 0
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


def resumed_outcomes(
    folder: Path, plans: Sequence[DataFlowPlan], behind: Sequence[FlowOutcome]
) -> tuple[FlowOutcome, ...]:
    """The accounts of plans whose rows an earlier attempt has committed: nothing was read now."""
    return tuple(_resumed(folder, plan, own) for plan, own in zip(plans, behind, strict=True))


def _resumed(folder: Path, plan: DataFlowPlan, behind: FlowOutcome) -> FlowOutcome:
    if plan.gather is None or behind.result is None:
        return behind
    loaded = sum(item.loaded for item in plan.committed.values())
    told = plan.told
    known = kept_gathered(folder, told.file_stem, loaded)
    if known is not None:
        lookups = (*known["lookups"], *behind.lookups)
        own: dict[str, Any] = {name: known[name] for name in (*_KEPT, "gathered") if name in known}
        own["slices"] = _with_behind(own["slices"], behind.result["slices"], len(told.transforms))
        return replace(behind, result={**behind.result, **own}, lookups=lookups)
    slices = [{**item, "transforms": [_NO_ROWS] * len(told.transforms)} for item in behind.result["slices"]]
    warnings = (*behind.warnings, not_known(plan.gather.source.name))
    # Those in front were not read.
    lookups = (*({} for _ in plan.gather.before.told.lookups), *behind.lookups)
    result = {**behind.result, "slices": slices, "gathered": None}
    return replace(behind, result=result, warnings=warnings, lookups=lookups)


def _with_behind(
    slices: Sequence[dict[str, Any]], behind: Sequence[Mapping[str, Any]], transforms: int
) -> list[dict[str, Any]]:
    """With the counts of the second flow, if the first one was kept without them: its writers had committed before
    anybody knew its result, and the core has kept it.
    """
    counts = next((list(item["transforms"]) for item in behind if item.get("transforms")), [])
    found = []
    for number, item in enumerate(slices):
        is_whole = len(item["transforms"]) + len(counts) != transforms
        own = [] if is_whole else [_NO_ROWS] * len(counts) if number else counts
        found.append({**item, "transforms": [*item["transforms"], *own]})
    return found


def is_source_known(result: Mapping[str, Any]) -> bool:
    """Whether the slices of a result are those of what was read, and not those of a query over all rows, of which
    nothing else is known.
    """
    return bool(result.get("gathered", True))


def not_known(query: str) -> str:
    """What is said of a table of which only the result of a query is known."""
    return f"how many rows the query {query} has read is not known any more: those of its result count as read"


def gathered_counts(plan: DataFlowPlan, result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The member `gathered` of a table in the summary: how many rows its query over all rows has read and made, and how
    many of these were left out behind it, or have gone another way. Of several queries the first one has read them and
    the last one made them, and `queries` tells the same of each. None without one.
    """
    if plan.gather is None:
        return None
    if result and "gathered" in result:  # of an earlier attempt
        return None if result["gathered"] is None else dict(result["gathered"])
    gathers = _chain(plan.gather)
    counts = [item["transforms"] for item in (result or {"slices": []})["slices"] if item.get("transforms")]
    queries, place = [], 0
    for number, gather in enumerate(gathers):
        place += len(gather.before.transforms) + (number > 0)
        is_last = number + 1 == len(gathers)
        behind = [] if is_last else gathers[number + 1].before.transforms
        own = [item[place] for item in counts]
        left_out = 0
        whole_way = plan if is_last else gathers[number + 1].before
        read = whole_way.rows_read
        for item in counts:
            following = item[place + 1 :][: None if is_last else len(behind)]
            passed = plan.transforms[len(plan.transforms) - len(following) :] if is_last else behind
            left_out += sum(left_out_or_elsewhere(*pair, read) for pair in zip(passed, following, strict=True))
        queries.append(
            {
                "name": gather.source.name,
                "rows_in": sum(int(item["rows"]) for item in own),
                "rows_out": sum(int(item["matched"]) for item in own),
                "filtered_behind": left_out,
            }
        )
    first, last = queries[0], queries[-1]
    whole = {"rows_in": first["rows_in"], **{name: last[name] for name in _COUNTS[1:]}}
    return {**whole, "queries": queries} if len(queries) > 1 else whole


def added_gathered(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Those of two flows of one task together."""
    sums = {name: one[name] + other[name] for name in _COUNTS}
    if "queries" not in one:
        return sums
    queries = [
        {"name": own["name"], **added_gathered(own, theirs)}
        for own, theirs in zip(one["queries"], other["queries"], strict=True)
    ]
    return {**sums, "queries": queries}


def gathered_without_rows(one: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a flow that has read nothing."""
    nothing = dict.fromkeys(_COUNTS, 0)
    if "queries" not in one:
        return {**nothing}
    return {**nothing, "queries": [{"name": own["name"], **nothing} for own in one["queries"]]}


def _chain(gather: GatherPlan) -> list[GatherPlan]:
    """The queries over all rows that stand one behind the other, up to this one."""
    earlier = gather.before.gather
    return [*([] if earlier is None else _chain(earlier)), gather]


def _rows_out(before: FlowOutcome) -> int:
    """The rows of the query's result."""
    return before.times.rows_loaded if before.times else 0


def _together(plan: DataFlowPlan, before: FlowOutcome, second: Mapping[str, Any], *, is_told: bool) -> dict[str, Any]:
    """The result of both flows for a destination. `second`: that of the flow behind the query."""
    gather, first = plan.gather, before.result
    assert gather is not None and first is not None
    rows_in = sum(int(item["out"]) for item in first["slices"])
    out = sum(int(item["out"]) for item in second["slices"])
    own = {**_NO_ROWS, "rows": rows_in, "matched": _rows_out(before)}
    counts = [item["transforms"] for item in second["slices"] if item.get("transforms")]
    behind = counts[0] if counts else [_NO_ROWS] * len(plan.transforms)
    # Files that are empty have no slice, and some queries make a row of nothing.
    nothing = [{**item, **dict.fromkeys(_READ, 0), "transforms": []} for item in second["slices"]]
    told = _with_counts(gather, {**first, "slices": first["slices"] or nothing}, [own, *behind])
    slices = [{**item, "out": 0 if place else out} for place, item in enumerate(told["slices"])]
    busy = [*_busy(gather, first), *second.get("transforms", [])]
    whole = {**first, "slices": slices, "sink": second["sink"], "columns": second["columns"], "transforms": busy}
    return _of_way(plan, whole, is_told=is_told)


def _of_way(plan: DataFlowPlan, result: dict[str, Any], *, is_told: bool) -> dict[str, Any]:
    """Of several destinations: what was read and rejected for all of them is told with the first one."""
    if not plan.flow:
        return result
    if not is_told:
        return {**result, "rejects": NO_REJECTS, "shared": None}
    filtered = sum(int(item["filtered"]) for item in result["slices"])
    return {**result, "shared": {"rows_rejected": int(result["rejects"]["count"]), "rows_filtered": filtered}}


def _busy(gather: GatherPlan, first: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How long the transforms of the first flow were at work, and the query, of which that is not known."""
    return [*first.get("transforms", []), {"name": gather.source.name, "busy_seconds": 0.0}]


def _with_counts(gather: GatherPlan, result: dict[str, Any], counts: list[dict[str, Any]]) -> dict[str, Any]:
    """With those of the query and of what stands behind it, which belong to no slice: they are told with the first."""
    # Those of a pair of a join are told by its first slice.
    in_front, nothing = [_NO_ROWS for _ in gather.before.told.transforms], [_NO_ROWS for _ in counts]
    slices = [
        {**item, "transforms": [*(item.get("transforms") or in_front), *(nothing if number else counts)]}
        for number, item in enumerate(result["slices"])
    ]
    return {**result, "slices": slices}
