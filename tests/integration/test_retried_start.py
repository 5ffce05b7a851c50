"""`retry` when the connection is lost before the first row: while a run connects, and while it plans."""

from __future__ import annotations

import pytest

from tests.integration.driver import Ended
from tests.integration.postgres import PostgresProject
from tests.integration.proxy import Proxy

ROWS = 50
HEAD = """\
headrace: 1
package: started
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64}]}
streams: 1
tasks:
"""
FLOW = (
    "{{{settings}data_flow: {{sources: {{rows: {{connection: inbox, files: orders.csv, layout: orders}}}}, "
    "destinations: {{loaded: {{input: rows, connection: warehouse, table: orders, target: append}}}}}}}}"
)
RETRY = "retry: {times: 3, wait_seconds: 0}, "
# The late one is planned when its list is known.
EARLY = "  load: {flow}\n"
LATE = (
    "  names: {{set: {{list: \"['a']\"}}}}\n"
    "  turns: {{after: names, foreach: {{in: {{expr: list}}, item: turn, tasks: {{load: {flow}}}}}}}\n"
)
VARIABLES = "variables:\n  list: {type: list}\ntasks:\n"


def run(warehouse: PostgresProject, proxy: Proxy, kind: str, settings: str = RETRY) -> Ended:
    # One connection for each try: none that asks for TLS first.
    url = warehouse.target.url.replace(f":{warehouse.target.cluster.port}", f":{proxy.port}")
    warehouse.url = f"{url}{'&' if '?' in url else '?'}sslmode=disable"
    head = HEAD.replace("tasks:\n", VARIABLES)
    warehouse.package(head + {"early": EARLY, "late": LATE}[kind].format(flow=FLOW.format(settings=settings)))
    warehouse.file("orders.csv", "".join(f"{number}\n" for number in range(ROWS)))
    return warehouse.run()


def check(warehouse: PostgresProject, ended: Ended) -> None:
    ended.succeeded()
    assert warehouse.query("SELECT count(*), count(DISTINCT id) FROM orders") == [(str(ROWS), str(ROWS))]
    assert len([event for event in warehouse.events() if event["event"] == "run_started"]) == 1
    assert warehouse.leftovers() == []


def tries(warehouse: PostgresProject) -> int:
    return sum("tried again in" in str(event.get("text")) for event in warehouse.events())


@pytest.mark.parametrize("kind", ["early", "late"])
@pytest.mark.parametrize("refused", [1, 3])
def test_a_server_that_is_not_there_yet(warehouse: PostgresProject, kind: str, refused: int) -> None:
    with Proxy(warehouse.target.cluster.port, refused=refused) as proxy:
        check(warehouse, run(warehouse, proxy, kind))
    assert tries(warehouse) == refused


@pytest.mark.parametrize("kind", ["early", "late"])
@pytest.mark.parametrize("settings", ["", RETRY], ids=["no_retry", "too_few"])
def test_no_more_tries_than_are_said(warehouse: PostgresProject, kind: str, settings: str) -> None:
    with Proxy(warehouse.target.cluster.port, refused=1 if not settings else 4) as proxy:
        ended = run(warehouse, proxy, kind, settings)
    assert (ended.exit_code, ended.summary["error"]["retryable"]) == (1, True)
    assert tries(warehouse) == (3 if settings else 0)


@pytest.mark.parametrize("kind", ["early", "late"])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
def test_a_connection_that_is_cut(warehouse: PostgresProject, kind: str, share: float) -> None:
    """At any moment up to the first row, and while it travels."""
    with Proxy(warehouse.target.cluster.port) as proxy:
        check(warehouse, run(warehouse, proxy, kind))
    warehouse.execute("DROP TABLE orders")
    with Proxy(warehouse.target.cluster.port, int(proxy.bytes_sent * share)) as cut:
        ended = run(warehouse, cut, kind)
    check(warehouse, ended)
    assert tries(warehouse) == 1
