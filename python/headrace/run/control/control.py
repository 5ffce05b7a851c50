"""The control thread of a run: containers as coroutines, leaves in worker threads, events to their handlers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from headrace.errors import CancelledError, HeadraceError, PackageError
from headrace.model import BoundPackage, Constraint, DataFlowTask, SharedFlow, Task
from headrace.model.spec_leaves import ChildPackageSpec
from headrace.model.task_order import in_order
from headrace.run.cancellation import Cancellation
from headrace.run.control.frames import Frame
from headrace.run.control.group import End, Group, Status
from headrace.run.control.handlers import Handlers, with_problem
from headrace.run.control.journal import Entry, Journal
from headrace.run.control.loops import Turn
from headrace.run.control.names import InstanceNames
from headrace.run.control.patience import Patience, slept
from headrace.run.control.place import Level, Place, always, assign_all, never, nothing
from headrace.run.control.plan_order import PlanOrder
from headrace.run.control.pool import Hold, NoResource, PlaceResource, Pool, PoolResource, Resource
from headrace.run.control.remembered import RememberedValues
from headrace.run.control.reports import Reports
from headrace.run.control.selection import Selection
from headrace.run.control.totals import TaskTotals
from headrace.run.control.work import Events, FlowEnd, Member, Workers
from headrace.run.leaves.base import LeafResult

Result = TypeVar("Result")
_NOT_STARTED = "the run was cancelled before"
_HELD = "other tasks have failed"


class Control:
    """Runs the tasks of one package. `run` is a coroutine of a loop of its own; no other thread uses this object."""

    def __init__(
        self,
        package: BoundPackage,
        workers: Workers,
        journal: Journal,
        events: Events,
        names: InstanceNames,
        selection: Selection,
        cancellation: Cancellation,
        pool: Pool,
        order: PlanOrder,
        totals: TaskTotals,
        is_secret: Callable[[str], bool],
        system: Mapping[str, object],
        attempt: int,
    ) -> None:
        self._package = package
        self._workers = workers
        self._journal = journal
        self._events = events
        self._names = names
        self._selection = selection
        self._cancellation = cancellation
        self._pool = pool
        self._order = order
        self._totals = totals
        self._system = system
        # One more for the data flow, which takes no place.
        self._executor = ThreadPoolExecutor(package.max_concurrent + 1, thread_name_prefix="task")
        self._places = asyncio.Semaphore(package.max_concurrent)
        self._patience = Patience()
        self._reports = Reports(events, totals)
        self._broken: HeadraceError | None = None
        self._handlers = Handlers(self._group, cancellation, events, totals.shown_error, attempt)
        self._memory = RememberedValues(journal, is_secret)
        self._ranks = {id(task): rank for rank, task in enumerate(package.all_tasks())}

    async def run(self) -> End:
        """All tasks. Never raises for a task that failed."""
        watch = asyncio.create_task(self._patience.watch())
        try:
            frame = Frame.of_package(self._package.scope.with_system(self._system), self._package.secrets)
            self._memory.declare(self._package, self._package.variables, frame, "")
            level = Level(self._package, self._package.handlers, frame, "")
            place = Place(
                self._package,
                frame,
                "",
                self._cancellation,
                self._pool,
                self._places,
                always,
                never,
                nothing,
                (level,),
            )
            end = await self._group(self._package.tasks, place, self._package.maximum_errors, "the run")
            return end if self._broken is None else End("failed", self._broken, failures=max(end.failures, 1))
        except HeadraceError as error:
            return End("failed", error, failures=1)
        except BaseException:
            self._cancellation.set()  # what runs beside a defect must not be waited for
            raise
        finally:
            watch.cancel()
            self._executor.shutdown(wait=True)

    async def _group(self, tasks: Sequence[Task], place: Place, maximum_errors: int, what: str) -> End:
        """The tasks of one container; `what` it is, for people. The error is the first of its tasks."""

        def ask(task: Task, constraint: Constraint) -> bool:
            path = (*task.path, "after", constraint.name, "when")
            return place.package.binder.condition(constraint.when, path, place.frame.scope())

        group = Group(tasks, maximum_errors, ask)
        place = replace(place, may_start=group.may_start, failing=group.failing)
        running: dict[asyncio.Task[End], Task] = {}
        while True:
            self._start_ready(group, place, running)
            if running:
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for ended in done:
                    group.end(running.pop(ended), ended.result())
            elif group.is_stopped and group.has_waiting:
                group.give_up("skipped", "other tasks have failed")
            elif not (group.ready or group.decided):
                break
        if place.cancellation.is_set() and group.was_cut_short(is_late=place.cancellation.timeout_seconds is not None):
            own = next((end.error for end in group.ends.values() if end.status == "cancelled" and end.error), None)
            error = own or place.cancellation.error(what)
            status: Status = "cancelled" if isinstance(error, CancelledError) else "failed"
            failures = max(group.failures, 1 if status == "failed" else 0)
            return End(status, error, failures=failures, is_own_error=own is None)
        is_new = any(end.is_new for end in group.ends.values())
        if group.is_stopped:
            return End("failed", group.first_error, is_new=is_new, failures=max(group.failures, 1))
        if any(end.status == "cancelled" for end in group.ends.values()):
            return End("cancelled", reason=_HELD, failures=group.failures)  # it is not done, and must not be called so
        return End("success", is_new=is_new, failures=group.failures)

    def _start_ready(self, group: Group, place: Place, running: dict[asyncio.Task[End], Task]) -> None:
        if place.cancellation.is_set():
            group.give_up("cancelled", _NOT_STARTED)
            group.ready.clear()
        while group.ready:
            task = group.ready.popleft()
            if group.may_start(task):
                redone = place.redone or any(
                    self._has_run_before(task, item.name, group.ends[item.name], place)
                    for item in task.constraints
                    if item.name in group.ends
                )
                running[asyncio.create_task(self._task(task, replace(place, redone=redone)))] = task
            else:
                group.stop(task)
        while group.decided:
            self._never_started(*group.decided.popleft(), place)

    def _has_run_before(self, task: Task, name: str, how: End, place: Place) -> bool:
        """Whether an earlier attempt of the run had come to the end of the task `name` and so, perhaps, to `task`
        behind it, and the other one was tried again since then.
        """
        other = self._journal.before(self._names.shown(f"{place.prefix}{name}"))
        if how.is_new:
            return other.ends > 0
        own = self._journal.before(self._names.shown(f"{place.prefix}{task.name}"))
        return other.ends > 1 and other.line > own.line

    def _never_started(self, task: Task, end: End, place: Place) -> None:
        shown = self._names.shown(f"{place.prefix}{task.name}")
        self._settle(task, place, end)
        self._reports.never_started(task, shown, end)

    async def _task(self, task: Task, place: Place) -> End:
        """One task, from the decision whether it runs to its end."""
        try:
            end = await self._decided(task, place)
        except HeadraceError as error:
            # The journal cannot be written: a resumed run would not know what is done from now on.
            self._broken = self._broken or error
            self._cancellation.set()
            end = End("failed", error, failures=1)
        self._settle(task, place, end)
        return end

    def _settle(self, task: Task, place: Place, end: End) -> None:
        shown = self._names.shown(f"{place.prefix}{task.name}")
        if not task.about.is_container:
            self._order.settle(shown)
        elif end.status != "success" or not end.is_new or task.transaction is not None:
            self._order.settle_inside(shown)

    async def _decided(self, task: Task, place: Place) -> End:
        """One task, with its tries, events and what is remembered of it."""
        own_id = f"{place.prefix}{task.name}"
        shown = self._names.shown(own_id)
        entry = self._journal.before(shown)
        try:
            if entry.status in ("success", "skipped") and not place.redone:
                self._memory.restore(place.frame, entry, shown)
                self._totals.before(task)
                return End("success" if entry.status == "success" else "skipped", is_new=False)
            if place.redone and self._journal.knows(shown):
                self._journal.redo(shown, entry.generation + 1)
                entry = self._journal.before(shown)
            reason = "`disabled` is true" if task.is_disabled else self._selection.reason(task)
            if reason is not None:
                return self._reports.left_out(task, shown, End("passed", reason=reason))
            scope = place.frame.scope(task=shown)
            condition = task.raw.get("when", True)
            if not place.package.binder.condition(condition, (*task.path, "when"), scope):
                return self._reports.left_out(task, shown, End("skipped", reason="`when` is false"))
            frame = place.frame.inside()
            self._memory.declare(place.package, task.variables, frame, shown)
        except HeadraceError as error:
            end = End("failed", error, failures=1)
            place.failing(task)
            level = Level(place.package, task.handlers, place.frame, own_id)
            await self._handlers.raised("task_failed", replace(place, levels=(level, *place.levels)), shown, error)
            self._reports.ended(task, shown, end, 0.0)
            return end
        own = replace(
            place,
            frame=frame,
            is_anew=place.is_anew or entry.generation > 1,
            is_held=lambda: place.is_held() or not place.may_start(task),
        )
        # What is inside of a task that is done anew, and the ledger, know it by another name.
        instance = own_id if entry.generation == 1 else f"{own_id}#{entry.generation}"
        hold = Hold(self._resource(task, own))
        if not (
            await self._patience.wait(self._turn_of(task, instance), place.cancellation)
            and await self._patience.wait(hold.acquire(), place.cancellation)
        ):
            return End("cancelled", place.cancellation.error(f"task {shown}"))
        try:
            if place.cancellation.is_set():
                return End("cancelled", place.cancellation.error(f"task {shown}"))
            if not place.may_start(task):
                return self._reports.left_out(task, shown, End("skipped", reason=_HELD))
            if place.is_held():
                return self._reports.left_out(task, shown, End("cancelled", reason=_HELD))
            return await self._started(task, own, instance, shown, entry, hold)
        finally:
            hold.release()

    async def _turn_of(self, task: Task, instance: str) -> None:
        """Waits for the flows that the plan has before it."""
        shown = self._names.shown(instance)
        await self._order.turn(shown)
        if task.transaction is not None:
            await self._order.turn_inside(shown)

    def _resource(self, task: Task, place: Place) -> Resource:
        """What a task holds while it works."""
        if task.transaction is not None or self._workers.needs_pool(task, place):
            return PoolResource(place.pool, self._rank(task, place))
        return NoResource() if task.about.is_container or task.kind == "set" else PlaceResource(place.places)

    async def _started(self, task: Task, place: Place, instance: str, shown: str, entry: Entry, hold: Hold) -> End:
        """A task that runs: its events, its tries, and what is remembered of it."""
        place = replace(place, has_pool=hold.is_pool)
        started = time.monotonic()
        warnings: list[str] = []
        own = replace(place, levels=(Level(place.package, task.handlers, place.frame, instance), *place.levels))
        if task.kind != "data_flow":
            self._events.emit("task_started", task=shown, kind=task.kind)
        problem = None
        if self._handlers.listen("pre_execute", own):
            hold.release()
            problem = await self._handlers.raised("pre_execute", own, shown)
        if problem is None:
            end = await self._tries(task, own, instance, shown, entry, warnings, hold)
        else:
            end = with_problem(End("success"), problem)
        if end.status == "failed":
            place.failing(task)
        hold.release()
        if end.status == "failed" and task.does_work:
            end = with_problem(end, await self._handlers.raised("task_failed", own, shown, end.error))
        for text in dict.fromkeys(warnings):
            end = with_problem(end, await self._handlers.raised("warning", own, shown, text=text))
        end = with_problem(end, await self._handlers.raised("post_execute", own, shown, end.error))
        seconds = time.monotonic() - started
        if self._package.log_level == "verbose" and place.frame.writes:
            self._events.emit("variables_set", task=shown, values=self._memory.shown(place.frame))
        if end.status in ("success", "failed", "skipped"):
            # A container that has borne failures has come to its end, and is tried again all the same.
            status = "failed" if end.failures else end.status
            self._journal.ended(shown, status, self._memory.written(place.frame), entry.generation)
        self._reports.ended(task, shown, end, seconds)
        return end

    async def _tries(
        self,
        task: Task,
        place: Place,
        instance: str,
        shown: str,
        entry: Entry,
        warnings: list[str],
        hold: Hold,
    ) -> End:
        number = 0
        while True:
            number += 1
            if not await self._patience.wait(hold.acquire(), place.cancellation):
                return End("cancelled", place.cancellation.error(f"task {shown}"))
            cancellation = place.cancellation.inside()
            timer = None
            if task.timeout_seconds is not None:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(task.timeout_seconds, cancellation.time_out, task.timeout_seconds)
            try:
                inner = replace(place, cancellation=cancellation)
                end = await self._once(task, inner, instance, shown, entry, warnings)
            except CancelledError as error:
                end = End("cancelled", error)
            except HeadraceError as error:
                end = End("failed", error, failures=1, is_own_error=True)
            finally:
                if timer is not None:
                    timer.cancel()
            if end.status != "failed" or end.error is None:
                return end
            is_last = number > task.retry.times or not end.error.retryable or place.cancellation.is_set()
            if is_last:
                place.failing(task)
            hold.release()
            if task.does_work:
                await self._handlers.raised("error", place, shown, end.error)
            if is_last:
                return end
            wait = task.retry.wait(number)
            times = f"{number} of {task.retry.times}"
            self._events.notice(f"{shown} is tried again in {wait:g} s ({times}): {end.error.what}", shown)
            if not await slept(wait, place.cancellation):
                return End("cancelled", place.cancellation.error(f"task {shown}"))

    async def _once(
        self, task: Task, place: Place, instance: str, shown: str, entry: Entry, warnings: list[str]
    ) -> End:
        """One try. Raises HeadraceError."""
        match task.kind:
            case "set":
                assign_all(task.own, task.own_path, place)
                return End("success")
            case "sequence" if task.transaction is not None:
                return await self._transaction(task, place, instance, shown, warnings)
            case "sequence":
                inner = place.inside(f"{instance}.", place.frame.inside())
                return await self._group(task.tasks, inner, task.maximum_errors, f"task {shown}")
            case "foreach" | "for":
                return await self._loop(task, place, instance, shown, entry)
            case "package":
                return await self._child(task, place, instance, shown)
            case "data_flow":
                return await self._flow(task, place, instance, shown, warnings)
            case _:
                return await self._leaf(task, place, instance, shown, warnings)

    async def _leaf(self, task: Task, place: Place, instance: str, shown: str, warnings: list[str]) -> End:
        known = self._names.shown(instance)
        settings = place.package.binder.task(task, place.frame.scope(task=shown), known)
        context = self._workers.context(task, known, place, warnings.append)
        call = partial(self._workers.leaf, settings, context)
        result: LeafResult = await self._in_worker(place, call, f"task {shown}")
        for name, value in result.outputs.items():
            place.frame.assign(name, value)
        self._totals.details(task, result.details)
        return End("success")

    async def _flow(self, task: Task, place: Place, instance: str, shown: str, warnings: list[str]) -> End:
        known = self._names.shown(instance)
        call = partial(self._workers.flow, task, known, self._bound(task, place, known, shown), place)
        end: FlowEnd = await self._in_worker(place, call, f"task {shown}")
        warnings += end.warnings
        return End("success" if end.reason is None else "skipped", reason=end.reason)

    def _bound(self, task: Task, place: Place, instance: str, shown: str) -> Callable[[], DataFlowTask | SharedFlow]:
        scope = place.frame.scope(task=shown)

        def bound() -> DataFlowTask | SharedFlow:
            flow = place.package.binder.task(task, scope, instance)
            assert isinstance(flow, DataFlowTask | SharedFlow)
            return flow

        return bound

    async def _loop(self, task: Task, place: Place, instance: str, shown: str, entry: Entry) -> End:
        loops = self._workers.loops(place, shown, self._journal)
        begun = place.frame.inside()
        if entry.turns:
            self._memory.restore_turns(begun, entry, shown)
        failures = entry.failures
        if failures:
            self._events.notice(f"{failures} tasks in ended turns had failed; turns of a `for` are not repeated", shown)
        if task.kind == "for":
            turns = loops.while_(task, replace(place, frame=begun), entry, assign_all)
        else:
            needs_pool = self._workers.listing_needs_pool(task, place)
            resource = PoolResource(place.pool, self._rank(task, place)) if needs_pool else NoResource()
            if not await self._patience.wait(resource.acquire(), place.cancellation):
                return End("cancelled", place.cancellation.error(f"task {shown}"))
            try:
                reader = replace(place, has_pool=needs_pool)
                values = await self._in_worker(reader, partial(loops.values, task, place, entry), f"task {shown}")
            finally:
                resource.release()
            turns = loops.each(task, values, entry)
        for turn in turns:
            if turn.has_ended:
                self._order.settle_inside(self._names.shown(f"{instance}[{turn.label}]"))
                continue
            place.cancellation.check(f"task {shown}")
            end = await self._turn(task, place, instance, shown, turn, begun, task.maximum_errors - failures)
            failures += end.failures
            if end.status != "success":
                return End(end.status, end.error, reason=end.reason, failures=failures)
        return End("success", failures=failures)

    async def _turn(
        self, task: Task, place: Place, instance: str, shown: str, turn: Turn, begun: Frame, maximum_errors: int
    ) -> End:
        frame = begun.inside(turn.values, task.turn_types)
        inner = place.inside(f"{instance}[{turn.label}].", frame)
        end = await self._group(task.tasks, inner, maximum_errors, f"turn {turn.label} of task {shown}")
        if end.status == "success":
            if task.kind == "for":
                assign_all(task.own.get("step") or {}, (*task.own_path, "step"), replace(place, frame=frame))
            if not end.failures or task.kind == "for":
                inside = self._names.shown(f"{instance}[{turn.label}]")
                self._journal.turn_ended(shown, turn.number, inside, self._memory.written(begun), end.failures)
                begun.writes.clear()
        return end

    async def _child(self, task: Task, place: Place, instance: str, shown: str) -> End:
        """A package inside the run. Its values are those of this moment."""
        spec = place.package.binder.task(task, place.frame.scope(task=shown), shown)
        assert isinstance(spec, ChildPackageSpec)
        child = place.package.children[task.id]
        ours = place.package.connections
        connections = {theirs: ours[name] for theirs, name in spec.connections.items()}
        try:
            package = child.bind(spec.parameters, connections)
        except PackageError as error:
            raise PackageError(
                f"task {shown}: {error.what}", at=error.at, found=error.found, expected=error.expected, hint=error.hint
            ) from error
        frame = Frame.of_package(package.scope.with_system(self._system), self._package.secrets)
        self._memory.declare(package, package.variables, frame, f"{shown}.")
        level = Level(package, package.handlers, frame, instance)
        inner = replace(
            place,
            package=package,
            frame=frame,
            prefix=f"{instance}.",
            levels=(level, *place.levels),
            rank=self._rank(task, place),
            packages=(*place.packages, (task.id, place.frame.values())),
        )
        end = await self._group(package.tasks, inner, package.maximum_errors, f"task {shown}")
        if end.status == "success":
            for name, theirs in spec.results.items():
                place.frame.assign(name, frame.value(theirs))
        return end

    async def _transaction(self, task: Task, place: Place, instance: str, shown: str, warnings: list[str]) -> End:
        """All tasks of the container in their order, and one commit behind them."""
        members = [
            Member(member, known, self._bound(member, place, known, known))
            for member in in_order(task.tasks)
            if (known := self._names.shown(f"{instance}.{member.name}"))
        ]
        known = self._names.shown(instance)
        call = partial(self._workers.transaction, task, known, members, place, warnings.append)
        ends: Sequence[FlowEnd] = await self._in_worker(place, call, f"task {shown}")
        for member, end in zip(members, ends, strict=True):
            status: Status = "success" if end.reason is None else "skipped"
            self._totals.ended(member.task, End(status, reason=end.reason), 0.0)
            warnings += end.warnings
            for name, value in end.outputs.items():
                place.frame.assign(name, value)
        return End("success")

    async def _in_worker(self, place: Place, call: Callable[[], Result], what: str) -> Result:
        place.cancellation.check(what)
        if place.has_pool:
            place.pool.works_for(place.cancellation)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, call)
        finally:
            if place.has_pool:
                place.pool.works_for(None)

    def _rank(self, task: Task, place: Place) -> int:
        return place.rank if place.rank is not None else self._ranks[id(task)]
