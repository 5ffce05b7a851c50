"""Planning a run: whose keys are asked for, and what one task leaves for the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from headrace import core
from headrace.errors import TargetError
from headrace.model import BoundPackage, DataFlowTask, Every, HashPartition, Quantiles, RangePartition
from headrace.model.task_binder import TaskBinder
from headrace.planning import (
    Capabilities,
    CatalogPartition,
    CatalogPartitioning,
    CatalogTable,
    DataFlowPlan,
    FileKeys,
    KeyQuestion,
    KeyScan,
    RangeRule,
    SourceSnapshot,
)
from headrace.run.flow_sources import PreparedFlow
from headrace.run.key_answers import KeyAnswers
from headrace.run.preparation import OpenTargets, plan_run
from headrace.targets.null.target import NullTarget
from tests.unit.planning import samples

BY_KEY = RangePartition("o_orderkey")


class Server(NullTarget):
    """A target with hidden tables, in which nothing exists but `names`."""

    default_schema = "main"

    def __init__(self, capabilities: Capabilities = samples.SERVER, names: Sequence[str] = ()) -> None:
        self.capabilities = capabilities
        self.names = frozenset(names)
        self.asked = 0

    def catalog(self, schema: str | None, table: str) -> CatalogTable | None:
        return None

    def names_in_schema(self, schema: str | None) -> frozenset[str]:
        self.asked += 1
        return self.names


class Keys:
    """As core.key_bounds: file k of the call has the keys from 100 k to 100 k + 9, and so on in the next call."""

    def __init__(self) -> None:
        self.specs: list[dict[str, Any]] = []
        self.files = 0

    def __call__(self, spec: dict[str, Any]) -> dict[str, Any]:
        self.specs.append(spec)
        replies = []
        for _ in spec["files"]:
            replies.append({"first": str(self.files * 100), "last": str(self.files * 100 + 9)})
            self.files += 1
        return {"files": replies}

    def scan(self, spec: dict[str, Any], is_cancelled: Callable[[], bool]) -> dict[str, Any]:
        """As core.key_scan, for months or quantiles."""
        assert not is_cancelled()
        self.specs.append(spec)
        found = {"minimum": "2024-01-01", "maximum": "2024-03-05", "rows": 10, "nulls": 1}
        return {**found, "periods": ["2024-01-01", "2024-03-01"], "quantiles": ["10", "20"]}


def plan(tasks: Sequence[DataFlowTask], target: Server, keys: Keys) -> list[DataFlowPlan]:
    return plan_with(tasks, target, KeyAnswers(key_bounds=keys, key_scan=keys.scan))


def plan_with(tasks: Sequence[DataFlowTask], target: Server, answers: KeyAnswers) -> list[DataFlowPlan]:
    binder = cast(TaskBinder, None)
    package = BoundPackage(Path("p.yaml"), "p", "hash", {}, {}, 2, 1_000_000_000, {}, (), list(tasks), binder)
    targets = {"warehouse": target}

    class Targets:
        def __getitem__(self, connection: Any) -> Server:
            return targets[connection.name]

        def all(self) -> list[Server]:
            return list(targets.values())

    prepared = [PreparedFlow(task, samples.files(1, 1)) for task in tasks]
    return plan_run(package, prepared, cast(OpenTargets, Targets()), keys=answers).flows


def test_keys_are_asked_for_only_where_they_are_needed() -> None:
    keys = Keys()
    plan([samples.task(load="single", partition=BY_KEY), samples.task(load="staged", target="append")], Server(), keys)
    plan([samples.task(load="staged", partition=BY_KEY)], Server(samples.STORING), keys)
    assert keys.specs == []
    plan([samples.task(load="staged", partition=BY_KEY)], Server(), keys)
    (spec,) = keys.specs
    assert spec == {
        "files": samples.files(1, 1).files,
        "layout": samples.ORDERS.to_core(),
        "column": "o_orderkey",
    }


def test_the_ends_of_files_are_rows_with_a_key(tmp_path: Path) -> None:
    """As the core itself finds them: a NULL is no key."""
    (tmp_path / "a.tbl").write_text("|a\n5|b\n|c\n7|d\n|e\n")
    status = (tmp_path / "a.tbl").stat()
    layout = samples.layout(k="int64", v="string")
    files = core.plan_slices(
        {"files": [str(tmp_path / "a.tbl")], "slice_bytes": status.st_size, "layout": layout.to_core()}
    )
    source = SourceSnapshot("rows", files["files"], files["slices"])
    facts = KeyAnswers().facts("t", KeyQuestion("k"), source, layout, 1)
    assert facts.files == [FileKeys("5", "7")]


def test_the_core_finds_the_periods_that_occur(tmp_path: Path) -> None:
    (tmp_path / "a.tbl").write_text("2024-03-31|a\n|b\n2023-12-01|c\nx|d\n2023-12-31|e\n")
    layout = samples.layout(day="date", v="string")
    files = core.plan_slices({"files": [str(tmp_path / "a.tbl")], "slice_bytes": 1000, "layout": layout.to_core()})
    source = SourceSnapshot("rows", files["files"], files["slices"])
    months = KeyQuestion("day", {"periods": {"unit": "month"}})
    assert KeyAnswers().facts("t", months, source, layout, 3).scan == KeyScan(4, 1, ("2023-12-01", "2024-03-01"))
    halves = KeyQuestion("day", {"quantiles": 2})
    assert KeyAnswers().facts("t", halves, source, layout, 1).scan == KeyScan(4, 1, (), ("2023-12-31",))


def test_a_key_that_cannot_be_one_is_refused_before_the_files_are_looked_at() -> None:
    keys = Keys()
    with pytest.raises(TargetError, match="cannot be partitioned"):
        plan([samples.task(load="staged", partition=RangePartition("o_comment"))], Server(), keys)
    assert keys.specs == []


def test_a_later_task_appends_partitions_to_those_of_an_earlier_one() -> None:
    first = samples.task(load="staged", partition=BY_KEY)
    second = samples.task(load="staged", partition=BY_KEY, target="append")
    target = Server(names=["customers"])
    plans = plan([first, second], target, Keys())
    assert [[part.table for part in planned.partitioning.partitions] for planned in plans if planned.partitioning] == [
        ["orders_1", "orders_2"],
        ["orders_3", "orders_4"],
    ]
    assert target.asked == 1


def test_two_tables_cannot_have_parts_of_the_same_name() -> None:
    first = samples.task(table="orders_1", load="single")
    second = samples.task(load="staged", partition=BY_KEY)
    with pytest.raises(TargetError, match="would have a name that is taken"):
        plan([first, second], Server(), Keys())


def test_names_are_asked_for_only_where_tables_are_hidden() -> None:
    target = Server(samples.STORING)
    plan([samples.task()], target, Keys())
    assert target.asked == 0


DATED = samples.layout(o_orderkey="int64!", o_orderdate="date!")
MONTHS = RangePartition("o_orderdate", Every("1", "month"))


def test_all_keys_are_read_where_bounds_depend_on_them() -> None:
    keys = Keys()
    months = samples.task(load="staged", partition=MONTHS, layout=DATED)
    (planned,) = plan([months], Server(), keys)
    assert [table.table for table in planned.staging] == ["orders_2024_01", "orders_2024_03"]
    assert keys.specs == [
        {
            "files": samples.files(1, 1).files,
            "slices": samples.files(1, 1).slices,
            "layout": DATED.to_core(),
            "column": "o_orderdate",
            "streams": 2,
            "want": {"periods": {"unit": "month"}},
        }
    ]
    (planned,) = plan([replace(months, destination=replace(months.destination, partition=QUANTILES))], Server(), keys)
    assert keys.specs[-1]["want"] == {"quantiles": 3}
    assert [table.table for table in planned.staging] == ["orders_1", "orders_2", "orders_3"]


QUANTILES = RangePartition("o_orderkey", Quantiles(3))


def test_a_resumed_run_asks_nothing_again() -> None:
    keys = Keys()
    tasks = [
        samples.task(load="staged", partition=clause, layout=DATED) for clause in (MONTHS, HashPartition("o_orderkey"))
    ]
    tasks = [replace(task, id=f"task_{number}") for number, task in enumerate(tasks)]
    for task in tasks:
        first = KeyAnswers(key_bounds=keys, key_scan=keys.scan)
        planned = plan_with([task], Server(), first)
        known = {name: {**answer, "cpus": answer["cpus"]} for name, answer in first.document.items()}
        asked = len(keys.specs)
        again = KeyAnswers(known, key_bounds=keys, key_scan=keys.scan)
        assert plan_with([task], Server(), again) == planned
        assert len(keys.specs) == asked
        assert again.document == first.document
    more = {"task_1": {"cpus": 7, "reply": None}}
    (seven,) = plan_with([tasks[1]], Server(), KeyAnswers(more, key_bounds=keys, key_scan=keys.scan))
    assert len(seven.staging) == 7


def test_tasks_may_load_different_partitions_anew() -> None:
    class Divided(Server):
        def catalog(self, schema: str | None, table: str) -> CatalogTable | None:
            columns = samples.table(("o_orderkey", "int64!"), ("o_orderdate", "date!"))
            parts = tuple(
                CatalogPartition(f"orders_{number}", RangeRule(str(number), str(number + 1))) for number in (1, 2)
            )
            return replace(columns, partitioning=CatalogPartitioning("range", ("o_orderkey",), parts))

    def reload(*names: str) -> DataFlowTask:
        return samples.task(load="staged", partition=BY_KEY, layout=DATED, partitions=names)

    keys = Keys()
    plans = plan([reload("orders_1"), reload("orders_2")], Divided(), keys)
    assert [[table.table for table in planned.staging[:-1]] for planned in plans] == [["orders_1"], ["orders_2"]]
    assert keys.specs == []
    for second in (reload("orders_2", "orders_1"), replace(reload("orders_1"), id="again")):
        with pytest.raises(TargetError, match="would delete the rows"):
            plan([reload("orders_1"), second], Divided(), keys)
