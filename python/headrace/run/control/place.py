"""Where a task stands while it runs: its package, the values that it sees, and what is around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from headrace.model import BoundPackage, Handler, Task
from headrace.model.yaml_reader import DocumentPath
from headrace.run.cancellation import Cancellation
from headrace.run.control.frames import Frame
from headrace.run.control.pool import Pool


@dataclass(frozen=True)
class Level:
    """One container with handlers: those of its events and of events inside it. `instance` is "" for the package."""

    package: BoundPackage
    handlers: Mapping[str, Handler]
    frame: Frame
    instance: str


@dataclass(frozen=True)
class Place:
    """What holds for the tasks of one group.

    `pool` and `places` are what its tasks wait for; `has_pool`: whether the task itself holds the pool. `may_start`:
    whether a task of the group that has waited may still start; `is_held`: whether nothing may start any more because
    of what has failed around the group. `failing` is told of a task that has failed before anybody else gets what it
    has held, although its handlers are still to come.
    `prefix` stands before their names in the ids of this run. `levels`: containers around, the innermost first. `rank`:
    their place in the plan, if they are a child's. `redone`: what is before them was done anew, so they are, too;
    `packages`: the tasks of child packages around, with the values that they saw.
    `is_anew`: they, or what is around them, had ended in an earlier attempt of the run.
    """

    package: BoundPackage
    frame: Frame
    prefix: str
    cancellation: Cancellation
    pool: Pool
    places: asyncio.Semaphore
    may_start: Callable[[Task], bool]
    is_held: Callable[[], bool]
    failing: Callable[[Task], None]
    levels: tuple[Level, ...] = ()
    rank: int | None = None
    in_handler: bool = False
    has_pool: bool = False
    redone: bool = False
    is_anew: bool = False
    packages: tuple[tuple[str, Mapping[str, object]], ...] = ()

    def inside(self, prefix: str, frame: Frame, **changes: object) -> Place:
        """The place of the tasks inside a container."""
        return replace(self, prefix=prefix, frame=frame, **changes)  # type: ignore[arg-type]


def always(_task: Task) -> bool:
    """Of tasks that nothing keeps from starting."""
    return True


def never() -> bool:
    """Of what nothing stands still for."""
    return False


def nothing(_task: Task) -> None:
    """Nobody wants to know."""


def assign_all(expressions: Mapping[str, Any], path: DocumentPath, place: Place) -> None:
    """Sets the variables of a mapping that stands at `path`, all from the values before."""
    scope, binder = place.frame.scope(), place.package.binder
    values = {
        name: binder.assigned(place.frame.variable(name), expression, (*path, name), scope)
        for name, expression in expressions.items()
    }
    for name, value in values.items():
        place.frame.assign(name, value)
