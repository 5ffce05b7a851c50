"""Keys that a server refuses behind the load, without a row: a second pass over the source names file, row and byte."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.integration.driver import PACKAGE, Ended
from tests.integration.postgres import BEFORE_ROWS, COLUMNS, CREATE_ORDERS, Before, PostgresProject
from tests.integration.test_postgres_rows import MANY, PRIMARY_KEY, check_located, rows
from tests.servers.cluster import Cluster, ServerError
from tests.snapshots import assert_snapshot

SEARCHES = "looking for the row with a second pass"
# What the files of people are like: a header, CRLF, fields in quotes, row ends in them.
CUSTOMERS = """
headrace: 1
package: customers
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}
layouts:
  customers:
    delimiter: ";"
    qualifier: '"'
    skip_lines: 1
    header: skip
    columns: [{name: code, type: string}, {name: place, type: string}, {name: since, type: date}]
streams: 2
tasks:
  load_customers:
    data_flow:
      rejects: {limit: 10}
      sources: {rows: {connection: inbox, files: ["*.csv"], layout: customers}}
      destinations: {kept: {input: rows, connection: warehouse, table: customers, target: replace}}
"""
# Two rows, three lines of text.
HEADER = b'units;;\r\n"code";"place";"since\r\nwhen"\r\n'


def check_key(ended: Ended, file: Path, row: int, found: str) -> None:
    """The error names this row and says this of its key."""
    check_located(ended, file, row)
    assert ended.summary["error"]["found"].split("\n")[0] == found
    assert SEARCHES in ended.stderr
    assert ended.summary["error"]["server"]["sqlstate"] == "23505"


def check_unnamed(ended: Ended) -> None:
    """The error is the server's, and no place is guessed."""
    assert ended.exit_code == 1, ended.stderr
    assert "(SQLSTATE 23505)" in ended.error
    assert ended.summary["error"]["at"] is None
    assert "Traceback" not in ended.stderr


def customers(warehouse: PostgresProject, *statements: str) -> Before:
    """A table without rows, its package, and its state before."""
    warehouse.package(CUSTOMERS)
    return Before.of(warehouse, *statements)


def test_keys_in_two_files(warehouse: PostgresProject) -> None:
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS)
    warehouse.file("orders.tbl.1", "".join(rows(range(1, MANY))))
    second = warehouse.file("orders.tbl.2", "".join(rows([*range(MANY, 2 * MANY), 99, 5])))
    ended = warehouse.run("--streams", "3", target="replace")
    check_key(ended, second, MANY + 1, "Key (id)=(99), first in orders.tbl.1, row 99")
    before.check("failed")


@pytest.mark.parametrize("streams", [1, 4])
def test_a_key_far_inside_a_large_file(warehouse: PostgresProject, streams: int) -> None:
    """Both rows are far behind the first slice; the error is the same for any number of streams."""
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS)
    ids = [*range(1, MANY), 150_000, *range(MANY, 2 * MANY), 3]
    file = warehouse.file("orders.tbl.1", "".join(rows(ids)))
    ended = warehouse.run("--streams", str(streams), target="replace")
    check_key(ended, file, MANY, "Key (id)=(150000), first in orders.tbl.1, row 150000")
    before.check("failed")


@pytest.mark.parametrize("streams", [1, 2])
def test_a_key_of_partitions(warehouse: PostgresProject, streams: int) -> None:
    """The index of each partition is built behind its rows; the second file has the duplicate."""
    warehouse.sales("staged", partition="id")
    first = warehouse.file("orders.tbl.1", "".join(rows(range(1, 101))))
    second = warehouse.file("orders.tbl.2", "".join(rows(range(101, 201))))
    warehouse.run(target="create").succeeded()
    warehouse.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
    content = warehouse.content()
    second.write_text("".join(rows([*range(101, 150), 120, *range(150, 201)])))
    ended = warehouse.run("--streams", str(streams), target="replace")
    check_key(ended, second, 50, "Key (id)=(120), first in orders.tbl.2, row 20")
    if streams == 1:
        assert_snapshot("postgres_offender_staged", warehouse.stable(ended.error))
    assert (warehouse.content(), warehouse.leftovers()) == (content, [])
    assert first.exists()


def test_a_view_has_no_keys(warehouse: PostgresProject) -> None:
    """Nothing to search for: the writers' tables have no index, neither new nor replaced."""
    warehouse.sales("view")
    warehouse.file("orders.tbl.1", "".join(rows([1, 2, 1])))
    for target in ("create", "replace"):
        assert warehouse.run(target=target).succeeded()["rows_loaded"] == 3


def test_rows_that_are_moved(warehouse: PostgresProject) -> None:
    """A view hangs on the table: its own index refuses the rows in the middle of the switch."""
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS, "CREATE VIEW shown AS SELECT id FROM orders")
    file = warehouse.file("orders.tbl.1", "".join(rows([*range(1, 101), 7, *range(102, 200)])))
    ended = warehouse.run(target="replace")
    check_key(ended, file, 101, "Key (id)=(7), first in orders.tbl.1, row 7")
    assert_snapshot("postgres_offender_moved", warehouse.stable(ended.error))
    before.check("failed")


def test_rows_that_are_moved_into_partitions(warehouse: PostgresProject) -> None:
    """The index of a partition refuses them, not that of the table."""
    before = Before.of(
        warehouse,
        f"CREATE TABLE orders ({COLUMNS}, UNIQUE (id, customer)) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF orders FOR VALUES FROM (-10) TO (50)",
        "CREATE TABLE high PARTITION OF orders FOR VALUES FROM (50) TO (1000)",
        BEFORE_ROWS,
    )
    file = warehouse.file("orders.tbl.1", "".join(rows([*range(1, 101), 70, *range(102, 200)])))
    ended = warehouse.run(target="replace")
    check_key(ended, file, 101, "Key (id, customer)=(70, 'customer'), first in orders.tbl.1, row 70")
    assert "breaks UNIQUE (id, customer)" in ended.error
    before.check("failed")


def test_a_deferred_key(warehouse: PostgresProject) -> None:
    """It speaks up behind the COPY of an append."""
    deferred = PRIMARY_KEY.replace("PRIMARY KEY", "PRIMARY KEY DEFERRABLE INITIALLY DEFERRED")
    before = Before.of(warehouse, deferred, BEFORE_ROWS)
    file = warehouse.file("orders.tbl.1", "".join(rows([*range(1, 101), 7])))
    check_key(warehouse.run(target="append"), file, 101, "Key (id)=(7), first in orders.tbl.1, row 7")
    before.check("failed")
    file.write_text("".join(rows([1, 2, -2])))
    check_key(warehouse.run(target="append"), file, 3, "Key (id)=(-2), which the table has already")


def test_behind_headers_and_rejects(warehouse: PostgresProject) -> None:
    """Composite key of texts with commas, brackets, quotes and row ends; rejected and blank rows, CRLF."""
    before = customers(
        warehouse, "CREATE TABLE customers (code text, place varchar(40), since date, UNIQUE (place, code))"
    )
    good = b'"a";"Rom, (Lazio)";\r\n\r\nb;"Rom, (Lazio)";2024-02-29\r\n"a, b";"(Rom\r\n""IT"")";\r\n'
    bad = b"x;y;2024-02-30\r\nx;y\r\n"
    warehouse.file("1.csv", HEADER + good + bad + b"x;y;2024-02-29\r\n")
    second = warehouse.file("2.csv", HEADER + bad + b'z;y;\r\nc;(,);\r\n"a, b";"(Rom\r\n""IT"")";2020-01-01\r\nz;y;')
    ended = warehouse.command(warehouse.arguments())
    assert ended.exit_code == 1, ended.stderr
    error = ended.summary["error"]
    assert error["at"] == {"file": str(second), "row": 7, "byte": second.read_bytes().index(b'"a, b"')}
    assert_snapshot("postgres_offender_composite", warehouse.stable(ended.error))
    assert ended.summary["tables"][0]["rejects"]["count"] == 4
    assert warehouse.content() == before.content
    assert not list(warehouse.runs.glob("*/second-pass-*"))


@pytest.mark.parametrize("rule", ["", "NULLS NOT DISTINCT"])
def test_nulls(warehouse: PostgresProject, rule: str) -> None:
    customers(warehouse, f"CREATE TABLE customers (code text, place text, since date, UNIQUE {rule} (code, place))")
    file = warehouse.file("1.csv", HEADER + b"a;;\r\na;;\r\n;b;\r\n;b;\r\nc;d;\r\nc;d;\r\n")
    row, found = {
        "": (8, "Key (code, place)=('c', 'd'), first in 1.csv, row 7"),
        "NULLS NOT DISTINCT": (4, "Key (code, place)=('a', NULL), first in 1.csv, row 3"),
    }[rule]
    ended = warehouse.command(warehouse.arguments())
    error = ended.summary["error"]
    assert error["at"]["row"] == row, ended.stderr
    assert error["at"]["file"] == str(file)
    assert error["found"].split("\n")[0] == found


def test_blanks_behind_a_padded_text_do_not_count(warehouse: PostgresProject) -> None:
    customers(warehouse, "CREATE TABLE customers (code char(5) UNIQUE, place text, since date)")
    warehouse.package(CUSTOMERS.replace("code, type: string", "code, type: char(5)"))
    warehouse.file("1.csv", HEADER + b"a;;\r\n a;;\r\na ;;\r\n")
    ended = warehouse.command(warehouse.arguments())
    assert ended.summary["error"]["at"]["row"] == 5, ended.stderr
    assert ended.summary["error"]["found"].split("\n")[0] == "Key (code)=('a'), first in 1.csv, row 3"


# Type in the layout, in the table, two texts of the same value.
KEYS = {
    "numeric": ("decimal(9,2)", "numeric", "1.50", "1.5"),
    "float": ("float32", "double precision", "0.5", "5e-1"),
    "integer": ("int16", "bigint", "7", "+7"),
    "bool": ("bool", "boolean", "true", "t"),
    "date": ("date", "date", "2024-02-29", "2024-02-29"),
    "time": ("time", "time", "12:00:00", "12:00:00.000"),
    "timestamp": ("timestamp", "timestamp", "2024-02-29 12:00:00", "2024-02-29T12:00:00.0"),
    "timestamptz": ("timestamptz", "timestamptz", "2024-02-29 12:00:00Z", "2024-02-29 13:00:00+01:00"),
    "bytes": ("bytes", "bytea", "\\x00ff", "\\x00FF"),
    "uuid": ("uuid", "uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"),
    "varchar": ("string", "varchar", "a", "a"),
    "name": ("string", "name", "a", "a"),
    "enum": ("string", "mood", "sad", "sad"),
    "domain": ("string", "word", "a", "a"),
}


@pytest.mark.parametrize("case", KEYS)
def test_keys_of_every_type(warehouse: PostgresProject, case: str) -> None:
    kind, native, first, other = KEYS[case]
    warehouse.package(CUSTOMERS.replace("code, type: string", f'code, type: "{kind}"'))
    warehouse.execute(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE DOMAIN word AS text CHECK (value <> '')",
        f"CREATE TABLE customers (code {native} UNIQUE, place text, since date)",
    )
    file = warehouse.file("1.csv", HEADER + f"{first};;\r\n;;\r\n;;\r\n{other};x;\r\n".encode())
    error = warehouse.command(warehouse.arguments()).summary["error"]
    assert error["at"] == {"file": str(file), "row": 6, "byte": file.read_bytes().rindex(f"{other};x;".encode())}, error
    assert error["found"].split("\n")[0].endswith("first in 1.csv, row 3")


ONLY_THE_SERVER_KNOWS = {
    "expression": ["CREATE UNIQUE INDEX ON customers (lower(code))"],
    "partial": ["CREATE UNIQUE INDEX ON customers (place) WHERE code <> 'a'"],
    "other_operators": ["CREATE UNIQUE INDEX ON customers (code text_pattern_ops, place)"],
    "a_column_that_is_not_loaded": [
        "ALTER TABLE customers ADD region integer DEFAULT 1",
        "ALTER TABLE customers ADD UNIQUE (region, place)",
    ],
}


@pytest.mark.parametrize("case", ONLY_THE_SERVER_KNOWS)
def test_keys_that_only_the_server_can_compare(warehouse: PostgresProject, case: str) -> None:
    """No place rather than a wrong one."""
    customers(warehouse, "CREATE TABLE customers (code text, place text, since date)", *ONLY_THE_SERVER_KNOWS[case])
    warehouse.file("1.csv", HEADER + b"a;c;\r\nB;b;\r\nB;c;\r\nb;b;\r\nB;b;\r\n")
    ended = warehouse.command(warehouse.arguments())
    check_unnamed(ended)
    assert SEARCHES not in ended.stderr
    assert_snapshot(f"postgres_offender_unknown_{case}", warehouse.stable(ended.error))


def test_a_collation_that_does_not_compare_bytes(postgres_versions: Cluster, tmp_path: Path) -> None:
    """Only the server knows what is the same there. The catalog of every version is asked."""
    with postgres_versions.database() as database:
        (tmp_path / "project").mkdir()
        warehouse = PostgresProject(tmp_path / "project", database)
        customers(warehouse, "CREATE TABLE customers (code text UNIQUE, place text, since date)")
        file = warehouse.file("1.csv", HEADER + b"a;;\r\nA;;\r\nb;;\r\nA;;\r\n")
        error = warehouse.command(warehouse.arguments()).summary["error"]
        assert error["at"] == {"file": str(file), "row": 6, "byte": file.read_bytes().rindex(b"A;")}
        collation = "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        try:
            warehouse.execute(collation)
        except ServerError as error:
            if "ICU is not supported" in str(error):
                return  # that of the wheel
            raise
        warehouse.execute("ALTER TABLE customers ALTER code TYPE text COLLATE any_case")
        check_unnamed(warehouse.command(warehouse.arguments()))


def test_generated_rows_have_no_place(warehouse: PostgresProject) -> None:
    warehouse.tpch("nation", source="generate: {{tpch: {table}, scale: 0.01}}")
    warehouse.run(target="create").succeeded()
    warehouse.execute("TRUNCATE nation", "CREATE UNIQUE INDEX ON nation (n_regionkey)")
    ended = warehouse.run(target="replace")
    check_unnamed(ended)
    assert SEARCHES not in ended.stderr


def test_rows_of_an_earlier_attempt(warehouse: PostgresProject) -> None:
    """The first partition was committed with its duplicate by a run that was killed; `resume` meets it at the index."""
    warehouse.sales("staged", partition="id")
    first = warehouse.file("orders.tbl.1", "".join(rows(range(1, 101))))
    warehouse.run(target="create").succeeded()
    warehouse.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
    first.write_text("".join(rows([*range(1, 50), 20, *range(50, 2 * MANY)])))  # the larger one: it is loaded first
    warehouse.file("orders.tbl.2", "".join(rows(range(2 * MANY, 4 * MANY - 100))))
    with warehouse.started(warehouse.arguments("--streams", "1", target="replace")) as running:
        committed = "FROM headrace.commit JOIN headrace.run USING (run_id) WHERE status = 'running'"
        while running.poll() is None and warehouse.query(f"SELECT count(*) {committed}") == [("0",)]:
            time.sleep(0.01)
        running.signal(signal.SIGKILL)
        assert running.wait().exit_code == -signal.SIGKILL
    ended = warehouse.resume()
    assert "were committed before" in ended.stderr
    check_key(ended, first, 50, "Key (id)=(20), first in orders.tbl.1, row 20")


# --- what can go wrong meanwhile: the error stands --------------------------------------------------------------------


@pytest.mark.parametrize("event", ["cancelled", "changed"])
def test_the_second_pass_does_not_succeed(warehouse: PostgresProject, event: str) -> None:
    before = Before.of(warehouse, PRIMARY_KEY, BEFORE_ROWS)
    file = warehouse.file("orders.tbl.1", "".join(rows([*range(1, 10 * MANY), 5])))
    with warehouse.started(warehouse.arguments("--streams", "1", target="replace")) as running:
        warehouse.wait_for_event(running, "notice", text="looking for the row with a second pass over the source")
        running.freeze()
        if event == "cancelled":
            running.signal(signal.SIGINT)
        else:
            with file.open("ab") as text:
                text.write(b"1")
        running.thaw()
        ended = running.wait()
    check_unnamed(ended)
    assert "Key (id)=(5) is duplicated" in ended.error
    assert f"the second pass {'was cancelled' if event == 'cancelled' else 'failed'}" in ended.stderr
    before.check("failed")
    assert not list(warehouse.runs.glob("*/second-pass-*"))


@pytest.mark.rotates
def test_the_budget_is_kept(warehouse: PostgresProject) -> None:
    """The keys need more memory than the run may have; they spill into its folder, and nothing of that stays."""
    warehouse.own_processes = True
    note = "x" * 60
    create = CREATE_ORDERS.replace(COLUMNS, f"{COLUMNS}, UNIQUE (note)")
    warehouse.package(PACKAGE.replace("streams: 4", "streams: 2\nmemory: 240 MB"))
    Before.of(warehouse, create)
    count = 2_000_000
    text = "".join(f"{number}|1.00||c|{number}{note}\n" for number in range(count))
    file = warehouse.file("orders.tbl.1", text + f"0|1.00||c|7{note}\n")
    ended = warehouse.run(target="replace")
    check_located(ended, file, count + 1)
    assert ended.peak_resident_bytes < 240_000_000
    assert warehouse.leftovers() == []


# --- partitions that exist --------------------------------------------------------------------------------------------

DIVIDED = """
CREATE TABLE customers (code text, place text, since date, PRIMARY KEY (since, code)) PARTITION BY RANGE (since);
CREATE TABLE customers_23 PARTITION OF customers FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE customers_24 PARTITION OF customers FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO customers VALUES ('a', 'here', '2024-05-05'), ('b', 'there', '2023-05-05'), ('x, y', '', '2023-05-05')
"""
BY_YEAR = "target: append, partition: {range: {column: since, every: 1 year, from: 2023-01-01, to: 2025-01-01}}"


@pytest.mark.parametrize(
    ("lines", "row", "found"),
    [
        (["c;;2024-05-05", "a;;2023-05-05", "a;;2024-05-05"], 5, "2024-05-05, 'a'), which the table has already"),
        # In the table and twice in the source: the first one is too many already.
        (["b;;2023-05-05", "b;;2023-05-05"], 3, "2023-05-05, 'b'), which the table has already"),
        (["c;;2024-05-05", "d;;2023-05-05", "c;;2024-05-05"], 5, "2024-05-05, 'c'), first in 1.csv, row 3"),
    ],
    ids=["in the table", "in both", "in the source"],
)
def test_a_key_of_a_partition_that_exists(warehouse: PostgresProject, lines: list[str], row: int, found: str) -> None:
    """Which row has it already: one of the table, or another one of the source."""
    before = customers(warehouse, DIVIDED)
    warehouse.package(CUSTOMERS.replace("target: replace", BY_YEAR))
    file = warehouse.file("1.csv", HEADER + "".join(f"{line}\r\n" for line in lines).encode())
    ended = warehouse.command(warehouse.arguments())
    error = ended.summary["error"]
    byte = len(HEADER) + sum(len(line) + 2 for line in lines[: row - 3])  # the header has two rows
    assert error["at"] == {"file": str(file), "row": row, "byte": byte}
    assert error["found"].split("\n")[0] == f"Key (since, code)=({found}"
    before.check("failed")


def test_a_key_of_a_partition_alone(warehouse: PostgresProject) -> None:
    """Rows of other partitions may have it: nobody is accused."""
    customers(warehouse, DIVIDED, "ALTER TABLE customers_24 ADD UNIQUE (code)")
    warehouse.package(CUSTOMERS.replace("target: replace", BY_YEAR))
    warehouse.file("1.csv", HEADER + b"c;;2023-05-05\r\nc;;2023-05-06\r\na;;2024-05-06\r\n")
    check_unnamed(warehouse.command(warehouse.arguments()))


def test_a_key_whose_text_cannot_be_told_apart(warehouse: PostgresProject) -> None:
    """The server writes both columns, and a comma between them that is also in one of them."""
    customers(warehouse, DIVIDED)
    warehouse.package(CUSTOMERS.replace("target: replace", BY_YEAR))
    warehouse.file("1.csv", HEADER + b"'x, y';;2023-05-05\r\n".replace(b"'", b'"'))
    check_unnamed(warehouse.command(warehouse.arguments()))
