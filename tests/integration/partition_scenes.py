"""Loads of divided tables that tests disturb: packages, files, and what an undisturbed run makes of them."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.postgres import Content, PostgresProject, any_case_operators
from tests.servers.cluster import Cluster, Database

PACKAGE = """
headrace: 1
package: sales
parameters:
  files: {{type: list, default: ["sold.*"]}}
  target: {{type: string, default: replace}}
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
  sold:
    delimiter: "|"
    columns:
      - {{name: id, type: int64, nullable: false}}
      - {{name: day, type: date}}
      - {{name: country, type: char(2)}}
      - {{name: amount, type: "decimal(9,2)"}}
      - {{name: note, type: string}}
streams: 4
tasks:
  load_sold:
    data_flow:
      rejects: {{limit: 100}}
      sources:
        rows: {{connection: inbox, files: "${{files}}", layout: sold}}
      destinations:
        sold: {{input: rows, connection: warehouse, table: sold, target: "${{target}}", {clauses}}}
"""

FILES = 4
ROWS_PER_FILE = 20_000
# Rows of which no partition by month or country takes one, and rows that do not conform.
OUTSIDE, UNREADABLE = 3, 2
COMMIT_BYTES = 400_000

HOME = "partition: {range: {column: id}}"
MONTHS = "partition: {range: {column: day, every: 1 month, from: 2024-01-01, to: 2025-01-01}}"
HASH = "partition: {hash: {column: id, parts: 5}}"
# Only the server knows where it puts values of char(n).
COUNTRIES = "partition: {list: {column: country, values: {eu: [FR, DE], asia: [CN, JP]}}}"
ANY_CASE = "partition: {list: {column: country, values: {eu: [fr, DE], asia: [CN, jp]}}}"
COMMIT = f"commit: {{bytes: {COMMIT_BYTES}}}"


@dataclass(frozen=True)
class Case:
    """A way of loading. `target`: the parameter of the run that is disturbed."""

    clauses: str
    target: str = "replace"
    is_visible: bool = False  # what is committed on the way is seen at once
    any_case: bool = False  # the table exists, and its lists take FR for fr

    @property
    def is_committing(self) -> bool:
        """True if slices are committed on the way."""
        return "commit:" in self.clauses


CASES = {
    "home": Case(HOME),
    "home append": Case(HOME, "append"),
    "months": Case(MONTHS),
    "months append": Case(MONTHS, "append"),
    "hash": Case(HASH),
    "server": Case(COUNTRIES),
    "server any case": Case(ANY_CASE, any_case=True),
    "server any case append committing": Case(f"{ANY_CASE}, {COMMIT}", "append", any_case=True),
    "home committing": Case(f"{HOME}, {COMMIT}"),
    "months committing": Case(f"{MONTHS}, {COMMIT}"),
    "hash append committing": Case(f"{HASH}, {COMMIT}", "append"),
    "server committing": Case(f"{COUNTRIES}, {COMMIT}"),
    "plain committing": Case(f"load: single, {COMMIT}"),
    "plain append committing": Case(f"load: single, {COMMIT}", "append", is_visible=True),
}
ANY_CASE_TABLE = """
CREATE TABLE sold (id bigint NOT NULL, day date, country text, amount numeric(9,2), note text)
PARTITION BY LIST (country any_case_ops)
"""
VERIFY = [sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "--json"]
COMMITTING = [name for name, case in CASES.items() if case.is_committing]


def write_files(folder: Path) -> None:
    """`sold.1` to `sold.4`, in the order of their ids but for inner rows that belong into other files; `early` is what
    is there before.
    """
    rng = random.Random(5)
    total = FILES * ROWS_PER_FILE
    ids = list(range(1, total + 1))
    inner = [place for place in range(total) if 0 < place % ROWS_PER_FILE < ROWS_PER_FILE - 1]
    for _ in range(total // 100):
        one, other = rng.sample(inner, 2)
        ids[one], ids[other] = ids[other], ids[one]
    rows = [_row(number) for number in ids]
    for place in rng.sample(inner, OUTSIDE):
        rows[place] = re.sub(r"\|2024-(.....)\|..\|", r"|2023-\1|ZZ|", rows[place])
    for place in rng.sample(inner, UNREADABLE):
        rows[place] = rows[place].replace("|2024-", "|never-").replace("|2023-", "|never-")
    for number in range(FILES):
        text = "".join(rows[number * ROWS_PER_FILE : (number + 1) * ROWS_PER_FILE])
        (folder / f"sold.{number + 1}").write_text(text, encoding="utf-8")
    (folder / "early").write_text("".join(_row(number) for number in range(-500, 0)), encoding="utf-8")


def _row(number: int) -> str:
    month, day = number * 7919 % 12 + 1, number * 31 % 28 + 1
    country = ("FR", "DE", "CN", "JP")[number % 4]
    return f"{number}|2024-{month:02}-{day:02}|{country}|{number % 100_000}.25|note {number} {'x' * 40}\n"


@dataclass(frozen=True)
class Scene:
    """A database that holds `early`; the run adds the four files or replaces by them.

    Its schema `oracle` holds what an undisturbed run has loaded, each row with its partition. `summary`: of that run.
    """

    name: str
    files: Path
    template: Database
    before: Content
    after: Content
    summary: dict[str, Any] = field(repr=False)

    @property
    def case(self) -> Case:
        """What is loaded how."""
        return CASES[self.name]

    @classmethod
    def make(cls, name: str, cluster: Cluster, folder: Path) -> Scene:
        """Loads everything once."""
        files = folder / "files"
        files.mkdir()
        write_files(files)
        # Without a name of its own: a process that takes tests of others may come back to a module, and make it again.
        template = cluster.create_database()
        (folder / "before").mkdir()
        scene = cls(name, files, template, Content(()), Content(()), {})
        project = scene._project(folder / "before", template)
        if scene.case.any_case:
            any_case_operators(template)
            project.execute(ANY_CASE_TABLE)
        project.run(files="early", target="replace").succeeded()
        before = project.content()
        with cluster.database(options=f'TEMPLATE "{template.name}"') as database:
            (folder / "after").mkdir()
            undisturbed = scene._project(folder / "after", database)
            summary = undisturbed.command(scene.command(undisturbed)).succeeded()
            after = undisturbed.content()
            assert undisturbed.leftovers() == []
            dump = folder / "after.csv"
            database.psql(f"\\copy (SELECT tableoid::regclass::text AS partition, * FROM sold) TO '{dump}'")
        assert before != after
        by_key = "day" in scene.case.clauses or "country" in scene.case.clauses
        assert summary["rows_rejected"] == UNREADABLE + OUTSIDE * by_key
        template.as_loader(
            "CREATE SCHEMA oracle; CREATE TABLE oracle.sold AS SELECT NULL::text AS partition, * FROM sold LIMIT 0"
        )
        template.psql(f"\\copy oracle.sold FROM '{dump}'")
        return cls(name, files, template, before, after, summary)

    def _project(self, folder: Path, database: Database, proxy_port: int | None = None) -> PostgresProject:
        project = PostgresProject(folder, database)
        if proxy_port is not None:
            project.url = project.url.replace(f":{database.cluster.port}", f":{proxy_port}")
        project.package(PACKAGE.format(clauses=self.case.clauses))
        project.link(self.files.iterdir())
        return project

    @contextmanager
    def project(self, folder: Path, proxy_port: int | None = None) -> Iterator[PostgresProject]:
        """A project on a fresh copy of the template."""
        folder.mkdir()
        with self.template.cluster.database(options=f'TEMPLATE "{self.template.name}"') as database:
            yield self._project(folder, database, proxy_port)

    def command(self, project: PostgresProject) -> list[str]:
        """The run that is disturbed."""
        return project.arguments(target=self.case.target)

    # --- checks -------------------------------------------------------------------------------------------------------

    def check_nothing_half_loaded(self, project: PostgresProject) -> None:
        """The table is as before or as after, in every partition. Rows appended on the way are those of the ledger."""
        if not self.case.is_visible:
            assert project.content() in (self.before, self.after)
            return
        [(rows, committed)] = project.query(
            'SELECT (SELECT count(*) FROM sold), (SELECT sum(rows_loaded) FROM headrace."commit")'
        )
        assert rows == committed

    def check_complete(self, project: PostgresProject) -> None:
        """As after an undisturbed run: rows, partitions, ledger, and nothing else."""
        placed = "SELECT tableoid::regclass::text AS partition, * FROM sold"
        assert project.query(
            f"SELECT (SELECT count(*) FROM ({placed} EXCEPT ALL TABLE oracle.sold) d),"
            f" (SELECT count(*) FROM (TABLE oracle.sold EXCEPT ALL {placed}) d)"
        ) == [("0", "0")]
        assert project.content() == self.after
        left = project.leftovers()
        assert left == [], left
        states = project.ledger()
        assert states[-1] == "success"
        assert set(states) <= {"success", "lost", "failed"}
        [(rows, rejected)] = project.query(
            'SELECT sum(rows_loaded), sum(rows_rejected) FROM headrace."commit" '
            "WHERE run_id = (SELECT run_id FROM headrace.run ORDER BY started_at DESC LIMIT 1)"
        )
        assert (rows, rejected) == (str(self.summary["rows_loaded"]), str(self.summary["rows_rejected"]))

    def check_accounts(self, project: PostgresProject, summary: dict[str, Any]) -> None:
        """Those of the whole load, however many attempts it took; every reject once."""
        for name in ("rows_read", "rows_loaded", "rows_rejected"):
            assert summary[name] == self.summary[name], name
        [table], [expected] = summary["tables"], self.summary["tables"]
        for name in ("rows_read", "rows_loaded", "rows_rejected", "slices"):
            assert table.get(name) == expected.get(name), name
        verified = project.command(VERIFY)
        # What was there before makes the difference.
        assert verified.exit_code == int(self.case.target == "append"), verified.stderr
