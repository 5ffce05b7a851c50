"""The destinations of a run: opened when they are needed, with the run in their ledgers until its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from headrace.errors import HeadraceError
from headrace.model import BoundPackage, Connection
from headrace.run.attempt import Attempt
from headrace.run.events import EventLog
from headrace.run.flow_sources import PreparedFlow
from headrace.run.folder import RunFolder
from headrace.run.phases import Phases
from headrace.run.preparation import OpenTargets
from headrace.run.redact import Redactor
from headrace.run.run_record import record_of_run
from headrace.run.unfinished import refuse_unfinished
from headrace.targets import SqlSessions, Target


class RunDestinations:
    """Those of one run, for any thread. `may_append_late`: whether a flow that is planned later may append rows."""

    def __init__(
        self,
        package: BoundPackage,
        folder: RunFolder,
        redactor: Redactor,
        events: EventLog,
        phases: Phases,
        attempt: Attempt,
        is_cancelled: Callable[[], bool],
        may_append_late: Callable[[], bool],
    ) -> None:
        self._package = package
        self._folder = folder
        self._redactor = redactor
        self._events = events
        self._phases = phases
        self._attempt = attempt
        self._is_cancelled = is_cancelled
        self._may_append_late = may_append_late
        self._targets: OpenTargets | None = None
        self._begun: list[Target] = []
        self._failed: set[int] = set()
        # Destinations that programs have now, or that the run could not take back.
        self._released: set[int] = set()
        self._opening = threading.Lock()
        self._sql: dict[int, SqlSessions] = {}

    @property
    def is_open(self) -> bool:
        """Whether `open` was called."""
        return self._targets is not None

    @property
    def can_begin_again(self) -> bool:
        """Whether no ledger knows more of the run than that it goes on."""
        return not self._begun or self._attempt.is_resumed

    def forget(self) -> None:
        """Closes what is open, as if `open` had not been called."""
        targets, self._targets = self._targets, None
        self._begun.clear()
        if targets is not None:
            with suppress(HeadraceError):
                targets.close()

    @property
    def targets(self) -> OpenTargets:
        """Those that are open."""
        assert self._targets is not None
        return self._targets

    def open(self, flows: list[PreparedFlow]) -> None:
        """Opens the destinations of flows; in a resumed run takes over what the earlier attempt has there."""
        with self._phases.of("start"):
            self._targets = OpenTargets(
                self._package,
                flows,
                spill_folder=str(self._folder.spill),
                read_only=False,
                notice=self._events.notice,
                is_cancelled=self._is_cancelled,
            )
            if self._attempt.is_resumed:
                for target in self._targets.all():
                    self.begin(target)

    def target(self, connection: Connection) -> Target:
        """The destination, open, with the run in its ledger."""
        with self._opening:
            assert self._targets is not None
            found = self._targets.find(connection)
            if found is not None and not any(found is own for own in self._begun):
                found.recover()  # it was lost before the ledger knew of the run
            elif found is not None:
                if id(found) in self._released:
                    self._take_back(found)
                return found
            with self._phases.of("start"):
                target = found or self._targets.open(connection)
                for note in target.notes if found is None else ():
                    self._events.notice(note)
                name, abandon = self._redactor.text(self._package.name), self._attempt.abandon
                lost = []
                if not self._attempt.is_resumed and self._may_append_late():
                    lost = refuse_unfinished(name, target, may_abandon=abandon)
                self.begin(target)
                if lost:
                    target.abandon_runs(lost)
                return target

    def sql_sessions(self, connection: Connection) -> SqlSessions:
        """Sessions for SQL there, made once for the run."""
        target = self.target(connection)
        with self._opening:
            found = self._sql.get(id(target))
            if found is None:
                found = self._sql[id(target)] = target.sql_sessions()
            return found

    @contextmanager
    def released(self, connections: Sequence[Connection]) -> Iterator[None]:
        """Gives the destinations free for other programs while the block runs; the caller holds the pool.

        Raises LedgerError behind it if the run cannot go on there: as long as it can, its place in the ledger is kept.
        """
        with self._opening:
            assert self._targets is not None
            found = {id(target): target for own in connections if (target := self._targets.find(own)) is not None}
            for key, target in found.items():
                if key not in self._released:
                    self._released.add(key)
                    target.release()
        try:
            yield
        except BaseException:
            for target in found.values():
                with suppress(HeadraceError):  # whoever needs it next will say so again
                    self._take_back(target)
            raise
        for target in found.values():
            self._take_back(target)

    def _take_back(self, target: Target) -> None:
        target.take_back(record_of_run(self._package, self._folder, self._redactor, self._attempt.replay))
        self._released.discard(id(target))

    @property
    def keep_ledgers(self) -> bool:
        """Whether all that is open and stores rows has a ledger."""
        opened = () if self._targets is None else self._targets.all()
        return all(own.capabilities.ledger or not own.capabilities.stores_tables for own in opened)

    def appended_tables(self) -> tuple[str, ...]:
        """The tables to which the run has appended rows that are there, in destinations that can be asked now."""
        found: dict[str, None] = {}
        for target in () if self._targets is None else self._targets.all():
            if id(target) in self._released:
                continue
            with suppress(HeadraceError):
                target.recover()
                found |= dict.fromkeys(target.appended_tables(self._folder.run_id))
        return tuple(found)

    def begin(self, target: Target) -> None:
        """Writes the run into the ledger of an open destination."""
        record = record_of_run(self._package, self._folder, self._redactor, self._attempt.replay)
        if self._attempt.is_resumed:
            target.resume_run(record)
            self._begun.append(target)
            return
        lost_runs = target.begin_run(record)
        self._begun.append(target)
        for lost in lost_runs:
            loaded = (
                f"rows of it are visible in {', '.join(lost.tables)}" if lost.tables else "nothing of it is visible"
            )
            self._events.notice(f"run {lost.run_id} died before it ended: {loaded}")

    def end(self, status: str, error: str | None, late_problem: Callable[[Exception], None]) -> None:
        """Says in the ledgers how the run has ended, and closes the destinations. A destination in which a flow has
        failed, and was not loaded later, keeps a failed run: nobody may append on top of a half.
        """
        for sessions in self._sql.values():
            try:
                sessions.close()
            except Exception as problem:
                late_problem(problem)
        for target in self._begun:
            if id(target) in self._released:
                continue  # its ledger is out of reach, or somebody else's
            own = "failed" if status == "success" and id(target) in self._failed else status
            try:
                target.end_run(self._folder.run_id, own, error if own == status else "a data flow has failed")
            except Exception as problem:
                late_problem(problem)
        if self._targets is not None:
            try:
                self._targets.close()
            except Exception as problem:
                late_problem(problem)

    @contextmanager
    def failing(self, target: Target) -> Iterator[None]:
        """What raises here, and is not done again, leaves a failed run in the ledger of its destination."""
        try:
            yield
        except BaseException:
            self._failed.add(id(target))
            raise
        self._failed.discard(id(target))
