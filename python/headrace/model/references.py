"""The grammar of `${...}` inside texts.

`${name}` is a parameter or foreach item, `${env:NAME}` an environment variable, `${file:PATH}` the content of a
file, `${system.name}` a fact about this run. `$${` stands for the characters `${`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from headrace.model.suggest import quote

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r"\$\$\{|\$\{")


@dataclass(frozen=True, slots=True)
class Reference:
    """One `${...}`. `name` is without the prefix: `X` for `${env:X}`."""

    kind: Literal["variable", "env", "file", "system"]
    name: str

    def __str__(self) -> str:
        prefix = {"variable": "", "env": "env:", "file": "file:", "system": "system."}[self.kind]
        return f"${{{prefix}{self.name}}}"


class ReferenceSyntaxError(ValueError):
    """A `${...}` is not well formed."""

    def __init__(self, what: str, found: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.found = found
        self.hint = hint


def parse_text(text: str) -> list[str | Reference]:
    """The literal pieces and references of a text, in order; empty pieces are left out."""
    parts: list[str | Reference] = []
    literal = ""
    position = 0
    for token in _TOKEN.finditer(text):
        if token.start() < position:
            continue  # inside the reference before
        literal += text[position : token.start()]
        position = token.end()
        if token.group() == "$${":
            literal += "${"
            continue
        end = text.find("}", position)
        if end < 0:
            raise ReferenceSyntaxError(
                "a reference is not closed",
                quote(text[token.start() :]),
                "Add `}`; for the characters `${` write `$${`.",
            )
        if literal:
            parts.append(literal)
            literal = ""
        parts.append(_parse_reference(text[position:end]))
        position = end + 1
    literal += text[position:]
    if literal:
        parts.append(literal)
    return parts


def has_reference(text: str) -> bool:
    """Whether a text holds `${` that is not escaped."""
    return any(token.group() == "${" for token in _TOKEN.finditer(text))


def _parse_reference(content: str) -> Reference:
    if _NAME.fullmatch(content):
        return Reference("variable", content)
    prefix, colon, rest = content.partition(":")
    if colon and prefix == "env" and _NAME.fullmatch(rest):
        return Reference("env", rest)
    if colon and prefix == "file" and rest and "\0" not in rest:
        return Reference("file", rest)
    prefix, point, rest = content.partition(".")
    if point and prefix == "system" and _NAME.fullmatch(rest):
        return Reference("system", rest)
    raise ReferenceSyntaxError(
        "a reference is not well formed",
        quote(f"${{{content}}}"),
        "Write ${name}, ${env:NAME}, ${file:PATH} or ${system.name}; for the characters `${` write `$${`.",
    )
