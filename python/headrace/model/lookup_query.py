"""Queries of a package that a database answers."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.model.bound_sql import Parameter, bound_text
from headrace.model.scope import Scope
from headrace.model.script import Script
from headrace.model.sql_text import Statement


@dataclass(frozen=True, slots=True)
class DatabaseQuery:
    """One statement that only reads, with the values of the moment."""

    script: Script
    statement: Statement
    scope: Scope

    @property
    def written(self) -> str:
        """As the package has it."""
        return self.script.text

    @property
    def at(self) -> dict[str, object]:
        """Where it stands, as errors have it."""
        return self.script.at(self.statement.offset)

    @property
    def is_ordered(self) -> bool:
        """Whether its rows have an order."""
        return self.statement.is_ordered

    def bound(self, parameter: Parameter) -> tuple[str, list[object]]:
        """The text, with what `parameter` writes in place of each value, and the values. Raises SqlError for rows."""
        return bound_text(self.script, self.statement, self.scope, parameter)
