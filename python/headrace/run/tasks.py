"""The control flow of a package as the list of data flows it means, in the order of execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.model import BoundTask, DataFlowTask, ForeachTask


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
