"""Packages that are built in Python: they are what the same YAML is, and wrong ones say so where that is useful."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace.api.tasks import COMMON_SETTINGS, Tasks
from headrace.model import TASK_KINDS, describe
from headrace.model.annotations import allowed_keys
from headrace.model.load import load_package
from headrace.model.yaml_reader import parse_document
from tests.docs.documents import ROOT
from tests.snapshots import assert_snapshot

EXAMPLES = ROOT / "docs" / "reference" / "examples"
_SECTIONS = {"parameters": "parameter", "connections": "connection", "layouts": "layout", "variables": "variable"}


def value_of(text: str) -> Any:
    return parse_document(text.encode(), Path("p.yaml"), "p.yaml").value


def rebuilt(root: Mapping[str, Any], folder: Path) -> headrace.Package:
    """The package of a document, made by calls of the builder alone."""
    plain = {key: value for key, value in root.items() if key not in (*_SECTIONS, "headrace", "package", "tasks", "on")}
    package = headrace.Package(root["package"], folder=folder, **plain)
    for section, method in _SECTIONS.items():
        for name, own in root.get(section, {}).items():
            getattr(package, method)(name, **own)
    add_tasks(package, root["tasks"])
    add_handlers(package, root)
    return package


def add_tasks(group: Tasks, tasks: Mapping[str, Any]) -> None:
    for name, task in tasks.items():
        kind = next(key for key in task if key in TASK_KINDS)
        own = {key: value for key, value in task[kind].items() if key != "tasks"}
        common = {key: value for key, value in task.items() if key not in (kind, "on")}
        method = getattr(group, "for_" if kind == "for" else kind)
        if kind == "set":
            added = method(name, own, **common)
        else:
            added = method(
                name, **{f"{key}_" if key in ("in", "as", "for", "while") else key: own[key] for key in own}, **common
            )
        if "tasks" in task[kind]:
            with added:
                add_tasks(added, task[kind]["tasks"])
        add_handlers(added, task)


def add_handlers(owner: Any, raw: Mapping[str, Any]) -> None:
    for event, own in raw.get("on", {}).items():
        add_tasks(owner.on(event, propagate=own.get("propagate", True)), own["tasks"])


def test_every_kind_has_an_example_and_a_method_with_its_sentence() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(TASK_KINDS)
    for kind in TASK_KINDS.values():
        method = getattr(Tasks, "for_" if kind.name == "for" else kind.name)
        assert (method.__doc__ or "").startswith(kind.sentence)


def test_no_setting_of_a_kind_has_the_name_of_a_common_one() -> None:
    for kind in TASK_KINDS.values():
        if kind.spec is not None:
            assert not set(allowed_keys(kind.spec)) & set(COMMON_SETTINGS)


@pytest.mark.parametrize("kind", TASK_KINDS)
def test_what_is_built_is_what_the_yaml_says(kind: str) -> None:
    path = EXAMPLES / f"{kind}.yaml"
    loaded = headrace.load(path)
    built = rebuilt(value_of(path.read_text(encoding="utf-8")), EXAMPLES)
    text = built.to_yaml()
    assert value_of(text) == value_of(path.read_text(encoding="utf-8"))
    assert text == loaded.to_yaml() == built.to_yaml()
    without = ("path", "content_hash")
    described = [
        {key: value for key, value in package.check().items() if key not in without} for package in (built, loaded)
    ]
    assert described[0] == described[1]
    command_line = describe(load_package(path))
    assert described[1] == {key: value for key, value in command_line.items() if key not in without}


@pytest.mark.parametrize("kind", TASK_KINDS)
def test_plans_are_the_same(kind: str, tmp_path: Path) -> None:
    for file in EXAMPLES.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "orders_1.csv").write_text("id,amount\n1,2.50\n")
    path = tmp_path / f"{kind}.yaml"
    built = rebuilt(value_of(path.read_text(encoding="utf-8")), tmp_path)
    plans = [package.plan() for package in (built, headrace.load(path))]
    for plan in plans:
        plan.document.pop("package_hash")  # that of the text, in which comments and blanks count
    assert plans[0] == plans[1]
    assert plans[0].tables == (("sales",) if kind == "data_flow" else ())


def test_the_yaml_of_a_package() -> None:
    package = headrace.Package("nightly", description="Loads what came in.", streams=2)
    package.parameter("day", type="date", default=date(2024, 1, 31))
    package.parameter("names", type="list", default=["a", "no", "010", "x y", 'say "so"', "tab\t"])
    package.parameter("share", type="decimal", default=0.1)
    package.parameter("since", type="timestamp", default=datetime(2024, 1, 31, 12, 30))
    package.variable("n", type="integer", value=0)
    package.connection("inbox", type="files", path=Path("in box"))
    package.connection("w", type="duckdb", path="w.duckdb")
    with package.sequence("all", timeout_seconds=1.5) as everything:
        make = everything.sql("make", connection="w", text="CREATE TABLE t (a INT);\n\n  -- done\nSELECT 1\n")
        wait = everything.process("wait", command=["sleep", "1"], retry={"times": 2}, after=make)
        with everything.foreach("each", in_=["a", "b"], item="name", after=[make, wait]) as each:
            each.set("count", n="n + 1")
    with everything.on("task_failed", propagate=False) as failed:
        failed.set("reset", {"n": "0"}, after=None)
    package.set("last", n="n * 2", after={everything: "completion"})
    assert_snapshot("built_package", package.to_yaml())


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "a\n",
        "a\nb",
        "a\nb\n",
        "a\n\n\n",
        "\na",
        " a\nb",
        "a\n b\n",
        "a\n  \nb",
        "a \nb",
        "#a\nb",
        "true",
        "~",
        "1",
        "1.0",
        "-",
        "- a",
        "a: b",
        "a #b",
        "\ta\nb",
        "a\tb\nc",
        "a\r\nb",
        "'",
        '"',
        "'\"\\",
        "é\nü",
        "\u2028\n",
        "a\x85\nb",
        "\ufeffa\nb",
        "---\n...\n",
        "<<",
        "on",
        "${a}",
        "{",
        "[",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%",
        "@",
        "`",
        "x" * 300,
        "NULL",
    ],
)
def test_every_text_reads_back(text: str) -> None:
    package = headrace.Package("p", description=text)
    package.sql("t", connection="w", text=text)
    package.process("q", command=["a", text])
    package.python("r", function="a:b", arguments={text: {"x": [text, {"y": text}]}})
    assert value_of(package.to_yaml()) == package._root


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        10**37,
        Decimal("0.10"),
        Decimal("1E+3"),
        Decimal("-0.0"),
        1e-7,
        1e20,
        True,
        None,
        [],
        {},
        [[]],
        [{}],
        [[1, [2]]],
    ],
)
def test_every_value_reads_back(value: object) -> None:
    package = headrace.Package("p")
    package.python("r", function="a:b", arguments={"x": value, "y": {"z": value}})
    assert value_of(package.to_yaml()) == package._root
    assert package._root["tasks"]["r"]["python"]["arguments"]["x"] == (
        Decimal(str(value)) if isinstance(value, float) else value
    )


@pytest.mark.parametrize("value", [float("nan"), Decimal("Infinity"), b"a", {1: 2}, {1}, object(), b"path"])
def test_what_no_package_can_hold(value: object) -> None:
    package = headrace.Package("p")
    with pytest.raises(TypeError, match=r"r\.python"):
        package.python("r", function="a:b", arguments={"x": value})
    assert package._root["tasks"] == {}


def test_wrong_calls_are_refused_where_they_are_made() -> None:
    package = headrace.Package("p")
    with pytest.raises(TypeError, match="Did you mean `sources`"):
        package.data_flow("t", source={})
    with pytest.raises(TypeError, match="no event `failed`"):
        package.on("failed")
    with pytest.raises(TypeError, match="no task of kind `copy`"):
        package.task("t", "copy")
    with pytest.raises(TypeError, match="Did you mean `streams`"):
        headrace.Package("p", stream=1)
    with pytest.raises(TypeError, match="add each one by itself"):
        headrace.Package("p", tasks={})
    package.set("t", {"n": "1"})
    with pytest.raises(ValueError, match="a task `t` already"):
        package.set("t", {"n": "1"})
    package.variable("n", type="integer")
    with pytest.raises(ValueError, match="`n` in `variables` already"):
        package.variable("n", type="integer")


def test_a_problem_names_the_line_of_to_yaml() -> None:
    package = headrace.Package("p")
    package.variable("n", type="integer")
    package.set("t", {"n": "nn + 1"})
    with pytest.raises(headrace.PackageError) as caught:
        package.check()
    assert_snapshot("problem_of_a_built_package", "\n".join([caught.value.render(), *caught.value.__notes__]))


def test_a_loaded_package_is_its_file_until_it_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("headrace: 1\npackage: p  # a comment\ntasks:\n  a: {file: {create: x}}\n", encoding="utf-8")
    package = headrace.load(path)
    assert package.path == path and package.folder == tmp_path
    package.file("b", create="y", after="a")
    assert repr(package.path) == "None"
    assert package.save(path) == path == package.path
    assert [task["task"] for task in headrace.load(path).check()["tasks"]] == ["a", "b"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.yaml"]


def test_a_file_that_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(headrace.HeadraceError, match="no package file"):
        headrace.load(tmp_path / "p.yaml")
    (tmp_path / "p.yaml").write_text("[1]")
    with pytest.raises(headrace.PackageError, match="not a package"):
        headrace.load(tmp_path / "p.yaml")
    (tmp_path / "p.yaml").write_text("headrace: 1\npackage: p\ntasks: null")
    with pytest.raises(headrace.PackageError):
        headrace.load(tmp_path / "p.yaml")


def test_the_import_is_fast_and_the_module_run_can_be_called() -> None:
    code = (
        "import sys, headrace; assert not [name for name in sys.modules if name.startswith('headrace.')]; "
        "assert not {'pydantic', 'duckdb', 'yaml'} & set(sys.modules); "
        "from headrace.run import execute; "
        "assert headrace.run.execute is execute and callable(headrace.run) and headrace.Package('p').name == 'p'; "
        "assert 'run' in dir(headrace) and 'Package' in dir(headrace); "
        "import headrace.run as module; assert module is headrace.run"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    name = "nothing"
    assert getattr(headrace, name, None) is None
