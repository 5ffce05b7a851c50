"""What a partition takes, as conditions in DuckDB's SQL. Only the core knows which rows belong into one by hash."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import InternalError
from headrace.planning import CatalogColumn, DefaultRule, ListRule, PartitionRule, RangeRule
from headrace.targets.duckdb.ddl import literal, quote


def belongs(rule: PartitionRule, key: CatalogColumn, others: Sequence[PartitionRule]) -> str:
    """True for the rows of a partition. `others`: the rules of all other partitions, for a default partition."""
    column = quote(key.name)
    match rule:
        case RangeRule(minimum, end):
            above = "" if minimum is None else f" AND {column} >= {_typed(minimum, key.native_type)}"
            below = "" if end is None else f" AND {column} < {_typed(end, key.native_type)}"
            return f"{column} IS NOT NULL{above}{below}"
        case ListRule(values):
            listed = ", ".join(_typed(value, key.native_type) for value in values if value is not None)
            conditions = [f"{column} IN ({listed})"] * bool(listed) + [f"{column} IS NULL"] * (None in values)
            return " OR ".join(conditions)
        case DefaultRule():
            # Of a key that is NULL most of them say nothing.
            known = [belongs(other, key, ()) for other in others if not isinstance(other, DefaultRule)]
            return " AND ".join(f"(({condition}) IS NOT TRUE)" for condition in known) or "true"
        case _:
            raise InternalError("a partition by hash is asked for its rows")


def overlap(one: PartitionRule, other: PartitionRule, native_type: str) -> str:
    """An expression that is true if a key could be in both."""
    match one, other:
        case RangeRule(minimum, end), RangeRule(other_minimum, other_end):
            return f"{_below(minimum, other_end, native_type)} AND {_below(other_minimum, end, native_type)}"
        case ListRule(values), ListRule(other_values):
            return "true" if set(values) & set(other_values) else "false"
        case DefaultRule(), DefaultRule():
            return "true"
        case _:
            return "false"


def _below(one: str | None, other: str | None, native_type: str) -> str:
    return "true" if one is None or other is None else f"{_typed(one, native_type)} < {_typed(other, native_type)}"


def _typed(value: str, native_type: str) -> str:
    return f"CAST({literal(value)} AS {native_type})"
