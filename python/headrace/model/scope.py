"""The names that references and expressions see at a place in the package.

Before the run, values of variables, of loops without a known list, and some facts about the run are UNRESOLVED; their
types are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

from headrace.model.rows import Rows
from headrace.model.validation import UNRESOLVED

# Largest value of DuckDB's BIGINT.
_MAXIMUM_BIGINT = 2**63 - 1
# DuckDB types of the parameter types; decimal depends on the value.
_SQL_TYPES = {
    "string": "VARCHAR",
    "path": "VARCHAR",
    "integer": "HUGEINT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
# Of a variable, whose type must not depend on its value: expressions are checked before there is one.
_VARIABLE_SQL_TYPES = {**_SQL_TYPES, "integer": "BIGINT", "decimal": "DECIMAL(38,10)"}


@dataclass(frozen=True, slots=True)
class Scope:
    """Values by name. `sql_types` holds the DuckDB types of names whose value does not show it (null, lists)."""

    values: Mapping[str, object] = field(default_factory=dict)
    sql_types: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, bool] = field(default_factory=dict)
    system: Mapping[str, object] = field(default_factory=dict)

    def unknown(self) -> frozenset[str]:
        """The names without a value, in small letters."""
        return frozenset(name.lower() for name, value in self.values.items() if is_unknown(value))

    def with_names(self, values: Mapping[str, object], sql_types: Mapping[str, str | None]) -> Scope:
        """This scope and further names; None is a type that only the value shows."""
        types = {name: sql_type for name, sql_type in sql_types.items() if sql_type is not None}
        return replace(self, values={**self.values, **values}, sql_types={**self.sql_types, **types})

    def with_system(self, members: Mapping[str, object]) -> Scope:
        """This scope and further facts about the run."""
        return replace(self, system={**self.system, **members})

    def with_item(self, name: str, value: object) -> Scope:
        """This scope and the item of a foreach."""
        return replace(self, values={**self.values, name: value})

    def has_sql_type(self, name: str) -> bool:
        """False for a name whose type only its value will show."""
        return name in self.sql_types or not is_unknown(self.values[name])

    def sql_type(self, name: str) -> str:
        """DuckDB type in which a value is given to an expression."""
        return self.sql_types.get(name) or sql_type_of(self.values[name])


def usable_names(scope: Scope) -> list[str]:
    """Names that expressions can take: rows are none."""
    return [name for name, value in scope.values.items() if not isinstance(value, Rows)]


def is_unknown(value: object) -> bool:
    """Whether a value, or one inside a list, is not known yet."""
    return value is UNRESOLVED or (isinstance(value, list) and any(item is UNRESOLVED for item in value))


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
    if isinstance(value, datetime):
        return "TIMESTAMP"
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
    if parameter_type == "integer":
        return sql_type_of(0 if value is None or is_unknown(value) else value)
    return _SQL_TYPES[parameter_type]


def variable_sql_type(variable_type: str, item_type: str) -> str | None:
    """DuckDB type of a variable; None for rows, which no expression takes."""
    if variable_type == "rows":
        return None
    return f"{_VARIABLE_SQL_TYPES[item_type]}[]" if variable_type == "list" else _VARIABLE_SQL_TYPES[variable_type]
