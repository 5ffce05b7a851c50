"""What the control thread has done by others: leaves by kind, data flows, and what loops go over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from headrace.errors import CancelledError, HeadraceError, InternalError
from headrace.executors import FlowOutcome
from headrace.model import Connection, DataFlowTask, SharedFlow, Task
from headrace.model.annotations import Slot
from headrace.model.scripts import use_of
from headrace.model.spec_leaves import ProcessSpec, PythonSpec, SqlSpec, StatementSpec
from headrace.model.spec_tasks import ForeachSpec
from headrace.model.yaml_reader import DocumentPath
from headrace.planning import DataFlowPlan, FinishedTask
from headrace.run.cancellation import Cancellation
from headrace.run.control.journal import Journal
from headrace.run.control.loops import Loops, Values, task_without_tasks
from headrace.run.control.place import Place
from headrace.run.control.work import FlowEnd, Member
from headrace.run.events import EventLog
from headrace.run.flows import Flows
from headrace.run.folder import RunFolder
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.run.leaves.registry import leaf_of
from headrace.run.leaves.sql import SqlExecution
from headrace.run.redact import Redactor
from headrace.run.shared_loads import SharedLoad
from headrace.run.sql.prepared import prepare, read_sql
from headrace.run.sql.query_rows import query_rows
from headrace.run.transactions import Load, Part, Transaction
from headrace.targets import SqlSessions, Target, capabilities_of

Result = TypeVar("Result")
# Kinds that use the destination's own session, as data flows do.
_POOL_KINDS = frozenset({"build", "data_flow", "switch"})


@dataclass(frozen=True)
class _Memory:
    """Notes of one task in the journal."""

    journal: Journal
    instance: str

    def remember(self, note: Mapping[str, Any]) -> None:
        self.journal.note(self.instance, note)

    def remembered(self) -> Sequence[Mapping[str, Any]]:
        return self.journal.before(self.instance).notes


class RunWorkers:
    """The workers of one run."""

    def __init__(
        self,
        flows: Flows,
        folder: RunFolder,
        journal: Journal,
        events: EventLog,
        redactor: Redactor,
        system: Mapping[str, object],
        *,
        is_resumed: bool,
    ) -> None:
        self._flows = flows
        self._folder = folder
        self._journal = journal
        self._events = events
        self._redactor = redactor
        self._system = system
        self._is_resumed = is_resumed

    def target(self, connection: Connection) -> Target:
        """As `Services` has it."""
        return self._flows.destinations.target(connection)

    def sql_sessions(self, connection: Connection) -> SqlSessions:
        """As `Services` has it."""
        return self._flows.destinations.sql_sessions(connection)

    def built(self, plan: DataFlowPlan, outcome: FlowOutcome) -> None:
        """As `Services` has it."""
        self._flows.builds.ended(plan, outcome)

    def built_before(self, task: FinishedTask) -> None:
        """As `Services` has it."""
        self._flows.builds.ended_before(task)

    def flow(self, task: Task, instance: str, flow: Callable[[], DataFlowTask | SharedFlow], place: Place) -> FlowEnd:
        """Loads a data flow."""

        once = cache(flow)  # in one try nothing changes that it is bound from

        def bind() -> DataFlowTask:
            bound = once()
            assert isinstance(bound, DataFlowTask)
            return bound

        def call() -> FlowEnd:
            ways = self._flows.ways(instance, once)
            if not ways:
                return self._flows.run(instance, bind, place, place.cancellation)
            return SharedLoad(instance, ways, place, self._folder.run_id, self._flows, self._events).run()

        return self._guarded(call, place.cancellation, instance)

    def transaction(
        self, task: Task, instance: str, members: Sequence[Member], place: Place, warn: Callable[[str], None]
    ) -> Sequence[FlowEnd]:
        """Loads data flows and executes SQL in one transaction."""

        def call() -> Sequence[FlowEnd]:
            connection = place.package.binder.surroundings.names.connections[str(task.transaction)]
            assert connection is not None
            parts = [Part(member, self._sql_of(member, place, warn), self._loads_of(member)) for member in members]
            run_id = self._folder.run_id
            return Transaction(instance, connection, parts, place, run_id, self._flows, self._events).run()

        return self._guarded(call, place.cancellation, instance)

    def _sql_of(self, member: Member, place: Place, warn: Callable[[str], None]) -> SqlExecution | None:
        if member.task.kind != "sql":
            return None
        context = self.context(member.task, member.instance, place, warn)
        settings = place.package.binder.task(member.task, context.scope, member.instance)
        assert isinstance(settings, SqlSpec)
        return SqlExecution(settings, context)

    def _loads_of(self, member: Member) -> list[Load]:
        if member.task.kind == "sql":
            return []
        once = cache(member.flow)

        def bind() -> DataFlowTask:
            bound = once()
            assert isinstance(bound, DataFlowTask)
            return bound

        ways = self._flows.ways(member.instance, once)
        return [Load(way.task.id, way.bind) for way in ways] or [Load(member.instance, bind)]

    def leaf(self, settings: Any, context: LeafContext) -> LeafResult:
        """Does any other task."""
        leaf = leaf_of(context.task.kind)

        def call() -> LeafResult:
            names = settings.releases if isinstance(settings, ProcessSpec | PythonSpec) else ()
            with self._flows.destinations.released([context.connection(name) for name in names]):
                return leaf.run(settings, context)

        return self._guarded(call, context.cancellation, context.instance)

    def _guarded(self, call: Callable[[], Result], cancellation: Cancellation, instance: str) -> Result:
        """A task that was stopped for its time has not been cancelled; a defect is an error like others."""
        try:
            return call()
        except CancelledError as error:
            if cancellation.timeout_seconds is not None:
                raise cancellation.error(f"task {instance}") from error
            raise
        except HeadraceError:
            raise
        except Exception as error:
            raise defect(error) from error

    def needs_pool(self, task: Task, place: Place) -> bool:
        """Statements may run in the instance of the destination, programs may need its file."""
        if task.kind in _POOL_KINDS:
            return True
        if task.kind in ("process", "python"):
            return bool(task.own.get("releases"))
        return task.kind == "sql" and self._queues(task.own, task.own_path, place)

    def listing_needs_pool(self, task: Task, place: Place) -> bool:
        """As `needs_pool`, of what a loop goes over."""
        query = task.own.get("query")
        return query is not None and self._queues(query, (*task.own_path, "query"), place)

    def _queues(self, statement: Mapping[str, Any], path: DocumentPath, place: Place) -> bool:
        slot = Slot(StatementSpec).child("connection", statement)
        name = place.package.binder.value(statement["connection"], slot, (*path, "connection"), place.frame.scope())
        connection = place.package.binder.surroundings.names.connections.get(str(name))
        return connection is not None and not capabilities_of(connection).sql_beside_flows

    def context(self, task: Task, instance: str, place: Place, warn: Callable[[str], None]) -> LeafContext:
        """What a leaf is given."""

        def warned(text: str) -> None:
            self._events.notice(text, instance)
            warn(text)

        return LeafContext(
            task=task,
            instance=instance,
            run_id=self._folder.run_id,
            package=place.package,
            scope=place.frame.scope(task=instance),
            cancellation=place.cancellation,
            memory=_Memory(self._journal, instance),
            notice=lambda text: self._events.notice(text, instance),
            warn=warned,
            redact=self._redactor.text,
            services=self,
            run_folder=self._folder.path,
            is_resumed=self._is_resumed,
        )

    def loops(self, place: Place, instance: str, journal: Journal) -> Loops:
        """What loops go over."""
        return Loops(self._folder.loops, instance, journal, self._redactor.hides, self._query_rows)

    def _query_rows(self, task: Task, place: Place, instance: str) -> Iterator[Values]:
        spec = place.package.binder.task(task_without_tasks(task), place.frame.scope(task=instance), instance)
        assert isinstance(spec, ForeachSpec) and spec.query is not None and spec.as_ is not None
        surroundings = place.package.binder.surroundings
        path = (*task.own_path, "query")
        connection = surroundings.names.connections[spec.query.connection]
        assert connection is not None
        sessions = self.sql_sessions(connection)
        script = read_sql(spec.query, surroundings.document, path, surroundings.folder)
        scope = place.frame.scope(task=instance)
        (query,) = prepare(script, use_of(task.own["query"], path, scope, connection), {}, scope, sessions)
        names = list(spec.as_)
        with query_rows(sessions, query, dict(spec.as_), instance, place.cancellation.is_set) as rows:
            for row in rows:
                yield dict(zip(names, row, strict=True))


def defect(error: BaseException) -> HeadraceError:
    """How anything unknown is reported: as a defect of Headrace."""
    return InternalError(f"internal: {type(error).__name__} in the program itself", found=str(error) or None)
