"""Keep secrets out of texts: literal values that came from `${env:X}` or `${file:X}`, or that a declaration says are
secret; and the logins of URLs.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Collection, Iterable, Iterator
from typing import ClassVar, Final

from headrace.model.suggest import CUT_MARK
from headrace.model.url_logins import REPLACEMENT, hide_logins, holds_password

# Shorter values cannot be kept secret, and replacing them would garble every text that holds a digit.
MINIMUM_SECRET_CHARACTERS = 4
# Environment variables that everybody knows: were they secrets, paths and user names would be hidden in all texts.
PUBLIC_VARIABLES: Final = frozenset({"HOME", "USER", "PWD", "TMPDIR"})


class Secrets(set[str]):
    """What must be kept out of texts. Whoever reports an error without a package at hand hides the secrets of all that
    there are (`alive`).
    """

    _all: ClassVar[weakref.WeakValueDictionary[int, Secrets]] = weakref.WeakValueDictionary()

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(secrets)
        self._all[id(self)] = self

    @classmethod
    def alive(cls) -> set[str]:
        """All secrets that something still holds."""
        return {secret for secrets in list(cls._all.values()) for secret in tuple(secrets)}

    @classmethod
    def forget(cls) -> None:
        """Leaves those that there are out of `alive`: they are of an earlier command in this process."""
        cls._all.clear()


def secret_texts(value: str) -> set[str]:
    """What must be kept out of texts, so that a value from outside is: all of it, each of its lines, and each as a path
    is shown, without `//` and `..`.
    """
    texts = {text.strip() for text in (value, *value.splitlines())}
    paths = {os.path.normpath(text) for text in texts if "/" in text}
    # What is left of `data/` is a word that may be anywhere.
    texts |= {path for path in paths if "/" in path}
    return {text for text in texts if len(text) >= MINIMUM_SECRET_CHARACTERS}


def redact(text: str, secrets: Collection[str]) -> str:
    """The text with every secret replaced, also where it is escaped in a quoted text or was cut by `shorten`; and
    without the logins of URLs.
    """
    return hide_logins(_without_secrets(text, secrets))


def holds_secret(text: str, secrets: Collection[str]) -> bool:
    """Whether a text must not be stored: there is a secret in it, or the password of a URL."""
    return _without_secrets(text, secrets) != text or holds_password(text)


def _without_secrets(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        for form in _written_forms(secret):
            text = text.replace(form, REPLACEMENT)
            if CUT_MARK in text:
                text = CUT_MARK.join(_without_cut_end(piece, form) for piece in text.split(CUT_MARK))
    return text


def _written_forms(secret: str) -> Iterator[str]:
    """A text as it is, and as it is written inside a JSON text, a literal of Python, and one of SQL; of a URL also
    without its login, as `shorten` shows it; each once.
    """
    forms: dict[str, None] = {}
    for text in dict.fromkeys((secret, hide_logins(secret))):
        quoted = json.dumps(text, ensure_ascii=False)[1:-1]
        forms.update(dict.fromkeys((text, quoted, repr(text)[1:-1], text.replace("'", "''"))))
    yield from forms


def _without_cut_end(piece: str, secret: str) -> str:
    """The piece without the beginning of a secret at its end."""
    for length in range(min(len(piece), len(secret)), MINIMUM_SECRET_CHARACTERS - 1, -1):
        if piece.endswith(secret[:length]):
            return piece[:-length] + REPLACEMENT
    return piece


def redact_data(data: object, secrets: Collection[str]) -> object:
    """JSON-ready data with every secret replaced in all texts, keys of mappings included."""
    if isinstance(data, str):
        return redact(data, secrets)
    if isinstance(data, dict):
        return {redact(str(key), secrets): redact_data(value, secrets) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [redact_data(value, secrets) for value in data]
    return data
