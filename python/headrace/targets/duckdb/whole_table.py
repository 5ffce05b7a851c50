"""One table that takes all rows straight from the stream."""

from __future__ import annotations

from typing import Any

import duckdb

from headrace.planning import DataFlowPlan
from headrace.targets.duckdb import ddl
from headrace.targets.duckdb.filling import Filling


class WholeTable:
    """Statements of a plan's steps, inside the open transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: DataFlowPlan) -> None:
        self._connection = connection
        self._plan = plan
        self._table = ddl.table_name(plan)
        self.filling = Filling(plan.table, keeps_rows=plan.target == "append")

    def step(self, kind: str, result: dict[str, Any] | None) -> bool:
        """False if it has no such step."""
        match kind:
            case "create_table":
                self._connection.execute(ddl.create_table(self._plan, self._table))
            case "delete_rows":
                self._connection.execute(ddl.delete_rows(self._table))
            case _:
                return False
        return True

    def insert(self) -> int:
        """Takes the registered stream; the number of rows."""
        row = self._connection.execute(ddl.insert_rows(self._plan, self._table)).fetchone()
        return int(row[0]) if row else 0
