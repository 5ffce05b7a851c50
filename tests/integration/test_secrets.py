"""A canary that stands for a password, in all the places where one may be; and nowhere after that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.driver import GOOD_ROWS, PACKAGE, Project

CANARY = "c4n4ry-S3cret-pw"
SECRET_PACKAGE = PACKAGE.replace("path: inbox}", 'path: "${env:INBOX}"}').replace(
    "path: warehouse.duckdb", 'path: "${env:FOLDER}/warehouse.duckdb"'
)


@pytest.fixture
def secret(project: Project) -> Path:
    """Files and database are in folders whose names are secret."""
    folder = project.folder / CANARY
    (folder / "inbox").mkdir(parents=True)
    (folder / "inbox" / "orders.tbl.1").write_text(GOOD_ROWS)
    project.package(SECRET_PACKAGE)
    return folder


def environment(folder: Path) -> dict[str, str]:
    return {"FOLDER": str(folder), "INBOX": str(folder / "inbox")}


def check_traces(project: Project, folder: Path) -> None:
    """No file that a run has written holds the canary: run folders, output, database, ledger."""
    canary = CANARY.encode()
    written = [path for path in project.folder.rglob("*") if path.is_file() and path.parent != folder / "inbox"]
    assert len(written) > 3
    assert [path for path in written if canary in path.read_bytes()] == []


def test_runs_leave_no_trace(project: Project, secret: Path) -> None:
    """A success with rejects, and failures that name files and databases."""
    values = environment(secret)
    (secret / "inbox" / "orders.tbl.2").write_text("x|1.00|||\n")
    codes = [
        project.run(limit=1, environment=values).exit_code,
        project.run(environment=values).exit_code,
        project.run(files="none.*", environment=values).exit_code,
        project.run(target="create", environment=values).exit_code,
        project.run("--streams", "0", environment=values).exit_code,
    ]
    assert codes == [0, 1, 1, 1, 6]
    assert project.query("SELECT count(*) FROM orders", secret / "warehouse.duckdb") == [(100,)]
    (secret / "warehouse.duckdb").rename(secret / "other.duckdb")
    (secret / "warehouse.duckdb").write_text("no database")
    assert project.run(environment=values).exit_code == 1
    check_traces(project, secret)


def test_other_commands_leave_no_trace(project: Project, secret: Path) -> None:
    values = environment(secret)
    for command in ("plan", "check"):
        for json_option in ([], ["--json"]):
            ended = project.command([sys.executable, "-m", "headrace", command, "package.yaml", *json_option], values)
            assert ended.exit_code == 0, ended.stderr
    check_traces(project, secret)


def test_the_report_leaves_no_trace(project: Project, secret: Path) -> None:
    """Of a run with rejects, and of one that failed."""
    values = environment(secret)
    (secret / "inbox" / "orders.tbl.2").write_text("x|1.00|||\n")
    assert [project.run(limit=limit, environment=values).exit_code for limit in (1, 0)] == [0, 1]
    runs = sorted(project.runs.iterdir())
    for run in runs:
        command = [sys.executable, "-m", "headrace", "report", str(run), "--against", str(runs[0])]
        ended = project.command(command, {})
        assert ended.exit_code == 0, ended.stderr
        assert CANARY not in ended.stdout + ended.stderr
        assert (run / "report.html").stat().st_size > 20_000
    check_traces(project, secret)


def test_the_process_list_shows_nothing(project: Project, secret: Path) -> None:
    project.real_starts = True
    with project.started(project.arguments(), environment(secret)) as running:
        shown = set()
        while running.poll() is None:
            folder = Path(f"/proc/{running.process.pid}")
            for path in [folder / "cmdline", *folder.glob("task/*/comm")]:
                try:
                    shown.add(path.read_bytes())
                except OSError:
                    continue
        assert running.wait().exit_code == 0
    assert len(shown) > 1
    assert [text for text in shown if CANARY.encode() in text] == []


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://loader:{CANARY}@warehouse/sales?sslmod=require",
        f"postgres://loader@warehouse:port/sales?password={CANARY}",
        f"postgres:password='{CANARY}",
        f"loader:{CANARY}@warehouse",
    ],
)
def test_a_password_in_a_url_of_the_command_line(project: Project, url: str) -> None:
    project.file("orders.tbl.1")
    ended = project.run("--connection", f"warehouse={url}")
    assert ended.exit_code == 6
    assert CANARY not in ended.stdout + ended.stderr
    assert not project.runs.exists()
