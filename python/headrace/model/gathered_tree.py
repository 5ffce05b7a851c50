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
# Those that depend on it whatever is written.
_NEVER: Final = frozenset({"approx_quantile", "approx_top_k", "reservoir_quantile", "lttb"})
_FLOAT_SUMS: Final = frozenset({"sum", "avg", "mean", "product", "favg", "fsum", "sumkahan", "kahan_sum"})
_ALWAYS_FLOAT: Final = frozenset(
    {
        "corr", "covar_pop", "covar_samp", "kurtosis", "kurtosis_pop", "sem", "skewness", "stddev", "stddev_pop",
        "stddev_samp", "var_pop", "var_samp", "variance", "regr_avgx", "regr_avgy", "regr_intercept", "regr_r2",
        "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    }
)  # fmt: skip
_WHOLE_FRAMES: Final = frozenset({"UNBOUNDED_PRECEDING", "UNBOUNDED_FOLLOWING", "CURRENT_ROW_RANGE"})


def check_gathered(statement: Any) -> None:
    """Raises RowQueryError for what depends on the order in which rows come, as far as the text shows it."""
    for node in nodes_of(statement):
        _check_modifiers(node)
        if node.get("sample"):
            raise _unordered("a sample", "Choose rows by a condition on their values.")
        if node.get("type") == "JOIN" and node.get("ref_type") == "POSITIONAL":
            raise _unordered("a POSITIONAL JOIN", "Join by a key.")
        if node.get("class") == "FUNCTION":
            _check_aggregate(node)
        elif node.get("class") == "WINDOW":
            _check_window(node)


def depends_on_float_order(functions: frozenset[tuple[str, int]], *, floats: bool) -> bool:
    """Whether the last digits of a result may depend on it: sums of floats do. `floats`: whether the rows have some."""
    names = {name for name, _ in functions}
    return bool(names & _ALWAYS_FLOAT) or (floats and bool(names & _FLOAT_SUMS))


def _check_modifiers(node: Any) -> None:
    modifiers = {own["type"]: own for own in node.get("modifiers") or ()}
    if "ORDER_MODIFIER" in modifiers:
        return
    if "LIMIT_MODIFIER" in modifiers or "LIMIT_PERCENT_MODIFIER" in modifiers:
        raise _unordered("LIMIT or OFFSET without ORDER BY", "Write ORDER BY, by columns that tell all rows apart.")
    if (modifiers.get("DISTINCT_MODIFIER") or {}).get("distinct_on_targets"):
        raise _unordered("DISTINCT ON without ORDER BY", "Write ORDER BY, by columns that tell all rows apart.")


def _check_aggregate(node: Any) -> None:
    name = str(node["function_name"]).lower()
    if name in _NEVER:
        raise _unordered(f"`{show_name(name)}`", "Use an exact function, such as `quantile_cont`.")
    if name in _ORDERED and not (node.get("order_bys") or {}).get("orders"):
        raise _unordered(
            f"`{show_name(name)}` without ORDER BY", f"Write `{name}(... ORDER BY ...)`, or use min or max."
        )


def _check_window(node: Any) -> None:
    name = str(node["function_name"]).lower()
    if node.get("orders"):
        return
    is_whole = {node.get("start"), node.get("end")} <= _WHOLE_FRAMES
    if node["type"] != "WINDOW_AGGREGATE" or name in _ORDERED or not is_whole:
        raise _unordered(f"`{show_name(name)}` OVER without ORDER BY", "Write `OVER (... ORDER BY ...)`.")


def _unordered(found: str, hint: str) -> RowQueryError:
    return RowQueryError(
        "the result of the query would depend on the order in which rows come",
        found,
        "a query that gives the same rows whatever their order is",
        hint,
    )
