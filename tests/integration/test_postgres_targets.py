"""Existing tables of PostgreSQL: what belongs to them is kept, or the run refuses before the first row."""

from __future__ import annotations

import pytest

from tests.integration.postgres import BEFORE_ROWS, COLUMNS, CREATE_ORDERS, Before, PostgresProject
from tests.snapshots import assert_snapshot

PRIMARY_KEY = CREATE_ORDERS.replace("NOT NULL", "PRIMARY KEY")
# Everything that psql's \\d shows of a table, and whose it is.
DESCRIPTION = """
SELECT 'owner', tableowner::text FROM pg_tables WHERE tablename = 'orders'
UNION ALL SELECT 'grants', relacl::text FROM pg_class WHERE oid = 'orders'::regclass
UNION ALL SELECT 'grants of columns', string_agg(attname || attacl::text, ',' ORDER BY attnum) FROM pg_attribute
  WHERE attrelid = 'orders'::regclass
UNION ALL SELECT 'comment', obj_description('orders'::regclass)
UNION ALL SELECT 'comments', string_agg(col_description(attrelid, attnum), ',' ORDER BY attnum) FROM pg_attribute
  WHERE attrelid = 'orders'::regclass
UNION ALL SELECT 'columns', string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull,
  attidentity, attstattarget, attstorage, pg_get_expr(adbin, adrelid)), ',' ORDER BY attnum)
  FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE attrelid = 'orders'::regclass AND attnum > 0
UNION ALL SELECT 'indexes', string_agg(indexdef, ',' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'orders'
UNION ALL SELECT 'constraints', string_agg(conname || pg_get_constraintdef(oid), ',' ORDER BY conname)
  FROM pg_constraint WHERE conrelid = 'orders'::regclass AND contype <> 'n'
UNION ALL SELECT 'referenced by', string_agg(conname || pg_get_constraintdef(oid), ',' ORDER BY conname)
  FROM pg_constraint WHERE confrelid = 'orders'::regclass
UNION ALL SELECT 'triggers', string_agg(pg_get_triggerdef(oid), ',' ORDER BY tgname) FROM pg_trigger
  WHERE tgrelid = 'orders'::regclass AND NOT tgisinternal
UNION ALL SELECT 'policies', string_agg(policyname || qual, ',') FROM pg_policies WHERE tablename = 'orders'
UNION ALL SELECT 'publications', string_agg(pubname, ',') FROM pg_publication_tables WHERE tablename = 'orders'
UNION ALL SELECT 'options', reloptions::text FROM pg_class WHERE oid = 'orders'::regclass
UNION ALL SELECT 'sequence', pg_get_serial_sequence('orders', 'number')
"""
CREATE_WITH_NUMBER = f"CREATE TABLE orders (number integer GENERATED ALWAYS AS IDENTITY, {COLUMNS})"
PLAIN = (
    CREATE_WITH_NUMBER,
    "COMMENT ON TABLE orders IS 'all of them'",
    "COMMENT ON COLUMN orders.note IS 'what they said'",
    "GRANT SELECT ON orders TO PUBLIC",
    "GRANT UPDATE (note) ON orders TO PUBLIC",
    "ALTER TABLE orders ALTER note SET DEFAULT 'none', ALTER note SET STORAGE EXTERNAL, ALTER note SET STATISTICS 500",
    "ALTER TABLE orders ADD CONSTRAINT has_a_key PRIMARY KEY (id)",
    "ALTER TABLE orders ADD CONSTRAINT not_too_much CHECK (amount < 1000)",
    "ALTER TABLE orders SET (fillfactor = 90)",
    "CREATE INDEX by_day ON orders (day) WHERE amount > 1",
)
HANGING_ON_IT = {
    "view": ("CREATE VIEW large AS SELECT id FROM orders WHERE amount > 50",),
    "trigger": (
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER watching AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION nothing()",
    ),
    "policy": (
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON orders USING (id > 0)",
    ),
    "foreign_key": (
        "CREATE TABLE days (day date PRIMARY KEY)",
        "INSERT INTO days VALUES ('2024-02-29')",
        "ALTER TABLE orders ADD CONSTRAINT a_day FOREIGN KEY (day) REFERENCES days",
    ),
    "rule": ("CREATE RULE kept AS ON DELETE TO orders DO INSTEAD NOTHING",),
}


def description(warehouse: PostgresProject) -> list[tuple[str | None, ...]]:
    return warehouse.query(DESCRIPTION)


def test_replace_keeps_what_belongs_to_the_table(warehouse: PostgresProject) -> None:
    warehouse.execute(*PLAIN)
    before = description(warehouse)
    warehouse.file("orders.tbl.1")
    for _ in range(2):
        warehouse.run().succeeded()
        assert description(warehouse) == before
        assert warehouse.query("SELECT count(*), sum(id), count(DISTINCT number) FROM orders") == [
            ("100", "5050", "100")
        ]
    warehouse.execute("INSERT INTO orders (id) VALUES (-1)")
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("case", HANGING_ON_IT)
def test_replace_keeps_what_hangs_on_the_table(warehouse: PostgresProject, case: str) -> None:
    """The rows are moved into the table that stays."""
    warehouse.execute(*PLAIN, *HANGING_ON_IT[case])
    [(identity,)] = warehouse.query("SELECT 'orders'::regclass::oid")
    before = description(warehouse)
    warehouse.file("orders.tbl.1")
    for _ in range(2):
        warehouse.run().succeeded()
        assert description(warehouse) == before
        assert warehouse.query("SELECT count(*), sum(id) FROM orders") == [("100", "5050")]
    assert warehouse.query("SELECT 'orders'::regclass::oid") == [(identity,)]
    if case == "view":
        assert warehouse.query("SELECT count(*) FROM large") == [("51",)]
    assert warehouse.leftovers() == []


REFUSED = {
    "referenced": ((PRIMARY_KEY, "CREATE TABLE visits (id bigint REFERENCES orders)"), "replace"),
    "a_view": ((CREATE_ORDERS.replace("orders", "base"), "CREATE VIEW orders AS TABLE base"), "replace"),
    "a_sequence": (("CREATE SEQUENCE orders",), "append"),
    "other_columns": (("CREATE TABLE orders (id bigint, amount numeric(9,2), day date, buyer text)",), "append"),
    "a_column_that_must_be_filled": ((CREATE_ORDERS.replace("(id", "(region integer NOT NULL, id"),), "append"),
    "exists": ((CREATE_ORDERS,), "create"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_the_first_row(warehouse: PostgresProject, case: str) -> None:
    statements, target = REFUSED[case]
    before = Before.of(warehouse, *statements)
    warehouse.file("orders.tbl.1")
    ended = warehouse.run(target=target)
    assert ended.exit_code == 1
    assert ended.summary["rows_read"] == 0
    assert_snapshot(f"postgres_refused_{case}", warehouse.stable(ended.error))
    assert (warehouse.content(), warehouse.leftovers()) == (before.content, [])


def test_append_keeps_the_rows_that_are_there(warehouse: PostgresProject) -> None:
    warehouse.execute(CREATE_ORDERS, BEFORE_ROWS)
    warehouse.file("orders.tbl.1")
    warehouse.run(target="append").succeeded()
    assert warehouse.query("SELECT count(*), count(*) FILTER (WHERE customer = 'before') FROM orders") == [("103", "3")]


def test_append_to_partitions_by_file(warehouse: PostgresProject) -> None:
    """New files become new partitions; a file whose keys are there already is refused."""
    warehouse.sales("staged", partition="id")
    warehouse.file("orders.tbl.1")
    warehouse.run(target="create").succeeded()
    content = warehouse.content()
    ended = warehouse.run(target="append")
    assert ended.exit_code == 1
    assert_snapshot("postgres_append_overlaps", warehouse.stable(ended.error))
    assert (warehouse.content(), warehouse.leftovers()) == (content, [])
    warehouse.file("orders.tbl.1", "".join(f"{number}|1.00|||\n" for number in range(201, 301)))
    warehouse.run(target="append").succeeded()
    assert warehouse.query("SELECT count(*), min(id), max(id) FROM orders") == [("200", "1", "300")]
    assert warehouse.leftovers() == []


@pytest.mark.parametrize("lock", ["ACCESS SHARE", "ACCESS EXCLUSIVE"])
def test_somebody_holds_the_table(warehouse: PostgresProject, lock: str) -> None:
    """The switch waits a while for somebody who reads or holds the old table, then fails and changes nothing."""
    before = Before.of(warehouse)
    warehouse.file("orders.tbl.1")
    with warehouse.target.session(f"BEGIN; LOCK TABLE orders IN {lock} MODE"):
        ended = warehouse.run()
        assert ended.exit_code == 1
        error = ended.summary["error"]
        assert (error["kind"], error["retryable"]) == ("target_busy", True)
        assert_snapshot(f"postgres_locked_{lock.lower().replace(' ', '_')}", warehouse.stable(ended.error))
        assert ("headrace resume" in ended.error) == (lock == "ACCESS SHARE")  # else no row was ever sent
    assert (warehouse.content(), warehouse.ledger()) == (before.content, ["failed"])
    warehouse.run().succeeded()
    assert warehouse.leftovers() == []
