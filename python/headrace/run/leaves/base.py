"""What a task that does one thing is given, and what it gives back. Each kind is one module of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headrace.executors import FlowOutcome
from headrace.model import BoundPackage, Connection, Task
from headrace.model.scope import Scope
from headrace.planning import DataFlowPlan, FinishedTask
from headrace.run.cancellation import Cancellation
from headrace.targets import SqlSessions, Target


class Memory(Protocol):
    """What a task writes down before it does something that cannot be undone, for the next attempt of the run."""

    def remember(self, note: Mapping[str, Any]) -> None:
        """Keeps a JSON-ready note in the journal of the run; it is on disk when this returns."""

    def remembered(self) -> Sequence[Mapping[str, Any]]:
        """Notes of earlier attempts of the run for this very task, in their order; empty in the first attempt."""


class Services(Protocol):
    """What the run has for its tasks."""

    def sql_sessions(self, connection: Connection) -> SqlSessions:
        """Sessions for SQL in the destination, with the run in its ledger: `Target.sql_sessions`, made once for a run.
        Where `Capabilities.sql_beside_flows` does not say so, only for tasks that hold the pool of the run.
        """

    def target(self, connection: Connection) -> Target:
        """The destination, open, with the run in its ledger. Only for tasks that hold the pool of the run: a target is
        used by one thread at a time.
        """

    def built(self, plan: DataFlowPlan, outcome: FlowOutcome) -> None:
        """Takes the accounts of a build over into those of the run."""

    def built_before(self, task: FinishedTask) -> None:
        """The same, of one that an earlier attempt of the run has done."""


@dataclass(frozen=True)
class LeafContext:
    """What a task knows when it runs, on a worker thread.

    `instance`: its id in this run, `load_tables[lineitem].load`; unique, the same in every attempt of the run, and
    without secrets. `scope`: the values that it sees. `notice` says something to the user, `warn` too, and starts the
    handlers of warnings. `redact` hides secrets in a text.
    """

    task: Task
    instance: str
    run_id: str
    package: BoundPackage
    scope: Scope
    cancellation: Cancellation
    memory: Memory
    notice: Callable[[str], None]
    warn: Callable[[str], None]
    redact: Callable[[str], str]
    services: Services
    run_folder: Path
    is_resumed: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the package file: where relative paths start."""
        return self.package.path.parent

    def connection(self, name: str) -> Connection:
        """The connection of that name; names were checked when the task was bound."""
        found = self.package.binder.surroundings.names.connections[name]
        assert found is not None
        return found


@dataclass(frozen=True)
class LeafResult:
    """`outputs`: values of variables by name, as Python has them (str, int, Decimal, bool, date, datetime, list, Rows,
    None); they are fitted to the variables' types by whoever takes them. `details`: JSON-ready, for events and summary.
    """

    outputs: Mapping[str, object] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


class Leaf(Protocol):
    """One kind of task. `settings` is the bound model of the kind (`SqlSpec`, ...)."""

    def run(self, settings: Any, context: LeafContext) -> LeafResult:
        """Does it. Raises HeadraceError; whatever else it raises is a defect of Headrace."""

    def describe(self, settings: Any) -> Sequence[str]:
        """What it would do, one short line each, for `headrace plan`; the caller hides secrets."""
