"""Whether a query can be divided, as its plan shows it: pure functions over what EXPLAIN says.

A query is divided by the rows of a table if its result over all of them is that over some of them and that over the
others, taken together: nothing above the scan may look at several rows of it. It is divided by a column of its result
if the condition is asked before anything is done that costs, and each part would see the same rows of everything else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

Node = Mapping[str, Any]
# Schema and name.
TableKey = tuple[str, str]

# Joins that keep, of the rows of a side, each with all that it finds: by type, the sides of which that is true.
_KEEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Inner": ("Outer", "Inner"),
    "Left": ("Outer",),
    "Right": ("Inner",),
    "Semi": ("Outer",),
    "Anti": ("Outer",),
    "Right Semi": ("Inner",),
    "Right Anti": ("Inner",),
}
# What looks at one row after the other, or gives rows on as they are.
_ROW_WISE: Final = frozenset(
    {
        "Nested Loop", "Hash Join", "Merge Join", "Hash", "Sort", "Incremental Sort", "Materialize", "Memoize",
        "Result", "Subquery Scan", "ProjectSet",
    }
)  # fmt: skip
_WHY_NOT: Final[Mapping[str, str]] = {
    "Aggregate": "an aggregate, GROUP BY or DISTINCT over it needs all its rows",
    "Group": "a GROUP BY over it needs all its rows",
    "Unique": "a DISTINCT over it needs all its rows",
    "WindowAgg": "a window function over it needs all its rows",
    "SetOp": "INTERSECT or EXCEPT over it needs all its rows",
    "Recursive Union": "a recursive query goes over it",
}
# Members of which each reads some of the rows: tables of a divided one, or sides of a UNION.
_SIDE_BY_SIDE: Final = frozenset({"Append", "Merge Append"})
_OTHER_SIDE: Final = "it is one side of a UNION, whose other side every part would give again"
# What may take other rows in each session, wherever it stands.
_ARBITRARY: Final[Mapping[str, str]] = {
    "Limit": "LIMIT takes the rows that come first, and these may be others in each part",
    "WindowAgg": "a window function numbers rows in an order that may be another one in each part",
    "Sample Scan": "TABLESAMPLE takes other rows in each part",
    "Foreign Scan": "a foreign table shows another moment to each part",
}
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'")
# The lower bound that the plan of a part has; names of columns may end so, too: `productid`.
_RANGE: Final = re.compile(r"\bctid >= '\(0,0\)'")
_OF_TRANSACTION: Final = re.compile(
    r"\b(?:now|transaction_timestamp|statement_timestamp|txid_current\w*|pg_current_\w+|pg_backend_pid)\(|"
    r"\b(?:CURRENT_DATE|CURRENT_TIME|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP)\b"
)
_MEMORY_NODES: Final = frozenset({"Hash", "Sort", "Aggregate", "Materialize", "Memoize"})


def why_not_same(plan: Node, query_name: str) -> str | None:
    """Why parts of the query would not see the same; None if they do. `query_name`: the name that the query has as a
    CTE, which the server keeps apart if it calls volatile functions.
    """
    for node in nodes(plan):
        kind = str(node.get("Node Type"))
        if kind == "CTE Scan" and node.get("CTE Name") == query_name:
            return "it calls a volatile function, such as random() or nextval(), or locks rows"
        if kind in _ARBITRARY:
            return _ARBITRARY[kind]
        for text in _texts(node):
            said = _OF_TRANSACTION.search(_LITERAL.sub("''", text))
            if said is not None:
                return f"{said[0].rstrip('(')} is another one in each part: bind it, with `$name` of a variable"
    return None


def why_not_by_table(plan: Node, tables: Collection[TableKey]) -> str | None:
    """Why the query is not row-wise in a table that it is given a range of; None if it is. `tables`: schemas and names
    of those in which its rows are: the table itself, or the tables into which it is divided.
    """
    paths = [path for path in _paths(plan) if _is_of(path[-1], tables)]
    if not paths:
        return "no statement reads it: the table is not in the plan"
    times = _times_read(plan, tables)
    if times > 1:
        return f"it is read {times} times"
    if not all(_RANGE.search(f"{path[-1].get('TID Cond', '')} {path[-1].get('Filter', '')}") for path in paths):
        return "the query does not read it by this name: write it in FROM as in `by`, outside of views"
    found = (
        _why_not_row_wise(above, str(below.get("Parent Relationship")), tables)
        for path in paths
        for above, below in pairwise(path)
    )
    return next((reason for reason in found if reason is not None), None)


def tables_read(plan: Node, tables: Collection[TableKey]) -> Collection[TableKey]:
    """Which of these tables a plan reads."""
    return {(str(node["Schema"]), str(node["Relation Name"])) for node in nodes(plan) if _is_of(node, tables)}


def relations_read(plan: Node) -> Counter[TableKey]:
    """How often a plan reads each table."""
    read = ((node.get("Schema"), node.get("Relation Name")) for node in nodes(plan))
    return Counter((str(schema), str(name)) for schema, name in read if name is not None)


def why_not_by_column(plan: Node, function: str) -> str | None:
    """Why each part would do the work of all; None if it does not. `function`: of the condition of the part alone."""
    for node in nodes(plan):
        kind = str(node.get("Node Type"))
        if function in str(node.get("Filter", "")) and kind in ("Aggregate", "Group", "Subquery Scan", "CTE Scan"):
            return "its value is known only behind a GROUP BY, DISTINCT or subquery, so each part would do all the work"
    return None


def has_no_rows(plan: Node) -> bool:
    """Whether the server knows, without looking, that there are none."""
    return plan.get("Node Type") == "Result" and plan.get("One-Time Filter") == "false"


def memory_nodes(plan: Node) -> int:
    """How many operators of a plan may take `work_mem` each."""
    return sum(str(node.get("Node Type")) in _MEMORY_NODES for node in nodes(plan))


def nodes(plan: Node) -> Iterator[Node]:
    """All nodes, the upper ones first."""
    for path in _paths(plan):
        yield path[-1]


def _paths(plan: Node, above: Sequence[Node] = ()) -> Iterator[Sequence[Node]]:
    path = (*above, plan)
    yield path
    for child in plan.get("Plans", ()):
        yield from _paths(child, path)


def _times_read(node: Node, tables: Collection[TableKey]) -> int:
    """How many different rows of the table may come together: of members that stand side by side, those of one."""
    children = [_times_read(child, tables) for child in node.get("Plans", ())]
    together = max if node.get("Node Type") in _SIDE_BY_SIDE else sum
    return int(_is_of(node, tables)) + (together(children) if children else 0)


def _why_not_row_wise(above: Node, side: str, tables: Collection[TableKey]) -> str | None:
    kind = str(above.get("Node Type"))
    if side in ("InitPlan", "SubPlan"):
        return "a subquery reads it, whose answer depends on all its rows"
    if kind in _SIDE_BY_SIDE:
        members = [child for child in above.get("Plans", ()) if child.get("Parent Relationship") == "Member"]
        return None if all(_times_read(member, tables) for member in members) else _OTHER_SIDE
    if kind not in _ROW_WISE:
        return _WHY_NOT.get(kind, f"the plan has {kind} above it")
    join = above.get("Join Type")
    if join is None or side in _KEEPS.get(str(join), ()):
        return None
    if join in ("Semi", "Right Semi", "Anti", "Right Anti"):
        return "it is only looked up, by IN, EXISTS or the like: rows would be found in several parts"
    return f"it is on a side of an outer join ({join}) of which rows may be missing"


def _is_of(node: Node, tables: Collection[TableKey]) -> bool:
    return (node.get("Schema"), node.get("Relation Name")) in tables


def _texts(node: Node) -> Iterator[str]:
    """All that the server writes of a node, in whatever of its expressions."""
    for name, value in node.items():
        if name != "Plans":
            yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))
