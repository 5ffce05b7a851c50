"""How a table is divided, as data: what a target makes, attaches and compares, and by what the core places rows.

Keys are canonical text of the source column's type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, Literal

from headrace.model import DataType

Strategy = Literal["range", "list", "hash"]
# Who brings a row into its partition. `home`: every slice has one partition, to which a stream's own connection
# copies; rows of other partitions are strays, moved by the server at the switch. `shared`: every partition has one
# writer, to which all streams give their rows. `server`: rows are copied into a partitioned hidden table, and the
# server does the rest. `merged`: the rows of all streams come as one stream, each with its place, and the target puts
# them into the tables of their partitions. `whole`: one table takes them all; what is outside is rejected.
Way = Literal["home", "shared", "server", "merged", "whole"]
# Who knows which rows no partition takes. `core`: it looks at the rules; `keys`: it looks for single keys of the
# source, about which the target was asked before; `target`: it alone, row by row, if there can be such rows at all.
Judge = Literal["core", "keys", "target"]
# What the switch does with a hidden table. `attach`: it becomes a new partition; `insert`: a partition that exists
# takes its rows; `exchange`: it takes the place of a partition that exists; `discard`: it stays empty and is dropped,
# because no row has a key by which partitions could be made.
PartitionAction = Literal["attach", "insert", "exchange", "discard"]
# Name in the ledger of the hidden table for rows that are not of their slice's partition.
STRAYS: Final = "strays"
# Name in the ledger of a partitioned hidden table, all its partitions together.
ALL_PARTITIONS: Final = "*"


@dataclass(frozen=True)
class RangeRule:
    """Keys from `minimum` (included) to `end` (not included); None is an open end."""

    strategy: ClassVar[Strategy] = "range"
    minimum: str | None
    end: str | None

    def to_dict(self) -> dict[str, Any]:
        """As in a flow spec."""
        return {"minimum": self.minimum, "end": self.end}


@dataclass(frozen=True)
class ListRule:
    """These keys; None is NULL."""

    strategy: ClassVar[Strategy] = "list"
    values: tuple[str | None, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"values": list(self.values)}


@dataclass(frozen=True)
class HashRule:
    """Keys whose hash leaves `remainder` when it is divided by `modulus`."""

    strategy: ClassVar[Strategy] = "hash"
    modulus: int
    remainder: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)


@dataclass(frozen=True)
class DefaultRule:
    """All keys that no other partition takes, NULL among them."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"default": True}


PartitionRule = RangeRule | ListRule | HashRule | DefaultRule


def rule_from_dict(members: Mapping[str, Any]) -> PartitionRule:
    """A rule from its JSON-ready form."""
    if "default" in members:
        return DefaultRule()
    if "values" in members:
        return ListRule(tuple(members["values"]))
    return HashRule(**members) if "modulus" in members else RangeRule(**members)


@dataclass(frozen=True)
class Partition:
    """One partition of a load.

    `name`: in the ledger; `table`: in the target's schema, once it is switched in. `tablespace`: None for that of the
    target. `replaces`: with `exchange`, the partition that goes.
    """

    name: str
    table: str
    rule: PartitionRule
    tablespace: str | None = None
    action: PartitionAction = "attach"
    replaces: str | None = None

    @classmethod
    def from_dict(cls, members: Mapping[str, Any]) -> Partition:
        """From its JSON-ready form."""
        return cls(**{**members, "rule": rule_from_dict(members["rule"])})

    @property
    def becomes_partition(self) -> bool:
        """Whether the switch makes a partition of its hidden table."""
        return self.action in ("attach", "exchange")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "name": self.name,
            "table": self.table,
            "rule": self.rule.to_dict(),
            "tablespace": self.tablespace,
            "action": self.action,
            "replaces": self.replaces,
        }


@dataclass(frozen=True)
class Partitioning:
    """How a load fills partitions.

    `column` is the target's, `source` the layout's column that goes into it, of type `type`. `partitions`: those that
    the load may fill, by place; a default partition is the last one, those by hash stand in the order of their
    remainders. `has_strays`: rows of other partitions may come (`home` only). `drops`: partitions that the switch drops
    because their time is over. `hash_key`: how the target hashes its column, as the core calls it; None if the core
    does not place by hash. `judge`: who knows which rows are outside; `outside_keys`: with `keys`, those of the source
    that no partition takes, None for NULL.
    """

    strategy: Strategy
    column: str
    source: str
    type: DataType
    way: Way
    partitions: tuple[Partition, ...]
    has_strays: bool = False
    drops: tuple[str, ...] = ()
    hash_key: str | None = None
    judge: Judge = "core"
    outside_keys: tuple[str | None, ...] = ()

    @property
    def has_tables(self) -> bool:
        """Whether every partition is a table of its own."""
        return self.way != "whole"

    @classmethod
    def from_dict(cls, members: Mapping[str, Any]) -> Partitioning:
        """From its JSON-ready form."""
        partitions = tuple(Partition.from_dict(partition) for partition in members["partitions"])
        kept = {"type": DataType.parse(members["type"]), "partitions": partitions, "drops": tuple(members["drops"])}
        return cls(**{**members, **kept, "outside_keys": tuple(members["outside_keys"])})

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "strategy": self.strategy,
            "column": self.column,
            "source": self.source,
            "type": str(self.type),
            "way": self.way,
            "partitions": [partition.to_dict() for partition in self.partitions],
            "has_strays": self.has_strays,
            "drops": list(self.drops),
            "hash_key": self.hash_key,
            "judge": self.judge,
            "outside_keys": list(self.outside_keys),
        }


@dataclass(frozen=True)
class CommitSize:
    """About how much goes into one transaction: bytes of source text, or rows."""

    bytes: int | None = None
    rows: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)
