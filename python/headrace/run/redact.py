"""Keeps secrets out of everything a run writes or says: events, summary, ledger, errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.errors import HeadraceError
from headrace.model import holds_secret, redact

# Made by Headrace itself; a secret that happens to be part of them must not break them.
_OWN_MEMBERS = frozenset({"event", "at", "run_id", "status", "run_folder", "kind"})
# Their members are named by the user; all other names are words of Headrace, which readers of the data look up.
_USER_NAMED = frozenset({"given", "parameters", "connections", "columns"})

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

AnyError = TypeVar("AnyError", bound=HeadraceError)
AnyDataclass = TypeVar("AnyDataclass", bound="DataclassInstance")


class Redactor:
    """Replaces secrets in texts and in JSON-ready data; and `names`: what users call otherwise, and how."""

    def __init__(self, secrets: Collection[str], names: Mapping[str, str] | None = None) -> None:
        # Not a copy: secrets that are found while the run goes on are hidden from then on.
        self._secrets = secrets
        self._names = dict(names or {})

    def text(self, text: str) -> str:
        """The text without secrets and without logins in URLs."""
        for name, shown in self._names.items():
            text = text.replace(name, shown)
        return redact(text, self._secrets)

    def hides(self, text: str) -> bool:
        """Whether a text must not be stored, because there is a secret in it."""
        return holds_secret(text, self._secrets)

    def data(self, data: Any) -> Any:
        """JSON-ready data with every text redacted, except what Headrace itself makes: some members, most names."""
        return self._data(data, user_named=False)

    def dataclass(self, item: AnyDataclass) -> AnyDataclass:
        """A copy of a dataclass with every text in it redacted, at any depth."""
        members = {member.name: self._any(getattr(item, member.name)) for member in fields(item) if member.init}
        return replace(item, **members)

    def error(self, error: AnyError) -> AnyError:
        """The same error, its texts redacted in place, so that a traceback shows none either."""
        error.what = self.text(error.what)
        error.args = (error.what,)
        error.at = self.data(error.at) if error.at else None
        error.found = None if error.found is None else self.text(error.found)
        error.expected = None if error.expected is None else self.text(error.expected)
        error.hint = None if error.hint is None else self.text(error.hint)
        error.server = None if error.server is None else self.data(error.server)
        return error

    def _data(self, data: Any, *, user_named: bool) -> Any:
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {
                self.text(name) if user_named else name: value
                if not user_named and name in _OWN_MEMBERS and isinstance(value, str)
                else self._data(value, user_named=name in _USER_NAMED)
                for name, value in ((str(name), value) for name, value in data.items())
            }
        if isinstance(data, list | tuple):
            return [self._data(item, user_named=False) for item in data]
        return data

    def _any(self, value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return self.dataclass(value)
        if isinstance(value, tuple):
            return tuple(self._any(item) for item in value)
        return self.data(value)
