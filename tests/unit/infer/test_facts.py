"""The core's facts about columns equal those of a slow, plain model, however the file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from headrace import core
from headrace.errors import CancelledError, InternalError
from headrace.model import Layout
from tests.unit.infer.slow_model import class_of, facts_of
from tests.unit.infer.values import columns


def quoted(value: str | None) -> str:
    return "" if value is None else '"' + value.replace('"', '""') + '"'


def infer(path: Path, count: int, *, slice_bytes: int = 1 << 20, streams: int = 1, **own: Any) -> dict[str, Any]:
    names = [{"name": f"c{number}", "type": "string"} for number in range(count)]
    layout = Layout.model_validate({"delimiter": "|", "qualifier": '"', "columns": names, **own}).to_core()
    sliced = core.plan_slices({"files": [str(path)], "slice_bytes": slice_bytes, "layout": layout})
    spec = {"files": sliced["files"], "slices": sliced["slices"], "layout": layout, "streams": streams}
    return core.infer_columns(spec)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=columns())
def test_facts_equal_those_of_the_slow_model(tmp_path: Path, values: list[list[str | None]]) -> None:
    path = tmp_path / "file.csv"
    # A last field in qualifiers, so that no row is blank.
    rows = ["|".join([*map(quoted, row), '"."']) for row in zip(*values, strict=True)]
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    found = infer(path, len(values) + 1)
    assert found["rows"] == len(rows)
    assert found["misfits"]["count"] == 0
    for number, column in enumerate(values):
        assert found["columns"][number] == facts_of(f"c{number}", column)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=columns(most_rows=200))
def test_slices_and_streams_change_nothing(tmp_path: Path, values: list[list[str | None]]) -> None:
    path = tmp_path / "file.csv"
    rows = ["|".join([*map(quoted, row), '"."']) for row in zip(*values, strict=True)]
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    serial = infer(path, len(values) + 1)
    for slice_bytes, streams in ((10, 1), (37, 4)):
        assert infer(path, len(values) + 1, slice_bytes=slice_bytes, streams=streams) == serial


def test_places_are_rows_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text('c0|c1\n\n1|"a\nb"\n2|c|d\n3|e\nx|f\n', encoding="utf-8")
    found = infer(path, 2, slice_bytes=8, header="check")
    assert found["columns"][0]["classes"]["other"]["first"] == {"value": "x", "file": 0, "row": 6}
    assert found["misfits"]["by_rule"] == {"too_many_fields": 1}
    assert [(one["row"], one["byte"]) for one in found["misfits"]["first"]] == [(4, 15)]
    assert (found["rows"], found["skipped"]) == (3, 2)


def test_many_different_values_are_estimated(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("".join(f"{number}|{number % 7}\n" for number in range(20_000)), encoding="utf-8")
    many, few = infer(path, 2, slice_bytes=10_000, streams=3)["columns"]
    assert not many["is_exact"]
    assert abs(many["distinct"] - 20_000) < 2_000
    assert (few["distinct"], few["is_exact"]) == (7, True)


def test_other_columns_than_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("1\n", encoding="utf-8")
    layout = Layout.model_validate({"delimiter": "|", "columns": [{"name": "a", "type": "int16"}]}).to_core()
    sliced = core.plan_slices({"files": [str(path)], "slice_bytes": 100, "layout": layout})
    with pytest.raises(InternalError, match="not a text"):
        core.infer_columns({**sliced, "layout": layout, "streams": 1})


def test_a_pass_can_be_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("1|2\n" * 1_000_000, encoding="utf-8")
    names = [{"name": name, "type": "string"} for name in "ab"]
    layout = Layout.model_validate({"delimiter": "|", "columns": names}).to_core()
    sliced = core.plan_slices({"files": [str(path)], "slice_bytes": 1 << 30, "layout": layout})
    with pytest.raises(CancelledError):
        core.infer_columns({**sliced, "layout": layout, "streams": 1}, lambda: True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.234", "maybe_point"),
        ("0.123", "point"),
        ("1.234.567", "grouped_point"),
        ("12E3", "bare_exponent"),
        ("12.5E3", "exponent"),
        ("2024-02-30", "other"),
        ("31/12/2024", "dated"),
    ],
)
def test_the_slow_model_is_right(text: str, expected: str) -> None:
    assert class_of(text) == expected
