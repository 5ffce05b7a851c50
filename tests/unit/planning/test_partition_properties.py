"""Whatever is declared: no key has two places, names are different, and the core gets what the plan says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import TargetError
from headrace.model import DataType, Every, ListPartition, PartitionSettings, PeriodUnit, Quantiles, RangePartition
from headrace.model.key_values import KeyType, key_type
from headrace.planning import (
    CatalogPartition,
    CatalogPartitioning,
    DataFlowPlan,
    FileKeys,
    KeyFacts,
    KeyScan,
    ListRule,
    MemoryBudget,
    Partitioning,
    RangeRule,
    plan_data_flow,
)
from headrace.planning.key_ranges import KeyRange, in_type
from headrace.planning.periods import grid
from tests.unit.planning import samples

LAYOUT = samples.layout(k="int64!", d="date!", v="varchar(5)")
TABLE = samples.table(("k", "int64!"), ("d", "date!"), ("v", "varchar(5)"))
INTEGERS = st.integers(-1000, 1000)


def kind_of(text: str) -> KeyType:
    found = key_type(DataType.parse(text))
    assert found is not None
    return found


INT64 = kind_of("int64")


def plan(clause: Any, facts: KeyFacts | None = None, *, kept: Sequence[Any] = (), files: int = 2) -> DataFlowPlan:
    catalog = None
    if kept:
        parts = tuple(CatalogPartition(f"old_{number}", rule) for number, rule in enumerate(kept))
        strategy = "list" if isinstance(clause, ListPartition) else "range"
        catalog = replace(TABLE, partitioning=CatalogPartitioning(strategy, (clause.column,), parts))
    return plan_data_flow(
        samples.task(partition=clause, load="staged", layout=LAYOUT, target="append"),
        samples.files(*(1 for _ in range(files))),
        catalog,
        samples.SERVER,
        MemoryBudget(1_000_000_000, 0),
        2,
        default_schema="main",
        key_facts=facts or KeyFacts(),
    )


def ranges_of(division: Partitioning, kind: KeyType) -> list[KeyRange]:
    rules = [part.rule for part in division.partitions if isinstance(part.rule, RangeRule)]
    return [
        KeyRange(*(None if text is None else kind.parse(text) for text in (rule.minimum, rule.end))) for rule in rules
    ]


def check(planned: DataFlowPlan, kind: KeyType) -> list[KeyRange]:
    """What holds for every plan with ranges; the ranges."""
    division = planned.partitioning
    assert division is not None
    ranges = ranges_of(division, kind)
    for earlier, later in itertools.pairwise(ranges):
        assert earlier.end is not None
        assert later.minimum is not None
        assert earlier.end <= later.minimum
    for keys in ranges:
        assert keys.minimum is None or keys.end is None or keys.minimum < keys.end
    for names in ([part.name for part in division.partitions], [part.table for part in division.partitions]):
        assert len(set(names)) == len(names)
    routing = json.loads(json.dumps(planned.flow_spec("/rejects", {})))["routing"]
    assert routing["column"] == division.source
    assert (
        routing["method"]["range"]
        == [rule.to_dict() for rule in (part.rule for part in division.partitions)][: len(ranges)]
    )
    assert routing["default"] == (len(ranges) if len(ranges) < len(division.partitions) else None)
    assert planned.to_dict()["partitioning"] == division.to_dict()
    return ranges


def holds(keys: KeyRange, key: Any) -> bool:
    return (keys.minimum is None or keys.minimum <= key) and (keys.end is None or key < keys.end)


@given(st.sets(INTEGERS, min_size=1, max_size=20), st.lists(INTEGERS), st.booleans(), st.booleans())
def test_given_bounds_place_every_key_once(bounds: set[int], keys: list[int], is_left: bool, has_default: bool) -> None:
    given_bounds = sorted(bounds)
    settings = PartitionSettings("default" if has_default else "reject")
    clause = RangePartition("k", tuple(map(str, given_bounds)), "left" if is_left else "right", settings)
    ranges = check(plan(clause), INT64)
    for key in [*keys, *given_bounds]:
        place = sum(bound < key if is_left else bound <= key for bound in given_bounds)
        assert [holds(keys, key) for keys in ranges].index(True) == place


@given(st.sets(INTEGERS, max_size=20), st.integers(1, 30))
def test_quantiles_place_every_key_once(found: set[int], parts: int) -> None:
    bounds = tuple(map(str, sorted(found)))
    facts = KeyFacts(scan=KeyScan(10, 0, quantiles=bounds))
    ranges = check(plan(RangePartition("k", Quantiles(parts)), facts), INT64)
    assert (ranges[0].minimum, ranges[-1].end, len(ranges)) == (None, None, len(bounds) + 1)


@given(st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=12))
def test_any_files_find_a_place_for_their_keys(files: list[tuple[int, int]]) -> None:
    facts = KeyFacts([FileKeys(str(first), str(last)) for first, last in files])
    ranges = check(plan(RangePartition("k"), facts, files=len(files)), INT64)
    for first, last in files:
        for key in (first, (first + last) // 2, last):
            assert sum(holds(keys, key) for keys in ranges) == 1


@given(
    st.sets(INTEGERS, min_size=2, max_size=8),
    st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=6),
)
def test_what_files_append_does_not_overlap_what_stays(bounds: set[int], files: list[tuple[int, int]]) -> None:
    numbers = sorted(bounds)[: len(bounds) // 2 * 2]
    kept = [RangeRule(str(a), str(b)) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
    facts = KeyFacts([FileKeys(str(first), str(last)) for first, last in files])
    try:
        ranges = check(plan(RangePartition("k"), facts, kept=kept, files=len(files)), INT64)
    except TargetError as error:
        assert "overlaps a partition" in error.what
        return
    stays = [KeyRange(int(rule.minimum or 0), int(rule.end or 0)) for rule in kept]
    assert not any(own.overlaps(other) for own in ranges for other in stays)


UNITS = st.sampled_from(["day", "week", "month", "quarter", "year"])
DAYS = st.dates(date(1990, 1, 1), date(2030, 12, 31))


@given(st.integers(1, 13), UNITS, st.sets(DAYS, min_size=1, max_size=12))
def test_every_key_that_was_seen_has_a_period(size: int, unit: PeriodUnit, days: set[date]) -> None:
    kind = kind_of("date")
    cells = grid("1", unit, DataType.parse("date"), kind, None)
    periods = sorted({cells.begin(cells.number(day)) for day in days})
    scan = KeyScan(len(days), 0, tuple(kind.text(period) for period in periods))
    ranges = check(plan(RangePartition("d", Every(str(size), unit)), KeyFacts(scan=scan)), kind)
    assert all(sum(holds(keys, day) for keys in ranges) == 1 for day in days)
    # A period of several weeks or months may hold several that were seen, but every one holds at least one.
    assert all(any(keys.overlaps(cells.range(cells.number(day))) for day in days) for keys in ranges)


@given(st.integers(1, 300), st.integers(-500, 500), st.sets(INTEGERS, min_size=1, max_size=12))
def test_every_number_that_was_seen_has_a_step(step: int, first: int, keys: set[int]) -> None:
    keys = {key for key in keys if key >= first} or {first}
    periods = tuple(str(begin) for begin in sorted({key // step * step for key in keys}))
    facts = KeyFacts(scan=KeyScan(len(keys), 0, periods))
    ranges = check(plan(RangePartition("k", Every(str(step), None, str(first))), facts), INT64)
    assert all(sum(holds(own, key) for own in ranges) == 1 for key in keys)
    assert all(own.minimum is not None and (own.minimum - first) % step == 0 for own in ranges)


@given(st.sets(st.text("abcXYZ", min_size=1, max_size=5), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_lists_place_every_value_once(values: set[str], random: Any) -> None:
    declared: list[list[str | None]] = [[], [], []]
    for value in sorted(values):
        random.choice(declared).append(value)
    declared[0].append(None)
    lists = tuple((f"list_{number}", tuple(own)) for number, own in enumerate(declared) if own)
    kept = [ListRule(own) for name, own in lists if random.random() < 0.3] + [ListRule(("other",))]
    division = plan(ListPartition("v", lists), kept=kept).partitioning
    assert division is not None
    places = [value for part in division.partitions if isinstance(part.rule, ListRule) for value in part.rule.values]
    assert sorted(places, key=str) == sorted([*values, None, "other"], key=str)
    assert {part.table for part in division.partitions if part.action == "insert"} == {
        f"old_{number}" for number in range(len(kept))
    }


@pytest.mark.parametrize(
    ("size", "unit", "key", "expected"),
    [
        ("1", "month", "2024-02-29", ("2024-02-01", "2024-03-01")),
        ("2", "month", "2024-02-29", ("2024-01-01", "2024-03-01")),
        ("1", "quarter", "2024-12-31", ("2024-10-01", "2025-01-01")),
        ("10", "year", "2024-12-31", ("2020-01-01", "2030-01-01")),
        ("1", "week", "2024-02-29", ("2024-02-26", "2024-03-04")),
        ("1", "day", "9999-12-31", ("9999-12-31", None)),
        ("1", "year", "9999-12-31", ("9999-01-01", None)),
        ("5", "year", "0001-01-01", (None, "0005-01-01")),
    ],
)
def test_periods_of_the_calendar(size: str, unit: PeriodUnit, key: str, expected: tuple[str | None, ...]) -> None:
    kind = kind_of("date")
    cells = grid(size, unit, DataType.parse("date"), kind, None)
    assert cells.range(cells.number(kind.parse(key))).rule(kind) == RangeRule(*expected)


@pytest.mark.parametrize(
    ("data_type", "key", "expected", "suffix"),
    [
        ("timestamp", "2024-02-29 13:59:59.999999", ("2024-02-29 12:00:00", "2024-02-29 18:00:00"), "2024_02_29_12"),
        (
            "timestamptz",
            "2024-02-29 13:00:00+02:00",
            ("2024-02-29 06:00:00+00:00", "2024-02-29 12:00:00+00:00"),
            "2024_02_29_06",
        ),
    ],
)
def test_hours(data_type: str, key: str, expected: tuple[str, str], suffix: str) -> None:
    kind = kind_of(data_type)
    cells = grid("6", "hour", DataType.parse(data_type), kind, None)
    number = cells.number(kind.parse(key))
    assert cells.range(number).rule(kind) == RangeRule(*expected)
    assert cells.suffix(cells.begin(number)) == suffix


@given(st.decimals("-99.99", "99.99", places=2), st.decimals("0.01", "20", places=2), st.decimals("-5", "5", places=2))
def test_steps_of_decimals_are_exact(key: Decimal, step: Decimal, origin: Decimal) -> None:
    kind = kind_of("decimal(6,2)")
    cells = grid(str(step), None, DataType.parse("decimal(6,2)"), kind, origin)
    keys = cells.range(cells.number(key))
    assert keys.minimum is not None
    assert keys.end is not None
    assert keys.minimum <= key < keys.end
    assert keys.end - keys.minimum == step
    assert (keys.minimum - origin) % step == 0


def test_bounds_of_a_finer_or_wider_type() -> None:
    prices, small = kind_of("decimal(6,2)"), kind_of("int16")

    def of(minimum: str | int | None, end: str | int | None, kind: KeyType) -> KeyRange | None:
        ends = [None if key is None else Decimal(key) if kind is prices else int(key) for key in (minimum, end)]
        return in_type(KeyRange(*ends), kind)

    assert of("1.001", "2.009", prices) == KeyRange(Decimal("1.01"), Decimal("2.01"))
    assert of("1.001", "1.009", prices) is None
    assert of("-1000000", "5", prices) == KeyRange(None, Decimal("5.00"))
    assert of(-40_000, 40_000, small) == KeyRange(None, None)
    assert of(40_000, None, small) is None
    assert of(None, -32_768, small) is None
    assert of(32_767, None, small) == KeyRange(32_767, None)


def test_a_range_of_days_has_no_gap() -> None:
    clause = RangePartition("d", Every("1", "week", "2024-01-01", "2025-01-13"))
    ranges = check(plan(clause), kind_of("date"))
    assert [keys.end - keys.minimum for keys in ranges if keys.end and keys.minimum] == [timedelta(days=7)] * 54
    assert all(earlier.end == later.minimum for earlier, later in itertools.pairwise(ranges))
