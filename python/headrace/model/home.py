"""What is no path: one that begins with `~`, which only a shell replaces (taken literally it would name a folder called
`~`), and a URL with a login, which would be shown as every path is.
"""

from __future__ import annotations

from headrace.model.settings import own_error
from headrace.model.url_logins import login_of

HOME_HINT = "Only a shell replaces `~`: write $HOME on the command line, ${env:HOME} in a package."

URL_HINT = "A URL belongs into a connection of type postgres, or to --connection NAME=URL."


def begins_with_home(path: str) -> bool:
    """Whether a path begins with `~` or `~user`; a name that really does can be written as `./~name`."""
    return path.startswith("~")


def is_url_with_login(path: str) -> bool:
    """Whether it is a URL with a user or a password."""
    return bool(login_of(path))


def check_path(path: str) -> str:
    """For models: the path, unless it is none."""
    if begins_with_home(path):
        raise own_error("a path cannot begin with `~`", expected="the path itself", hint=HOME_HINT)
    if is_url_with_login(path):
        raise own_error("a path cannot be a URL", expected="the path itself", hint=URL_HINT)
    return path
