"""The names that references and expressions see at a place in the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal

# Largest value of DuckDB's BIGINT.
_MAXIMUM_BIGINT = 2**63 - 1
# DuckDB types of the parameter types; decimal depends on the value.
_SQL_TYPES = {"string": "VARCHAR", "path": "VARCHAR", "integer": "HUGEINT", "boolean": "BOOLEAN", "date": "DATE"}


@dataclass(frozen=True, slots=True)
class Scope:
    """Values by name. `sql_types` holds the DuckDB types of names whose value does not show it (null, lists)."""

    values: Mapping[str, object] = field(default_factory=dict)
    sql_types: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, bool] = field(default_factory=dict)
    system: Mapping[str, str] = field(default_factory=dict)

    def with_item(self, name: str, value: object) -> Scope:
        """This scope and the item of a foreach."""
        return replace(self, values={**self.values, name: value})

    def sql_type(self, name: str) -> str:
        """DuckDB type in which a value is given to an expression."""
        return self.sql_types.get(name) or sql_type_of(self.values[name])


def sql_type_of(value: object) -> str:
    """DuckDB type that holds a scalar value exactly."""
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, int):
        return "BIGINT" if abs(value) <= _MAXIMUM_BIGINT else "HUGEINT"
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        scale = max(0, -exponent) if isinstance(exponent, int) else 0
        return f"DECIMAL({max(scale, value.adjusted() + 1 + scale, 1)},{scale})"
    if isinstance(value, date):
        return "DATE"
    return "VARCHAR"


def declared_sql_type(parameter_type: str, item_type: str, value: object) -> str:
    """DuckDB type of a parameter by its declaration, so that null and empty lists are typed too."""
    if parameter_type == "list":
        items = value if isinstance(value, list) else []
        if item_type == "decimal":
            return "DECIMAL(38,10)[]" if items else "DECIMAL(1,0)[]"
        return f"{_SQL_TYPES[item_type]}[]"
    if parameter_type == "decimal":
        return "DECIMAL(1,0)" if value is None else sql_type_of(value)
    if parameter_type == "integer" and value is not None:
        return sql_type_of(value)
    return _SQL_TYPES[parameter_type]
