"""The account that servers run under: PostgreSQL refuses to be root."""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Account:
    """Who runs a server: ourselves (both None), or an unprivileged user if we are root."""

    user: int | None = None
    group: int | None = None

    @classmethod
    def for_servers(cls) -> Account:
        """`nobody` for root; otherwise the user that runs the tests."""
        if os.geteuid() != 0:
            return cls()
        entry = pwd.getpwnam(_UNPRIVILEGED)
        return cls(entry.pw_uid, entry.pw_gid)

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `subprocess` that start a process under this account."""
        if self.user is None:
            return {}
        return {"user": self.user, "group": self.group, "extra_groups": []}

    def give(self, path: Path, mode: int) -> Path:
        """Makes the account the owner of a file or folder."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group)
        path.chmod(mode)
        return path

    def folder(self, path: Path) -> Path:
        """A new folder for this account alone (root sees everything)."""
        path.mkdir()
        return self.give(path, 0o700)


def make_readable(source: Path, copy: Path) -> None:
    """Copies a folder so that every account can read it and run its programs."""
    shutil.copytree(source, copy, symlinks=True)
    for path in [copy, *copy.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444))
