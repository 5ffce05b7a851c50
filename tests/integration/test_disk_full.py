"""A disk that fills up while a table is loaded: the run fails, says so, and the target is as it was.

Two ways to fill it: a small tmpfs in a mount namespace of our own, where the system lets users make one, and a library
that makes writes fail after so many bytes, which works everywhere.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driver import GOOD_ROWS, Before, Ended, Project
from tests.snapshots import assert_snapshot

pytestmark = pytest.mark.faults

COMMITS = 'SELECT count(*) FROM headrace."commit"'


def _can_mount() -> bool:
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "mount",
        "-t",
        "tmpfs",
        "tmpfs",
        str(Path(__file__).parent),
    ]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled `full_disk.c`."""
    library = tmp_path_factory.mktemp("library") / "full_disk.so"
    source = Path(__file__).with_name("full_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory, tpch_files: Path) -> Project:
    """A database with some orders and lineitems."""
    project = Project(tmp_path_factory.mktemp("loaded"))
    project.execute("CREATE TABLE unrelated AS SELECT range AS number FROM range(1000)")
    project.tpch("orders", "lineitem")
    project.link([tpch_files / "orders.tbl.1", tpch_files / "lineitem.tbl.1"])
    project.run().succeeded()
    return project


class Target:
    """A copy of that database; the run would replace the rows of `table` by eight times as many."""

    def __init__(self, project: Project, loaded: Project, files: Path, table: str) -> None:
        self.project = project
        self.table = table
        self.rows = sum(path.read_bytes().count(b"\n") for path in files.glob(f"{table}.*"))
        shutil.copy(loaded.database, project.database)
        project.tpch(table)
        project.link(files.glob(f"{table}.*"))
        self.before = self._content(project.database)
        self.commits = project.query(COMMITS)

    def _content(self, database: Path) -> list[tuple[Any, ...]]:
        return self.project.query(f"SELECT count(*), sum(hash({self.table})) FROM {self.table}", database)

    def check(self, ended: Ended, database: Path) -> None:
        """The run failed, said why, and the database is as it was."""
        assert ended.exit_code == 1, ended.stderr
        assert "no space left on the disk" in ended.error
        assert "Traceback" not in ended.stderr
        assert "last commit" not in ended.stderr
        assert self._content(database) == self.before
        assert self.project.tables(database) == ["main.lineitem", "main.orders", "main.unrelated"]
        assert self.project.query("SELECT count(*) FROM unrelated", database) == [(1000,)]
        assert self.project.query(COMMITS, database) == self.commits
        # A full disk may not even take the end of the run; the next run then finds it dead.
        assert self.project.ledger(database) in (["success", *state] for state in ([], ["running"], ["failed"]))

    def check_next_run(self) -> None:
        """With space, the same command does what it should have done."""
        assert self.project.run().succeeded()["rows_loaded"] == self.rows
        assert self.project.query(f"SELECT count(*) FROM {self.table}") == [(self.rows,)]
        assert "running" not in self.project.ledger()


# ORDERS is written to the log when it is committed, LINEITEM is large enough to be written before.
@pytest.mark.parametrize(
    ("table", "free_bytes"),
    [("orders", 0), ("orders", 1_000_000), ("lineitem", 100_000), ("lineitem", 1_000_000), ("lineitem", 6_000_000)],
)
def test_writes_fail(
    project: Project, library: Path, loaded: Project, tpch_files: Path, table: str, free_bytes: int
) -> None:
    target = Target(project, loaded, tpch_files, table)
    environment = {
        "LD_PRELOAD": str(library),
        "FULL_DISK_PATH": str(project.database),
        "FULL_DISK_BYTES": str(free_bytes),
    }
    ended = project.run(environment=environment)
    target.check(ended, project.database)
    if free_bytes == 1_000_000:
        assert_snapshot(f"disk_full_{table}", project.stable(ended.error))
        target.check_next_run()


def test_no_space_for_the_checkpoint(project: Project, library: Path, loaded: Project, tpch_files: Path) -> None:
    """What is committed stays so, in the log beside the file, and the run says what it could not do."""
    target = Target(project, loaded, tpch_files, "orders")
    environment = {
        "LD_PRELOAD": str(library),
        "FULL_DISK_PATH": str(project.database),
        "FULL_DISK_EXCEPT": ".wal",
        "FULL_DISK_BYTES": "0",
    }
    ended = project.run(environment=environment)
    assert ended.succeeded()["rows_loaded"] == target.rows
    assert "after the last commit: cannot close the database: no space left on the disk" in ended.stderr
    assert "nothing was loaded" not in ended.stderr
    assert project.query("SELECT count(*) FROM orders") == [(target.rows,)]
    assert project.ledger() == ["success", "success"]
    target.check_next_run()


# Runs a command with a small tmpfs on a folder, which only the command sees; the database is copied there and back.
IN_TMPFS = """
set -eu
small=$1 size=$2 database=$3; shift 3
mount -t tmpfs -o "size=$size" tmpfs "$small"
cp "$database" "$small/warehouse.duckdb"
code=0
"$@" || code=$?
mkdir "$small.after"
cp "$small"/* "$small.after"
exit $code
"""


@pytest.mark.parametrize("free_bytes", [1_000_000, 6_000_000] if _can_mount() else [])
def test_a_small_tmpfs(project: Project, loaded: Project, tpch_files: Path, free_bytes: int) -> None:
    target = Target(project, loaded, tpch_files, "lineitem")
    small = project.folder / "small"
    small.mkdir()
    size = project.database.stat().st_size + free_bytes
    run = project.arguments("--connection", "warehouse=duckdb:small/warehouse.duckdb")
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", IN_TMPFS, "sh"]
    ended = project.command([*command, str(small), str(size), str(project.database), *run])
    target.check(ended, project.folder / "small.after" / "warehouse.duckdb")


@pytest.mark.parametrize("free_bytes", [0, 200])
def test_no_space_for_the_run_folder(project: Project, library: Path, free_bytes: int) -> None:
    """Rejects, events and summaries need space too."""
    before = Before.of(project)
    project.file("orders.tbl.1", GOOD_ROWS + "x\n" * 10_000)
    environment = {
        "LD_PRELOAD": str(library),
        "FULL_DISK_PATH": str(project.runs if free_bytes == 0 else "/rejects/"),
        "FULL_DISK_BYTES": str(free_bytes),
    }
    ended = project.run(limit=100_000, environment=environment)
    assert ended.exit_code == 1
    assert "Traceback" not in ended.stderr
    assert_snapshot(f"disk_full_run_folder_{free_bytes}", project.stable(ended.error))
    assert project.query("FROM orders ORDER BY ALL") == before.rows


# Files of slices have hidden names; `orders.bad` takes 60,000 bytes, `orders.jsonl` four megabytes.
@pytest.mark.parametrize(
    ("path", "free_bytes"),
    [
        ("/rejects/.", 100_000),
        ("/rejects/orders.", 30_000),
        ("/rejects/orders.", 1_000_000),
        ("/rejects/orders.jsonl", 0),
    ],
    ids=["slices", "rows of the merge", "lines of the merge", "nothing of the merge"],
)
@pytest.mark.parametrize("target", ["replace", "append"])
def test_no_space_for_rejects(project: Project, library: Path, path: str, free_bytes: int, target: str) -> None:
    """Nothing is loaded without its rejects; with space the same run loads all of it."""
    before = Before.of(project)
    for number in range(1, 5):
        project.file(f"orders.tbl.{number}", GOOD_ROWS + f"{number}|x|||\n" * 2_500)
    environment = {"LD_PRELOAD": str(library), "FULL_DISK_PATH": path, "FULL_DISK_BYTES": str(free_bytes)}
    ended = project.run(limit=100_000, environment=environment, target=target)
    assert ended.exit_code == 1
    assert "Traceback" not in ended.stderr
    assert "no space left" in ended.error.lower()
    assert project.query("FROM orders ORDER BY ALL") == before.rows
    assert project.query('SELECT count(*) FROM headrace."commit"') == [(0,)]
    done = project.resume().succeeded()
    assert project.leftovers() == []
    assert (done["rows_loaded"], done["rows_rejected"]) == (400, 10_000)
    [table] = done["tables"]
    lines, rows = (Path(file).read_bytes() for file in table["rejects"]["files"])
    assert (lines.count(b"\n"), rows.count(b"\n")) == (10_000, 10_000)
