"""`headrace resume`: goes on behind what is committed, and refuses if the world has changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.integration.driver import CREATE_ORDERS, PACKAGE, Project
from tests.snapshots import assert_snapshot

# A second task appends another file to another table.
SECOND = """
  load_late:
    data_flow:
      sources:
        late: {connection: inbox, files: late.tbl, layout: orders}
      destinations:
        kept: {input: late, connection: warehouse, table: late, target: "${target}"}
"""
BAD, GOOD = "x|1.00|||\n", "1|1.00|||\n"


def two_tables(project: Project) -> Path:
    """The first file is good, the second one is returned: its only row is bad."""
    project.package(PACKAGE + SECOND.lstrip("\n"))
    project.file("orders.tbl.1")
    return project.file("late.tbl", BAD)


def counts(project: Project) -> tuple[int, int]:
    tables = project.tables()
    return tuple(  # type: ignore[return-value]
        project.query(f"SELECT count(*) FROM {name}")[0][0] if f"main.{name}" in tables else 0
        for name in ("orders", "late")
    )


def test_only_what_is_missing_is_loaded(project: Project) -> None:
    """The second table was locked out by its name; the view is gone when the run goes on."""
    two_tables(project).write_text(GOOD)
    project.execute("CREATE VIEW late AS SELECT 1 AS id")
    assert project.run(target="append").exit_code == 1  # refused in the plan: nothing begins
    assert project.resume().exit_code == 6
    project.execute("DROP VIEW late")
    project.execute(CREATE_ORDERS.replace("orders", "late").replace("id BIGINT", "id BIGINT CHECK (id > 1)"))
    failed = project.run(target="append")
    assert (failed.exit_code, counts(project)) == (1, (100, 0))
    project.execute("DROP TABLE late")
    resumed = project.resume()
    summary = resumed.succeeded()
    assert summary["run_id"] == failed.summary["run_id"]
    assert [(table["table"], table["rows_loaded"]) for table in summary["tables"]] == [("orders", 100), ("late", 1)]
    assert (summary["rows_loaded"], counts(project)) == (101, (100, 1))
    assert "orders: skipped, loaded already by this run" in resumed.stderr
    assert project.query("SELECT status, attempt FROM headrace.run") == [("success", 2)]
    again = project.resume()
    assert again.exit_code == 6
    assert_snapshot("resume_complete", project.stable(again.error))


def test_changed_files_packages_and_later_runs_are_refused(project: Project) -> None:
    late = two_tables(project)
    first = project.run().summary["run_id"]
    late.write_text(GOOD * 2)
    assert_snapshot("resume_changed_file", project.stable(project.resume().error))
    late.write_text(BAD)
    os.utime(late, ns=(0, 0))
    assert project.resume().summary["error"]["kind"] == "file_changed"
    project.package((project.folder / "package.yaml").read_text() + "# changed\n")
    assert_snapshot("resume_changed_package", project.stable(project.resume().error))
    assert project.run().exit_code == 1
    project.package((project.folder / "package.yaml").read_text().replace("# changed\n", ""))
    os.utime(late, ns=(0, 0))
    assert counts(project) == (100, 0)
    assert project.resume(first).exit_code == 1


def test_a_later_run_is_in_the_way(project: Project) -> None:
    two_tables(project)
    first = project.run().summary["run_id"]
    assert project.run().exit_code == 1
    assert_snapshot("resume_superseded", project.stable(project.resume(first).error))


def test_nothing_is_appended_twice(project: Project) -> None:
    late = two_tables(project)
    assert (project.run(target="append").exit_code, counts(project)) == (1, (100, 0))
    refused = project.run(target="append")
    assert_snapshot("resume_appended_already", project.stable(refused.error))
    # A run that does not touch the table in between changes nothing about that.
    late.write_text(GOOD)
    project.run(target="replace", table="others").succeeded()
    assert project.run(target="append").exit_code == 1
    project.run("--abandon", target="append").succeeded()
    project.run(target="append").succeeded()
    assert (project.ledger(), counts(project)) == (["abandoned", "success", "success", "success"], (300, 3))


def test_rows_that_were_replaced_since_are_in_nobodys_way(project: Project) -> None:
    late = two_tables(project)
    assert (project.run(target="append").exit_code, counts(project)) == (1, (100, 0))
    late.write_text(GOOD)
    project.run(target="replace").succeeded()
    project.run(target="append").succeeded()
    assert (project.ledger(), counts(project)) == (["failed", "success", "success"], (200, 2))


def test_a_table_that_the_run_itself_replaces_first(project: Project) -> None:
    """Its rows of a run that failed go with it: appending behind that doubles nothing."""
    package = PACKAGE.replace('target: "${target}"', "target: replace")
    project.package(
        package + SECOND.lstrip("\n").replace("late, target", "orders, target").replace("${target}", "append")
    )
    project.file("orders.tbl.1")
    late = project.file("late.tbl", "")
    third = SECOND.lstrip("\n").replace("load_late", "load_last").replace("late.tbl", "last.tbl")
    project.package((project.folder / "package.yaml").read_text() + third.replace('"${target}"', "append"))
    last = project.file("last.tbl", BAD)
    late.write_text(GOOD.replace("1|", "7|", 1))
    assert project.run().exit_code == 1
    last.write_text(GOOD)
    project.run().succeeded()
    assert counts(project) == (101, 1)


def test_secrets_are_given_again(project: Project) -> None:
    """A URL with a password is not stored; the environment variable that holds it is, by its name."""
    two_tables(project)
    secret = "postgresql://loader:c4n4ry-S3cret-pw@127.0.0.1:1/none"
    folder = project.runs / "20261120-101530-abcdef"
    assert project.run().exit_code == 1
    (stored,) = project.runs.glob("*/request.json")
    document = json.loads(stored.read_text())
    assert document["connections"] == {}
    folder.mkdir()
    for name, value in (("request.json", {**document, "connections": {"warehouse": None}}), ("sources.json", {})):
        (folder / name).write_text(json.dumps(value))
    missing = project.resume(folder.name)
    assert missing.exit_code == 6
    assert_snapshot("resume_secret_missing", project.stable(missing.error))
    given = project.resume(folder.name, "--connection", f"warehouse={secret}")
    assert "c4n4ry" not in given.stderr + given.stdout
