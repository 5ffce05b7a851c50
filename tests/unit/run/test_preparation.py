"""Planning a run: whose keys are asked for, and what one task leaves for the next."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.errors import TargetError
from headrace.model import BoundPackage, DataFlowTask, RangePartition
from headrace.planning import Capabilities, CatalogTable, DataFlowPlan
from headrace.run.preparation import OpenTargets, PreparedFlow, plan_run
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


def plan(tasks: Sequence[DataFlowTask], target: Server, keys: Keys) -> list[DataFlowPlan]:
    package = BoundPackage(Path("p.yaml"), "p", "hash", {}, {}, 2, 1_000_000_000, {}, list(tasks))
    targets = {"warehouse": target}

    class Targets:
        def __getitem__(self, connection: Any) -> Server:
            return targets[connection.name]

        def all(self) -> list[Server]:
            return list(targets.values())

    prepared = [PreparedFlow(task, samples.files(1, 1)) for task in tasks]
    return plan_run(package, prepared, cast(OpenTargets, Targets()), keys).flows


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
    assert [[table.table for table in planned.staging] for planned in plans] == [
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
