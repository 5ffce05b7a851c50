"""What every target offers. A target is a folder with the same slots; its differences are data in `capabilities`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from headrace.errors import HeadraceError, InternalError, LedgerError
from headrace.model import DatabaseQuery, DatabaseSource, LookupColumn, LookupTable
from headrace.planning import Capabilities, CatalogTable, CommittedSlice, DataFlowPlan, QueryColumn
from headrace.targets.partition_exchange import ExchangedPartition, Notes, PartitionExchange
from headrace.targets.row_search import RowSearch

if TYPE_CHECKING:
    from headrace.targets.builds import QueryDivision, QueryParts
    from headrace.targets.group import GroupTransaction
    from headrace.targets.sql import Command, SqlSessions

# Called with the rows the destination took (None: it does not count). Waits for the end of the flow, balances the
# accounts and returns the flow's result; raises if anything is wrong, so that the target rolls back.
Settle = Callable[[int | None], dict[str, Any]]
Notice = Callable[[str], None]


class Flow(Protocol):
    """A data flow of the core, as targets and executors see it (`core.Flow`). Nothing runs before `start`."""

    @property
    def started(self) -> bool: ...
    def start(self) -> None: ...
    def arrow_stream(self) -> object: ...
    def cancel(self, reason: str) -> None: ...
    def commit(self) -> None: ...
    def seen_at_work(self, process_ids: Sequence[int]) -> None: ...
    def snapshot(self) -> dict[str, Any]: ...
    def join(self, timeout_seconds: float) -> dict[str, Any] | None: ...


class SharedFlow(Flow, Protocol):
    """A flow with several destinations."""

    def arrow_stream_of(self, destination: int) -> object: ...
    def has_stream_failed(self, destination: int) -> bool: ...
    def seen_at_work_of(self, destination: int, process_ids: Sequence[int]) -> None: ...


class DestinationWatcher(Protocol):
    """Looks at a destination while its rows come. Used by one thread at a time; what it cannot see raises nothing."""

    def look(self) -> dict[str, Any]:
        """The members of a `destination` line (docs/spec/metrics.md) from `type` on, as they are known by now: nobody
        is waited for.
        """

    def close(self) -> None:
        """Looks a last time, and ends it; `look` still tells what was seen. Waits no longer than a second for a
        destination that does not answer.
        """


@dataclass(frozen=True)
class RunRecord:
    """The ledger's row of a run. Holds no parameters, because those may be secrets. `started_at` is in UTC;
    `of_run`, of a replay, is the run whose rejects it loads.
    """

    run_id: str
    package: str
    package_hash: str
    headrace_version: str
    host: str
    process_id: int
    started_at: datetime
    of_run: str | None = None


# What becomes of the rows of a table: some stay, or all of them are those of the run.
APPENDING: Final = ("append",)
MAKING: Final = ("create", "replace", "reload")


@dataclass(frozen=True)
class LostRun:
    """A run that did not end well, and the tables it had committed before."""

    run_id: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class LoadedTable:
    """Where a run has loaded a task, as the ledger says. `schema` is None where it was not written down; `finished`:
    all rows of the task are visible.
    """

    schema: str | None
    table: str
    finished: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """Rejects of a run, first to last number, that a replay has claimed. `action` is load or drop, `status` that of
    the replay.

    `taken_at`: since when rows of it are visible; None: there are none, and the numbers are open. `is_half`: only some
    of them are. Counts are those of the whole replay: rows loaded, rows rejected again, and rows beyond one for each
    number, None if that was not written down.
    """

    run_id: str
    first: int
    last: int
    action: str
    status: str
    taken_at: datetime | None
    rows_loaded: int
    rows_rejected: int
    rows_added: int | None = None
    is_half: bool = False
    rows_filtered: int = 0


@dataclass(frozen=True)
class TaskProgress:
    """What the ledger knows of a task of this run. `recorded`: its slices were planned; `finished`: its rows are
    visible; `slices`: those whose rows are committed, visible or not, by number; `begun`: rows are committed, if only
    some of a slice.
    """

    recorded: bool = False
    finished: bool = False
    slices: Mapping[int, CommittedSlice] = field(default_factory=dict)
    begun: bool = False


@dataclass(frozen=True)
class FinishedTask:
    """The mark of a task that is no data flow and has committed. `result`: JSON, what it had to tell; None: nothing."""

    result: str | None = None


@dataclass(frozen=True)
class TableAggregates:
    """What a table holds, by the target's own SQL at one moment.

    `columns`: for each loaded column, by its name in the table, the aggregates that the target tells exactly for it:
    `nulls`, `sum`, `min`, `max`, and of texts `min_length`, `max_length`, `total_length` (code points). Values are text
    in the target's own notation; None where no row has a value.
    """

    rows: int
    columns: Mapping[str, Mapping[str, str | None]]


@dataclass(frozen=True)
class SettingAdvice:
    """One setting of a destination beside what a load would like.

    `better` is None if it is fine as it is. `costs`: what the present value costs a load, `gives_up`: what the better
    one gives up, `statement`: how to set it. None of this is done by Headrace.
    """

    name: str
    value: str
    better: str | None = None
    costs: str | None = None
    gives_up: str | None = None
    statement: str | None = None


@dataclass(frozen=True)
class Inspection:
    """What an open destination says about itself.

    `facts`: ready for reading, by name. `problems`: why nothing can be loaded, one sentence each.
    """

    facts: Mapping[str, str]
    problems: tuple[str, ...] = ()
    settings: tuple[SettingAdvice, ...] = ()


@dataclass(frozen=True)
class LoadedPartition:
    """What became of one partition of a load.

    `name`: in the target's schema; `action`: attach, insert or exchange; `rows`: of this load, of which the server has
    moved `strays`; `switch_seconds`: what it took of the switch.
    """

    name: str
    action: str
    rows: int
    strays: int
    switch_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "name": self.name,
            "action": self.action,
            "rows": self.rows,
            "strays": self.strays,
            "switch_seconds": round(self.switch_seconds, 6),
        }


@dataclass(frozen=True)
class LoadTimes:
    """Where the time of one load went, in seconds, and how many rows the destination confirmed.

    `prepare`: DDL and deletes; `insert`: from the first row asked for to the last one taken, accounts included;
    `commit`: ledger rows and commit, of which `switch` is the transaction that makes hidden tables visible. `warnings`:
    what could not be done behind the commit. `partitions`: those of the plan, in its order. `temporary_bytes`: of a
    build, what the server wrote into temporary files meanwhile, as far as it tells.
    """

    prepare_seconds: float
    insert_seconds: float
    commit_seconds: float
    rows_loaded: int
    warnings: tuple[str, ...] = ()
    switch_seconds: float = 0.0
    partitions: tuple[LoadedPartition, ...] = ()
    temporary_bytes: int = 0


@dataclass(frozen=True)
class RowStream:
    """Rows of a lookup. `rows` gives what `core.Lookup` takes, once; it may take its time, and so may the rows.
    `interrupt` ends, from any thread, what is waited for.
    """

    rows: Callable[[], object]
    interrupt: Callable[[], None]


@dataclass(frozen=True)
class OpenOptions:
    """How a target is opened. `engine_bytes`: memory of its own engine; `spill_folder`: where that engine may spill.

    `read_only`: for plans; nothing is created or changed, not even an empty database file.
    `notice` gets one sentence while the target waits for a lock; `is_cancelled` ends that wait.
    `is_trusted`: whether the SQL of the package may reach more than the database.
    """

    engine_bytes: int
    threads: int
    spill_folder: str | None
    read_only: bool
    notice: Notice
    is_cancelled: Callable[[], bool]
    is_trusted: bool = False


class ClosedBehind(ABC):
    """As a context manager it is closed behind the block."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WithoutLookupRows:
    """Of a place that gives lookups no rows: a package that asks for them is refused before."""

    def lookup_table(self, schema: str | None, table: str) -> LookupTable | None:
        """Raises InternalError."""
        raise InternalError("a lookup reads a table of a place that gives no rows")

    def lookup_query(self, query: DatabaseQuery) -> LookupTable:
        """Raises InternalError."""
        raise InternalError("a lookup asks a place that gives no rows")

    def lookup_rows(
        self, source: DatabaseSource, columns: Sequence[LookupColumn], sessions: int = 1
    ) -> AbstractContextManager[RowStream]:
        """Raises InternalError."""
        raise InternalError("a lookup reads a place that gives no rows")


class Target(Protocol):
    """One destination, open from before planning until the end of the run. Used by one thread at a time."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def default_schema(self) -> str | None:
        """The schema of tables that name none; None if the target has no schemas."""

    @property
    def engine_threads(self) -> int:
        """Threads of the target's own engine that take rows; 0 without one."""

    @property
    def notes(self) -> Sequence[str]:
        """What a plan should say about the destination itself."""

    def catalog(self, schema: str | None, table: str) -> CatalogTable | None:
        """The table as it is now; None if it does not exist."""

    def lookup_table(self, schema: str | None, table: str) -> LookupTable | None:
        """What can be read by that name, as it is now; None if nothing can."""

    def lookup_query(self, query: DatabaseQuery) -> LookupTable:
        """What a query gives, which is not executed. Raises SqlError if it is refused."""

    def lookup_rows(
        self, source: DatabaseSource, columns: Sequence[LookupColumn], sessions: int = 1
    ) -> AbstractContextManager[RowStream]:
        """The rows of a table or query, with these columns, as they are committed when the first one is asked for.
        `sessions`: as many may read them, all at one moment.
        """

    def unfinished_runs(self, package: str) -> list[LostRun]:
        """Runs of the package that are over, have not ended with success, and were not given up."""

    def appended_tables(self, run_id: str) -> tuple[str, ...]:
        """Tables to which a run has appended rows that are still there: a new run would append them once more."""

    def abandon_runs(self, runs: Sequence[LostRun]) -> None:
        """Gives unfinished runs up: what they have committed stays as it is, and nobody goes on with them."""

    def begin_run(self, record: RunRecord) -> list[LostRun]:
        """Writes the run into the ledger and returns the dead runs now marked as lost."""

    def resume_run(self, record: RunRecord) -> None:
        """Takes over an earlier attempt of this run, which can commit nothing from now on.

        Writes the run if that attempt had not come to it. Raises LedgerError if a later run of the package has begun.
        """

    def task_progress(self, run_id: str, task: str) -> TaskProgress:
        """What an earlier attempt of the run has done of a task."""

    def finished_task(self, run_id: str, task: str) -> FinishedTask | None:
        """The mark that a task of the run has left, which is no data flow; None: it has not committed, or the
        destination keeps no such marks.
        """

    def sql_sessions(self) -> SqlSessions:
        """Sessions for the SQL of tasks of the run that has begun. The caller closes them, before the target. Raises
        TargetError if there is no SQL.
        """

    def record_slices(self, run_id: str, plan: DataFlowPlan) -> None:
        """Writes the planned slices of one task into the ledger, and with them what a replay claims."""

    def begin_anew(self, run_id: str, plan: DataFlowPlan) -> None:
        """Drops what an earlier attempt of the run has committed of a task out of sight, and what the ledger has of it:
        it was a part of rows that belong together, and would be others now.
        """

    def loaded_table(self, run_id: str, task: str) -> LoadedTable | None:
        """Where a run has loaded a task; None if this destination knows nothing of it."""

    def replays(self, of_run: str, task: str) -> list[Replay]:
        """Which rejects of a task of a run were claimed, by number."""

    def replaced_since(self, run_id: str, task: str, table: LoadedTable) -> str | None:
        """A later run that has made the table, or its rows, anew since the run has loaded the task into it."""

    def unlisted_keys(
        self, schema: str | None, table: str, keys: Sequence[str], values: Sequence[str]
    ) -> Sequence[str] | None:
        """Those of the keys that equal none of the values, in their order, as the existing table compares its key of
        partitions. None: it does not say.

        Asked for tables that compare their keys in a way of their own.
        """

    def names_in_schema(self, schema: str | None) -> frozenset[str]:
        """Names of the schema's tables, views and whatever else a new table cannot be called.

        Asked for plans that make tables beside the destination's own: partitions, and the tables of a view.
        """

    def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
        """The `sink` member of the flow spec. It may hold secrets, so it is made for the core alone."""

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        """Starts the flow when the destination is ready for rows, and executes the plan's steps.

        On any error nothing of it becomes visible. Behind the commit it raises only if the destination says that the
        rows are not there.
        """

    def watcher(
        self, run_id: str, plans: Sequence[DataFlowPlan], others: Sequence[DataFlowPlan] = ()
    ) -> DestinationWatcher | None:
        """Watches the load of the plans, several of one flow, whose `sink_spec` are made. `others`: plans of the flow
        in other connections, which may be of the same server. None if there is nothing to see. The caller closes it
        behind the load.
        """

    def transaction(
        self, run_id: str, task: str, plans: Sequence[DataFlowPlan], is_cancelled: Callable[[], bool]
    ) -> AbstractContextManager[GroupTransaction]:
        """One transaction of the tasks in `task`, whose flows have these plans. `is_cancelled` ends every wait. Raises
        TargetError for a flow that cannot be part of one.
        """

    def switch_partition(
        self, run_id: str, exchange: PartitionExchange, notes: Notes, is_cancelled: Callable[[], bool]
    ) -> ExchangedPartition:
        """Exchanges a partition of a table for another table, in one transaction with the mark of the task.

        Does nothing if an earlier attempt of the run has done it. `notes` are written only where nothing else would
        tell. `is_cancelled` ends every wait: CancelledError.
        """

    def describe_query(self, query: Command, task: str, is_cancelled: Callable[[], bool]) -> Sequence[QueryColumn]:
        """The columns of the rows of a query, which is not executed. Raises SqlError if it cannot be."""

    def divide_query(
        self,
        query: Command,
        division: QueryDivision,
        columns: Sequence[QueryColumn],
        task: str,
        is_cancelled: Callable[[], bool],
    ) -> QueryParts:
        """The statements that together give the rows of the query, whose columns these are. Raises TargetError if it
        cannot be divided so.
        """

    def build(self, run_id: str, plan: DataFlowPlan, parts: QueryParts, is_cancelled: Callable[[], bool]) -> LoadTimes:
        """Fills the table of the plan with the rows of the parts, whose columns are those of the plan, in the
        steps of a load; all see the same moment. On any error nothing of it becomes visible.
        """

    def row_search(self, plan: DataFlowPlan, error: HeadraceError) -> RowSearch | None:
        """What the rows of the source have to be searched for, to find the one about which `load` has raised `error`.

        None if it is not about one row, or only the destination could find it.
        """

    def column_aggregates(self, plan: DataFlowPlan) -> TableAggregates:
        """Aggregates of the columns that the plan fills, over all rows of its table, which exists."""

    def inspect(self, partitions: int) -> Inspection:
        """Looks at the destination itself, changing nothing. `partitions`: the most that a task will switch at once."""

    def recover(self) -> None:
        """Makes it usable again behind a load that was stopped or cut off. Raises what opening it raises."""

    def release(self) -> None:
        """Gives free what other programs cannot use while the run has it. Nothing but `take_back` and `close` then."""

    def take_back(self, record: RunRecord) -> None:
        """Goes on behind `release`. Raises LedgerError if the ledger has no place for the run any more: a later run of
        the package has begun, or the run is unknown there.
        """

    def interrupt(self) -> None:
        """Ends, from any thread, the statement that another thread waits for. The target may be unusable behind it."""

    def end_run(self, run_id: str, status: str, error: str | None) -> None:
        """Writes the end of the run into the ledger: success, failed or cancelled."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def forgotten(run_id: str) -> LedgerError:
    """The error of a run whose ledger has changed while a program had it."""
    return LedgerError(
        f"run {run_id} cannot go on: its ledger does not know it any more",
        found="another database, or a ledger without the run, behind a task with `releases`",
        hint="Let the program leave schema `headrace` alone, and start a new run.",
    )


def superseded(record: RunRecord, later: str) -> LedgerError:
    """The error of a run that cannot be resumed, because run `later` of its package has begun since."""
    return LedgerError(
        f"run {record.run_id} cannot be resumed: a later run of package {record.package} has begun",
        found=f"run {later}",
        hint=f"Go on with that one, if it is unfinished: `headrace resume {later}`.",
    )
