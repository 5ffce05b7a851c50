"""The files of libpq that hold passwords and services."""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace.model.conninfo.keywords import ConninfoError, check_keyword
from headrace.model.conninfo.surroundings import Surroundings
from headrace.model.suggest import quote

DEFAULT_SYSTEM_FOLDER: Final = "/etc/postgresql-common"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# host:port:database:user:password
_ENTRY: Final = re.compile(r"((?:[^:\\]|\\.)*):" * 4 + "(.*)", re.DOTALL)


def password_from_file(path: Path, fields: Sequence[str], warnings: list[str]) -> str | None:
    """The password of the first line whose four fields fit `fields`: host, port, database, user.

    A file that others may read is ignored with a warning, as libpq does.
    """
    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        warnings.append(f"password file {path} is ignored: it is not a plain file")
        return None
    if status.st_mode & _OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        warnings.append(f"password file {path} is ignored: others have access (mode {mode:04o}, must be 0600)")
        return None
    try:
        content = path.read_bytes().decode("utf-8")
    except OSError as error:
        warnings.append(f"password file {path} is ignored: {error.strerror or type(error).__name__}")
        return None
    except UnicodeDecodeError:
        warnings.append(f"password file {path} is ignored: it is not UTF-8 text")
        return None
    for line in content.split("\n"):
        entry = _ENTRY.fullmatch(line.rstrip("\r"))
        if entry is not None and not line.startswith("#"):
            *written, password = entry.groups()
            if all(text == "*" or _plain(text) == wanted for text, wanted in zip(written, fields, strict=True)):
                return _plain(password)
    return None


def _plain(written: str) -> str:
    r"""`\:` and `\\` stand for the characters themselves; so does `\*`, which is not the wildcard then."""
    return re.sub(r"\\(.)", r"\1", written, flags=re.DOTALL)


def service_values(service: str, given_file: str | None, surroundings: Surroundings) -> dict[str, str]:
    """The keywords of a service; from the given file, else from the user's, else from the system's.

    Raises ConninfoError if there is no such service or the file is wrong.
    """
    system = surroundings.environ.get("PGSYSCONFDIR") or DEFAULT_SYSTEM_FOLDER
    own = surroundings.file(given_file) if given_file else surroundings.home / ".pg_service.conf"
    if given_file and not own.is_file():
        raise ConninfoError("the service file does not exist", found=str(own))
    for path in (own, Path(system) / "pg_service.conf"):
        if path.is_file():
            values = _section(path, service)
            if values is not None:
                return values
    raise ConninfoError(
        f"there is no service {quote(service)}",
        expected=f"a section [{service}] in {own} or in {Path(system) / 'pg_service.conf'}",
    )


def _section(path: Path, service: str) -> dict[str, str] | None:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ConninfoError(f"the service file {path} cannot be read", found=type(error).__name__) from error
    values: dict[str, str] | None = None
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if text.startswith("["):
            if values is not None:
                break  # the next section
            if text == f"[{service}]":
                values = {}
        elif values is not None:
            keyword, equals, value = text.partition("=")
            if not equals or keyword == "service":
                raise ConninfoError(
                    f"the service file {path} is wrong in line {number}",
                    expected="keyword=value" if not equals else "a service that names no other service",
                )
            if check_keyword(keyword, value, is_after_password=False):
                values.setdefault(keyword, value)
    return values
