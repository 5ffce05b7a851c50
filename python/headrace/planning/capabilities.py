"""What a target can do, as data. Planning reads these values and never asks which target it has."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

SinkKind = Literal["arrow", "null"]
ExactlyOnce = Literal["table_transaction", "none"]


@dataclass(frozen=True)
class Capabilities:
    """The offer of one target.

    `loads` are the values of a destination's `load` that the target can execute. `staged` is always accepted, because
    without a `partition` clause it means `single` for every target.
    `stored_kinds` are the type kinds the target stores without loss; None: it stores nothing and accepts every kind.
    `case_insensitive_names`: `L_ORDERKEY` and `l_orderkey` name the same column there.
    `memory_share`: largest part of the run's memory budget that the target's own engine may use (0: it has none).
    """

    target_type: str
    sink_kind: SinkKind
    loads: tuple[str, ...]
    exactly_once: ExactlyOnce
    partitions: bool
    one_transaction: bool
    stores_tables: bool
    ledger: bool
    case_insensitive_names: bool
    stored_kinds: frozenset[str] | None
    max_decimal_precision: int
    memory_share: float

    def stores(self, kind: str) -> bool:
        """True if a column of this type kind can be stored without loss."""
        return self.stored_kinds is None or kind in self.stored_kinds

    def name_key(self, name: str) -> str:
        """The form under which two names are the same name in this target."""
        return name.casefold() if self.case_insensitive_names else name

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form for plans."""
        values = asdict(self)
        values["loads"] = list(self.loads)
        values["stored_kinds"] = None if self.stored_kinds is None else sorted(self.stored_kinds)
        return values
