"""Tables that writers fill and no reader sees yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StagingTable:
    """One table that writers fill.

    `partition`: its name in the ledger, WHOLE_TABLE, that of a partition, STRAYS or ALL_PARTITIONS. `table`: its name
    in the schema of the target once it is switched in (of STRAYS and ALL_PARTITIONS the target's, as nothing is); its
    name before is the target's business. `slices`: numbers of the slices whose rows are expected there. `owned`: one
    writer fills it in one transaction, in which it is made: that of the one stream which takes all of its slices, or
    that to which all streams give their rows. Otherwise it is made before, and filled in any number of transactions.
    """

    partition: str
    table: str
    slices: tuple[int, ...]
    owned: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "partition": self.partition,
            "table": self.table,
            "slices": list(self.slices),
            "owned": self.owned,
        }


def taken_together(staging: tuple[StagingTable, ...], number: int, unit: int) -> tuple[str, int]:
    """What one stream has to take together: the slices of a table that it owns, or a unit of them."""
    owner = next((table for table in staging if table.owned and number in table.slices), None)
    return ("unit", unit) if owner is None else (owner.partition, 0)
