"""Data flows with several destinations among other tasks: order, loops, turns that are resumed, tries, choices."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.integration.driver import Ended, Project
from tests.integration.several_scenes import PARTED, accounts, package, write_files

ROWS = 60
PLAIN = """
  {name}:
    {after}data_flow:
      rejects: {{limit: 0}}
      sources: {{orders: {{connection: inbox, files: "{files}", layout: orders}}}}
      destinations: {{{name}: {{input: orders, connection: warehouse, table: {name}, target: {target}}}}}
"""
LOOP = "  each:\n    foreach:\n      in: {values}\n      item: part\n      tasks:\n"


@pytest.fixture
def orders(project: Project) -> Project:
    write_files(project, ROWS)
    return project


def plain(name: str, after: str = "", files: str = "orders.*", target: str = "replace") -> str:
    """A data flow with one destination."""
    clause = f"after: {after}\n    " if after else ""
    return PLAIN.format(name=name, after=clause, files=files, target=target).lstrip("\n")


def parts(text: str) -> tuple[str, str]:
    """What is in front of the tasks, and the flow with several destinations."""
    head, _, flow = text.partition("tasks:\n")
    return f"{head}tasks:\n", flow


def looped(flow: str, values: str) -> str:
    """The flow for each of these files, into tables of the same names."""
    inner = "".join(f"      {line}\n" for line in flow.replace("orders.*", "orders.${part}").splitlines())
    return LOOP.format(values=values) + inner


def started(project: Project) -> list[str]:
    """Data flows in the order of their start."""
    return [event["task"] for event in project.events() if event["event"] == "task_started"]


def tables(ended: Ended) -> dict[str, Any]:
    return {table["task"]: table for table in ended.summary["tables"]}


def test_plain_flows_behind_it_beside_it_and_before_it(orders: Project) -> None:
    """It is settled once for all of its ways, and waits for what the plan has before it."""
    head, flow = parts(package())
    orders.package(f"{head}{plain('early')}{flow}    after: early\n{plain('more', 'load')}{plain('beside')}")
    ended = orders.run()
    ended.succeeded()
    order = started(orders)
    assert sorted(order) == ["beside", "early", "load/one", "load/two", "more"]
    assert order.index("early") < order.index("load/one") < order.index("load/two") < order.index("more")
    assert set(accounts(ended).values()) == {(ROWS, ROWS, 0, 0)}
    # What the plan of the second one has from the first is there: one of its tables.
    again = plain("one", "load", target="append").replace("  one:", "  again:", 1)
    orders.package(f"{head}{plain('early')}{flow}    after: early\n{again}")
    orders.run().succeeded()
    assert orders.query("SELECT count(*) FROM one") == [(2 * ROWS,)]


def test_it_waits_for_flows_that_the_plan_has_before_it(orders: Project) -> None:
    """Nothing but the plan says that the plain flow makes the table to which the other one appends."""
    head, flow = parts(package().replace("target: replace", "target: append"))
    orders.package(f"{head}{plain('one', target='create').replace('  one:', '  first:', 1)}{flow}")
    orders.run().succeeded()
    assert orders.query("SELECT count(*) FROM one") == [(2 * ROWS,)]


def test_behind_a_loop_and_behind_one_that_fails(orders: Project) -> None:
    head, flow = parts(package())
    append = flow.replace("target: replace", "target: append")
    orders.package(head + looped(append, '["1", "2"]') + plain("more", "each"))
    ended = orders.run()
    ended.succeeded()
    assert started(orders)[-1] == "more"
    assert ended.summary["rows_read"] == 2 * ROWS
    (orders.inbox / "orders.bad").write_text("x|1|1.00|bad\n")
    failing = flow.replace("orders.*", "orders.bad")
    orders.package(f"{head}{failing}{plain('more', '{load: completion}', 'orders.1')}{plain('never', 'load')}")
    ended = orders.run()
    assert ended.exit_code == 1
    assert started(orders) == ["load/one", "load/two", "more"]
    assert tables(ended)["more"]["rows_loaded"] == ROWS // 3


@pytest.mark.parametrize("names", [("one",), ("one", "two")])
def test_a_resumed_loop_over_secret_values_loads_the_turn_that_is_left(orders: Project, names: tuple[str, ...]) -> None:
    """The names of its turns differ in secrets alone."""
    head, flow = parts(package(destinations=dict.fromkeys(names, "orders")))
    flow = flow.replace("target: replace", "target: append")
    orders.package(head + looped(flow, '["${env:FIRST}", "${env:SECOND}"]'))
    for name in ("1", "2"):
        (orders.inbox / f"orders.{name}").rename(orders.inbox / f"orders.hidden-{name}")
    values = {"FIRST": "hidden-1", "SECOND": "hidden-2"}
    (orders.inbox / "orders.hidden-2").write_text("-1|1|1.00|bad\n")
    columns = "id BIGINT, customer INTEGER, amount DECIMAL(9,2), note VARCHAR"
    orders.execute(f"CREATE TABLE one ({columns}, CHECK (id >= 0))")
    assert orders.run(environment=values).exit_code == 1
    assert orders.query("SELECT count(*) FROM one") == [(ROWS // 3,)]
    orders.execute(
        "CREATE TABLE kept AS FROM one", "DROP TABLE one", f"CREATE TABLE one ({columns})", "INSERT INTO one FROM kept"
    )
    ended = orders.command(orders.resume_command(), values)
    ended.succeeded()
    for name in names:
        assert orders.query(f"SELECT count(*), min(id) FROM {name}") == [(ROWS // 3 + 1, -1)]
    assert "hidden" not in json.dumps(ended.summary)
    assert ended.summary["rows_read"] == ROWS // 3 + 1


@pytest.mark.parametrize(("choice", "loaded"), [("--skip", {"early", "more"}), ("--from", {"load", "more"})])
def test_tasks_may_be_chosen_around_it(orders: Project, choice: str, loaded: set[str]) -> None:
    head, flow = parts(package())
    orders.package(f"{head}{plain('early')}{flow}    after: early\n{plain('more', 'load')}")
    ended = orders.run(choice, "load")
    ended.succeeded()
    assert {name.partition("/")[0] for name in tables(ended)} == loaded


def test_a_reject_limit_in_percent_counts_rows_once(orders: Project) -> None:
    """Six of 61 rows, which are 9.8 percent, however many destinations read them."""
    columns = "id BIGINT, customer INTEGER NOT NULL, amount DECIMAL(9,2), note VARCHAR"
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    bad = 1 + len(range(0, ROWS, 13))
    for percent, code in ((9.5, 1), (10, 0)):
        orders.execute(f"CREATE OR REPLACE TABLE two ({columns})")
        orders.package(package().replace('{limit: "${limit}"}', f"{{percent: {percent}}}"))
        ended = orders.run("--streams", "1")
        assert (bad, ended.exit_code) == (6, code), ended.stderr
    assert (ended.summary["rows_rejected"], ended.summary["rows_read"]) == (bad, ROWS + 1)


def strict(project: Project) -> Ended:
    """Rows of which one destination refuses some, and the other one none."""
    columns = "id BIGINT, customer INTEGER NOT NULL, amount DECIMAL(9,2), note VARCHAR"
    project.execute(f"CREATE TABLE strict ({columns})")
    project.package(package(destinations={"all_of_them": "orders", "strict": "orders"}))
    return project.run("--set", "limit=100")


def test_rejects_are_found_by_the_name_of_any_of_its_tables(orders: Project) -> None:
    strict(orders).succeeded()
    bad = len(range(0, ROWS, 13))
    headrace = [sys.executable, "-m", "headrace", "rejects", "--runs-dir", "runs", "last"]
    for name in ("strict", "all_of_them", "load/strict", "load"):
        ended = orders.command([*headrace, "--table", name, "--json"])
        (table,) = json.loads(ended.stdout)["tables"]
        assert (table["flow_of"], table["rejected"], table["by_rule"]) == ("load", bad, {"null_not_allowed": bad}), name
    shown = " ".join(orders.command([*headrace, "--table", "strict"]).stdout.split())
    assert "by all destinations of `load`" in shown
    wrong = orders.command([*headrace, "--table", "strict", "--rule", "length"])
    assert "--rule with" in " ".join(wrong.stderr.split())


def test_a_resumed_run_tells_the_sums_of_the_first_attempt(orders: Project) -> None:
    """The first destination alone has other ones: it filters what another one gets."""
    text = package(PARTED, {name: f"parted.{name}" for name in ("small", "big", "odd", "rest")})
    bad = "  bad:\n    after: load\n    sql: {connection: warehouse, text: FROM nothing}\n"
    orders.package(text + bad)
    (orders.inbox / "orders.3").write_text("x|1|1.00|bad\n")
    failed = orders.run("--set", "limit=5")
    orders.execute("CREATE TABLE nothing (n INT)")
    ended = orders.resume()
    ended.succeeded()
    names = ("rows_read", "rows_filtered", "rows_rejected", "rows_loaded")
    assert [ended.summary[name] for name in names] == [failed.summary[name] for name in names] == [61, 0, 1, 60]
    assert ended.summary["tables"][0]["shared"] == failed.summary["tables"][0]["shared"]


def test_files_are_told_of_once(orders: Project) -> None:
    """Their size is that of one pass, and what is odd about them is said for the first destination."""
    (orders.inbox / "orders.3").write_bytes(b"61|1|1.00|a\r\n62|1|1.00|b\n")
    orders.package(package())
    orders.run().succeeded()
    begun = [event for event in orders.events() if event["event"] == "task_started"]
    size = sum(path.stat().st_size for path in orders.inbox.glob("orders.*"))
    assert [(event["flow_of"], event["bytes_total"]) for event in begun] == [("load", size), ("load", 0)]
    assert sum("lines end in two ways" in str(event) for event in orders.events()) == 1


def test_two_names_of_one_table(orders: Project) -> None:
    """By the default schema, and in upper and lower case; also of a flow that is planned when it starts."""
    head, flow = parts(package())
    before = "  before:\n    sql: {connection: warehouse, text: CREATE TABLE IF NOT EXISTS other (n INT)}\n"
    for name in ("main.one", "ONE"):
        own = flow.replace("table: two", f"table: {name}")
        for text in (f"{head}{own}", f"{head}{before}{own}    after: before\n"):
            orders.package(text)
            error = orders.run().error
            assert "the destinations `one` and `two` load the same table" in " ".join(error.split()), error


def test_rows_are_not_appended_again_because_a_task_before_is_done_anew(orders: Project) -> None:
    head, flow = parts(package().replace("target: replace", "target: append"))
    before = "  before:\n    sql: {connection: warehouse, text: FROM nothing}\n"
    orders.package(f"{head}{before}{flow}    after: {{before: completion}}\n")
    assert orders.run().exit_code == 1
    assert orders.query("SELECT count(*) FROM one") == [(ROWS,)]
    orders.execute("CREATE TABLE nothing (n INT)")
    ended = orders.resume()
    assert ended.exit_code == 1
    assert "has appended rows, and would append them again" in " ".join(ended.error.split())
    assert orders.query("SELECT count(*) FROM one") == [(ROWS,)]
