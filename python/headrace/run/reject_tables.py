"""The tables in which the data flows of a run store their rejects."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.model import DataFlowTask, Destination, TableSource
from headrace.planning import CatalogTable, RejectTable, display_name, plan_reject_table, refuse_loaded
from headrace.targets import Target, target_key

TableKey = tuple[object, ...]


def table_key(target: Target, destination: Destination | TableSource, table: str) -> TableKey:
    """Equal for names of one table of one place."""
    name_key = target.capabilities.name_key
    schema = destination.schema or target.default_schema or ""
    return target_key(destination.connection), name_key(schema), name_key(table)


class RejectTables:
    """Each of them is looked at once; several data flows may share one. `loaded`: the tables that the run loads."""

    def __init__(self, loaded: Iterable[TableKey]) -> None:
        self._loaded = set(loaded)
        self._catalogs: dict[TableKey, CatalogTable | None] = {}
        self._planned: dict[TableKey, tuple[str, RejectTable]] = {}

    def of(self, task: DataFlowTask, target: Target) -> RejectTable | None:
        """That of a task, None if it asks for none. Raises TargetError for one that cannot take its rejects."""
        name, schema = task.reject_table, task.destination.schema
        if name is None:
            return None
        key = table_key(target, task.destination, name)
        if key in self._loaded:
            refuse_loaded(task.flow or task.id, display_name(task.destination, target.default_schema, name))
        if key not in self._catalogs:
            self._catalogs[key] = target.catalog(schema, name)
        table = plan_reject_table(task, name, self._catalogs[key], target.capabilities, target.default_schema)
        self._planned.setdefault(key, (task.flow or task.id, table))
        return table

    def refuse_parts(self, parts: Iterable[TableKey]) -> None:
        """Raises TargetError if one of them is among the parts of the tables that the run loads."""
        keys = set(parts)
        for key, (task, table) in self._planned.items():
            if key in keys:
                refuse_loaded(task, table.shown)
