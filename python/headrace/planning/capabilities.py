"""What a target can do, as data. Planning reads these values and never asks which target it has."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

SinkKind = Literal["arrow", "null", "postgres"]


@dataclass(frozen=True)
class Capabilities:
    """The offer of one target.

    `loads` are the values of a destination's `load` that the target can execute. `staged` is always accepted, because
    without a `partition` clause it means `single` for every target.
    `writer_per_stream`: every stream has a connection of its own; otherwise the target takes one merged stream.
    `hidden_tables`: rows go into tables that no reader sees, which are switched in at the end; otherwise the target
    hides the rows in its own transaction. `partition_key_kinds`: type kinds that a range partition can have as its key;
    empty: the target has no partitions.
    `stored_kinds` are the type kinds the target stores without loss; None: it stores nothing and accepts every kind.
    `case_insensitive_names`: `L_ORDERKEY` and `l_orderkey` name the same column there. `maximum_name_bytes`: longest
    name of a table in UTF-8, None without a limit.
    `freezes`: rows copied into a table made in the same transaction can be stored as frozen. `skips_log`: such rows are
    not written to the server's log either; a setting of the server, so an open target says it.
    `keys_block_writers`: a writer that meets a key which another one has not committed waits for that one, so that
    writers which commit together could wait for one another for ever.
    `options`: the names of a destination's load options that have an effect.
    `memory_share`: largest part of the run's memory budget that the target's own engine may use (0: it has none).
    """

    target_type: str
    sink_kind: SinkKind
    loads: tuple[str, ...]
    stores_tables: bool
    ledger: bool
    case_insensitive_names: bool
    stored_kinds: frozenset[str] | None
    max_decimal_precision: int
    memory_share: float
    writer_per_stream: bool = False
    hidden_tables: bool = False
    partition_key_kinds: frozenset[str] = frozenset()
    maximum_name_bytes: int | None = None
    freezes: bool = False
    skips_log: bool = False
    keys_block_writers: bool = False
    options: frozenset[str] = frozenset()

    @property
    def partitions(self) -> bool:
        """True if tables can be partitioned there."""
        return bool(self.partition_key_kinds)

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
        for name in ("partition_key_kinds", "options"):
            values[name] = sorted(values[name])
        return values
