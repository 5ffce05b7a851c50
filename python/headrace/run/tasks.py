"""The control flow of a package as the list of data flows it means, in the order of execution."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from headrace.model import BoundPackage, BoundTask, DataFlowTask, ForeachTask
from headrace.run.redact import Redactor


def data_flows(tasks: Sequence[BoundTask], enclosing_when: bool = True) -> Iterator[tuple[DataFlowTask, bool]]:
    """Each data flow, iterations of foreach in the order of the list, and whether it is switched on.

    A task inside a foreach that is switched off is switched off too.
    """
    for task in tasks:
        when = enclosing_when and task.when
        if isinstance(task, ForeachTask):
            for iteration in task.iterations:
                yield from data_flows(iteration.tasks, when)
        else:
            yield task, when


def nameable_flows(package: BoundPackage) -> list[tuple[DataFlowTask, bool]]:
    """The data flows of a package under names that may be shown and stored.

    The item of a foreach is part of a task's id and can be a secret. Ids that are equal without it are numbered,
    because the ledger tells the tasks of a run by them.
    """
    redactor = Redactor(package.secrets)
    flows = list(data_flows(package.tasks))
    taken = {flow.id.casefold() for flow, _ in flows if redactor.text(flow.id) == flow.id}
    named = []
    for flow, when in flows:
        shown = redactor.text(flow.id)
        if shown != flow.id:
            shown = unique_name(shown, taken, "#")
            taken.add(shown.casefold())
        named.append((replace(flow, id=shown), when))
    return named


def unique_name(name: str, taken: Container[str], mark: str) -> str:
    """The name, with the first number behind it that makes it, case folded, different from those taken."""
    numbers = itertools.chain([""], (f"{mark}{number}" for number in itertools.count(2)))
    return next(candidate for number in numbers if (candidate := name + number).casefold() not in taken)
