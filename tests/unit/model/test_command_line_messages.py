"""Messages about the values that the command line gives to a package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CommandLineError
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import change, load, message

PARAMETERS = """\
  day: {type: date, required: true, description: business day}
  count: {type: integer, default: 8}
  rate: {type: decimal, default: 0.05}
  full: {type: boolean, default: false}
  folder: {type: path, required: true}
  mode: {type: string, default: staged, one_of: [staged, single, view]}
  tables: {type: list, default: [], one_of: [orders, returns]}
  days: {type: list, items: date, default: []}
"""
PACKAGE = change(
    """\
  day: {type: date, default: 2024-01-31}
  mode: {type: string, default: staged, one_of: [staged, single, view]}
  tables: {type: list, default: [orders, returns]}
""",
    PARAMETERS,
)
GIVEN = ["day=2024-01-31", "folder=data"]

CASES: dict[str, dict[str, Any]] = {
    "set_missing_required": {},
    "set_missing_one_required": {"sets": ["day=2024-01-31"]},
    "set_without_equals": {"sets": ["day"]},
    "set_without_name": {"sets": ["=5"]},
    "set_unknown": {"sets": [*GIVEN, "tabels=orders"]},
    "set_unknown_far": {"sets": [*GIVEN, "zzz=1"]},
    "set_twice": {"sets": [*GIVEN, "day=2024-02-01"]},
    "set_integer": {"sets": [*GIVEN, "count=eight"]},
    "set_integer_octal": {"sets": [*GIVEN, "count=010"]},
    "set_decimal": {"sets": [*GIVEN, "rate=5%"]},
    "set_boolean": {"sets": [*GIVEN, "full=yes"]},
    "set_date": {"sets": ["folder=data", "day=31.01.2024"]},
    "set_date_not_in_calendar": {"sets": ["folder=data", "day=2024-02-30"]},
    "set_path_empty": {"sets": ["day=2024-01-31", "folder="]},
    "set_choice": {"sets": [*GIVEN, "mode=stagd"]},
    "set_list_choice": {"sets": [*GIVEN, "tables=orders,retruns"]},
    "set_list_empty_item": {"sets": [*GIVEN, "tables=orders,,returns"]},
    "set_list_item_type": {"sets": [*GIVEN, "days=2024-01-31,soon"]},
    "connection_without_equals": {"sets": GIVEN, "connections": ["warehouse"]},
    "connection_unknown": {"sets": GIVEN, "connections": ["warehose=null:"]},
    "connection_twice": {"sets": GIVEN, "connections": ["warehouse=null:", "warehouse=null:"]},
    "connection_scheme_of_a_later_version": {
        "sets": GIVEN,
        "connections": ["warehouse=sqlserver://user:password@host/db"],
    },
    "connection_scheme_misspelt": {"sets": GIVEN, "connections": ["warehouse=duckbd:x.duckdb"]},
    "connection_without_scheme": {"sets": GIVEN, "connections": ["warehouse=x.duckdb"]},
    "connection_without_path": {"sets": GIVEN, "connections": ["warehouse=duckdb:"]},
    "connection_in_memory": {"sets": GIVEN, "connections": ["warehouse=duckdb::memory:"]},
    "connection_with_user_and_host": {"sets": GIVEN, "connections": ["warehouse=duckdb://user:secret@host/x.duckdb"]},
    "connection_in_home": {"sets": GIVEN, "connections": ["warehouse=duckdb:~/x.duckdb"]},
    "set_path_in_home": {"sets": ["day=2024-01-31", "folder=~/data"]},
    "connection_null_with_path": {"sets": GIVEN, "connections": ["warehouse=null:x"]},
    "streams_zero": {"sets": GIVEN, "streams": 0},
    "streams_too_many": {"sets": GIVEN, "streams": 1025},
}


@pytest.mark.parametrize("name", CASES)
def test_message(name: str, tmp_path: Path) -> None:
    assert_snapshot(f"command_line_{name}", message(tmp_path, PACKAGE, **CASES[name]))


@pytest.mark.parametrize("name", CASES)
def test_exit_code(name: str, tmp_path: Path) -> None:
    with pytest.raises(CommandLineError) as raised:
        load(tmp_path, PACKAGE, **CASES[name])
    assert raised.value.exit_code == 6


def test_a_password_in_a_url_is_not_repeated(tmp_path: Path) -> None:
    for url in (
        "postgresql://u:hunter2@h/d?sslmod=require",
        "postgres:password=my hunter2=3",
        "postgresql://u:hunter 2@h/hunter2",
        "postgresql://u:%hunter2@h",
        "postgresql://[hunter2",
        "postgresql://h:hunter2",
        "postgresql://h?hunter2",
        "postgres:password='hunter2",
        "postgres:password=x hunter2",
        "u:hunter2@h",
        "hunter2@host",
        "duckdb2://hunter2",
        "duckdb://u:hunter2@h/d",
        "duckdb://hunter2@h",
    ):
        with pytest.raises(CommandLineError) as raised:
            load(tmp_path, PACKAGE, sets=GIVEN, connections=[f"warehouse={url}"])
        assert "hunter2" not in raised.value.render()
