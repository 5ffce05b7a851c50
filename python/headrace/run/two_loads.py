"""Two loads of one table in one run, or in one data flow."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TargetError
from headrace.model import DataFlowTask


def same_table(first: str, second: str, table: str) -> TargetError:
    """Two destinations of one flow cannot be one table."""
    names = (name.rpartition("/")[2] for name in (first, second))
    return TargetError(
        f"the destinations {' and '.join(f'`{name}`' for name in names)} load the same table",
        found=f"table {table}",
        expected="one destination for each table",
        hint="Name another table, or leave one of them out.",
    )


def refuse_second_load(task: DataFlowTask, earlier: Sequence[DataFlowTask], table: str) -> None:
    """Raises TargetError for a task that loads a table which tasks before it load, if the rows of one of them would be
    lost. They may load different partitions of a table anew.
    """
    way = next((other for other in earlier if task.flow and other.flow == task.flow), None)
    if way is not None:
        raise same_table(way.id, task.id, table)
    own = set(task.destination.partitions)
    for other in earlier if task.destination.target == "replace" else ():
        partitions = other.destination.partitions
        if own and partitions and own.isdisjoint(partitions):
            continue
        raise TargetError(
            f"task `{task.id}` would delete the rows that task `{other.id}` loads into {table} in the same run",
            found="`target: replace` behind another task into the same table",
            hint=f"Set `target: append` for destination `{task.destination.name}` of task `{task.id}`.",
        )
