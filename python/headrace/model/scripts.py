"""SQL of tasks, in the package or in files beside it: read and checked before the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from headrace.model.connections import Connection
from headrace.model.problems import ProblemCollector
from headrace.model.references import has_reference
from headrace.model.scope import Scope
from headrace.model.script import Script, script_of_file, script_of_package, shown_file
from headrace.model.sql_checks import ScriptUse, check_script
from headrace.model.yaml_reader import Document, DocumentPath

MAXIMUM_SCRIPT_BYTES: Final = 10_000_000
# Whom a query is for that may only read, by the key of the mapping that it stands in.
_QUERIES: Final = {"query": "the loop", "build": "the build"}


class ScriptFiles:
    """The script files of one package. `contents`: bytes of those that were read, by the name in the package."""

    def __init__(
        self,
        document: Document,
        folder: Path,
        problems: ProblemCollector,
        connections: Mapping[str, Connection | None],
    ) -> None:
        self._document = document
        self._folder = folder
        self._problems = problems
        self._connections = connections
        self.contents: dict[str, bytes] = {}

    def check(self, statement: Mapping[str, Any], path: DocumentPath, scope: Scope) -> None:
        """Notes what is wrong with the SQL of a mapping with `text` (of a build `select`) or `file` at `path`."""
        self._identifiers(statement, path, scope)
        script = self._script(statement, path)
        if script is not None:
            # Its name may be a reference, whose value is not known yet.
            connection = self._connections.get(str(statement.get("connection")))
            self._problems.extend(check_script(script, use_of(statement, path, scope, connection))[1])

    def _script(self, statement: Mapping[str, Any], path: DocumentPath) -> Script | None:
        """None if it is not known yet, cannot be read, or is wrong in a way that was noted."""
        key = text_key(path)
        text, file = statement.get(key), statement.get("file")
        if isinstance(text, str):
            return None if has_reference(text) else script_of_package(text, self._document, (*path, key))
        if not isinstance(file, str) or has_reference(file):
            return None
        try:
            if file not in self.contents:
                self.contents[file] = read_script(self._folder / file)
        except (OSError, ValueError) as error:
            self._problems.add(
                self._document,
                (*path, "file"),
                f"the script {shown_file(self._document, file)} cannot be read",
                found=(error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error),
                expected="the path of a file with SQL, relative to the package file",
                hint="Check the path.",
            )
            return None
        return script_of_file(self.contents[file], self._document, file)

    def _identifiers(self, statement: Mapping[str, Any], path: DocumentPath, scope: Scope) -> None:
        identifiers = statement.get("identifiers")
        for name in identifiers if isinstance(identifiers, Mapping) else ():
            if name in scope.values:
                self._problems.add(
                    self._document,
                    (*path, "identifiers", name),
                    f"`${name}` would be two things: a name, and the value of the variable or parameter `{name}`",
                    found=f"`{name}`",
                    expected="a name that nothing else has",
                    hint="Call it otherwise.",
                    at_key=True,
                )


def text_key(path: DocumentPath) -> str:
    """The key of the SQL in a mapping that stands at `path`, unless it is in a file."""
    return "select" if path[-1] == "build" else "text"


def use_of(statement: Mapping[str, Any], path: DocumentPath, scope: Scope, connection: Connection | None) -> ScriptUse:
    """What the SQL of a mapping, which stands at `path`, is for. `connection`: None if it is not known."""
    identifiers = statement.get("identifiers")
    return ScriptUse(
        names=tuple(dict.fromkeys([*scope.values, *(identifiers if isinstance(identifiers, Mapping) else ())])),
        results=[name for name in ("row", "rows") if statement.get(name) is not None],
        affected=statement.get("affected") is not None,
        query_of=_QUERIES.get(str(path[-1])),
        connection=connection,
    )


def read_script(path: Path) -> bytes:
    """The bytes of a script. Raises OSError, and ValueError if it is too long or no UTF-8."""
    with path.open("rb") as stream:
        content = stream.read(MAXIMUM_SCRIPT_BYTES + 1)
    if len(content) > MAXIMUM_SCRIPT_BYTES:
        raise ValueError(f"more than {MAXIMUM_SCRIPT_BYTES:,} bytes")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"text that is not UTF-8: the byte 0x{content[error.start]:02X} at {error.start}") from error
    return content
