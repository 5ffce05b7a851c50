"""Instances that run queries for a flow: what they answer when something is wrong, and how they end."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import cast

import pytest

from headrace.errors import InternalError
from headrace.executors.sql_instances import _Instance, sql_instances
from headrace.model import DataType, EmbeddedQuery
from headrace.model.row_query import RowColumnType, described_rows
from headrace.planning import DataFlowPlan
from tests.patience import HANG_SECONDS

ROWS = described_rows(EmbeddedQuery("SELECT a + 1 AS b FROM t", ""), "t", [RowColumnType("a", DataType.parse("int32"))])


class BadWindow:
    """Rows that cannot be read."""

    def __init__(self) -> None:
        self.answer: tuple[str, str] | None = None

    def transform(self) -> int:
        return 0

    def rows(self, stream: object) -> None:
        raise AssertionError(stream)

    def failed(self, kind: str, text: str) -> None:
        self.answer = (kind, text)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise ValueError("no rows of secret")

    def __arrow_c_schema__(self) -> object:
        raise ValueError("no columns of secret")


class FakeFlow:
    """Gives windows, and then nothing until it is stopped."""

    def __init__(self, *windows: BadWindow) -> None:
        self._windows = list(windows)
        self._stopped = threading.Event()

    def next_window(self) -> BadWindow | None:
        if self._windows:
            return self._windows.pop()
        self._stopped.wait(HANG_SECONDS)
        return None

    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def cancel(self, reason: str) -> None:
        self._stopped.set()


def plan(streams: int = 1) -> DataFlowPlan:
    queries = {0: SimpleNamespace(rows=ROWS)}
    fake = SimpleNamespace(queries=queries, streams=streams, memory=SimpleNamespace(instance_bytes=16_000_000))
    return cast(DataFlowPlan, fake)


def test_what_is_wrong_with_a_window_is_no_fault_of_its_rows() -> None:
    window = BadWindow()
    flow = FakeFlow(window)
    with sql_instances(plan(), flow, lambda text: text.replace("secret", "***")):
        while window.answer is None:
            threading.Event().wait(0.01)
        flow.cancel("the test has ended")
    kind, text = window.answer
    assert (kind, "no columns of ***" in text) == ("other", True)


def test_an_instance_that_has_ended_can_be_interrupted() -> None:
    """Others may have to be, and whoever does it must not fail."""
    flow = FakeFlow(BadWindow())
    instance = _Instance(plan(), flow, lambda text: text)
    flow.cancel("enough")
    instance.run()
    instance.interrupt()


def test_a_plan_without_queries_needs_no_thread() -> None:
    before = threading.active_count()
    none = cast(DataFlowPlan, SimpleNamespace(queries={}))
    with sql_instances(none, FakeFlow()):
        assert threading.active_count() == before


def test_an_error_in_the_block_stops_the_flow() -> None:
    flow = FakeFlow()
    with pytest.raises(KeyError), sql_instances(plan(3), flow):
        raise KeyError
    assert flow.is_stopped()


def test_a_system_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    class Thread(threading.Thread):
        def start(self) -> None:
            if self.name == "queries 2":
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(threading, "Thread", Thread)
    flow = FakeFlow()
    with pytest.raises(InternalError, match="cannot start a thread for queries"), sql_instances(plan(3), flow):
        raise AssertionError
    assert flow.is_stopped()
