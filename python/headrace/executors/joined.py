"""The accounts of a join: what became of the rows of both sides, and how many came out.

The ledger has none of them. What a resumed run says of a table that an earlier attempt has completed, it reads in the
run folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headrace.executors.kept import keep, kept
from headrace.executors.rows_left import left_out_in_front
from headrace.model import SIDES
from headrace.planning import DataFlowPlan

_COUNTS: Final = ("rows", "unmatched", "filtered", "null_keys")
_KIND: Final = "joined"
# Of rows that transforms in front of it leave out.
_IN_FRONT: Final = "filtered_in_front"


def join_accounts(plan: DataFlowPlan, result: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The member `join` of a table in the summary; None without a join, or without a result.

    Of each side: rows = matched + unmatched, and what is filtered of the unmatched goes no further; with transforms in
    front `filtered_in_front` are those that these have left out. `rows_out`: a right
    row meets one left row at most, so that the matched right rows and the unmatched that are kept are all that can come
    out. `rejected_behind`: of the rejects of the side, rows that stand for those which have come out and are not loaded
    because of what was found behind the join.
    """
    if plan.join is None or not result:
        return None
    join = plan.join.join
    sides: dict[str, dict[str, Any]] = {}
    for side, source in (("left", join.left), ("right", join.right)):
        own = [item for item in result["slices"] if plan.source_number(int(item["file"])) == SIDES.index(side)]
        counts = {name: sum(int(item["join"][name]) for item in own if item.get("join")) for name in _COUNTS}
        sums = {name: sum(int(item[name]) for item in own) for name in ("lines", "skipped", "rejected")}
        sides[side] = {
            "source": source.name,
            "lines": sums["lines"],
            "rows_skipped": sums["skipped"],
            "rows_rejected": sums["rejected"],
            "rejected_behind": sum(int(item["join"]["rejected"]) for item in own if item.get("join")),
            **counts,
            "matched": counts["rows"] - counts["unmatched"],
            **({_IN_FRONT: sum(left_out_in_front(plan, item) for item in own)} if plan.join.inputs else {}),
        }
    kept = sum(int(own["unmatched"]) - int(own["filtered"]) for own in sides.values())
    return {"name": join.name, "type": join.kind, "rows_out": int(sides["right"]["matched"]) + kept, **sides}


def join_of_flow(table: Mapping[str, Any]) -> dict[str, Any] | None:
    """The member `join` of a table; of several destinations with what all of them have rejected."""
    join, shared = table.get("join"), table.get("shared") or {}
    if not join:
        return None
    sides = {
        side: {
            **join[side],
            "rows_rejected": shared.get(f"{side}_rejected", join[side]["rows_rejected"]),
            "rejected_behind": shared.get(f"{side}_rejected_behind", join[side]["rejected_behind"]),
        }
        for side in SIDES
    }
    # What does not come to it may go elsewhere.
    return {**join, **sides, "is_beside": _IN_FRONT in shared}


def added_joins(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Those of two flows of one task together."""
    sides: dict[str, Any] = {
        side: {name: value if name == "source" else value + other[side][name] for name, value in one[side].items()}
        for side in SIDES
    }
    return {**one, "rows_out": int(one["rows_out"]) + int(other["rows_out"]), **sides}


def without_rows(one: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a flow that has read nothing."""
    sides: dict[str, Any] = {
        side: {name: value if name == "source" else 0 for name, value in one[side].items()} for side in SIDES
    }
    return {**one, "rows_out": 0, **sides}


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
