"""What the control thread needs of others: who does the work, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.model import DataFlowTask, SharedFlow, Task
from headrace.run.control.journal import Journal
from headrace.run.control.loops import Loops
from headrace.run.control.place import Place
from headrace.run.leaves.base import LeafContext, LeafResult


@dataclass(frozen=True)
class FlowEnd:
    """How a data flow, or a member of a transaction, has ended that did not fail. `reason`: why nothing was loaded, if
    so; `outputs`: of statements, values of variables.
    """

    reason: str | None = None
    warnings: tuple[str, ...] = ()
    outputs: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of_ways(cls, ends: Sequence[FlowEnd]) -> FlowEnd:
        """Of a data flow with these ways, one or more: nothing was loaded if none of them had anything to load."""
        reasons = [end.reason for end in ends if end.reason is not None]
        reason = reasons[0] if len(reasons) == len(ends) else None
        return cls(reason, tuple(warning for end in ends for warning in end.warnings))


@dataclass(frozen=True)
class Member:
    """A task of a transaction. `flow` binds it, if it is a data flow."""

    task: Task
    instance: str
    flow: Callable[[], DataFlowTask | SharedFlow]


class Workers(Protocol):
    """What does the work of leaves, on a worker thread."""

    def flow(self, task: Task, instance: str, flow: Callable[[], DataFlowTask | SharedFlow], place: Place) -> FlowEnd:
        """Loads a data flow; the caller holds the pool. `flow` binds it, if it is not planned already."""

    def transaction(
        self, task: Task, instance: str, members: Sequence[Member], place: Place, warn: Callable[[str], None]
    ) -> Sequence[FlowEnd]:
        """All members, in order, and one commit; the caller holds the pool."""

    def leaf(self, settings: Any, context: LeafContext) -> LeafResult:
        """Does any other task."""

    def needs_pool(self, task: Task, place: Place) -> bool:
        """Whether a task may not run beside a data flow."""

    def listing_needs_pool(self, task: Task, place: Place) -> bool:
        """The same, of reading what a loop goes over."""

    def context(self, task: Task, instance: str, place: Place, warn: Callable[[str], None]) -> LeafContext:
        """What a leaf is given."""

    def loops(self, place: Place, instance: str, journal: Journal) -> Loops:
        """What loops go over."""


class Events(Protocol):
    """Where events go."""

    def emit(self, event: str, **members: Any) -> None: ...
    def notice(self, text: str, task: str | None = None) -> None: ...
