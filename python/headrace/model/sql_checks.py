"""What can be said about a script of SQL without a database: its names, and statements that have no place in a task."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from headrace.errors import Problem
from headrace.model.connections import Connection
from headrace.model.name_limits import MAXIMUM_NAME_BYTES, cut_name
from headrace.model.script import Script
from headrace.model.sql_text import SqlTextError, Statement, split_statements
from headrace.model.suggest import did_you_mean, one_of


@dataclass(frozen=True)
class ScriptUse:
    """What a script is for. `names`: what `$name` may be; `results`: those of `row` and `rows` that are wanted of its
    last statement; `affected`: whether its number of rows is; `query_of`: it must be one statement that only reads and
    gives rows, for this one; `connection`: of the database that executes it, if it is known.
    """

    names: Collection[str]
    results: Sequence[str] = ()
    affected: bool = False
    query_of: str | None = None
    connection: Connection | None = None


def check_script(script: Script, use: ScriptUse) -> tuple[Sequence[Statement], Sequence[Problem]]:
    """The statements of a script, and what is wrong with them."""
    try:
        statements = split_statements(script.text)
    except SqlTextError as error:
        return (), (_problem(script, error.offset, error.what, error.found, None, error.hint),)
    return statements, tuple(_problems(script, statements, use))


def _problems(script: Script, statements: Sequence[Statement], use: ScriptUse) -> Iterator[Problem]:
    if not statements:
        yield _problem(
            script,
            0,
            "there is no statement",
            "nothing but blanks and comments",
            "SQL",
            "Write it, or leave the task out.",
        )
        return
    for statement in statements:
        yield from _names(script, statement, use.names)
        yield from _not_here(script, statement)
        yield from _cut(script, statement, use.connection)
    if use.query_of is not None:
        yield from _no_query(script, statements, use.query_of)
    yield from _no_result(script, statements[-1], use)


def _names(script: Script, statement: Statement, names: Collection[str]) -> Iterator[Problem]:
    for placeholder in statement.placeholders:
        if placeholder.name in names:
            continue
        yield _problem(
            script,
            placeholder.begin,
            f"`${placeholder.name}` refers to nothing",
            f"`{placeholder.name}`",
            one_of(names),
            did_you_mean(placeholder.name, names)
            or f"Declare `{placeholder.name}` as a parameter or variable, or under `identifiers` if it is a name.",
        )


def _cut(script: Script, statement: Statement, connection: Connection | None) -> Iterator[Problem]:
    if connection is None:
        return
    for own in statement.long_names:
        cut = cut_name(own.name, MAXIMUM_NAME_BYTES.get(connection.type))
        if cut is not None:
            what = f"a name is too long for the connection `{connection.name}`"
            yield _problem(script, own.begin, what, cut.found, cut.expected, cut.hint)


def _not_here(script: Script, statement: Statement) -> Iterator[Problem]:
    if statement.is_control:
        yield _problem(
            script,
            statement.offset,
            "a task begins and ends its transactions itself",
            f"`{statement.line(60)}`",
            "a script without BEGIN, COMMIT, ROLLBACK, SAVEPOINT and the like",
            "Remove it: all statements of a task are one transaction, or with `transaction: false` each of them.",
        )
    if statement.copies_through_client:
        yield _problem(
            script,
            statement.offset,
            "a task has no rows for COPY, and takes none",
            f"`{statement.line(60)}`",
            "COPY with a file of the server",
            "Load rows with a data flow.",
        )


def _no_query(script: Script, statements: Sequence[Statement], query_of: str) -> Iterator[Problem]:
    if len(statements) > 1:
        yield _problem(
            script,
            statements[1].offset,
            "a query is one statement",
            f"a second one: `{statements[1].line(60)}`",
            "one statement",
            f"Make the others a task of kind `sql` before {query_of}.",
        )
    elif not statements[0].is_query:
        yield _problem(
            script,
            statements[0].offset,
            "a query must only read",
            f"`{statements[0].line(60)}`",
            "SELECT, or another statement that only reads and gives rows",
            f"Make it a task of kind `sql` before {query_of}.",
        )


def _no_result(script: Script, last: Statement, use: ScriptUse) -> Iterator[Problem]:
    if use.results and last.gives_no_rows:
        name = use.results[0]
        yield _problem(
            script,
            last.offset,
            f"the last statement gives no rows, and `{name}` waits for them",
            f"`{last.line(60)}`",
            "a query, or RETURNING",
            f"Write a query as the last statement, or leave `{name}` out.",
        )
    if use.affected and last.changes_no_rows:
        yield _problem(
            script,
            last.offset,
            "the last statement changes no rows that are counted, and `affected` waits for their number",
            f"`{last.line(60)}`",
            "INSERT, UPDATE, DELETE, MERGE, CREATE TABLE ... AS or the like",
            "Put it last, or leave `affected` out.",
        )


def _problem(script: Script, offset: int, what: str, found: str, expected: str | None, hint: str) -> Problem:
    mark = script.mark(offset)
    return Problem(script.file, mark.line, mark.column, what, found, expected, hint)
