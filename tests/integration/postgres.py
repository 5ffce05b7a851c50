"""A project whose warehouse is a database on a real PostgreSQL server, looked at with the server's own psql."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.tpch import package_path, text_files
from tests.integration.driver import PACKAGE, Project
from tests.patience import HANG_SECONDS
from tests.servers.cluster import Database, ServerError, identifier

# ORDERS of `PACKAGE`, as the table of a user would be.
COLUMNS = "id bigint NOT NULL, amount numeric(9,2), day date, customer varchar(12), note text"
CREATE_ORDERS = f"CREATE TABLE orders ({COLUMNS})"
BEFORE_ROWS = "INSERT INTO orders SELECT -n, n + 0.5, '2020-01-01', 'before', NULL FROM generate_series(1, 3) n"

_DUCKDB_CONNECTION = "{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}"
_DUCKDB_DESTINATION = 'table: "${table}", target: "${target}"}'
# What may be in the ledger's schema when nothing runs.
_LEDGER_TABLES = ("commit", "lineage", "replay", "run", "slice", "task", "unit")

# Tables and views that are no part of the server or the ledger.
_RELATIONS = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|information_schema$|headrace$|oracle$)' ORDER BY 1
"""
# Everything in the ledger's schema that is not its tables; locks and sessions of the loader.
_LEFTOVERS = """
SELECT 'relation ' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'headrace' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relname NOT IN ({ledger})
UNION ALL SELECT 'type ' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname = 'headrace' AND t.typrelid = 0 AND t.typelem = 0
UNION ALL SELECT 'function ' || p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'headrace'
UNION ALL SELECT 'constraint ' || k.conname || ' of ' || k.conrelid::regclass FROM pg_constraint k
WHERE k.conname LIKE '%headrace%' AND k.conrelid <> 0 AND k.connamespace <> to_regnamespace('headrace')
UNION ALL SELECT 'session ' || application_name FROM pg_stat_activity
WHERE datname = current_database() AND usename = 'loader'
UNION ALL SELECT 'advisory lock' FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND d.datname = current_database()
UNION ALL SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE database = current_database()
ORDER BY 1
"""


# Of a btree operator class, by strategy.
OPERATORS = {1: "<", 2: "<=", 3: "=", 4: ">=", 5: ">"}


def literal(text: str) -> str:
    """The text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _relations(database: Database) -> list[str]:
    return [str(name) for (name,) in database.rows(_RELATIONS)]


def any_case_operators(database: Database) -> None:
    """An operator class by which `fr` is `FR`."""
    made = [
        "CREATE FUNCTION any_cmp(text, text) RETURNS int LANGUAGE sql IMMUTABLE "
        "AS 'SELECT bttextcmp(lower($1), lower($2))'"
    ]
    for number, name in OPERATORS.items():
        made.append(
            f"CREATE FUNCTION any_{number}(text, text) RETURNS bool LANGUAGE sql IMMUTABLE "
            f"AS 'SELECT lower($1) {name} lower($2)'; "
            f"CREATE OPERATOR {name}# (LEFTARG = text, RIGHTARG = text, FUNCTION = any_{number})"
        )
    members = ", ".join(f"OPERATOR {number} {name}#" for number, name in OPERATORS.items())
    made.append(
        f"CREATE OPERATOR CLASS any_case_ops FOR TYPE text USING btree AS {members}, FUNCTION 1 any_cmp(text, text)"
    )
    database.psql(";".join(made))


@dataclass(frozen=True)
class Content:
    """What is in the tables of a database: rows and a sum over all of them that does not depend on their order."""

    tables: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, database: Database) -> Content:
        """Of all tables and views outside the ledger, partitions included."""
        while True:
            names = _relations(database)
            try:
                content = cls._of(database, names)
            except ServerError:
                # A transaction of a client that is dead by now may still have exchanged the tables.
                if names == _relations(database):
                    raise
                continue
            if names == _relations(database):
                return content

    @classmethod
    def _of(cls, database: Database, names: Sequence[str]) -> Content:
        if not names:
            return cls(())
        parts = []
        for name in names:
            table = ".".join(map(identifier, name.split(".", 1)))
            parts.append(f"SELECT {literal(name)}, count(*), sum(hashtextextended(t::text, 0)) FROM {table} t")
        # In one statement: tables that are switched together must be seen to change together.
        rows = database.rows(" UNION ALL ".join(parts) + " ORDER BY 1")
        return cls(tuple((str(name), str(count), str(total)) for name, count, total in rows))

    def only(self, table: str) -> Content:
        """The part that belongs to one table: itself and its partitions."""
        own = re.compile(rf"public\.{re.escape(table)}(_\d+)?")
        return Content(tuple(entry for entry in self.tables if own.fullmatch(entry[0])))


class PostgresProject(Project):
    """Packages written for DuckDB load into `target` instead."""

    def __init__(self, folder: Path, target: Database, lock_timeout_seconds: int = 1) -> None:
        self.target = target
        self.lock_timeout_seconds = lock_timeout_seconds
        self.url = target.url
        self.environment = target.environment
        super().__init__(folder)

    def package(self, text: str) -> None:
        """Writes the package; its warehouse is the PostgreSQL database."""
        connection = f'{{type: postgres, url: "{self.url}", lock_timeout_seconds: {self.lock_timeout_seconds}}}'
        super().package(text.replace(_DUCKDB_CONNECTION, connection))

    def sales(self, load: str = "single", partition: str | None = None) -> None:
        """Writes `PACKAGE` with this way of loading; `partition`: the column of a range partition per file."""
        clause = f", partition: {{range: {{column: {partition}}}}}" if partition else ""
        assert _DUCKDB_DESTINATION in PACKAGE
        self.package(PACKAGE.replace(_DUCKDB_DESTINATION, f"{_DUCKDB_DESTINATION[:-1]}, load: {load}{clause}}}"))

    def example(self, files: Path, *arguments: str, mode: str, tables: Sequence[str] = ()) -> list[str]:
        """The command that runs examples/tpch/load.yaml."""
        command = [sys.executable, "-m", "headrace", "run", str(package_path()), "--runs-dir", "runs", "--json"]
        command += ["--set", f"data={files}", "--set", f"mode={mode}", "--streams", "4"]
        if tables:
            command += ["--set", f"tables={','.join(tables)}"]
        return [*command, "--connection", f"warehouse={self.url}", *arguments]

    def query(self, sql: str, database: Path | None = None) -> list[tuple[str | None, ...]]:
        """Rows of a query as text."""
        assert database is None
        return self.target.rows(sql)

    def execute(self, *statements: str) -> None:
        """Changes the database as its owner, without Headrace."""
        self.target.as_loader(";\n".join(statements))

    def tables(self, database: Path | None = None) -> list[str]:
        """All tables and views, `schema.name`, except those of the ledger."""
        assert database is None
        return _relations(self.target)

    def ledger(self, database: Path | None = None) -> list[str]:
        """The status of every run, in the order of their start; nothing if there is no ledger."""
        if self.query("SELECT to_regclass('headrace.run')", database) == [(None,)]:
            return []
        return [str(status) for (status,) in self.query("SELECT status FROM headrace.run ORDER BY started_at")]

    def content(self) -> Content:
        """What is in all tables."""
        return Content.of(self.target)

    def leftovers(self) -> list[str]:
        """What no ended run may leave behind: files, staging tables, sessions, locks."""
        return super().leftovers() + self.left_in_database()

    def left_in_database(self) -> list[str]:
        """The same without files. Sessions of a client that has just died are given a moment to end."""
        sql = _LEFTOVERS.format(ledger=", ".join(f"'{name}'" for name in _LEDGER_TABLES))
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            left = [str(name) for (name,) in self.query(sql)]
            if not any(name.startswith(("session", "advisory")) for name in left) or time.monotonic() > deadline:
                return left
            time.sleep(0.02)

    def stable(self, text: str) -> str:
        """The text without what differs from run to run."""
        text = super().stable(text).replace(f":{self.target.cluster.port}", ":PORT")
        text = text.replace(f"port {self.target.cluster.port}", "port PORT")
        text = text.replace(str(self.target.cluster.folder), "SOCKETS")
        text = re.sub(rf"\b{re.escape(self.target.name)}\b", "DATABASE", text) if self.target.name else text
        text = re.sub(r"\b(base|pg_tblspc)(/[\w.]+)+", r"\1/FILE", text)
        text = re.sub(r"/\S*/(?=(server|client|root|other)\w*\.(crt|key))", "CERTIFICATES/", text)
        return re.sub(r"\b(pid|process|session) \d+", r"\1 PID", text)


@dataclass(frozen=True)
class Before:
    """Tables to be found again after a run that failed."""

    project: PostgresProject
    content: Content

    @classmethod
    def of(cls, project: PostgresProject, *statements: str) -> Before:
        """After these statements; without any: ORDERS with three rows."""
        project.execute(*(statements or (CREATE_ORDERS, BEFORE_ROWS)))
        return cls(project, project.content())

    def check(self, *ledger: str) -> None:
        """Nothing is lost, nothing is added, nothing stays behind; the ledger's runs have these states."""
        assert self.project.content() == self.content
        assert self.project.ledger() == list(ledger)
        if ledger:
            assert self.project.query('SELECT count(*) FROM headrace."commit"') == [("0",)]
        assert self.project.leftovers() == []


def load_with_psql(database: Database, files: Path, tables: Sequence[str], scratch: Path) -> None:
    """Loads TPC-H text into schema `oracle`: the record's DDL, psql COPY of the files without their last delimiters."""
    ddl = Path(__file__).with_name("record.sql").read_text(encoding="utf-8")
    database.as_loader(f"CREATE SCHEMA oracle; SET search_path = oracle;\n{ddl}")
    for table in tables:
        for file in text_files(files, table):
            stripped = scratch / "stripped"
            with stripped.open("wb") as output:
                subprocess.run(["sed", "s/|$//", str(file)], stdout=output, check=True)
            database.psql(f"\\copy oracle.{table} FROM '{stripped}' WITH (DELIMITER '|', NULL '\\N')")
            stripped.unlink()
