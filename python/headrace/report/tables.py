"""Tables of HTML: wide ones scroll by themselves, on a phone rows of `cards` stand as blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.report.markup import Markup, element


@dataclass(frozen=True)
class Column:
    """A column: its heading, and whether it holds words or figures."""

    heading: str
    words: bool = False


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    caption: str,
    total: Sequence[str] | None = None,
    cards: bool = False,
) -> Markup:
    """A table; the first column names its rows. `caption`: for those who do not see it."""
    head = element("tr", *(element("th", item.heading, scope="col", class_=_class(item)) for item in columns))
    body = [_row(columns, row) for row in rows]
    parts = [
        element("caption", caption),
        element("thead", head),
        element("tbody", *body),
    ]
    if total is not None:
        parts.append(element("tfoot", _row(columns, total)))
    own = element("table", *parts, class_="cards" if cards else None)
    return element("div", own, class_="scroll", role="region", aria_label=caption, tabindex="0")


def definitions(pairs: Sequence[tuple[str, str]]) -> Markup:
    """Names with what they stand for."""
    parts = [element("div", element("dt", name), element("dd", value)) for name, value in pairs]
    return element("dl", *parts, class_="definitions")


def _row(columns: Sequence[Column], row: Sequence[str]) -> Markup:
    cells = [
        element(
            "th" if number == 0 else "td",
            cell,
            scope="row" if number == 0 else None,
            class_=_class(column),
            data_label=column.heading,
        )
        for number, (column, cell) in enumerate(zip(columns, row, strict=True))
    ]
    return element("tr", *cells)


def _class(column: Column) -> str | None:
    return None if column.words else "number"
