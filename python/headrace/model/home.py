"""Paths that begin with `~`. Only a shell replaces it; taken literally it would name a folder called `~`."""

from __future__ import annotations

from headrace.model.settings import own_error

HOME_HINT = "Only a shell replaces `~`: write $HOME on the command line, ${env:HOME} in a package."


def begins_with_home(path: str) -> bool:
    """Whether a path begins with `~` or `~user`; a name that really does can be written as `./~name`."""
    return path.startswith("~")


def check_home(path: str) -> str:
    """For models: the path, unless it begins with `~`."""
    if begins_with_home(path):
        raise own_error("a path cannot begin with `~`", expected="the path itself", hint=HOME_HINT)
    return path
