"""Queries and lookups behind a join, on the way into PostgreSQL: the rows of DuckDB's own query over the same files."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.integration.join_scenes import (
    JOIN,
    LATE,
    PACKAGE,
    PAIRS,
    of_type,
    rows_of,
    write_files,
    write_pairs_of_falling_size,
)
from tests.integration.postgres import PostgresProject
from tests.integration.tables import as_text
from tests.snapshots import assert_snapshot

DESTINATION = 'table: sales, target: "${target}"}'
CHOSEN = (
    "SELECT o_key, o_clerk, lower(o_clerk) AS who, o_day, number, price * $factor AS twice FROM joined "
    "WHERE number IS NULL OR number % 8 <> 2"
)
# Fails for each number that 1009 divides.
SHARED = (
    "SELECT * EXCLUDE (o_clerk), 100 // (number % 1009) AS share FROM clerked "
    "WHERE o_day IS NULL OR o_day <> DATE '2024-02-02'"
)
CLERKS = "SELECT clerk, sk FROM clerks WHERE sk % $factor < 2"
TRANSFORMS = {
    "chosen": f"        chosen: {{input: joined, sql: {json.dumps(CHOSEN)}}}\n",
    "clerked": f"""\
        clerked:
          input: chosen
          lookup: {{connection: warehouse, query: {json.dumps(CLERKS)}, on: {{o_clerk: clerk}}, add: {{clerk_sk: sk}}}}
""",
    "shared": f"        shared: {{input: clerked, sql: {json.dumps(SHARED)}}}\n",
}
NAMES = "o_key, who, o_day, number, twice, clerk_sk, share"
TABLE = (
    "CREATE TABLE sales (o_key bigint, who text, o_day date, number int, twice numeric(38,2), clerk_sk int, share int, "
    f"CONSTRAINT late CHECK (number <> {LATE}))"
)
FILTERED = "SELECT sum(rows_filtered) FROM headrace.commit WHERE slice > 0"


@pytest.fixture
def sales(warehouse: PostgresProject) -> PostgresProject:
    write_files(warehouse)
    warehouse.execute(
        "CREATE TABLE clerks (clerk text NOT NULL, sk int NOT NULL)",
        "INSERT INTO clerks SELECT 'Clerk of ' || n, 7 * n FROM generate_series(0, 999) AS n WHERE n % 10 > 0",
    )
    return warehouse


def loading(sales: PostgresProject, kind: str, destination: str = DESTINATION, last: str = "shared") -> None:
    names = list(TRANSFORMS)[: list(TRANSFORMS).index(last) + 1]
    text = of_type(kind).replace(
        "      destinations:", "".join(TRANSFORMS[name] for name in names) + "      destinations:"
    )
    text = text.replace("parameters:\n", "parameters:\n  factor: {type: integer, default: 2}\n")
    text = text.replace("input: joined, connection", f"input: {last}, connection")
    assert DESTINATION in PACKAGE
    sales.package(text.replace(DESTINATION, destination))


def steps(sales: PostgresProject, kind: str) -> str:
    """What the transforms do, by DuckDB; `lost`: what finds no clerk, `failed`: what the second query fails for."""
    inbox = sales.folder / "inbox"
    failed = "number % 1009 = 0 AND (o_day IS NULL OR o_day <> DATE '2024-02-02')"
    return (
        f"WITH joined AS ({JOIN.format(inbox=inbox, kind=kind)}), chosen AS ({CHOSEN.replace('$factor', '2')}), "
        "clerks AS (SELECT 'Clerk of ' || n AS clerk, 7 * n AS sk FROM range(1000) AS t(n) WHERE n % 10 > 0), "
        "clerked AS (SELECT chosen.*, sk::INTEGER AS clerk_sk FROM chosen JOIN clerks ON clerk = o_clerk), "
        "lost AS (SELECT * FROM chosen ANTI JOIN clerks ON clerk = o_clerk), "
        f"failed AS (FROM clerked WHERE {failed}), "
        f"shared AS (SELECT * FROM ({SHARED.replace('FROM clerked', 'FROM (FROM clerked EXCEPT ALL FROM failed)')})) "
    )


def wanted(sales: PostgresProject, kind: str) -> list[tuple[str | None, ...]]:
    return as_text(rows_of(f"{steps(sales, kind)} SELECT {NAMES} FROM shared"))


def loaded(sales: PostgresProject) -> list[tuple[str | None, ...]]:
    return as_text(sales.query(f"SELECT {NAMES} FROM sales"))


def summary(sales: PostgresProject) -> dict[str, Any]:
    """That of the only table of the only run; what came out of the join is loaded, filtered or rejected behind it."""
    (path,) = sales.runs.glob("*/summary.json")
    (table,) = json.loads(path.read_text(encoding="utf-8"))["tables"]
    behind = table["join"]["left"]["rejected_behind"] + table["join"]["right"]["rejected_behind"]
    assert table["join"]["rows_out"] == table["rows_loaded"] + table["rows_filtered"] + behind
    assert sales.query(FILTERED) == [(str(table["rows_filtered"]),)]
    found: dict[str, Any] = table
    return found


def rejected_rows(sales: PostgresProject, table: dict[str, Any], code: str) -> list[str]:
    """The texts of the rejects, as they stand at their places in their files."""
    (path,) = [Path(name) for name in table["rejects"]["files"] if name.endswith(".jsonl")]
    texts = {file: Path(file).read_text() for file in map(str, sales.inbox.iterdir())}
    lines = {file: text.splitlines() for file, text in texts.items()}
    rows = []
    for reject in map(json.loads, path.read_text().splitlines()):
        row = lines[reject["file"]][reject["row"] - 1]
        assert texts[reject["file"]].startswith(row, reject["row_byte"])
        rows += [row] if reject["code"] == code else []
    return sorted(rows)


@pytest.mark.parametrize(
    ("streams", "clause"),
    [(1, ""), (16, ""), (4, ", load: staged, partition: {hash: {column: o_key, parts: 3}}")],
    ids=["1", "16", "divided"],
)
def test_the_rows_are_those_of_the_query_in_sql(sales: PostgresProject, streams: int, clause: str) -> None:
    loading(sales, "full", f"table: sales, target: replace{clause}}}")
    sales.run(streams=streams, limit=1_000_000).succeeded()
    assert loaded(sales) == wanted(sales, "full")
    assert sales.leftovers() == []
    table = summary(sales)
    own = steps(sales, "full")
    failed = [row[0] for row in rows_of(f"{own} SELECT number FROM failed")]
    lost = rows_of(f"{own} SELECT o_key, number FROM lost")
    assert table["rejects"]["by_rule"] == {"expression": len(failed), "no_match": len(lost)}
    # Each is told at the right row that it stands for, or at the left one if there is none.
    assert sorted(int(row.split(",")[0]) for row in rejected_rows(sales, table, "HR603")) == sorted(failed)
    rows = rejected_rows(sales, table, "HR602")
    assert sorted(int(row.split(",")[0]) for row in rows if "," in row) == sorted(n for _, n in lost if n is not None)
    keys = [row.split("|")[0] for row in rows if "|" in row]
    assert sorted(keys) == sorted("" if key is None else str(key) for key, number in lost if number is None)
    assert len(keys) > 10
    (joined,) = rows_of(f"{own} SELECT count(*) FROM joined")
    assert table["join"]["rows_out"] == joined[0]


@pytest.mark.parametrize("clause", ["", ", load: staged, partition: {hash: {column: o_key, parts: 3}}"])
def test_a_row_that_breaks_a_constraint_is_found_behind_what_was_left_out(sales: PostgresProject, clause: str) -> None:
    is_divided = bool(clause)
    sales.execute(TABLE + (" PARTITION BY HASH (o_key)" if is_divided else ""))
    for part in range(3) if is_divided else ():
        sales.execute(f"CREATE TABLE sales_{part} PARTITION OF sales FOR VALUES WITH (MODULUS 3, REMAINDER {part})")
    target = f"target: replace{clause}" if is_divided else "target: append, load: single"
    loading(sales, "inner", f"table: sales, {target}}}")
    ended = sales.run(streams=3 if is_divided else 1, limit=1_000_000)
    assert ended.exit_code == 1
    place = ended.summary["error"]["at"] or {"file": ""}
    assert place["file"].endswith("lines.6"), ended.error
    text = (sales.inbox / "lines.6").read_text()
    assert text.splitlines()[place["row"] - 1].startswith(f"{LATE},")
    assert text[place["byte"] :].startswith(f"{LATE},")
    assert "orders.6, row " in ended.error


def test_a_computed_column_divides_no_table(sales: PostgresProject) -> None:
    """What is behind a query of a server is known when it was described."""
    clause = "target: replace, load: staged, partition: {hash: {column: o_key, parts: 3}}"
    loading(sales, "inner", f"table: sales, {clause}}}")
    path = sales.folder / "package.yaml"
    path.write_text(path.read_text().replace("SELECT o_key, o_clerk", "SELECT o_key + 1 AS o_key, o_clerk"))
    ended = sales.run()
    assert ended.exit_code != 0
    assert_snapshot("postgres_joined_query_computed_key", sales.stable(ended.error))


@pytest.mark.faults
@pytest.mark.parametrize("last", ["chosen", "shared"])
def test_a_resumed_run_goes_on_behind_the_pairs_that_are_committed(sales: PostgresProject, last: str) -> None:
    """With what was left out of them: told by the run folder, or where there are rejects, by reading them again."""
    write_pairs_of_falling_size(sales)
    sales.execute(TABLE)
    columns = "" if last == "shared" else ", columns: {o_key: o_key, who: who, o_day: o_day, number: number}"
    loading(sales, "full", f"table: sales, target: append, load: single, commit: {{rows: 1000}}{columns}}}", last)
    assert sales.run(streams=1, limit=1_000_000).exit_code == 1
    committed = sales.query("SELECT count(DISTINCT slice), sum(rows_filtered) FROM headrace.commit WHERE slice > 0")
    assert 0 < int(str(committed[0][0])) < 2 * PAIRS and int(str(committed[0][1])) > 0
    sales.execute("ALTER TABLE sales DROP CONSTRAINT late")
    sales.resume().succeeded()
    table = summary(sales)
    own = steps(sales, "full")
    (joined,) = rows_of(f"{own} SELECT count(*) FROM joined")
    assert table["join"]["rows_out"] == joined[0]
    assert (table["bytes_read"] == sum(path.stat().st_size for path in sales.inbox.glob("[ol]*.*"))) == (
        last == "shared"
    )
    if last == "shared":
        assert loaded(sales) == wanted(sales, "full")
        (lost,) = rows_of(f"{own} SELECT (SELECT count(*) FROM lost) + (SELECT count(*) FROM failed)")
        assert table["rows_rejected"] == lost[0]
    else:
        names = "o_key, who, o_day, number"
        rows = as_text(rows_of(f"{own} SELECT {names} FROM chosen"))
        assert as_text(sales.query(f"SELECT {names} FROM sales")) == rows


@pytest.mark.faults
def test_a_run_that_is_killed_goes_on(sales: PostgresProject) -> None:
    loading(sales, "full", "table: sales, target: replace, commit: {rows: 500}}")
    with sales.started(sales.arguments(streams=2, limit=1_000_000)) as running:
        sales.wait_for_event(running, "progress")
        running.signal(signal.SIGKILL)
        running.wait()
    resumed = sales.resume()
    if resumed.exit_code:  # it had ended before
        assert sales.ledger()[-1] == "success", resumed.stderr
    assert loaded(sales) == wanted(sales, "full")
    assert sales.leftovers() == []
