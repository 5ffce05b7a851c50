"""`headrace infer --against`: the table that files are compared with."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

from headrace.cli.console import say
from headrace.errors import CommandLineError, HeadraceError, TargetError
from headrace.infer import Difference, Inferred, compare
from headrace.infer.wording import bare, bare_path
from headrace.model import Connection
from headrace.model.connections import parse_overrides
from headrace.model.conninfo import Surroundings
from headrace.model.redaction import Secrets
from headrace.planning import CatalogTable
from headrace.run.redact import Redactor
from headrace.run.waiting import on_worker
from headrace.targets import OpenOptions, capabilities_of, open_target

_ENGINE_BYTES: Final = 256_000_000
_NAME: Final = "destination"


def differences_to(inferred: Inferred, to: str, table: str, cancel: threading.Event) -> list[Difference]:
    """What differs from the table of that URL. Raises CommandLineError or TargetError."""
    secrets = Secrets()
    connection = _connection(to, secrets)
    schema, _, name = table.rpartition(".")
    try:
        found = on_worker(lambda: _catalog(connection, schema or None, name, cancel))
    except HeadraceError as error:
        raise Redactor(secrets).error(error) from error
    if found is None:
        raise TargetError(
            f"there is no table {bare_path(table)} to compare with",
            hint="Correct --against, or leave it out: a table can be made by a load with `target: create`.",
        )
    return compare(inferred, found, case_insensitive=capabilities_of(connection).case_insensitive_names)


def _connection(to: str, secrets: set[str]) -> Connection:
    surroundings = Surroundings.of_process(os.environ, Path.cwd())
    try:
        return parse_overrides([f"{_NAME}={to}"], {_NAME: None}, surroundings, secrets)[_NAME]
    except HeadraceError as error:
        raise CommandLineError(
            error.what, at={"option": "--to"}, found=error.found, expected=error.expected, hint=error.hint
        ) from None


def _catalog(connection: Connection, schema: str | None, name: str, cancel: threading.Event) -> CatalogTable | None:
    options = OpenOptions(
        engine_bytes=_ENGINE_BYTES,
        threads=1,
        spill_folder=None,
        read_only=True,
        notice=say,
        is_cancelled=cancel.is_set,
    )
    with open_target(connection, options) as target:
        return target.catalog(schema, name)


def render_differences(differences: list[Difference], table: str) -> str:
    """The differences as comments below a layout."""
    head = f"# against {bare_path(table)}: "
    if not differences:
        return f"{head}no difference"
    return "\n".join([head.rstrip(), *(f"#   {bare(one.column)}: {bare_path(one.text)}" for one in differences)])
