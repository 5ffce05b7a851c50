"""Replace references and expressions by their values.

One walk serves two purposes. The check before anything is bound (`StaticLeaves`) looks at syntax and names only
and leaves UNRESOLVED where a value will stand. Binding (`BindingLeaves`) puts the values in.
"""

from __future__ import annotations

import getpass
import platform
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Protocol

from headrace.model.annotations import Slot
from headrace.model.expressions import ExpressionError, ExpressionEvaluator
from headrace.model.problems import ProblemCollector
from headrace.model.redaction import PUBLIC_VARIABLES, secret_texts
from headrace.model.references import (
    Reference,
    ReferenceSyntaxError,
    has_reference,
    parse_text,
)
from headrace.model.rows import Rows
from headrace.model.scope import Scope, is_unknown, usable_names
from headrace.model.settings import SettingKind
from headrace.model.suggest import did_you_mean, one_of, quote, show_name, show_value
from headrace.model.validation import UNRESOLVED, place_name
from headrace.model.visible import inner_scope
from headrace.model.yaml_reader import Document, DocumentPath, value_at
from headrace.model.yaml_scalars import resolve_plain

# Larger files are not secrets or settings.
MAXIMUM_REFERENCED_FILE_BYTES = 65_536


class Leaves(Protocol):
    """What becomes of a text with references, and of an expression."""

    def reference(self, reference: Reference, path: DocumentPath, scope: Scope) -> object:
        """The value of a reference, or UNRESOLVED."""

    def expression(self, sql: str, path: DocumentPath, scope: Scope) -> object:
        """The value of an expression, or UNRESOLVED."""


class Resolver:
    """Walks values along the models."""

    def __init__(self, document: Document, problems: ProblemCollector, leaves: Leaves) -> None:
        self._document = document
        self._problems = problems
        self._leaves = leaves

    def resolve(self, value: object, slot: Slot, path: DocumentPath, scope: Scope) -> object:
        """A copy of `value` without references and expressions; UNRESOLVED where one has no value."""
        if slot.kind is SettingKind.PROSE:
            return value
        if isinstance(value, str):
            return self._text(value, slot, path, scope)
        if isinstance(value, Mapping):
            if _is_expression(value, slot):
                return self._adapted(self._expression(value["expr"], slot, (*path, "expr"), scope), slot)
            return self._mapping(value, slot, path, scope)
        if isinstance(value, list):
            return [
                self.resolve(item, slot.child(index, value), (*path, index), scope) for index, item in enumerate(value)
            ]
        return value

    def _mapping(self, value: Mapping[str, object], slot: Slot, path: DocumentPath, scope: Scope) -> dict[str, object]:
        resolved = {}
        model = slot.model(value)
        for key, child in value.items():
            inner = scope if model is None else inner_scope(model, key, value, scope)
            resolved[key] = self.resolve(child, slot.child(key, value), (*path, key), inner)
        return resolved

    def _text(self, text: str, slot: Slot, path: DocumentPath, scope: Scope) -> object:
        if slot.kind is SettingKind.EXPRESSION:
            return self._expression(text, slot, path, scope)
        if slot.kind is SettingKind.SQL:
            return self._sql(text, path)
        try:
            parts = parse_text(text)
        except ReferenceSyntaxError as error:
            self._problems.add(self._document, path, error.what, found=error.found, hint=error.hint)
            return UNRESOLVED
        references = [part for part in parts if isinstance(part, Reference)]
        if references and slot.kind is SettingKind.LITERAL:
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)} cannot hold a reference",
                found=quote(text),
                expected="a literal value",
                hint="Write the value itself.",
            )
            return UNRESOLVED
        if len(parts) == 1 and references:
            value = self._leaves.reference(references[0], path, scope)
            return self._adapted(value, slot, is_foreign_text=references[0].kind != "variable")
        return self._joined(parts, path, scope)

    def _joined(self, parts: list[str | Reference], path: DocumentPath, scope: Scope) -> object:
        text = ""
        is_resolved = True
        for part in parts:
            if isinstance(part, str):
                text += part
                continue
            value = self._leaves.reference(part, path, scope)
            if value is UNRESOLVED:
                is_resolved = False
            elif value is None or isinstance(value, (list, Mapping, Rows)):
                self._problems.add(
                    self._document,
                    path,
                    f"{part} cannot stand inside a text",
                    found=show_value(value),
                    expected="a single value",
                    hint="Give it a value." if value is None else "Use the reference as the whole value.",
                )
                is_resolved = False
            else:
                text += to_text(value)
        return text if is_resolved else UNRESOLVED

    def _sql(self, text: str, path: DocumentPath) -> object:
        if not has_reference(text):
            return text
        self._problems.add(
            self._document,
            path,
            "SQL cannot hold `${...}`",
            found=quote(text),
            expected="`$name` for the value of a variable or parameter",
            hint="Write `$name` instead of `${name}`: it is bound, not pasted.",
        )
        return UNRESOLVED

    def _expression(self, sql: object, slot: Slot, path: DocumentPath, scope: Scope) -> object:
        if not isinstance(sql, str) or not sql.strip():
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)} must be an expression",
                found=show_value(sql),
                expected="DuckDB SQL as text",
                hint=f"Quote it: {quote(show_value(sql))}." if isinstance(sql, (int, Decimal)) else None,
            )
            return UNRESOLVED
        if has_reference(sql):
            self._problems.add(
                self._document,
                path,
                "an expression cannot hold `${...}`",
                found=quote(sql),
                expected="the plain names of parameters",
                hint="Write `name` instead of `${name}`.",
            )
            return UNRESOLVED
        value = self._leaves.expression(sql, path, scope)
        if value is not None or slot.takes_null():
            return value
        self._problems.add(
            self._document,
            path,
            f"{place_name(path)}: the expression gives null",
            found=quote(sql),
            expected="a value",
            hint="Use coalesce() to say what null means.",
        )
        return UNRESOLVED

    def _adapted(self, value: object, slot: Slot, *, is_foreign_text: bool = False) -> object:
        """A value of a reference or expression in the form that the setting takes, where that loses nothing."""
        if isinstance(value, list):
            return [self._adapted(item, slot.child(index, value)) for index, item in enumerate(value)]
        if slot.wants_text() or slot.takes_list():
            is_scalar = isinstance(value, (bool, int, Decimal, date))
            return to_text(value) if is_scalar else value
        if is_foreign_text and isinstance(value, str) and slot.expectation(None) != "another value":
            return value if slot.choices() else resolve_plain(value)
        return value


def _is_expression(value: Mapping[str, object], slot: Slot) -> bool:
    return slot.kind is SettingKind.SETTING and set(value) == {"expr"} and not slot.takes_mapping()


def to_text(value: object) -> str:
    """A scalar as it reads inside a text: `true`, `5`, `0.10`, `2024-01-31`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def secret_texts_of(value: object) -> set[str]:
    """What must be kept out of texts for a value of a variable or parameter that is a secret."""
    held = [item for item in (value if isinstance(value, list) else [value]) if item is not None]
    texts = [to_text(item) for item in held if not isinstance(item, (bool, Rows)) and not is_unknown(item)]
    return set().union(*map(secret_texts, texts))


class StaticLeaves:
    """Checks the names of references; values stay unknown."""

    def __init__(self, document: Document, problems: ProblemCollector) -> None:
        self._document = document
        self._problems = problems

    def reference(self, reference: Reference, path: DocumentPath, scope: Scope) -> object:
        """UNRESOLVED; a problem if the name does not exist."""
        if reference.kind == "variable" and reference.name not in scope.values:
            names = list(scope.values)
            hint = did_you_mean(reference.name, names)
            if path[:1] == ("parameters",):
                hint = "A default cannot refer to parameters; ${env:X}, ${file:X} and ${system.x} may be used."
            elif path[:1] == ("environments",):
                hint = "An environment cannot refer to parameters; ${env:X}, ${file:X} and ${system.x} may be used."
            elif path[:1] == ("variables",) and len(path) == 3 and hint is None:
                hint = "The first value of a variable can refer to parameters; a task of kind `set` to variables too."
            elif hint is None:
                hint = f"Declare `{reference.name}` as a parameter or variable; for the characters `${{` write `$${{`."
            self._problems.add(
                self._document,
                path,
                f"{reference} refers to nothing",
                found=f"`{reference.name}`",
                expected=one_of(names),
                hint=hint,
            )
        if reference.kind == "system" and reference.name not in scope.system:
            self._problems.add(
                self._document,
                path,
                f"{reference} refers to nothing",
                found=f"`{reference.name}`",
                expected=one_of(scope.system),
                hint=did_you_mean(reference.name, scope.system),
            )
        return UNRESOLVED

    def expression(self, sql: str, path: DocumentPath, scope: Scope) -> object:
        """UNRESOLVED: expressions are looked at when the values are known."""
        return UNRESOLVED


class BindingLeaves:
    """Puts in the values; notes which came from outside the package."""

    def __init__(
        self,
        document: Document,
        problems: ProblemCollector,
        environ: Mapping[str, str],
        evaluator: ExpressionEvaluator,
        folder: Path,
        is_public: Callable[[DocumentPath], bool] | None = None,
    ) -> None:
        """`is_public`: whether a value from outside may be shown where it is put in; by default, as the declaration of
        its parameter or variable says.
        """
        self._document = document
        self._problems = problems
        self._environ = environ
        self._evaluator = evaluator
        self._folder = folder
        self._is_public = is_public or partial(declared_public, document)

    def reference(self, reference: Reference, path: DocumentPath, scope: Scope) -> object:
        """The value; UNRESOLVED, with a problem noted, if there is none."""
        if reference.kind == "env":
            return self._environment(reference, path)
        if reference.kind == "file":
            return self._file(reference, path)
        values = scope.system if reference.kind == "system" else scope.values
        return values.get(reference.name, UNRESOLVED)

    def expression(self, sql: str, path: DocumentPath, scope: Scope) -> object:
        """The result; UNRESOLVED if it is not known yet, and, with a problem noted, if it fails."""
        try:
            if not uses_unknown(sql, scope):
                return self._evaluator.evaluate(sql, scope)
            if has_types(sql, scope):
                self._evaluator.type_of(sql, scope)
        except ExpressionError as error:
            self._problems.add(
                self._document,
                path,
                f"{place_name(path)}: the expression cannot be evaluated",
                found=f"{quote(sql)}\n{error}",
                expected=f"DuckDB SQL over {', '.join(usable_names(scope)) or 'no parameters'}",
                hint=self._quoting_hint(sql, scope),
            )
        return UNRESOLVED

    def _quoting_hint(self, sql: str, scope: Scope) -> str | None:
        words = set(re.findall(r'(?<!")\b\w+\b(?!")', sql.lower()))
        reserved = self._evaluator.reserved_words()
        for name in scope.values:
            if name.lower() in words & reserved:
                return f'`{name}` is a word of SQL: as a name write "{name}" in double quotes.'
        return None

    def _environment(self, reference: Reference, path: DocumentPath) -> object:
        value = self._environ.get(reference.name)
        if value is None:
            self._problems.add(
                self._document,
                path,
                f"the environment variable {reference.name} is not set",
                found=str(reference),
                hint=f"Set it before the command: {reference.name}=... headrace ...",
            )
            return UNRESOLVED
        if reference.name not in PUBLIC_VARIABLES:
            self._keep_secret(value, path)
        return value

    def _file(self, reference: Reference, path: DocumentPath) -> object:
        try:
            with (self._folder / reference.name).open("rb") as stream:
                content = stream.read(MAXIMUM_REFERENCED_FILE_BYTES + 1)
            if len(content) > MAXIMUM_REFERENCED_FILE_BYTES:
                raise ValueError(f"more than {MAXIMUM_REFERENCED_FILE_BYTES:,} bytes")
            value = content.decode("utf-8").rstrip("\r\n")
        except (OSError, ValueError) as error:
            if isinstance(error, OSError):
                found = error.strerror or type(error).__name__
            else:
                found = "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            self._problems.add(
                self._document,
                path,
                f"the file of {show_name(str(reference))} cannot be read",
                found=found,
                expected="a small UTF-8 text file",
                hint="The path is relative to the package file.",
            )
            return UNRESOLVED
        self._keep_secret(value, path)
        return value

    def _keep_secret(self, value: str, path: DocumentPath) -> None:
        if not self._is_public(path):
            self._problems.secrets.update(secret_texts(value))


def declared_public(document: Document, path: DocumentPath) -> bool:
    """Whether the value at `path` is that of a parameter or variable whose declaration says `secret: false`."""
    for end in range(2, len(path)):
        kind, key = path[end - 2], path[end]
        is_declaration = end == 2 or path[end - 4] == "tasks"
        if is_declaration and (kind, key) in (("parameters", "default"), ("variables", "value")):
            return value_at(document, (*path[:end], "secret")) is False
    return False


_WORD = re.compile(r"\w+")
_SYSTEM_MEMBER = re.compile(r'\bsystem\b(?:\s*\.\s*"?(\w+)"?)?', re.IGNORECASE)


def words_of(sql: str) -> frozenset[str]:
    """Whatever may be a name in it, in small letters; more than the names that are."""
    return frozenset(word.lower() for word in _WORD.findall(sql))


def uses_unknown(sql: str, scope: Scope) -> bool:
    """Whether an expression may use a name whose value is not known yet."""
    if words_of(sql) & scope.unknown():
        return True
    members = {name.lower(): value for name, value in scope.system.items()}
    return any(
        is_unknown(members.get(found.group(1).lower()) if found.group(1) else list(members.values()))
        for found in _SYSTEM_MEMBER.finditer(sql)
    )


def has_types(sql: str, scope: Scope) -> bool:
    """Whether all names that it may use have a type, so that it can be checked without values."""
    words = words_of(sql)
    return all(scope.has_sql_type(name) for name in scope.values if name.lower() in words)


def system_values(package: str) -> dict[str, str]:
    """What `${system.x}` stands for; nothing here differs from run to run."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"  # a user id without an account, as in containers
    return {"machine": platform.node() or "unknown", "package": package, "user": user}
