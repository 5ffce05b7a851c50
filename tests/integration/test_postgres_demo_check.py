"""The demo's comparison of a PostgreSQL server with the files must find every kind of difference."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import core
from headrace.model.connections import PostgresConnection, parse_overrides
from headrace.model.conninfo import Surroundings
from headrace.tpch.loaded import PostgresTables
from headrace.tpch.verify import TableCheck, verify_tables
from tests.servers.cluster import SUPERUSER, Cluster, Database

CREATE = "CREATE TABLE region (r_regionkey {key}, r_name character(25), r_comment character varying(152))"
ROWS = [(0, "AFRICA", 'a "quoted", word'), (1, "AMERICA", "back\\slash"), (2, "ASIA", "d")]


@pytest.fixture
def place(postgres: Cluster) -> Iterator[Path]:
    """A folder that the server can write."""
    folder = postgres.folder / "exported"
    postgres.account.folder(folder)
    yield folder
    assert not list(folder.iterdir())
    shutil.rmtree(folder)


def check_after(database: Database, place: Path, files: Path, change: str, key: str = "integer") -> TableCheck:
    (files / "region.tbl").write_text("".join(f"{number}|{name}|{text}|\n" for number, name, text in ROWS))
    values = ", ".join(f"({number}, '{name}', '{text}')" for number, name, text in ROWS)
    database.psql(f"{CREATE.format(key=key)}; INSERT INTO region VALUES {values}; {change}")
    url = Database(database.cluster, database.name, SUPERUSER).socket_url
    connection = parse_overrides([f"w={url}"], {"w": None}, Surroundings.of_process({}, files), set())["w"]
    assert isinstance(connection, PostgresConnection)
    with core.PostgresConnection(connection.to_core("test")) as session:
        [check] = verify_tables(PostgresTables(session, place), files, ["region"])
    return check


CHANGES = [
    ("SELECT 1", 0, 0),
    ("DELETE FROM region WHERE r_regionkey = 2", 1, 0),
    ("INSERT INTO region SELECT * FROM region WHERE r_regionkey = 1", 0, 1),
    ("UPDATE region SET r_comment = r_comment || ' ' WHERE r_regionkey = 1", 1, 1),
    ("UPDATE region SET r_name = NULL WHERE r_regionkey = 0", 1, 1),
]


@pytest.mark.parametrize(("change", "only_in_files", "only_in_table"), CHANGES)
def test_differences_are_found(
    database: Database, place: Path, tmp_path: Path, change: str, only_in_files: int, only_in_table: int
) -> None:
    check = check_after(database, place, tmp_path, change)
    assert (check.only_in_files, check.only_in_table) == (only_in_files, only_in_table)
    assert check.equal == (change == "SELECT 1")


def test_a_wrong_type_is_found(database: Database, place: Path, tmp_path: Path) -> None:
    check = check_after(database, place, tmp_path, "SELECT 1", key="bigint")
    assert check.wrong_types == {"r_regionkey": ("BIGINT", "INTEGER")}
