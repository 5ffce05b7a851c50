"""Hints that name a command, followed in the state in which they are given: behind it each good row is there, once."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.integration.control_flow import TARGETS
from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.servers.cluster import Cluster

ROWS: Final = 60
BAD: Final = "x,1\n"
HEAD = """\
headrace: 1
package: hints
parameters:
  limit: {type: integer, default: 0}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64}, {name: amount, type: int32}]}
streams: 1
tasks:
"""
CREATE = "CREATE TABLE {table} (id bigint, amount int)"
# What a hint says to do with the run's rows comes first.
COMMAND = re.compile(r"`?headrace ((?:run|resume|replay|verify|rejects|report)\b(?: [^\s`;,]+)*)")


def flow(
    task: str,
    table: str,
    target: str = "append",
    more: str = "",
    after: str = "",
    transform: str = "",
    where: str = "rows",
) -> str:
    """A task that loads the files of a table."""
    return (
        f'  {task}: {{{after}data_flow: {{rejects: {{limit: "${{limit}}"}}, '
        f'sources: {{rows: {{connection: inbox, files: "{table}.*", layout: orders}}}}, transforms: {{{transform}}}, '
        f"destinations: {{loaded: {{input: {where}, connection: warehouse, table: {table}, target: {target}{more}}}}}"
        "}}\n"
    )


TWO = flow("load", "orders") + flow("later", "others", after="after: load, ")
COMMITTED = flow("load", "orders", more=", commit: {rows: 20}")
SUMMED = "summed: {input: rows, sql: 'SELECT id, max(amount) AS amount FROM rows GROUP BY id'}"


def numbers(first: int, count: int = ROWS) -> str:
    return "".join(f"{number},1\n" for number in range(first, first + count))


@pytest.fixture(params=TARGETS)
def project(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[Project]:
    """On each destination, with files for two tables."""
    folder = tmp_path / "project"
    folder.mkdir()
    with ExitStack() as stack:
        is_postgres = request.param == "postgres"
        made = PostgresProject(folder, stack.enter_context(postgres.database())) if is_postgres else Project(folder)
        for number in range(3):
            made.file(f"orders.{number}", numbers(number * ROWS))
        made.file("others.0", numbers(0))
        yield made


def write(project: Project, tasks: str) -> None:
    project.package(HEAD + tasks)


def edit(project: Project) -> None:
    """Changes the package, for its reader only."""
    path = project.folder / "package.yaml"
    path.write_text(f"# mended\n{path.read_text()}")


def check(project: Project, *tables: str, rows: int = 3 * ROWS) -> None:
    """All rows of the files are there, each once."""
    for table in tables:
        expected = rows if table == "orders" else ROWS
        ((count, different),) = project.query(f"SELECT count(*), count(DISTINCT id) FROM {table}")
        assert (int(str(count)), int(str(different))) == (expected, expected), table


def command(project: Project, text: str) -> Ended:
    """A command of a hint, as its reader gives it."""
    name, *arguments = shlex.split(text)
    package = ["package.yaml"] if name == "run" else []
    more = ["--json"] if name not in ("report",) else []
    return project.command([sys.executable, "-m", "headrace", name, *package, *arguments, "--runs-dir", "runs", *more])


def hint(ended: Ended) -> str:
    assert ended.exit_code != 0
    return ended.stderr.rsplit("\nhint: ", 1)[1]


def commands(ended: Ended) -> list[str]:
    """Those that the last hint names."""
    return COMMAND.findall(hint(ended))


def delete_as_told(project: Project, ended: Ended) -> None:
    """What the hint says to do before its command."""
    found = re.search(
        r"delete (?:the|its) rows (?:of (?:the run|run \S+) )?from ([\w, ]+?)(?:,? then| and)", hint(ended), re.I
    )
    assert found, hint(ended)
    project.execute(*(f"DELETE FROM {table}" for table in found[1].split(", ")))


def failed(project: Project) -> str:
    """A run of two tasks whose second one fails for a row; its id."""
    write(project, TWO)
    project.execute(CREATE.format(table="orders"))
    project.file("others.0", numbers(0) + BAD)
    ended = project.run()
    assert ended.exit_code == 1
    check(project, "orders")
    return str(ended.summary["run_id"])


# --- resume is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["package", "file"])
def test_a_change_behind_an_append(project: Project, what: str) -> None:
    """A new run would append again what the first task has loaded."""
    run_id = failed(project)
    project.file("others.0", numbers(0)) if what == "file" else edit(project)
    refused = project.resume()
    assert commands(refused) == ["run --abandon"]
    assert f"delete the rows of run {run_id} from orders" in hint(refused).replace("Delete", "delete")
    delete_as_told(project, refused)
    project.file("others.0", numbers(0))
    command(project, "run --abandon").succeeded()
    check(project, "orders", "others")


@pytest.mark.parametrize("what", ["package", "file"])
@pytest.mark.parametrize("target", ["replace", "append"])
def test_a_change_when_nothing_is_appended(project: Project, what: str, target: str) -> None:
    write(project, flow("load", "orders", target))
    good = (project.inbox / "orders.2").read_text()
    project.file("orders.2", good + BAD)
    assert project.run().exit_code == 1
    project.file("orders.2", good) if what == "file" else edit(project)
    refused = project.resume()
    assert commands(refused) == ["run"]
    project.file("orders.2", good)
    command(project, "run").succeeded()
    check(project, "orders")


def test_a_change_in_the_middle_of_an_append(warehouse: PostgresProject) -> None:
    write(warehouse, COMMITTED)
    warehouse.execute(CREATE.format(table="orders"))
    for number in range(3):
        warehouse.file(f"orders.{number}", numbers(number * ROWS))
    good = (warehouse.inbox / "orders.2").read_text()
    warehouse.file("orders.2", BAD)
    ended = warehouse.run()
    assert commands(ended) == [f"resume {ended.summary['run_id']}", "run --abandon"]
    warehouse.file("orders.2", good)
    refused = warehouse.resume()
    assert commands(refused) == ["run --abandon"]
    delete_as_told(warehouse, refused)
    command(warehouse, "run --abandon").succeeded()
    check(warehouse, "orders")


def test_a_run_that_is_complete(project: Project) -> None:
    write(project, flow("load", "orders"))
    run_id = project.run().succeeded()["run_id"]
    refused = project.resume(run_id)
    assert commands(refused) == ["report"]
    assert command(project, "report").exit_code == 0
    check(project, "orders")


def test_a_later_run_has_begun(project: Project) -> None:
    first = failed(project)
    project.execute("DELETE FROM orders")
    later = command(project, "run --abandon")
    assert later.exit_code == 1
    refused = project.resume(first)
    assert commands(refused) == [f"resume {later.summary['run_id']}"]
    # That one is limited by the same row; with another limit it goes on.
    resumed = project.command([*project.resume_command(later.summary["run_id"]), "--set", "limit=1"])
    resumed.succeeded()
    check(project, "orders", "others")


# --- a new run is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [0, 1])
def test_a_new_run_behind_one_that_has_appended(project: Project, way: int) -> None:
    run_id = failed(project)
    refused = project.run()
    assert commands(refused) == [f"resume {run_id}", "run --abandon"]
    if way:
        delete_as_told(project, refused)
        project.file("others.0", numbers(0))
        command(project, commands(refused)[1]).succeeded()
    else:
        project.command([*project.resume_command(run_id), "--set", "limit=1"]).succeeded()
    check(project, "orders", "others")


# --- a run has failed, and might work later ---------------------------------------------------------------------------

# As a server that ends the first transaction in favour of another one.
REFUSE = """
CREATE SEQUENCE tries;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF nextval('tries') = 1 THEN RAISE EXCEPTION 'not yet' USING ERRCODE = '40001'; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER refuse AFTER INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse();
"""


@pytest.mark.parametrize("tasks", [TWO, flow("later", "others")], ids=["behind_an_append", "alone"])
def test_run_again_when_it_is_that(warehouse: PostgresProject, tasks: str) -> None:
    write(warehouse, tasks)
    warehouse.execute(CREATE.format(table="orders"), CREATE.format(table="others"))
    for number in range(3):
        warehouse.file(f"orders.{number}", numbers(number * ROWS))
    warehouse.file("others.0", numbers(0))
    warehouse.target.psql(REFUSE.format(table="others"))
    ended = warehouse.run()
    if tasks == TWO:
        assert hint(ended).splitlines()[0] == f"Go on: `headrace resume {ended.summary['run_id']}`."
        command(warehouse, commands(ended)[0]).succeeded()
        check(warehouse, "orders", "others")
    else:
        assert hint(ended).splitlines()[0] == "Run again."
        warehouse.run().succeeded()
        check(warehouse, "others")


def test_the_middle_of_an_append_that_might_work_later(warehouse: PostgresProject) -> None:
    write(warehouse, COMMITTED)
    warehouse.execute(CREATE.format(table="orders"))
    for number in range(3):
        warehouse.file(f"orders.{number}", numbers(number * ROWS))
    warehouse.target.psql(REFUSE.format(table="orders").replace("= 1", "= 2"))
    ended = warehouse.run()
    assert commands(ended) == [f"resume {ended.summary['run_id']}", "run --abandon"]
    assert "un again" not in hint(ended)
    other = HEAD.replace("package: hints", "package: other") + flow("load", "orders", more=", commit: {rows: 20}")
    (warehouse.folder / "other.yaml").write_text(other)
    warehouse.package(other)
    refused = warehouse.run()
    assert commands(refused) == [f"resume {ended.summary['run_id']}"]
    write(warehouse, COMMITTED)
    command(warehouse, commands(refused)[0]).succeeded()
    check(warehouse, "orders")


def test_rows_that_are_committed_out_of_sight(warehouse: PostgresProject) -> None:
    write(warehouse, flow("load", "orders", "replace", more=", commit: {rows: 20}"))
    warehouse.execute(CREATE.format(table="orders"), "INSERT INTO orders VALUES (-1, 1)")
    for number in range(3):
        warehouse.file(f"orders.{number}", numbers(number * ROWS))
    with warehouse.target.session("BEGIN; DO 'BEGIN PERFORM count(*) FROM orders; END'"):
        ended = warehouse.run()
    assert commands(ended) == [f"resume {ended.summary['run_id']}."]
    command(warehouse, commands(ended)[0].rstrip(".")).succeeded()
    check(warehouse, "orders")


# --- replay and verify ------------------------------------------------------------------------------------------------


def rejected(project: Project, tasks: str) -> str:
    """A run that was a success but for one row; its id."""
    write(project, tasks)
    project.file("orders.2", numbers(2 * ROWS, ROWS - 1) + BAD)
    return str(project.run(limit=1).succeeded()["run_id"])


def repaired(project: Project) -> None:
    project.file("orders.2", numbers(2 * ROWS))
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 1},1\n")


@pytest.mark.parametrize("target", ["append", "replace", "create"])
def test_a_replay_in_front_of_an_aggregate(project: Project, target: str) -> None:
    tasks = flow("load", "orders", target, transform=SUMMED, where="summed") + flow("later", "others")
    run_id = rejected(project, tasks)
    repaired(project)
    refused = command(project, f"replay {run_id} repair.csv")
    assert commands(refused) == ["run --only load"]
    assert ("elete the rows of run" in hint(refused)) == (target == "append")
    if target == "append":
        project.execute("DELETE FROM orders")
    if target == "create":
        assert "drop orders" in hint(refused)
        project.execute("DROP TABLE orders")
    command(project, commands(refused)[0]).succeeded()
    check(project, "orders", "others")


@pytest.mark.parametrize("name", ["replay", "verify"])
def test_a_layout_that_was_changed_since(project: Project, name: str) -> None:
    """A run that was complete is not started once more."""
    run_id = rejected(project, flow("load", "orders", "append" if name == "replay" else "replace"))
    before = (project.folder / "package.yaml").read_text()
    edit(project)
    repaired_file = " repair.csv" * (name == "replay")
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 1},1\n")
    refused = command(project, f"{name} {run_id}{repaired_file}")
    assert hint(refused).startswith("Put them back as they were")
    assert "headrace run" not in hint(refused)
    project.package(before)
    assert command(project, f"{name} {run_id}{repaired_file}").exit_code == 0
    check(project, "orders", rows=3 * ROWS - (name == "verify"))


def test_a_replay_into_a_table_that_is_gone(project: Project) -> None:
    run_id = rejected(project, flow("load", "orders") + flow("later", "others"))
    project.execute("DROP TABLE orders")
    repaired(project)
    refused = command(project, f"replay {run_id} repair.csv")
    assert commands(refused) == ["run --only load"]
    command(project, commands(refused)[0]).succeeded()
    check(project, "orders", "others")


def test_a_replay_of_what_was_replayed(project: Project) -> None:
    """One of two rejects is loaded; the copy has the other one."""
    write(project, flow("load", "orders"))
    project.file("orders.2", numbers(2 * ROWS, ROWS - 2) + "y,1\n" + BAD)
    run_id = str(project.run(limit=2).succeeded()["run_id"])
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 2},1\n")
    command(project, f"replay {run_id} repair.csv --rows 1").succeeded()
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 2},1\n{3 * ROWS - 1},1\n")
    refused = command(project, f"replay {run_id} repair.csv")
    assert commands(refused) == [f"rejects {run_id} --copy FILE"]
    assert command(project, commands(refused)[0].replace("FILE", "open.csv")).exit_code == 0
    assert (project.folder / "open.csv").read_text() == BAD
    (project.folder / "open.csv").write_text(f"{3 * ROWS - 1},1\n")
    command(project, f"replay {run_id} open.csv").succeeded()
    check(project, "orders")


def test_a_copy_of_another_run(project: Project) -> None:
    first = rejected(project, flow("load", "orders"))
    assert command(project, f"rejects {first} --copy repair.csv").exit_code == 0
    write(project, flow("load", "others"))
    project.file("others.0", numbers(0) + BAD)
    other = str(project.run(limit=1).succeeded()["run_id"])
    refused = command(project, f"replay {other} repair.csv")
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 1},1\n")
    write(project, flow("load", "orders"))
    assert [Path(own).name for own in commands(refused)[0].split()[2:]] == ["repair.csv"]
    command(project, commands(refused)[0]).succeeded()
    check(project, "orders")


def test_a_number_that_no_reject_has(project: Project) -> None:
    run_id = rejected(project, flow("load", "orders"))
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 1},1\n")
    refused = command(project, f"replay {run_id} repair.csv --rows 7")
    assert commands(refused) == ["rejects --json"]
    shown = project.command([sys.executable, "-m", "headrace", *commands(refused)[0].split(), "--runs-dir", "runs"])
    assert '"number": 1' in shown.stdout
    command(project, f"replay {run_id} repair.csv --rows 1").succeeded()
    check(project, "orders")


def test_a_table_that_was_loaded_anew(project: Project) -> None:
    first = rejected(project, flow("load", "orders", "replace"))
    later = rejected(project, flow("load", "orders", "replace"))
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 1},1\n")
    refused = command(project, f"replay {first} repair.csv")
    assert commands(refused) == [f"rejects {later}"]
    assert command(project, commands(refused)[0]).exit_code == 0
    command(project, f"replay {later} repair.csv").succeeded()
    check(project, "orders")


def test_a_run_that_has_not_said_how_it_ended(project: Project) -> None:
    run_id = failed(project)
    (project.runs / run_id / "summary.json").unlink()
    refused = command(project, f"rejects {run_id}")
    assert commands(refused) == [f"resume {run_id}"]
    project.command([*project.resume_command(run_id), "--set", "limit=1"]).succeeded()
    check(project, "orders", "others")


def test_a_replay_whose_folder_is_damaged(project: Project) -> None:
    run_id = rejected(project, flow("load", "orders"))
    (project.folder / "repair.csv").write_text(BAD)
    again = command(project, f"replay {run_id} repair.csv --limit 0")
    assert again.exit_code == 1
    (project.runs / str(again.summary["run_id"]) / "replay.json").write_text("{")
    refused = project.resume(str(again.summary["run_id"]))
    assert commands(refused) == ["replay"]
    (project.folder / "repair.csv").write_text(f"{3 * ROWS - 1},1\n")
    command(project, f"replay {run_id} repair.csv").succeeded()
    check(project, "orders")


@pytest.mark.parametrize("wrong", [True, False], ids=["resume", "run"])
def test_without_a_ledger_nobody_knows_what_was_appended(warehouse: PostgresProject, wrong: bool) -> None:
    write(warehouse, TWO)
    path = warehouse.folder / "package.yaml"
    path.write_text(path.read_text().replace("lock_timeout_seconds", "ledger: off, lock_timeout_seconds", 1))
    warehouse.execute(CREATE.format(table="orders"), CREATE.format(table="others"))
    for number in range(3):
        warehouse.file(f"orders.{number}", numbers(number * ROWS))
    warehouse.file("others.0", numbers(0))
    warehouse.target.psql(REFUSE.format(table="others"))
    ended = warehouse.run()
    told = warehouse.resume(str(ended.summary["run_id"])) if wrong else ended
    assert "elete" in hint(told) and "appended, if it has" in hint(told)
    warehouse.execute("DELETE FROM orders")
    command(warehouse, "run").succeeded()
    check(warehouse, "orders", "others")


@pytest.mark.parametrize("name", ["replay", "verify"])
def test_a_run_that_is_not_complete(project: Project, name: str) -> None:
    run_id = failed(project)
    (project.folder / "repair.csv").write_text("1000,1\n")
    refused = command(project, f"{name} {run_id}{' repair.csv' * (name == 'replay')}")
    assert commands(refused) == ["resume"]
    project.command([*project.resume_command(), "--set", "limit=1"]).succeeded()
    again = command(project, f"{name} {run_id}{' repair.csv' * (name == 'replay')}")
    assert "did not end with success" not in again.stderr  # what was appended can be replayed, but not verified
