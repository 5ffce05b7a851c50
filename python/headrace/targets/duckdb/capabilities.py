"""What DuckDB offers as a destination."""

from __future__ import annotations

from typing import Final

from headrace.model import HASH_KEYS, HASH_KINDS, LIST_KINDS, RANGE_KINDS, DataType
from headrace.model.duckdb_types import STORED_KINDS, native_type
from headrace.planning import REJECT_KINDS, Capabilities

# Blanks at the end of a char(n) are cut before the rows get their places.
_LIST_KEYS: Final = LIST_KINDS | {"char"}

DUCKDB_CAPABILITIES: Final = Capabilities(
    target_type="duckdb",
    sink_kind="arrow",
    loads=("single",),
    stores_tables=True,
    ledger=True,
    case_insensitive_names=True,
    stored_kinds=STORED_KINDS,
    max_decimal_precision=38,
    memory_share=0.40,
    partition_loads=("view",),
    partition_key_kinds={"range": RANGE_KINDS, "list": _LIST_KEYS, "hash": HASH_KINDS},
    core_routes={"range": RANGE_KINDS, "list": _LIST_KEYS, "hash": HASH_KINDS},
    hash_keys=HASH_KEYS,
    reject_types={kind: native_type(DataType(kind)) for kind in REJECT_KINDS},
)
