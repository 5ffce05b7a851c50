"""Partitions that a package declares: what a plan makes of them, of a table that exists, and what it says about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from headrace import core
from headrace.errors import HeadraceError
from headrace.model import (
    CommitInterval,
    Every,
    HashPartition,
    ListPartition,
    LoadOptions,
    PartitionSettings,
    Quantiles,
    RangePartition,
)
from headrace.planning import (
    STRAYS,
    CatalogPartitioning,
    CatalogTable,
    CommittedSlice,
    DefaultRule,
    FileKeys,
    HashRule,
    KeyFacts,
    KeyQuestion,
    KeyScan,
    ListRule,
    Partitioning,
    RangeRule,
    key_question,
    table_after,
    with_outside_keys,
)
from headrace.planning.key_questions import MOST_DIFFERENT_KEYS
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from tests.snapshots import assert_snapshot
from tests.unit.planning import samples
from tests.unit.planning.divided import (
    BY_DATE,
    HASHED,
    LISTED,
    LISTS,
    MONTHLY,
    MONTHS,
    ORDERS,
    SCAN,
    TABLE,
    WINDOW,
    existing,
    plan,
    text,
)

UNSORTED = existing(
    "range",
    "o_orderdate",
    orders_2024_01=RangeRule("2024-01-01", "2024-02-01"),
    orders_2023_10=RangeRule("2023-10-01", "2023-11-01"),
)
_MONTHLY = cast("CatalogPartitioning", MONTHLY.partitioning)
WATCHED = replace(
    MONTHLY,
    partitioning=replace(
        _MONTHLY,
        partitions=(
            replace(_MONTHLY.partitions[0], prevents_drop=("view early on orders_2023_10",)),
            *_MONTHLY.partitions[1:],
        ),
    ),
)
COLLATED = replace(
    LISTED, partitioning=replace(cast("CatalogPartitioning", LISTED.partitioning), comparison="collation any_case")
)
OVERLAPPING = KeyFacts([FileKeys("1", "100"), FileKeys("50", "150"), FileKeys("200", "300")])
FILES = samples.files(1, 1, 1)
NO_KEYS = KeyFacts([FileKeys(None, None), FileKeys(None, None)])

PLANS: dict[str, tuple[Any, CatalogTable | None, dict[str, Any]]] = {
    "bounds": (BY_DATE, None, {}),
    "bounds_left": (replace(BY_DATE, boundary="left"), None, {}),
    "bounds_left_of_prices": (
        RangePartition("o_totalprice", ("0.00", "100.00"), "left"),
        existing("range", "o_totalprice"),
        {},
    ),
    "bounds_replace": (BY_DATE, MONTHLY, {}),
    "bounds_append": (
        BY_DATE,
        existing(
            "range",
            "o_orderdate",
            orders_3=RangeRule("2024-02-01", None),
            orders_1=RangeRule(None, "2024-01-01"),
        ),
        {"target": "append"},
    ),
    "default_and_tablespaces": (
        replace(BY_DATE, settings=PartitionSettings("default", ("fast", "large"))),
        None,
        {"target": "create"},
    ),
    "default_exists": (
        replace(MONTHS, settings=PartitionSettings("default")),
        existing("range", "o_orderdate", rest=DefaultRule()),
        {"target": "append", "facts": SCAN},
    ),
    "months_between": (RangePartition("o_orderdate", Every("1", "month", "2023-12-01", "2024-03-01")), None, {}),
    "months_that_occur": (MONTHS, None, {"facts": SCAN}),
    "months_from": (RangePartition("o_orderdate", Every("1", "month", "2024-01-01")), None, {"facts": SCAN}),
    "months_append": (MONTHS, MONTHLY, {"target": "append", "facts": SCAN}),
    "months_in_years": (
        MONTHS,
        existing("range", "o_orderdate", y2024=RangeRule("2024-01-01", "2025-01-01")),
        {"target": "append", "facts": SCAN},
    ),
    "months_without_a_row": (MONTHS, None, {"facts": KeyFacts(scan=KeyScan(0, 0))}),
    "all_null": (MONTHS, None, {"facts": KeyFacts(scan=KeyScan(5, 5))}),
    "files_without_a_key": (RangePartition("o_orderdate"), MONTHLY, {"facts": NO_KEYS}),
    "files_without_a_key_append": (
        RangePartition("o_orderkey"),
        existing("range", "o_orderkey", old=RangeRule("1", "2")),
        {"target": "append", "facts": NO_KEYS},
    ),
    "files_without_a_key_and_default": (
        RangePartition("o_orderkey", settings=PartitionSettings("default")),
        None,
        {"facts": NO_KEYS},
    ),
    "months_outside_into_default": (
        RangePartition("o_orderdate", Every("1", "month", "2030-01-01"), settings=PartitionSettings("default")),
        None,
        {"facts": SCAN},
    ),
    "two_weeks": (RangePartition("o_orderdate", Every("2", "week", "2024-01-03", "2024-02-14")), None, {}),
    "quarters": (RangePartition("o_orderdate", Every("1", "quarter")), None, {"facts": SCAN}),
    "years": (RangePartition("o_orderdate", Every("1", "year", None, "2024-01-01")), None, {"facts": SCAN}),
    "steps": (RangePartition("o_orderkey", Every("1000", None, "-500", "1500")), None, {}),
    "steps_that_occur": (
        RangePartition("o_totalprice", Every("0.50", None, "0.25")),
        None,
        {"facts": KeyFacts(scan=KeyScan(9, 0, ("-0.50", "1.00")))},
    ),
    "parts": (RangePartition("o_orderkey", Quantiles(4)), None, {"facts": SCAN}),
    "parts_append": (
        RangePartition("o_orderkey", Quantiles(4)),
        existing("range", "o_orderkey", high=RangeRule("10", None), low=RangeRule("-99999999999999999999", "10")),
        {"target": "append"},
    ),
    "one_part": (RangePartition("o_orderkey", Quantiles(1)), None, {"facts": KeyFacts(scan=KeyScan(5, 0))}),
    "lists": (LISTS, None, {}),
    "lists_append": (LISTS, LISTED, {"target": "append"}),
    "lists_compared_otherwise": (LISTS, COLLATED, {"target": "append"}),
    "lists_of_the_server": (ListPartition("o_country", (("eu", ("FR", "DE")), ("asia", ("CN",)))), None, {}),
    "lists_without_null": (ListPartition("o_status", (("open", ("O",)), ("done", ("F",)))), None, {}),
    "hash": (HashPartition("o_orderkey", 3), None, {}),
    "hash_as_cpus": (HashPartition("o_status"), None, {}),
    "hash_append": (HashPartition("o_orderkey"), HASHED, {"target": "append"}),
    "hash_of_numeric": (
        HashPartition("o_orderkey", 2),
        existing("hash", "o_orderkey", samples.table(("o_orderkey", "decimal(20,0)!"))),
        {"columns": {"o_orderkey": "o_orderkey"}},
    ),
    "hash_of_the_server": (
        HashPartition("o_status", 2),
        existing("hash", "o_status", samples.table(("o_status", "string"))),
        {"columns": {"o_status": "o_status"}},
    ),
    "reload": (MONTHS, UNSORTED, {"partitions": ("orders_2024_01", "orders_2023_10")}),
    "reload_one": (LISTS, LISTED, {"partitions": ("orders_lost",)}),
    "reload_beside_a_view": (
        MONTHS,
        replace(WATCHED, prevents_replace=("view early on orders_2023_10",)),
        {"partitions": ("orders_2024_01",)},
    ),
    "window": (WINDOW, MONTHLY, {"target": "append", "facts": SCAN}),
    "window_of_old_rows": (
        WINDOW,
        MONTHLY,
        {"target": "append", "facts": KeyFacts(scan=KeyScan(1, 0, ("2023-09-01",)))},
    ),
    "window_with_a_late_row": (
        WINDOW,
        MONTHLY,
        {"target": "append", "facts": KeyFacts(scan=KeyScan(1, 0, ("2023-09-01", "2023-10-01", "2024-02-01")))},
    ),
    "window_and_default": (
        replace(WINDOW, settings=PartitionSettings("default", keep=3)),
        MONTHLY,
        {"target": "append", "facts": KeyFacts(scan=KeyScan(1, 0, ("2023-09-01",)))},
    ),
    "window_of_a_new_table": (
        WINDOW,
        None,
        {
            "target": "append",
            "facts": KeyFacts(scan=KeyScan(4, 0, ("2023-09-01", "2023-10-01", "2023-11-01", "2024-01-01"))),
        },
    ),
    "comes_back_into_a_window": (
        replace(WINDOW, settings=PartitionSettings(keep=2)),
        MONTHLY,
        {"target": "append", "facts": SCAN, "takes_back": True},
    ),
    "comes_back_into_ranges_of_files": (
        RangePartition("o_orderkey"),
        existing("range", "o_orderkey", old=RangeRule("60", "70"), older=RangeRule("1", "60")),
        {"target": "append", "takes_back": True},
    ),
    "window_of_files": (
        RangePartition("o_orderkey", settings=PartitionSettings(keep=2)),
        existing("range", "o_orderkey", orders_5=RangeRule("100", "200")),
        {"target": "append", "facts": KeyFacts([FileKeys("1", "9"), FileKeys("200", "210")])},
    ),
    "files_overlap": (RangePartition("o_orderkey"), None, {"facts": OVERLAPPING, "source": FILES}),
    "files_with_the_same_keys": (
        RangePartition("o_orderkey"),
        None,
        {"facts": KeyFacts([FileKeys("1", "9"), FileKeys("1", "9")])},
    ),
    "files_overlap_append": (
        RangePartition("o_orderkey"),
        existing("range", "o_orderkey", old=RangeRule("-10", "0"), between=RangeRule("160", "170")),
        {"facts": OVERLAPPING, "source": FILES, "target": "append"},
    ),
    "files_and_default": (
        RangePartition("o_orderkey", settings=PartitionSettings("default")),
        None,
        {"facts": KeyFacts([FileKeys("1", "9"), FileKeys("10", "19")])},
    ),
    "too_many": (
        RangePartition("o_orderkey", Every("1", None, "0", "4")),
        None,
        {"capabilities": replace(samples.SERVER, shared_writers=3)},
    ),
    "commit_together": (BY_DATE, None, {"commit": CommitInterval(bytes=250)}),
    "commit_rows": (
        BY_DATE,
        None,
        {"commit": CommitInterval(rows=10), "source": replace(samples.files(3), row_bytes=20.0)},
    ),
    "commit_by_file": (
        RangePartition("o_orderkey"),
        None,
        {"facts": KeyFacts([FileKeys("1", "9"), FileKeys("10", "19")]), "commit": CommitInterval(bytes=10**9)},
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_plan(case: str) -> None:
    clause, catalog, members = PLANS[case]
    planned = plan(clause, catalog, **members)
    assert_snapshot(f"declared_{case}", text(planned))
    if planned.partitioning is not None:
        again = Partitioning.from_dict(json.loads(json.dumps(planned.partitioning.to_dict())))
        assert again == planned.partitioning


@pytest.mark.parametrize("case", [case for case in PLANS if not case.startswith("commit")])
def test_the_core_takes_the_partitions(case: str) -> None:
    clause, catalog, members = PLANS[case]
    planned = plan(clause, catalog, **members)
    core.Flow(planned.flow_spec("/run/rejects", {"kind": "null"}))


def test_every_row_of_a_divided_table_is_placed() -> None:
    """By the core, or by the server itself: there is no plan in which a slice alone says where its rows go. What is
    outside is known to the core, unless a collation of the table's own decides.
    """
    ways, judges = set(), set()
    for case, (clause, catalog, members) in PLANS.items():
        planned = plan(clause, catalog, **members)
        routing, divided = planned.flow_spec("/run/rejects", {}).get("routing"), planned.partitioning
        if divided is None:
            assert routing is None, case
            continue
        ways.add(divided.way)
        judges.add(divided.judge)
        assert (routing is None) == (divided.judge == "target"), case
        if divided.way == "server":
            continue
        assert routing is not None, case
        # A place is the index of a partition, and of the table that takes its rows.
        tables = [table.partition for table in planned.staging if table.partition != STRAYS]
        assert tables == [part.name for part in divided.partitions], case
        [(method, rules)] = routing["method"].items()
        if method == "hash":
            assert [part.rule for part in divided.partitions] == [
                HashRule(rules["modulus"], place) for place in range(rules["modulus"])
            ], case
        else:
            has_default = isinstance(divided.partitions[-1].rule, DefaultRule)
            assert len(rules) == len(divided.partitions) - has_default, case
            assert routing["default"] == (len(rules) if has_default else None), case
    assert ways == {"home", "shared", "server"}
    assert judges == {"core", "target"}


# --- rows outside, where the server finds the partition of each row ---------------------------------------------------

OWN_LISTS = ListPartition("o_status", (("open", ("O",)), ("done", ("F", "P"))))
OWN_TABLE = replace(COLLATED, partitioning=replace(cast("CatalogPartitioning", COLLATED.partitioning), partitions=()))


def keys_of(*keys: str, nulls: int = 0) -> KeyFacts:
    return KeyFacts(scan=KeyScan(len(keys) + nulls, nulls, distinct=keys))


@pytest.mark.parametrize(
    ("clause", "catalog", "judge"),
    [
        (ListPartition("o_country", (("eu", ("FR",)),)), None, "core"),
        (ListPartition("o_country", (("eu", ("FR",)),), PartitionSettings(outside="default")), None, "target"),
        (RangePartition("o_orderkey", Every("1", None, "0", "300")), None, "core"),
        (HashPartition("o_orderkey", 300), None, "target"),
        (OWN_LISTS, OWN_TABLE, "target"),
    ],
    ids=["char", "default", "ranges", "hash", "collation"],
)
def test_who_knows_the_rows_outside(clause: Any, catalog: CatalogTable | None, judge: str) -> None:
    divided = plan(clause, catalog, target="append").partitioning
    assert divided is not None
    assert (divided.way, divided.judge) == ("server", judge)


def test_keys_outside_are_asked_for_where_only_the_target_compares_them() -> None:
    def question(clause: Any, catalog: CatalogTable | None, **members: Any) -> KeyQuestion | None:
        task = samples.task(partition=clause, load="staged", layout=ORDERS, **{"target": "append", **members})
        return key_question(task, catalog, samples.SERVER, "orders")

    assert question(OWN_LISTS, OWN_TABLE) == KeyQuestion("o_status", {"distinct": MOST_DIFFERENT_KEYS})
    assert question(OWN_LISTS, None) is None
    with_default = replace(OWN_LISTS, settings=PartitionSettings(outside="default"))
    assert question(with_default, OWN_TABLE) is None
    reloaded = question(with_default, OWN_TABLE, target="replace", partitions=("p",))
    assert reloaded == KeyQuestion("o_status", {"distinct": MOST_DIFFERENT_KEYS})


def test_keys_outside_are_those_that_the_target_tells() -> None:
    facts = keys_of("O", "o", "X", nulls=1)
    planned = plan(LISTS, COLLATED, target="append", facts=facts)
    assert planned.partitioning is not None
    assert planned.partitioning.judge == "keys"
    asked: list[Any] = []

    def unlisted(keys: Sequence[str], values: Sequence[str]) -> list[str]:
        asked.append((keys, values))
        return ["X"]

    known = with_outside_keys(planned, facts, unlisted)
    assert asked == [(("O", "o", "X"), ["O", "F", "P", "L"])]
    routing = known.flow_spec("/run/rejects", {})["routing"]
    assert routing == {"column": "o_status", "method": {"all_but": ["X"]}, "default": None}
    assert known.notes[-1].startswith("the source has 3 different keys; 1 belongs into no partition")
    assert known.partitioning is not None
    assert Partitioning.from_dict(json.loads(json.dumps(known.partitioning.to_dict()))) == known.partitioning
    core.Flow(known.flow_spec("/run/rejects", {"kind": "null"}))
    planned = plan(OWN_LISTS, OWN_TABLE, target="append", facts=facts)
    divided = with_outside_keys(planned, facts, unlisted).partitioning
    assert divided is not None
    assert divided.outside_keys == ("X", None)


@pytest.mark.parametrize(
    ("facts", "answer"), [(keys_of("O", "X"), None), (KeyFacts(scan=KeyScan(9, 0)), ["X"])], ids=["target", "too many"]
)
def test_what_is_not_known_fails_the_load(facts: KeyFacts, answer: list[str] | None) -> None:
    planned = plan(OWN_LISTS, OWN_TABLE, target="append", facts=facts)
    planned = with_outside_keys(planned, facts, lambda *_: answer)
    assert planned.partitioning is not None
    assert planned.partitioning.judge == "target"
    assert any("a row that no partition takes fails the load" in note for note in planned.notes)
    assert "routing" not in planned.flow_spec("/run/rejects", {})


PLAIN_RANGE = existing("range", "o_orderdate")
REFUSED: dict[str, tuple[Any, CatalogTable | None, dict[str, Any]]] = {
    "not_divided": (LISTS, TABLE, {"target": "append"}),
    "other_strategy": (LISTS, MONTHLY, {"target": "append"}),
    "other_column": (HashPartition("o_status"), HASHED, {}),
    "hash_of_json": (HashPartition("o_json"), None, {"layout": samples.layout(o_json="json")}),
    "other_bounds": (BY_DATE, MONTHLY, {"target": "append"}),
    "partly_other_bounds": (
        RangePartition("o_orderdate", Every("1", "month", "2024-01-01", "2024-03-01")),
        existing("range", "o_orderdate", p=RangeRule("2024-01-15", "2024-02-01")),
        {"target": "append"},
    ),
    "other_values": (LISTS, existing("list", "o_status", p=ListRule(("O", "F"))), {"target": "append"}),
    "other_modulus": (HashPartition("o_orderkey", 4), HASHED, {"target": "append"}),
    "unknown_rule": (MONTHS, existing("range", "o_orderdate", p=None), {"target": "append", "facts": SCAN}),
    "bounds_that_are_no_keys": (
        RangePartition("o_totalprice", ("5.00",)),
        existing("range", "o_totalprice", p=RangeRule("NaN", None)),
        {"target": "append"},
    ),
    "left_of_other_digits": (
        RangePartition("o_totalprice", ("5.00",), "left"),
        existing("range", "o_totalprice", samples.table(("o_totalprice", "decimal(18,4)!"))),
        {"columns": {"o_totalprice": "o_totalprice"}},
    ),
    "left_of_the_last_of_a_table": (
        RangePartition("o_orderkey", (str(2**31 - 1),), "left"),
        existing("range", "o_orderkey", samples.table(("o_orderkey", "int32!"))),
        {"columns": {"o_orderkey": "o_orderkey"}},
    ),
    "too_many_that_occur": (
        RangePartition("o_orderkey", Every("1", None)),
        None,
        {"facts": KeyFacts(scan=KeyScan(1, 0, tuple(map(str, range(10_001)))))},
    ),
    "reload_without_partitions": (MONTHS, TABLE, {"partitions": ("p",), "capabilities": samples.STORING}),
    "reload_of_nothing": (MONTHS, None, {"partitions": ("orders_1",)}),
    "reload_of_a_stranger": (MONTHS, MONTHLY, {"partitions": ("orders_2024_01", "orders_2024_1")}),
    "reload_by_hash": (HashPartition("o_orderkey"), HASHED, {"partitions": ("orders_1",)}),
    "reload_of_the_default": (
        MONTHS,
        existing("range", "o_orderdate", rest=DefaultRule()),
        {"partitions": ("rest",)},
    ),
    "reload_of_far_keys": (
        RangePartition("o_orderkey"),
        existing("range", "o_orderkey", far=RangeRule("99999999999999999999", None)),
        {"partitions": ("far",)},
    ),
    "all_outside": (
        RangePartition("o_orderdate", Every("1", "month", "2030-01-01")),
        MONTHLY,
        {"target": "append", "facts": SCAN},
    ),
    "finer_bounds": (
        RangePartition("o_totalprice", ("1.00",)),
        existing("range", "o_totalprice", low=RangeRule(None, "1.0050")),
        {"target": "append"},
    ),
    "some_null_and_outside": (
        RangePartition("o_orderdate", Every("1", "month", "2030-01-01")),
        None,
        {"facts": KeyFacts(scan=KeyScan(5, 4, ("2024-01-01",)))},
    ),
    "window_too_small": (
        replace(WINDOW, settings=PartitionSettings(keep=1)),
        MONTHLY,
        {"target": "append", "facts": KeyFacts(scan=KeyScan(1, 0, ("2024-02-01",)))},
    ),
    "window_with_a_view": (WINDOW, WATCHED, {"target": "append", "facts": SCAN}),
    "reload_with_a_view": (MONTHS, WATCHED, {"partitions": ("orders_2023_10",)}),
    "no_tablespace": (
        replace(BY_DATE, settings=PartitionSettings(tablespaces=("fast", "slow"))),
        None,
        {"capabilities": replace(samples.SERVER, tablespaces=("fast", "pg_default"))},
    ),
    "taken_name": (MONTHS, MONTHLY, {"target": "append", "facts": SCAN, "taken_names": ("orders_2024_03",)}),
    "name_of_a_part": (
        LISTS,
        existing("list", "o_status", orders_open=ListRule(("X",))),
        {"target": "append"},
    ),
    "same_names": (
        ListPartition("o_status", (("a", ("A",)), ("A", ("B",)))),
        None,
        {"capabilities": replace(samples.SERVER, case_insensitive_names=True)},
    ),
    "lock_and_commit": (
        None,
        TABLE,
        {"target": "append", "streams": 1, "commit": CommitInterval(rows=1), "options": LoadOptions(lock=True)},
    ),
    "comes_back_to_no_partition": (
        RangePartition("o_orderkey"),
        existing("range", "o_orderkey"),
        {"target": "append", "takes_back": True},
    ),
    "file_overlaps_a_partition": (
        RangePartition("o_orderkey"),
        existing("range", "o_orderkey", old=RangeRule("60", "70")),
        {"facts": OVERLAPPING, "source": FILES, "target": "append"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    clause, catalog, members = REFUSED[case]
    with pytest.raises(HeadraceError) as caught:
        plan(clause, catalog, **members)
    assert_snapshot(f"declared_refused_{case}", caught.value.render())


@pytest.mark.parametrize(
    ("clause", "catalog", "question"),
    [
        (RangePartition("o_orderkey"), None, KeyQuestion("o_orderkey")),
        (BY_DATE, None, None),
        (MONTHS, None, KeyQuestion("o_orderdate", {"periods": {"unit": "month"}})),
        (MONTHS, MONTHLY, KeyQuestion("o_orderdate", {"periods": {"unit": "month"}})),
        (RangePartition("o_orderdate", Every("1", "month", "2024-01-01", "2024-02-01")), None, None),
        (
            RangePartition("o_orderkey", Every("10", None, "0")),
            None,
            KeyQuestion("o_orderkey", {"periods": {"step": "10"}}),
        ),
        (RangePartition("o_orderkey", Quantiles(3)), None, KeyQuestion("o_orderkey", {"quantiles": 3})),
        (
            RangePartition("o_orderkey", Quantiles(3)),
            existing("range", "o_orderkey", p=RangeRule("1", "2")),
            None,
        ),
        (LISTS, None, None),
        (HashPartition("o_orderkey"), None, None),
        (None, None, None),
    ],
)
def test_what_is_asked_of_the_keys(clause: Any, catalog: CatalogTable | None, question: KeyQuestion | None) -> None:
    task = samples.task(partition=clause, load="staged", layout=ORDERS, target="append")
    assert key_question(task, catalog, samples.SERVER, "orders") == question


def test_nothing_is_asked_of_files_that_come_back() -> None:
    task = samples.task(
        partition=RangePartition("o_orderkey"), load="staged", layout=ORDERS, target="append", takes_back=True
    )
    assert key_question(task, existing("range", "o_orderkey"), samples.SERVER, "orders") is None


def test_a_table_that_is_divided_otherwise_is_refused_before_all_keys_are_read() -> None:
    with pytest.raises(HeadraceError, match="partitioned in another way"):
        key_question(samples.task(partition=MONTHS, load="staged", layout=ORDERS), LISTED, samples.SERVER, "orders")


def test_a_window_is_for_rows_that_are_appended() -> None:
    planned = plan(WINDOW, MONTHLY, facts=SCAN)
    assert planned.partitioning is not None
    assert planned.partitioning.drops == ()
    assert "`keep` has no effect with `target: replace`" in planned.notes


def test_later_tasks_see_what_a_switch_leaves() -> None:
    after = table_after(plan(WINDOW, MONTHLY, target="append", facts=SCAN), MONTHLY)
    assert after is not None
    assert after.partitioning is not None
    assert [part.name for part in after.partitioning.partitions] == [
        "orders_2024_01",
        "orders_2023_12",
        "orders_2024_03",
    ]
    reloaded = table_after(plan(MONTHS, MONTHLY, partitions=("orders_2024_01",)), MONTHLY)
    assert reloaded is not None
    assert reloaded.partitioning == MONTHLY.partitioning


def test_a_target_that_commits_once_says_so() -> None:
    planned = plan(None, capabilities=samples.STORING, layout=samples.ORDERS, commit=CommitInterval(rows=5))
    assert planned.commit is None
    assert "`commit` has no effect in sample: all rows are one transaction" in planned.notes


def test_commits_of_a_whole_table() -> None:
    planned = plan(None, load="single", streams=1, commit=CommitInterval(bytes=2_000_000_000))
    assert [table.owned for table in planned.staging] == [False]
    assert "about every 2,000 MB of text are committed: a load that breaks off goes on from there" in planned.notes
    assert planned.epochs is None
    appended = plan(None, TABLE, target="append", load="single", commit=CommitInterval(rows=7))
    assert appended.steps[0].text == "copy the rows into warehouse.orders, each writer commits as it goes"


def test_generated_rows_commit_a_chunk_per_stream() -> None:
    generated = replace(samples.files(5), generate={"tpch": "orders"})
    planned = plan(BY_DATE, commit=CommitInterval(rows=1), source=generated)
    assert planned.epochs == ((1, 2), (3, 4), (5,))


def test_a_resumed_load_keeps_its_streams() -> None:
    """Shared tables take from all slices: none of them is a stream's own."""
    planned = plan(BY_DATE, source=samples.files(8), streams=4)

    assert planned.continued({1: CommittedSlice(1, 0, 0)}).streams == 4


@pytest.mark.parametrize(
    ("source", "stored", "key"),
    [
        ("int32", None, "integer"),
        ("int32", "int64", "integer"),
        ("int32", "decimal(10,0)", "numeric"),
        ("decimal(9,0)", "int32", "integer"),
        ("int16", "float32", None),
        ("float32", "float64", "float"),
        ("date", None, "date"),
        ("date", "timestamp", None),
        ("timestamptz", None, "timestamp"),
        ("time", None, "integer"),
        ("bool", None, "bool"),
        ("char(3)", None, "char"),
        ("char(3)", "string", "bytes"),
        ("varchar(3)", "varchar(5)", "bytes"),
        ("json", "string", None),
        ("bytes", None, "bytes"),
        ("uuid", None, "bytes"),
    ],
)
def test_keys_are_hashed_as_the_column_of_the_server_is(source: str, stored: str | None, key: str | None) -> None:
    catalog = None if stored is None else existing("hash", "k", samples.table(("k", stored)))
    if source == "json":
        with pytest.raises(HeadraceError, match="cannot be partitioned"):
            plan(HashPartition("k", 2), catalog, layout=samples.layout(k=source), capabilities=POSTGRES_CAPABILITIES)
        return
    division = plan(
        HashPartition("k", 2), catalog, layout=samples.layout(k=source), capabilities=POSTGRES_CAPABILITIES
    ).partitioning
    assert division is not None
    assert (division.way, division.hash_key) == (("server", None) if key is None else ("shared", key))


@pytest.mark.parametrize("strategy", ["range", "list", "hash"])
def test_the_core_routes_only_what_can_be_a_key(strategy: str) -> None:
    capabilities = POSTGRES_CAPABILITIES
    assert capabilities.core_routes[strategy] <= capabilities.partition_key_kinds[strategy]
    assert json.dumps(capabilities.to_dict())


def test_a_thousand_partitions_are_planned_in_a_moment() -> None:
    days = RangePartition("o_orderdate", Every("1", "day", "2020-01-01", "2022-09-27"))
    first = plan(days, target="append")
    assert first.partitioning is not None
    assert (len(first.partitioning.partitions), first.partitioning.way) == (1000, "server")
    after = table_after(first, None)
    again = plan(days, after, target="append").partitioning
    assert again is not None
    assert {part.action for part in again.partitions} == {"insert"}


def test_a_key_in_a_column_without_counterpart_is_refused_before_the_scan() -> None:
    """A timestamp(0) would round, so no type of a layout can be advised."""
    columns = tuple(
        replace(column, type=None, native_type="timestamp(0)") if column.name == "o_orderdate" else column
        for column in TABLE.columns
    )
    catalog = existing("range", "o_orderdate", replace(TABLE, columns=columns))
    task = samples.task(partition=MONTHS, load="staged", layout=ORDERS, target="append")
    with pytest.raises(HeadraceError) as caught:
        key_question(task, catalog, samples.SERVER, "warehouse.orders")
    assert (caught.value.found, caught.value.hint) == ("`o_orderdate` of type timestamp(0)", "Set `load: single`.")


def test_no_more_streams_than_a_commit_has_slices() -> None:
    """The core starts no others, and every stream that is planned has to report."""
    planned = plan(BY_DATE, source=samples.files(2, 2), commit=CommitInterval(bytes=1), streams=4)
    assert planned.epochs == ((1,), (2,), (3,), (4,))
    assert planned.streams == 1
    assert "1 stream at work: no commit has more slices" in planned.notes


def test_streams_that_share_their_writers_are_not_more_than_compute() -> None:
    many = samples.files(*[1] * 12)
    planned = plan(LISTS, source=many, streams=12)
    assert planned.streams == 8
    assert "8 of 12 streams work: they only feed the writers, and there are 4 CPUs" in planned.notes
    assert plan(LISTS, source=many, streams=8).streams == 8
    in_order = [FileKeys(str(10 * file), str(10 * file + 9)) for file in range(1, 13)]
    own = plan(RangePartition("o_orderkey"), source=many, streams=12, facts=KeyFacts(files=in_order, cpus=1))
    assert (own.partitioning and own.partitioning.way, own.streams) == ("home", 12)
