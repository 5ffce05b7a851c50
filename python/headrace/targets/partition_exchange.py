"""What a `switch` task asks of a target, what it is told, and what it may write down for its next attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from headrace.errors import TargetError
from headrace.planning import HashRule, ListRule, PartitionRule, RangeRule

_SHOWN_NAMES: Final = 10


class Notes(Protocol):
    """What a task writes down before it does something that cannot be undone, for the next attempt of the run."""

    def remember(self, note: Mapping[str, Any]) -> None:
        """Keeps a JSON-ready note; it is on disk when this returns."""

    def remembered(self) -> Sequence[Mapping[str, Any]]:
        """Notes of earlier attempts for this very task, in their order."""


@dataclass(frozen=True)
class ExchangedTable:
    """A table with its schema; None is the default schema."""

    schema: str | None
    name: str


@dataclass(frozen=True)
class PartitionExchange:
    """One exchange. `task`: its id in the run; `table`: the partitioned one; `partition`: a name in its schema.

    `incoming`: the table that becomes the partition; None: the partition is only taken out. `outgoing`: what the
    partition is called once it is out; None: it is dropped. `rule`: the keys of a partition that does not exist yet;
    its keys are texts as the package has them. None: the partition exists and keeps its own.
    """

    task: str
    table: ExchangedTable
    partition: str
    incoming: ExchangedTable | None
    outgoing: str | None
    rule: PartitionRule | None


@dataclass(frozen=True)
class ExchangedPartition:
    """What became of it. `was_done`: an earlier attempt of the run had done it; `made`: what the table that came in was
    given before, so that it fits; `switch_seconds`: how long nobody could use the table; `warnings`: what its users
    should know.
    """

    was_done: bool = False
    made: tuple[str, ...] = ()
    switch_seconds: float = 0.0
    warnings: tuple[str, ...] = ()


def described(rule: PartitionRule) -> str:
    """The keys of a partition, for people."""
    match rule:
        case RangeRule(minimum, end):
            lower = "all keys" if minimum is None else f"keys from {minimum}"
            return lower if end is None else f"{lower} to before {end}"
        case ListRule(values):
            return f"keys {', '.join('NULL' if value is None else value for value in values)}"
        case HashRule(modulus, remainder):
            return f"keys whose hash leaves {remainder} of {modulus}"
        case _:
            return "all keys that no other partition takes"


def not_partitioned(table: str, found: str, expected: str, hint: str) -> TargetError:
    """The error for a table without partitions."""
    return TargetError(f"table {table} has no partitions to exchange", found=found, expected=expected, hint=hint)


def no_partition(table: str, partition: str, present: Sequence[str]) -> TargetError:
    """The error for a partition that does not exist."""
    more = len(present) - _SHOWN_NAMES
    return TargetError(
        f"table {table} has no partition `{partition}`",
        found=", ".join(present[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "") or "no partition at all",
        hint="Correct the name; or give the keys of a new partition: `for: {from: KEY, to: KEY}`.",
    )


def partition_exists(table: str, partition: str) -> TargetError:
    """The error for a new partition whose name a partition has."""
    return TargetError(
        f"table {table} has a partition `{partition}` already",
        expected="a new partition, because its keys are given by `for`",
        hint="Leave `for` out to exchange the partition that exists, or choose another name.",
    )


def no_incoming(table: str) -> TargetError:
    """The error for an `in` that does not exist."""
    return TargetError(
        f"there is no table {table} that could become a partition",
        hint="Correct `in`, or load the table before this task.",
    )


def name_taken(table: str, purpose: str) -> TargetError:
    """The error for a name that something else has. `purpose`: what it was to be for."""
    return TargetError(
        f"the name {table} is taken",
        found="a table, a view, or something else of that name",
        expected=f"a free name for {purpose}",
        hint=f"Choose another name, or drop {table} before.",
    )


def other_columns(incoming: str, table: str, differences: Sequence[str], like: str) -> TargetError:
    """The error for a table with other columns than the partitioned one. `like`: how one with its columns is made."""
    return TargetError(
        f"table {incoming} cannot become a partition of {table}: its columns differ",
        found="; ".join(differences),
        expected=f"the columns of {table}, of the same types",
        hint=f"Make it with {like}, or change its columns.",
    )


def row_outside(incoming: str, partition: str, key: str, condition: str) -> TargetError:
    """The error for a row that does not belong into the partition. `key`: its columns and values."""
    return TargetError(
        f"a row of table {incoming} does not belong into partition {partition}",
        found=key,
        expected=condition,
        hint="Correct the row, or move it into the table of another partition; nothing was exchanged.",
    )


def row_refused(incoming: str, table: str, key: str, rule: str) -> TargetError:
    """The error for a row that breaks a constraint of the table of which it would become a row."""
    return TargetError(
        f"a row of table {incoming} cannot be a row of {table}",
        found=key,
        expected=rule,
        hint="Correct the row, or change the constraint; nothing was exchanged.",
    )


def row_in_default(default: str, partition: str, key: str) -> TargetError:
    """The error for a row of the default partition that belongs into a new one."""
    return TargetError(
        f"a row of the default partition {default} belongs into the new partition {partition}",
        found=key,
        hint=f"Move such rows out of {default} before this task, into the table that comes in; nothing was exchanged.",
    )
