"""Packages on DuckDB and on PostgreSQL alike: run, killed, resumed, and what is in all tables afterwards."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.driver import Ended, Project
from tests.integration.postgres import PostgresProject
from tests.servers.cluster import Cluster

TARGETS = ("duckdb", "postgres")
_POLL_SECONDS = 0.001
# A kill comes up to so long behind a line of the journal.
_MOMENT_SECONDS = 0.03
# What `resume` says if there is nothing to resume.
NOTHING_TO_RESUME = 6
_TABLES = """
SELECT table_schema || '.' || table_name FROM information_schema.tables
WHERE table_schema NOT IN ('headrace', 'information_schema', 'pg_catalog', 'oracle') ORDER BY 1
"""

Rows = list[tuple[str | None, ...]]


@dataclass
class PackageProject:
    """A folder with a package, and a database for its connection `warehouse`."""

    project: Project
    package: str = "package.yaml"

    @property
    def folder(self) -> Path:
        """Where the package is, and everything that it makes."""
        return self.project.folder

    @property
    def url(self) -> str:
        """The database, as `--connection` takes it."""
        if isinstance(self.project, PostgresProject):
            return self.project.url
        return f"duckdb://{self.project.database}"

    def write(self, files: Mapping[str, str]) -> None:
        """Writes files by their names."""
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")

    def run_command(self, *arguments: str) -> list[str]:
        """The command that runs the package."""
        command = [sys.executable, "-m", "headrace", "run", self.package, "--runs-dir", "runs", "--json"]
        return [*command, "--connection", f"warehouse={self.url}", *arguments]

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Ended:
        """Runs it and waits for the end."""
        return self.project.command(self.run_command(*arguments), environment)

    def resume(self, *arguments: str) -> Ended:
        """Goes on with the last unfinished run."""
        return self.project.resume(*arguments)

    def rows(self, query: str) -> Rows:
        """Rows as text, alike for both targets."""
        return [tuple(None if value is None else str(value) for value in row) for row in self.project.query(query)]

    def content(self, *without: str) -> dict[str, Rows]:
        """All tables, rows sorted; `without`: columns that differ from run to run."""
        return {str(name): self._content(str(name), without) for (name,) in self.rows(_TABLES)}

    def _content(self, table: str, without: tuple[str, ...]) -> Rows:
        schema, name = table.split(".", 1)
        columns = [
            str(column)
            for (column,) in self.rows(
                "SELECT column_name FROM information_schema.columns "
                f"WHERE table_schema = '{schema}' AND table_name = '{name}' ORDER BY ordinal_position"
            )
            if column not in without
        ]
        shown = ", ".join(f'"{column}"' for column in columns) or "1"
        return sorted(self.rows(f"SELECT {shown} FROM {table}"), key=str)

    def files(self, folder: str) -> list[str]:
        """The files below a folder, by name."""
        root = self.folder / folder
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def journal_bytes(self) -> bytes:
        """The journal of the latest run; nothing if there is none."""
        paths = sorted(self.project.runs.glob("*/journal.jsonl"), key=lambda path: path.stat().st_ctime_ns)
        return paths[-1].read_bytes() if paths else b""

    def journal(self) -> list[dict[str, Any]]:
        """Its whole lines."""
        return [json.loads(line) for line in self.journal_bytes().splitlines(keepends=True) if line.endswith(b"\n")]

    def killed(self, command: list[str], lines: int) -> bool:
        """Starts a command and kills it a moment behind so many lines of its journal; False if it ended before."""
        with self.project.started(command) as running:
            while running.poll() is None and self.journal_bytes().count(b"\n") < lines:
                time.sleep(_POLL_SECONDS)
            running.wait_until(random.random() * _MOMENT_SECONDS)
            running.end()
            assert running.ended is not None
            assert "Traceback" not in running.ended.stderr, running.ended.stderr
            return running.ended.exit_code == -signal.SIGKILL

    def finish(self, lines: int, kill_again: float = 0.5) -> Ended:
        """Goes on until all is done, however often it is killed on the way: with the probability `kill_again` each
        time. `lines`: how long the journal becomes.
        """
        while True:
            written = self.journal_bytes().count(b"\n")
            if written < lines and random.random() < kill_again:
                self.killed(self.project.resume_command(), random.randint(written, lines))
                continue
            ended = self.resume()
            assert "Traceback" not in ended.stderr, ended.stderr
            if ended.exit_code == NOTHING_TO_RESUME and written < lines - 1:
                ended = self.run()  # it had not even begun
            assert ended.exit_code in (0, NOTHING_TO_RESUME), ended.stderr
            return ended


@contextmanager
def package_project(target: str, folder: Path, postgres: Cluster) -> Iterator[PackageProject]:
    """An empty project with an empty database."""
    folder.mkdir(parents=True, exist_ok=True)
    if target == "duckdb":
        yield PackageProject(Project(folder))
    else:
        with postgres.database() as database:
            yield PackageProject(PostgresProject(folder, database))


def copied(source: Path, folder: Path) -> None:
    """The files of an example, over what is in the folder."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
