"""From a connection string and what surrounds it to what a connection needs."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from headrace.model.conninfo.files import password_from_file, service_values
from headrace.model.conninfo.keywords import VARIABLES, ConninfoError, check_environment
from headrace.model.conninfo.surroundings import Surroundings
from headrace.model.suggest import did_you_mean, one_of, quote

DEFAULT_PORT: Final = 5432
# libpq is compiled with one of these; Debian and Red Hat have the first.
SOCKET_FOLDERS: Final = ("/var/run/postgresql", "/tmp")
# Without any host: the socket of this machine, else its network.
DEFAULT_HOSTS: Final = (SOCKET_FOLDERS[0], "localhost")
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
SSL_MODES: Final[tuple[str, ...]] = get_args(SslMode)
_SYSTEM_CERTIFICATES: Final = "system"
DEFAULT_CONNECT_TIMEOUT_SECONDS: Final = 30
# A server that is gone is noticed after two minutes instead of the two hours of most systems.
_DEFAULT_KEEPALIVE: Final = (60, 10, 6)
_LARGEST_NUMBER: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConnectionParameters:
    """All that a connection needs, defaults filled in.

    `hosts` are tried in order: names, addresses, or the folders of Unix sockets, which start with `/`, each with its
    port. Paths are absolute; `root_certificates` may also be `system`. `keepalive`: seconds of silence before the first
    probe, seconds between probes, unanswered probes; None switches it off. `connect_timeout_seconds` is 0 without a
    limit. `warnings`: what was ignored on the way.
    """

    hosts: tuple[tuple[str, int], ...]
    database: str
    user: str
    password: str | None = field(default=None, repr=False)
    options: str | None = None
    sslmode: str = "prefer"
    root_certificates: str | None = None
    certificate: str | None = None
    key: str | None = None
    connect_timeout_seconds: int = DEFAULT_CONNECT_TIMEOUT_SECONDS
    keepalive: tuple[int, int, int] | None = _DEFAULT_KEEPALIVE
    user_timeout_milliseconds: int | None = None
    warnings: tuple[str, ...] = ()

    def to_core(self, application_name: str) -> dict[str, Any]:
        """The `connection` member of a flow spec. It holds the password: for the core alone."""
        names = ("idle_seconds", "interval_seconds", "count")
        return {
            "hosts": [{"host": host, "port": port} for host, port in self.hosts],
            "database": self.database,
            "user": self.user,
            "password": self.password,
            "application_name": application_name,
            "options": self.options,
            "tls": {
                "mode": self.sslmode,
                "root_certificates": self.root_certificates,
                "certificate": self.certificate,
                "key": self.key,
            },
            "connect_timeout_seconds": float(self.connect_timeout_seconds),
            "keepalive": None if self.keepalive is None else dict(zip(names, self.keepalive, strict=True)),
            "user_timeout_milliseconds": self.user_timeout_milliseconds,
        }


def resolve(given: Mapping[str, str], surroundings: Surroundings) -> ConnectionParameters:
    """The parameters of a connection: `given` by keyword, else from the service, else PG* variables, else defaults.

    Raises ConninfoError.
    """
    environ = dict(surroundings.environ)
    check_environment(environ)
    values = _filled(given, environ, surroundings)
    user = values.get("user") or surroundings.user
    if not user:
        raise ConninfoError("the connection names no user", hint="Give `user`, or set PGUSER.")
    database = values.get("dbname") or user
    hosts = _hosts(values.get("host", ""), values.get("port", ""))
    warnings = [
        f"`{keyword}` of the connection is not used: sessions are named after run, task and writer"
        for keyword in ("application_name", "fallback_application_name")
        if given.get(keyword)
    ]
    password = values.get("password") or _password(values, hosts, database, user, surroundings, warnings)
    keepalive = _number(values, "keepalives", 1) != 0
    return ConnectionParameters(
        hosts=hosts,
        database=database,
        user=user,
        password=password,
        options=values.get("options") or None,
        **_tls(values, surroundings),
        connect_timeout_seconds=_connect_timeout(values),
        keepalive=_keepalive(values) if keepalive else None,
        user_timeout_milliseconds=_number(values, "tcp_user_timeout", 0) or None,
        warnings=tuple(warnings),
    )


def _filled(given: Mapping[str, str], environ: Mapping[str, str], surroundings: Surroundings) -> dict[str, str]:
    variables = {
        keyword: environ[name] for keyword, name in VARIABLES.items() if name is not None and environ.get(name)
    }
    service = given.get("service") or variables.get("service")
    if not service:
        return {**variables, **given}
    file = given.get("servicefile") or variables.get("servicefile")
    return {**variables, **service_values(service, file, surroundings), **given}


def _hosts(host: str, port: str) -> tuple[tuple[str, int], ...]:
    hosts = [entry or SOCKET_FOLDERS[0] for entry in host.split(",")] if host else list(DEFAULT_HOSTS)
    ports = [_port(entry) for entry in port.split(",")]
    if len(ports) == 1:
        ports *= len(hosts)
    if len(ports) != len(hosts):
        raise ConninfoError(
            "the connection has another number of ports than of hosts",
            found=f"{len(ports)} ports, {len(host.split(','))} hosts",
            expected="one port, or one for each host",
        )
    return tuple(zip(hosts, ports, strict=True))


def _port(text: str) -> int:
    number = _whole(text.strip()) if text.strip() else DEFAULT_PORT
    if number is None or not 1 <= number <= 65_535:
        raise ConninfoError("the connection has a port that cannot be", expected="whole numbers from 1 to 65535")
    return number


def _whole(text: str) -> int | None:
    """A whole number that fits 32 bits; None for any other text."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return None
    number = int(text)
    return number if abs(number) <= _LARGEST_NUMBER else None


def _number(values: Mapping[str, str], keyword: str, default: int) -> int:
    text = values.get(keyword, "").strip()
    number = _whole(text) if text else default
    if number is None or number < 0:
        raise ConninfoError(
            f"`{keyword}` of the connection is not a number", found=quote(text), expected="a whole number, at least 0"
        )
    return number


def _connect_timeout(values: Mapping[str, str]) -> int:
    text = values.get("connect_timeout", "").strip()
    seconds = _whole(text) if text else DEFAULT_CONNECT_TIMEOUT_SECONDS
    if seconds is None:
        raise ConninfoError(
            "`connect_timeout` of the connection is not a number", found=quote(text), expected="a number of seconds"
        )
    return max(0, seconds)


def _keepalive(values: Mapping[str, str]) -> tuple[int, int, int]:
    keywords = ("keepalives_idle", "keepalives_interval", "keepalives_count")
    defaults = zip(keywords, _DEFAULT_KEEPALIVE, strict=True)
    idle, interval, count = (_number(values, keyword, default) or default for keyword, default in defaults)
    return idle, interval, count


def _password(
    values: Mapping[str, str],
    hosts: tuple[tuple[str, int], ...],
    database: str,
    user: str,
    surroundings: Surroundings,
    warnings: list[str],
) -> str | None:
    """The password that the user's password file has for the hosts."""
    file = values.get("passfile")
    path = surroundings.file(file) if file else surroundings.home / ".pgpass"
    found: dict[str, None] = {}
    for host, port in hosts:
        name = "localhost" if host in SOCKET_FOLDERS else host
        password = password_from_file(path, (name, str(port), database, user), warnings)
        if password is not None:
            found[password] = None
    warnings[:] = dict.fromkeys(warnings)  # the same for every host, once
    if len(found) > 1:
        raise ConninfoError(
            f"password file {path} has different passwords for the hosts of one connection",
            expected="one password for all of them",
        )
    return next(iter(found), None)


def _tls(values: Mapping[str, str], surroundings: Surroundings) -> dict[str, Any]:
    """As libpq: files of the user's home where none are named. With root certificates every mode verifies the server's,
    `verify-ca` and `verify-full` do not go without.
    """
    root = values.get("sslrootcert") or None
    mode = values.get("sslmode") or ("verify-full" if root == _SYSTEM_CERTIFICATES else "prefer")
    if mode not in SSL_MODES:
        raise ConninfoError(
            "`sslmode` of the connection is not a mode",
            found=quote(mode),
            expected=one_of(SSL_MODES),
            hint=did_you_mean(mode, SSL_MODES),
        )
    if root == _SYSTEM_CERTIFICATES and mode != "verify-full":
        raise ConninfoError(
            "the certificates of the system are too many to trust without the server's name",
            found=f"sslrootcert=system with sslmode={mode}",
            expected="sslmode=verify-full",
        )
    folder = surroundings.home / ".postgresql"
    if root is None:
        default = folder / "root.crt"
        root = str(default) if default.is_file() or mode.startswith("verify") else None
    elif root != _SYSTEM_CERTIFICATES:
        root = str(surroundings.file(root))
    certificate, key = _own_certificate(values, folder, surroundings)
    return {
        "sslmode": mode,
        "root_certificates": root,
        "certificate": certificate,
        "key": key,
    }


def _own_certificate(
    values: Mapping[str, str], folder: Path, surroundings: Surroundings
) -> tuple[str | None, str | None]:
    given = values.get("sslcert")
    certificate = surroundings.file(given) if given else folder / "postgresql.crt"
    if not given and not certificate.is_file():
        return None, None
    named = values.get("sslkey")
    key = surroundings.file(named) if named else folder / "postgresql.key"
    _check_key(key)
    return str(certificate), str(key)


def _check_key(path: Path) -> None:
    """A key that others may read is refused, as libpq does: 0600, or 0640 if it belongs to root."""
    try:
        status = path.stat()
    except OSError as error:
        raise ConninfoError(
            "the key of the client certificate cannot be read",
            found=f"{path}: {error.strerror or type(error).__name__}",
        ) from error
    allowed = 0o640 if status.st_uid == 0 else 0o600
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077 & ~allowed:
        raise ConninfoError(
            "others have access to the key of the client certificate",
            found=f"{path} with mode {mode:04o}",
            expected=f"mode {allowed:04o} or less",
            hint=f"Run: chmod {allowed:04o} {path}",
        )
