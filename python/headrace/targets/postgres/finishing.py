"""What is done with complete hidden tables before they are switched in: by several sessions at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from headrace.errors import HeadraceError
from headrace.planning import DataFlowPlan
from headrace.targets.postgres.connection import Connection, one_value
from headrace.targets.postgres.control import Control
from headrace.targets.postgres.ddl import begin_unit
from headrace.targets.postgres.failures import explained, sqlstate
from headrace.targets.postgres.side_by_side import Job, SideBySide
from headrace.targets.postgres.staging import TableStaging

NOTHING: Final = "; nothing was made visible"
_UNIQUE_VIOLATION: Final = "23505"
_Statement = tuple[str, str]


class Finishing:
    """Builds indexes and foreign keys, and counts rows. Its sessions are those of writers to whoever sweeps the run."""

    def __init__(
        self, plan: DataFlowPlan, staging: TableStaging, run_id: str, connect: Callable[[], Connection], what: str
    ) -> None:
        self._staging = staging
        self._sessions = plan.streams
        self._run_id = run_id
        self._connect = connect
        self._what = what
        self._indexes = staging.index_statements() if plan.options.indexes != "before" else []
        self._foreign_keys = staging.foreign_key_statements()

    def build(self, control: Control, is_cancelled: Callable[[], bool]) -> None:
        """The indexes of one table are built one after the other, because some lock it; foreign keys behind them, one
        after the other too, because they lock the tables to which they refer.
        """
        self._side_by_side([self._made(statements) for statements in self._indexes], control, is_cancelled)
        self._side_by_side([self._made(self._foreign_keys)] * bool(self._foreign_keys), control, is_cancelled)

    def count_rows(self, control: Control, is_cancelled: Callable[[], bool]) -> dict[str, int]:
        """Rows of each hidden table, by its partition."""

        def count(text: str) -> Job[int]:
            return lambda connection: int(one_value(connection, text) or 0)

        jobs = [count(f"SELECT pg_catalog.count(*) FROM {staging.table.sql}") for staging in self._staging.tables]
        counts = self._side_by_side(jobs, control, is_cancelled)
        return {staging.partition: rows for staging, rows in zip(self._staging.tables, counts, strict=True)}

    def _made(self, statements: Sequence[_Statement]) -> Job[int]:
        def make(connection: Connection) -> int:
            for name, text in statements:
                try:
                    connection.execute(begin_unit(self._run_id, [text]))
                    connection.execute("COMMIT")
                except HeadraceError as error:
                    problem = explained(error, f"{self._what}: making {name}", NOTHING)
                    if sqlstate(error) == _UNIQUE_VIOLATION:
                        problem.hint = (
                            "Correct the rows in the source. With `indexes: before` the error names the second one."
                        )
                    raise problem from error
            return len(statements)

        return make

    def _side_by_side(
        self, jobs: Sequence[Job[int]], control: Control, is_cancelled: Callable[[], bool]
    ) -> Sequence[int]:
        if not jobs:
            return ()
        work = SideBySide(self._connect, jobs, self._sessions)
        with control.heartbeat(is_cancelled, work.stop):
            return work.run(is_cancelled)
