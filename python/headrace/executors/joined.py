"""The accounts of a join: what became of the rows of both sides, and how many came out; of several joins, those of all.

The ledger has none of them. What a resumed run says of a table that an earlier attempt has completed, it reads in the
run folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headrace.executors.kept import keep, kept
from headrace.executors.rows_left import left_out_in_front
from headrace.model import SIDES, Join
from headrace.planning import DataFlowPlan, JoinPlan

_COUNTS: Final = ("rows", "unmatched", "filtered", "null_keys")
# Of the files of a side, as summaries and as the core call it.
_OF_FILES: Final = {"lines": "lines", "rows_skipped": "skipped", "rows_rejected": "rejected"}
_KIND: Final = "joined"
# Of rows that transforms in front of it leave out.
_IN_FRONT: Final = "filtered_in_front"
# Members of a side that are no numbers to add.
_NAMES: Final = ("source", "join")


def join_accounts(plan: DataFlowPlan, result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The member `join` of a table in the summary; None without a join, or without a result.

    Of each side: rows = matched + unmatched, and what is filtered of the unmatched goes no further; with transforms in
    front `filtered_in_front` are those that these have left out. `rows_out`: a right
    row meets one left row at most, so that the matched right rows and the unmatched that are kept are all that can come
    out. `rejected_behind`: of the rejects of the side, rows that stand for those which have come out and are not loaded
    because of what was found behind the join.

    A side that is another join has that as `join`, and `rejected_in_front` are rows out of it that were refused before
    they came to this one. Its lines and rejects are those of its sources.
    """
    return None if plan.join is None or not result else _Accounts(plan, plan.join, result).of(plan.join.join)


class _Accounts:
    """Of one flow."""

    def __init__(self, plan: DataFlowPlan, joins: JoinPlan, result: Mapping[str, Any]) -> None:
        self._plan = plan
        self._joins = joins
        self._slices: Sequence[Mapping[str, Any]] = result["slices"]

    def of(self, join: Join) -> dict[str, Any]:
        """Of one join, and those whose rows it takes."""
        numbers = self._joins.sides(join)
        sides: dict[str, dict[str, Any]] = {
            side: self._of_join(own, number) if isinstance(own, Join) else self._of_source(own.name, number)
            for side, own, number in zip(SIDES, join.sides, numbers, strict=True)
        }
        kept = sum(int(own["unmatched"]) - int(own["filtered"]) for own in sides.values())
        return {"name": join.name, "type": join.kind, "rows_out": int(sides["right"]["matched"]) + kept, **sides}

    def _of_source(self, name: str, number: int) -> dict[str, Any]:
        own = [item for item in self._slices if self._plan.source_number(int(item["file"])) == number]
        of_join = [item["join"] for item in own if item.get("join")]
        return {
            "source": name,
            **{told: sum(int(item[member]) for item in own) for told, member in _OF_FILES.items()},
            "rejected_behind": sum(int(item["rejected"]) for item in of_join),
            **_came(of_join),
            **self._left_out(own, number),
        }

    def _of_join(self, join: Join, number: int) -> dict[str, Any]:
        before = self.of(join)
        place = number - len(self._joins.sources)
        of_units = [item["inner"][place] for item in self._slices if item.get("inner")]
        between = sum(int(item["rejected"]) for item in of_units)
        return {
            "source": join.name,
            **{told: sum(int(before[side][told]) for side in SIDES) for told in _OF_FILES},
            "rejected_behind": sum(int(before[side]["rejected_behind"]) for side in SIDES) - between,
            **_came(of_units),
            **self._left_out(self._slices, number),
            "rejected_in_front": between,
            "join": before,
        }

    def _left_out(self, slices: Sequence[Mapping[str, Any]], number: int) -> dict[str, int]:
        if not self._joins.inputs:
            return {}
        return {_IN_FRONT: sum(left_out_in_front(self._plan, item, number) for item in slices)}


def _came(told: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    counts = {name: sum(int(item[name]) for item in told) for name in _COUNTS}
    return {**counts, "matched": counts["rows"] - counts["unmatched"]}


def join_of_flow(table: Mapping[str, Any]) -> dict[str, Any] | None:
    """The member `join` of a table; of several destinations with what all of them have rejected."""
    join, shared = table.get("join"), table.get("shared") or {}
    if not join:
        return None
    # What does not come to it may go elsewhere.
    return {**_with_all_rejects(join, shared, ""), "is_beside": _IN_FRONT in shared}


def _with_all_rejects(join: Mapping[str, Any], shared: Mapping[str, int], place: str) -> dict[str, Any]:
    """`place`: of the join among others, in front of `left` and `right`."""
    sides: dict[str, Any] = {}
    for side in SIDES:
        own = dict(join[side])
        if own.get("join"):
            own["join"] = before = _with_all_rejects(own["join"], shared, f"{place}{side}_")
            own["rows_rejected"] = sum(before[each]["rows_rejected"] for each in SIDES)
            behind = sum(before[each]["rejected_behind"] for each in SIDES)
            own["rejected_behind"] = behind - own["rejected_in_front"]
        else:
            own["rows_rejected"] = shared.get(f"{place}{side}_rejected", own["rows_rejected"])
            own["rejected_behind"] = shared.get(f"{place}{side}_rejected_behind", own["rejected_behind"])
        sides[side] = own
    return {**join, **sides}


def added_joins(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Those of two flows of one task together."""
    return _merged(one, other, lambda own, theirs: own + theirs)


def without_rows(one: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a flow that has read nothing."""
    return _merged(one, one, lambda _own, _theirs: 0)


def _merged(one: Mapping[str, Any], other: Mapping[str, Any], merge: Callable[[int, int], int]) -> dict[str, Any]:
    sides: dict[str, Any] = {}
    for side in SIDES:
        own, theirs = one[side], other[side]
        sides[side] = {name: value if name in _NAMES else merge(value, theirs[name]) for name, value in own.items()}
        if own.get("join"):
            sides[side]["join"] = _merged(own["join"], theirs["join"], merge)
    return {**one, "rows_out": merge(int(one["rows_out"]), int(other["rows_out"])), **sides}


def keep_joined(folder: Path, plan: DataFlowPlan, result: Mapping[str, Any]) -> None:
    """Writes them beside the rejects of the task, before its commit. That it cannot fails no load: then only they are
    not known behind a resume.
    """
    accounts = join_accounts(plan, result)
    if accounts is not None:
        keep(folder, plan.file_stem, _KIND, accounts)


def kept_joined(folder: Path, file_stem: str, passed: int, rejected: int) -> dict[str, Any] | None:
    """Those of a task that has ended, if they fit the rows that the ledger has; else None. `passed`: those that came
    out of the join and are no rejects.
    """
    try:
        known: dict[str, Any] = kept(folder, file_stem, _KIND)
        sides = known["left"], known["right"]
        behind = sum(int(own["rejected_behind"]) for own in sides)
        fits = int(known["rows_out"]) - behind == passed and sum(int(own["rows_rejected"]) for own in sides) == rejected
    except (OSError, ValueError, KeyError, TypeError):  # taken away
        return None
    return known if fits else None
