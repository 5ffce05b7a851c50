"""The shape of errors: text, data, pickling."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from headrace import errors
from headrace.errors import HeadraceError, PackageError, Problem, SourceError, error_from_dict
from tests.snapshots import assert_snapshot

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, HeadraceError) and value is not HeadraceError
]
FULL: dict[str, Any] = {
    "at": {"file": "orders_03.csv", "row": 1204377, "byte": 98113204},
    "found": '"12,5O"',
    "expected": "decimal(12,2)",
    "hint": "Correct the value.",
}


def test_every_kind_in_full_and_short() -> None:
    lines = []
    for error_class in CLASSES:
        error = error_class("cannot convert a value", **FULL)
        lines.append(f"{error_class.__name__}: {error.kind}, exit {error.exit_code}, retryable {error.retryable}")
    lines += ["", SourceError("cannot convert a value", **FULL).render(), "", SourceError("it is gone").render()]
    lines += ["", SourceError("two\nlines", found="one\ntwo", hint="Do it.").render()]
    assert_snapshot("errors", "\n".join(lines))


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ({"file": "a.tbl", "row": 12, "byte": 345}, "a.tbl, row 12, byte 345"),
        ({"file": "p.yaml", "line": 3, "column": 5}, "p.yaml:3:5"),
        ({"file": "a.tbl", "row": None, "byte": 0}, "a.tbl, byte 0"),
        ({"table": "orders", "column_number": 3}, "table orders, column number 3"),
    ],
)
def test_places(at: dict[str, object], text: str) -> None:
    assert f"  at: {text}\n" in SourceError("x", at=at).render() + "\n"


@pytest.mark.parametrize("error_class", CLASSES)
def test_pickling_keeps_every_field(error_class: type[HeadraceError]) -> None:
    error = error_class("what", **FULL)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is error_class
    assert copy.to_dict() == error.to_dict()
    assert copy.render() == error.render()
    assert str(copy) == "what"


def test_problems_survive_pickling() -> None:
    problems = [Problem("p.yaml", 1, 2, "first", hint="Do."), Problem("p.yaml", 3, 4, "second")]
    error = PackageError.from_problems("p.yaml", problems, 30)
    copy = pickle.loads(pickle.dumps(error))
    assert copy.problems == problems
    assert copy.render() == error.render()
    assert copy.to_dict()["problems_total"] == 30
    assert_snapshot("package_error", error.render())


@pytest.mark.parametrize("error_class", CLASSES)
def test_the_data_form_comes_back(error_class: type[HeadraceError]) -> None:
    error = error_class("what", **FULL)
    assert type(error_from_dict(error.to_dict())) is error_class
    assert error_from_dict(error.to_dict()).render() == error.render()


def test_what_a_server_said_is_kept() -> None:
    server = {"severity": "ERROR", "sqlstate": "23505", "message": "duplicate key", "constraint": "orders_pkey"}
    error = error_from_dict({"kind": "target", "what": "refused", "server": server})
    assert error.server == server
    assert pickle.loads(pickle.dumps(error)).server == server
    assert error_from_dict(error.to_dict()).to_dict() == error.to_dict()
    assert "server" not in SourceError("it is gone").to_dict()


def test_an_unknown_kind_is_internal() -> None:
    assert error_from_dict({"kind": "new", "what": "x"}).kind == "internal"


def test_importing_the_errors_imports_nothing_heavy() -> None:
    heavy = ("pydantic", "yaml", "duckdb", "rich", "typer")
    code = f"import sys, headrace.errors; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_model_does_not_import_duckdb() -> None:
    code = "import sys, headrace.model; print('duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
