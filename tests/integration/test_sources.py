"""Files that cannot be loaded: a clear error, exit code 1, and the target as it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from tests.integration.driver import GOOD_ROWS, Before, Project
from tests.snapshots import assert_snapshot

# Runs the command line without the rights that let root read every file. Only this process's own rights are given up,
# which needs no privilege; for other users it changes nothing.
WITHOUT_ROOTS_RIGHTS = """
import ctypes, runpy, sys
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
none = (ctypes.c_uint32 * 6)()
if ctypes.CDLL(None, use_errno=True).capset(header, none) != 0:
    raise OSError(ctypes.get_errno(), "capset")
sys.argv[0] = "headrace"
runpy.run_module("headrace", run_name="__main__", alter_sys=True)
"""


def empty_file(project: Project) -> None:
    project.file("orders.tbl.1", "")


def empty_files(project: Project) -> None:
    for number in range(1, 4):
        project.file(f"orders.tbl.{number}", "")


def other_names(project: Project) -> None:
    project.file("order.tbl.1")
    project.file(".orders.tbl.1")


def folder_as_file(project: Project) -> None:
    (project.inbox / "orders.tbl.1").mkdir()


def named_pipe(project: Project) -> None:
    project.file("orders.tbl.1")
    os.mkfifo(project.inbox / "orders.tbl.2")


def no_folder(project: Project) -> None:
    project.inbox.rmdir()


def file_as_folder(project: Project) -> None:
    project.inbox.rmdir()
    project.inbox.write_text(GOOD_ROWS)


def dangling_link(project: Project) -> None:
    project.file("orders.tbl.1")
    (project.inbox / "orders.tbl.2").symlink_to("nowhere")


@pytest.mark.parametrize(
    ("prepare", "files"),
    [
        (other_names, "orders.tbl"),
        (other_names, "orders.tbl.*"),
        (empty_file, "orders.tbl.*"),
        (empty_files, "orders.tbl.*"),
        (folder_as_file, "orders.tbl.1"),
        (folder_as_file, "orders.tbl.*"),
        (named_pipe, "orders.tbl.*"),
        (no_folder, "orders.tbl.*"),
        (file_as_folder, "orders.tbl.*"),
        (dangling_link, "orders.tbl.*"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "pattern" if "*" in value else "name",
)
def test_cannot_be_loaded(
    project: Project, prepare: Callable[[Project], None], files: str, request: pytest.FixtureRequest
) -> None:
    before = Before.of(project)
    prepare(project)
    ended = project.run(files=files)
    assert ended.exit_code == 1
    assert ended.summary["error"]["kind"] == "source"
    assert_snapshot(f"source_{request.node.callspec.id}", project.stable(ended.error))
    before.check()


def test_unreadable_file(project: Project) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    project.file("orders.tbl.2").chmod(0)
    command = project.arguments()
    assert command[1:3] == ["-m", "headrace"]
    ended = project.command([sys.executable, "-c", WITHOUT_ROOTS_RIGHTS, *command[3:]])
    assert ended.exit_code == 1
    assert_snapshot("source_unreadable", project.stable(ended.error))
    before.check()


@pytest.mark.parametrize("missing", ["error", "skip"])
def test_unreadable_folder(project: Project, missing: str) -> None:
    before = Before.of(project)
    project.file("orders.tbl.1")
    project.inbox.chmod(0)
    command = project.arguments(missing=missing)
    ended = project.command([sys.executable, "-c", WITHOUT_ROOTS_RIGHTS, *command[3:]])
    project.inbox.chmod(0o755)
    assert ended.exit_code == 1
    assert_snapshot("source_unreadable_folder", project.stable(ended.error))
    before.check()


def test_name_that_is_not_utf_8(project: Project) -> None:
    before = Before.of(project)
    (project.inbox / os.fsdecode(b"orders.tbl.\xff")).write_text(GOOD_ROWS)
    ended = project.run()
    assert ended.exit_code == 1
    assert_snapshot("source_not_utf_8", project.stable(ended.error))
    ended = project.run(files="orders.tbl")
    assert ended.summary["error"]["kind"] == "source"
    before.check()


def test_one_of_several_files_is_empty(project: Project) -> None:
    project.file("orders.tbl.1", "")
    project.file("orders.tbl.2")
    project.file("orders.tbl.3", "")
    ended = project.run()
    assert ended.succeeded()["rows_loaded"] == 100
    assert "orders.tbl.1 is empty" in ended.stderr
    assert project.query("SELECT count(*), sum(id) FROM orders") == [(100, 5050)]


def test_empty_files_that_are_allowed_empty_the_table(project: Project) -> None:
    Before.of(project)
    empty_files(project)
    summary = project.run(empty="allow").succeeded()
    assert (summary["rows_read"], summary["rows_loaded"]) == (0, 0)
    assert project.query("SELECT count(*) FROM orders") == [(0,)]
    assert project.ledger() == ["success"]


@pytest.mark.parametrize("row_end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("ends_with", ["row end", "text"])
def test_the_last_row_needs_no_row_end(project: Project, row_end: str, ends_with: str) -> None:
    text = GOOD_ROWS.replace("\n", row_end)
    project.file("orders.tbl.1", text if ends_with == "row end" else text.rstrip())
    assert project.run().succeeded()["rows_loaded"] == 100
    assert project.query("SELECT count(*), sum(id), max(note) FROM orders") == [(100, 5050, "note 99")]


def test_file_names_are_taken_literally(project: Project) -> None:
    """Blanks, quotes, brackets and bytes outside ASCII in names of files and tables."""
    project.file("it's [1] für 100 %.tbl")
    table = 'O\'Neil "ü" orders'
    assert project.run(files="it's*.tbl", table=table).succeeded()["rows_loaded"] == 100
    assert project.tables() == [f"main.{table}"]
