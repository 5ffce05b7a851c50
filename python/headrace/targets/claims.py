"""Whether a replay may have the rejects that it claims."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC

from headrace.errors import LedgerError
from headrace.planning import ReplayPlan
from headrace.planning.replay import Stretch
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
    taken = (other for other in others if other.run_id != run_id and other.taken_at is not None)
    for other, (first, last) in overlaps(claim, taken):
        assert other.taken_at is not None
        what = f"reject {first} was" if first == last else f"rejects {first} to {last} were"
        raise LedgerError(
            f"{what} {'dropped' if other.action == 'drop' else 'loaded'} already",
            found=f"replay {other.run_id}, {other.taken_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            hint=f"Copy those that are open: `headrace rejects {claim.of_run} --copy FILE`."
            if other.status == "success"
            else f"Go on with that one: `headrace resume {other.run_id}`.",
        )


def overlaps(claim: ReplayPlan, others: Iterable[Replay]) -> Iterator[tuple[Replay, Stretch]]:
    """Those of `others` that have numbers of the claim, each with the first numbers that both have."""
    for other in others:
        found = (_common(stretches, other) for stretches in (claim.loads, claim.drops))
        common = min((stretch for stretch in found if stretch is not None), default=None)
        if common is not None:
            yield other, common


def _common(stretches: Sequence[Stretch], other: Replay) -> Stretch | None:
    index = bisect_left(stretches, other.first, key=lambda stretch: stretch[1])
    if index == len(stretches) or stretches[index][0] > other.last:
        return None
    first, last = stretches[index]
    return max(first, other.first), min(last, other.last)
