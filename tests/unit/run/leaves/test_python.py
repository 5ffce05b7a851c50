"""Functions of users: where they are found, what they get and give, and how they fail."""

from __future__ import annotations

import re
import textwrap
import threading
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import CancelledError, HeadraceError, ProcessError, PythonTaskError
from headrace.model import Rows
from headrace.model.spec_leaves import PythonSpec
from headrace.run.leaves.base import LeafResult
from headrace.run.leaves.python import PythonLeaf
from tests.snapshots import assert_snapshot
from tests.unit.run.leaves.contexts import Scene

CODE = """
import os
import sys
import time

from helpers import double


class Trouble(Exception):
    pass


def same(value):
    return value


def types(**arguments):
    return {name: type(value).__name__ for name, value in arguments.items()}


def doubled(number, times=1):
    return double(number) * times


def noisy():
    print("printed")
    print("{\\"value\\":1}")
    os.write(1, b"written\\n")
    os.system("echo by a program >&2")
    sys.stderr.write("zw\\u00f6lf\\n")
    return "result"


def rows(count):
    return [{"id": number, "text": str(number)} for number in range(count)]


def result(kind):
    return {"bytes": b"", "nan": [1, float("nan")], "set": {"a": {1}}, "self": sys, "much": "x" * 17_000_000}[kind]


def fails():
    deeper()


def deeper():
    raise Trouble("it is\\nhunter22")


def fails_below():
    double(None)


def leaves():
    sys.exit(3)


def dies():
    sys.stderr.write("about to die\\n")
    sys.stderr.flush()
    os._exit(7)


def crashes():
    os.kill(os.getpid(), 11)


def reads():
    return sys.stdin.read()


def where():
    return [os.getcwd(), sys.path[0], os.environ["HEADRACE_TASK"]]


def sleeps(path):
    open(path, "w").close()
    time.sleep(60)


number = 5
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path, secrets=frozenset({"hunter22"}))
    (tmp_path / "code.py").touch()
    (tmp_path / "work.py").write_text(CODE)
    (tmp_path / "helpers.py").write_text("def double(number):\n    return number * 2\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "script.py").write_text(
        "import beside\nimport helpers\ndef run():\n    return beside.NAME + str(helpers.double(2))\n"
    )
    (tmp_path / "below" / "beside.py").write_text("NAME = 'beside'\n")
    (tmp_path / "wrong.py").write_text("def run():\n    return 1 +\n")
    (tmp_path / "lacks.py").write_text("\nimport no_such_library\n")
    return scene


def call(scene: Scene, function: str, result: Any = "value", **arguments: object) -> LeafResult:
    return PythonLeaf().run(PythonSpec(function=function, arguments=arguments, result=result), scene.context())


def value(scene: Scene, function: str, **arguments: object) -> object:
    return call(scene, function, **arguments).outputs["value"]


def log(scene: Scene, stream: str) -> str:
    return (scene.run_folder / "processes" / f"loop[1].work.{stream}").read_text(encoding="utf-8")


VALUES = [None, True, 7, 2**70, "größer\0\n", Decimal("1.50"), date(2026, 11, 22), datetime(2026, 11, 22, 1, 2, 3, 4)]


def test_values_keep_their_types(scene: Scene) -> None:
    everything = [*VALUES, VALUES, {"a": VALUES}]
    back: Any = value(scene, "work:same", value=everything)
    assert back == everything
    assert [type(item) for item in back] == [type(item) for item in everything]
    names = value(scene, "work:types", a=1, b=Decimal(1), c=True, d=date(2026, 1, 1), e=datetime(2026, 1, 1), f=[])
    assert names == {"a": "int", "b": "Decimal", "c": "bool", "d": "date", "e": "datetime", "f": "list"}


def test_arguments_by_name(scene: Scene) -> None:
    assert value(scene, "work:doubled", number=4) == 8
    assert value(scene, "work:doubled", number=4, times=2) == 16


def test_files_find_what_is_beside_them(scene: Scene) -> None:
    assert value(scene, "below/script.py:run") == "beside4"


def test_modules_that_are_installed(scene: Scene) -> None:
    assert value(scene, "os.path:basename", p="/a/b") == "b"
    assert value(scene, "datetime:date", year=2026, month=11, day=22) == date(2026, 11, 22)


def test_printing_does_not_damage_the_result(scene: Scene) -> None:
    assert value(scene, "work:noisy") == "result"
    assert log(scene, "stdout") == 'printed\n{"value":1}\nwritten\n'
    assert log(scene, "stderr") == "by a program\nzwölf\n"


def test_rows(scene: Scene) -> None:
    assert value(scene, "work:rows", count=2) == Rows(("id", "text"), [[0, "0"], [1, "1"]])
    assert value(scene, "work:same", value=Rows(("a",), [[1], [2]])) == Rows(("a",), [[1], [2]])
    assert value(scene, "work:rows", count=0) == []


def test_a_mapping_goes_into_several_variables(scene: Scene) -> None:
    result = call(scene, "work:same", {"first": "a", "second": "b"}, value={"a": 1, "b": [2], "c": 3})
    assert result.outputs == {"first": 1, "second": [2]}


def test_without_result_nothing_is_set(scene: Scene) -> None:
    assert call(scene, "work:doubled", None, number=1).outputs == {}


def test_standard_input_is_empty(scene: Scene) -> None:
    assert value(scene, "work:reads") == ""


def test_where_it_runs(scene: Scene) -> None:
    assert value(scene, "work:where") == [str(scene.folder), str(scene.folder), "loop[1].work"]


FAILURES: dict[str, tuple[str, dict[str, object], Any]] = {
    "raises": ("work:fails", {}, None),
    "raises_below": ("work:fails_below", {}, None),
    "in_a_library": ("json:loads", {"s": "{"}, None),
    "exit": ("work:leaves", {}, None),
    "dies": ("work:dies", {}, None),
    "crashes": ("work:crashes", {}, None),
    "no_module": ("nowhere:run", {}, None),
    "no_module_below": ("work.nowhere:run", {}, None),
    "no_function": ("work:nothing", {}, None),
    "no_callable": ("work:number", {}, None),
    "no_file": ("below/nothing.py:run", {}, None),
    "missing_argument": ("work:doubled", {}, None),
    "unknown_argument": ("work:doubled", {"number": 1, "time": 2}, None),
    "syntax": ("wrong:run", {}, None),
    "syntax_of_file": ("wrong.py:run", {}, None),
    "lacks_library": ("lacks:run", {}, None),
    "bytes": ("work:result", {"kind": "bytes"}, "value"),
    "nan": ("work:result", {"kind": "nan"}, "value"),
    "set": ("work:result", {"kind": "set"}, "value"),
    "module": ("work:result", {"kind": "self"}, "value"),
    "too_much": ("work:result", {"kind": "much"}, "value"),
    "no_mapping": ("work:doubled", {"number": 2}, {"a": "x"}),
    "no_key": ("work:same", {"value": {"y": 1}}, {"a": "x", "b": "y"}),
    "bad_argument": ("work:same", {"value": [1.5, b""]}, None),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(scene: Scene, name: str) -> None:
    function, arguments, result = FAILURES[name]
    with pytest.raises((PythonTaskError, ProcessError)) as caught:
        call(scene, function, result, **arguments)
    # Where the standard library is, and its lines, differ.
    assert_snapshot(f"python_{name}", re.sub(r"/\S*/json/__init__.py:\d+", "LIBRARY", scene.shown(caught.value)))


def test_the_traceback_is_kept_without_ours(scene: Scene) -> None:
    with pytest.raises(PythonTaskError):
        call(scene, "work:fails")
    text = log(scene, "stderr")
    assert text.startswith("Traceback (most recent call last):") and "call.py" not in text
    assert "in fails\n" in text and "in deeper\n" in text and "hunter22" not in text


def test_cancelling(scene: Scene) -> None:
    file = scene.folder / "began"

    def cancel() -> None:
        while not file.exists():
            time.sleep(0.01)
        scene.cancellation.set()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(CancelledError):
        call(scene, "work:sleeps", path=str(file))
    thread.join()


def test_a_damaged_result(scene: Scene) -> None:
    (scene.folder / "damage.py").write_text(
        textwrap.dedent(
            """
            import os
            def run():
                for number in range(3, 1024):
                    try:
                        os.write(number, b"{")
                    except OSError:
                        pass
            """
        )
    )
    with pytest.raises(HeadraceError, match="without a result"):
        call(scene, "damage:run")


def test_description() -> None:
    assert PythonLeaf().describe(PythonSpec(function="a:b", arguments={"c": 1, "d": 2})) == ["calls a:b(c, d)"]
