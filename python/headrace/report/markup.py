"""HTML and SVG, made of elements: every text is escaped here, and nowhere else."""

from __future__ import annotations

import html
from collections.abc import Iterable

from headrace.errors import without_controls

Attribute = str | int | float | bool | None


class Markup(str):
    """Text that is markup already; any other text is escaped where it becomes a part of some."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    """The text as it is to be read."""
    return text if isinstance(text, Markup) else Markup(html.escape(without_controls(text)))


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Parts one behind the other."""
    return Markup(between.join(escaped(part) for part in parts))


def element(tag: str, *children: str, **attributes: Attribute) -> Markup:
    """An element. Names of attributes are written with `_` for `-`, and with one at the end where Python needs it;
    those that are None or False are left out.
    """
    own = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(_text(value))}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    if not children and tag in _EMPTY:
        return Markup(f"<{tag}{own}>" if tag in _VOID else f"<{tag}{own}/>")
    return Markup(f"<{tag}{own}>{join(children)}</{tag}>")


def digits(value: float) -> str:
    """A coordinate, in few characters."""
    rounded = round(value, 1)
    return f"{rounded:.0f}" if rounded == int(rounded) else f"{rounded}"


_VOID = frozenset({"meta", "br", "hr", "link"})
_EMPTY = _VOID | {"path", "line", "rect", "circle"}


def _text(value: Attribute) -> str:
    return value if isinstance(value, str) else digits(value) if isinstance(value, int | float) else ""
