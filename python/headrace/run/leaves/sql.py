"""Tasks of kind `sql`: statements of a destination, in one transaction together with the mark that says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from headrace.errors import HeadraceError, SqlError
from headrace.model import BoundPackage, holds_secret
from headrace.model.scripts import use_of
from headrace.model.spec_leaves import SqlSpec
from headrace.model.sql_text import SqlTextError, split_statements
from headrace.model.task import Variable
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.run.sql.marks import from_mark, to_mark
from headrace.run.sql.prepared import PreparedStatement, prepare, read_sql
from headrace.run.sql.results import all_rows, each, one_row
from headrace.run.sql.wording import placed, redacted
from headrace.targets.sql import SqlSession, SqlSessions

_SHOWN_CHARACTERS: Final = 70


class SqlLeaf:
    """See `Leaf`."""

    def run(self, settings: SqlSpec, context: LeafContext) -> LeafResult:
        """Executes the statements, unless the ledger says that they were committed."""
        try:
            return SqlExecution(settings, context).run()
        except HeadraceError as error:
            if context.cancellation.is_set():
                raise context.cancellation.error(f"task {context.instance}") from error
            raise redacted(error, context.redact) from error

    def describe(self, settings: SqlSpec) -> Sequence[str]:
        """Its connection and the beginnings of its statements."""
        how = "in one transaction, exactly once with a ledger"
        if not settings.transaction:
            how = "each by itself, at least once"
        if settings.file is not None:
            return [f"on {settings.connection}, {how}: statements of {settings.file}"]
        try:
            statements = split_statements(settings.text or "")
        except SqlTextError:
            statements = []
        if all(statement.only_reads for statement in statements):
            how = "reading only"
        return [f"on {settings.connection}, {how}:", *(statement.line(_SHOWN_CHARACTERS) for statement in statements)]


def declared_variables(package: BoundPackage) -> Iterator[Variable]:
    """All variables that are declared anywhere in a package."""
    yield from package.variables
    handlers = [task for handler in package.handlers.values() for task in handler.tasks]
    for task in (*package.tasks, *handlers):
        for inner in task.within():
            yield from inner.variables


class SqlExecution:
    """One try of one task: `run` on its own, or `inside` a transaction that others begin and end."""

    def __init__(self, settings: SqlSpec, context: LeafContext) -> None:
        self._settings = settings
        self._context = context
        self.connection = context.connection(settings.connection)
        self._sessions: SqlSessions = context.services.sql_sessions(self.connection)
        surroundings = context.package.binder.surroundings
        path = context.task.own_path
        script = read_sql(settings, surroundings.document, path, context.folder)
        use = use_of(context.task.own, path, context.scope, self.connection)
        self._statements = prepare(script, use, settings.identifiers, context.scope, self._sessions)

    def run(self) -> LeafResult:
        """The outputs of the task."""
        instance = self._context.instance
        finished = self._sessions.finished_task(instance) if self._settings.transaction else None
        if finished is not None:
            return self._result(from_mark(finished.result, instance), was_done=True)
        with self._sessions.session(instance, self._context.cancellation.is_set) as session:
            try:
                outputs = self._in_transaction(session) if self._settings.transaction else self._alone(session)
            finally:
                self._say(session)
        return self._result(outputs)

    def _result(self, outputs: dict[str, object], *, was_done: bool = False) -> LeafResult:
        details = {"statements": len(self._statements)}
        return LeafResult(outputs, {**details, "committed_before": True} if was_done else details)

    def _secret(self, outputs: Mapping[str, object]) -> set[str]:
        """Names of variables whose values must not be written down."""
        declared = {variable.name for variable in declared_variables(self._context.package) if variable.is_secret}
        shown = {name: to_mark({name: value}, ()) for name, value in outputs.items()}
        secrets = tuple(self._context.package.secrets)  # a copy: other tasks may find secrets meanwhile
        return {name for name, text in shown.items() if name in declared or holds_secret(text, secrets)}

    def inside(self, session: SqlSession) -> dict[str, object]:
        """The outputs of the statements, in a transaction that is open and stays open."""
        try:
            try:
                return self._executed(session)
            finally:
                self._say(session)
        except HeadraceError as error:
            raise redacted(error, self._context.redact) from error

    def marked(self, outputs: Mapping[str, object]) -> str:
        """The outputs as a mark keeps them."""
        return to_mark(outputs, self._secret(outputs))

    def _executed(self, session: SqlSession) -> dict[str, object]:
        for item in self._statements[:-1]:
            self._run(session, item)
        return self._last(session, self._statements[-1])

    def _in_transaction(self, session: SqlSession) -> dict[str, object]:
        only_reads = all(item.statement.only_reads for item in self._statements)
        session.begin()
        if not only_reads:
            session.mark()
        outputs = self._executed(session)
        # What calls itself a query can call a function that writes.
        if only_reads and session.has_changed():
            session.mark()
            only_reads = False
        if not only_reads and outputs:
            session.set_result(self.marked(outputs))
        self._context.cancellation.check(f"task {self._context.instance}")
        self._at(self._statements[-1], session.commit)
        return outputs

    def _alone(self, session: SqlSession) -> dict[str, object]:
        """Statements that commit by themselves; only the last one, if its rows are wanted, is a transaction of ours."""
        session.stand_alone()
        for item in self._statements[:-1]:
            self._run(session, item)
        last = self._statements[-1]
        if not self._wants_rows:
            return self._last(session, last)
        session.begin()
        outputs = self._last(session, last)
        self._at(last, session.commit)
        return outputs

    @property
    def _wants_rows(self) -> bool:
        return self._settings.row is not None or self._settings.rows is not None

    def _run(self, session: SqlSession, item: PreparedStatement) -> int | None:
        self._context.cancellation.check(f"task {self._context.instance}")
        changed: int | None = self._at(item, lambda: session.run(item.command))
        self._say(session)
        return changed

    def _last(self, session: SqlSession, item: PreparedStatement) -> dict[str, object]:
        if not self._wants_rows:
            return self._counted(self._run(session, item), item)
        values: dict[str, object] = self._at(item, lambda: self._values(session, item))
        return values

    def _values(self, session: SqlSession, item: PreparedStatement) -> dict[str, object]:
        rows = session.query(item.command)
        if rows is None:
            name = "row" if self._settings.row is not None else "rows"
            raise SqlError(
                f"the statement gives no rows, and `{name}` waits for them",
                expected="a query, or RETURNING",
                hint=f"Write a query as the last statement, or leave `{name}` out.",
            )
        outputs: dict[str, object] = {}
        if self._settings.rows is not None:
            outputs[self._settings.rows] = kept = all_rows(rows)
            if self._settings.row is not None:
                outputs.update(one_row(kept.columns, kept.rows, self._settings.row))
        elif self._settings.row is not None:
            outputs.update(one_row(rows.columns, each(rows), self._settings.row))
        return {**outputs, **self._counted(rows.changed, item)}

    def _counted(self, changed: int | None, item: PreparedStatement) -> dict[str, object]:
        name = self._settings.affected
        if name is None:
            return {}
        if changed is None:
            error = SqlError(
                "the destination does not say how many rows it has changed, and `affected` waits for their number",
                expected="INSERT, UPDATE, DELETE, MERGE or the like",
                hint="Put such a statement last, or leave `affected` out.",
            )
            raise placed(error, self._context.instance, item.at)
        return {name: changed}

    def _at(self, item: PreparedStatement, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except HeadraceError as error:
            raise placed(error, self._context.instance, item.at) from error

    def _say(self, session: SqlSession) -> None:
        for notice in session.notices():
            say = self._context.warn if notice.level == "warning" else self._context.notice
            say(self._context.redact(f"{self._context.instance}: {notice.text}"))
