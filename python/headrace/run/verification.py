"""Verifies a run: its sources are read and parsed again, and what they hold is compared with what its tables hold.

The destination aggregates its rows by SQL of its own; nothing that the load has counted or remembered is trusted.
"""

from __future__ import annotations

import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from headrace import core
from headrace.errors import CancelledError, HeadraceError, InternalError
from headrace.executors import LocalExecutor
from headrace.model import BoundPackage, DataFlowTask, GatheredSource, Lookup, Reunion, Split, SqlTransform
from headrace.planning import (
    DataFlowPlan,
    MemoryBudget,
    Partitioning,
    RunFacts,
    SkippedTask,
    plan_source_pass,
    source_alone,
)
from headrace.planning.wording import stream_name
from headrace.run import request as requests
from headrace.run.comparison import ColumnComparison, Difference, compare_columns
from headrace.run.flow_records import with_late_flows
from headrace.run.flow_sources import PreparedFlow
from headrace.run.folder import VERIFY, RunFolder
from headrace.run.preparation import OpenTargets, prepare_sources
from headrace.run.redact import Redactor
from headrace.run.waiting import on_worker
from headrace.targets import TableAggregates, Target, open_null_target, target_key

Status = Literal["equal", "different", "not_comparable"]
_CANCELLED: Final = "the verification was cancelled; nothing was changed"


@dataclass(frozen=True)
class TableVerdict:
    """One task's table beside its source.

    `reason` says why it could not be compared. Rows are those that the source gives today without the rejected ones,
    and all of the table; None where they were not counted.
    """

    task: str
    connection: str
    table: str
    status: Status
    reason: str | None = None
    rows_in_source: int | None = None
    rows_rejected: int | None = None
    rows_in_table: int | None = None
    columns: tuple[ColumnComparison, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def values_compared(self) -> int:
        """How many aggregates were compared; the number of rows is one."""
        return 0 if self.rows_in_table is None else 1 + sum(len(column.compared) for column in self.columns)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "task": self.task,
            "connection": self.connection,
            "table": self.table,
            "status": self.status,
            "reason": self.reason,
            "rows_in_source": self.rows_in_source,
            "rows_rejected": self.rows_rejected,
            "rows_in_table": self.rows_in_table,
            "values_compared": self.values_compared,
            "columns": [column.to_dict() for column in self.columns],
            "differences": [difference.to_dict() for difference in self.differences],
        }


def verify(package: BoundPackage, folder: RunFolder, cancel: threading.Event) -> Iterator[TableVerdict]:
    """The tables of a run, one after the other, in the order of its tasks. Changes nothing.

    `package` is that of the run, with its parameters and connections. Raises PackageError or FileChangedError if it or
    a source file is not what it was, whatever reading the sources or tables raises, and CancelledError when `cancel`
    was set.
    """
    redactor = Redactor(package.secrets)
    try:
        requests.check_package(folder, package, VERIFY)
        package = with_late_flows(package, folder)
        prepared = [
            item
            for item in prepare_sources(package, cancel.is_set, with_lookups=False)
            if not isinstance(item, SkippedTask)
        ]
        requests.check_sources(folder, {item.task.id: item.source for item in prepared}, redactor, VERIFY)
        with OpenTargets(
            package,
            prepared,
            spill_folder=None,
            read_only=True,
            notice=lambda _text: None,
            is_cancelled=cancel.is_set,
        ) as targets:
            tasks = [item.task.id for item in prepared]
            partitions = requests.load_partitions(folder, tasks, redactor)
            run = RunFacts(folder.run_id, package.content_hash, requests.began(folder))
            verification = _Verification(package, run, prepared, targets, partitions, cancel)
            for item in prepared:
                yield redactor.dataclass(verification.verdict(item))
    except HeadraceError as error:
        raise redactor.error(error) from None


class _Verification:
    """One verification of one run."""

    def __init__(
        self,
        package: BoundPackage,
        run: RunFacts,
        prepared: Sequence[PreparedFlow],
        targets: OpenTargets,
        partitions: Mapping[str, Partitioning],
        cancel: threading.Event,
    ) -> None:
        self._package = package
        self._run = run
        self._targets = targets
        self._partitions = partitions
        self._cancel = cancel
        self._loads = Counter(self._place(item) for item in prepared)

    def verdict(self, item: PreparedFlow) -> TableVerdict:
        """Compares one table, if it can hold nothing but the rows of this task."""
        if self._cancel.is_set():
            raise CancelledError(_CANCELLED)
        destination = item.task.destination
        target = self._targets[destination.connection]
        reason = self._reason(item, target)
        if reason is not None:
            return _verdict(item, "not_comparable", reason=reason)
        catalog = target.catalog(destination.schema, destination.table)
        if catalog is None:
            return _verdict(item, "different", differences=(Difference(None, "table", "loaded", "there is none"),))
        plan = plan_source_pass(
            item.task,
            item.source,
            catalog,
            target.capabilities,
            MemoryBudget(self._package.memory_bytes, target.engine_threads),
            self._package.streams,
            default_schema=target.default_schema,
            partitioning=self._partitions.get(item.task.id),
        )
        plan = replace(plan, run=self._run)
        source = self._read_source(plan)
        stored = self._read_table(target, plan)
        rows = sum(int(piece["out"]) for piece in source["slices"])
        columns = tuple(compare_columns(plan.columns, source["columns"], stored))
        differences = [difference for column in columns for difference in column.differences]
        if rows != stored.rows:
            differences.insert(0, Difference(None, "rows", str(rows), str(stored.rows)))
        return _verdict(
            item,
            "different" if differences else "equal",
            rows_in_source=rows,
            rows_rejected=sum(int(piece["rejected"]) for piece in source["slices"]),
            rows_in_table=stored.rows,
            columns=columns,
            differences=tuple(differences),
        )

    def _reason(self, item: PreparedFlow, target: Target) -> str | None:
        """Why the table can hold other rows than those of the task, or none; None if it should hold exactly those."""
        if not target.capabilities.stores_tables:
            return "the destination stores nothing"
        if streams := source_alone(item.task, item.source).streams:
            return f"its rows came from {stream_name(streams[0])}, which cannot be read again"
        if not _are_split_alone(item.task) and (passed := _passed(item.task)):
            return passed
        if self._loads[self._place(item)] > 1:
            return "several tasks of the run have loaded this table"
        if item.task.destination.target == "append":
            return "the rows were appended: the table may hold others too"
        if any(replay.taken_at for replay in target.replays(self._run.run_id, item.task.id)):
            return "rejects of the run were replayed: the table holds repaired rows too"
        if item.task.destination.partitions:
            return "some partitions were loaded anew: the others hold other rows"
        return None

    def _place(self, item: PreparedFlow) -> tuple[object, ...]:
        destination = item.task.destination
        target = self._targets[destination.connection]
        name_key = target.capabilities.name_key
        schema = destination.schema or target.default_schema or ""
        return target_key(destination.connection), name_key(schema), name_key(destination.table)

    def _read_source(self, plan: DataFlowPlan) -> dict[str, Any]:
        """Parses the source as the load did, into nothing; the core's result."""
        with tempfile.TemporaryDirectory(prefix="headrace-verify-") as rejects:
            outcome = LocalExecutor(core.Flow).run(
                self._run.run_id, plan, open_null_target(), rejects, lambda _snapshot: None, self._cancel
            )
        if isinstance(outcome.error, CancelledError):
            raise CancelledError(_CANCELLED) from outcome.error
        if outcome.error is not None:
            raise outcome.error
        if outcome.result is None:
            raise InternalError("the source was read without a result")
        return outcome.result

    def _read_table(self, target: Target, plan: DataFlowPlan) -> TableAggregates:
        """Asks on another thread, so that Ctrl-C works while the destination reads its rows."""

        def stop_if_cancelled() -> None:
            if self._cancel.is_set():
                target.interrupt()

        try:
            return on_worker(lambda: target.column_aggregates(plan), stop_if_cancelled)
        except Exception:  # an interrupted statement fails in the words of its database
            if self._cancel.is_set():
                raise CancelledError(_CANCELLED) from None
            raise


def _passed(task: DataFlowTask) -> str | None:
    """What makes other rows of those of the files; what nobody can repeat comes first."""
    kinds = {type(own) for own in task.transforms}
    if isinstance(task.source, GatheredSource) or SqlTransform in kinds:
        return "its rows have passed a query"
    if Lookup in kinds:
        return "its rows have passed a lookup, whose rows may be other ones by now"
    if Reunion in kinds:
        return "its rows have gone different ways and come together again"
    return "its rows have passed a split" if kinds else None


def _are_split_alone(task: DataFlowTask) -> bool:
    """Whether the rows of one of several destinations are those of the files, as far as they have gone its way: what
    splits them depends on nothing but the row.
    """
    is_known = all(isinstance(own, Split) and own.rows is not None for own in task.transforms)
    return bool(task.flow) and is_known and not isinstance(task.source, GatheredSource)


def _verdict(item: PreparedFlow, status: Status, **members: Any) -> TableVerdict:
    destination = item.task.destination
    return TableVerdict(item.task.id, destination.connection.name, destination.table, status, **members)
