"""A script as a destination takes it: read once more, with the values and names of the moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import PackageError, SqlError
from headrace.model.bound_sql import bound_text
from headrace.model.scope import Scope
from headrace.model.script import Script, script_of_file, script_of_package, shown_file
from headrace.model.scripts import read_script, text_key
from headrace.model.spec_build import BuildSpec
from headrace.model.spec_leaves import StatementSpec
from headrace.model.sql_checks import ScriptUse, check_script
from headrace.model.sql_text import Statement
from headrace.model.yaml_reader import Document, DocumentPath
from headrace.targets.sql import Command, SqlSessions


@dataclass(frozen=True)
class PreparedStatement:
    """A statement of a script, and the command that stands for it."""

    statement: Statement
    command: Command
    at: Mapping[str, object]


def read_sql(settings: StatementSpec | BuildSpec, document: Document, path: DocumentPath, folder: Path) -> Script:
    """The SQL of a task, which stands at `path`. Raises SqlError if its file cannot be read."""
    text = settings.select if isinstance(settings, BuildSpec) else settings.text
    if text is not None:
        return script_of_package(text, document, (*path, text_key(path)))
    file = settings.file or ""
    try:
        return script_of_file(read_script(folder / file), document, file)
    except (OSError, ValueError) as error:
        raise SqlError(
            f"the script {shown_file(document, file)} cannot be read",
            found=(error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error),
            expected="the path of a file with SQL, relative to the package file",
            hint="Check the path.",
        ) from error


def prepare(
    script: Script, use: ScriptUse, identifiers: Mapping[str, str], scope: Scope, sessions: SqlSessions
) -> Sequence[PreparedStatement]:
    """The statements of a script. Raises PackageError if it is wrong, as the check before the run does."""
    statements, problems = check_script(script, use)
    if problems:
        raise PackageError.from_problems(script.file, problems[:20], len(problems))
    names = {key: _quoted(key, name, sessions) for key, name in identifiers.items()}
    return [
        PreparedStatement(statement, _command(script, statement, names, scope, sessions), script.at(statement.offset))
        for statement in statements
    ]


def _command(
    script: Script, statement: Statement, names: Mapping[str, str], scope: Scope, sessions: SqlSessions
) -> Command:
    return Command(*bound_text(script, statement, scope, sessions.parameter, names))


def _quoted(key: str, name: str, sessions: SqlSessions) -> str:
    parts = name.split(".")
    if len(parts) > 2 or not all(part.strip() for part in parts) or "\0" in name:
        raise SqlError(
            f"the identifier `{key}` is no name",
            found=repr(name),
            expected="`name` or `schema.name`",
            hint="Correct it under `identifiers`.",
        )
    return sessions.quote(name)
