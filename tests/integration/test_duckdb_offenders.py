"""Rows that a constraint of a DuckDB table refuses: a second pass over the source names file, row and byte."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.integration.driver import CREATE_ORDERS, GOOD_ROWS, PACKAGE, Ended, Project
from tests.snapshots import assert_snapshot

SEARCHES = "looking for the row with a second pass over the source"
ROW = "{}|{}.25|2024-02-29|customer|note\n"
# Two slices and more.
MANY = 200_000

# Columns of the table, rows of a file, place and message of the row that offends.
OFFENDERS = {
    "primary_key": ("id BIGINT PRIMARY KEY, note VARCHAR", "1|a\n2|b\n3|c\n2|d\n1|e\n", 4),
    "unique": ("id BIGINT, note VARCHAR UNIQUE", "1|a\n2|\n3|\n4|A\n5|a \n6|a\n", 6),
    "composite": ("id BIGINT, note VARCHAR, UNIQUE (note, id)", "1|(a, b)\n2|(a, b)\n1|(a\n1|\n1|\n1|(a, b)\n", 6),
    "unique_collated": ("id BIGINT, note VARCHAR COLLATE NOCASE UNIQUE", "1|a\n2|A\n3|b\n4|A\n", 4),
    "check": ("id BIGINT CONSTRAINT small CHECK (orders.id < 100), note VARCHAR", "1|a\n|b\n99|c\n100|d\n101|e\n", 4),
    "check_of_table": ('id BIGINT, note VARCHAR, CHECK (length("note") < id)', "2|a\n\n2|\n2|ab\n", 4),
    "first_in_file_order": ("id BIGINT PRIMARY KEY, note VARCHAR CHECK (note <> 'x')", "1|a\n2|x\n1|c\n", 2),
}
PAIRS = PACKAGE.replace(
    PACKAGE[PACKAGE.index("      - {name: id") : PACKAGE.index("streams: 4")],
    "      - {name: id, type: int64}\n      - {name: note, type: string}\n",
)


def check_located(ended: Ended, file: Path, row: int) -> None:
    """The error names this row of this file, and its first byte."""
    assert ended.exit_code == 1, ended.stderr
    assert SEARCHES in ended.stderr
    byte = sum(map(len, file.read_bytes().splitlines(True)[: row - 1]))
    assert ended.summary["error"]["at"] == {"file": str(file), "row": row, "byte": byte}, ended.error
    assert ended.summary["rows_loaded"] == 0


def check_unnamed(ended: Ended) -> None:
    """The error is DuckDB's, and no place is guessed."""
    assert ended.exit_code == 1, ended.stderr
    assert "Constraint Error" in ended.error
    assert ended.summary["error"]["at"] is None
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("case", OFFENDERS)
def test_the_first_row_that_offends(project: Project, case: str) -> None:
    columns, text, row = OFFENDERS[case]
    project.package(PAIRS)
    project.execute(f"CREATE TABLE orders ({columns})", "INSERT INTO orders VALUES (77, 'before')")
    file = project.file("orders.tbl.1", text)
    ended = project.run()
    check_located(ended, file, row)
    assert_snapshot(f"duckdb_offender_{case}", project.stable(ended.error))
    assert project.query("FROM orders") == [(77, "before")]
    assert project.leftovers() == []


@pytest.mark.parametrize("streams", ["1", "4"])
def test_keys_in_two_files(project: Project, streams: str) -> None:
    project.execute(CREATE_ORDERS, 'CREATE UNIQUE INDEX "by id" ON orders (id, customer)')
    project.file("orders.tbl.1", "".join(ROW.format(number, 1) for number in range(1, MANY)))
    second = project.file("orders.tbl.2", "".join(ROW.format(number, 1) for number in [*range(MANY, 2 * MANY), 99, 7]))
    ended = project.run("--streams", streams)
    check_located(ended, second, MANY + 1)
    found = "Key (id, customer)=(99, 'customer'), first in orders.tbl.1, row 99\nbreaks index by id"
    assert ended.summary["error"]["found"] == found
    assert project.query("SELECT count(*) FROM orders") == [(0,)]


def test_a_key_that_the_table_has(project: Project) -> None:
    """What a row repeats may be in the table or in the source: the first row that does either is named."""
    project.execute(CREATE_ORDERS.replace("id BIGINT", "id BIGINT PRIMARY KEY"), "INSERT INTO orders (id) VALUES (50)")
    file = project.file("orders.tbl.1", GOOD_ROWS + "1|1.00|||\n")
    ended = project.run(target="append")
    check_located(ended, file, 50)
    assert_snapshot("duckdb_offender_in_table", project.stable(ended.error))
    file.write_text("1|1.00|||\n1|1.00|||\n50|1.00|||\n")
    check_located(project.run(target="append"), file, 2)
    assert project.query("SELECT id FROM orders") == [(50,)]


@pytest.mark.parametrize(
    ("kind", "first", "other"),
    [
        ("decimal(20,2)", "1.50", "1.5"),
        ("float64", "0.1", "1e-1"),
        ("bool", "true", "t"),
        ("date", "2024-02-29", "2024-02-29"),
        ("time", "12:00:00", "12:00:00.000"),
        ("timestamp", "2024-02-29 12:00:00", "2024-02-29T12:00:00.0"),
        ("timestamptz", "2024-02-29 12:00:00Z", "2024-02-29 13:00:00+01:00"),
        ("bytes", "\\x00ff", "\\x00FF"),
        ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
        ("char(4)", "ab", "ab  "),
        ("int16", "7", "+7"),
    ],
)
def test_keys_of_every_type(project: Project, kind: str, first: str, other: str) -> None:
    """Within the source and against the table, whatever the text of the values."""
    project.package(PAIRS.replace("note, type: string", f'note, type: "{kind}"'))
    file = project.file("orders.tbl.1", f"1|{first}\n")
    project.run(target="create").succeeded()
    project.execute("CREATE UNIQUE INDEX one ON orders (note)")
    file.write_text(f"5|{first}\n6|{other}\n")
    check_located(project.run(target="replace"), file, 2)
    file.write_text(f"5|\n6|{other}\n")
    check_located(project.run(target="append"), file, 2)


def test_appended_to_an_empty_table(project: Project) -> None:
    """Whoever asks for keys that it has already wants no more rows than one."""
    project.package(PAIRS)
    project.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR)")
    file = project.file("orders.tbl.1", "".join(f"{number}|{'x' * 40}\n" for number in [*range(MANY), 3]))
    check_located(project.run(target="append"), file, MANY + 1)


def divide(project: Project, clause: str = "range: {column: id, every: 100}") -> None:
    """Makes the package's table a view over the tables of its partitions."""
    project.package(
        PAIRS.replace('target: "${target}"}', f'target: "${{target}}", load: view, partition: {{{clause}}}}}')
    )


@pytest.mark.parametrize("streams", ["1", "4"])
def test_a_table_of_a_view(project: Project, streams: str) -> None:
    """Keys are compared within their partition, and the row is named as if there were no others."""
    divide(project)
    project.file("orders.tbl.1", "1|a\n101|a\n201|a\n")
    project.run(target="create").succeeded()
    project.execute("CREATE UNIQUE INDEX note_once ON orders_2 (note)")
    others = "".join(f"{number}|same\n" for number in range(2, 90))
    file = project.file("orders.tbl.1", f"{others}102|b\n{others}103|c\n203|c\n104|b\n105|c\n")
    ended = project.run("--streams", streams, target="append")
    check_located(ended, file, 2 * 88 + 4)
    assert_snapshot("duckdb_offender_in_partition", project.stable(ended.error))
    assert project.query("SELECT id FROM orders ORDER BY id") == [(1,), (101,), (201,)]
    assert project.leftovers() == []
    file.write_text("2|a\n102|a\n202|a\n")
    ended = project.run(target="append")
    check_located(ended, file, 2)
    assert ended.summary["error"]["found"].startswith("Key (note)=('a'), which the table has already")


def test_many_rows_of_several_files_and_partitions(project: Project) -> None:
    """Rows that no partition takes are passed over, in every slice."""
    clause = "hash: {column: id, parts: 3}"
    divide(project, clause)
    project.file("orders.tbl.1", "1|a\n")
    project.run(target="create").succeeded()
    tables = [name.removeprefix("main.") for name in project.tables() if name != "main.orders"]
    assert len(tables) == 3
    project.execute(*(f"CREATE UNIQUE INDEX once_{name} ON {name} (id)" for name in tables))
    project.file("orders.tbl.1", "".join(f"{number}|{'x' * 40}\n" for number in range(2, MANY)))
    second = project.file("orders.tbl.2", "".join(f"{number}|\n" for number in [*range(MANY, MANY + 50), 99, 7]))
    ended = project.run(target="append")
    row = int(ended.summary["error"]["at"]["row"])
    check_located(ended, second, row)
    assert row in (51, 52)
    key = {51: 99, 52: 7}[row]
    assert f"Key (id)=({key}), first in orders.tbl.1, row {key - 1}" in ended.summary["error"]["found"]


def test_a_partition_that_is_loaded_anew(project: Project) -> None:
    """What it had before is no obstacle: neither to the rows nor to the search."""
    divide(project)
    file = project.file("orders.tbl.1", "1|a\n2|b\n101|a\n")
    project.run(target="create").succeeded()
    project.execute("CREATE UNIQUE INDEX once ON orders_1 (note)")
    package = (project.folder / "package.yaml").read_text()
    project.package(package.replace("load: view", "load: view, partitions: [orders_1]"))
    file.write_text("3|b\n4|a\n")
    project.run(target="replace").succeeded()
    file.write_text("5|a\n101|z\n6|b\n7|a\n")
    check_located(project.run(target="replace", limit=1), file, 4)
    assert project.query("SELECT id FROM orders ORDER BY id") == [(3,), (4,), (101,)]


@pytest.mark.parametrize("name", ["place", "position"])
def test_columns_called_like_those_of_the_search(project: Project, name: str) -> None:
    divide(project)
    package = (project.folder / "package.yaml").read_text()
    project.package(package.replace("name: note", f"name: {name}"))
    file = project.file("orders.tbl.1", "1|a\n101|a\n")
    project.run(target="create").succeeded()
    project.execute(f"CREATE UNIQUE INDEX once ON orders_1 ({name})")
    file.write_text("101|b\n3|b\n4|b\n")
    check_located(project.run(target="append"), file, 3)


UNKNOWN = {
    "expression": ["CREATE UNIQUE INDEX one ON orders (lower(note))"],
    "foreign_key": [
        "DROP TABLE orders",
        "CREATE TABLE ids (id BIGINT PRIMARY KEY)",
        "CREATE TABLE orders (id BIGINT REFERENCES ids (id), note VARCHAR)",
    ],
    "check_with_collation": [
        "DROP TABLE orders",
        "CREATE TABLE orders (id BIGINT, note VARCHAR COLLATE NOCASE CHECK (note <> 'a'))",
    ],
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_only_the_table_can_tell(project: Project, case: str) -> None:
    project.package(PAIRS)
    project.execute("CREATE TABLE orders (id BIGINT, note VARCHAR)", *UNKNOWN[case])
    project.file("orders.tbl.1", "1|a\n2|A\n")
    check_unnamed(project.run(target="append"))


def test_generated_rows_have_no_place(project: Project) -> None:
    project.tpch("nation", source="generate: {{tpch: {table}, scale: 0.01}}")
    project.run(target="create").succeeded()
    project.execute("DELETE FROM nation", "CREATE UNIQUE INDEX one ON nation (n_regionkey)")
    ended = project.run(target="append")
    check_unnamed(ended)
    assert SEARCHES not in ended.stderr


def test_cancelled(project: Project) -> None:
    """The load had failed before: its error stands."""
    project.execute(CREATE_ORDERS.replace("id BIGINT", "id BIGINT PRIMARY KEY"))
    project.file("orders.tbl.1", "".join(ROW.format(number, 1) for number in [*range(1, 5 * MANY), 5]))
    with project.started(project.arguments()) as running:
        project.wait_for_event(running, "notice", text=SEARCHES)
        running.signal(signal.SIGINT)
        ended = running.wait()
    check_unnamed(ended)
    assert "the second pass was cancelled" in ended.stderr
    assert project.ledger() == ["failed"]
    assert project.leftovers() == []
