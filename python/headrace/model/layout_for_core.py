"""A layout as the Rust core reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from headrace.model.column_format import to_core
from headrace.model.column_format_checks import month_names
from headrace.model.data_type import DataType
from headrace.model.layout_column import Column, EmptyValue
from headrace.model.layout_places import places_of
from headrace.model.made_column import OF_RUN

if TYPE_CHECKING:
    from headrace.model.layout import Layout

# Row ends that have a name.
ROW_ENDS: Final = {"auto": "", "lf": "\n", "crlf": "\r\n", "cr": "\r"}


def row_end_bytes(layout: Layout) -> bytes:
    """The row end as it stands in files; empty if each file says it, or nothing stands there."""
    row_end = "" if layout.row_end == "none" else ROW_ENDS.get(layout.row_end, layout.row_end)
    return row_end.encode("utf-16-le" if layout.encoding.startswith("utf-16") else "utf-8")


def layout_to_core(layout: Layout, columns_not_null: Collection[str], types: Mapping[str, DataType]) -> dict[str, Any]:
    """`columns_not_null` are those that the target forbids to be null.

    `types`: by column, where the target allows less than the layout; columns are made if they are among them.
    """
    made = [column for column in layout.made if column.name in types]
    if layout.shape == "delimited":
        told_by: dict[str, Any] = {"delimiter": layout.delimiter}
        places: list[dict[str, Any]] = [{} for _ in layout.fields]
    else:
        told_by = {"shape": layout.shape, "width_unit": layout.width_unit}
        places = [{"place": place} for place in places_of(layout)]
    named = layout.row_end in ("auto", "none")
    return {
        "encoding": layout.encoding,
        "unmappable": layout.unmappable,
        **told_by,
        "row_end": layout.row_end if named else {"exactly": ROW_ENDS.get(layout.row_end, layout.row_end)},
        "mixed_row_ends": layout.mixed_row_ends,
        "row_end_in_fields": layout.row_end_in_fields,
        "qualifier": layout.qualifier,
        "stray_qualifiers": layout.stray_qualifiers,
        "blanks_around_qualifier": layout.blanks_around_qualifier,
        "escape": layout.escape,
        "escape_codes": layout.escape_codes,
        "comment": layout.comment,
        "blank_rows": layout.blank_rows,
        "short_rows": layout.short_rows,
        "extra_fields": layout.extra_fields,
        "trailing_delimiter": layout.trailing_delimiter,
        "skip_lines": layout.skip_lines,
        "header": layout.header,
        "other_columns": layout.other_columns,
        "footer_rows": layout.footer_rows,
        "columns": [
            {
                "name": column.name,
                "type": types.get(column.name, column.type).to_core(),
                "nullable": column.nullable and column.name not in columns_not_null,
                "delimiter": column.delimiter,
                "qualified": column.qualified,
                "trim": layout.setting_of(column, "trim"),
                "empty": _empty_to_core(layout.setting_of(column, "empty")),
                "qualified_empty_is_null": layout.setting_of(column, "qualified_empty") == "null",
                "null_tokens": layout.setting_of(column, "null_tokens"),
                "qualified_null_tokens": layout.setting_of(column, "qualified_null_tokens"),
                **_dispositions_to_core(layout, column),
                **_format_to_core(layout, column, types.get(column.name, column.type)),
                **place,
            }
            for column, place in zip(layout.fields, places, strict=True)
        ],
        **({"made": [{"name": column.name, "from": _from_to_core(column)} for column in made]} if made else {}),
    }


def _dispositions_to_core(layout: Layout, column: Column) -> dict[str, str]:
    own = {name: str(layout.setting_of(column, name)) for name in ("on_error", "on_truncation")}
    return {name: value for name, value in own.items() if value != "redirect"}


def _format_to_core(layout: Layout, column: Column, data_type: DataType) -> dict[str, Any]:
    column_format, _ = layout.format_of(column)
    if column_format is None:
        return {}
    core = to_core(column_format, data_type, month_names(column_format))
    return {} if core is None else {"format": core}


def _from_to_core(column: Column) -> object:
    # The plan of a run says what that is.
    return {column.from_: None} if column.from_ in OF_RUN else column.from_


def _empty_to_core(empty: str | EmptyValue) -> object:
    return {"value": empty.value} if isinstance(empty, EmptyValue) else empty
