"""How wide a text is, at most, in the fonts that browsers use for `system-ui` and `sans-serif`.

Nobody lays text out here but the browser, which comes later: so widths are those of the widest common font, DejaVu
Sans, and boxes have room to spare in others.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

# Characters by their width, in thousandths of the size of the font.
_WIDTHS: Final[dict[int, str]] = {
    280: "ijl'I|",
    320: " .,J!",
    345: ":;/\\",
    400: "ft()[]-",
    415: "r",
    470: '"',
    535: "sz?*_`",
    585: "ckF",
    600: "vxyL",
    640: "aehnuodbgpqT0123456789{}$EY",
    700: "ABKPSRVXCZ",
    790: "DGHNOQU&",
    840: "w+=<>~^#",
    990: "mMW@%",
}
_OF: Final = {character: width for width, characters in _WIDTHS.items() for character in characters}
_OTHER: Final = 800
_WIDE: Final = 1_150
_BOLD: Final = 1.12
_MARK: Final = "…"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels, at most."""
    thousandths = sum(map(_width_of, text))
    return thousandths * size / 1_000 * (_BOLD if bold else 1)


def cut(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """The text, cut with a mark so that it is no wider."""
    if text_width(text, size, bold=bold) <= width:
        return text
    while text and text_width(text + _MARK, size, bold=bold) > width:
        text = text[:-1]
    return text.rstrip() + _MARK


def wrap(text: str, width: float, size: float, most: int, *, bold: bool = False) -> list[str]:
    """At most so many lines, none wider; the last one is cut with a mark if there is more. Long words are broken."""
    lines: list[str] = []
    line = ""
    for piece in _pieces(text, width, size, bold=bold):
        joined = f"{line}{piece}" if line else piece.lstrip()
        if line and text_width(joined.rstrip(), size, bold=bold) > width:
            lines.append(line.rstrip())
            joined = piece.lstrip()
        line = joined
    if line.strip():
        lines.append(line.rstrip())
    if len(lines) > most:
        lines = [*lines[: most - 1], cut(f"{lines[most - 1]}{_MARK}", width, size, bold=bold)]
    return lines


def _pieces(text: str, width: float, size: float, *, bold: bool) -> Iterator[str]:
    """Words with the blanks before them; of words that are too wide, parts."""
    for number, word in enumerate(" ".join(text.split()).split(" ")):
        gap = " " if number else ""
        while text_width(word, size, bold=bold) > width:
            kept = len(word)
            while kept > 1 and text_width(word[:kept], size, bold=bold) > width:
                kept -= 1
            yield gap + word[:kept]
            word, gap = word[kept:], ""
        yield gap + word


def _width_of(character: str) -> int:
    known = _OF.get(character)
    if known is not None:
        return known
    if unicodedata.combining(character):
        return 0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _OTHER
