"""`partition` and the fast load options of a destination."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import LoadOptions, RangePartition
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import change, load, message

GENERATED = change(
    "rows: {connection: inbox, files: orders.tbl, layout: orders}", "rows: {generate: {tpch: orders}, layout: orders}"
)


def destination(keys: str, text: str | None = None) -> str:
    return change("target: replace}", f"{keys}}}", *([] if text is None else [text]))


def settings(folder: Path, keys: str, **sets: str) -> tuple[RangePartition | None, LoadOptions]:
    package = load(folder, destination(keys), sets=[f"{name}={value}" for name, value in sets.items()])
    found = package.data_flows()[0].destination
    return found.partition, found.options


def test_defaults(tmp_path: Path) -> None:
    assert settings(tmp_path, "target: replace") == (None, LoadOptions())
    assert LoadOptions().changed() == []


def test_all_options(tmp_path: Path) -> None:
    keys = (
        "target: replace, lock: true, check_constraints: false, keep_identity: false, disable_triggers: true, "
        "analyze: true, indexes: before"
    )
    _, options = settings(tmp_path, keys)
    assert options == LoadOptions(True, False, False, True, True, "before")
    assert options.changed() == list(options.to_dict())


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("id", RangePartition("id")),
        ("ID", RangePartition("ID")),
        ('"${mode}"', None),
        ("{expr: \"MAP {'staged': 'id'}[mode]\"}", RangePartition("id")),
        ("{expr: \"MAP {'single': 'id'}[mode]\"}", None),
        ("null", None),
    ],
)
def test_the_key_of_a_partition(tmp_path: Path, column: str, expected: RangePartition | None) -> None:
    keys = f"target: replace, partition: {{range: {{column: {column}}}}}"
    if column == '"${mode}"':
        keys = keys.replace("mode", "nothing")
    text = change("  mode:", "  nothing: {type: string}\n  mode:", destination(keys))
    assert load(tmp_path, text).data_flows()[0].destination.partition == expected


REFUSED = {
    "partition_without_column": destination("target: replace, partition: {range: {bounds: files}}"),
    "partition_other_bounds": destination("target: replace, partition: {range: {column: id, bounds: month}}"),
    "partition_unknown_column": destination("target: replace, partition: {range: {column: ident}}"),
    "partition_unmapped_column": destination("target: replace, columns: {key: id}, partition: {range: {column: id}}"),
    "partition_generated": destination("target: replace, partition: {range: {column: id}}", GENERATED),
    "partition_list": destination("target: replace, partition: {list: {column: id}}"),
    "option_of_new_table": destination("target: create, disable_triggers: true"),
    "option_of_view": destination("target: replace, load: view, indexes: before"),
    "option_wrong": destination("target: replace, lock: yes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    assert_snapshot(f"destination_{name}", message(tmp_path, REFUSED[name]))


def test_statistics_are_for_new_tables_too(tmp_path: Path) -> None:
    assert settings(tmp_path, "target: create, analyze: true")[1].analyze
