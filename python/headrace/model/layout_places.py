"""Columns that stand at places of their rows: fixed width, and ragged right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from headrace.model.settings import own_error
from headrace.model.suggest import show_name

if TYPE_CHECKING:
    from headrace.model.layout import Layout
    from headrace.model.layout_column import Column

# The longest row that the core can hold.
MAXIMUM_ROW_WIDTH = 1 << 30

# Settings that say how fields are delimited, and their values if they say nothing.
_OF_DELIMITERS: Final[dict[str, object]] = {
    "delimiter": None,
    "row_end_in_fields": "ends_row",
    "qualifier": None,
    "blanks_around_qualifier": False,
    "escape": None,
    "escape_codes": "none",
    "comment": None,
    "trailing_delimiter": False,
    "qualified_empty": "text",
    "qualified_null_tokens": False,
}
_OF_DELIMITED_COLUMNS: Final[dict[str, object]] = {
    "delimiter": None,
    "qualified": True,
    "qualified_empty": None,
    "qualified_null_tokens": None,
}
# Settings with which rows differ in their bytes.
_OF_ROW_ENDS: Final[dict[str, object]] = {
    "width_unit": "bytes",
    "mixed_row_ends": "accept",
    "blank_rows": "skip",
    "short_rows": "reject",
    "extra_fields": "reject",
}


def refuse_places(layout: Layout) -> None:
    """Where delimiters tell the fields, nothing else does."""
    if layout.delimiter is None:
        raise own_error(
            "the layout has no delimiter",
            expected="`delimiter`, or `shape: fixed_width` or `shape: ragged_right`",
        )
    if layout.width_unit != "bytes":
        raise _means_nothing("width_unit", layout.shape, ("width_unit",))
    for number, column in enumerate(layout.columns):
        for name in ("start", "width"):
            if getattr(column, name) is not None:
                raise own_error(
                    f"column `{show_name(column.name)}` has a {name}, and the fields of the layout are delimited",
                    expected="`shape: fixed_width` or `shape: ragged_right`, or columns without places",
                    path=("columns", number, name),
                )
    if layout.row_end == "none":
        raise own_error(
            "rows without row end must have a fixed width", expected="`shape: fixed_width`", path=("row_end",)
        )


def check_places(layout: Layout) -> None:
    """What a layout says of columns at places fits together."""
    for name, nothing in _OF_DELIMITERS.items():
        if getattr(layout, name) != nothing:
            raise _means_nothing(name, layout.shape, (name,))
    for number, column in enumerate(layout.columns):
        for name, nothing in _OF_DELIMITED_COLUMNS.items():
            if getattr(column, name) != nothing:
                raise _means_nothing(name, layout.shape, ("columns", number, name))
    if layout.header == "by_name":
        raise own_error(
            "columns with places stand there whatever a header says",
            expected="`header: check` or `header: skip`",
            path=("header",),
        )
    if layout.shape == "ragged_right" and layout.row_end == "none":
        raise own_error(
            "with `shape: ragged_right` the last column goes on to the row end",
            expected="`shape: fixed_width` for rows without row end",
            path=("row_end",),
        )
    if layout.shape == "ragged_right" and layout.extra_fields == "keep":
        raise own_error(
            "with `shape: ragged_right` the last column goes on to the row end anyway",
            expected="no `extra_fields`",
            path=("extra_fields",),
        )
    _check_units(layout)
    places_of(layout)


def _check_units(layout: Layout) -> None:
    """What is counted, and in what, where rows have no row end or characters have several bytes."""
    if layout.encoding.startswith("utf-16") and layout.row_end == "none":
        raise own_error(
            f"rows without row end have a number of bytes, and characters of {layout.encoding} have not",
            expected="row ends, or an encoding of one byte per character",
            path=("row_end",),
        )
    if layout.encoding.startswith("utf-16") and layout.width_unit == "bytes":
        raise own_error(
            f"places of columns in {layout.encoding} count characters",
            expected="`width_unit: characters`",
            path=("encoding",),
        )
    for name, nothing in _OF_ROW_ENDS.items():
        if layout.row_end == "none" and getattr(layout, name) != nothing:
            raise own_error(
                f"`row_end: none` and `{name}: {getattr(layout, name)}` contradict each other",
                expected="rows that all have the same number of bytes",
                path=(name,),
            )


def places_of(layout: Layout) -> list[dict[str, Any]]:
    """The place of every column as the core reads it: what stands before it, and its width if it has one."""
    places: list[dict[str, Any]] = []
    before = 0
    fields = layout.numbered_fields()
    for index, (number, column) in enumerate(fields):
        start = before if column.start is None else column.start - 1
        if start < before:
            raise own_error(
                f"column `{show_name(column.name)}` begins at {start + 1}, where column "
                f"`{show_name(fields[index - 1][1].name)}` has not ended",
                expected=f"a start of {before + 1} or more: columns in the order of the file that do not overlap",
                path=("columns", number, "start"),
            )
        width = _width(layout, fields[index : index + 2], start)
        before = start + (width or 0)
        if before > MAXIMUM_ROW_WIDTH:
            raise own_error(
                f"column `{show_name(column.name)}` ends at {before}",
                expected=f"rows of at most {MAXIMUM_ROW_WIDTH:,} {layout.width_unit}",
                path=("columns", number),
            )
        places.append({"start": start, "width": width})
    return places


def _width(layout: Layout, fields: list[tuple[int, Column]], start: int) -> int | None:
    """The width of the first field: its own, or up to where the next one starts; none up to the row end."""
    number, column = fields[0]
    following = fields[1][1] if len(fields) > 1 else None
    if following is None and layout.shape == "ragged_right":
        if column.width is not None:
            raise own_error(
                f"the last column `{show_name(column.name)}` goes on to the row end and has no width",
                expected="no `width`, or `shape: fixed_width`",
                path=("columns", number, "width"),
            )
        return None
    if column.width is not None:
        return column.width
    if following is None or following.start is None:
        raise own_error(
            f"column `{show_name(column.name)}` has no width",
            expected="`width`" if following is None else "`width`, or a `start` of the next column",
            hint="If the last column goes on to the row end, set `shape: ragged_right`." if following is None else None,
            path=("columns", number),
        )
    if following.start - 1 <= start:
        raise own_error(
            f"column `{show_name(following.name)}` begins at {following.start}, and column "
            f"`{show_name(column.name)}` before it at {start + 1}",
            expected="columns in the order of the file",
            path=("columns", fields[1][0], "start"),
        )
    return following.start - 1 - start


def _means_nothing(name: str, shape: str, path: tuple[str | int, ...]) -> Exception:
    return own_error(f"`{name}` means nothing with `shape: {shape}`", expected=f"a layout without `{name}`", path=path)
