"""Control flow over real destinations: time limits, tries behind a lost session or a lock, two runs at once, and a long
loop that is killed. Nothing is lost, nothing is there twice, and who comes later can load.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.integration.control_flow import TARGETS
from tests.integration.driver import Ended, Project, Running
from tests.integration.postgres import PostgresProject
from tests.patience import FOR_EVER_SECONDS, HANG_SECONDS
from tests.servers.cluster import Cluster

ROWS = 100
# Two runs that load so many rows meet.
LONG = 300_000
TURNS = 100
LIMIT_SECONDS = 1.5
HEAD = """\
headrace: 1
package: targets
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64}]}
"""
RETRY = "retry: {times: 3, wait_seconds: 0.5, factor: 1}"
CREATE = "CREATE TABLE orders (id bigint)"


def flow(files: str = "orders.csv", target: str = "append", table: str = "orders") -> str:
    """A data flow, as the last setting of a task."""
    return (
        f'data_flow: {{sources: {{rows: {{connection: inbox, files: "{files}", layout: orders}}}}, '
        f"destinations: {{loaded: {{input: rows, connection: warehouse, table: {table}, target: {target}}}}}}}"
    )


def numbers(count: int, first: int = 1) -> str:
    """A file of so many rows."""
    return "".join(f"{number}\n" for number in range(first, first + count))


def counted(project: Project, table: str = "orders") -> tuple[int, int]:
    """Rows, and how many of them are different."""
    rows = project.query(f"SELECT count(*), count(DISTINCT id) FROM {table}")
    return int(rows[0][0] or 0), int(rows[0][1] or 0)


def task_errors(ended: Ended) -> dict[str, str]:
    """The kinds of the errors of all tasks that failed."""
    return {task["task"]: task["error"]["kind"] for task in ended.summary["tasks"] if task["error"]}


def tries(project: Project, task: str) -> int:
    """How often a task was tried again, by the notices of the run."""
    return sum("is tried again" in str(event) and event.get("task") == task for event in project.events())


def seconds_of(project: Project, task: str) -> float:
    """How long a task took."""
    finished = [event for event in project.events() if event["event"] == "task_finished" and event["task"] == task]
    return max(float(event["seconds"]) for event in finished)


@contextmanager
def locked_until_a_try_failed(project: PostgresProject) -> Iterator[Running]:
    """A run whose task `load` finds its table locked until its first try has failed."""
    with ExitStack() as commands:
        with project.target.session("BEGIN; LOCK TABLE orders IN SHARE MODE"):
            running = commands.enter_context(project.started(project.arguments()))
            deadline = time.monotonic() + HANG_SECONDS
            while running.poll() is None and not tries(project, "load"):
                assert time.monotonic() < deadline, running.stderr
                time.sleep(0.02)
        yield running


@pytest.fixture(params=TARGETS)
def project(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[Project]:
    """On each destination, with a file to load."""
    folder = tmp_path / "project"
    folder.mkdir()
    with ExitStack() as stack:
        is_postgres = request.param == "postgres"
        made = PostgresProject(folder, stack.enter_context(postgres.database())) if is_postgres else Project(folder)
        made.file("orders.csv", numbers(ROWS))
        yield made


# --- time limits ------------------------------------------------------------------------------------------------------


@contextmanager
def stalled_pipe(path: Path) -> Iterator[None]:
    """A pipe whose writer has written some rows and then stands still."""
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)
    try:
        os.write(pipe, numbers(50, first=1000).encode())
        yield
    finally:
        os.close(pipe)


@pytest.mark.parametrize("target", ["append", "replace"])
def test_a_flow_whose_source_stands_still(project: Project, target: str) -> None:
    project.execute(CREATE, "INSERT INTO orders VALUES (0)")
    slow = f"slow: {{timeout_seconds: {LIMIT_SECONDS}, {flow('pipe', target)}}}"
    project.package(f"{HEAD}tasks:\n  {slow}\n  later: {{after: {{slow: failure}}, {flow()}}}\n")
    with stalled_pipe(project.inbox / "pipe"):
        ended = project.run()
    assert task_errors(ended) == {"slow": "timeout"}, ended.stderr
    assert counted(project) == (ROWS + 1, ROWS + 1)
    assert project.leftovers() == []


def test_a_flow_that_waits_for_a_lock(warehouse: PostgresProject) -> None:
    """The limit is shorter than that of the lock, and somebody keeps the table until the later task starts."""
    warehouse.lock_timeout_seconds = FOR_EVER_SECONDS
    warehouse.file("orders.csv", numbers(ROWS))
    warehouse.execute(CREATE)
    for target in ("append", "replace"):
        warehouse.execute("DELETE FROM orders")
        slow = f"slow: {{timeout_seconds: {LIMIT_SECONDS}, {flow(target=target)}}}"
        later = f"later: {{after: {{slow: failure}}, {flow(table='others', target='replace')}}}"
        warehouse.package(f"{HEAD}tasks:\n  {slow}\n  {later}\n")
        with warehouse.target.session("BEGIN; LOCK TABLE orders IN SHARE MODE"):
            ended = warehouse.run()
        assert task_errors(ended) == {"slow": "timeout"}, ended.stderr
        assert counted(warehouse) == (0, 0)
        assert counted(warehouse, "others") == (ROWS, ROWS)
        assert warehouse.leftovers() == []


@pytest.mark.parametrize("target", ["append", "replace"])
def test_a_limit_that_a_later_try_keeps(warehouse: PostgresProject, target: str) -> None:
    """A try that was stopped while it waited for a lock leaves nothing in the way of the next one."""
    warehouse.lock_timeout_seconds = FOR_EVER_SECONDS
    warehouse.file("orders.csv", numbers(ROWS))
    warehouse.execute(CREATE)
    warehouse.package(f"{HEAD}tasks:\n  load: {{timeout_seconds: {LIMIT_SECONDS}, {RETRY}, {flow(target=target)}}}\n")
    with locked_until_a_try_failed(warehouse) as running:
        running.wait().succeeded()
    assert counted(warehouse) == (ROWS, ROWS)
    assert warehouse.leftovers() == []


# --- tries ------------------------------------------------------------------------------------------------------------

# Ends the session of the first statement that writes; a sequence keeps its number when the transaction does not commit.
END_ONCE = """
CREATE SEQUENCE tries;
CREATE FUNCTION end_once() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF nextval('tries') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER end_once AFTER INSERT ON orders FOR EACH STATEMENT EXECUTE FUNCTION end_once();
"""
# Ends the first session that copies rows.
END_A_COPY = """
DO $$ BEGIN
  FOR number IN 1..15000 LOOP
    PERFORM pg_stat_clear_snapshot();
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'active' AND query LIKE 'COPY%' AND pid <> pg_backend_pid();
    IF FOUND THEN RETURN; END IF;
    PERFORM pg_sleep(0.002);
  END LOOP;
END $$;
"""


def test_an_append_whose_writer_lost_its_session(warehouse: PostgresProject) -> None:
    warehouse.file("orders.csv", numbers(ROWS))
    warehouse.execute(CREATE)
    warehouse.target.psql(END_ONCE)
    warehouse.package(f"{HEAD}tasks:\n  load: {{{RETRY}, {flow()}}}\n")
    warehouse.run().succeeded()
    assert (counted(warehouse), tries(warehouse, "load")) == ((ROWS, ROWS), 1)
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("target", ["append", "replace"])
def test_a_session_that_ends_while_rows_travel(warehouse: PostgresProject, target: str) -> None:
    count = 2_000_000
    warehouse.file("orders.csv", numbers(count))
    warehouse.execute(CREATE)
    warehouse.package(f"{HEAD}tasks:\n  load: {{{RETRY}, {flow(target=target)}}}\n")
    with warehouse.started(warehouse.arguments()) as running:
        warehouse.target.psql(END_A_COPY)
        running.wait().succeeded()
    assert (counted(warehouse), tries(warehouse, "load")) == ((count, count), 1)
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("task", ["append", "replace", "sql"])
def test_a_table_that_is_locked_for_a_while(warehouse: PostgresProject, task: str) -> None:
    warehouse.file("orders.csv", numbers(ROWS))
    warehouse.execute(CREATE)
    sql = f'sql: {{connection: warehouse, text: "INSERT INTO orders SELECT n FROM generate_series(1, {ROWS}) n"}}'
    does = sql if task == "sql" else flow(target=task)
    warehouse.package(f"{HEAD}tasks:\n  load: {{{RETRY}, {does}}}\n")
    with locked_until_a_try_failed(warehouse) as running:
        running.wait().succeeded()
    assert counted(warehouse) == (ROWS, ROWS)
    assert tries(warehouse, "load") in (1, 2)
    assert warehouse.leftovers() == []


def test_statements_that_cannot_be_serialized(warehouse: PostgresProject) -> None:
    """The server says so once, as it does when another transaction was faster; then all is done, once."""
    warehouse.execute(CREATE)
    warehouse.target.psql(END_ONCE.replace("PERFORM pg_terminate_backend(pg_backend_pid())", FAILS.format("40001")))
    text = "INSERT INTO orders VALUES (1); INSERT INTO orders VALUES (2)"
    warehouse.package(f'{HEAD}tasks:\n  load: {{{RETRY}, sql: {{connection: warehouse, text: "{text}"}}}}\n')
    warehouse.run().succeeded()
    assert (counted(warehouse), tries(warehouse, "load")) == ((2, 2), 1)


FAILS = "RAISE EXCEPTION 'no' USING ERRCODE = '{}'"


@pytest.mark.parametrize("kind", ["flow", "sql"])
def test_errors_that_cannot_pass_are_not_tried_again(project: Project, kind: str) -> None:
    project.execute(CREATE, "CREATE TABLE few (id bigint PRIMARY KEY)", "INSERT INTO few VALUES (1)")
    sql = 'sql: {connection: warehouse, text: "INSERT INTO few VALUES (2), (1)"}'
    does = flow(table="few") if kind == "flow" else sql
    project.package(f"{HEAD}tasks:\n  load: {{{RETRY}, {does}}}\n  later: {{after: {{load: failure}}, {flow()}}}\n")
    ended = project.run()
    assert list(task_errors(ended)) == ["load"], ended.stderr
    assert tries(project, "load") == 0
    assert (counted(project, "few"), counted(project)) == ((1, 1), (ROWS, ROWS))


# --- two runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["append", "replace"])
def test_two_runs_at_once(project: Project, target: str) -> None:
    """One waits, or is refused; what is replaced is that of one run, and appended is by each that was a success."""
    project.file("orders.csv", numbers(LONG))
    note = "INSERT INTO seen SELECT count(DISTINCT id) FROM orders"
    project.package(
        f"{HEAD}tasks:\n"
        '  make: {sql: {connection: warehouse, text: "CREATE TABLE IF NOT EXISTS seen (id bigint)"}}\n'
        f"  load: {{after: make, {flow(target=target)}}}\n"
        f'  note: {{after: load, sql: {{connection: warehouse, text: "{note}"}}}}\n'
    )
    project.execute(CREATE, "CREATE TABLE seen (id bigint)")
    with ExitStack() as commands:
        both = [commands.enter_context(project.started(project.arguments())) for _ in range(2)]
        ended = [running.wait() for running in both]
    done = [item for item in ended if item.exit_code == 0]
    assert done, [item.stderr for item in ended]
    for item in ended:
        if item.exit_code != 0:
            assert (item.exit_code, item.summary["error"]["kind"]) == (1, "target_busy"), item.stderr
    assert counted(project) == (LONG * len(done) if target == "append" else LONG, LONG)
    assert [int(count) for (count,) in project.query("SELECT id FROM seen")] == [LONG] * len(done)
    assert project.leftovers() == []


def test_a_file_that_another_run_keeps(tmp_path: Path) -> None:
    """The second run is refused, clearly; the first one ends as if nothing had been."""
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project")
    project.package(f"{HEAD}tasks:\n  load: {{{flow('pipe', 'create')}}}\n")
    with ExitStack() as commands:
        with stalled_pipe(project.inbox / "pipe"):
            first = commands.enter_context(project.started(project.arguments()))
            project.wait_for_event(first, "task_started", task="load")
            second = project.run()
        assert (second.exit_code, second.summary["error"]["kind"]) == (1, "target_busy"), second.stderr
        first.wait().succeeded()
    assert counted(project) == (50, 50)


# --- a long loop ------------------------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.parametrize("load", ["single", "staged"])
def test_a_hundred_turns_killed_in_the_middle(warehouse: PostgresProject, load: str) -> None:
    """And resumed: every row is there once, by whatever way it travels."""
    for turn in range(TURNS):
        warehouse.file(f"{turn:03}.csv", numbers(2, first=2 * turn))
    warehouse.execute(CREATE)
    does = flow("${name}").replace("target: append", f"target: append, load: {load}")
    warehouse.package(
        f'{HEAD}tasks:\n  turns: {{foreach: {{item: name, files: {{connection: inbox, pattern: "*.csv"}}, '
        f"tasks: {{load: {{{does}}}}}}}}}\n"
    )
    with warehouse.started(warehouse.arguments()) as running:
        middle = random.randint(20, 80)
        while running.poll() is None and counted(warehouse)[0] < middle:
            time.sleep(0.01)
        assert running.poll() is None, running.stderr
        running.end()
    assert counted(warehouse)[0] < 2 * TURNS
    warehouse.resume().succeeded()
    assert counted(warehouse) == (2 * TURNS, 2 * TURNS)
    assert warehouse.leftovers() == []
