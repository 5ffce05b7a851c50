"""Which tasks of a package run, if not all of them do: `--only`, `--from`, `--skip`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.errors import CommandLineError
from headrace.model import BoundPackage, Task
from headrace.model.suggest import did_you_mean, one_of


@dataclass(frozen=True)
class Choice:
    """What the command line says: ids of tasks as the package defines them."""

    only: tuple[str, ...] = ()
    start: str | None = None
    skip: tuple[str, ...] = ()


ALL_TASKS: Final = Choice()


@dataclass(frozen=True)
class Selection:
    """Ids of tasks that are left out; those behind them go on as if they had succeeded."""

    left_out: frozenset[str] = field(default_factory=frozenset)

    def reason(self, task: Task) -> str | None:
        """Why a task is left out; None if it runs."""
        return "left out on the command line" if task.id in self.left_out else None


def left_out(package: BoundPackage, choice: Choice) -> frozenset[str]:
    """Ids of the tasks that do not run. Raises as `select`."""
    return select(package, choice).left_out


def select(package: BoundPackage, choice: Choice) -> Selection:
    """Raises CommandLineError if a task does not exist, or nothing is left."""
    ways = dict(_ways(package.tasks))
    for option, names in (("--only", choice.only), ("--from", (choice.start,)), ("--skip", choice.skip)):
        for name in names:
            if name is not None and name not in ways:
                raise CommandLineError(
                    f"the package has no task `{name}`",
                    at={"option": f"{option} {name}"},
                    expected=one_of(ways),
                    hint=did_you_mean(name, ways) or "A task inside another one is called `outer.inner`.",
                )
    kept = set(ways)
    if choice.only:
        kept &= _with_surroundings(ways, choice.only)
    if choice.start is not None:
        kept &= _with_surroundings(ways, _behind(package.tasks, ways[choice.start]))
    for name in choice.skip:
        kept -= {task.id for task in ways[name][-1].within()}
    if not any(not ways[name][-1].tasks for name in kept):
        raise CommandLineError("no task is left to run", hint="Choose others with --only, --from and --skip.")
    return Selection(frozenset(ways) - kept)


def _ways(tasks: Sequence[Task], around: tuple[Task, ...] = ()) -> Iterator[tuple[str, tuple[Task, ...]]]:
    """Each task by id, with the containers around it, outermost first; not those of handlers, which follow events."""
    for task in tasks:
        way = (*around, task)
        yield task.id, way
        yield from _ways(task.tasks, way)


def _with_surroundings(ways: dict[str, tuple[Task, ...]], names: Sequence[str]) -> set[str]:
    kept: set[str] = set()
    for name in names:
        kept.update(task.id for task in ways[name])
        kept.update(task.id for task in ways[name][-1].within())
    return kept


def _behind(tasks: Sequence[Task], way: tuple[Task, ...]) -> list[str]:
    """The task and all that follow it, directly or not; and what follows the containers around it."""
    names = [way[-1].id]
    for task in way:
        names += _followers(tasks, task)
        tasks = task.tasks
    return names


def _followers(tasks: Sequence[Task], first: Task) -> list[str]:
    found = {first.name}
    grows = True
    while grows:
        more = {task.name for task in tasks if any(item.name in found for item in task.constraints)} - found
        found |= more
        grows = bool(more)
    return [task.id for task in tasks if task.name in found and task is not first]
