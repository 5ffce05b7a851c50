"""Bound connections, and the URLs with which the command line exchanges them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headrace.errors import CommandLineError
from headrace.model.home import HOME_HINT, begins_with_home
from headrace.model.redaction import redact
from headrace.model.spec import (
    DEFAULT_LOCK_TIMEOUT_SECONDS,
    DuckdbConnectionSpec,
    FilesConnectionSpec,
    NullConnectionSpec,
)
from headrace.model.suggest import did_you_mean, one_of, show_value

SCHEMES = ("files", "duckdb", "null")


@dataclass(frozen=True, slots=True)
class FilesConnection:
    """A folder with flat files; the path is absolute."""

    name: str
    path: Path
    secrets: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    type: str = field(default="files", init=False)

    def describe(self) -> dict[str, object]:
        """What may be shown and stored."""
        return {"name": self.name, "type": self.type, "path": redact(str(self.path), self.secrets)}


@dataclass(frozen=True, slots=True)
class DuckdbConnection:
    """A DuckDB database file; the path is absolute."""

    name: str
    path: Path
    lock_timeout_seconds: int = DEFAULT_LOCK_TIMEOUT_SECONDS
    secrets: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    type: str = field(default="duckdb", init=False)

    def describe(self) -> dict[str, object]:
        """What may be shown and stored."""
        return {
            "name": self.name,
            "type": self.type,
            "path": redact(str(self.path), self.secrets),
            "lock_timeout_seconds": self.lock_timeout_seconds,
        }


@dataclass(frozen=True, slots=True)
class NullConnection:
    """Aggregates and discards rows."""

    name: str
    type: str = field(default="null", init=False)

    def describe(self) -> dict[str, object]:
        """What may be shown and stored."""
        return {"name": self.name, "type": self.type}


Connection = FilesConnection | DuckdbConnection | NullConnection
AnyConnectionSpec = FilesConnectionSpec | DuckdbConnectionSpec | NullConnectionSpec


def connection_from_spec(name: str, spec: AnyConnectionSpec, folder: Path, secrets: frozenset[str]) -> Connection:
    """The connection of a package; relative paths start at the folder of the package file."""
    if isinstance(spec, FilesConnectionSpec):
        return FilesConnection(name, _absolute(folder, spec.path), secrets)
    if isinstance(spec, DuckdbConnectionSpec):
        return DuckdbConnection(name, _absolute(folder, spec.path), spec.lock_timeout_seconds, secrets)
    return NullConnection(name)


def parse_overrides(options: Sequence[str], declared: Mapping[str, object], folder: Path) -> dict[str, Connection]:
    """Connections by name from `name=url` options; relative paths start at `folder`. Raises CommandLineError.

    `declared` holds the connections of the package as written there.
    """
    overrides: dict[str, Connection] = {}
    for option in options:
        name, equals, url = option.partition("=")
        if not equals or not name or not url:
            raise CommandLineError(
                "--connection needs a name and a URL",
                expected="--connection NAME=URL",
                hint="Write for example --connection warehouse=duckdb:warehouse.duckdb.",
            )
        if name not in declared:
            raise CommandLineError(
                f"the package has no connection `{name}`",
                at={"option": f"--connection {name}"},
                expected=one_of(declared),
                hint=did_you_mean(name, declared) or "See `connections` in the package.",
            )
        if name in overrides:
            raise CommandLineError(
                f"--connection {name} is given twice",
                at={"option": f"--connection {name}"},
                hint="Give each connection once.",
            )
        overrides[name] = _from_url(name, url, folder)
    return overrides


def _from_url(name: str, url: str, folder: Path) -> Connection:
    scheme, colon, rest = url.partition(":")
    # Only the scheme is shown: the rest of a URL may hold a password.
    if not colon:
        raise _url_error(name, show_value(url) if "@" not in url else "a text without a scheme")
    if scheme not in SCHEMES:
        raise _url_error(name, f"the scheme {show_value(scheme)}", did_you_mean(scheme, SCHEMES))
    path = rest[2:] if rest.startswith("//") else rest
    if scheme == "null":
        if path:
            raise _url_error(name, "text behind `null:`", "Write `null:`.")
        return NullConnection(name)
    if rest.startswith("//") and "@" in path.partition("/")[0]:
        raise _url_error(name, f"a user or a host behind `{scheme}://`", f"Write a path after `{scheme}:`.")
    if not path or "\0" in path:
        raise _url_error(name, show_value(url), f"Write a path after `{scheme}:`.")
    if begins_with_home(path):
        raise _url_error(name, "a path that begins with `~`", HOME_HINT)
    if scheme == "files":
        return FilesConnection(name, _absolute(folder, path))
    if path.startswith(":memory:"):
        raise _url_error(name, show_value(url), "Name a file; to try a package without storing rows use `null:`.")
    return DuckdbConnection(name, _absolute(folder, path))


def _url_error(name: str, found: str, hint: str | None = None) -> CommandLineError:
    return CommandLineError(
        f"the URL of connection `{name}` cannot be used",
        at={"option": f"--connection {name}"},
        found=found,
        expected="duckdb:PATH, files:FOLDER or null: (the connection types of this version)",
        hint=hint or "Write for example duckdb:warehouse.duckdb, or duckdb:///absolute/path.duckdb.",
    )


def _absolute(folder: Path, path: str) -> Path:
    return Path(os.path.abspath(folder / path))
