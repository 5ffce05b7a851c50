"""The local executor: who stops whom, and which error is reported."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from headrace.errors import AccountsError, CancelledError, RejectLimitError, SourceError, TargetError
from headrace.executors import FlowOutcome, LocalExecutor, local
from headrace.planning import DataFlowPlan
from headrace.targets import Flow, LoadTimes, Settle
from headrace.targets.null.target import NullTarget
from tests.patience import HANG_SECONDS
from tests.unit.executors.fake_flow import SLICE_ROWS, FakeFlow, plan


class Recorder(NullTarget):
    """A target that takes `rows` rows, or fails before or after it looked at the flow."""

    def __init__(self, rows: int | None = None, error: Exception | None = None, fail_first: bool = False) -> None:
        self.rows = rows
        self.error = error
        self.fail_first = fail_first
        self.committed = False

    def load(self, run_id: str, plan: DataFlowPlan, flow: Flow, settle: Settle) -> LoadTimes:
        if self.error is not None and self.fail_first:
            raise self.error
        flow.start()
        flow.arrow_stream()
        if self.error is not None:
            raise self.error
        settle(self.rows)
        self.committed = True
        return LoadTimes(0.0, 0.0, 0.0, self.rows or 0)


def run(target: Recorder, behaviour: str = "ok", cancel_after: float | None = None) -> tuple[FlowOutcome, FakeFlow]:
    flows: list[FakeFlow] = []

    def create(spec: dict[str, Any]) -> FakeFlow:
        flows.append(FakeFlow(spec, behaviour))
        return flows[0]

    cancel = threading.Event()
    if cancel_after is not None:
        threading.Timer(cancel_after, cancel.set).start()
    executor = LocalExecutor(create, poll_seconds=0.01)
    outcome = executor.run("run", plan(), target, "/rejects", lambda snapshot: None, cancel)
    return outcome, flows[0]


def test_success() -> None:
    target = Recorder(rows=4 * SLICE_ROWS)
    outcome, flow = run(target)
    assert (outcome.status, outcome.error, target.committed) == ("success", None, True)
    assert flow.cancelled_for is None
    assert outcome.result is not None


def test_imbalance_fails_before_the_commit() -> None:
    target = Recorder(rows=4 * SLICE_ROWS - 1)
    outcome, _ = run(target)
    assert isinstance(outcome.error, AccountsError)
    assert (outcome.status, target.committed) == ("failed", False)


def test_error_of_the_stream_wins_over_what_the_target_says_of_it() -> None:
    outcome, _ = run(Recorder(error=TargetError("reading the stream failed")), "break")
    assert isinstance(outcome.error, SourceError)
    assert outcome.error.at == {"file": "x.tbl"}


def test_flow_that_fails_at_once() -> None:
    outcome, _ = run(Recorder(), "fail_at_start")
    assert isinstance(outcome.error, RejectLimitError)


@pytest.mark.parametrize("fail_first", [True, False])
def test_error_of_the_target_stops_the_streams(fail_first: bool) -> None:
    target = Recorder(error=TargetError("no space left"), fail_first=fail_first)
    outcome, flow = run(target, "never_ends")
    assert outcome.error is target.error
    assert flow.cancelled_for == "the destination stopped"
    assert outcome.status == "failed"
    # A target that fails before it is ready for rows has started no stream, and there is nothing to wait for.
    assert (flow.started, outcome.result is None) == (not fail_first, fail_first)


def test_cancel_while_the_target_waits_for_rows() -> None:
    started = time.monotonic()
    outcome, flow = run(Recorder(), "wait", cancel_after=0.05)
    assert isinstance(outcome.error, CancelledError)
    assert outcome.status == "cancelled"
    assert flow.cancelled_for == "cancelled by the user"
    assert time.monotonic() - started < HANG_SECONDS


def test_cancel_while_the_streams_go_on() -> None:
    outcome, _ = run(Recorder(), "never_ends", cancel_after=0.05)
    assert outcome.status == "cancelled"


def test_cancel_after_the_commit_is_too_late() -> None:
    target = Recorder(rows=4 * SLICE_ROWS)
    outcome, _ = run(target, cancel_after=0.0)
    assert outcome.status in ("success", "cancelled")
    assert target.committed == (outcome.status == "success")


def test_flow_that_cannot_be_created() -> None:
    def create(spec: dict[str, Any]) -> FakeFlow:
        raise SourceError("no such file")

    executor = LocalExecutor(create, poll_seconds=0.01)
    outcome = executor.run("run", plan(), Recorder(), "/rejects", lambda snapshot: None, threading.Event())
    assert isinstance(outcome.error, SourceError)
    assert outcome.result is None


def test_the_sink_is_that_of_the_target() -> None:
    outcome, flow = run(Recorder(rows=4 * SLICE_ROWS))
    assert outcome.status == "success"
    assert flow.spec["sink"] == {"kind": "null"}


def test_a_target_that_cannot_say_its_sink_fails_the_task() -> None:
    class Unready(Recorder):
        def sink_spec(self, run_id: str, plan: DataFlowPlan) -> dict[str, Any]:
            raise TargetError("the table was changed")

    executor = LocalExecutor(lambda spec: FakeFlow(spec), poll_seconds=0.01)
    outcome = executor.run("run", plan(), Unready(), "/rejects", lambda snapshot: None, threading.Event())
    assert isinstance(outcome.error, TargetError)
    assert outcome.result is None


def test_no_thread_is_left() -> None:
    before = threading.active_count()
    run(Recorder(rows=4 * SLICE_ROWS))
    run(Recorder(error=TargetError("x")), "never_ends")
    assert threading.active_count() == before


def test_a_load_that_cannot_be_started_ends_the_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(local._Load, "start", refuse)
    outcomes: list[FlowOutcome] = []
    runner = threading.Thread(target=lambda: outcomes.append(run(Recorder(), "wait")[0]), daemon=True)
    runner.start()
    runner.join(HANG_SECONDS)
    assert not runner.is_alive()
    assert (outcomes[0].status, str(outcomes[0].error)) == ("failed", "can't start new thread")


def watched(target: Recorder, progress: Callable[[dict[str, Any]], None], cancel: threading.Event) -> FlowOutcome:
    """A load of which `progress` is told when it has ended."""
    executor = LocalExecutor(lambda spec: FakeFlow(spec), poll_seconds=5)
    return executor.run("run", plan(), target, "/rejects", progress, cancel)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_watching_that_fails_behind_the_commit_changes_nothing(error: BaseException) -> None:
    def fail(snapshot: dict[str, Any]) -> None:
        raise error

    target = Recorder(rows=4 * SLICE_ROWS)
    cancel = threading.Event()
    outcome = watched(target, fail, cancel)
    assert (outcome.status, outcome.error, target.committed) == ("success", None, True)
    if isinstance(error, ValueError):
        assert outcome.warnings == ("watching the load failed: ValueError('no')",)
    else:
        assert cancel.is_set()  # the next task is not begun


def test_progress_is_told_and_ends_with_the_last_numbers() -> None:
    seen: list[dict[str, Any]] = []
    executor = LocalExecutor(lambda spec: FakeFlow(spec), poll_seconds=0.01)
    target = Recorder(rows=4 * SLICE_ROWS)
    executor.run("run", plan(), target, "/rejects", seen.append, threading.Event())
    assert seen[-1] == {"bytes_read": 1, "rows_read": 2, "rows_rejected": 0}
