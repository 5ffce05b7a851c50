"""Who of a container may start: every word of `after`, and random graphs against a plain second implementation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ExpressionFailedError, HeadraceError, SqlError
from headrace.model import Constraint, Task
from headrace.run.control.group import End, Group, Status

BROKEN = SqlError("broken")


def task(name: str, *constraints: Constraint, join: Any = "all") -> Task:
    return Task(name, name, "sql", ("tasks", name), {}, constraints=constraints, join=join)


def run(
    tasks: Sequence[Task],
    ends: Mapping[str, Status],
    maximum_errors: int = 0,
    ask: Callable[[Task, Constraint], bool] = lambda task, constraint: bool(constraint.when),
    pick: Callable[[int], int] = lambda count: 0,
) -> tuple[dict[str, str], Group]:
    """All tasks, one at a time, each with the end that it is given; success without one. `pick`: who ends next."""
    group = Group(tasks, maximum_errors, ask)
    running: list[Task] = []
    while True:
        while group.ready:
            ready = group.ready.popleft()
            if group.may_start(ready):
                running.append(ready)
            else:
                group.stop(ready)
        group.decided.clear()
        if running:
            ended = running.pop(pick(len(running)))
            status = ends.get(ended.name, "success")
            group.end(ended, End(status, BROKEN if status == "failed" else None, failures=int(status == "failed")))
        elif group.is_stopped and group.has_waiting:
            group.give_up("skipped", "other tasks have failed")
        elif not group.ready:
            return {name: end.status for name, end in group.ends.items()}, group


MET = [
    # on, how the other has ended, whether the task runs
    ("success", "success", True),
    ("success", "failed", False),
    ("success", "skipped", False),
    ("success", "passed", True),
    ("success", "cancelled", False),
    ("failure", "success", False),
    ("failure", "failed", True),
    ("failure", "skipped", False),
    ("failure", "passed", False),
    ("completion", "success", True),
    ("completion", "failed", True),
    ("completion", "skipped", False),
    ("completion", "passed", True),
    ("completion", "cancelled", False),
]


@pytest.mark.parametrize(("on", "status", "runs"), MET)
def test_outcomes(on: Any, status: Status, runs: bool) -> None:
    ends, _ = run([task("a"), task("b", Constraint("a", on=on))], {"a": status}, maximum_errors=5)
    assert ends["b"] == ("success" if runs else "skipped")


@pytest.mark.parametrize("on", ["success", "failure", "completion"])
def test_or_skipped(on: Any) -> None:
    ends, _ = run([task("a"), task("b", Constraint("a", on=on, or_skipped=True))], {"a": "skipped"})
    assert ends["b"] == "success"


@pytest.mark.parametrize(
    ("match", "on", "when", "runs"),
    [
        ("both", "success", True, True),
        ("both", "success", False, False),
        ("both", "failure", True, False),
        ("either", "success", False, True),
        ("either", "failure", True, True),
        ("either", "failure", False, False),
    ],
)
def test_outcome_and_expression(match: Any, on: Any, *, when: bool, runs: bool) -> None:
    ends, _ = run([task("a"), task("b", Constraint("a", on=on, when=when, match=match))], {})
    assert ends["b"] == ("success" if runs else "skipped")


def test_an_expression_is_asked_only_if_it_matters() -> None:
    asked: list[str] = []

    def ask(task: Task, constraint: Constraint) -> bool:
        asked.append(task.name)
        return True

    tasks = [
        task("a"),
        task("both", Constraint("a", on="failure")),
        task("either", Constraint("a", on="failure", match="either")),
    ]
    run(tasks, {}, ask=ask)
    assert asked == ["either"]


def test_an_expression_that_fails_is_a_failure_of_its_task() -> None:
    def ask(task: Task, constraint: Constraint) -> bool:
        raise ExpressionFailedError("cannot be evaluated")

    tasks = [
        task("a"),
        task("b", Constraint("a")),
        task("c", Constraint("b")),
        task("d", Constraint("b", on="failure")),
    ]
    ends, group = run(tasks[:3], {}, ask=ask)
    assert ends == {"a": "success", "b": "failed", "c": "skipped"}
    assert group.errors == group.failures == 1
    assert group.first_error is not None and group.first_error.what == "cannot be evaluated"


def test_any_starts_once_with_the_first_that_is_met() -> None:
    tasks = [task("a"), task("b"), task("c", Constraint("a"), Constraint("b"), join="any")]
    group = Group(tasks, 0, lambda task, constraint: True)
    group.ready.clear()
    group.end(tasks[0], End("success"))
    assert [ready.name for ready in group.ready] == ["c"]
    group.ready.clear()
    group.end(tasks[1], End("success"))
    assert not group.ready


def test_any_waits_for_the_others_if_the_first_is_not_met() -> None:
    tasks = [task("a"), task("b"), task("c", Constraint("a", on="failure"), Constraint("b"), join="any")]
    assert run(tasks, {})[0]["c"] == "success"
    assert run(tasks, {"b": "skipped"})[0]["c"] == "skipped"


def test_all_is_lost_with_the_first_that_is_not_met() -> None:
    """It does not wait for the others, which may take long."""
    tasks = [task("a"), task("b"), task("c", Constraint("a", on="failure"), Constraint("b"))]
    group = Group(tasks, 0, lambda task, constraint: True)
    group.end(tasks[0], End("success"))
    assert group.ends["c"].status == "skipped"
    assert group.ends["c"].reason == "`a` has ended otherwise"


def test_skipping_goes_on() -> None:
    tasks = [task("a"), *(task(f"b{n}", Constraint(f"b{n - 1}" if n else "a")) for n in range(5))]
    ends, _ = run(tasks, {"a": "skipped"})
    assert set(ends.values()) == {"skipped"}


def test_nothing_starts_behind_the_first_failure_but_recovery() -> None:
    tasks = [
        task("a"),
        task("repair", Constraint("a", on="failure")),
        task("report", Constraint("repair")),
        task("whatever", Constraint("a", on="completion")),
        task("b"),
        task("c", Constraint("b")),
    ]
    ends, group = run(tasks, {"a": "failed"})
    assert ends == {
        "a": "failed",
        "b": "success",
        "c": "skipped",
        "repair": "success",
        "report": "success",
        "whatever": "success",
    }
    assert group.ends["c"].reason in ("`a` has failed", "other tasks have failed")
    assert group.first_error is BROKEN


def test_maximum_errors() -> None:
    tasks = [task("a"), task("b"), task("c", Constraint("a", on="completion")), task("d", Constraint("c"))]
    ends, group = run(tasks, {"a": "failed"}, maximum_errors=1)
    assert not group.is_stopped and ends["d"] == "success"
    ends, group = run(tasks, {"a": "failed", "b": "failed"}, maximum_errors=1)
    assert group.is_stopped and (group.errors, group.failures) == (2, 2)


def test_what_is_ready_when_others_fail_does_not_start() -> None:
    tasks = [task("a"), task("b"), task("c", Constraint("b", on="completion"))]
    group = Group(tasks, 0, lambda task, constraint: True)
    first, second = group.ready.popleft(), group.ready.popleft()
    group.end(first, End("failed", BROKEN, failures=1))
    assert not group.may_start(second)
    group.stop(second)
    assert [(ended.name, end.status, end.reason) for ended, end in group.decided] == [
        ("b", "skipped", "`a` has failed"),
        ("c", "skipped", "`b` was skipped"),
    ]


def test_a_task_whose_handlers_are_still_to_run_keeps_others_from_starting() -> None:
    group = Group([task("a"), task("b")], 0, lambda task, constraint: True)
    first, other = group.ready
    group.failing(first)
    assert (group.is_stopped, group.may_start(other), group.errors) == (True, False, 0)
    group.end(first, End("failed", BROKEN, failures=1))
    assert (group.is_stopped, group.errors) == (True, 1)


def test_failures_inside_a_container_that_ended_well_are_told_and_no_error() -> None:
    group = Group([task("a")], 0, lambda task, constraint: True)
    group.end(group.ready.popleft(), End("success", failures=3))
    assert (group.failures, group.errors, group.is_stopped) == (3, 0, False)


# --- against a plain second implementation ----------------------------------------------------------------------------


def expected(tasks: Sequence[Task], ends: Mapping[str, Status]) -> dict[str, str]:
    """Ends without a bound of errors: by definition, task after task in their order, which no constraint is against."""
    known: dict[str, str] = {}
    for item in tasks:
        met = [_met(constraint, known[constraint.name]) for constraint in item.constraints]
        runs = not met or (any(met) if item.join == "any" else all(met))
        known[item.name] = ends.get(item.name, "success") if runs else "skipped"
    return known


def _met(constraint: Constraint, how: str) -> bool:
    if how == "cancelled" or (how == "skipped" and not constraint.or_skipped):
        return False
    has = {
        "success": constraint.on in ("success", "completion"),
        "passed": constraint.on in ("success", "completion"),
        "failed": constraint.on in ("failure", "completion"),
        "skipped": True,
    }[how]
    return has or bool(constraint.when) if constraint.match == "either" else has and bool(constraint.when)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Task], dict[str, Status]]:
    names = [f"t{number}" for number in range(draw(st.integers(1, 9)))]
    tasks = []
    for number, name in enumerate(names):
        before = draw(st.lists(st.sampled_from(names[:number]), max_size=3, unique=True)) if number else []
        constraints = [
            Constraint(
                other,
                draw(st.sampled_from(["success", "failure", "completion"])),
                draw(st.booleans()),
                draw(st.sampled_from(["both", "either"])),
                draw(st.booleans()),
            )
            for other in before
        ]
        tasks.append(task(name, *constraints, join=draw(st.sampled_from(["all", "any"]))))
    kinds: list[Status] = ["success", "failed", "skipped", "passed"]
    statuses = st.sampled_from(kinds)
    ends: dict[str, Status] = {name: draw(statuses) for name in names}
    return tasks, ends


@given(graphs(), st.integers())
@settings(max_examples=400, deadline=None)
def test_random_graphs(graph: tuple[list[Task], dict[str, Status]], seed: int) -> None:
    """Whatever the order in which tasks end, and in which they are written."""
    tasks, ends = graph
    chance = random.Random(seed)
    shuffled = chance.sample(tasks, len(tasks))
    found, group = run(shuffled, ends, len(tasks), pick=chance.randrange)
    assert found == expected(tasks, ends)
    assert group.failures == sum(status == "failed" for status in found.values())
    assert not group.has_waiting


@given(graphs(), st.integers(), st.integers(0, 3))
@settings(max_examples=400, deadline=None)
def test_random_graphs_that_stop(graph: tuple[list[Task], dict[str, Status]], seed: int, maximum_errors: int) -> None:
    """Every task ends once; behind too many failures runs nothing that does not follow one."""
    tasks, ends = graph
    chance = random.Random(seed)
    found, group = run(chance.sample(tasks, len(tasks)), ends, maximum_errors, pick=chance.randrange)
    assert set(found) == {item.name for item in tasks}
    assert group.is_stopped == (sum(status == "failed" for status in found.values()) > maximum_errors)
    if not group.is_stopped:
        assert found == expected(tasks, ends)
    error: HeadraceError | None = group.first_error
    assert (error is BROKEN) == ("failed" in found.values())
