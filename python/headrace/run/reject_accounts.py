"""What has become of the rejects of a run since: which replays have taken which of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from headrace.model import BoundPackage
from headrace.model.load import usable_cpus
from headrace.planning import engine_bytes
from headrace.run.number_list import Stretch, count_numbers
from headrace.run.tasks import nameable_flows
from headrace.targets import OpenOptions, Replay, capabilities_of, open_target, target_key

# Replays with which nobody goes on.
_ENDED: Final = ("success", "abandoned")


@dataclass(frozen=True)
class ReplayOfRun:
    """One replay of rejects of one task: it has loaded, rejected again and dropped rows, for so many `numbers`.

    `is_unfinished`: nothing of it is visible, and it may be resumed.
    """

    run_id: str
    at: str | None
    numbers: int
    loaded: int
    rejected_again: int
    dropped: int
    is_unfinished: bool


@dataclass(frozen=True)
class RejectAccounts:
    """rejected + rows_added = loaded + rejected_again + dropped + unfinished + open, of one task.

    `taken`: the numbers that were resolved, ascending.
    """

    open: int
    loaded: int
    rejected_again: int
    dropped: int
    unfinished: int
    rows_added: int
    replays: tuple[ReplayOfRun, ...]
    taken: tuple[Stretch, ...]

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
                    "dropped": item.dropped,
                    "unfinished": item.is_unfinished,
                }
                for item in self.replays
            ],
        }


def reject_accounts(rejected: int, claims: Sequence[Replay]) -> RejectAccounts:
    """The accounts of so many rejects, of which these stretches were claimed."""
    taken = tuple(sorted((item.first, item.last) for item in claims if item.taken_at is not None))
    waiting = [(item.first, item.last) for item in claims if item.taken_at is None and item.status not in _ENDED]
    unfinished = count_numbers(_union([*taken, *waiting])) - count_numbers(taken)
    by_run = sorted(claims, key=lambda item: item.run_id)
    replays = tuple(_of_run(list(own)) for _, own in groupby(by_run, key=lambda item: item.run_id))
    done = [item for item in replays if item.at is not None]
    loaded, again, dropped = (
        sum(getattr(item, name) for item in done) for name in ("loaded", "rejected_again", "dropped")
    )
    return RejectAccounts(
        open=rejected - count_numbers(taken) - unfinished,
        loaded=loaded,
        rejected_again=again,
        dropped=dropped,
        unfinished=unfinished,
        rows_added=loaded + again + dropped - count_numbers(taken),
        replays=tuple(item for item in replays if item.at is not None or item.is_unfinished),
        taken=taken,
    )


def open_beside(rejected: int, claims: Iterable[Replay], own: Sequence[Stretch]) -> int:
    """How many of so many rejects are open, if those of `own` are not."""
    others = [(item.first, item.last) for item in claims if item.taken_at is not None or item.status not in _ENDED]
    return rejected - count_numbers(_union([*others, *own]))


def read_claims(package: BoundPackage, run_id: str, tasks: Iterable[str]) -> dict[str, list[Replay]]:
    """What the ledgers know of the rejects of tasks of a run. Raises what opening a destination raises."""
    found: dict[str, list[Replay]] = {}
    flows = {flow.id: flow for flow, _ in nameable_flows(package)}
    wanted = [flows[task] for task in tasks if task in flows]
    for key in dict.fromkeys(target_key(flow.destination.connection) for flow in wanted):
        own = [flow for flow in wanted if target_key(flow.destination.connection) == key]
        connection = own[0].destination.connection
        options = OpenOptions(
            engine_bytes=engine_bytes(package.memory_bytes, capabilities_of(connection).memory_share),
            threads=usable_cpus(),
            spill_folder=None,
            read_only=True,
            notice=lambda _text: None,
            is_cancelled=lambda: False,
        )
        with open_target(connection, options) as target:
            found |= {flow.id: target.replays(run_id, flow.id) for flow in own}
    return found


def _of_run(claims: Sequence[Replay]) -> ReplayOfRun:
    first = claims[0]
    is_done = first.taken_at is not None
    return ReplayOfRun(
        first.run_id,
        first.taken_at.isoformat(timespec="seconds") if first.taken_at is not None else None,
        count_numbers((item.first, item.last) for item in claims),
        first.rows_loaded if is_done else 0,
        first.rows_rejected if is_done else 0,
        count_numbers((item.first, item.last) for item in claims if item.action == "drop") if is_done else 0,
        is_unfinished=not is_done and first.status not in _ENDED,
    )


def _union(named: Iterable[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for first, last in sorted(named):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined
