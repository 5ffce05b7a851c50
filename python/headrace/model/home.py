"""Paths that begin with `~`. Only a shell replaces it; taken literally it would name a folder called `~`."""

from __future__ import annotations

HOME_HINT = "Only a shell replaces `~`: write $HOME on the command line, ${env:HOME} in a package."


def begins_with_home(path: str) -> bool:
    """Whether a path begins with `~` or `~user`; a name that really does can be written as `./~name`."""
    return path.startswith("~")
