"""One transaction of several tasks: what they change in a destination becomes visible together, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from headrace.model import DatabaseSource, LookupColumn
from headrace.planning import DataFlowPlan
from headrace.targets.base import Flow, LoadTimes, RowStream, Settle, SharedFlow
from headrace.targets.sql import SqlSession


class GroupTransaction(Protocol):
    """Used by one thread at a time. Whatever raises, or leaves the block without `commit`, makes nothing visible.

    The order of calls: `stage` of all flows if `stages_first`; `begin`; then, task by task in their order,
    `statements`, or `stage` unless that came first, and `switch`; `prove`, if another transaction ends with this one;
    `commit`. The ways of a flow with several destinations are staged by one call, and switched one after the other.
    """

    @property
    def stages_first(self) -> bool:
        """Whether the rows of flows travel before the transaction begins, so that it is short."""

    def stage(self, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        """As `Target.load`, but nothing becomes visible yet."""

    def stage_ways(
        self, plans: Sequence[DataFlowPlan], flow: SharedFlow, settles: Sequence[Settle]
    ) -> Sequence[LoadTimes]:
        """The same of the ways of a flow with several destinations, whose rows come together."""

    @property
    def at_work(self) -> str | None:
        """Of ways that are staged by one call, the task of which something is done alone; None while all get rows."""

    def begin(self) -> None:
        """Begins the transaction with the mark of the task that holds the others."""

    def lookup_rows(self, source: DatabaseSource, columns: Sequence[LookupColumn]) -> AbstractContextManager[RowStream]:
        """As `Target.lookup_rows`, with what the transaction has changed."""

    def statements(self) -> AbstractContextManager[SqlSession]:
        """The session of the transaction for the statements of a task. It belongs to the transaction: its user neither
        begins nor ends anything. What the statements have set for the session ends with the block.
        """

    def switch(self, plan: DataFlowPlan) -> None:
        """Makes the rows of a flow a part of its table, for those behind it in the transaction."""

    def prove(self) -> None:
        """Looks at what would be looked at by the commit only, as far as the destination lets it: of several
        transactions that end one after the other, each could commit before the first one does.
        """

    def commit(self, result: str) -> Mapping[str, LoadTimes]:
        """Adds to the mark what the tasks have to tell, and commits. The times of the flows by task. Raises if anything
        but success is certain.
        """
