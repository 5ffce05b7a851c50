"""What has become of the rejects of a run since: which replays have taken which of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from headrace.errors import AccountsError
from headrace.model import BoundPackage
from headrace.model.load import usable_cpus
from headrace.planning import counted, engine_bytes
from headrace.run.number_list import Stretch, Stretches, count_numbers, union, without
from headrace.run.redact import Redactor
from headrace.run.tasks import nameable_flows
from headrace.targets import OpenOptions, Replay, capabilities_of, open_target, target_key

# Replays with which nobody goes on.
_ENDED: Final = ("success", "abandoned")


@dataclass(frozen=True)
class ReplayOfRun:
    """One replay of rejects of one task: it has loaded, rejected again, filtered and dropped rows, for so many
    `numbers`.

    `is_unfinished`: not all of it is visible, and it may be resumed; `numbers` are those that no other one has taken.
    """

    run_id: str
    at: str | None
    numbers: int
    loaded: int
    rejected_again: int
    filtered: int
    dropped: int
    rows_added: int
    is_unfinished: bool


@dataclass(frozen=True)
class RejectAccounts:
    """rejected + rows_added = loaded + rejected_again + filtered + dropped + unfinished + open, of one task.

    `taken`: the numbers that were resolved, ascending.
    """

    open: int
    loaded: int
    rejected_again: int
    filtered: int
    dropped: int
    unfinished: int
    rows_added: int
    replays: tuple[ReplayOfRun, ...]
    taken: Sequence[Stretch]

    def is_open(self, number: int) -> bool:
        """Whether no replay has resolved a reject."""
        index = bisect_right(self.taken, number, key=lambda stretch: stretch[0]) - 1
        return index < 0 or number > self.taken[index][1]

    def to_dict(self) -> dict[str, Any]:
        """Members of a table."""
        return {
            "open": self.open,
            "loaded": self.loaded,
            "rejected_again": self.rejected_again,
            "filtered": self.filtered,
            "dropped": self.dropped,
            "unfinished": self.unfinished,
            "rows_added": self.rows_added,
            "replays": [
                {
                    "run_id": item.run_id,
                    "at": item.at,
                    "numbers": item.numbers,
                    "loaded": item.loaded,
                    "rejected_again": item.rejected_again,
                    "filtered": item.filtered,
                    "dropped": item.dropped,
                    "unfinished": item.is_unfinished,
                }
                for item in self.replays
            ],
        }


def reject_accounts(rejected: int, claims: Sequence[Replay]) -> RejectAccounts:
    """The accounts of so many rejects, of which these stretches were claimed.

    Raises AccountsError if a replay has not loaded, rejected again, filtered or dropped a row for each of its numbers.
    """
    taken = _stretches(item for item in claims if item.taken_at is not None)
    done = _stretches(item for item in claims if item.taken_at is not None and not item.is_half)
    unfinished = _stretches(item for item in claims if _is_unfinished(item))
    by_run = sorted(claims, key=lambda item: (item.run_id, item.first))
    replays = [_of_run(list(own), taken) for _, own in groupby(by_run, key=lambda item: item.run_id)]
    loaded, again, filtered, dropped, added = (
        sum(getattr(item, name) for item in replays)
        for name in ("loaded", "rejected_again", "filtered", "dropped", "rows_added")
    )
    done_numbers = count_numbers(done)
    unfinished_numbers = count_numbers(union(done, unfinished)) - done_numbers
    return RejectAccounts(
        open=rejected - done_numbers - unfinished_numbers,
        loaded=loaded,
        rejected_again=again,
        filtered=filtered,
        dropped=dropped,
        unfinished=unfinished_numbers,
        rows_added=added,
        replays=tuple(item for item in replays if item.numbers),
        taken=taken,
    )


def open_beside(rejected: int, claims: Iterable[Replay], own: Iterable[Stretch]) -> int:
    """How many of so many rejects are open, if those of `own` are not."""
    others = _stretches(item for item in claims if item.taken_at is not None or item.status not in _ENDED)
    return rejected - count_numbers(union(others, own))


def read_claims(package: BoundPackage, run_id: str, tasks: Iterable[str]) -> dict[str, list[Replay]]:
    """What the ledgers know of the rejects of tasks of a run, by the names of the tasks without secrets. Raises what
    opening a destination raises.
    """
    found: dict[str, list[Replay]] = {}
    redactor = Redactor(package.secrets)
    flows = {redactor.text(flow.id): flow for flow, _ in nameable_flows(package)}
    wanted = {task: flows[task] for task in tasks if task in flows}
    for key in dict.fromkeys(target_key(flow.destination.connection) for flow in wanted.values()):
        own = {task: flow for task, flow in wanted.items() if target_key(flow.destination.connection) == key}
        connection = next(iter(own.values())).destination.connection
        options = OpenOptions(
            engine_bytes=engine_bytes(package.memory_bytes, capabilities_of(connection).memory_share),
            threads=usable_cpus(),
            spill_folder=None,
            read_only=True,
            notice=lambda _text: None,
            is_cancelled=lambda: False,
            is_trusted=package.is_trusted,
        )
        with open_target(connection, options) as target:
            found |= {task: target.replays(run_id, flow.id) for task, flow in own.items()}
    return found


def _is_unfinished(claim: Replay) -> bool:
    return claim.is_half or (claim.taken_at is None and claim.status not in _ENDED)


def _of_run(claims: Sequence[Replay], taken: Sequence[Stretch]) -> ReplayOfRun:
    """One replay, by its claims. `taken`: numbers of all replays that hold."""
    first = claims[0]
    own = [(item.first, item.last) for item in claims]
    if first.is_half or first.taken_at is None:
        # Its own, if some of its rows are visible.
        numbers = count_numbers(own if first.is_half else without(own, taken)) if _is_unfinished(first) else 0
        return ReplayOfRun(first.run_id, None, numbers, 0, 0, 0, 0, 0, is_unfinished=True)
    numbers = count_numbers(own)
    dropped = count_numbers((item.first, item.last) for item in claims if item.action == "drop")
    added = first.rows_loaded + first.rows_rejected + first.rows_filtered + dropped - numbers
    if first.rows_added not in (None, added):
        raise AccountsError(
            f"the accounts of replay {first.run_id} do not balance",
            found=f"{first.rows_loaded} loaded, {first.rows_rejected} rejected again, {first.rows_filtered} filtered, "
            f"{dropped} dropped",
            expected=f"{counted(numbers, 'reject')} and {counted(first.rows_added, 'row')} more",
            hint="This is a defect of Headrace. Keep the run folder and report it.",
        )
    at = first.taken_at.isoformat(timespec="seconds")
    counts = (first.rows_loaded, first.rows_rejected, first.rows_filtered, dropped, added)
    return ReplayOfRun(first.run_id, at, numbers, *counts, is_unfinished=False)


def _stretches(claims: Iterable[Replay]) -> Stretches:
    return Stretches(union(sorted((item.first, item.last) for item in claims)))
