"""Whether a replay may have the rejects that it claims."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from headrace.errors import LedgerError
from headrace.planning import ReplayPlan
from headrace.targets.base import Replay


def refuse_replaced(claim: ReplayPlan, table: str, later: str | None) -> None:
    """Raises LedgerError if run `later` has made the table, or its rows, anew."""
    if later is not None:
        raise LedgerError(
            f"run {claim.of_run} cannot be replayed: table {table} was loaded anew since",
            found=f"run {later}",
            hint=f"Repair the rejects of that run: `headrace rejects {later}`.",
        )


def refuse_taken(run_id: str, claim: ReplayPlan, others: Sequence[Replay]) -> None:
    """Raises LedgerError if rows of another replay than `run_id` are visible for a reject that is claimed."""
    for other in others:
        common = overlap(claim, other)
        if other.run_id == run_id or other.taken_at is None or common is None:
            continue
        first, last = common
        what = f"reject {first} was" if first == last else f"rejects {first} to {last} were"
        raise LedgerError(
            f"{what} {'dropped' if other.action == 'drop' else 'loaded'} already",
            found=f"replay {other.run_id}, {other.taken_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            hint=f"Copy those that are open: `headrace rejects {claim.of_run} --copy FILE`."
            if other.status == "success"
            else f"Go on with that one: `headrace resume {other.run_id}`.",
        )


def overlap(claim: ReplayPlan, other: Replay) -> tuple[int, int] | None:
    """The first numbers that both have."""
    for (first, last), _ in claim.stretches():
        common = max(first, other.first), min(last, other.last)
        if common[0] <= common[1]:
            return common
    return None
