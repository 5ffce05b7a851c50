"""What DuckDB offers as a destination."""

from __future__ import annotations

from typing import Final

from headrace.planning import Capabilities
from headrace.targets.duckdb.types import STORED_KINDS

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
)
