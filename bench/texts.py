"""Rows of text, always the same for the same seed. Plain Python: a table needs 25 MB of them, then they repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

_LETTERS = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ .-0123456789"
_WORDS = ("carefully", "final", "deposits", "sleep", "quickly", "above", "the", "ironic", "requests", "blithely")
_TEXT_POOL = 1 << 16


def narrow_rows(random: Random) -> Iterator[str]:
    """Two integers: up to nine digits, up to five."""
    below = random.random
    while True:
        yield f"{int(below() * 1_000_000_000)},{int(below() * 100_000)}\n"


def float_rows(random: Random, columns: int) -> Iterator[str]:
    """Floats as programs write them: 6 to 17 significant digits, a few with an exponent."""
    below = random.random

    def text() -> str:
        digits = 6 + int(below() * 12)
        value = (below() - 0.5) * 10 ** int(below() * 8)
        return f"{value:.{digits - 1}e}" if below() < 0.1 else f"{value:.{digits}g}"

    while True:
        yield ",".join([text() for _ in range(columns)]) + "\n"


def mixed_rows(random: Random, types: Sequence[str]) -> Iterator[str]:
    """One value of each type, again and again."""
    makers = [_maker(random, kind) for kind in types]
    while True:
        yield ",".join([make() for make in makers]) + "\n"


def quoted_rows(random: Random, types: Sequence[str]) -> Iterator[str]:
    """Rows like LINEITEM's; every text is qualified, the last one is long and often needs it."""
    makers = [_maker(random, type_text) for type_text in types[:-1]]
    is_text = [type_text.startswith(("char", "varchar")) for type_text in types[:-1]]
    below = random.random

    def comment() -> str:
        text = " ".join(random.choices(_WORDS, k=3 + int(below() * 2)))[:40]
        chance = below()
        if chance < 0.10:
            text = text.replace(" ", ", ", 1)
        elif chance < 0.13:
            text = text.replace(" ", ' ""', 1) + '""'
        elif chance < 0.14:
            text = text.replace(" ", "\n", 1)
        return text

    while True:
        fields = [f'"{make()}"' if text else make() for make, text in zip(makers, is_text, strict=True)]
        yield ",".join(fields) + f',"{comment()}"\n'


def fixed_rows(random: Random, types: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Rows like LINEITEM's, each field as wide as its column."""
    makers = [_maker(random, type_text) for type_text in types[:-1]]
    makers.append(lambda: " ".join(random.choices(_WORDS, k=3 + int(random.random() * 2)))[: widths[-1]])
    aligns = ["<" if type_text.startswith(("char", "varchar")) else ">" for type_text in types]
    forms = [f"{align}{width}" for align, width in zip(aligns, widths, strict=True)]
    while True:
        # Not of blanks alone: no column may be null.
        fields = [make()[:width].strip() or "x" for make, width in zip(makers, widths, strict=True)]
        yield "".join([format(field, form) for field, form in zip(fields, forms, strict=True)]) + "\n"


def _maker(random: Random, type_text: str) -> Callable[[], str]:
    """A function that makes the text of one value."""
    below = random.random
    kind = type_text.partition("(")[0]
    if kind == "int32":
        # As many of one digit as of nine.
        return lambda: str(int((below() - 0.25) * 10 ** (1 + int(below() * 9))))
    if kind == "int64":
        return lambda: str(int((below() - 0.25) * 10 ** (1 + int(below() * 18))))
    if kind == "decimal":
        return lambda: f"{(below() - 0.25) * 10 ** (1 + int(below() * 8)):.2f}"
    if kind == "date":
        return lambda: f"{1970 + int(below() * 60)}-{1 + int(below() * 12):02}-{1 + int(below() * 28):02}"
    if kind == "char":
        return lambda: "ANRFO"[int(below() * 5)]
    # Text: 1 to 24 characters, or as many as the column takes.
    longest = min(24, int(type_text.partition("(")[2].rstrip(")")))
    pool = ["".join(random.choices(_LETTERS, k=1 + int(below() * longest))) for _ in range(_TEXT_POOL)]
    return lambda: pool[int(below() * _TEXT_POOL)]
