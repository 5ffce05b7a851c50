"""The null target takes every type, stores nothing and keeps no ledger."""

from __future__ import annotations

from typing import Final

from headrace.planning import Capabilities

NULL_CAPABILITIES: Final = Capabilities(
    target_type="null",
    sink_kind="null",
    loads=("single",),
    stores_tables=False,
    ledger=False,
    case_insensitive_names=False,
    stored_kinds=None,
    max_decimal_precision=38,
    memory_share=0.0,
)
