"""Data flows that were bound when they started: what a resumed run, `verify` and `replay` must know to bind them again.

One record per line in `flows.jsonl` of the run folder; the last one of a task counts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from headrace.errors import LedgerError
from headrace.model import BoundPackage, DataFlowTask, Scope, SharedFlow
from headrace.run.control.stored_values import SECRET, from_stored
from headrace.run.folder import RunFolder
from headrace.run.json_lines import add_line, lines
from headrace.run.redact import Redactor
from headrace.run.tasks import nameable_flows
from headrace.run.true_hints import NEW_RUN


def add_record(folder: RunFolder, record: Mapping[str, Any]) -> None:
    """Writes a record; it is on disk when this returns. Raises LedgerError."""
    add_line(folder.flows, record, "what a data flow reads")


def records(folder: RunFolder) -> Iterator[dict[str, Any]]:
    """All records, in the order in which they were written; one that was cut off is left out."""
    for record, _ in lines(folder.run_id, folder.flows):
        yield record


class FlowRecords:
    """Records by task. Only places in the file are kept: loops have many."""

    def __init__(self, folder: RunFolder) -> None:
        """Reads the file once. Raises LedgerError."""
        self._path = folder.flows
        self._places: dict[str, int] = {}
        place = 0
        for record, length in lines(folder.run_id, folder.flows):
            self._places[record["task"]] = place
            place += length

    def of(self, task: str) -> dict[str, Any] | None:
        """The last record of one task; None if there is none."""
        place = self._places.get(task)
        if place is None:
            return None
        with self._path.open("rb") as file:
            file.seek(place)
            record: dict[str, Any] = json.loads(file.readline())
            return record


def with_late_flows(package: BoundPackage, folder: RunFolder, tasks: Collection[str] | None = None) -> BoundPackage:
    """The package, its data flows followed by those that were bound when they started, or by those of `tasks`. Raises
    PackageError and LedgerError if one of them cannot be bound again.
    """
    # A record may also be of a flow that was known before, and was only planned when it started.
    redactor = Redactor(package.secrets)
    before = {redactor.text(flow.id) for flow, _ in nameable_flows(package)}
    known = {record["task"]: record for record in records(folder) if tasks is None or record["task"] in tasks}
    late = [_bound(package, record) for task, record in known.items() if task not in before]
    return replace(package, flows=[*package.flows, *late])


def _bound(package: BoundPackage, record: Mapping[str, Any]) -> DataFlowTask:
    for step in record["packages"]:
        owner = _task(package, step["task"])
        scope = _scope(package, step["values"], step["task"])
        spec = package.binder.task(owner, scope, step["task"])
        connections = {theirs: package.connections[ours] for theirs, ours in spec.connections.items()}  # type: ignore[union-attr]
        package = package.children[owner.id].bind(spec.parameters, connections)  # type: ignore[union-attr]
    definition, scope = _task(package, record["definition"]), _scope(package, record["values"], record["task"])
    flow = package.binder.task(definition, scope, record["task"])
    if isinstance(flow, SharedFlow):
        # The record is of one way, which is called by the flow and its destination.
        instance, _, destination = record["task"].rpartition("/")
        flow = package.binder.task(definition, scope, instance)
        assert isinstance(flow, SharedFlow)
        redactor = Redactor(package.secrets)
        flow = next(way for way in flow.ways if redactor.text(way.destination.name) == destination)
    assert isinstance(flow, DataFlowTask)
    return flow


def _task(package: BoundPackage, identity: str) -> Any:
    return next(task for task in package.all_tasks() if task.id == identity)


def _scope(package: BoundPackage, values: Mapping[str, Any], task: str) -> Scope:
    hidden = [name for name, stored in values.items() if stored == SECRET]
    if hidden:
        raise LedgerError(
            f"task {task} cannot be repeated: the variable `{hidden[0]}` held a secret, and secrets are not stored",
            hint=NEW_RUN,
        )
    return package.scope.with_names({name: from_stored(stored[0]) for name, stored in values.items()}, {})
