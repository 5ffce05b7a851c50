"""Divided tables as packages declare them, by the command line: where keys go, what is refused, what readers see."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.driver import Ended
from tests.integration.partition_scenes import VERIFY
from tests.integration.postgres import PostgresProject
from tests.servers.cluster import ServerError
from tests.servers.farm import Farm
from tests.snapshots import assert_snapshot

PACKAGE = """
headrace: 1
package: keys
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: duckdb, path: warehouse.duckdb, lock_timeout_seconds: 1}}
layouts:
  keys:
    delimiter: "|"
    null_tokens: ['\\N']
    columns:
      - {{name: id, type: "{type}"}}
      - {{name: note, type: string}}
streams: 3
tasks:
  load:
    data_flow:
      rejects: {{limit: 100}}
      sources:
        rows: {{connection: inbox, files: "*.txt", layout: keys, empty: allow}}
      destinations:
        keys: {{input: rows, connection: warehouse, table: keys, target: {target}{clauses}}}
"""


def write(project: PostgresProject, clauses: str, target: str = "replace", type: str = "int64") -> None:
    project.package(PACKAGE.format(clauses=f", {clauses}" if clauses else "", target=target, type=type))


def keys_file(project: PostgresProject, name: str, keys: Sequence[object]) -> None:
    """One row for each key; notes are unique."""
    project.file(f"{name}.txt", "".join(f"{key}|{name} {number}\n" for number, key in enumerate(keys)))


def run(project: PostgresProject, verified: bool = True) -> Ended:
    """A run that must succeed, and what `verify` says of it."""
    ended = project.run()
    ended.succeeded()
    if verified:
        found = project.command(VERIFY)
        assert found.exit_code == 0, found.stderr
    assert project.leftovers() == []
    return ended


def by_partition(project: PostgresProject) -> dict[str, list[str | None]]:
    """Keys in each partition that has rows."""
    found: dict[str, list[str | None]] = {}
    for name, key in project.query("SELECT tableoid::regclass, id FROM keys ORDER BY 1, 2"):
        found.setdefault(str(name), []).append(key)
    return found


def texts(keys: Sequence[object]) -> list[str]:
    return [str(key) for key in keys]


# --- files ------------------------------------------------------------------------------------------------------------


def test_files_that_overlap(warehouse: PostgresProject) -> None:
    """Their first keys are the bounds, and rows of both files go to both sides."""
    write(warehouse, "partition: {range: {column: id}}")
    keys_file(warehouse, "a", range(1, 200))
    keys_file(warehouse, "b", range(100, 300))
    run(warehouse)
    assert by_partition(warehouse) == {
        "keys_1": texts(range(1, 100)),
        "keys_2": texts(sorted([*range(100, 200), *range(100, 300)])),
    }


def test_files_whose_inner_rows_belong_elsewhere(warehouse: PostgresProject) -> None:
    """First and last rows promise what the others do not keep."""
    write(warehouse, "partition: {range: {column: id}}")
    keys_file(warehouse, "a", [1, 250, 3, 99])
    keys_file(warehouse, "b", [100, 5, 199])
    keys_file(warehouse, "c", [200, 199, 100, 300])
    run(warehouse)
    assert by_partition(warehouse) == {
        "keys_1": texts([1, 3, 5, 99]),
        "keys_2": texts([100, 100, 199, 199]),
        "keys_3": texts([200, 250, 300]),
    }


def test_files_with_the_same_keys(warehouse: PostgresProject) -> None:
    write(warehouse, "partition: {range: {column: id}}")
    for name in ("a", "b"):
        keys_file(warehouse, name, range(1, 100))
    run(warehouse)
    assert by_partition(warehouse) == {"keys_1": texts(sorted([*range(1, 100), *range(1, 100)]))}


@pytest.mark.parametrize("outside", ["reject", "default"])
@pytest.mark.parametrize("rows", [(), ("\\N", "\\N")])
def test_files_without_a_key(warehouse: PostgresProject, rows: Sequence[str], outside: str) -> None:
    """The table is divided all the same, and the next load puts partitions into it."""
    write(warehouse, f"partition: {{range: {{column: id}}, outside: {outside}}}", "append")
    keys_file(warehouse, "a", rows)
    summary = run(warehouse, verified=False).summary
    taken = len(rows) if outside == "default" else 0
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (taken, len(rows) - taken)
    assert {reject["rule"] for reject in summary["tables"][0]["rejects"]["first"]} <= {"partition"}
    is_divided = "SELECT relkind, (SELECT count(*) FROM pg_inherits) FROM pg_class WHERE oid = 'keys'::regclass"
    assert warehouse.query(is_divided) == [("p", str(int(outside == "default")))]
    keys_file(warehouse, "b", [1, 2])
    (warehouse.inbox / "a.txt").unlink()
    run(warehouse, verified=False)
    assert by_partition(warehouse).pop("keys_1") == ["1", "2"]
    keys_file(warehouse, "b", rows)  # and once more without a key
    run(warehouse, verified=False)
    assert warehouse.query("SELECT count(*) FROM keys") == [(str(2 + 2 * taken),)]
    write(warehouse, f"partition: {{range: {{column: id}}, outside: {outside}}}")
    run(warehouse)
    assert warehouse.query(is_divided) == [("p", str(int(outside == "default")))]


# --- bounds -----------------------------------------------------------------------------------------------------------

# By type: three bounds and keys beside them, from the least to the greatest value.
BOUNDS: dict[str, tuple[list[str], list[str]]] = {
    "int16": (["-5", "0", "32767"], ["-32768", "-6", "-5", "-4", "-1", "0", "1", "32766", "32767"]),
    "int32": (["-5", "0", "2147483647"], ["-2147483648", "-6", "-5", "-4", "-1", "0", "2147483646", "2147483647"]),
    "int64": (
        ["-9223372036854775807", "0", "9223372036854775807"],
        ["-9223372036854775808", "-9223372036854775807", "-1", "0", "1", "9223372036854775806", "9223372036854775807"],
    ),
    "decimal(9,2)": (
        ["-0.01", "0.00", "9999999.99"],
        ["-9999999.99", "-0.02", "-0.01", "0.00", "0.01", "9999999.98", "9999999.99"],
    ),
    "decimal(38,0)": (["-1", "0", "9" * 38], ["-" + "9" * 38, "-2", "-1", "0", "1", "9" * 37 + "8", "9" * 38]),
    "date": (
        ["1970-01-01", "2000-02-29", "9999-12-31"],
        ["0001-01-01", "1969-12-31", "1970-01-01", "2000-02-28", "2000-02-29", "2000-03-01", "9999-12-30",
         "9999-12-31"],
    ),
    "timestamp": (
        ["1970-01-01 00:00:00", "2024-01-01 00:00:00", "9999-12-31 23:59:59.999999"],
        ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2023-12-31 23:59:59.999999",
         "2024-01-01 00:00:00", "2024-01-01 00:00:00.000001", "9999-12-31 23:59:59.999998",
         "9999-12-31 23:59:59.999999"],
    ),
    "timestamptz": (
        ["1970-01-01", "2024-01-01 01:00:00+01", "9999-12-31 23:59:59.999999Z"],
        ["0001-01-01 00:00:00Z", "1969-12-31 23:59:59.999999+00", "1970-01-01 05:30:00+0530",
         "2023-12-31 15:59:59.999999-08:00", "2023-12-31 16:00:00-08:00", "2024-01-01 00:00:00.000001Z",
         "9999-12-31 23:59:59.999998Z", "9999-12-31 23:59:59.999999Z"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("boundary", ["right", "left"])
@pytest.mark.parametrize("type", BOUNDS)
def test_keys_on_the_exact_bound(warehouse: PostgresProject, type: str, boundary: str) -> None:
    """The server itself says where each key belongs; `left`: a key that equals a bound belongs below it."""
    bounds, keys = BOUNDS[type]
    listed = ", ".join(f'"{bound}"' for bound in bounds)
    write(warehouse, f"partition: {{range: {{column: id, bounds: [{listed}], boundary: {boundary}}}}}", type=type)
    keys_file(warehouse, "a", keys)
    keys_file(warehouse, "b", keys[::-1])
    if boundary == "left" and not is_finite_above(type, bounds[-1], keys):
        checked = warehouse.command([sys.executable, "-m", "headrace", "check", "package.yaml"])
        assert (checked.exit_code, warehouse.run().exit_code, warehouse.tables()) == (5, 5, []), checked.stderr
        assert re.search(r"nothing is above the last bound.*\n +at: package.yaml:\d+:\d+\n", checked.stderr)
        return
    run(warehouse)
    compared = "<" if boundary == "right" else "<="
    column = warehouse.query("SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
                             "WHERE attrelid = 'keys'::regclass AND attname = 'id'")[0][0]  # fmt: skip
    places = " + ".join(f"(NOT id {compared} '{bound}'::{column})::int" for bound in bounds)
    wrong = warehouse.query(
        f"SELECT tableoid::regclass, id, note FROM keys WHERE tableoid::regclass::text <> 'keys_' || (1 + {places})"
    )
    assert wrong == []
    assert warehouse.query("SELECT count(*), count(DISTINCT id) FROM keys") == [(str(2 * len(keys)), str(len(keys)))]


def is_finite_above(type: str, bound: str, keys: Sequence[str]) -> bool:
    """True if something of the type is greater than the bound: otherwise it cannot be moved up."""
    return bound != keys[-1]


@pytest.mark.parametrize("outside", ["reject", "default"])
@pytest.mark.parametrize(
    ("clause", "place"),
    [
        ("range: {{column: id, bounds: [0, 10]}}{outside}", None),
        ("list: {{column: id, values: {{few: [1, 2], many: [3, null]}}}}{outside}", "keys_many"),
        ("list: {{column: id, values: {{few: [1, 2], many: [3, 4]}}}}{outside}", None),
        ("hash: {{column: id, parts: 3}}", "keys_1"),
    ],
)
def test_null_keys(warehouse: PostgresProject, clause: str, place: str | None, outside: str) -> None:
    """`place`: the partition that takes NULL; otherwise they are outside."""
    write(warehouse, "partition: {" + clause.format(outside=f", outside: {outside}") + "}")
    keys_file(warehouse, "a", ["1", "\\N", "3", "\\N"])
    if place is None and outside == "reject":
        summary = run(warehouse).summary
        assert (summary["rows_loaded"], summary["rows_rejected"]) == (2, 2)
        assert [
            (reject["row"], reject["byte"], reject["value"]) for reject in summary["tables"][0]["rejects"]["first"]
        ] == [(2, 6, "\\N"), (4, 19, "\\N")]
    else:
        run(warehouse)
        found = [name for name, keys in by_partition(warehouse).items() if None in keys]
        assert found == [place or "keys_default"]


def test_a_tablespace_that_is_not_there(warehouse: PostgresProject) -> None:
    """Said by `check --connect` and before the first row, also of one where the user may not make tables."""
    name = f"space_{warehouse.target.name}"
    warehouse.target.psql(f"SET allow_in_place_tablespaces = on; CREATE TABLESPACE {name} LOCATION ''")
    try:
        clause = f"partition: {{range: {{column: id, bounds: [0]}}, tablespaces: [pg_default, {name}, slow]}}"
        write(warehouse, clause)
        keys_file(warehouse, "a", [1, 2])
        for command in ("check", "plan", "run"):
            more = ["--connect"] if command == "check" else []
            ended = warehouse.command([sys.executable, "-m", "headrace", command, "package.yaml", *more])
            said = re.sub(r"\s+", " ", ended.stdout + ended.stderr)
            assert ended.exit_code == 1, said
            assert f"`{name}`, `slow`, which does not exist," in said
        assert warehouse.tables() == []
        warehouse.target.psql(f"GRANT CREATE ON TABLESPACE {name} TO loader")
        write(warehouse, clause.replace(", slow", ""))
        run(warehouse)
        found = warehouse.query("SELECT tablespace FROM pg_tables WHERE tablename ~ '^keys_' ORDER BY tablename")
        assert found == [(None,), (name,)]
        warehouse.execute("DROP TABLE keys")
    finally:
        warehouse.target.psql(f"DROP TABLESPACE {name}")


# --- outside ----------------------------------------------------------------------------------------------------------

MONTHS = "partition: {range: {column: id, every: 1 month, from: 2024-01-01, to: 2024-04-01}%s}"
DAYS = ["2024-01-01", "2023-12-31", "2024-03-31", "2024-04-01", "2024-02-29"]


def test_rows_outside_are_rejects(warehouse: PostgresProject) -> None:
    write(warehouse, MONTHS % "", type="date")
    keys_file(warehouse, "a", DAYS)
    keys_file(warehouse, "b", DAYS[:1])
    [table] = run(warehouse).summary["tables"]
    rejects = [
        {name: reject[name] for name in ("file", "row", "byte", "column", "value", "rule")}
        for reject in table["rejects"]["first"]
    ]
    path = str(warehouse.inbox / "a.txt")
    assert rejects == [
        {"file": path, "row": 2, "byte": 15, "column": "id", "value": "2023-12-31", "rule": "partition"},
        {"file": path, "row": 4, "byte": 45, "column": "id", "value": "2024-04-01", "rule": "partition"},
    ]
    [bad] = [name for name in table["rejects"]["files"] if name.endswith(".bad")]
    assert Path(bad).read_bytes() == b"2023-12-31|a 1\n2024-04-01|a 3\n"
    assert by_partition(warehouse) == {
        "keys_2024_01": ["2024-01-01", "2024-01-01"],
        "keys_2024_02": ["2024-02-29"],
        "keys_2024_03": ["2024-03-31"],
    }


def test_rows_outside_go_into_the_default_partition(warehouse: PostgresProject) -> None:
    write(warehouse, MONTHS % ", outside: default", type="date")
    keys_file(warehouse, "a", DAYS)
    run(warehouse)
    assert by_partition(warehouse)["keys_default"] == ["2023-12-31", "2024-04-01"]


def test_rows_of_the_default_partition_that_belong_into_a_new_one(warehouse: PostgresProject) -> None:
    """Found before the first row; the hint works."""
    write(warehouse, MONTHS % ", outside: default", type="date")
    keys_file(warehouse, "a", DAYS)
    run(warehouse)
    write(warehouse, "partition: {range: {column: id, every: 1 month}}", "append", type="date")
    keys_file(warehouse, "a", ["2024-05-01", "2024-04-02"])
    before = warehouse.content()
    ended = warehouse.run()
    assert (ended.exit_code, warehouse.content()) == (1, before)
    assert_snapshot("postgres_rows_in_the_default_partition", warehouse.stable(ended.error))
    assert ended.summary["rows_read"] == 0
    warehouse.execute(
        "BEGIN; CREATE TABLE april (LIKE keys); WITH moved AS (DELETE FROM keys_default WHERE \"id\" >= '2024-04-01' "
        "RETURNING *) INSERT INTO april SELECT * FROM moved; "
        "ALTER TABLE keys ATTACH PARTITION april FOR VALUES FROM ('2024-04-01') TO ('2024-05-01'); COMMIT"
    )
    run(warehouse, verified=False)
    assert by_partition(warehouse)["april"] == ["2024-04-01", "2024-04-02"]


# --- tables that exist ------------------------------------------------------------------------------------------------

OTHERWISE = {
    "another column": "CREATE TABLE keys (id bigint, note text) PARTITION BY RANGE (note)",
    "another strategy": "CREATE TABLE keys (id bigint, note text) PARTITION BY LIST (id)",
    "an expression": "CREATE TABLE keys (id bigint, note text) PARTITION BY RANGE ((id + 1))",
    "two columns": "CREATE TABLE keys (id bigint, note text) PARTITION BY RANGE (id, note)",
    "other bounds": "CREATE TABLE keys (id bigint, note text) PARTITION BY RANGE (id);"
    "CREATE TABLE keys_1 PARTITION OF keys FOR VALUES FROM (5) TO (15); INSERT INTO keys VALUES (7, 'old')",
    "no partitions": "CREATE TABLE keys (id bigint, note text); INSERT INTO keys VALUES (7, 'old')",
}


@pytest.mark.parametrize("target", ["append", "replace"])
@pytest.mark.parametrize("name", OTHERWISE)
def test_a_table_that_is_divided_otherwise(warehouse: PostgresProject, name: str, target: str) -> None:
    """Refused before the first row, and left as it is; or replaced by one that is divided as declared."""
    warehouse.execute(OTHERWISE[name])
    before = warehouse.content()
    write(warehouse, "partition: {range: {column: id, bounds: [0, 10]}}", target)
    keys_file(warehouse, "a", [-1, 0, 9, 10])
    ended = warehouse.run()
    assert "Traceback" not in ended.stderr
    if target == "append" or ended.exit_code == 1:
        assert (ended.exit_code, warehouse.content()) == (1, before), ended.stderr
        assert ended.summary["error"]["kind"] != "internal"
        assert warehouse.leftovers() == []
    else:
        assert by_partition(warehouse) == {"keys_1": ["-1"], "keys_2": ["0", "9"], "keys_3": ["10"]}


def test_a_partition_that_is_divided_itself(warehouse: PostgresProject) -> None:
    """Rows that are appended go through it."""
    warehouse.execute(
        "CREATE TABLE keys (id bigint, note text) PARTITION BY RANGE (id);"
        "CREATE TABLE keys_2 PARTITION OF keys FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);"
        "CREATE TABLE keys_low PARTITION OF keys_2 FOR VALUES FROM (0) TO (5);"
        "CREATE TABLE keys_high PARTITION OF keys_2 FOR VALUES FROM (5) TO (10); INSERT INTO keys VALUES (7, 'old')"
    )
    write(warehouse, "partition: {range: {column: id, bounds: [0, 10]}}", "append")
    keys_file(warehouse, "a", [-1, 0, 9, 10])
    run(warehouse, verified=False)
    assert sorted(by_partition(warehouse).values()) == [["-1"], ["0"], ["10"], ["7", "9"]]
    before = warehouse.content()
    write(warehouse, "partition: {range: {column: id, bounds: [0, 10]}}, partitions: [keys_2]")
    ended = warehouse.run()
    assert (ended.exit_code, warehouse.content()) == (1, before), ended.stderr
    assert "Traceback" not in ended.stderr


# --- readers, windows, reloads ----------------------------------------------------------------------------------------


@contextmanager
def reading(project: PostgresProject, sql: str) -> Iterator[tuple[set[tuple[str | None, ...]], list[float]]]:
    """Readers that count without a pause: what they see, and how long each waited."""
    seen: set[tuple[str | None, ...]] = set()
    waited: list[float] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            before = time.monotonic()
            try:
                seen.update(project.query(sql))
            except ServerError as error:
                assert "does not exist" in str(error)
                seen.add(("no table",))
            waited.append(time.monotonic() - before)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.3)
        yield seen, waited
        time.sleep(0.3)
    finally:
        done.set()
        for thread in threads:
            thread.join()


COUNT = "SELECT count(*), sum(id - date '2024-01-01') FROM keys"
MONTHLY = "partition: {range: {column: id, every: 1 month, from: 2024-01-01, to: %s}%s}"


@pytest.mark.parametrize("change", ["replace", "append", "append new", "reload", "window"])
def test_readers_see_all_or_nothing(warehouse: PostgresProject, change: str) -> None:
    write(warehouse, MONTHLY % ("2024-04-01", ""), type="date")
    days = [f"2024-{month:02}-{day:02}" for month in (1, 2, 3) for day in range(1, 29)]
    keys_file(warehouse, "a", days * 300)
    run(warehouse)
    [old] = warehouse.query(COUNT)
    target = "append" if "append" in change or change == "window" else "replace"
    months = {"append new": (4, 5), "window": (4,), "reload": (2,)}.get(change, (1, 2, 3))
    more = [f"2024-{month:02}-{day:02}" for month in months for day in range(1, 28)] * 300
    clauses = MONTHLY % ("2024-06-01", "" if change != "window" else ", keep: 3")
    if change == "window":
        clauses = clauses.replace("2024-06-01", "2024-05-01").replace("2024-01-01", "2024-04-01")
    if change == "reload":
        clauses = MONTHLY % ("2024-04-01", "") + ", partitions: [keys_2024_02]"
    write(warehouse, clauses, target, type="date")
    keys_file(warehouse, "a", more)
    with reading(warehouse, COUNT) as (seen, waited):
        summary = run(warehouse, verified=change == "replace").summary
    [new] = warehouse.query(COUNT)
    assert seen == {old, new} and old != new
    count = int(str(old[0])) + len(more)
    gone = {"replace": len(days) * 300, "reload": 28 * 300, "window": 28 * 300}.get(change, 0)
    assert new[0] == str(count - gone)
    # A reader waits for the switch, and for its own start and count.
    switch = summary["phases"]["commit"] + summary["phases"]["finish"]
    assert max(waited) < switch + 10 * sorted(waited)[len(waited) // 2] + 0.5


def test_the_first_load_is_seen_whole(warehouse: PostgresProject) -> None:
    write(warehouse, MONTHLY % ("2024-04-01", ""), "create", type="date")
    keys_file(warehouse, "a", ["2024-01-01", "2024-02-01", "2024-03-01"] * 5_000)
    with reading(warehouse, "SELECT count(*) FROM keys") as (seen, _):
        run(warehouse)
    assert seen == {("no table",), ("15000",)}


def test_one_partition_is_loaded_anew(warehouse: PostgresProject) -> None:
    """All others stay, to the row; what belongs into them is a reject."""
    write(warehouse, MONTHLY % ("2024-04-01", ""), type="date")
    keys_file(warehouse, "a", ["2024-01-05", "2024-02-05", "2024-03-05"])
    run(warehouse)
    others = warehouse.query(
        "SELECT tableoid, ctid, xmin, * FROM keys WHERE id NOT BETWEEN '2024-02-01' AND '2024-02-29'"
    )
    write(warehouse, MONTHLY % ("2024-04-01", "") + ", partitions: [keys_2024_02]", type="date")
    keys_file(warehouse, "a", ["2024-02-01", "2024-02-29", "2024-03-01"])
    summary = run(warehouse, verified=False).summary
    assert (summary["rows_loaded"], summary["rows_rejected"]) == (2, 1)
    assert by_partition(warehouse) == {
        "keys_2024_01": ["2024-01-05"],
        "keys_2024_02": ["2024-02-01", "2024-02-29"],
        "keys_2024_03": ["2024-03-05"],
    }
    assert others == warehouse.query(
        "SELECT tableoid, ctid, xmin, * FROM keys WHERE id NOT BETWEEN '2024-02-01' AND '2024-02-29'"
    )


def test_a_rolling_window(warehouse: PostgresProject) -> None:
    """A month comes, the oldest goes; rows for the one that goes, or for older ones, are rejects."""
    write(warehouse, MONTHLY % ("2024-04-01", ""), type="date")
    keys_file(warehouse, "a", ["2024-01-05", "2024-02-05", "2024-03-05"])
    run(warehouse)
    window = "partition: {range: {column: id, every: 1 month}, keep: 3}"
    write(warehouse, window, "append", type="date")
    keys_file(warehouse, "a", ["2023-06-06"])  # nothing else: no partition comes, none goes
    [table] = run(warehouse, verified=False).summary["tables"]
    assert [(reject["row"], reject["rule"]) for reject in table["rejects"]["first"]] == [(1, "partition")]
    assert list(by_partition(warehouse)) == ["keys_2024_01", "keys_2024_02", "keys_2024_03"]
    keys_file(warehouse, "a", ["2024-04-05", "2024-01-06", "2024-04-30", "2023-06-06"])
    [table] = run(warehouse, verified=False).summary["tables"]
    assert [(reject["row"], reject["value"]) for reject in table["rejects"]["first"]] == [
        (2, "2024-01-06"),
        (4, "2023-06-06"),
    ]
    assert by_partition(warehouse) == {
        "keys_2024_02": ["2024-02-05"],
        "keys_2024_03": ["2024-03-05"],
        "keys_2024_04": ["2024-04-05", "2024-04-30"],
    }
    keys_file(warehouse, "a", ["2024-05-05", "2024-06-30"])
    run(warehouse, verified=False)
    assert list(by_partition(warehouse)) == ["keys_2024_04", "keys_2024_05", "keys_2024_06"]


@pytest.mark.parametrize("is_there", [False, True])
def test_late_rows_of_a_rolling_window_go_into_the_default_partition(
    warehouse: PostgresProject, is_there: bool
) -> None:
    """Also those of the very partition that goes, and whether the default partition is new or not."""
    outside = ", outside: default" if is_there else ""
    write(warehouse, MONTHLY % ("2024-04-01", outside), type="date")
    keys_file(warehouse, "a", ["2024-01-05", "2024-02-05", "2024-03-05"])
    run(warehouse)
    assert bool(warehouse.query("SELECT to_regclass('keys_default')")[0][0]) == is_there
    write(
        warehouse, "partition: {range: {column: id, every: 1 month}, keep: 3, outside: default}", "append", type="date"
    )
    keys_file(warehouse, "a", ["2024-04-05", "2024-01-06", "2023-06-06", "2024-03-06", "\\N"])
    run(warehouse, verified=False)
    assert by_partition(warehouse) == {
        "keys_2024_02": ["2024-02-05"],
        "keys_2024_03": ["2024-03-05", "2024-03-06"],
        "keys_2024_04": ["2024-04-05"],
        "keys_default": ["2023-06-06", "2024-01-06", None],
    }


def test_a_view_on_a_partition(warehouse: PostgresProject) -> None:
    """It hinders only what would drop that partition, and before the first row."""
    write(warehouse, MONTHLY % ("2024-04-01", ""), type="date")
    keys_file(warehouse, "a", ["2024-01-05", "2024-02-05", "2024-03-05"])
    run(warehouse)
    warehouse.execute("CREATE VIEW early AS SELECT * FROM keys_2024_01")
    before = warehouse.content()
    keys_file(warehouse, "a", ["2024-04-05"])
    monthly, found = MONTHLY % ("2024-05-01", ""), "found: view early on keys_2024_01"
    for clauses, target in [
        ("partition: {range: {column: id, every: 1 month}, keep: 3}", "append"),
        (monthly + ", partitions: [keys_2024_01]", "replace"),
        (monthly, "replace"),
    ]:
        write(warehouse, clauses, target, type="date")
        ended = warehouse.run()
        assert (ended.exit_code, warehouse.content()) == (1, before), ended.stderr
        assert found in ended.error
        assert ended.summary["rows_read"] == 0
    keys_file(warehouse, "a", ["2024-02-06"])
    write(warehouse, monthly + ", partitions: [keys_2024_02]", type="date")
    run(warehouse, verified=False)
    assert by_partition(warehouse)["keys_2024_02"] == ["2024-02-06"]
    assert warehouse.query("SELECT id FROM early") == [("2024-01-05",)]


MANY = 1000 if "HEADRACE_SOAK_KILLS" in os.environ else 210


# --- many -------------------------------------------------------------------------------------------------------------


def test_many_partitions(servers: Farm, warehouse: PostgresProject) -> None:
    """More locks than an ordinary server has room for: said before the first row. `make soak` makes all thousand."""
    write(warehouse, "partition: {hash: {column: id, parts: 1000}}")
    keys_file(warehouse, "a", range(20_000))
    refused = warehouse.run()
    assert (refused.exit_code, warehouse.tables()) == (1, [])
    assert "max_locks_per_transaction" in refused.error
    cluster = servers.cluster(settings={"max_locks_per_transaction": "400"})
    try:
        with cluster.database() as database:
            folder = warehouse.folder / "many"
            folder.mkdir()
            many = PostgresProject(folder, database, lock_timeout_seconds=10)
            write(many, f"partition: {{hash: {{column: id, parts: {MANY}}}}}")
            keys_file(many, "a", range(20_000))
            for _ in range(2):
                run(many)
                counted = "SELECT count(*), count(DISTINCT tableoid), sum(id) FROM keys"
                assert many.query(counted) == [("20000", str(MANY), str(sum(range(20_000))))]
    finally:
        servers.remove(cluster)
