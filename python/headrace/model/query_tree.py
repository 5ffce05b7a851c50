"""A query over single rows, as `json_serialize_sql` has it: what may not be in it, which columns pass it as they are,
and the same query with the number of each row as its last column.

Known are as many forms as that needs. What is not known is no passed column, or refused; what the walk takes for right
DuckDB has to agree with (`row_query.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.model.row_query_error import RowQueryError, not_followed, not_row_wise
from headrace.model.suggest import show_name

Node = dict[str, Any]
# Name of a column, and the column of the input that it is; None for what is not known, or is computed.
Outputs = list[tuple[str | None, str | None]]

# Stands for columns of tables that the rows are joined with: nobody knows how many.
_REST: Final[tuple[str | None, str | None]] = ("*", None)

# Name of the column with the number of each row.
ROW_NUMBER: Final = "__headrace_row"
_MODIFIERS: Final = {
    "ORDER_MODIFIER": "ORDER BY",
    "LIMIT_MODIFIER": "LIMIT",
    "LIMIT_PERCENT_MODIFIER": "LIMIT",
    "DISTINCT_MODIFIER": "DISTINCT",
}
_SIDE_FUNCTIONS: Final = frozenset({"range", "generate_series", "unnest", "repeat"})


@dataclass(frozen=True)
class QueryTree:
    """`outputs`: the columns, None if it is not known which they are; `functions`: all functions, in small letters,
    with the numbers of their arguments; `names`: of what stands alone where a column may stand; `tables`: those that
    are neither the rows nor parts of WITH.
    """

    outputs: Outputs | None
    functions: frozenset[tuple[str, int]]
    names: frozenset[str]
    tables: frozenset[str]

    @property
    def divides(self) -> bool:
        """Whether it divides in floating point."""
        return any(name == "/" for name, _ in self.functions)


def walk_query(statement: Node, name: str, columns: Sequence[str]) -> QueryTree:
    """Looks at a statement over the rows `name` with these columns, and adds the number of the row to it.

    Raises RowQueryError.
    """
    functions, names = used_in(statement)
    check_table_functions(statement, name)
    check_table_names(statement, name)
    tables = tables_of(statement) - {name.lower()}
    outputs = _Walk(name, columns).select(statement["node"], {})
    return QueryTree(outputs, functions, names, tables)


def used_in(tree: Any) -> tuple[frozenset[tuple[str, int]], frozenset[str]]:
    """The functions of a tree, and the names that stand alone in it."""
    functions = {
        (str(node["function_name"]).lower(), len(node["arguments"]))
        for node in nodes_of(tree)
        if node.get("class") == "FUNCTION"
    }
    alone = (node["column_names"] for node in nodes_of(tree) if node.get("class") == "COLUMN_REF")
    return frozenset(functions), frozenset(str(names[0]).lower() for names in alone if len(names) == 1)


def check_table_functions(statement: Node, name: str) -> None:
    """Raises RowQueryError for one that reads what is not the rows."""
    for node in nodes_of(statement):
        if node.get("type") == "TABLE_FUNCTION":
            function = str(node["function"]["function_name"]).lower()
            if function not in _SIDE_FUNCTIONS:
                raise RowQueryError(
                    f"the query reads the table function `{show_name(function)}`",
                    expected=f"the rows of `{name}`, and constant tables beside them",
                    hint="Look rows of other tables and files up with a `lookup`.",
                )


def check_table_names(statement: Node, name: str) -> None:
    """Raises RowQueryError if the rows are called with a schema: they are in none."""
    for node in nodes_of(statement):
        if node.get("type") == "BASE_TABLE" and node["schema_name"] and str(node["table_name"]).lower() == name.lower():
            path = ".".join(filter(None, (node["catalog_name"], node["schema_name"], node["table_name"])))
            raise RowQueryError(
                f"the rows of `{show_name(name)}` are in no schema",
                found=f"FROM {path}",
                expected=f"FROM {name}",
                hint="Leave the name of the schema out.",
            )


def not_read(name: str) -> RowQueryError:
    """Of a query that does not read the rows `name`."""
    return RowQueryError(
        f"the query does not read the rows of `{show_name(name)}`",
        expected=f"FROM {name}",
        hint=f"Write `SELECT ... FROM {name}`.",
    )


def tables_of(statement: Node) -> frozenset[str]:
    """Names of tables, without those of parts of WITH."""
    parts = {
        str(part["key"]).lower() for node in nodes_of(statement) for part in node.get("cte_map", {}).get("map", ())
    }
    tables = (node for node in nodes_of(statement) if node.get("type") == "BASE_TABLE")
    return frozenset(
        str(own["table_name"]).lower() for own in tables if own["schema_name"] or own["table_name"].lower() not in parts
    )


@dataclass
class _Carried:
    """What of a FROM clause holds the rows. `columns`: None if they are not known; `is_alone`: nothing is beside it."""

    alias: str
    columns: Outputs | None
    is_alone: bool = True


class _Walk:
    def __init__(self, name: str, columns: Sequence[str]) -> None:
        self._name = name
        self._columns: Outputs = [(column, column) for column in columns]

    def select(self, node: Node, parts: Mapping[str, Outputs | None]) -> Outputs | None:
        """The columns of a SELECT that holds the rows; the number is its last column then. `parts`: those of WITH that
        hold the rows.
        """
        _check_kind(node)
        parts = dict(parts)
        for part in node["cte_map"]["map"]:
            own = part["value"]["query_node"]
            if self._reads(own, parts):
                parts[str(part["key"]).lower()] = self.select(own, parts)
        if not self._reads(node["from_table"], parts):
            if self._reads(node, parts):
                raise not_row_wise("the rows in a subquery alone")
            raise not_read(self._name)
        carried = self._from(node["from_table"], parts)
        self._check_expressions(node, carried, parts)
        _check_names(node["select_list"])
        outputs = _outputs(node["select_list"], carried)
        _hide_number(node, carried.alias)
        node["select_list"].append(_column(ROW_NUMBER))
        return outputs

    def _from(self, table: Node, parts: Mapping[str, Outputs | None]) -> _Carried:
        kind = table["type"]
        if table.get("sample"):
            raise not_row_wise("a sample")
        if kind == "BASE_TABLE":
            name = str(table["table_name"])
            columns = parts.get(name.lower(), self._columns)
            return _Carried((table["alias"] or name).lower(), _renamed(columns, table))
        if kind == "SUBQUERY":
            return _Carried(table["alias"].lower(), _renamed(self.select(table["subquery"]["node"], parts), table))
        if kind == "JOIN":
            if self._reads(table["right"], parts):
                both = self._reads(table["left"], parts)
                if both:
                    raise not_row_wise("a join of the rows with themselves")
                raise not_row_wise(
                    f"`{self._name}` on the right side of a join",
                    f"Write it first: `FROM {self._name} JOIN ...`, or `LEFT JOIN`.",
                )
            carried = self._from(table["left"], parts)
            return _Carried(carried.alias, carried.columns, is_alone=False)
        raise not_row_wise(kind)

    def _check_expressions(self, node: Node, carried: _Carried, parts: Mapping[str, Outputs | None]) -> None:
        names = {str(column).lower() for column, _ in carried.columns or ()}
        for own in nodes_of([node["select_list"], node["where_clause"], node["from_table"]]):
            if own.get("class") == "WINDOW":
                raise not_row_wise(f"a window function, {own['function_name']} OVER")
            if own.get("class") == "SUBQUERY" and self._reads(own["subquery"], parts):
                raise not_row_wise("a subquery that reads the rows once more")
            if own.get("class") == "POSITIONAL_REFERENCE":
                raise not_followed(f"a column by its place, #{own['index']}")
            if own.get("class") != "COLUMN_REF" or len(own["column_names"]) != 1:
                continue
            name = str(own["column_names"][0]).lower()
            if name == carried.alias and name not in names:
                raise RowQueryError(
                    f"the query uses whole rows of `{show_name(carried.alias)}` as a value",
                    expected="columns",
                    hint="Name the columns, as in `{'a': a, 'b': b}`.",
                )

    def _reads(self, node: Any, parts: Mapping[str, Outputs | None]) -> bool:
        names = {self._name.lower(), *parts}
        tables = (own for own in nodes_of(node) if own.get("type") == "BASE_TABLE")
        return any(str(own["table_name"]).lower() in names and not own["schema_name"] for own in tables)


def with_rest(outputs: Outputs, count: int) -> Outputs | None:
    """The outputs if they are so many, with what is not known about them in its place; else None."""
    rest = next((place for place, own in enumerate(outputs) if own is _REST), None)
    if rest is None:
        return outputs if len(outputs) == count else None
    missing = count - len(outputs) + 1
    return None if missing < 0 else [*outputs[:rest], *([(None, None)] * missing), *outputs[rest + 1 :]]


def _hide_number(node: Node, alias: str) -> None:
    """Takes the number of the row out of each `*` of a SELECT that would show it. `alias`: of the rows."""
    unpacked = (own["children"] for own in nodes_of(node["select_list"]) if own.get("type") == "OPERATOR_UNPACK")
    # Those of queries beside the rows, too, which may read columns of theirs.
    beside = [own for own in nodes_of([node["select_list"], node["where_clause"], node["from_table"]]) if _is_star(own)]
    of_rows = [own for own in beside if own["relation_name"].lower() == alias]
    free = [own for own in _stars([node["select_list"], node["where_clause"]]) if not own["relation_name"]]
    # Whether a pattern fits the number, only the columns of a list of columns show.
    quiet = [own for own in _stars([*unpacked, node["where_clause"]]) if own["expr"]]
    if quiet:
        raise not_followed("columns that are chosen by a pattern or a condition, in WHERE or as arguments")
    for star in (*of_rows, *free):
        if ROW_NUMBER not in star["exclude_list"]:
            star["exclude_list"].append(ROW_NUMBER)


def _is_star(node: Node) -> bool:
    return node.get("class") == "STAR"


def _check_names(expressions: Sequence[Node]) -> None:
    for number, own in enumerate(expressions, start=1):
        if own["class"] not in ("STAR", "COLUMN_REF") and not own["alias"] and not _stars(own):
            raise RowQueryError(
                f"column {number} of the query has no name",
                expected="expression AS name",
                hint="Give it a name with AS.",
            )


def _check_kind(node: Node) -> None:
    kind = node["type"]
    if kind == "SET_OPERATION_NODE":
        raise not_row_wise(str(node.get("setop_type", "UNION")))
    if kind != "SELECT_NODE":
        raise not_row_wise(kind)
    for modifier in node["modifiers"]:
        raise not_row_wise(_MODIFIERS.get(modifier["type"], modifier["type"]))
    if node["group_expressions"] or node["group_sets"] or node["aggregate_handling"] != "STANDARD_HANDLING":
        raise not_row_wise("GROUP BY")
    for key, word in (("having", "HAVING"), ("qualify", "QUALIFY"), ("sample", "USING SAMPLE")):
        if node[key]:
            raise not_row_wise(word)


def nodes_of(tree: Any) -> Iterator[Node]:
    """All of it that has members, in no particular order."""
    waiting = [tree]
    while waiting:
        own = waiting.pop()
        if isinstance(own, dict):
            yield own
            waiting.extend(own.values())
        elif isinstance(own, list):
            waiting.extend(own)


def _stars(expressions: Any) -> list[Node]:
    """Those of expressions, and not of queries inside them."""
    waiting, found = [expressions], []
    while waiting:
        own = waiting.pop()
        if isinstance(own, list):
            waiting.extend(own)
        elif isinstance(own, dict) and own.get("class") != "SUBQUERY":
            if _is_star(own):
                found.append(own)
            waiting.extend(own.values())
    return found


def _renamed(columns: Outputs | None, table: Node) -> Outputs | None:
    """With the names of `AS alias(name, ...)`."""
    names: Sequence[str] = table.get("column_name_alias") or ()
    if columns is None or (not names and _REST not in columns):
        return columns
    if len(names) > len(columns) or _REST in columns:
        return None
    return [(names[place] if place < len(names) else name, origin) for place, (name, origin) in enumerate(columns)]


def _outputs(expressions: Sequence[Node], carried: _Carried) -> Outputs | None:
    outputs: Outputs = []
    for own in expressions:
        found = _output(own, carried)
        if found is None:
            return None
        outputs += found
    return None if sum(own is _REST for own in outputs) > 1 else outputs


def _output(own: Node, carried: _Carried) -> Outputs | None:
    """The columns of one expression of a list; None if that is not known."""
    columns = carried.columns
    if own["class"] == "STAR":
        relation = own["relation_name"].lower()
        is_plain = not (own["columns"] or own["expr"] or own["rename_list"] or own["qualified_exclude_list"])
        is_ours = relation == carried.alias or not relation
        if columns is None or not is_plain or not is_ours:
            return None
        left_out = {str(name).lower() for name in own["exclude_list"]}
        replaced = {str(entry["key"]).lower() for entry in own["replace_list"]}
        kept = [(name, origin) for name, origin in columns if str(name).lower() not in left_out]
        found = [(name, None if str(name).lower() in replaced else origin) for name, origin in kept]
        return found if relation or carried.is_alone else [*found, _REST]
    if own["class"] == "COLUMN_REF":
        *table, name = (str(part) for part in own["column_names"])
        origins = [origin for own_name, origin in columns or () if str(own_name).lower() == name.lower()]
        is_ours = not table or [part.lower() for part in table] == [carried.alias]
        return [(own["alias"] or name, origins[0] if is_ours and len(origins) == 1 else None)]
    return [(own["alias"] or None, None)]


def _column(name: str) -> Node:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "query_location": 0, "column_names": [name]}
