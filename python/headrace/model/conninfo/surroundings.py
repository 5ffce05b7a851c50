"""What the machine adds to a connection string: variables, the user's home, files in it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`user` is the name of the operating system's user; `folder` is where relative paths of a string start."""

    environ: Mapping[str, str]
    home: Path
    user: str
    folder: Path

    @classmethod
    def of_process(cls, environ: Mapping[str, str], folder: Path) -> Surroundings:
        """Those of this process, with the variables given."""
        return cls(environ, Path(environ.get("HOME") or "~").expanduser(), _user(), folder)

    def file(self, path: str) -> Path:
        """A path of a connection string."""
        return Path(os.path.abspath(self.folder / path))


def _user() -> str:
    try:
        import pwd

        return pwd.getpwuid(os.geteuid()).pw_name
    except (ImportError, KeyError):  # no such module outside POSIX; a user id without an account, as in containers
        try:
            return getpass.getuser()
        except (OSError, KeyError):
            return ""
