"""Decides which source column goes into which target column: by name, and nothing is dropped or converted silently."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from headrace.errors import TypeMismatchError
from headrace.model import AddedColumn, ComputedColumn, DataType, FirstColumn, JoinedColumn, RowColumn, UnitedColumn
from headrace.planning.capabilities import Capabilities
from headrace.planning.catalog import CatalogColumn, CatalogTable
from headrace.planning.column_mapping import ColumnMapping, Differences
from headrace.planning.computed_columns import check_computed
from headrace.planning.made_columns import longest_text
from headrace.planning.plan import OutputColumn
from headrace.planning.types_match import is_lossless, narrowed, type_to_use
from headrace.planning.wording import counted


def map_columns(
    table_name: str,
    columns: Sequence[RowColumn],
    chosen: Mapping[str, str] | None,
    table: CatalogTable | None,
    capabilities: Capabilities,
    keep_identity: bool = True,
    file_paths: Sequence[str] = (),
    ignoring: Collection[str] = (),
) -> ColumnMapping:
    """Maps the `columns` of the rows to those of `table` (None: it will be created, or the target stores nothing).

    `chosen` is the destination's `columns`, target name to source name: the full list of what is loaded. Without
    `keep_identity` nothing goes into columns that the table numbers. `file_paths` are those of the source:
    columns of the table that get them have to be long enough. `ignoring`: source columns that are NULL where their text
    is no value.
    Raises TypeMismatchError naming every difference at once.
    """
    differences = Differences()
    pairs = _pairs(columns, chosen, differences)
    mapping = ColumnMapping()
    if chosen is not None:
        used = {column.name for _, column in pairs}
        left = [column.name for column in columns if column.name not in used]
        if left:
            mapping.notes.append(f"not loaded, because `columns` does not list them: {', '.join(left)}")
    if table is None:
        mapping.columns = [_new_column(name, column, capabilities, differences) for name, column in pairs]
        _refuse_same_names(mapping.columns, capabilities, differences)
    else:
        if not keep_identity:
            pairs = _without_identity(pairs, table, capabilities, mapping)
        _match_table(pairs, table, capabilities, mapping, differences, file_paths)
        _refuse_ignored(pairs, ignoring, table, capabilities, differences)
    if differences.found:
        raise TypeMismatchError(
            f"the columns do not fit table {table_name}",
            found="\n".join(differences.found),
            hint=differences.hint(),
        )
    return mapping


def _pairs(
    columns: Sequence[RowColumn], chosen: Mapping[str, str] | None, differences: Differences
) -> list[tuple[str, RowColumn]]:
    if chosen is None:
        return [(column.name, column) for column in columns]
    by_name = {column.name: column for column in columns}
    pairs = []
    for target_name, source_name in chosen.items():
        column = by_name.get(source_name)
        if column is None:
            near = get_close_matches(source_name, by_name, n=1)
            differences.add(
                f"`columns` maps `{target_name}` to `{source_name}`, which the layout does not have",
                f"Did you mean `{near[0]}`?" if near else "Name a column of the layout.",
            )
        else:
            pairs.append((target_name, column))
    return pairs


def _new_column(name: str, column: RowColumn, capabilities: Capabilities, differences: Differences) -> OutputColumn:
    too_precise = column.type.kind == "decimal" and (column.type.precision or 0) > capabilities.max_decimal_precision
    if not capabilities.stores(column.type.kind) or too_precise:
        differences.add(
            f"`{name}`: {capabilities.target_type} has no type for {column.type}",
            f"Declare `{_declared(column)}` as string in the layout{_of(column)}.",
        )
    return OutputColumn(column.name, name, column.type, column.nullable)


def _refuse_same_names(columns: Sequence[OutputColumn], capabilities: Capabilities, differences: Differences) -> None:
    seen: dict[str, str] = {}
    for column in columns:
        first = seen.setdefault(capabilities.name_key(column.target), column.target)
        if first is not column.target and first != column.target:
            differences.add(
                f"`{first}` and `{column.target}` are the same name in {capabilities.target_type}",
                "Rename one of them in the layout, or choose names with `columns` of the destination.",
            )


def _without_identity(
    pairs: Sequence[tuple[str, RowColumn]], table: CatalogTable, capabilities: Capabilities, mapping: ColumnMapping
) -> list[tuple[str, RowColumn]]:
    numbered = {capabilities.name_key(column.name) for column in table.columns if column.identity}
    left = [name for name, _ in pairs if capabilities.name_key(name) in numbered]
    mapping.notes += [f"`{name}` of the source is not loaded, because of `keep_identity: false`" for name in left]
    return [pair for pair in pairs if pair[0] not in left]


def _match_table(
    pairs: Sequence[tuple[str, RowColumn]],
    table: CatalogTable,
    capabilities: Capabilities,
    mapping: ColumnMapping,
    differences: Differences,
    file_paths: Sequence[str],
) -> None:
    by_key = {capabilities.name_key(column.name): column for column in table.columns}
    filled: dict[str, str] = {}
    for name, column in pairs:
        target = by_key.get(capabilities.name_key(name))
        if target is None:
            differences.add(f"`{name}`: the table has no such column", _missing_column_hint(name, table))
            continue
        if target.name in filled:
            differences.add(
                f"`{target.name}`: both `{filled[target.name]}` and `{column.name}` go into it",
                "Give each target column one source column, with `columns` of the destination.",
            )
            continue
        filled[target.name] = column.name
        if isinstance(column, AddedColumn):
            _check_added(column, target, mapping, differences)
            continue
        if isinstance(column, ComputedColumn):
            check_computed(column, target, mapping, differences)
            continue
        is_alone = sum(_origin(source) == _origin(column) for _, source in pairs) == 1
        longest = _longest_text(column, file_paths)
        if longest is not None and target.type is not None and target.type.kind == "varchar":
            read_as = _check_length(column, target, longest, differences)
        else:
            read_as = _check_pair(column, target, is_alone, mapping, differences)
        mapping.columns.append(OutputColumn(column.name, target.name, read_as, column.nullable and target.nullable))
        if not target.nullable and (lacks := _lacks(column)) is not None:
            whose, remedy = lacks
            differences.add(
                f"`{target.name}`: the table has NOT NULL, and rows {whose} have NULL",
                f"{remedy}, or make the column of the table nullable.",
            )
        elif column.nullable and not target.nullable and column.from_ is None:
            mapping.notes.append(f"a NULL in `{column.name}` is a reject, because `{target.name}` is NOT NULL")
    for target in table.columns:
        if target.name not in filled and not target.generated:
            check_unfilled(target, mapping, differences)


def _check_added(column: AddedColumn, target: CatalogColumn, mapping: ColumnMapping, differences: Differences) -> None:
    """What a lookup adds comes as its files have it: only NULL where none may be is a reject."""
    mapping.columns.append(OutputColumn(column.name, target.name, column.type, column.nullable and target.nullable))
    whose = f"`{target.name}`: the lookup `{column.lookup}` adds {column.type}, the table has {target.native_type}"
    if target.generated:
        differences.add(
            f"`{target.name}`: the table computes it", f"Leave `{column.name}` out with `columns` of the destination."
        )
    elif target.type is None:
        differences.add(
            whose, f"{target.native_type} cannot be loaded; leave `{target.name}` out or load another table."
        )
    elif not is_lossless(column.type, target.type):
        wanted = type_to_use(target.type)
        differences.add(
            whose, f"Declare `{column.lookup_column}` as {wanted} in the layout{_of(column)}, or change the table."
        )
    elif target.alters is not None:
        mapping.notes.append(f"`{target.name}` is {target.native_type}, which {target.alters}")
    if target.nullable or not column.nullable:
        return
    if column.default is None and not column.rejects_misses:
        differences.add(
            f"`{target.name}`: the table has NOT NULL, and rows that find nothing in the lookup `{column.lookup}` get "
            "NULL",
            f"Give `{column.name}` another default in `no_match`.",
        )
    else:
        mapping.notes.append(
            f"a NULL that lookup `{column.lookup}` finds for `{column.name}` is a reject, because `{target.name}` is "
            "NOT NULL"
        )


def _origin(column: RowColumn) -> object:
    """Equal for columns that are read as one."""
    return column.origin if isinstance(column, JoinedColumn) else column.name


def _longest_text(column: FirstColumn, file_paths: Sequence[str]) -> str | None:
    """Of a column that all rows have made of the same, and do not read."""
    if isinstance(column, JoinedColumn) or (isinstance(column, UnitedColumn) and not column.is_made_alike):
        return None
    return longest_text(column, file_paths)


def _lacks(column: FirstColumn) -> tuple[str, str] | None:
    """Which rows come without the column, and what could be done about it; None if all have it."""
    if isinstance(column, JoinedColumn) and column.may_be_missing:
        return f"that meet none of `{column.source}`", "Use `type: inner` for the join"
    if isinstance(column, UnitedColumn) and column.lacking:
        names = " and ".join(f"`{name}`" for name in column.lacking)
        return f"of the source {names}, which lacks it," if len(column.lacking) == 1 else (
            f"of the sources {names}, which lack it,"
        ), "Give it to their layouts"
    return None


def _declared(column: RowColumn) -> str:
    if isinstance(column, JoinedColumn):
        return column.column
    return column.lookup_column if isinstance(column, AddedColumn) else column.name


def _of(column: RowColumn) -> str:
    if isinstance(column, ComputedColumn):
        return f", or convert it by CAST in the query of `{column.transform}`"
    if isinstance(column, JoinedColumn):
        return f" of the source `{column.source}`"
    if isinstance(column, UnitedColumn):
        return " of each source"
    return f" of the lookup `{column.lookup}`" if isinstance(column, AddedColumn) else ""


def _refuse_ignored(
    pairs: Sequence[tuple[str, RowColumn]],
    ignoring: Collection[str],
    table: CatalogTable,
    capabilities: Capabilities,
    differences: Differences,
) -> None:
    not_null = {capabilities.name_key(column.name) for column in table.columns if not column.nullable}
    for name, column in pairs:
        if column.name in ignoring and capabilities.name_key(name) in not_null:
            differences.add(
                f"`{name}`: the table has NOT NULL, and `on_error: ignore` of `{column.name}` makes NULL of errors",
                f"Set `on_error: redirect` for `{column.name}`, or make the column of the table nullable.",
            )


def _missing_column_hint(name: str, table: CatalogTable) -> str:
    near = get_close_matches(name, [column.name for column in table.columns], n=1)
    if near:
        return f"Map it with `columns: {{{near[0]}: {name}}}` if `{near[0]}` is meant."
    return f"Add `{name}` to the table, or list the columns to load with `columns` of the destination."


def _check_pair(
    column: FirstColumn,
    target: CatalogColumn,
    is_alone: bool,
    mapping: ColumnMapping,
    differences: Differences,
) -> DataType:
    """The type to read the column as: the layout's, or one of smaller length or range, if the table's column has that.

    `is_alone`: the source column goes into no other target column.
    """
    if target.generated:
        differences.add(
            f"`{target.name}`: the table computes it", f"Leave `{column.name}` out with `columns` of the destination."
        )
    elif target.type is None:
        differences.add(
            f"`{target.name}`: the layout has {column.type}, the table has {target.native_type}",
            f"{target.native_type} cannot be loaded; leave `{target.name}` out or load another table.",
        )
    elif is_lossless(column.type, target.type):
        if target.alters is not None:
            mapping.notes.append(f"`{target.name}` is {target.native_type}, which {target.alters}")
    elif column.from_ is None and is_alone and (read_as := narrowed(column.type, target.type)) is not None:
        mapping.notes.append(
            f"`{column.name}` is read as {read_as}, because `{target.name}` holds no more: other values are rejects"
        )
        return read_as
    else:
        differences.add(
            f"`{target.name}`: the layout has {column.type}, the table has {target.native_type}",
            f"Declare `{_declared(column)}` as {type_to_use(target.type)} in the layout{_of(column)}, or change the "
            "table."
            if column.from_ is None
            else f"Give the table a column of type {column.type} for `{column.name}`, or leave it out with `columns`.",
        )
    return column.type


def _check_length(column: FirstColumn, target: CatalogColumn, longest: str, differences: Differences) -> DataType:
    """A text that is made is no reject: it is known before the first row."""
    length = target.type.length if target.type is not None else None
    if length is not None and len(longest) > length:
        differences.add(
            f"`{target.name}`: the table has {target.native_type}, and `{column.name}` would hold {longest}, of "
            f"{counted(len(longest), 'character')}",
            f"Make the column longer, or leave `{column.name}` out with `columns` of the destination.",
        )
    return column.type


def check_unfilled(
    target: CatalogColumn, mapping: ColumnMapping, differences: Differences, *, by_query: bool = False
) -> None:
    """Says of a column of the table that nothing goes into it, or notes that something must. `by_query`: the rows are
    those of a query, and not of a source.
    """
    giver = "query" if by_query else "source"
    if target.identity:
        mapping.notes.append(f"`{target.name}` is numbered by the table")
    elif target.has_default:
        mapping.notes.append(f"`{target.name}` gets its default, because the {giver} has no such column")
    elif target.nullable:
        mapping.notes.append(f"`{target.name}` stays NULL, because the {giver} has no such column")
    else:
        otherwise = "let the query give it" if by_query else "a source column with `columns` of the destination"
        differences.add(
            f"`{target.name}`: the table needs a value ({target.native_type} NOT NULL), the {giver} has no such column",
            f"Give `{target.name}` a default in the table, or {otherwise}.",
        )
