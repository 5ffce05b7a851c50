"""Settings that a task of its kind cannot have, and what a container with a transaction may hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headrace.model.bound import DataFlowTask, SharedFlow
from headrace.model.connections import PostgresConnection
from headrace.model.named_things import DATABASES, NamedThings
from headrace.model.problems import ProblemCollector
from headrace.model.spec_leaves import SqlSpec
from headrace.model.task import Constraint, Task
from headrace.model.task_binder import Bound
from headrace.model.yaml_reader import Document, DocumentPath

_MEMBERS: Final = ("sql", "data_flow")
# Of a member, what a single transaction leaves no room for, and the value that says nothing.
_NOT_OF_MEMBERS: Final[dict[str, object]] = {
    "when": True,
    "disabled": False,
    "retry": None,
    "timeout_seconds": None,
    "on": None,
    "join": "all",
    "variables": {},
}
_ALL_OR_NOTHING: Final = "One failed statement ends a transaction: its tasks succeed together, or none of them."


class TaskRules:
    """Looks at the tasks of one package; `names` knows its connections."""

    def __init__(self, document: Document, problems: ProblemCollector, names: NamedThings) -> None:
        self._document = document
        self._problems = problems
        self._names = names
        # Names of connections by ids of the tasks inside a transaction.
        self._transactions: dict[str, str] = {}
        # Data flows by their container and table.
        self._loaded: dict[tuple[str, str | None, str], str] = {}

    def check(self, tasks: Iterable[Task]) -> None:
        """Notes what shows in the text of the tasks."""
        for task in tasks:
            if task.raw.get("retry") is not None and task.about.is_container:
                self._refuse(
                    (*task.path, "retry"),
                    f"a task of kind {task.kind} is not tried again as a whole",
                    "`retry` of the tasks inside it",
                    "Move `retry` into the tasks inside it that may fail in passing.",
                )
            if task.raw.get("maximum_errors") is not None:
                self._maximum_errors(task)
            if task.transaction is not None:
                self._transaction(task, task.transaction)

    def check_member(self, task: Task, bound: Bound | None) -> None:
        """Notes what a task of a transaction does elsewhere, or by itself; `bound`: what it does, if that is known."""
        name = self._transactions.get(task.id)
        if name is None or bound is None:
            return
        if isinstance(bound, DataFlowTask | SharedFlow):
            for way in bound.ways if isinstance(bound, SharedFlow) else (bound,):
                self._check_flow(task, way, name)
        elif isinstance(bound, SqlSpec):
            self._same_connection(task, bound.connection, (*task.own_path, "connection"), name)
            if not bound.transaction:
                self._refuse(
                    (*task.own_path, "transaction"),
                    f"the statements of `{task.name}` commit by themselves",
                    "statements that can be a part of the transaction around them",
                    "Take the task out of the transaction, or remove `transaction: false`.",
                )

    def _check_flow(self, task: Task, flow: DataFlowTask, connection: str) -> None:
        destination = flow.destination
        path: DocumentPath = (*task.own_path, "destinations", destination.name)
        self._same_connection(task, destination.connection.name, (*path, "connection"), connection)
        # Rows of several destinations wait out of sight in any case.
        is_single = destination.target == "append" and destination.load == "single" and not flow.flow
        if is_single and isinstance(destination.connection, PostgresConnection):
            self._refuse(
                (*path, "load"),
                f"the data flow `{task.name}` commits by itself, one transaction for each writer",
                "`load: staged` with a partition clause, or another `target`, inside a transaction",
                "Take the task out of the transaction.",
            )
        if destination.options.lock and isinstance(destination.connection, PostgresConnection):
            self._refuse(
                (*path, "lock"),
                f"the data flow `{task.name}` would hold a transaction of its own open",
                "no `lock` inside a transaction",
                "Leave `lock` out.",
            )
        table = (task.id.rpartition(".")[0], destination.schema, destination.table)
        first = self._loaded.setdefault(table, task.name)
        if first != task.name:
            self._refuse(
                (*path, "table"),
                f"the data flows `{first}` and `{task.name}` of one transaction load the same table",
                "one data flow for each table",
                "Give one data flow all files, or take one out of the transaction.",
            )

    def _maximum_errors(self, task: Task) -> None:
        if task.kind == "package":
            expected, hint = "`maximum_errors` in the package file itself", "Write it there."
        elif not task.about.is_container:
            expected, hint = "`maximum_errors` of sequence, foreach, for, or of the package", "Remove it here."
        elif task.transaction is not None:
            expected, hint = "no `maximum_errors` with `transaction`", _ALL_OR_NOTHING
        else:
            return
        self._refuse(
            (*task.path, "maximum_errors"), f"`maximum_errors` means nothing for the task `{task.name}`", expected, hint
        )

    def _transaction(self, container: Task, name: str) -> None:
        self._names.connection(name, (*container.own_path, "transaction"), "a transaction", DATABASES)
        for task in container.tasks:
            self._transactions[task.id] = name
            if task.kind not in _MEMBERS:
                self._refuse(
                    task.own_path,
                    f"the task `{task.name}` cannot be a part of the transaction of `{container.name}`",
                    f"tasks of kind {' and '.join(_MEMBERS)}",
                    "Move it before or behind the sequence.",
                )
                continue
            for key, neutral in _NOT_OF_MEMBERS.items():
                if key in task.raw and task.raw[key] not in (neutral, None):
                    self._refuse(
                        (*task.path, key),
                        f"`{key}` cannot be said of `{task.name}`, a part of the transaction of `{container.name}`",
                        f"`{key}` of the sequence" if key in ("when", "on") else f"no `{key}`",
                        _ALL_OR_NOTHING,
                    )
            for constraint in task.constraints:
                if constraint != Constraint(constraint.name):
                    self._refuse(
                        (*task.path, "after"),
                        f"inside a transaction `{task.name}` can follow `{constraint.name}` only by success",
                        f"`after: {constraint.name}`",
                        _ALL_OR_NOTHING,
                    )

    def _same_connection(self, task: Task, found: str, path: DocumentPath, wanted: str) -> None:
        if found != wanted:
            self._problems.add(
                self._document,
                path,
                f"the task `{task.name}` is a part of a transaction of `{wanted}` and works elsewhere",
                found=f"`{found}`",
                expected=f"`{wanted}`",
                hint="Take the task out of the transaction.",
            )

    def _refuse(self, path: DocumentPath, what: str, expected: str, hint: str) -> None:
        self._problems.add(self._document, path, what, expected=expected, hint=hint, at_key=True)
