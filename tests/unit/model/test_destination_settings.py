"""`partition` and the fast load options of a destination."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.model import (
    CommitInterval,
    Every,
    HashPartition,
    ListPartition,
    LoadOptions,
    PartitionClause,
    PartitionSettings,
    Quantiles,
    RangePartition,
)
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import change, load, message

GENERATED = change(
    "rows: {connection: inbox, files: orders.tbl, layout: orders}", "rows: {generate: {tpch: orders}, layout: orders}"
)


def destination(keys: str, text: str | None = None) -> str:
    return change("target: replace}", f"{keys}}}", *([] if text is None else [text]))


def settings(folder: Path, keys: str, **sets: str) -> tuple[PartitionClause | None, LoadOptions]:
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


TYPED = change(
    '      - {name: amount, type: "decimal(15,2)"}',
    """\
      - {name: amount, type: "decimal(15,2)"}
      - {name: day, type: date}
      - {name: moment, type: timestamp}
      - {name: instant, type: timestamptz}
      - {name: country, type: char(2)}
      - {name: word, type: varchar(5)}
      - {name: open, type: bool}
      - {name: code, type: uuid}
      - {name: share, type: float64}
""",
)


WITH_JSON = change("      - {name: share, type: float64}", "      - {name: share, type: json}", TYPED)
QUALIFIED = change("    delimiter:", "    qualifier: '\"'\n    delimiter:", TYPED)


def clause(text: str, package: str = TYPED) -> str:
    return destination(f"target: replace, partition: {{{text}}}", package)


DECLARED: dict[str, PartitionClause] = {
    "range: {column: id}": RangePartition("id"),
    "range: {column: id, bounds: files}": RangePartition("id"),
    "range: {column: id, bounds: [-5, 10, '20']}": RangePartition("id", ("-5", "10", "20")),
    "range: {column: amount, bounds: [-1, 0.5, 10]}": RangePartition("amount", ("-1.00", "0.50", "10.00")),
    "range: {column: day, bounds: [2024-01-01], boundary: left}": RangePartition("day", ("2024-01-01",), "left"),
    "range: {column: moment, bounds: [2024-01-01, '2024-01-01 12:30']}": RangePartition(
        "moment", ("2024-01-01 00:00:00", "2024-01-01 12:30:00")
    ),
    "range: {column: instant, bounds: ['2024-01-01 02:00:00+02:00']}": RangePartition(
        "instant", ("2024-01-01 00:00:00+00:00",)
    ),
    "range: {column: day, every: month}": RangePartition("day", Every("1", "month")),
    "range: {column: moment, every: 6 hours, from: 2024-01-01, to: 2024-02-01}": RangePartition(
        "moment", Every("6", "hour", "2024-01-01 00:00:00", "2024-02-01 00:00:00")
    ),
    "range: {column: id, every: 1000, from: 0}": RangePartition("id", Every("1000", None, "0")),
    "range: {column: amount, every: 0.5}": RangePartition("amount", Every("0.50")),
    "range: {column: id, parts: 8}, keep: 12, outside: default, tablespaces: [a, b]": RangePartition(
        "id", Quantiles(8), settings=PartitionSettings("default", ("a", "b"), 12)
    ),
    "list: {column: country, values: {eu: [FR, 'DE '], rest: [CN, null]}}": ListPartition(
        "country", (("eu", ("FR", "DE")), ("rest", ("CN", None)))
    ),
    "list: {column: open, values: {yes_: [true], no_: [false]}}": ListPartition(
        "open", (("yes_", ("true",)), ("no_", ("false",)))
    ),
    "hash: {column: id}": HashPartition("id"),
    "hash: {column: word, parts: '${streams_wanted}'}": HashPartition("word", 5),
    "range: {column: null, parts: 3}": None,  # type: ignore[dict-item]
}


@pytest.mark.parametrize("text", DECLARED)
def test_declarations(tmp_path: Path, text: str) -> None:
    package = change("  mode:", "  streams_wanted: {type: integer, default: 5}\n  mode:", clause(text))
    assert load(tmp_path, package).data_flows()[0].destination.partition == DECLARED[text]


def test_references_in_every_setting(tmp_path: Path) -> None:
    parameters = """\
  every: {type: string, default: 2 weeks}
  first: {type: date, default: 2024-01-01}
  kept: {type: integer, default: 3}
  spaces: {type: list, default: [fast, large]}
  size: {type: string, default: 2GB}
  mode:"""
    keys = (
        "target: append, commit: {bytes: '${size}'}, partition: {range: {column: day, every: '${every}', "
        "from: '${first}'}, keep: '${kept}', tablespaces: '${spaces}'}"
    )
    found = load(tmp_path, change("  mode:", parameters, destination(keys, TYPED))).data_flows()[0].destination
    assert found.partition == RangePartition(
        "day", Every("2", "week", "2024-01-01"), settings=PartitionSettings("reject", ("fast", "large"), 3)
    )
    assert found.commit == CommitInterval(bytes=2_000_000_000)


def test_partitions_and_commit(tmp_path: Path) -> None:
    keys = "target: replace, partition: {hash: {column: id}}, partitions: [orders_1], commit: {rows: 1000}"
    found = load(tmp_path, destination(keys)).data_flows()[0].destination
    assert (found.partitions, found.commit) == (("orders_1",), CommitInterval(rows=1000))


REFUSED = {
    "partition_without_column": destination("target: replace, partition: {range: {bounds: files}}"),
    "partition_other_bounds": destination("target: replace, partition: {range: {column: id, bounds: month}}"),
    "partition_unknown_column": destination("target: replace, partition: {range: {column: ident}}"),
    "partition_unmapped_column": destination("target: replace, columns: {key: id}, partition: {range: {column: id}}"),
    "partition_generated": destination("target: replace, partition: {range: {column: id}}", GENERATED),
    "partition_generated_parts": destination("target: replace, partition: {range: {column: id, parts: 4}}", GENERATED),
    "partition_list": destination("target: replace, partition: {list: {column: id}}"),
    "partition_unknown_key": clause("range: {column: id, step: 5}"),
    "partition_of_no_kind": clause("outside: reject"),
    "partition_of_two_kinds": clause("range: {column: id}, hash: {column: id}"),
    "partition_nothing_in_it": clause("range: null"),
    "partition_sub_partitions": clause("range: {column: id}, partition: {hash: {column: id}}"),
    "partition_several_columns": clause("hash: {column: [id, day]}"),
    "partition_by_expression": clause("range: {column: 'date_trunc(month, day)'}"),
    "partition_several_declarations": clause("range: {column: id, every: 10, parts: 4}"),
    "partition_from_without_every": clause("range: {column: id, bounds: [1], from: 0}"),
    "partition_of_texts": clause("range: {column: word, bounds: [a, b]}"),
    "partition_files_with_a_qualifier": clause("range: {column: id}", QUALIFIED),
    "partition_hash_of_json": clause("hash: {column: share}", WITH_JSON),
    "partition_left_of_the_last": clause("range: {column: id, bounds: [5, 9223372036854775807], boundary: left}"),
    "partition_from_inside_a_month": clause("range: {column: day, every: 1 month, from: 2024-01-02, to: 2024-03-05}"),
    "partition_from_inside_an_hour": clause("range: {column: instant, every: 6 hours, from: '2024-01-01 00:30+01'}"),
    "partition_to_inside_a_range": clause("range: {column: day, every: 2 months, from: 2024-01-01, to: 2024-04-01}"),
    "partition_to_inside_weeks": clause("range: {column: moment, every: 2 weeks, from: 2024-01-01, to: 2024-01-22}"),
    "partition_to_inside_a_step": clause("range: {column: amount, every: 0.3, from: 0, to: 1}"),
    "partition_too_many_ranges": clause("range: {column: id, every: 1, from: 0, to: 10001}"),
    "partition_left_of_files": clause("range: {column: id, boundary: left}"),
    "partition_no_bounds": clause("range: {column: id, bounds: []}"),
    "partition_bound_of_other_type": clause("range: {column: day, bounds: [2024-01-01, soon, 5]}"),
    "partition_bound_too_precise": clause("range: {column: amount, bounds: [0.001]}"),
    "partition_bound_out_of_range": clause("range: {column: id, bounds: [9223372036854775808]}"),
    "partition_bounds_fall": clause("range: {column: id, bounds: [10, 9]}"),
    "partition_bound_twice": clause("range: {column: amount, bounds: [1, 1.0]}"),
    "partition_every_nothing": clause("range: {column: id, every: 0}"),
    "partition_every_fortnight": clause("range: {column: day, every: 1 fortnight}"),
    "partition_months_of_numbers": clause("range: {column: id, every: 1 month}"),
    "partition_hours_of_days": clause("range: {column: day, every: 6 hours}"),
    "partition_to_before_from": clause("range: {column: id, every: 10, from: 20, to: 20}"),
    "partition_no_parts": clause("range: {column: id, parts: 0}"),
    "partition_parts_are_words": clause("hash: {column: id, parts: many}"),
    "partition_empty_lists": clause("list: {column: id, values: {}}"),
    "partition_empty_list": clause("list: {column: id, values: {few: [1], none: []}}"),
    "partition_value_in_two_lists": clause("list: {column: id, values: {a: [1, 2], b: [3, '2']}}"),
    "partition_value_twice": clause("list: {column: country, values: {a: [FR, 'FR ']}}"),
    "partition_value_of_other_type": clause("list: {column: word, values: {a: [tools, longer than five, 5]}}"),
    "partition_of_floats": clause("list: {column: share, values: {a: [0.5]}}"),
    "partition_keep_nothing": clause("range: {column: id}, keep: 0"),
    "partition_keep_lists": clause("list: {column: id, values: {a: [1]}}, keep: 3"),
    "partition_outside_hash": clause("hash: {column: id}, outside: default"),
    "partition_no_tablespaces": clause("range: {column: id}, tablespaces: []"),
    "partitions_of_append": destination("target: append, partition: {hash: {column: id}}, partitions: [a]"),
    "partitions_of_single": destination("target: replace, load: single, partitions: [a]"),
    "partitions_without_clause": destination("target: replace, partitions: [a]"),
    "partitions_twice": destination("target: replace, partition: {hash: {column: id}}, partitions: [a, a]"),
    "commit_nothing": destination("target: replace, commit: {}"),
    "commit_twice": destination("target: replace, commit: {rows: 5, bytes: 1GB}"),
    "commit_other_unit": destination("target: replace, commit: {bytes: 5 rows}"),
    "commit_no_rows": destination("target: replace, commit: {rows: 0}"),
    "option_of_new_table": destination("target: create, disable_triggers: true"),
    "option_of_view": destination("target: replace, load: view, indexes: before"),
    "option_wrong": destination("target: replace, lock: yes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    assert_snapshot(f"destination_{name}", message(tmp_path, REFUSED[name]))


def test_statistics_are_for_new_tables_too(tmp_path: Path) -> None:
    assert settings(tmp_path, "target: create, analyze: true")[1].analyze
