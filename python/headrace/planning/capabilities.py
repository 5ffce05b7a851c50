"""What a target can do, as data. Planning reads these values and never asks which target it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

SinkKind = Literal["arrow", "null", "postgres"]


@dataclass(frozen=True)
class Capabilities:
    """The offer of one target.

    `loads` are the values of a destination's `load` that the target can execute. `staged` is always accepted, because
    without a `partition` clause it means `single` for every target.
    `writer_per_stream`: every stream has a connection of its own; otherwise the target takes one merged stream.
    `hidden_tables`: rows go into tables that no reader sees, which are switched in at the end; otherwise the target
    hides the rows in its own transaction.
    `partition_loads`: the values of `load` with which every declared partition is a table of its own; with others a
    `partition` clause only says which rows are outside, if the target has `partition_key_kinds`.
    `partition_key_kinds`: by strategy (range, list, hash), the type kinds that can be a key of partitions; empty: the
    target takes no notice of partitions. `core_routes`: by strategy, those of them whose rows the core places as the
    target would; rows with other keys are placed by the target. `hash_keys`: how the target hashes a column of a type
    kind, as the core calls it. `shared_writers`: the most partitions that have a writer of their own at the same time.
    `commits_inside`: rows can be committed before the last one has arrived.
    `stored_kinds` are the type kinds the target stores without loss; None: it stores nothing and accepts every kind.
    `case_insensitive_names`: `L_ORDERKEY` and `l_orderkey` name the same column there. `maximum_name_bytes`: longest
    name of a table in UTF-8, None without a limit.
    `freezes`: rows copied into a table made in the same transaction can be stored as frozen. `skips_log`: such rows are
    not written to the server's log either; a setting of the server, so an open target says it.
    `keys_block_writers`: a writer that meets a key which another one has not committed waits for that one, so that
    writers which commit together could wait for one another for ever.
    `sql_beside_flows`: SQL of tasks can run while a flow loads; otherwise it waits for the pool of the run.
    `tablespaces`: of an open target, where new tables can be put; None: it has no such places.
    `options`: the names of a destination's load options that have an effect.
    `reject_types`: the target's own names of the types of a table of rejects, by type kind.
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
    partition_loads: tuple[str, ...] = ()
    partition_key_kinds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    core_routes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hash_keys: Mapping[str, str] = field(default_factory=dict)
    shared_writers: int = 200
    commits_inside: bool = False
    maximum_name_bytes: int | None = None
    freezes: bool = False
    skips_log: bool = False
    keys_block_writers: bool = False
    sql_beside_flows: bool = False
    tablespaces: tuple[str, ...] | None = None
    options: frozenset[str] = frozenset()
    reject_types: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> bool:
        """True if rows can be divided there, into tables or as a rule of one table."""
        return bool(self.partition_key_kinds)

    @property
    def makes_parts(self) -> bool:
        """True if a load may put tables beside the one that it is called after."""
        return self.hidden_tables or bool(self.partition_loads)

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
        values["partition_loads"] = list(self.partition_loads)
        values["stored_kinds"] = None if self.stored_kinds is None else sorted(self.stored_kinds)
        values["options"] = sorted(self.options)
        for name in ("partition_key_kinds", "core_routes"):
            values[name] = {strategy: sorted(kinds) for strategy, kinds in values[name].items()}
        return values
