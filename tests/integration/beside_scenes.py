"""The package of `apart_scenes` with one more source, whose rows come together with the orders; beside that join or
union the customers meet nobody.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from tests.integration import apart_scenes
from tests.integration.apart_scenes import ORDERS, order
from tests.integration.driver import Ended, Project
from tests.integration.join_scenes import rows_of
from tests.integration.tables import as_text

Kind = Literal["join", "union"]
LINES, LATER = 4_000, 1_000
OF_CUSTOMERS = ("big", "small")
_LAYOUTS = """
  lines:
    delimiter: ";"
    columns: [{name: order_id, type: int64, nullable: false}, {name: part, type: "varchar(9)"}]
"""
_SOURCES: Final = {
    "join": 'lines: {connection: inbox, files: "lines.*", layout: lines}',
    "union": 'later: {connection: inbox, files: "later.*", layout: orders}',
}
_TOGETHER: Final = {
    "join": "met: {join: {left: orders, right: lines, on: {id: order_id}, right_columns: [part]}}",
    "union": "met: {union: {sources: [orders, later]}}",
}
_FACTS: Final = {
    "join": "SELECT o.*, part FROM orders o JOIN lines ON id = order_id",
    "union": "FROM orders UNION ALL FROM later",
}
_DESTINATION = '        facts: {input: met, connection: warehouse, table: facts, target: "${target}"}\n'
_VIEWS = """,
lines AS (SELECT * FROM read_csv('{inbox}/lines.*', delim=';', header=false, columns={{
    'order_id': 'BIGINT', 'part': 'VARCHAR'}})),
later AS (SELECT * FROM read_csv('{inbox}/later.*', delim=',', header=true, columns={{
    'id': 'BIGINT', 'status': 'VARCHAR', 'total': 'DECIMAL(9,2)', 'day': 'DATE'}}))
"""


def package(kind: Kind, *, bare: bool = False, archived: tuple[str, ...] = (), text: str = apart_scenes.PACKAGE) -> str:
    """`bare`: without tables of the orders alone; `archived`: tables in another place."""
    text = text.replace("  names: {delim", f"{_LAYOUTS[1:]}  names: {{delim")
    text = text.replace("        customers: {conn", f"        {_SOURCES[kind]}\n        customers: {{conn")
    text = text.replace("        parted:", f"        {_TOGETHER[kind]}\n        parted:") + _DESTINATION
    if bare:
        begin, end = text.index("        named:"), text.index("        met:")
        text = text[:begin] + text[end:]
        text = "".join(
            line
            for line in text.splitlines(True)
            if not line.strip().startswith(("open:", "strays:", "orders: {input"))
        )
    for name in archived:
        text = text.replace(f"connection: warehouse, table: {name},", f"connection: archive, table: {name},")
    return text


def write_files(project: Project, kind: Kind, **more: Any) -> None:
    """Beside those of `apart_scenes` what the orders come together with: one file."""
    apart_scenes.write_files(project)
    project.package(package(kind, **more))
    if kind == "join":
        # Every third order has no line, and some lines have no order.
        numbers = sorted([*(own for own in range(ORDERS) if own % 3), *range(ORDERS, ORDERS + 500)])[: LINES + 500]
        project.file("lines.1", "".join(f"{number};part {number % 90}\n" for number in numbers))
    else:
        project.file("later.1", "id,status,total,day\n" + "".join(map(order, range(7_000, 7_000 + LATER))))


def wanted(project: Project, kind: Kind, *, bare: bool = False) -> dict[str, Any]:
    """The rows of each table, by plain SQL."""
    queries = {name: query for name, query in apart_scenes.WANTED.items() if name in OF_CUSTOMERS or not bare}
    text = apart_scenes.VIEWS + _VIEWS
    views = text.format(inbox=project.inbox, plain=apart_scenes.PLAIN)
    if kind == "join":
        views = views[: views.rindex("\nlater")].rstrip(",")
    else:
        views = views[: views.rindex("\nlines")] + views[views.rindex("\nlater") :]
    return {name: as_text(rows_of(f"{views} {query}")) for name, query in (queries | {"facts": _FACTS[kind]}).items()}


def balanced(ended: Ended, kind: Kind, rejects: int = 0) -> dict[str, Any]:
    """The tables of a run, each of which has the account of its own sources, and the run that of all."""
    summary = ended.succeeded()
    tables = {own["table"]: own for own in summary["tables"]}
    for name in OF_CUSTOMERS:
        own = tables[name]
        assert own["rows_read"] == own["rows_loaded"] + own["rows_filtered"] + own["rows_rejected"], own
        assert not {"union", "join"} & own.keys()
        assert own["rows_read"] == tables["big"]["rows_read"]
    facts = tables["facts"]
    if kind == "join":
        read = sum(facts["join"][side]["rows"] for side in ("left", "right"))
        assert facts["join"]["rows_out"] == facts["rows_loaded"] > 1000
    else:
        assert [own["source"] for own in facts["union"]["sources"]] == ["orders", "later"]
        assert facts["rows_read"] == facts["rows_loaded"] + facts["rows_rejected"]
        read = sum(own["rows_read"] for own in facts["union"]["sources"])
    assert summary["rows_read"] == facts["rows_read"] + tables["big"]["rows_read"]
    assert rejects or read == facts["rows_read"]
    assert summary["rows_rejected"] == rejects
    return tables
