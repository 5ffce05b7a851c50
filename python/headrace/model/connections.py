"""Bound connections, and the URLs with which the command line exchanges them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headrace.errors import CommandLineError
from headrace.model.conninfo import ConnectionParameters, ConninfoError, Surroundings, parse_conninfo, resolve
from headrace.model.home import HOME_HINT, begins_with_home, is_url_with_login
from headrace.model.name_limits import MAXIMUM_NAME_BYTES, cut_name
from headrace.model.redaction import MINIMUM_SECRET_CHARACTERS, PUBLIC_VARIABLES, holds_secret, redact, secret_texts
from headrace.model.spec import (
    DEFAULT_LOCK_TIMEOUT_SECONDS,
    DEFAULT_STALL_TIMEOUT_SECONDS,
    DuckdbConnectionSpec,
    FilesConnectionSpec,
    LedgerSpec,
    NullConnectionSpec,
    PostgresConnectionSpec,
)
from headrace.model.suggest import did_you_mean, one_of, show_value
from headrace.model.table_names import RESERVED_SCHEMA
from headrace.model.written_folder import leads_out, written_folder

SCHEMES = ("files", "duckdb", "postgres", "null")
# As libpq, which knows both.
_POSTGRES_SCHEMES = ("postgres", "postgresql")


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


@dataclass(frozen=True, slots=True)
class PostgresConnection:
    """A database of a PostgreSQL server. `ledger_schema` is None without a ledger.

    `password_texts`: the password, and as it is written in the connection string; both must stay out of texts.
    """

    name: str
    parameters: ConnectionParameters
    lock_timeout_seconds: int = DEFAULT_LOCK_TIMEOUT_SECONDS
    stall_timeout_seconds: int = DEFAULT_STALL_TIMEOUT_SECONDS
    ledger_schema: str | None = RESERVED_SCHEMA
    secrets: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    password_texts: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    type: str = field(default="postgres", init=False)

    def describe(self) -> dict[str, object]:
        """What may be shown and stored."""
        shown = {
            "host": ",".join(host for host, _ in self.parameters.hosts),
            "port": ",".join(dict.fromkeys(str(port) for _, port in self.parameters.hosts)),
            "database": self.parameters.database,
            "user": self.parameters.user,
            "sslmode": self.parameters.sslmode,
        }
        return {
            "name": self.name,
            "type": self.type,
            **{key: redact(text, self.secrets) for key, text in shown.items()},
            "lock_timeout_seconds": self.lock_timeout_seconds,
            "stall_timeout_seconds": self.stall_timeout_seconds,
            "ledger": "off" if self.ledger_schema is None else self.ledger_schema,
        }

    def to_core(self, application_name: str) -> dict[str, Any]:
        """The `connection` of a sink, with the password. `application_name`: what the server shows of the session."""
        limit = float(self.stall_timeout_seconds)
        return {**self.parameters.to_core(application_name), "stall_timeout_seconds": limit}


Connection = FilesConnection | DuckdbConnection | PostgresConnection | NullConnection
AnyConnectionSpec = FilesConnectionSpec | DuckdbConnectionSpec | PostgresConnectionSpec | NullConnectionSpec
# Keys of the package that say what a connection string cannot; they also hold for a connection put in its place.
KEPT_KEYS: Mapping[type[Connection], tuple[str, ...]] = {
    DuckdbConnection: ("lock_timeout_seconds",),
    PostgresConnection: ("lock_timeout_seconds", "stall_timeout_seconds", "ledger"),
}


def texts_to_hide(connection: Connection, secrets: Collection[str]) -> Collection[str]:
    """What messages may show of a connection besides, and must not: its password; of a path that holds a secret where
    its links lead, and the folder of a database, if that is what is wrong with it.
    """
    if isinstance(connection, PostgresConnection):
        return connection.password_texts
    if isinstance(connection, NullConnection) or not holds_secret(str(connection.path), secrets):
        return ()
    shown = {os.path.realpath(connection.path)} - {str(connection.path)}
    folder = connection.path.parent
    if isinstance(connection, DuckdbConnection) and not os.access(folder, os.W_OK | os.X_OK):
        shown.add(str(folder))
    return shown


def connection_from_spec(
    name: str, spec: AnyConnectionSpec, surroundings: Surroundings, secrets: frozenset[str], written: object
) -> Connection:
    """The connection of a package, as it is `written` there; relative paths start at the folder of the package file.

    Raises ConninfoError for a connection string that cannot be used, and for a path that values have led out of the
    folder that is written in front of them.
    """
    raw = written.get("path") if isinstance(written, Mapping) else None
    folder = written_folder(raw)
    if folder and leads_out(raw, getattr(spec, "path", folder)):
        raise ConninfoError(
            "a value leads out of the folder that the package names",
            expected=f"a path below {folder}",
            hint="Correct the value, or write the folder in front of it.",
        )
    if isinstance(spec, FilesConnectionSpec):
        return FilesConnection(name, _absolute(surroundings.folder, spec.path), secrets)
    if isinstance(spec, DuckdbConnectionSpec):
        return DuckdbConnection(name, _absolute(surroundings.folder, spec.path), spec.lock_timeout_seconds, secrets)
    if isinstance(spec, PostgresConnectionSpec):
        return _postgres_from_spec(name, spec, surroundings, secrets)
    return NullConnection(name)


# Keys of the package whose names are not libpq's.
_KEYWORDS = {"database": "dbname", "connect_timeout_seconds": "connect_timeout"}
_KEYS = (
    "host", "port", "database", "user", "password", "sslmode", "sslrootcert", "sslcert", "sslkey",
    "connect_timeout_seconds", "service", "options",
)  # fmt: skip


def _postgres_from_spec(
    name: str, spec: PostgresConnectionSpec, surroundings: Surroundings, secrets: frozenset[str]
) -> PostgresConnection:
    given = parse_conninfo(spec.url or "")
    values = dict(given.values)
    for key in _KEYS:
        value = getattr(spec, key)
        keyword = _KEYWORDS.get(key, key)
        if value is None:
            continue
        if keyword in values:
            raise ConninfoError(f"`url` and `{key}` both say the {key}", hint=f"Leave `{key}` out of one of them.")
        values[keyword] = str(value)
    written = given.password_text or spec.password
    if written and len(written) >= MINIMUM_SECRET_CHARACTERS and not any(written in secret for secret in secrets):
        raise ConninfoError(
            "the package holds a password",
            expected="a password from the environment or from a file",
            hint="Write ${env:NAME} or ${file:PATH} in its place, or leave it to ~/.pgpass or PGPASSWORD.",
        )
    connection = _postgres(name, values, written, surroundings)
    return replace(
        connection,
        lock_timeout_seconds=spec.lock_timeout_seconds,
        stall_timeout_seconds=spec.stall_timeout_seconds,
        ledger_schema=ledger_schema(spec.ledger),
        secrets=secrets | connection.password_texts,
    )


def ledger_schema(ledger: LedgerSpec | str) -> str | None:
    """The schema of a `ledger` setting, None for `off`."""
    return ledger.schema_ if isinstance(ledger, LedgerSpec) else None


def _check_length(thing: str, name: str) -> None:
    """Raises ConninfoError if the server would cut the name of `thing`, which may be a secret."""
    cut = cut_name(name, MAXIMUM_NAME_BYTES["postgres"])
    if cut is not None:
        raise ConninfoError(
            f"the name of the {thing} is too long, and the server would cut it",
            found=f"{len(name.encode())} bytes",
            expected=cut.expected,
            hint=f"Correct the {thing} of the connection.",
        )


def _postgres(
    name: str, values: Mapping[str, str], written_password: str | None, surroundings: Surroundings
) -> PostgresConnection:
    parameters = resolve(values, surroundings)
    _check_length("database", parameters.database)
    _check_length("user", parameters.user)
    texts = {text.strip() for text in (parameters.password, written_password) if text}
    secrets = frozenset(text for text in texts if len(text) >= MINIMUM_SECRET_CHARACTERS)
    return PostgresConnection(name, parameters, secrets=secrets, password_texts=secrets)


def parse_overrides(
    options: Sequence[str], declared: Mapping[str, object], surroundings: Surroundings, secrets: set[str]
) -> dict[str, Connection]:
    """Connections by name from `name=url` options; relative paths start at the folder of the surroundings.

    `declared` holds the connections of the package as written there. What comes from the environment is added to
    `secrets`. Raises CommandLineError.
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
        overrides[name] = _from_option(name, url, surroundings, secrets)
    return overrides


def connection_of_argument(url: str, argument: str, surroundings: Surroundings, secrets: set[str]) -> Connection:
    """The connection of a URL that stands alone on the command line, as `argument`. What must not be shown is added to
    `secrets`. Raises CommandLineError.
    """
    try:
        return _from_option(argument, url, surroundings, secrets)
    except CommandLineError as error:
        error.at = {"argument": argument}
        raise


def _from_option(name: str, url: str, surroundings: Surroundings, secrets: set[str]) -> Connection:
    try:
        connection = connection_from_url(name, _with_variables(name, url, surroundings.environ, secrets), surroundings)
    except CommandLineError as error:
        error.found = error.found and redact(error.found, secrets)
        raise
    secrets.update(texts_to_hide(connection, secrets))
    return connection


_VARIABLE = re.compile(r"\$\{env:(?P<variable>[^}]*)\}")


def _with_variables(name: str, url: str, environ: Mapping[str, str], secrets: set[str]) -> str:
    """The URL with the values of `${env:NAME}`: what stands on a command line is seen by every user of the machine."""

    def value(reference: re.Match[str]) -> str:
        variable = reference["variable"]
        if variable not in environ:
            raise CommandLineError(
                f"the environment variable {variable} is not set",
                at={"option": f"--connection {name}"},
                found=reference[0],
                hint=f"Set it before the command: {variable}=... headrace ...",
            )
        if variable not in PUBLIC_VARIABLES:
            secrets.update(secret_texts(environ[variable]))
        return environ[variable]

    return _VARIABLE.sub(value, url)


def connection_from_url(name: str, url: str, surroundings: Surroundings) -> Connection:
    """The connection of a URL as behind `--connection`. Raises CommandLineError."""
    folder = surroundings.folder
    scheme, colon, rest = url.partition(":")
    # Only the scheme is shown: the rest of a URL may hold a password.
    if not colon:
        raise _url_error(name, show_value(url) if "@" not in url else "a text without a scheme")
    if scheme in _POSTGRES_SCHEMES:
        return _postgres_from_url(name, url if rest.startswith("//") else rest, surroundings)
    if scheme not in SCHEMES:
        raise _url_error(name, f"the scheme {show_value(scheme)}", did_you_mean(scheme, SCHEMES))
    path = rest[2:] if rest.startswith("//") else rest
    if scheme == "null":
        if path:
            raise _url_error(name, "text behind `null:`", "Write `null:`.")
        return NullConnection(name)
    # With three slashes there is no user or host: an `@` is one of the path.
    if rest.startswith("//") and not path.startswith("/") and "@" in path:
        raise _url_error(name, f"a user or a host behind `{scheme}://`", f"Write a path after `{scheme}:`.")
    if not path or "\0" in path:
        raise _url_error(name, show_value(url), f"Write a path after `{scheme}:`.")
    if begins_with_home(path):
        raise _url_error(name, "a path that begins with `~`", HOME_HINT)
    if is_url_with_login(path):
        raise _url_error(
            name, f"a URL with a user or a password behind `{scheme}:`", f"Write a path after `{scheme}:`."
        )
    if scheme == "files":
        return FilesConnection(name, _absolute(folder, path))
    if path.startswith(":memory:"):
        raise _url_error(name, show_value(url), "Name a file; to try a package without storing rows use `null:`.")
    return DuckdbConnection(name, _absolute(folder, path))


def _postgres_from_url(name: str, text: str, surroundings: Surroundings) -> Connection:
    try:
        given = parse_conninfo(text)
        return _postgres(name, given.values, given.password_text, surroundings)
    except ConninfoError as error:
        raise CommandLineError(
            error.what,
            at={"option": f"--connection {name}"},
            found=error.found,
            expected=error.expected,
            hint=error.hint,
        ) from None


def _url_error(name: str, found: str, hint: str | None = None) -> CommandLineError:
    return CommandLineError(
        f"the URL of connection `{name}` cannot be used",
        at={"option": f"--connection {name}"},
        found=found,
        expected="duckdb:PATH, files:FOLDER, postgresql://..., postgres:host=... or null:",
        hint=hint or "Write for example duckdb:warehouse.duckdb, or duckdb:///absolute/path.duckdb.",
    )


def _absolute(folder: Path, path: str) -> Path:
    return Path(os.path.abspath(folder / path))
