"""How a table is divided, as a package declares it. Every value is canonical text of the source column's type."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

# A server needs seconds to switch a thousand; more are a mistake in the declaration.
MAXIMUM_PARTITIONS: Final = 10_000
PeriodUnit = Literal["hour", "day", "week", "month", "quarter", "year"]


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """What partitions of every strategy can have.

    `outside`: what becomes of rows that no partition takes. `keep`: number of newest ranges that stay.
    """

    outside: Literal["reject", "default"] = "reject"
    tablespaces: tuple[str, ...] = ()
    keep: int | None = None


DEFAULT_SETTINGS = PartitionSettings()


@dataclass(frozen=True, slots=True)
class Every:
    """Ranges of one length. `size`: a number of `unit`, or without a unit the difference of two keys.

    `first` is the least key of the first range, `end` the first key behind the last one; None: found in the source.
    """

    size: str
    unit: PeriodUnit | None = None
    first: str | None = None
    end: str | None = None


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Up to `parts` ranges of about as many rows each."""

    parts: int


@dataclass(frozen=True, slots=True)
class RangePartition:
    """Ranges of the target's column `column`. `bounds`: `files` for one range per source file, or keys in rising order.

    `boundary`: the side on which a key that equals one of the given bounds lies.
    """

    column: str
    bounds: Literal["files"] | tuple[str, ...] | Every | Quantiles = "files"
    boundary: Literal["right", "left"] = "right"
    settings: PartitionSettings = DEFAULT_SETTINGS


@dataclass(frozen=True, slots=True)
class ListPartition:
    """Named lists of values of the target's column `column`; None is NULL."""

    column: str
    values: tuple[tuple[str, tuple[str | None, ...]], ...]
    settings: PartitionSettings = DEFAULT_SETTINGS


@dataclass(frozen=True, slots=True)
class HashPartition:
    """Parts by the target's own hash of its column `column`. `parts`: None for the number of usable CPUs."""

    column: str
    parts: int | None = None
    settings: PartitionSettings = DEFAULT_SETTINGS


PartitionClause = RangePartition | ListPartition | HashPartition


@dataclass(frozen=True, slots=True)
class CommitInterval:
    """About how much goes into one transaction: bytes of source text, or rows; exactly one of them."""

    bytes: int | None = None
    rows: int | None = None


def strategy_of(clause: PartitionClause) -> Literal["range", "list", "hash"]:
    """The word for it in packages and in databases."""
    if isinstance(clause, RangePartition):
        return "range"
    return "list" if isinstance(clause, ListPartition) else "hash"


def describe_clause(clause: PartitionClause) -> dict[str, Any]:
    """JSON-ready form."""
    members = asdict(clause)
    settings = members.pop("settings")
    return {strategy_of(clause): members, **settings}
