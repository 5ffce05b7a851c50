"""What DuckDB would do with a query, by EXPLAIN: whether each row goes through it by itself.

The rows must be the left-most leaf of the plan, once. DuckDB takes an Arrow stream for one row, and would put it on the
side of a join that is kept in memory: see `DISABLED_OPTIMIZERS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from headrace.model.row_query_error import not_row_wise

if TYPE_CHECKING:
    import duckdb

# Joins stay as they are written, and no plan depends on what the rows are thought to hold.
DISABLED_OPTIMIZERS: Final = "join_order,build_side_probe_side,statistics_propagation"
# How EXPLAIN calls rows that come by a stream, and those of a table.
STREAM_SCAN: Final = "PYTHON_ARROW_SCAN"
TABLE_SCAN: Final = "SEQ_SCAN"

_ROW_BY_ROW: Final = frozenset({"PROJECTION", "FILTER"})
_JOINS: Final = frozenset({"HASH_JOIN", "NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT"})
# Those that have no row but of the left side.
_PROBING: Final = frozenset({"INNER", "LEFT", "SEMI", "ANTI", "MARK", "SINGLE"})
_WORDS: Final[Mapping[str, str]] = {
    "UNGROUPED_AGGREGATE": "an aggregate",
    "HASH_GROUP_BY": "GROUP BY, DISTINCT or an aggregate",
    "PERFECT_HASH_GROUP_BY": "GROUP BY, DISTINCT or an aggregate",
    "PARTITIONED_AGGREGATE": "GROUP BY, DISTINCT or an aggregate",
    "ORDER_BY": "ORDER BY",
    "TOP_N": "ORDER BY with LIMIT",
    "LIMIT": "LIMIT",
    "STREAMING_LIMIT": "LIMIT",
    "LIMIT_PERCENT": "LIMIT",
    "WINDOW": "a window function",
    "STREAMING_WINDOW": "a window function",
    "UNION": "UNION",
    "CTE": "a part that is used more than once, or a subquery that is computed for each row",
    "RECURSIVE_CTE": "a recursive query",
    "UNNEST": "a list that becomes rows",
    "INOUT_FUNCTION": "a table function of values of the rows",
    "RESERVOIR_SAMPLE": "a sample",
    "STREAMING_SAMPLE": "a sample",
    "LEFT_DELIM_JOIN": "a subquery that is computed for each row",
    "RIGHT_DELIM_JOIN": "a subquery that is computed for each row",
}


def check_row_wise(connection: duckdb.DuckDBPyConnection, sql: str, scan: str) -> None:
    """Raises RowQueryError, with the operator, unless every row goes by itself from the `scan` to the result; and what
    DuckDB raises for the query.
    """
    answer = connection.execute(f"EXPLAIN (FORMAT json) {sql}").fetchall()
    (tree,) = json.loads(answer[0][1])
    _check(tree, scan)


def _check(node: Mapping[str, Any], scan: str) -> None:
    name, children = str(node["name"]), node["children"]
    # Without a row there is nothing to be read: `WHERE false`.
    if name in (scan, "EMPTY_RESULT"):
        return
    if name in _ROW_BY_ROW and len(children) == 1:
        _check(children[0], scan)
    elif name in _JOINS and len(children) == 2:
        kind = str(node.get("extra_info", {}).get("Join Type", "INNER"))
        if kind not in _PROBING:
            raise not_row_wise(f"{name} ({kind} JOIN: rows of the other side that match nothing come when all is read)")
        if _scans(children[1], scan):
            both = _scans(children[0], scan)
            raise not_row_wise(f"{name} ({'a join of the rows with themselves' if both else 'the rows on the right'})")
        _check(children[0], scan)
    elif not _scans(node, scan):
        raise not_row_wise(f"{name} (the rows are not read)")
    else:
        raise not_row_wise(f"{name} ({_WORDS[name]})" if name in _WORDS else name)


def _scans(node: Mapping[str, Any], scan: str) -> bool:
    return node["name"] == scan or any(_scans(child, scan) for child in node["children"])
