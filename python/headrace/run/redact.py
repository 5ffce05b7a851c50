"""Keeps secrets out of everything a run writes or says: events, summary, ledger, errors."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, TypeVar

from headrace.errors import HeadraceError
from headrace.model import redact, redact_data

# `scheme://user:password@host`: the password, whether or not it came from a secret reference.
_URL_PASSWORD = re.compile(r"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:)(?P<password>[^\s@/]+)(?=@)")
_HIDDEN = "***"
# Made by Headrace itself; a secret that happens to be part of them must not break them.
_OWN_MEMBERS = frozenset({"event", "at", "run_id", "status", "run_folder"})

AnyError = TypeVar("AnyError", bound=HeadraceError)


class Redactor:
    """Replaces secrets in texts and in JSON-ready data."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = frozenset(secrets)

    def text(self, text: str) -> str:
        """The text without secrets and without passwords in URLs."""
        return _URL_PASSWORD.sub(rf"\g<before>{_HIDDEN}", redact(text, self._secrets))

    def data(self, data: Any) -> Any:
        """JSON-ready data with every text redacted, except members that Headrace itself makes."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {
                self.text(str(name)): value if name in _OWN_MEMBERS and isinstance(value, str) else self.data(value)
                for name, value in data.items()
            }
        if isinstance(data, list | tuple):
            return [self.data(item) for item in data]
        return redact_data(data, self._secrets)

    def error(self, error: AnyError) -> AnyError:
        """The same error, its texts redacted in place, so that a traceback shows none either."""
        error.what = self.text(error.what)
        error.args = (error.what,)
        error.at = self.data(error.at) if error.at else None
        error.found = None if error.found is None else self.text(error.found)
        error.expected = None if error.expected is None else self.text(error.expected)
        error.hint = None if error.hint is None else self.text(error.hint)
        return error
