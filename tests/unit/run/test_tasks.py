"""The data flows of a package, in order, with what is switched off."""

from __future__ import annotations

from dataclasses import replace

from headrace.model import BoundTask, ForeachTask, Iteration
from headrace.run.tasks import data_flows, unique_name
from tests.unit.planning import samples


def test_order_and_when() -> None:
    flow = samples.task()
    inner = ForeachTask("f", "f", True, "x", [1, 2], [Iteration(1, [replace(flow, id="f[1]")]), Iteration(2, [])])
    off = ForeachTask("g", "g", False, "x", [1], [Iteration(1, [replace(flow, id="g[1]")])])
    tasks: list[BoundTask] = [replace(flow, id="a"), inner, off, replace(flow, id="b", when=False)]
    assert [(task.id, when) for task, when in data_flows(tasks)] == [
        ("a", True),
        ("f[1]", True),
        ("g[1]", False),
        ("b", False),
    ]


def test_unique_names() -> None:
    assert unique_name("t", set(), "_") == "t"
    assert unique_name("T", {"t", "t_2"}, "_") == "T_3"
