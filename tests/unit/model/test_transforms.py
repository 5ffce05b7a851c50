"""Transforms: what packages may say of lookups, in which order rows pass them, and every message about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import BindingError
from headrace.model import (
    AddedColumn,
    DataType,
    FileSource,
    Lookup,
    LookupKey,
    LookupTable,
    QuerySource,
    TableColumn,
    describe,
    key_family,
)
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import load, message

HEAD = """\
headrace: 1
package: facts
parameters:
  unknown: {type: integer, default: -1}
connections:
  inbox: {type: files, path: data}
  warehouse: {type: duckdb, path: w.duckdb}
  server: {type: postgres, host: db}
layouts:
  lines:
    delimiter: "|"
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: part, type: int32}
      - {name: price, type: "decimal(9,2)"}
      - {name: weight, type: float64}
      - {name: color, type: char(5)}
  parts:
    delimiter: "|"
    columns:
      - {name: p_key, type: int64}
      - {name: p_sk, type: int16, nullable: false}
      - {name: p_name, type: varchar(20)}
      - {name: p_day, type: date}
      - {name: p_weight, type: float64}
      - {name: p_mark, type: bytes}
      - {name: p_json, type: json}
tasks:
  load:
    data_flow:
      sources: {lines: {connection: inbox, files: lines.csv, layout: lines}}
"""
FILES = "connection: inbox, files: parts.csv, layout: parts"
KEYED = f"{{input: lines, lookup: {{{FILES}, on: {{part: p_key}}, add: {{part_sk: p_sk}}, no_match: {{default: -1}}}}}}"


def package(*transforms: str, input: str = "keyed", destination: str = "", head: str = HEAD) -> str:
    """A package with these transforms, each a line of YAML."""
    lines = "".join(f"        {transform}\n" for transform in transforms)
    out = f"{{input: {input}, connection: warehouse, table: t, target: replace{destination}}}"
    return f"{head}      transforms:\n{lines}      destinations: {{out: {out}}}\n"


def keyed(old: str = "", new: str = "") -> str:
    """The transform with a piece exchanged."""
    assert old in KEYED
    return f"keyed: {KEYED.replace(old, new, 1)}"


def queried(sql: str, more: str = "") -> str:
    return keyed(FILES, f'{more}query: "{sql}"')


def added_default(column: str, default: str) -> str:
    return keyed("{part_sk: p_sk}, no_match: {default: -1}", f"[{column}], no_match: {{default: {default}}}")


CASES: dict[str, str] = {
    # The way of the rows
    "unknown_input": package(keyed("input: lines", "input: line")),
    "unknown_input_of_destination": package(keyed(), input="keyd"),
    "unread": package(keyed(), input="lines"),
    "two_readers": package(keyed(), f"other: {KEYED.replace('part_sk', 'sk')}"),
    "circle": package(keyed("input: lines", "input: other"), f"other: {KEYED.replace('lines', 'keyed', 1)}"),
    "circle_of_one": package(keyed("input: lines", "input: keyed")),
    "name_of_the_source": package(f"lines: {KEYED}", input="lines"),
    "name": package(f"1st: {KEYED}", input="1st"),
    # What a transform may be
    "no_lookup": package("keyed: {input: lines}"),
    "sql": package("keyed: {input: lines, sql: SELECT 1}"),
    "unknown_key": package(keyed("add:", "ad:")),
    # Tables
    "table_of_files": package(keyed(FILES, "connection: inbox, table: parts")),
    "table_and_layout": package(keyed(FILES, "connection: warehouse, table: parts, layout: parts")),
    "table_without_connection": package(keyed(FILES, "table: parts")),
    "table_of_the_ledger": package(keyed(FILES, "connection: warehouse, table: headrace.run")),
    "table_first": package(
        keyed(FILES, "connection: warehouse, table: parts").replace("add:", "duplicates: first, add:")
    ),
    "table_unknown_column": package(
        keyed(FILES, "connection: warehouse, table: parts").replace("{part: p_key}", "{prt: p_key}")
    ),
    "sql_in_place_of_files": package(keyed(FILES, "connection: warehouse, sql: SELECT 1")),
    # Queries without a connection
    "query_of_files": package(keyed(FILES, "connection: inbox, query: SELECT 1 AS p_key")),
    "query_and_table": package(keyed(FILES, "connection: server, table: parts, query: SELECT 1 AS p_key")),
    "query_of_a_server_writes": package(keyed(FILES, "connection: server, query: DELETE FROM parts RETURNING p_key")),
    "query_of_a_server_reference": package(keyed(FILES, "connection: server, query: 'SELECT ${unknown} AS p_key'")),
    "query_of_a_server_first": package(
        keyed(FILES, "connection: server, query: SELECT * FROM parts").replace("add:", "duplicates: first, add:")
    ),
    "query_and_layout": package(queried("SELECT 1 AS p_key", "layout: parts, ")),
    "query_without_rows": package(queried("DELETE FROM parts")),
    "query_of_two": package(queried("SELECT 1; SELECT 2")),
    "query_explained": package(queried("EXPLAIN SELECT 1 AS p_key, 2 AS p_sk")),
    "query_unknown_name": package(queried("SELECT $unkown AS p_key, 2 AS p_sk")),
    "query_of_a_reference": package(queried("SELECT ${unknown} AS p_key, 2 AS p_sk")),
    "query_wrong": package(queried("SELECT p_key FROM (SELECT 1 AS p_sk)")),
    "query_of_a_file": package(queried("SELECT 1 AS p_key, 2 AS p_sk FROM read_csv('/etc/passwd')")),
    "query_of_a_table": package(queried("FROM parts")),
    "query_key_types": package(queried("SELECT 'a' AS p_key, 2 AS p_sk")),
    "query_unknown_columns": package(queried("SELECT 1 AS p_ky, 2 AS p_k")),
    "query_type_that_is_none": package(queried("SELECT 1 AS p_key, sum(range) AS p_sk FROM range(3)")),
    "query_types_that_are_none": package(queried("SELECT 1::UTINYINT AS p_key, [1] AS p_sk")),
    "query_one_name_twice": package(queried("SELECT 1 AS p_key, 2 AS p_sk, 3 AS p_sk")),
    "query_default": package(queried("SELECT 1 AS p_key, 'a' AS p_sk").replace("default: -1", "default: 2")),
    "query_first_without_order": package(
        queried("SELECT 1 AS p_key, (SELECT 2 ORDER BY 1) AS p_sk", "duplicates: first, ")
    ),
    "no_rows_named": package(keyed(f"{FILES}, ", "")),
    "layout_missing": package(keyed(", layout: parts", "")),
    "connection_of_a_database": package(keyed("connection: inbox", "connection: warehouse")),
    "unknown_connection": package(keyed("connection: inbox", "connection: outbox")),
    "unknown_layout": package(keyed("layout: parts", "layout: part")),
    "no_match_default_without_value": package(keyed("{default: -1}", "default")),
    "no_match_output": package(keyed("{default: -1}", "output")),
    "no_match_to_an_output": package(keyed("{default: -1}", "{output: rest}")),
    "no_match_number": package(keyed("{default: -1}", "-1")),
    "no_match_other_word": package(keyed("{default: -1}", "rejects")),
    "duplicates_last": package(keyed("part_sk: p_sk},", "part_sk: p_sk}, duplicates: last,")),
    "case_ignore": package(keyed("part_sk: p_sk},", "part_sk: p_sk}, case: ignore,")),
    "files_of_streams": package(keyed("files: parts.csv", "files: [a.csv, 'parts.{stream}.csv']")),
    "files_absolute": package(keyed("files: parts.csv", "files: /parts.csv")),
    # Keys
    "on_empty": package(keyed("{part: p_key}", "{}")),
    "on_list": package(keyed("{part: p_key}", "[part]")),
    "unknown_column": package(keyed("{part: p_key}", "{prt: p_key}")),
    "unknown_lookup_column": package(keyed("{part: p_key}", "{part: p_ky}")),
    "key_types": package(keyed("{part: p_key}", "{part: p_name}")),
    "key_scales": package(keyed("{part: p_key}", "{price: p_key}")),
    "key_floats": package(keyed("{part: p_key}", "{weight: p_weight}")),
    "key_days": package(keyed("{part: p_key}", "{color: p_day}")),
    # Added columns
    "add_empty": package(keyed("{part_sk: p_sk}", "[]")),
    "add_text": package(keyed("{part_sk: p_sk}", "p_sk")),
    "add_twice_in_a_list": package(keyed("{part_sk: p_sk}", "[p_sk, p_sk]")),
    "add_case": package(keyed("{part_sk: p_sk}", "{part_sk: p_sk, Part_SK: p_name}")),
    "add_number": package(keyed("{part_sk: p_sk}", "{part_sk: 5}")),
    "add_unknown": package(keyed("{part_sk: p_sk}", "{part_sk: p_s}")),
    "add_unknown_in_a_list": package(keyed("{part_sk: p_sk}", "[p_s]")),
    "add_taken": package(keyed("{part_sk: p_sk}", "{Price: p_sk}")),
    "add_taken_by_the_lookup_before": package(keyed(), f"again: {KEYED.replace('lines', 'keyed', 1)}", input="again"),
    # Defaults
    "default_of_another_type": package(keyed("default: -1", "default: none")),
    "default_outside": package(keyed("default: -1", "default: 40000")),
    "default_list": package(keyed("default: -1", "default: [1]")),
    "default_too_long": package(keyed("p_sk}, no_match: {default: -1", f"p_name}}, no_match: {{default: {'x' * 21}")),
    "default_for_several_types": package(keyed("part_sk: p_sk", "part_sk: p_sk, name: p_name")),
    "default_missing_for_a_column": package(
        keyed(
            "part_sk: p_sk}, no_match: {default: -1", "part_sk: p_sk, name: p_name}, no_match: {default: {part_sk: 1}"
        )
    ),
    "default_of_no_column": package(keyed("default: -1", "default: {part_sk: 1, parts: 2}")),
    "default_empty": package(keyed("default: -1", "default: {}")),
    "default_of_a_float": package(added_default("p_weight", "x")),
    "default_of_bytes": package(added_default("p_mark", "'00'")),
    "default_of_a_document": package(added_default("p_json", "'{'")),
    # The destination
    "columns": package(keyed(), destination=", columns: {id: id, sk: part_s}"),
    "partition": package(keyed(), destination=", load: view, partition: {range: {column: part_sk, bounds: [5]}}"),
    "partition_renamed": package(
        keyed(), destination=", load: view, columns: {id: id, key: part_sk}, partition: {hash: {column: key, parts: 2}}"
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_messages(tmp_path: Path, name: str) -> None:
    assert_snapshot(f"transform_{name}", message(tmp_path, CASES[name]))


def test_a_query_has_the_columns_that_it_describes(tmp_path: Path) -> None:
    sql = (
        "SELECT range::INTEGER AS p_key, $unknown + range AS p_sk, 1.50::DECIMAL(9,2) AS price, $unknown AS n "
        "FROM range(3) ORDER BY ALL -- the end"
    )
    (flow,) = load(tmp_path, package(queried(sql, "duplicates: first, "))).flows
    (lookup,) = flow.lookups
    assert isinstance(lookup.source, QuerySource)
    assert {name: str(own) for name, own in lookup.types.items()} == {
        "p_key": "int32",
        "p_sk": "int64",
        "price": "decimal(9,2)",
        "n": "int64",
    }
    assert lookup.keeps_first and [str(column.type) for column in flow.rows[len(flow.columns) :]] == ["int64"]
    assert lookup.source.query.values == (("BIGINT", -1),)
    assert "$unknown" not in lookup.source.query.text and lookup.source.query.written == sql


def test_a_table_is_described_when_it_is_known(tmp_path: Path) -> None:
    table = keyed(FILES, "connection: warehouse, table: dim.parts")
    again = KEYED.replace(FILES, 'query: "SELECT 1::INTEGER AS p_key, 2 AS p_sk"').replace("lines", "keyed", 1)
    again = again.replace("{part: p_key}", "{part_sk: p_key}").replace("part_sk: p_sk", "sk: p_sk")
    (flow,) = load(tmp_path, package(table, f"again: {again}", input="again")).flows
    assert [lookup.is_described for lookup in flow.lookups] == [False, True]
    assert flow.describe is not None

    def described(**types: str) -> tuple[Lookup, ...]:
        columns = (
            TableColumn(name, None if own == "list" else DataType.parse(own), own.upper(), False)
            for name, own in types.items()
        )
        assert flow.describe is not None
        bound = flow.describe({"keyed": LookupTable(tuple(columns), 7)}).transforms
        return tuple(own for own in bound if isinstance(own, Lookup))

    keyed_by, _ = described(p_key="int64", p_sk="int32", other="list")
    assert (keyed_by.is_described, [str(column.type) for column in keyed_by.added]) == (True, ["int32"])
    assert (keyed_by.added[0].default, keyed_by.added[0].nullable) == ("-1", False)
    # What comes behind it is looked at too.
    for types, what in {
        ("int64", "date"): "is no value of the column `part_sk`",
        ("list", "int32"): "column `p_key` of the table is of a type that Headrace does not have",
        ("string", "int32"): "a key of type string cannot be found by int32",
    }.items():
        with pytest.raises(BindingError) as raised:
            described(p_key=types[0], p_sk=types[1])
        assert what in str(raised.value.to_dict())
    with pytest.raises(BindingError):
        described(p_key="int64", p_s="int32")


def test_a_query_waits_for_its_values(tmp_path: Path) -> None:
    head = HEAD.replace("parameters:\n", "variables: {day: {type: date}}\nparameters:\n")
    sql = "SELECT 1 AS p_key, $day AS p_sk"
    bound = load(tmp_path, package(queried(sql).replace("default: -1", "default: null"), head=head))
    assert bound.flows == []


def test_rows_pass_transforms_in_the_order_in_which_they_read(tmp_path: Path) -> None:
    text = package(
        "last: {input: second, lookup: {connection: inbox, files: [a.csv, b.csv], layout: parts, on: {name: p_name, "
        "price2: p_sk}, add: [p_day], no_match: {default: null}}}",
        'first: {input: lines, lookup: {connection: inbox, files: "p*.csv", layout: parts, on: {part: p_key}, '
        'add: {part_sk: p_sk, name: p_name}, no_match: {default: {part_sk: "${unknown}", name: "1.50"}}}}',
        "second: {input: first, lookup: {connection: inbox, files: c.csv, layout: {delimiter: ',', columns: ["
        "{name: c, type: string}, {name: n, type: 'decimal(3,0)'}]}, on: {color: c}, add: {price2: n}, "
        "no_match: {default: 7}}}",
        input="last",
        destination=", columns: {id: id, sk: part_sk, day: p_day}",
    )
    bound = load(tmp_path, text)
    (flow,) = bound.data_flows()
    first, second, last = flow.lookups
    assert [lookup.name for lookup in flow.lookups] == ["first", "second", "last"]
    assert first.keys == (LookupKey("part", "p_key"),)
    small, name = DataType.parse("int16"), DataType.parse("varchar(20)")
    assert first.added == (
        AddedColumn("part_sk", small, "first", "p_sk", False, "-1"),
        AddedColumn("name", name, "first", "p_name", True, "1.50"),
    )
    assert [column.nullable for column in flow.rows[len(flow.columns) :]] == [False, True, True, True]
    assert (last.keys[1].column, last.added[0].default, second.added[0].default) == ("price2", None, "7")
    assert isinstance(last.source, FileSource)
    assert (last.source.patterns, last.source.empty) == (["a.csv", "b.csv"], "allow")
    described = describe(bound)["data_flows"]
    assert isinstance(described, list)
    assert described[0]["transforms"][0]["on"] == {"part": "p_key"}


@pytest.mark.parametrize("no_match", ["", ", no_match: reject", ', no_match: "${what}"'])
def test_rows_that_find_nothing_are_rejects_unless_a_default_is_given(tmp_path: Path, no_match: str) -> None:
    head = HEAD.replace("parameters:\n", "parameters:\n  what: {type: string, default: reject}\n", 1)
    text = package(keyed(", no_match: {default: -1}", no_match), head=head)
    (flow,) = load(tmp_path, text).data_flows()
    (lookup,) = flow.lookups
    assert lookup.rejects_misses
    (column,) = lookup.added
    assert (column.default, column.nullable) == (None, False)


def test_the_first_of_equal_keys_and_letters_of_any_case(tmp_path: Path) -> None:
    text = package(
        keyed("{part: p_key}, add: {part_sk: p_sk},", "{color: p_name}, add: [p_sk], duplicates: first, case: ignore,")
    )
    (flow,) = load(tmp_path, text).data_flows()
    assert (flow.lookups[0].keeps_first, flow.lookups[0].ignores_case) == (True, True)
    described = describe(load(tmp_path, text))["data_flows"]
    assert isinstance(described, list)
    (transform,) = described[0]["transforms"]
    assert (transform["duplicates"], transform["case"], transform["no_match"]) == ("first", "ignore", "default")


def test_a_flow_without_transforms_has_none(tmp_path: Path) -> None:
    text = HEAD + "      destinations: {out: {input: lines, connection: warehouse, table: t, target: replace}}\n"
    (flow,) = load(tmp_path, text).data_flows()
    assert (flow.transforms, flow.rows) == ((), flow.columns)


@pytest.mark.parametrize(
    ("types", "is_one"),
    [
        ("int16 int32 int64 decimal(9,0) decimal(38,0)", True),
        ("decimal(9,2) decimal(38,2)", True),
        ("string char(3) varchar(9)", True),
        ("decimal(9,2) decimal(9,1)", False),
        ("int64 string", False),
        ("timestamp timestamptz", False),
        ("date timestamp", False),
        ("uuid bytes", False),
    ],
)
def test_types_of_one_family_are_compared(types: str, is_one: bool) -> None:
    families = {key_family(DataType.parse(text)) for text in types.split()}
    assert (len(families) == 1) is is_one


def test_floats_and_documents_are_no_keys() -> None:
    assert {key_family(DataType.parse(text)) for text in ("float32", "float64", "json")} == {None}
