"""What a `switch` task asks of its target, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CancelledError, HeadraceError, TaskTimeoutError
from headrace.model.spec_switch import SwitchSpec
from headrace.planning import DefaultRule, ListRule, RangeRule
from headrace.run.cancellation import Cancellation
from headrace.run.leaves.base import LeafContext
from headrace.run.leaves.switch import SwitchLeaf
from headrace.targets import ExchangedPartition, ExchangedTable, Notes, PartitionExchange
from tests.snapshots import assert_snapshot


class FakeTarget:
    """Keeps what it was asked. `done`: what it replies, or raises."""

    def __init__(self, done: ExchangedPartition | HeadraceError) -> None:
        self.done = done
        self.asked: list[PartitionExchange] = []

    def switch_partition(
        self, run_id: str, exchange: PartitionExchange, notes: Notes, is_cancelled: Callable[[], bool]
    ) -> ExchangedPartition:
        self.asked.append(exchange)
        if isinstance(self.done, HeadraceError):
            raise self.done
        return self.done


class Context(LeafContext):
    """Of a task without a package around it."""

    @property
    def folder(self) -> Path:
        return Path()

    def connection(self, name: str) -> Any:
        return name


class Services:
    def __init__(self, target: FakeTarget) -> None:
        self._target = target

    def target(self, connection: object) -> Any:
        assert connection == "warehouse"
        return self._target


def context(target: FakeTarget, said: list[str], cancellation: Cancellation | None = None) -> LeafContext:
    members: dict[str, Any] = {
        "task": None,
        "instance": "month[1].switch",
        "run_id": "run",
        "package": None,
        "scope": None,
        "cancellation": cancellation or Cancellation(),
        "memory": None,
        "notice": lambda text: said.append(f"notice: {text}"),
        "warn": lambda text: said.append(f"warning: {text}"),
        "redact": str,
        "services": Services(target),
        "run_folder": Path(),
    }
    return Context(**members)


def spec(**members: Any) -> SwitchSpec:
    return SwitchSpec.model_validate({"connection": "warehouse", "table": "orders", "partition": "p", **members})


RULES = [
    ({"from": date(2024, 3, 1), "to": datetime(2024, 4, 1, 12)}, RangeRule("2024-03-01", "2024-04-01 12:00:00")),
    ({"from": Decimal("1E+2")}, RangeRule("100", None)),
    ({"to": 5}, RangeRule(None, "5")),
    ({"values": [True, None, "x"]}, ListRule(("true", None, "x"))),
    ({"values": "x"}, ListRule(("x",))),
    ({"default": True}, DefaultRule()),
    ("default", DefaultRule()),
]


@pytest.mark.parametrize(("keys", "rule"), RULES)
def test_keys_become_texts(keys: object, rule: object) -> None:
    target = FakeTarget(ExchangedPartition())
    SwitchLeaf().run(spec(**{"in": "mart.comes", "for": keys}), context(target, []))
    [asked] = target.asked
    assert asked == PartitionExchange(
        "month[1].switch", ExchangedTable(None, "orders"), "p", ExchangedTable("mart", "comes"), None, asked.rule
    )
    assert asked.rule == rule


def test_what_is_said() -> None:
    said: list[str] = []
    done = ExchangedPartition(True, ("index i",), 0.25, ("be careful",))
    result = SwitchLeaf().run(spec(**{"in": "comes"}), context(FakeTarget(done), said))
    assert said == [
        "notice: task month[1].switch: an earlier attempt of the run has exchanged p already",
        "notice: task month[1].switch: table comes was given index i",
        "warning: be careful",
    ]
    assert (result.outputs, result.details["made"], result.details["switch_seconds"]) == ({}, ["index i"], 0.25)


def test_a_time_out_while_it_waits() -> None:
    cancellation = Cancellation()

    class Slow(FakeTarget):
        def switch_partition(self, *given: Any) -> ExchangedPartition:
            cancellation.time_out(3)
            return super().switch_partition(*given)

    with pytest.raises(TaskTimeoutError):
        SwitchLeaf().run(spec(out="gone"), context(Slow(CancelledError("stopped")), [], cancellation))
    with pytest.raises(TaskTimeoutError):  # before it has asked
        SwitchLeaf().run(spec(out="gone"), context(FakeTarget(ExchangedPartition()), [], cancellation))


def test_what_a_plan_says() -> None:
    specs = [
        spec(out="gone"),
        spec(**{"in": "comes"}),
        spec(**{"in": "comes", "out": "gone"}),
        spec(**{"in": "comes", "for": {"from": "2024-03-01", "to": "2024-04-01"}}),
        spec(**{"in": "comes", "for": {"to": 5}}),
        spec(**{"in": "comes", "for": {"values": ["a", None]}}),
        spec(**{"in": "comes", "for": "default"}),
    ]
    assert_snapshot("switch_described", "\n".join(line for item in specs for line in SwitchLeaf().describe(item)))
