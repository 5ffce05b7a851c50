"""Which queries are made, in which order they run, and what is refused."""

from __future__ import annotations

import pytest

from headrace.errors import DifferenceError, HeadraceError, SqlError, TargetError
from headrace.model import DataType
from headrace.scan import ScanComparison, ScanRequest, compare
from headrace.scan.queries import Chosen, QueryMaker
from headrace.targets import ScannedTable
from tests.snapshots import assert_snapshot
from tests.unit.scan.stored import DATE, DECIMAL, FLOAT, INT32, INT64, TEXT, WIDE, StoredSession, divided, table

COLUMNS = {"id": INT64, "size": FLOAT, "kind": TEXT, "amount": DECIMAL, "day": DATE}
ROWS = (
    "SELECT n::BIGINT AS id, n / 3 AS size, 'kind ' || n % 4 AS kind, (n * 1.25)::DECIMAL(15,2) AS amount, "
    "DATE '2024-01-01' + (n % 500)::INTEGER AS day FROM range({first}, {last}) AS t(n)"
)
LOADED = (
    f"CREATE TABLE plain AS {ROWS.format(first=0, last=1000)}",
    f"CREATE TABLE parted_0 AS {ROWS.format(first=0, last=450)}",
    f"CREATE TABLE parted_1 AS {ROWS.format(first=450, last=1000)}",
    "CREATE VIEW parted AS SELECT * FROM parted_0 UNION ALL SELECT * FROM parted_1",
)
PLAIN, PARTED = table("plain", COLUMNS), divided("parted", COLUMNS, "id")


def session(*tables: ScannedTable, statements: tuple[str, ...] = LOADED) -> StoredSession:
    return StoredSession([*tables] or [PLAIN, PARTED], *statements)


def compared(
    own: StoredSession, whole: str = "plain", parts: str = "parted", repetitions: int = 3, chosen: Chosen | None = None
) -> ScanComparison:
    request = ScanRequest(whole, parts, repetitions, chosen or Chosen())
    return compare(own, request, lambda _text: None)


def texts(found: ScanComparison) -> dict[str, str]:
    return {query.query.name: query.query.text for query in found.queries}


def test_queries() -> None:
    found = compared(session())
    assert texts(found) == {
        "count": "SELECT count(*) FROM {table}",
        "sum": 'SELECT count(*), sum("amount") FROM {table}',
        "group by": 'SELECT "kind", count(*), sum("amount") FROM {table} GROUP BY 1',
        "one key": 'SELECT count(*), sum("amount") FROM {table} WHERE "id" = 500',
        "range of keys": 'SELECT count(*), sum("amount") FROM {table} WHERE "id" BETWEEN 499 AND 507',
    }
    assert (found.rows, found.notes) == (1000, ())
    assert [(part.name, part.rows) for part in found.spread.parts] == [("parted_0", 450), ("parted_1", 550)]


def test_both_tables_are_scanned_in_turns() -> None:
    own = session()
    found = compared(own, repetitions=4)
    assert [text.split('"')[1] for text in own.scanned[:8]] == ["plain", "parted", "parted", "plain"] * 2
    for query in found.queries:
        assert len(query.whole.seconds) == len(query.divided.seconds) == len(query.ratios) == 4
        assert query.whole.cpu_seconds is not None


def test_chosen_columns_and_queries() -> None:
    chosen = Chosen("ID", "day", ("SELECT max(kind) FROM {table}", "SELECT min(size) FROM {table} AS t"))
    found = texts(compared(session(), chosen=chosen))
    assert found["sum"] == 'SELECT count(*), sum("id") FROM {table}'
    assert found["group by"].startswith('SELECT "day", ')
    assert found["sql 1"] == "SELECT max(kind) FROM {table}"
    assert list(found)[-1] == "sql 2"


def test_a_key_of_dates() -> None:
    parted = divided("parted", COLUMNS, "day")
    found = texts(compared(session(PLAIN, parted)))
    assert found["one key"].endswith("WHERE \"day\" = DATE '2024-01-01'")
    assert found["range of keys"].endswith("WHERE \"day\" BETWEEN DATE '2024-09-06' AND DATE '2024-09-09'")


def test_a_key_of_several_columns() -> None:
    found = texts(compared(session(PLAIN, divided("parted", COLUMNS, "id", "kind"))))
    assert found["one key"].endswith('WHERE "id" = 500 AND "kind" = \'kind 0\'')
    assert "range of keys" not in found


@pytest.mark.parametrize("key", [(), ("lower(kind)",), ("size",)])
def test_a_key_that_no_query_can_be_made_for(key: tuple[str, ...]) -> None:
    found = compared(session(PLAIN, divided("parted", COLUMNS, *key)))
    assert list(texts(found)) == ["count", "sum", "group by"]
    assert found.notes == ("no queries by key: the table is not divided by columns of numbers, texts or dates",)


def keys(values: str, kind: DataType) -> StoredSession:
    """Two tables of one column `key` with these values."""
    statements = [
        f"CREATE TABLE {name} AS SELECT * FROM ({values}) AS t(key)" for name in ("plain", "parted", "parted_0")
    ]
    own = [table("plain", {"key": kind}), divided("parted", {"key": kind}, "key", parts=1)]
    return session(*own, statements=tuple(statements))


@pytest.mark.parametrize(
    ("values", "kind", "where"),
    [
        ("VALUES (DATE '9999-12-31')", DATE, "BETWEEN DATE '9999-12-31' AND DATE '9999-12-31'"),
        ("VALUES (9223372036854775807)", INT64, "BETWEEN 9223372036854775807 AND 9223372036854775807"),
        ("VALUES (-9223372036854775808), (9223372036854775807)", INT64, "BETWEEN -1 AND 184467440737095514"),
        (
            f"SELECT unnest(['-{'9' * 36}.99', '{'9' * 36}.99'])::DECIMAL(38,2)",
            WIDE,
            f"BETWEEN 0.00 AND {2 * 10**34 - 1}.98",
        ),
        ("VALUES (0.25::DECIMAL(15,2)), (0.75)", DECIMAL, "BETWEEN 0.50 AND 0.50"),
    ],
)
def test_ranges_at_the_ends_of_types(values: str, kind: DataType, where: str) -> None:
    assert texts(compared(keys(values, kind)))["range of keys"].split('"key" ')[1] == where


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("VALUES ('infinity'), ('-infinity')", DATE),
        ("VALUES ('0044-03-15 BC'), ('2024-01-01')", DATE),
        ("VALUES ('1.50'), ('NaN')", DECIMAL),
    ],
)
def test_no_range_where_an_end_is_none(values: str, kind: DataType) -> None:
    """Texts as PostgreSQL gives them, whose dates and numbers go further than those of Python."""
    tables = (table("plain", {"key": kind}), divided("parted", {"key": kind}, "key"))
    own = keys(values, kind)
    maker = QueryMaker(tables, own.answer, own.literal, '"{}"'.format)
    made = {query.name: query.text for query in maker.queries(Chosen(), 2)}
    assert "range of keys" not in made
    assert maker.notes[-1] == "no range of keys: the least or the greatest key is no finite number or date"
    assert made["one key"].endswith("'")


def test_a_failure_while_it_is_measured() -> None:
    """It says which query and which table."""
    own = session()
    own.failing_scan = 4
    with pytest.raises(SqlError) as raised:
        compared(own)
    assert_snapshot("error_while_measured", raised.value.render())


def test_names_with_what_stands_for_the_table() -> None:
    columns = {"{table}": INT64, "kind": TEXT}
    rows = "SELECT n AS \"{table}\", 'of {table}' || n % 2 AS kind FROM range(9) AS t(n)"
    statements = tuple(f"CREATE TABLE {name} AS {rows}" for name in ("plain", "parted", "parted_0"))
    own = session(
        table("plain", columns), divided("parted", columns, "{table}", "kind", parts=1), statements=statements
    )
    found = texts(compared(own))
    assert found["one key"].endswith('WHERE "{table}" = 4 AND "kind" = \'of {table}0\'')
    assert all('"plain"' in text or '"parted"' in text for text in own.scanned)


@pytest.mark.parametrize("kind", ["view", "index", "sequence"])
def test_what_is_no_table(kind: str) -> None:
    own = session(table("plain", COLUMNS, kind=kind), PARTED)
    with pytest.raises(TargetError, match=f"plain is an? {kind}"):
        compared(own)


def test_rows_that_are_there_more_often() -> None:
    """The rows that differ are shown, not the first of those that both have."""
    columns = {"size": FLOAT}
    statements = (
        "CREATE TABLE plain AS SELECT unnest([1.5, 1.5, 2.5])::DOUBLE AS size",
        *(f"CREATE TABLE {name} AS SELECT unnest([1.5, 2.5, 2.5])::DOUBLE AS size" for name in ("parted", "parted_0")),
    )
    own = session(table("plain", columns), divided("parted", columns, parts=1), statements=statements)
    with pytest.raises(DifferenceError) as raised:
        compared(own, chosen=Chosen(texts=("SELECT size FROM {table}",)))
    assert (raised.value.found, raised.value.expected) == ("2.5, 2 times on parted", "1.5, 2 times, as on plain")


def test_names_are_quoted() -> None:
    columns = {'a "b': INT64, "select": INT32}
    rows = 'SELECT n AS "a ""b", (n % 3)::INTEGER AS "select" FROM range(90) AS t(n)'
    statements = (
        f"CREATE TABLE plain AS {rows}",
        f"CREATE TABLE parted_0 AS {rows}",
        "CREATE TABLE parted_1 AS FROM parted_0 LIMIT 0",
        "CREATE VIEW parted AS FROM parted_0",
    )
    own = session(table("plain", columns), divided("parted", columns, 'a "b'), statements=statements)
    assert 'WHERE "a ""b" = ' in texts(compared(own))["one key"]


def test_columns_without_numbers() -> None:
    columns = {"size": FLOAT}
    rows = "SELECT 1.5::DOUBLE AS size FROM range(5)"
    statements = (
        f"CREATE TABLE plain AS {rows}",
        *(f"CREATE TABLE {name} AS {rows}" for name in ("parted", "parted_0")),
    )
    own = session(table("plain", columns), divided("parted", columns, "size", parts=1), statements=statements)
    found = compared(own)
    assert list(texts(found)) == ["count"]
    assert_snapshot("notes", "\n".join(found.notes))


OTHER = ("UPDATE parted_1 SET amount = 7 WHERE id = 700",)


@pytest.mark.parametrize(
    ("name", "statements", "arguments"),
    [
        ("no_table", (), {"whole": "plan"}),
        ("not_divided", (), {"parts": "plain"}),
        ("whole_is_divided", (), {"whole": "parted"}),
        ("exchanged", (), {"whole": "parted", "parts": "plain"}),
        ("no_partitions", (), {"parts": "unloaded"}),
        ("empty", ("DELETE FROM plain",), {}),
        ("other_sum", OTHER, {}),
        ("other_count", ("DELETE FROM parted_0 WHERE id < 5",), {}),
        ("no_column", (), {"chosen": Chosen(column="amonut")}),
        ("column_of_texts", (), {"chosen": Chosen(column="kind")}),
        ("group_of_floats", (), {"chosen": Chosen(group="size")}),
        ("sql_without_table", (), {"chosen": Chosen(texts=("SELECT 1",))}),
        ("sql_refused", (), {"chosen": Chosen(texts=("SELECT nothing FROM {table}",))}),
    ],
)
def test_errors(name: str, statements: tuple[str, ...], arguments: dict[str, object]) -> None:
    own = session(PLAIN, PARTED, divided("unloaded", COLUMNS, "id", parts=0), statements=(*LOADED, *statements))
    with pytest.raises(HeadraceError) as raised:
        compared(own, **arguments)  # type: ignore[arg-type]
    assert_snapshot(f"error_{name}", f"{raised.value.kind}\n{raised.value.render()}")
