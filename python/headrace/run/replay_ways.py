"""Rejects of a data flow with several destinations: which of its tables lack each row, and so get it when it is
repaired.

A row that the parser has refused lacks everywhere, one that a transform has refused behind that transform, and one that
a table could not hold in that table alone. Each reject says so itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import LedgerError
from headrace.run.number_list import (
    Stretch,
    Stretches,
    count_numbers,
    number_list,
    parse_number_list,
    without,
)
from headrace.run.reject_files import RejectRow
from headrace.run.rejected import RejectedTable


@dataclass(frozen=True)
class WayOfReplay:
    """What a replay claims for one of several destinations. `name`: of the destination."""

    name: str
    loads: Sequence[Stretch]
    drops: Sequence[Stretch]
    rows_added: int = 0

    @property
    def numbers(self) -> int:
        """How many rejects are taken."""
        return count_numbers(self.loads) + count_numbers(self.drops)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, kept in the run folder."""
        return {
            "name": self.name,
            "loads": number_list(self.loads),
            "drops": number_list(self.drops),
            "rows_added": self.rows_added,
        }

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> WayOfReplay:
        """That of `to_dict`."""
        loads, drops = (Stretches(parse_number_list(known[name]) or ()) for name in ("loads", "drops"))
        return cls(known["name"], loads, drops, int(known["rows_added"]))


def lacking(row: RejectRow) -> tuple[str, ...]:
    """The destinations whose tables lack the row of a reject. Raises LedgerError if it does not say so."""
    names = row.members.get("destinations")
    if names is None:
        raise LedgerError(
            f"reject {row.number} does not say which of several destinations lack its row",
            found="a run of an earlier version",
            hint="Load the repaired rows from files of their own, by packages with `target: append`.",
        )
    return tuple(map(str, names))


def ways_of_replay(
    table: RejectedTable,
    names: Sequence[str],
    loads: Sequence[Stretch],
    drops: Sequence[Stretch],
    rows_added: int,
) -> list[WayOfReplay]:
    """What a replay of these rejects claims for each of the destinations `names`, without those that lack no row."""
    lacks = _numbers_by_destination(table.files.rows(), names)
    ways = []
    for name in names:
        own_loads, own_drops = (Stretches(_common(named, lacks[name])) for named in (loads, drops))
        if own_loads or own_drops:
            ways.append(WayOfReplay(name, own_loads, own_drops, rows_added if own_loads else 0))
    return ways


def _numbers_by_destination(rows: Iterable[RejectRow], names: Sequence[str]) -> dict[str, Stretches]:
    found: dict[str, list[Stretch]] = {name: [] for name in names}
    for row in rows:
        for name in lacking(row):
            own = found.get(name)
            if own is None:
                continue
            if own and own[-1][1] + 1 == row.number:
                own[-1] = (own[-1][0], row.number)
            else:
                own.append((row.number, row.number))
    return {name: Stretches(own) for name, own in found.items()}


def _common(one: Sequence[Stretch], other: Sequence[Stretch]) -> Iterator[Stretch]:
    """What both of two ascending sequences have."""
    return without(one, Stretches(without(one, other)))
