"""What a query over all rows may not depend on: their order. Streams bring them in any, so that one stream would not be
16 streams, and a resumed run no undisturbed one.
"""

from __future__ import annotations

from typing import Any, Final

from headrace.model.query_tree import nodes_of
from headrace.model.row_query_error import RowQueryError
from headrace.model.suggest import show_name

# Aggregates whose result depends on the order of rows, unless they have an ORDER BY of their own.
_ORDERED: Final = frozenset(
    {"first", "last", "any_value", "arbitrary", "list", "array_agg", "string_agg", "group_concat", "listagg"}
)
# Macros over them, which have no place for an ORDER BY.
_ORDERED_MACROS: Final = {"json_group_array": "list", "json_group_object": "map", "variant_group_array": "list"}
# Those that depend on it whatever is written.
_NEVER: Final = frozenset({"approx_quantile", "approx_top_k", "reservoir_quantile", "lttb"})
_FLOAT_SUMS: Final = frozenset(
    {"sum", "wavg", "weighted_avg", "avg", "mean", "product", "favg", "fsum", "sumkahan", "kahan_sum"}
)
_ALWAYS_FLOAT: Final = frozenset(
    {
        "corr", "covar_pop", "covar_samp", "entropy", "geomean", "geometric_mean",
        "kurtosis", "kurtosis_pop", "sem", "skewness", "stddev", "stddev_pop",
        "stddev_samp", "var_pop", "var_samp", "variance", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2",
        "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    }
)  # fmt: skip
# Aggregates that take any one of equal values.
_TYING: Final = frozenset(
    {
        "arg_max", "arg_max_null", "arg_min", "arg_min_null", "argmax", "argmin", "max_by", "min_by", "mode",
        *_ORDERED,
    }
)  # fmt: skip
# Functions over windows whose result is the same for equal rows, whichever comes first.
_PEERS_ALIKE: Final = frozenset({"rank", "dense_rank", "rank_dense", "percent_rank", "cume_dist"})
_WHOLE_FRAMES: Final = frozenset({"UNBOUNDED_PRECEDING", "UNBOUNDED_FOLLOWING", "CURRENT_ROW_RANGE"})


def check_gathered(statement: Any) -> None:
    """Raises RowQueryError for what depends on the order in which rows come, as far as the text shows it."""
    for node in nodes_of(statement):
        _check_modifiers(node)
        if node.get("sample"):
            raise _unordered("a sample", "Choose rows by a condition on their values.")
        if node.get("type") == "SHOW_REF":
            raise _unordered("DESCRIBE or SUMMARIZE", "Write aggregates of the columns, such as `count(DISTINCT x)`.")
        if node.get("key_targets"):
            raise _unordered("USING KEY", "Leave it out, and choose one row of each key with an aggregate.")
        if node.get("class") == "COLLATE":
            raise _unordered("COLLATE", "Compare with `lower(...)` or `strip_accents(...)`.")
        if node.get("type") == "JOIN" and node.get("ref_type") == "POSITIONAL":
            raise _unordered("a POSITIONAL JOIN", "Join by a key.")
        if node.get("class") == "FUNCTION":
            _check_aggregate(node)
        elif node.get("class") == "WINDOW":
            _check_window(node)


def depends_on_float_order(statement: Any, *, floats: bool) -> bool:
    """Whether the last digits of a result may depend on it: sums of floats do. `floats`: whether the rows have some,
    or the query makes some.
    """
    nodes = [node for node in nodes_of(statement) if node.get("class") in ("FUNCTION", "WINDOW")]
    names = {str(node["function_name"]).lower() for node in nodes}
    return bool(names & _ALWAYS_FLOAT) or (floats and bool(names & _FLOAT_SUMS))


def ties(statement: Any) -> tuple[str, ...]:
    """What takes one of several rows by values that may be equal: which one comes first is not said then."""
    return tuple(sorted({word for node in nodes_of(statement) if (word := _tie(node)) is not None}))


def _tie(node: Any) -> str | None:
    name = f"`{show_name(str(node.get('function_name')).lower())}`"
    if node.get("class") == "FUNCTION" and str(node["function_name"]).lower() in _TYING:
        return name
    if node.get("class") == "WINDOW":
        own = str(node["function_name"]).lower()
        is_alike = own in _PEERS_ALIKE or (node["type"] == "WINDOW_AGGREGATE" and own not in _TYING)
        return None if is_alike and not _counts_rows(node) else f"{name} OVER"
    if node.get("type") == "JOIN" and node.get("ref_type") == "ASOF":
        return "ASOF JOIN"
    modifiers = {own["type"]: own for own in node.get("modifiers") or ()}
    if (modifiers.get("DISTINCT_MODIFIER") or {}).get("distinct_on_targets"):
        return "DISTINCT ON"
    if "LIMIT_MODIFIER" in modifiers or "LIMIT_PERCENT_MODIFIER" in modifiers:
        return "LIMIT"
    return None


def _counts_rows(window: Any) -> bool:
    """Whether its frame ends at a row and not with all rows that are equal to it."""
    return any(str(window.get(side)).endswith("_ROWS") for side in ("start", "end"))


def _check_modifiers(node: Any) -> None:
    modifiers = {own["type"]: own for own in node.get("modifiers") or ()}
    if _orders((modifiers.get("ORDER_MODIFIER") or {}).get("orders"), by_place=True):
        return
    if "LIMIT_MODIFIER" in modifiers or "LIMIT_PERCENT_MODIFIER" in modifiers:
        raise _unordered("LIMIT or OFFSET without ORDER BY", "Write ORDER BY, by columns that tell all rows apart.")
    if (modifiers.get("DISTINCT_MODIFIER") or {}).get("distinct_on_targets"):
        raise _unordered("DISTINCT ON without ORDER BY", "Write ORDER BY, by columns that tell all rows apart.")


def _check_aggregate(node: Any) -> None:
    name = str(node["function_name"]).lower()
    if name in _NEVER:
        raise _unordered(f"`{show_name(name)}`", "Use an exact function, such as `quantile_cont`.")
    if name in _ORDERED_MACROS:
        raise _unordered(f"`{show_name(name)}`", f"Write `to_json({_ORDERED_MACROS[name]}(... ORDER BY ...))`.")
    if name in _ORDERED and not _orders((node.get("order_bys") or {}).get("orders")):
        raise _unordered(
            f"`{show_name(name)}` without ORDER BY", f"Write `{name}(... ORDER BY ...)`, or use min or max."
        )


def _check_window(node: Any) -> None:
    name = str(node["function_name"]).lower()
    if _orders(node.get("orders")):
        return
    is_whole = {node.get("start"), node.get("end")} <= _WHOLE_FRAMES
    if node["type"] != "WINDOW_AGGREGATE" or name in _ORDERED or not is_whole:
        raise _unordered(f"`{show_name(name)}` OVER without ORDER BY", "Write `OVER (... ORDER BY ...)`.")


def _orders(orders: Any, *, by_place: bool = False) -> bool:
    """Whether an ORDER BY looks at the rows: one by constants orders nothing. `by_place`: a whole number is a column
    there, and ALL is every one.
    """
    for own in orders or ():
        expression = own["expression"]
        if by_place and (expression["class"] == "STAR" or (expression.get("literal") or {}).get("kind") == "INTEGER"):
            return True
        if _has_column(expression):
            return True
    return False


def _has_column(expression: Any) -> bool:
    """Whether a column stands in it. What a query inside of it gives is the same for each row, or is not looked at."""
    waiting = [expression]
    while waiting:
        own = waiting.pop()
        if isinstance(own, dict):
            if own.get("class") == "COLUMN_REF":
                return True
            if own.get("class") != "SUBQUERY":
                waiting.extend(own.values())
        elif isinstance(own, list):
            waiting.extend(own)
    return False


def _unordered(found: str, hint: str) -> RowQueryError:
    return RowQueryError(
        "the result of the query would depend on the order in which rows come",
        found,
        "a query that gives the same rows whatever their order is",
        hint,
    )
