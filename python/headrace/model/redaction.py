"""Keep secrets out of texts. A secret is a literal value that came from `${env:X}` or `${file:X}`."""

from __future__ import annotations

import json
from collections.abc import Collection

from headrace.model.suggest import CUT_MARK

REPLACEMENT = "***"
# Shorter values cannot be kept secret, and replacing them would garble every text that holds a digit.
MINIMUM_SECRET_CHARACTERS = 4


def redact(text: str, secrets: Collection[str]) -> str:
    """The text with every secret replaced, also where it stands escaped in a quoted text or was cut by `shorten`."""
    for secret in sorted(secrets, key=len, reverse=True):
        for form in (secret, json.dumps(secret, ensure_ascii=False)[1:-1]):
            text = text.replace(form, REPLACEMENT)
            if CUT_MARK in text:
                text = CUT_MARK.join(_without_cut_end(piece, form) for piece in text.split(CUT_MARK))
    return text


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
