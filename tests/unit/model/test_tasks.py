"""The tree of tasks: what is known before a run, in which order, who may write what, and packages inside packages."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

import pytest

from headrace.errors import BindingError
from headrace.model import BoundPackage, Constraint, Rows, Task
from headrace.model.spec_leaves import SqlSpec
from headrace.model.task_order import in_order, orders, predecessors
from headrace.model.validation import UNRESOLVED
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message
from tests.unit.model.test_task_messages import HEAD, package


def tasks_of(bound: BoundPackage) -> dict[str, Task]:
    return {task.id: task for task in bound.all_tasks()}


def test_three_ways_to_say_after(tmp_path: Path) -> None:
    text = package(
        "a: {set: {}}",
        "b: {set: {}, after: a}",
        "c: {set: {}, after: [a, b]}",
        "d: {set: {}, join: any, after: {a: failure, "
        "b: {on: completion, when: ready, match: either, or_skipped: true}}}",
    )
    tasks = tasks_of(load(tmp_path, text))
    assert tasks["b"].constraints == (Constraint("a"),)
    assert tasks["c"].constraints == (Constraint("a"), Constraint("b"))
    assert tasks["d"].constraints == (
        Constraint("a", "failure"),
        Constraint("b", "completion", "ready", "either", or_skipped=True),
    )
    assert tasks["d"].join == "any"


def test_settings_of_every_task(tmp_path: Path) -> None:
    text = package(
        'a: {set: {}, disabled: true, retry: {times: "${limit}", wait_seconds: 0.5, maximum_wait_seconds: 3}, '
        "timeout_seconds: 1.5, description: why}",
        "s: {sequence: {tasks: {x: {set: {}}}}, maximum_errors: 2, variables: {mine: {type: date}}, "
        "on: {error: {propagate: false, tasks: {told: {set: {}}}}}}",
        head=HEAD + "on: {warning: {tasks: {noted: {set: {}}}}}\n",
    )
    bound = load(tmp_path, text)
    tasks = tasks_of(bound)
    first = tasks["a"]
    assert (first.is_disabled, first.timeout_seconds, first.description) == (True, 1.5, "why")
    assert (first.retry.times, [first.retry.wait(number) for number in (1, 2, 3, 4)]) == (5, [0.5, 1.0, 2.0, 3.0])
    assert list(tasks) == ["a", "s", "s.x", "s.on_error.told", "on_warning.noted"]
    assert (tasks["s"].maximum_errors, [item.name for item in tasks["s"].variables]) == (2, ["mine"])
    assert not tasks["s"].handlers["error"].propagate and bound.handlers["warning"].propagate


def test_in_order_each_task_is_behind_what_it_follows(tmp_path: Path) -> None:
    text = package(
        "d: {set: {}, after: [b, c]}",
        "b: {set: {}, after: a}",
        "x: {set: {}}",
        "a: {set: {}}",
        "c: {set: {}, after: a}",
    )
    tasks = load(tmp_path, text).tasks
    assert [task.name for task in in_order(tasks)] == ["a", "b", "c", "d", "x"]
    assert predecessors(tasks)["d"] == {"a", "b", "c"}
    is_ordered = orders(tasks)
    assert is_ordered("a", "d") and is_ordered("d", "a") and not is_ordered("b", "c") and not is_ordered("x", "d")


WRITERS = [
    # Which of several tasks come first does not matter to the variable, or is known.
    ("a: {set: {count: 1}}", "b: {set: {count: 2}, after: a}"),
    ("a: {set: {count: 1}}", "b: {set: {ready: count = 1}, after: {a: completion}}"),
    ("a: {set: {}}", "b: {set: {count: 1}, after: {a: success}}", "c: {set: {count: 2}, after: {a: failure}}"),
    (
        "a: {set: {}}",
        "b: {set: {count: 1}, after: {a: success}}",
        "c: {set: {}, after: {a: failure}}",
        "d: {set: {count: 2}, after: c}",
    ),
    (
        "a: {set: {count: 1}}",
        "s: {after: a, sequence: {tasks: {x: {set: {text: \"'n' || count\"}}, y: {set: {ready: count > 1}}}}}",
    ),
    # Names of their own.
    (
        "a: {variables: {mine: {type: integer}}, sequence: {tasks: {x: {set: {mine: 1}}}}}",
        "b: {variables: {mine: {type: integer}}, sequence: {tasks: {x: {set: {mine: 2}}}}}",
    ),
]


@pytest.mark.parametrize("tasks", WRITERS, ids=range(len(WRITERS)))
def test_writers_whose_order_is_known(tmp_path: Path, tasks: tuple[str, ...]) -> None:
    load(tmp_path, package(*tasks))


def test_values_are_known_or_wait(tmp_path: Path) -> None:
    text = package(
        'static: {sql: {connection: "${place}", text: SELECT 1}}',
        'dynamic: {sql: {connection: "${text}", text: SELECT 1}}',
        head=HEAD.replace("parameters:\n", "parameters:\n  place: {type: string, default: server}\n"),
    )
    bound = load(tmp_path, text)
    tasks = tasks_of(bound)
    assert bound.used == ("server",)
    scope = bound.scope.with_names({"text": "warehouse"}, {})
    settings = bound.binder.task(tasks["dynamic"], scope, "dynamic")
    assert isinstance(settings, SqlSpec) and settings.connection == "warehouse"
    with pytest.raises(BindingError) as raised:
        bound.binder.task(tasks["dynamic"], bound.scope.with_names({"text": "warehosue"}, {}), "dynamic")
    assert_snapshot("task_bound_late", raised.value.render().replace(f"{tmp_path}/", ""))


def test_flows_of_loops_without_a_known_list_wait(tmp_path: Path) -> None:
    flow = (
        "data_flow: {sources: {rows: {connection: inbox, files: '*', layout: one}}, "
        "destinations: {out: {input: rows, connection: warehouse, table: t, target: append}}}"
    )
    text = package(
        f"known: {{foreach: {{item: name, in: '${{names}}', tasks: {{load: {{{flow}}}}}}}}}",
        f"files: {{foreach: {{item: f, files: {{connection: inbox, pattern: x}}, tasks: {{load: {{{flow}}}}}}}}}",
        f"again: {{for: {{while: ready, tasks: {{load: {{{flow}}}}}}}}}",
        f"off: {{when: false, sequence: {{tasks: {{load: {{{flow}}}}}}}}}",
        f"maybe: {{when: ready, {flow}}}",
    )
    bound = load(tmp_path, text)
    assert [(item.id, item.when) for item in bound.flows] == [
        ("known[a].load", True),
        ("known[b].load", True),
        ("off.load", False),
    ]


def test_first_values_of_variables(tmp_path: Path) -> None:
    more = """\
  rate: {type: decimal, value: 2}
  last: {type: date, value: "${day}"}
  more: {type: list, items: integer, expr: "[\\"limit\\"]"}
"""
    bound = load(tmp_path, package("a: {set: {}}", head=HEAD + more))
    values = {item.name: bound.binder.initial(item, bound.scope) for item in bound.variables}
    assert values["rate"] == Decimal(2) and isinstance(values["rate"], Decimal)
    assert (str(values["last"]), values["more"], values["ready"]) == ("2024-01-31", [5], None)


TURNS = [
    ("item: d, range: {from: 2024-01-01, to: '${day}'}", "year(d) = 2024"),
    ("item: n, range: {from: 1, to: '${limit}', step: 2}", "n % 2 = 1"),
    ("rows: found, as: {n: integer, t: string}", "n > 1 AND t LIKE 'x'"),
    ("item: f, files: {connection: inbox, pattern: '*'}", "len(f) > 3"),
    ("item: x, in: {expr: '[upper(n) for n in names]'}", "x = 'A'"),
]


@pytest.mark.parametrize(("loop", "condition"), TURNS)
def test_a_turn_has_its_item_or_its_columns(tmp_path: Path, loop: str, condition: str) -> None:
    load(tmp_path, package(f'a: {{foreach: {{{loop}, tasks: {{x: {{set: {{}}, when: "{condition}"}}}}}}}}'))
    wrong = message(tmp_path, package(f'a: {{foreach: {{{loop}, tasks: {{x: {{set: {{}}, when: "other = 1"}}}}}}}}'))
    assert "other" in wrong


# Packages inside packages -------------------------------------------------------------------------------------

CHILD = """\
headrace: 1
package: child
parameters:
  day: {type: date, required: true}
  size: {type: integer, default: 1}
connections:
  inbox: {type: files, path: data}
  target: {type: duckdb, path: child.duckdb}
layouts:
  one: {delimiter: ";", columns: [{name: id, type: int32}]}
variables:
  rows: {type: integer}
tasks:
  load:
    data_flow:
      sources: {rows: {connection: inbox, files: "${day}.csv", layout: one}}
      destinations: {out: {input: rows, connection: target, table: t, target: replace}}
"""


def with_child(folder: Path, child: str = CHILD) -> None:
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "sub" / "child.yaml").write_text(child)


def test_a_child_is_known_with_what_is_known_of_its_values(tmp_path: Path) -> None:
    with_child(tmp_path)
    text = package(
        'c: {package: {file: sub/child.yaml, parameters: {day: "${day}", size: {expr: count + 1}}, '
        "connections: {target: server}, results: {count: rows}}}"
    )
    bound = load(tmp_path, text)
    known = bound.children["c"].known
    assert known.path == tmp_path / "sub" / "child.yaml"
    assert str(known.parameters["day"]) == "2024-01-31" and known.parameters["size"] is UNRESOLVED
    (flow,) = known.flows
    assert flow.destination.connection == bound.connections["server"]
    whole = bound.children["c"].bind({"day": "2024-02-01", "size": 3}, {"target": bound.connections["warehouse"]})
    assert whole.parameters["size"] == 3 and whole.flows[0].destination.connection.type == "duckdb"


def test_the_hash_covers_packages_inside(tmp_path: Path) -> None:
    with_child(tmp_path)
    text = package('c: {package: {file: sub/child.yaml, parameters: {day: "${day}"}}}')
    first = load(tmp_path, text).content_hash
    with_child(tmp_path, CHILD + "# comment\n")
    assert load(tmp_path, text).content_hash != first


CALL = "c: {{package: {{file: sub/child.yaml, {0}}}}}"
CHILD_CASES = {
    "unknown_parameter": (CALL.format("parameters: {day: 2024-01-01, siez: 1}"), CHILD),
    "missing_parameter": (CALL.format("parameters: {size: 1}"), CHILD),
    "parameter_type": (CALL.format("parameters: {day: 2024-01-01, size: many}"), CHILD),
    "parameter_of_an_expression": (CALL.format("parameters: {day: 2024-01-01, size: {expr: cuont}}"), CHILD),
    "unknown_connection": (CALL.format("parameters: {day: 2024-01-01}, connections: {traget: server}"), CHILD),
    "unknown_own_connection": (CALL.format("parameters: {day: 2024-01-01}, connections: {target: sevrer}"), CHILD),
    "connection_of_another_type": (CALL.format("parameters: {day: 2024-01-01}, connections: {target: inbox}"), CHILD),
    "unknown_result": (CALL.format("parameters: {day: 2024-01-01}, results: {count: rwos}"), CHILD),
    "result_into_nothing": (CALL.format("parameters: {day: 2024-01-01}, results: {cuont: rows}"), CHILD),
    "problems_of_its_own": (
        CALL.format("parameters: {day: 2024-01-01}"),
        CHILD.replace("layout: one", "layout: tow").replace("target: replace", "target: replce"),
    ),
    "no_package": (CALL.format("parameters: {}"), "hello\n"),
    "no_yaml": (CALL.format("parameters: {}"), "a: [\n"),
    "missing_file": ("c: {package: {file: sub/chlid.yaml}}", CHILD),
    "a_folder": ("c: {package: {file: sub}}", CHILD),
    "file_of_a_variable": ('c: {package: {file: "${text}"}}', CHILD),
    "itself": ("c: {package: {file: package.yaml}}", CHILD),
    "itself_further_down": (
        CALL.format("parameters: {day: 2024-01-01}"),
        CHILD[: CHILD.index("tasks:")] + "tasks: {back: {package: {file: ../package.yaml}}}\n",
    ),
}


@pytest.mark.parametrize("name", CHILD_CASES)
def test_messages_about_packages_inside(name: str, tmp_path: Path) -> None:
    task, child = CHILD_CASES[name]
    with_child(tmp_path, child)
    assert_snapshot(f"child_{name}", message(tmp_path, package(task)))


def test_a_package_that_is_itself_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(tmp_path)
    assert "cannot be a part of itself" in message(tmp_path, package("c: {package: {file: again/package.yaml}}"))


# Size ---------------------------------------------------------------------------------------------------------


def test_a_thousand_tasks_load_in_seconds(tmp_path: Path) -> None:
    """Far more than it takes: a check whose time grows with the square would need minutes."""
    lines = ["t0: {set: {count: 0}}"]
    lines += [f"t{n}: {{set: {{count: count + 1}}, after: t{n - 1}, when: count >= 0}}" for n in range(1, 1000)]
    started = time.process_time()
    bound = load(tmp_path, package(*lines))
    assert len(list(bound.all_tasks())) == 1000
    assert time.process_time() - started < 20


def test_rows_are_no_value_of_a_text(tmp_path: Path) -> None:
    """But arguments of functions take them."""
    load(tmp_path, package('a: {python: {function: "m:f", arguments: {rows: "${found}"}}}'))
    assert Rows((), ()) == Rows((), ())
