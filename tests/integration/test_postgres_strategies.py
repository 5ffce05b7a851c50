"""Partitions of every strategy against servers of every version: made, filled in every way, and attached unread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from headrace.errors import TargetError
from headrace.model import DataType
from headrace.planning import DefaultRule, HashRule, ListRule, OutputColumn, Partition, PartitionRule, RangeRule
from headrace.planning.partitioning import Way
from headrace.targets.postgres.bounds import read_bound
from tests.integration.partitioned import Placed, by_partition, load, partition, partitioned
from tests.integration.test_postgres_target import Run, left
from tests.servers.cluster import Cluster, Database

WAYS: tuple[Way, ...] = ("home", "shared", "server")
# How the server says that it did not read the rows of a partition.
UNREAD = re.compile(r'DEBUG:  .*partition constraint for table "([a-z_0-9]+)" is implied by existing constraints')


@pytest.fixture
def database(postgres_versions: Cluster) -> Iterator[Database]:
    with postgres_versions.database() as database:
        yield database


@dataclass(frozen=True)
class Case:
    """Rules, keys for each (as the server shows them), and the type of the column."""

    type: str
    rules: Sequence[PartitionRule]
    keys: Sequence[Sequence[str | None]]
    is_proved: bool = True

    def key(self) -> OutputColumn:
        return OutputColumn("id", "id", DataType.parse(self.type), nullable=True)

    def parts(self) -> list[Partition]:
        return [partition(number, rule) for number, rule in enumerate(self.rules, 1)]

    def placed(self, notes: str = "n") -> Placed:
        """Every row in the second slice, but those of the first partition: so `home` has strays."""
        rows = {str(number): [f"{literal(key)}, '{notes}'" for key in keys] for number, keys in enumerate(self.keys, 1)}
        return {1: {"1": rows.pop("1")}, 2: rows}

    def expected(self) -> dict[str, list[str | None]]:
        return {f"orders_{number}": list(keys) for number, keys in enumerate(self.keys, 1) if keys}


def literal(key: str | None) -> str:
    return "NULL" if key is None else "'" + key.replace("'", "''") + "'"


CASES = {
    "range": Case(
        "int64",
        [RangeRule(None, "10"), RangeRule("10", "20"), RangeRule("20", None)],
        [["-9223372036854775808", "9"], ["10", "19"], ["20", "9223372036854775807"]],
    ),
    "range with default": Case(
        "date",
        [RangeRule("2024-01-01", "2024-02-01"), RangeRule("2024-02-01", "2024-03-01"), DefaultRule()],
        [["2024-01-01", "2024-01-31"], ["2024-02-01", "2024-02-29"], ["2023-12-31", "2024-03-01", None]],
    ),
    "list of texts": Case(
        "string",
        [ListRule(("FR", "D'E", None)), ListRule(("CN",)), ListRule(("",))],
        [["D'E", "FR", None], ["CN"], [""]],
    ),
    "list with default": Case(
        "varchar(9)",
        [ListRule(("a", "b")), ListRule((None,)), DefaultRule()],
        [["a", "b"], [None], ["c", "d"]],
    ),
    "list of truth values": Case("bool", [ListRule(("false", None)), ListRule(("true",))], [["f", None], ["t"]]),
    "list of decimals": Case(
        "decimal(9,2)", [ListRule(("-1.50", "2.00")), ListRule(("3.00",))], [["-1.50", "2.00"], ["3.00"]]
    ),
    "a long list": Case("int32", [ListRule(tuple(map(str, range(150)))), ListRule(("200",))], [["0", "149"], ["200"]]),
    # satisfies_hash_partition says where they belong; NULL always has remainder 0.
    "hash": Case("int64", [HashRule(3, number) for number in range(3)], [[], [], []]),
    "hash of decimals": Case("decimal(9,2)", [HashRule(3, number) for number in range(3)], [[], [], []]),
    "hash of texts": Case("string", [HashRule(3, number) for number in range(3)], [[], [], []], is_proved=False),
}


def case_of(name: str, database: Database) -> Case:
    """With keys for partitions by hash, which the server places."""
    case = CASES[name]
    if not isinstance(case.rules[0], HashRule):
        return case
    column = {"int64": "bigint", "decimal(9,2)": "numeric(9,2)", "string": "text"}[case.type]
    database.as_loader(f"CREATE TABLE probe (id {column}) PARTITION BY HASH (id)")
    found: list[list[str | None]] = [[], [], []]
    for key, place in database.rows(
        f"SELECT k, r FROM (SELECT k::numeric(9,2)::{column} AS k FROM generate_series(1, 12) AS k) AS keys, "
        "generate_series(0, 2) AS r WHERE satisfies_hash_partition('probe'::regclass, 3, r, k) ORDER BY k"
    ):
        found[int(str(place))].append(key)
    database.as_loader("DROP TABLE probe")
    found[0].append(None)
    return replace(case, keys=found)


@pytest.mark.in_turn("way")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_partitions_are_made_and_filled(database: Database, name: str, way: Way) -> None:
    """A new table, then all of it again, then more of it: each ATTACH says that it has read nothing."""
    case = case_of(name, database)

    def attached(target: str, parts: Sequence[Partition], **members: Any) -> set[str]:
        before = len(database.cluster.log_text())
        planned = partitioned(target, way, parts, key=case.key(), **members)
        times = load(database, planned, case.placed(target))
        assert [part.rows for part in times.partitions] == [len(keys) for keys in case.keys]
        assert left(database) == []
        return set(UNREAD.findall(database.cluster.log_text()[before:]))

    database.psql(f"ALTER DATABASE {database.name} SET log_min_messages = debug1")
    parts = case.parts()
    names = {part.table for part in parts}
    seen = attached("create", parts)
    assert by_partition(database) == case.expected()
    if way != "server" and case.is_proved:  # the server divides: its partitions were attached when they were empty
        assert names <= seen | defaults(parts)
    database.as_loader("CREATE INDEX by_note ON orders (note)")
    seen = attached("replace", parts)
    assert by_partition(database) == case.expected()
    assert not case.is_proved or names <= seen | defaults(parts)
    inserts = [replace(part, action="insert") for part in parts]
    attached("append", inserts)
    twice = {name: [key for key in keys for _ in range(2)] for name, keys in case.expected().items()}
    assert by_partition(database) == twice
    assert database.rows("SELECT 1 FROM pg_constraint WHERE conname ~ '^headrace'") == []


def defaults(parts: Sequence[Partition]) -> set[str]:
    """They are attached first, when there is nothing that they could not take."""
    return {part.table for part in parts if isinstance(part.rule, DefaultRule)}


@pytest.mark.parametrize("name", CASES)
def test_rules_are_read_from_the_catalog(database: Database, name: str) -> None:
    case = CASES[name]
    placed: Placed = {1: {}, 2: {}}
    load(database, partitioned("create", "shared", case.parts(), key=case.key()), placed)
    with Run(database).target as target:
        found = target.catalog(None, "orders")
    assert found is not None and found.partitioning is not None
    by_name = {part.name: part.rule for part in found.partitioning.partitions}

    def same(rule: PartitionRule | None) -> object:
        """NULL comes where the server writes it."""
        return set(rule.values) if isinstance(rule, ListRule) else rule

    assert {name: same(rule) for name, rule in by_name.items()} == {
        part.table: same(part.rule) for part in case.parts()
    }


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("FOR VALUES FROM ('-5') TO (7)", RangeRule("-5", "7")),
        ("FOR VALUES FROM (MINVALUE) TO ('2024-01-01 00:00:00+01')", RangeRule(None, "2024-01-01 00:00:00+01")),
        ("FOR VALUES FROM (1, 2) TO (3, 4)", None),
        ("FOR VALUES FROM ('-infinity') TO ('infinity')", RangeRule(None, None)),
        ("FOR VALUES FROM ('0044-03-15 BC') TO ('12000-01-01')", RangeRule(None, None)),
        ("FOR VALUES FROM ('infinity') TO (MAXVALUE)", None),
        ("FOR VALUES FROM (MINVALUE) TO ('0044-03-15 BC')", None),
        ("FOR VALUES IN (NULL)", ListRule((None,))),
        ("FOR VALUES IN ('NULL', NULL, 'a, b', 'it''s', '(x)', 1.50, true)",
         ListRule(("NULL", None, "a, b", "it's", "(x)", "1.50", "true"))),
        ("FOR VALUES WITH (modulus 16, remainder 3)", HashRule(16, 3)),
        ("DEFAULT", DefaultRule()),
        ("FOR VALUES OTHERWISE", None),
    ],
)  # fmt: skip
def test_bounds_are_read(text: str, rule: PartitionRule | None) -> None:
    assert read_bound(text) == rule


KEYS = (
    "int16", "int32", "int64", "decimal(9,2)", "decimal(38,0)", "float32", "float64", "bool", "date", "time",
    "timestamp", "timestamptz", "string", "varchar(20)", "char(9)", "bytes", "uuid",
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_the_server_is_asked_where_keys_belong(database: Database, key: str) -> None:
    """And is of the same opinion."""
    column = OutputColumn("id", "id", DataType.parse(key), nullable=True)
    parts = [partition(number, HashRule(5, number - 1)) for number in range(1, 6)]
    before = len(database.cluster.log_text())
    load(database, partitioned("create", "shared", parts, slices=1, key=column), {1: {}})
    assert "WITH ORDINALITY AS probe" in database.cluster.log_text()[before:]


def test_a_hash_of_its_own_is_refused(database: Database) -> None:
    """The server divides the rows itself then, as the table does."""
    database.psql(
        "CREATE FUNCTION own_hash(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE "
        "AS 'SELECT hashint8extended($1, $2) # 7';"
        "CREATE OPERATOR CLASS own_ops FOR TYPE bigint USING hash AS OPERATOR 1 =, "
        "FUNCTION 2 own_hash(bigint, bigint)"
    )
    database.as_loader("CREATE TABLE orders (id bigint, note text) PARTITION BY HASH (id own_ops)")
    parts = [partition(number, HashRule(4, number - 1)) for number in range(1, 5)]
    with pytest.raises(TargetError, match="other partitions than Headrace would"):
        load(database, partitioned("append", "shared", parts, slices=1), {1: {}})
    load(database, partitioned("append", "server", parts, slices=1), {1: {"any": ["7, 'n'", "NULL, 'm'"]}})
    assert sum(len(keys) for keys in by_partition(database).values()) == 2
