"""Rejects of a task that is tried again: the folder holds those of the last try alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import Ended
from tests.integration.postgres import PostgresProject

HEAD = """\
headrace: 1
package: retried
parameters:
  times: {type: integer, default: 3}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64}, {name: amount, type: int32}]}
tasks:
"""
RETRY = 'retry: {times: "${times}", wait_seconds: 0, factor: 1}'
ROWS = "".join(f"{number},{number}\n" for number in range(1, 101))
BAD = "x,1\n1,y\n2,\n"  # two rejects
# As a server that ends the first transactions in favour of another one.
REFUSE = """
CREATE SEQUENCE tries;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF nextval('tries') <= {count} THEN RAISE EXCEPTION 'not yet' USING ERRCODE = '40001'; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER refuse AFTER INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION refuse();
"""


def flow(transforms: str = "", input: str = "rows", more: str = "", retry: str = RETRY) -> str:
    """The settings of a task; `more`: further destinations."""
    return (
        f"{{{retry}, data_flow: {{rejects: {{limit: 10}}, "
        'sources: {rows: {connection: inbox, files: "orders.csv", layout: orders}}, '
        f"transforms: {{{transforms}}}, "
        f"destinations: {{loaded: {{input: {input}, connection: warehouse, table: orders, target: append}}{more}}}}}}}"
    )


QUERY = "all: {input: rows, sql: 'SELECT id, max(amount) AS amount FROM rows GROUP BY id'}"
FLOWS = {
    "planned_before": f"  load: {flow()}\n",
    "turn_that_is_known": f"  turns: {{foreach: {{in: [1], item: turn, tasks: {{load: {flow()}}}}}}}\n",
    "planned_late": '  turns: {foreach: {query: {connection: warehouse, text: "SELECT 1 AS n"}, as: {n: integer}, '
    f"tasks: {{load: {flow()}}}}}}}\n",
    "several": "  load: "
    + flow(more=", others: {input: rows, connection: warehouse, table: others, target: replace}")
    + "\n",
    "query_over_all_rows": f"  load: {flow(QUERY, 'all')}\n",
}


def make(warehouse: PostgresProject, tasks: str, refused: int = 1) -> None:
    warehouse.package(HEAD + tasks)
    warehouse.file("orders.csv", ROWS + BAD)
    warehouse.execute("CREATE TABLE orders (id bigint, amount int)")
    warehouse.target.psql(REFUSE.format(count=refused))


def tries(warehouse: PostgresProject) -> int:
    return sum("is tried again" in str(event) for event in warehouse.events())


def check_folder(summary: dict[str, Any]) -> None:
    """The folder has the files that the summary names, and as many rejects as it counts."""
    folder = Path(summary["run_folder"]) / "rejects"
    named = {Path(path).name for table in summary["tables"] for path in table["rejects"].get("files", ())}
    there = {path.name for path in folder.iterdir() if path.suffix in (".jsonl", ".bad")} if folder.exists() else set()
    assert there == named
    lines = sum(len((folder / name).read_text().splitlines()) for name in there if name.endswith(".jsonl"))
    assert lines == summary["rows_rejected"]


@pytest.mark.parametrize("kind", FLOWS)
def test_a_later_try_leaves_the_rejects_of_one_alone(warehouse: PostgresProject, kind: str) -> None:
    make(warehouse, FLOWS[kind])
    summary = warehouse.run().succeeded()
    assert (tries(warehouse), summary["rows_rejected"]) == (1, 2)
    check_folder(summary)


@pytest.mark.parametrize("kind", FLOWS)
def test_behind_all_tries_a_resumed_run_does_so_too(warehouse: PostgresProject, kind: str) -> None:
    make(warehouse, FLOWS[kind], refused=3)
    failed = warehouse.run(times=1)
    assert (failed.exit_code, failed.summary["error"]["retryable"]) == (1, True), failed.stderr
    check_folder({**failed.summary, "rows_rejected": 2})
    summary = warehouse.resume().succeeded()
    assert summary["rows_rejected"] == 2
    check_folder(summary)


def keyed(warehouse: PostgresProject, more: str) -> Ended:
    """A load whose rejects depend on rows of a lookup, which come between two tries."""
    lookup = "lookup: {connection: warehouse, table: known, on: {id: id}, add: {known: amount}, no_match: reject}"
    columns = "named: {input: keyed, sql: 'SELECT id, known AS amount FROM keyed'}"
    text = flow(f"keyed: {{input: rows, {lookup}}}, {columns}", "named", retry=f"{RETRY}{more}")
    warehouse.package(f"{HEAD}  load: {text}\n")
    warehouse.file("orders.csv", ROWS)
    warehouse.execute(
        "CREATE TABLE orders (id bigint, amount int)",
        "CREATE TABLE known AS SELECT n::bigint AS id, n::int AS amount FROM generate_series(3, 100) AS n",
    )
    warehouse.target.psql(REFUSE.format(count=1))
    return warehouse.run()


def test_a_try_without_rejects_leaves_none(warehouse: PostgresProject) -> None:
    text = "INSERT INTO known VALUES (1, 1), (2, 2)"
    handler = f', on: {{error: {{tasks: {{fill: {{sql: {{connection: warehouse, text: "{text}"}}}}}}}}}}'
    summary = keyed(warehouse, handler).succeeded()
    assert (tries(warehouse), summary["rows_rejected"], summary["rows_loaded"]) == (1, 0, 100)
    check_folder(summary)
