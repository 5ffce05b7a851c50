"""Advice on the settings of a server, and what forbids a load there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.model import load_package
from headrace.model.connections import PostgresConnection
from headrace.targets.postgres.advice import ADVISED_SETTINGS, LOCKS_PER_PARTITION, Setting, advise
from headrace.targets.postgres.inspection import inspect_server
from tests.unit.targets.fake_postgres import Result

# What PostgreSQL 15 starts with: shown, value, unit, context.
DEFAULTS = {
    "wal_level": Setting("replica", "replica", None, "postmaster"),
    "max_wal_size": Setting("1GB", "1024", "MB", "sighup"),
    "checkpoint_timeout": Setting("5min", "300", "s", "sighup"),
    "synchronous_commit": Setting("on", "on", None, "user"),
    "fsync": Setting("on", "on", None, "sighup"),
    "full_page_writes": Setting("on", "on", None, "sighup"),
    "autovacuum": Setting("on", "on", None, "sighup"),
    "shared_buffers": Setting("128MB", "16384", "8kB", "postmaster"),
    "maintenance_work_mem": Setting("64MB", "65536", "kB", "user"),
    "max_parallel_maintenance_workers": Setting("2", "2", None, "user"),
    "wal_buffers": Setting("4MB", "512", "8kB", "postmaster"),
    "effective_io_concurrency": Setting("1", "1", None, "user"),
    "maintenance_io_concurrency": Setting("10", "10", None, "user"),
    "max_locks_per_transaction": Setting("64", "64", None, "postmaster"),
    "max_connections": Setting("100", "100", None, "postmaster"),
    "max_prepared_transactions": Setting("0", "0", None, "postmaster"),
}
SLOW = {
    "wal_level", "max_wal_size", "checkpoint_timeout", "shared_buffers", "maintenance_work_mem", "wal_buffers",
    "effective_io_concurrency",
}  # fmt: skip


def test_a_server_as_it_is_installed() -> None:
    assert set(DEFAULTS) == set(ADVISED_SETTINGS)
    found = advise(DEFAULTS, partitions=0)
    assert {setting.name for setting in found if setting.better} == SLOW
    for setting in found:
        told = (setting.costs, setting.gives_up, setting.statement)
        assert all(told) if setting.better else not any(told), setting.name


def test_what_is_advised_is_fine_once_it_is_set() -> None:
    for setting in advise(DEFAULTS, partitions=0):
        if setting.better is not None:
            value = setting.better.partition(",")[0]
            amount = re.fullmatch(r"(\d+)(\D+)?", value)
            number, unit = amount.groups() if amount else (value, None)
            set_now = {**DEFAULTS, setting.name: Setting(value, number, unit, "sighup")}
            [again] = [item for item in advise(set_now, 0) if item.name == setting.name]
            assert again.better is None, setting.name


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "autovacuum"])
def test_what_keeps_the_rows_safe_is_not_advised_against(name: str) -> None:
    off = {**DEFAULTS, name: Setting("off", "off", None, "sighup")}
    [found] = [item for item in advise(off, 0) if item.name == name]
    assert found.better == "on"


def test_a_restart_is_said_where_it_is_needed() -> None:
    statements = {item.name: item.statement for item in advise(DEFAULTS, 0)}
    assert statements["wal_level"] == (
        "ALTER SYSTEM SET wal_level = 'minimal'; ALTER SYSTEM SET max_wal_senders = 0; restart the server"
    )
    assert statements["max_wal_size"] == "ALTER SYSTEM SET max_wal_size = '16GB'; SELECT pg_reload_conf()"


def test_locks_for_the_partitions_of_one_switch() -> None:
    room = 64 * 100
    for partitions, better in [(0, None), (room // LOCKS_PER_PARTITION, None), (1000, "180")]:
        [found] = [item for item in advise(DEFAULTS, partitions) if item.name == "max_locks_per_transaction"]
        assert found.better == better
    assert found.costs is not None and "9000 locks at once, there is room for 6400" in found.costs


def test_a_setting_that_the_server_does_not_have_is_left_out() -> None:
    assert [item.name for item in advise({"fsync": DEFAULTS["fsync"]}, 10)] == ["fsync"]


class Server:
    """Answers the two queries of an inspection."""

    def __init__(self, **changed: str | None) -> None:
        self.facts: dict[str, str | None] = {
            "version": "18.4",
            "encoding": "UTF8",
            "standby": "f",
            "database": "sales",
            "user": "loader",
            "has_ledger_schema": "f",
            "may_create_schema": "t",
            "may_use_ledger_schema": None,
            "may_create_in_ledger_schema": None,
            **changed,
        }

    def query(self, text: str, _parameters: Sequence[str | None] = ()) -> Result:
        if "pg_settings" in text:
            return Result([], "SELECT 0")
        return Result([list(self.facts.values())], "SELECT 1", list(self.facts))

    def execute(self, sql: str) -> None:
        raise AssertionError(sql)

    def parameter(self, _name: str) -> str | None:
        return None

    def address(self) -> str | None:
        return None

    def process_id(self) -> int:
        return 99

    def cancel(self) -> None: ...

    def close(self) -> None: ...


PROBLEMS = [
    ({"standby": "t"}, "the server is a standby: it only reads; name the primary"),
    ({"encoding": "SQL_ASCII"}, "the database has the encoding SQL_ASCII, which takes any bytes: make one with UTF8"),
    (
        {"may_create_schema": "f"},
        "the user may not make schema headrace of the ledger: GRANT CREATE ON DATABASE to it, or name another schema "
        "with `ledger`",
    ),
    (
        {"has_ledger_schema": "t", "may_use_ledger_schema": "t", "may_create_in_ledger_schema": "f"},
        "the user lacks CREATE on schema headrace of the ledger",
    ),
]


@pytest.mark.parametrize(("changed", "problem"), PROBLEMS)
def test_what_forbids_a_load(changed: dict[str, str | None], problem: str, tmp_path: Path) -> None:
    assert inspect_server(Server(), _model(tmp_path), 0).problems == ()
    found = inspect_server(Server(**changed), _model(tmp_path), 0)
    assert found.problems == (problem,)


PACKAGE = """
headrace: 1
package: inspected
connections:
  here: {type: files, path: .}
  w: {type: postgres, url: "postgresql://loader@host:5432/sales"}
tasks:
  load:
    data_flow:
      sources: {rows: {connection: here, files: "*", layout: {delimiter: "|", columns: [{name: id, type: int32}]}}}
      destinations: {out: {input: rows, connection: w, table: t, target: replace}}
"""


def _model(folder: Path) -> PostgresConnection:
    package = folder / "package.yaml"
    package.write_text(PACKAGE)
    found = load_package(package, sets=[], connections=[], streams=None, environ={}).connections["w"]
    assert isinstance(found, PostgresConnection)
    return found
