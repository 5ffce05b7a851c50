"""Queries over all rows of a data flow between its passes: what brings rows to each, and what its result goes on as.

A pass is a flow of the core. Its destinations are tables, or the first of these queries, or both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import duckdb

from headrace.errors import InternalError
from headrace.executors import (
    FlowOutcome,
    Gathering,
    Loader,
    check_gathered,
    gathered_outcomes,
    keep_gathered,
    keep_gathered_in_front,
    resumed_outcomes,
)
from headrace.executors.local import Settled, SettledWay
from headrace.executors.lookups import RowsOf
from headrace.executors.sql_instances import short_message
from headrace.model import gathering_database
from headrace.planning import DataFlowPlan, GatherPlan, branches_of
from headrace.run.cancellation import Cancellation
from headrace.run.folder import RunFolder
from headrace.run.parts_of_flow import PlaceOfWays, StagingWays
from headrace.run.redact import Redactor


@dataclass(frozen=True)
class FedQuery:
    """A query over all rows that has taken them beside other destinations. `is_told`: no way of the flow stands before
    those behind it, so that rejects are told with them.
    """

    query: Gathering
    before: FlowOutcome
    is_told: bool


class Passes(Protocol):
    """Who runs flows of the core."""

    def as_part(self, before: DataFlowPlan, plan: DataFlowPlan) -> DataFlowPlan: ...
    def run_one(
        self,
        plan: DataFlowPlan,
        loader: Loader,
        cancellation: Cancellation,
        rows_of: RowsOf | None,
        rows: object | None,
        settled: Settled,
    ) -> FlowOutcome: ...
    def in_one_pass(
        self,
        plans: Sequence[DataFlowPlan],
        loader: StagingWays,
        cancellation: Cancellation,
        rows_of: RowsOf | None,
        *,
        is_told: bool = True,
        fed: FedQuery | None = None,
    ) -> tuple[FlowOutcome, ...]: ...


def not_settled(_number: int, _result: dict[str, Any]) -> None:
    """Of a flow without such queries nothing is to be done before its commit."""


class GatheredPasses:
    """Of the flows of one run."""

    def __init__(self, folder: RunFolder, redactor: Redactor, passes: Passes) -> None:
        self._folder = folder
        self._redactor = redactor
        self._passes = passes

    def outcome(
        self,
        plan: DataFlowPlan,
        loader: Loader,
        cancellation: Cancellation,
        rows_of: RowsOf | None,
        *,
        keeps: bool,
        fed: FedQuery | None = None,
    ) -> FlowOutcome:
        """Executes a flow with one destination, and what stands in front of it. See `behind`."""

        def execute(rows: object | None, settled: SettledWay) -> tuple[FlowOutcome, ...]:
            return (self._passes.run_one(plan, loader, cancellation, rows_of, rows, partial(settled, 0)),)

        (outcome,) = self.behind([plan], execute, cancellation, rows_of, keeps=keeps, fed=fed)
        return outcome

    def behind(
        self,
        plans: Sequence[DataFlowPlan],
        execute: Callable[[object | None, SettledWay], tuple[FlowOutcome, ...]],
        cancellation: Cancellation,
        rows_of: RowsOf | None,
        *,
        keeps: bool,
        fed: FedQuery | None = None,
    ) -> tuple[FlowOutcome, ...]:
        """Runs what stands in front of the flow that `execute` runs: for each query over all rows a flow that brings
        rows to it. `keeps`: its accounts are kept, because its rows are for a table. `fed`: the first of these queries,
        if it has its rows.
        """
        gather, rejects = plans[0].gather, self._folder.rejects
        if gather is None:
            return execute(None, not_settled)
        if fed is None and not any(plan.slices_to_load for plan in plans):
            # It has committed and was killed before the switch: nothing is asked again.
            return resumed_outcomes(rejects, plans, execute(None, not_settled))
        is_told = fed is None or fed.is_told
        try:
            with ExitStack() as opened:
                if fed is not None and gather.before.gather is None:
                    query, before = fed.query, fed.before
                else:
                    query = self._gathering(gather, cancellation, opened)
                    # What a query before this one has made is gone when this one has it.
                    part = replace(self._passes.as_part(gather.before, plans[0]), flow="")
                    before = self.outcome(part, query, cancellation, rows_of, keeps=False, fed=fed)
                if before.error is not None:
                    return gathered_outcomes(plans, before, None, is_told=is_told)
                if keeps:
                    keep_gathered_in_front(rejects, plans, before)

                def settled(number: int, result: dict[str, Any]) -> None:
                    check_gathered(plans[number], before, result)
                    if keeps:
                        keep_gathered(rejects, plans, number, before, result, is_told=is_told)

                return gathered_outcomes(plans, before, execute(query.rows(), settled), is_told=is_told)
        except duckdb.Error as error:
            return self._instance_failed(plans, error)

    def beside(
        self, plans: Sequence[DataFlowPlan], loader: StagingWays, cancellation: Cancellation, rows_of: RowsOf | None
    ) -> tuple[FlowOutcome, ...]:
        """One pass over the source, for tables and for queries over all rows; behind it one over the result of each
        query. All of it is left to be committed.
        """
        direct, behind = branches_of(plans)
        try:
            with ExitStack() as opened:
                queries = [self._fed(ways, loader, cancellation, opened) for ways in behind]
                parts = [self._part(ways, direct) for ways in behind]
                places = [PlaceOfWays(query, query, [part.task]) for query, part in zip(queries, parts, strict=True)]
                own = loader.of_pass([way.task for way in direct], places)
                first = self._passes.in_one_pass([*direct, *parts], own, cancellation, rows_of)
                outcomes = {way.task: outcome for way, outcome in zip(direct, first, strict=False)}
                failure = None
                for ways, query, outcome in zip(behind, queries, first[len(direct) :], strict=True):
                    # Of a result that is not there the others need not be asked for.
                    before = outcome if failure is None else replace(outcome, error=failure)
                    fed = FedQuery(query, before, is_told=not outcomes)
                    own = loader if before.error is not None else loader.of_pass([way.task for way in ways])
                    # What lookups read of tables that the flow loads is what was there before it, as in the first pass.
                    results = self._passes.in_one_pass(ways, own, cancellation, None, fed=fed)
                    outcomes.update((way.task, result) for way, result in zip(ways, results, strict=True))
                    failure = results[0].error
                return tuple(outcomes[plan.task] for plan in plans)
        except duckdb.Error as error:
            return self._instance_failed(plans, error)

    def _fed(
        self, ways: Sequence[DataFlowPlan], loader: StagingWays, cancellation: Cancellation, opened: ExitStack
    ) -> Gathering:
        """The first query on these ways."""
        gather = ways[0].gather
        assert gather is not None
        return self._gathering(gather.first, cancellation, opened, lambda: loader.has_stopped)

    def _part(self, ways: Sequence[DataFlowPlan], direct: Sequence[DataFlowPlan]) -> DataFlowPlan:
        """What brings the rows to it, as one of the ways of a pass."""
        gather = ways[0].gather
        assert gather is not None
        part = replace(self._passes.as_part(gather.first.before, ways[0]), flow=ways[0].flow)
        # The ways without a query are planned with all that the pass needs.
        return replace(part, memory=direct[0].memory) if direct else part

    def _gathering(
        self,
        gather: GatherPlan,
        cancellation: Cancellation,
        opened: ExitStack,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> Gathering:
        """An instance of DuckDB for a query over all rows. `is_stopped`: see `Gathering`."""
        spill = str(self._folder.spill)
        database = gathering_database(gather.source.query, gather.memory_bytes, gather.threads, spill)
        connection = opened.enter_context(database)
        return Gathering(connection, gather, cancellation.is_set, self._redactor.text, is_stopped)

    def _instance_failed(self, plans: Sequence[DataFlowPlan], error: duckdb.Error) -> tuple[FlowOutcome, ...]:
        found = self._redactor.text(short_message(error))
        failure = InternalError("the instance of a query over all rows cannot be used", found=found)
        return tuple(FlowOutcome(None, None, failure, 0.0, 0.0) for _ in plans)
