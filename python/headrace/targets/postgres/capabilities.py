"""What PostgreSQL offers as a destination."""

from __future__ import annotations

from typing import Final

from headrace.model import HASH_KEYS, HASH_KINDS, LIST_KINDS, RANGE_KINDS, DataType
from headrace.model import MAXIMUM_NAME_BYTES as NAME_LIMITS
from headrace.planning import REJECT_KINDS, Capabilities
from headrace.targets.postgres.types import STORED_KINDS, native_type

MAXIMUM_NAME_BYTES: Final = NAME_LIMITS["postgres"]

POSTGRES_CAPABILITIES: Final = Capabilities(
    target_type="postgres",
    sink_kind="postgres",
    loads=("single", "staged", "view"),
    stores_tables=True,
    ledger=True,
    case_insensitive_names=False,
    stored_kinds=STORED_KINDS,
    max_decimal_precision=38,
    memory_share=0.0,
    writer_per_stream=True,
    hidden_tables=True,
    # Blanks at the end of a char(n) mean nothing to the server, but to lists of the core.
    partition_loads=("staged",),
    partition_key_kinds={"range": RANGE_KINDS, "list": LIST_KINDS | {"char"}, "hash": HASH_KINDS},
    core_routes={"range": RANGE_KINDS, "list": LIST_KINDS, "hash": HASH_KINDS},
    hash_keys=HASH_KEYS,
    commits_inside=True,
    maximum_name_bytes=MAXIMUM_NAME_BYTES,
    freezes=True,
    keys_block_writers=True,
    sql_beside_flows=True,
    reject_types={kind: native_type(DataType(kind)) for kind in REJECT_KINDS},
    options=frozenset({"lock", "check_constraints", "keep_identity", "disable_triggers", "analyze", "indexes"}),
)
