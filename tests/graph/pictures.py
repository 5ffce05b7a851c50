"""The packages whose pictures are compared, and graphs that no package of this version has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headrace.graph import Box, Graph, graph_of
from headrace.graph.flows import flow_parts
from headrace.model import load_package

ROOT: Final = Path(__file__).parents[2]
ALL_KINDS: Final = Path(__file__).parent / "packages" / "all_kinds.yaml"
PACKAGES: Final = {
    "tpch": (ROOT / "examples/tpch/load.yaml", ["data=data"]),
    "nightly": (ROOT / "examples/nightly/nightly.yaml", []),
    "all_kinds": (ALL_KINDS, []),
}
# Texts that would be something else than texts.
HOSTILE: Final = (
    "end",
    "subgraph x",
    '"quoted"',
    "a]b)c}",
    '%%{init: {"theme":"dark"}}%%',
    "<script>alert(1)</script>",
    "日本語 ünï 🚚",
    "#quot;",
    "`code`",
    "a --> b",
    "x; y",
    "click n1",
    "line\nbreak\ttab\x1b[31m",
    "\\n",
    "|p|",
    "]]>",
    "&amp;",
    "DO $$ BEGIN x^2 END $$",
    "$$$",
    "fa:fa-car",
    "word" * 40,
    "",
)
# What a data flow of a later version may say.
LATER_FLOW: Final = {
    "rejects": {"limit": 100},
    "sources": {
        "lines": {"connection": "inbox", "files": "lineitem.tbl.*", "layout": "lineitem"},
        "orders": {"connection": "inbox", "files": "orders.tbl.*", "layout": "orders"},
    },
    "transforms": {
        "joined": {"merge_join": {"left": "orders", "right": "lines", "on": {"o_orderkey": "l_orderkey"}}},
        "part": {
            "input": "joined",
            "lookup": {
                "connection": "warehouse",
                "table": "dim_part",
                "on": {"l_partkey": "p_partkey"},
                "add": {"part_sk": "sk"},
                "no_match": {"default": -1},
            },
        },
        "supplier": {
            "input": "part",
            "lookup": {"connection": "inbox", "files": "supplier.csv", "on": {"a": "b"}, "add": ["sk"]},
        },
        "priced": {"input": "supplier", "sql": "SELECT *, price * quantity AS amount FROM supplier"},
        "routed": {"input": "priced", "split": {"big": "amount > 10000", "rest": "else"}},
    },
    "destinations": {
        "sales": {"input": "routed.rest", "connection": "warehouse", "table": "sales", "target": "replace"},
        "audit": {"input": "routed.big", "connection": "warehouse", "table": "sales_audit", "target": "append"},
    },
}


def graph(name: str) -> Graph:
    """The graph of one of the packages."""
    path, sets = PACKAGES[name]
    return graph_of(load_package(path, sets=sets, environ={}))


def later_graph() -> Graph:
    """A package with the flow of a later version."""
    boxes, lines = flow_parts("build", LATER_FLOW, ())
    return Graph(
        Box("", "package", "sales", boxes=(Box("build", "flow", "build", "data flow", (), boxes=boxes, lines=lines),))
    )
