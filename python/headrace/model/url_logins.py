"""The logins of URLs inside texts, which are never shown. Below all that makes messages."""

from __future__ import annotations

import re
from typing import Final

REPLACEMENT: Final = "***"
# What was taken for a path has one slash left.
_BEFORE_LOGIN: Final = re.compile(r"(?<=[A-Za-z0-9+.-]):/{1,2}")
_BEGINS_WITH_URL: Final = re.compile(r"""[\s"'`(\[]*[A-Za-z][A-Za-z0-9+.-]*:/""")
_PASSWORD: Final = "password="


def hide_logins(text: str) -> str:
    """The text with all that is between `://` and the last `@` of each URL replaced; of a URL with `password=`, all.

    Which of several `@` ends the password, or whether a `/` is a part of it, cannot be known: nothing before the last
    one is shown.
    """
    for url in _urls(text):
        text = text.replace(url, _without_login(url))
    return text


def login_of(url: str) -> str:
    """What stands between `://` and the last `@` of a URL; empty if there is nothing."""
    before = _BEFORE_LOGIN.search(url)
    return url[before.end() :].rpartition("@")[0] if before else ""


def holds_password(text: str) -> bool:
    """Whether there is a URL with a password in a text; what looks like one counts."""
    return any(":" in login_of(url) or _PASSWORD in url for url in _urls(text))


def logins(text: str) -> list[str]:
    """The logins of the URLs of a text."""
    return [login for login in map(login_of, _urls(text)) if login]


def _urls(text: str) -> list[str]:
    """The URLs of a text with something to hide. One ends at a blank; on a line that begins with one it is all of the
    line: a password may hold blanks that nobody has escaped.
    """
    if ":/" not in text or ("@" not in text and _PASSWORD not in text):
        return []
    lines = text.splitlines()
    urls = (url for line in lines for url in ([line] if _BEGINS_WITH_URL.match(line) else line.split()))
    return [url for url in urls if _without_login(url) != url]


def _without_login(url: str) -> str:
    before = _BEFORE_LOGIN.search(url)
    if before is None:
        return url
    scheme, rest = url[: before.end()], url[before.end() :]
    if _PASSWORD in rest:
        return f"{scheme}{REPLACEMENT}"
    _, at, shown = rest.rpartition("@")
    return f"{scheme}{REPLACEMENT}@{shown}" if at else url
