"""Rows that PostgreSQL would not take: rejects where its catalog tells, errors with file, row and byte elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.driver import GOOD_ROWS, Ended
from tests.integration.postgres import BEFORE_ROWS, COLUMNS, CREATE_ORDERS, Before, PostgresProject
from tests.servers.cluster import Cluster
from tests.snapshots import assert_snapshot

PRIMARY_KEY = CREATE_ORDERS.replace("NOT NULL", "PRIMARY KEY")
ROW = "{}|{}.25|2024-02-29|customer|note\n"
MANY = 200_000


def rows(ids: Sequence[int]) -> list[str]:
    return [ROW.format(number, number % 1000) for number in ids]


def check_located(ended: Ended, file: Path, row: int) -> None:
    """The error names this row of this file, and a byte inside it."""
    assert ended.exit_code == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    at = ended.summary["error"]["at"]
    assert (Path(at["file"]).name, at["row"]) == (file.name, row), ended.error
    lines = file.read_bytes().splitlines(True)
    begin = sum(map(len, lines[: row - 1]))
    assert begin <= at["byte"] < begin + len(lines[row - 1])
    assert ended.summary["rows_loaded"] == 0


# --- constraints that only the server can check -----------------------------------------------------------------------


@pytest.mark.parametrize("target", ["append", "replace"])
def test_a_duplicate_key(warehouse: PostgresProject, target: str) -> None:
    """Both rows are in one file: the second one is named, by COPY or behind the index, which is built at last."""
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS)
    file = warehouse.file("orders.tbl.1", "".join(rows([*range(1, 101), 7, *range(102, 200)])))
    ended = warehouse.run("--streams", "1", target=target)
    check_located(ended, file, 101)
    assert_snapshot(f"postgres_duplicate_key_{target}", warehouse.stable(ended.error))
    before.check("failed")


def test_a_key_that_the_table_has(warehouse: PostgresProject) -> None:
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS)
    file = warehouse.file("orders.tbl.1", "".join(rows([*range(1, 51), -2, *range(52, 100)])))
    check_located(warehouse.run(target="append"), file, 51)
    before.check("failed")


def test_a_duplicate_key_far_inside_a_large_file(warehouse: PostgresProject) -> None:
    """Many blocks, batches, frames and slices lie before the row."""
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS)
    ids = [*range(1, MANY), 150_000]
    file = warehouse.file("orders.tbl.1", "".join(rows(ids)))
    ended = warehouse.run("--streams", "1", target="append")
    check_located(ended, file, MANY)
    before.check("failed")


def test_a_duplicate_key_in_two_files(warehouse: PostgresProject) -> None:
    """Two writers would wait for each other's keys: there is one."""
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS)
    first = warehouse.file("orders.tbl.1", "".join(rows(range(1, MANY))))
    second = warehouse.file("orders.tbl.2", "".join(rows([*range(MANY, 2 * MANY), 99])))
    ended = warehouse.run("--streams", "2", target="append")
    if Path(ended.summary["error"]["at"]["file"]).name == first.name:
        check_located(ended, first, 99)
    else:
        check_located(ended, second, MANY + 1)
    before.check("failed")


@pytest.mark.parametrize(("load", "target"), [("single", "append"), ("single", "replace"), ("staged", "replace")])
def test_a_check_constraint(warehouse: PostgresProject, load: str, target: str) -> None:
    if load == "staged":
        warehouse.sales("staged", partition="id")
        warehouse.file("orders.tbl.1")
        warehouse.run(target="create").succeeded()
        warehouse.execute("ALTER TABLE orders ADD CONSTRAINT not_too_much CHECK (amount < 1000)")
        content = warehouse.content()
    else:
        check = "amount numeric(9,2) CONSTRAINT not_too_much CHECK (amount < 1000)"
        content = Before.of(warehouse, CREATE_ORDERS.replace("amount numeric(9,2)", check), BEFORE_ROWS).content
    file = warehouse.file("orders.tbl.1", GOOD_ROWS + "101|999.99|||\n102|1000.00|||\n103|1.00|||\n")
    ended = warehouse.run(target=target)
    check_located(ended, file, 102)
    assert "not_too_much" in ended.error
    assert_snapshot(f"postgres_check_{load}_{target}", warehouse.stable(ended.error))
    assert warehouse.content() == content
    assert warehouse.leftovers() == []


def test_a_row_outside_the_bounds_of_its_file(warehouse: PostgresProject) -> None:
    """First and last row promise 1 to 100, a row between them has 500, which no file has promised."""
    warehouse.sales("staged", partition="id")
    file = warehouse.file("orders.tbl.1", "".join(rows([*range(1, 50), 500, *range(51, 101)])))
    warehouse.file("orders.tbl.2", "".join(rows(range(101, 201))))
    ended = warehouse.run(target="replace")
    check_located(ended, file, 50)
    assert_snapshot("postgres_outside_bounds", warehouse.stable(ended.error))
    assert (warehouse.tables(), warehouse.leftovers()) == ([], [])


def test_files_that_overlap_share_their_partitions(warehouse: PostgresProject) -> None:
    """The second file begins inside the first one: its first key divides the table."""
    warehouse.sales("staged", partition="id")
    warehouse.file("orders.tbl.1", "".join(rows(range(1, 101))))
    warehouse.file("orders.tbl.2", "".join(rows(range(50, 151))))
    warehouse.run(target="replace").succeeded()
    found = warehouse.query(
        "SELECT tableoid::regclass::text, count(*), min(id), max(id) FROM orders GROUP BY 1 ORDER BY 1"
    )
    assert found == [("orders_1", "49", "1", "49"), ("orders_2", "152", "50", "150")]


# --- what the catalog tells: rejects ----------------------------------------------------------------------------------

REJECTS = {
    "null": ("note text", "note text NOT NULL", "101|1.00|2024-01-01|x|\n"),
    "length": ("customer varchar(12)", "customer varchar(5)", "101|1.00|2024-01-01|äöüßéx|y\n"),
    "length_of_text": ("note text", "note varchar(9)", "101|1.00|2024-01-01|x|0123456789\n"),
}


@pytest.mark.parametrize("target", ["append", "replace"])
@pytest.mark.parametrize("case", REJECTS)
def test_rejected_by_the_catalog(warehouse: PostgresProject, case: str, target: str) -> None:
    """Nobody asked the server: the row is a reject like any other."""
    column, narrower, bad = REJECTS[case]
    create = f"CREATE TABLE orders ({COLUMNS.replace(column, narrower)})"
    before = Before.of(warehouse, create, "INSERT INTO orders VALUES (-1, 1, '2020-01-01', 'a', 'b')")
    good = "".join(f"{number}|1.00|2024-01-01|abc|def\n" for number in range(1, 101))
    file = warehouse.file("orders.tbl.1", good + bad + "102|1.00|2024-01-01|äöüßé|y\n")
    ended = warehouse.run(target=target)
    check_located(ended, file, 101)
    assert ended.summary["error"]["kind"] == "reject_limit"
    assert_snapshot(f"postgres_reject_{case}_{target}", warehouse.stable(ended.error))
    before.check("failed")
    summary = warehouse.run(target=target, limit=1).succeeded()
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (101, 1)
    assert warehouse.query("SELECT count(*) FROM orders WHERE id > 0") == [("101",)]


TYPES = {
    "integer": ("id bigint", "id integer"),
    "fewer_digits": ("amount numeric(9,2)", "amount numeric(7,2)"),
    "fewer_decimals": ("amount numeric(9,2)", "amount numeric(9,1)"),
    "float": ("amount numeric(9,2)", "amount double precision"),
    "text_as_date": ("day date", "day text"),
    "bytes": ("note text", "note bytea"),
    "array": ("note text", "note text[]"),
}


@pytest.mark.parametrize("case", TYPES)
def test_a_column_that_would_lose_something(warehouse: PostgresProject, case: str) -> None:
    """Refused before the first row, with advice, or rejected row by row."""
    column, other = TYPES[case]
    before = Before.of(warehouse, f"CREATE TABLE orders ({COLUMNS.replace(column, other)})")
    warehouse.file("orders.tbl.1", "3000000000|9999999.75|2024-02-29|x|y\n")
    ended = warehouse.run()
    assert ended.exit_code == 1
    assert ended.summary["error"]["kind"] in ("type_mismatch", "reject_limit"), ended.error
    assert_snapshot(f"postgres_type_{case}", warehouse.stable(ended.error))
    assert (warehouse.content(), warehouse.leftovers()) == (before.content, [])


def test_a_domain_is_its_base_type(warehouse: PostgresProject) -> None:
    warehouse.execute(
        "CREATE DOMAIN money_amount AS numeric(9,2) CHECK (value < 1000)",
        f"CREATE TABLE orders ({COLUMNS.replace('numeric(9,2)', 'money_amount')})",
    )
    file = warehouse.file("orders.tbl.1")
    assert warehouse.run(target="append").succeeded()["rows_loaded"] == 100
    file.write_text(GOOD_ROWS + "101|1000.00|||\n")
    ended = warehouse.run(target="append")
    check_located(ended, file, 101)
    assert_snapshot("postgres_domain", warehouse.stable(ended.error))


# --- texts ------------------------------------------------------------------------------------------------------------


def test_nul_in_text(warehouse: PostgresProject) -> None:
    """PostgreSQL cannot store it: a reject, before the server sees it."""
    file = warehouse.file("orders.tbl.1", GOOD_ROWS.encode() + b"101|1.00|2024-01-01|x|a\0b\n")
    ended = warehouse.run()
    check_located(ended, file, 101)
    assert_snapshot("postgres_nul", warehouse.stable(ended.error))
    summary = warehouse.run(limit=1).succeeded()
    assert (summary["rows_loaded"], summary["tables"][0]["rejects"]["by_rule"]) == (100, {"nul_byte": 1})


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP"])
def test_a_database_of_another_encoding(postgres: Cluster, tmp_path: Path, encoding: str) -> None:
    """The server converts; a character that its encoding lacks fails the load with its place."""
    options = f"ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    with postgres.database(options=options) as database:
        (tmp_path / "project").mkdir()
        warehouse = PostgresProject(tmp_path / "project", database)
        text = {"LATIN1": "é", "EUC_JP": "日本"}[encoding]
        file = warehouse.file("orders.tbl.1", f"1|1.00||zwei|{text}\n")
        warehouse.run().succeeded()
        assert warehouse.query("SELECT encode(convert_to(note, 'UTF8'), 'hex') FROM orders") == [(text.encode().hex(),)]
        file.write_text(f"1|1.00||zwei|{text}\n2|1.00||drei|日本 😀\n", encoding="utf-8")
        ended = warehouse.run()
        check_located(ended, file, 2)
        assert_snapshot(f"postgres_encoding_{encoding.lower()}", warehouse.stable(ended.error))
        assert warehouse.query("SELECT count(*) FROM orders") == [("1",)]
