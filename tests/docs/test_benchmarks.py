"""docs/benchmarks.md shows what bench/results holds, and figures are made of samples as METHOD.md says."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import islice
from random import Random
from typing import Any

import pytest

from bench import figures
from bench.columns import Column, duckdb_type, headrace_layout
from bench.facts import verdicts
from bench.forms import FORMS
from bench.methods import METHODS
from bench.tables import TABLES
from headrace.model.layout import Layout


def sample(seconds: float, cpu_seconds: float, source_bytes: int) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "peak_resident_bytes": 50_000_000,
        "source_bytes": source_bytes,
        "rows": 1,
    }


def method(base: bool, *slopes: tuple[float, float]) -> dict[str, Any]:
    """Samples of 1 and 4 GB whose slopes are these: seconds per GB, CPU-seconds per GB."""
    pairs = [
        [sample(0.5 + wall, 0.2 + cpu, 10**9), sample(0.5 + 4 * wall, 0.2 + 4 * cpu, 4 * 10**9)] for wall, cpu in slopes
    ]
    call, command = "does it", "python -m bench one"
    return {"peer": "duckdb", "call": call, "base": base, "problem": None, "command": command, "samples": pairs}


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    page = figures.PAGE.read_text(encoding="utf-8")
    assert page == figures.rendered_page(page), "run `python -m bench figures`"
    assert page.count("<!-- bench ") == page.count("<!-- end bench -->") == 29


def test_the_arguments_of_the_results_name_what_was_measured() -> None:
    for path in figures.RESULTS.glob("*.json"):
        for name, kind in json.loads(path.read_text(encoding="utf-8"))["kinds"].items():
            words = kind["arguments"].split()
            options = dict(zip(words[::2], words[1::2], strict=True))
            assert options["--kinds"] == name
            methods = options.get("--methods", ",".join(method.name for method in METHODS[name])).split(",")
            assert all(list(table["methods"]) == methods for table in kind["tables"].values())
            if name == "parse":
                assert list(kind["tables"]) == options.get("--tables", ",".join(TABLES)).split(",")


def test_speed_is_a_slope_and_a_ratio_is_formed_inside_a_repetition() -> None:
    methods = {
        "own": method(True, (1.0, 1.0), (2.0, 2.0), (1.0, 1.0)),
        "peer": method(False, (3.0, 3.0), (8.0, 4.0), (5.0, 3.0)),
    }
    own, peer = figures.method_figures({"methods": methods})
    assert [round(slope.mb_per_second) for slope in own.slopes] == [1000, 500, 1000]
    assert own.faster == []
    assert [round(ratio, 6) for ratio in peer.faster] == [3, 4, 5]
    assert [round(ratio, 6) for ratio in peer.cpu[0]] == [3, 2, 3]
    assert [round(slope.cores_busy, 6) for slope in peer.slopes] == [1, 0.5, 0.6]
    assert figures.Spread.of(peer.faster).text(1) == "4.0 (3.0 to 5.0)"


def test_the_first_lines_compare_with_the_fastest_peer() -> None:
    methods = {
        "own": method(True, (1.0, 1.0)),
        "slow": method(False, (9.0, 9.0)),
        "fast": method(False, (2.0, 2.0)),
        "blind": {**method(False), "problem": "cannot read it: no quotes"},
    }
    text = figures.parse_text(
        {"tables": {"t": {"what": "a table", "rows": 2, "source_bytes": 10**6, "methods": methods}}}
    )
    assert "| `t` | 1,000 | fast 500 | 2.00 |" in text
    assert "| blind: cannot read it: no quotes |" in text


def test_each_destination_of_streams_has_its_own_base() -> None:
    methods = {
        "null-2": method(True, (1.0, 1.0)),
        "null-16": method(False, (1.0, 1.1)),
        "duckdb-2": method(True, (4.0, 8.0)),
        "duckdb-16": method(False, (4.0, 8.0)),
    }
    text = figures.streams_text({"tables": {"t": {"methods": methods}}})
    assert "| `t` null-16 | 1,000 | 1.10 | 10.0 | 9.5 |" in text
    assert "| `t` duckdb-16 | 250 | 8.00 | 0.0 | 0.0 |" in text


def test_forms_are_compared_with_the_one_before() -> None:
    methods = {"plain": method(True, (1.0, 1.0)), "local": method(False, (1.5, 1.25))}
    text = figures.forms_text({"tables": {"t": {"methods": methods}}})
    assert "| `local` | 667 | 1.25 | `plain` | 1.50 | 1.25 |" in text


def test_forms_hold_the_same_values() -> None:
    row = b"7|1|2|3|17|1234567.80|0.04|0.02|N|O|1996-03-13|1996-02-12|1996-03-22|NONE|AIR|the rest|\n"
    local = FORMS["local"].row(row, 0)
    assert local == b"7|1|2|3|17|1.234.567,80|0,04|0,02|N|O|13.03.1996|12.02.1996|22.03.1996|NONE|AIR|the rest|\n"
    accents = FORMS["utf-8"].row(row, 10)
    assert accents == row.replace(b"the rest", "thé rést".encode())
    assert FORMS["utf-8"].row(row, 11) == row
    assert FORMS["windows-1252"].row(row, 10).decode("cp1252").encode() == accents


def test_what_most_readers_find_is_right_and_the_others_are_marked() -> None:
    right = {"rows": "2", "a": "3"}
    found = verdicts({"one": right, "two": dict(right), "three": {"rows": "2", "a": "4"}, "four": "no such option"})
    assert found == {
        "one": None,
        "two": None,
        "three": "finds other values: a",
        "four": "cannot read it: no such option",
    }


@pytest.mark.parametrize("name", TABLES)
def test_headrace_has_the_layout_of_every_table(name: str) -> None:
    table = TABLES[name]
    layout = Layout.model_validate(headrace_layout(table.columns, table.dialect))
    assert layout.column_names() == [column.name for column in table.columns]
    assert (table.scale is None) != (table.rows is None)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.rows])
def test_rows_are_the_same_every_time_and_have_all_fields(name: str) -> None:
    table = TABLES[name]
    assert table.rows is not None
    rows = list(islice(table.rows(Random(1)), 100))
    assert rows == list(islice(table.rows(Random(1)), 100))
    assert len(set(rows)) == 100
    assert all(row.endswith("\n") for row in rows)
    if table.dialect.widths:
        assert {len(row) for row in rows} == {sum(table.dialect.widths) + 1}
    elif table.dialect.qualifier is None:
        assert {row.count(table.dialect.delimiter) for row in rows} == {len(table.columns) - 1}
        for column, text in zip(table.columns, rows[0].rstrip("\n").split(","), strict=True):
            if column.kind == "decimal":
                value = Decimal(text).as_tuple()
                assert len(value.digits) <= column.numbers[0] and value.exponent == -column.numbers[1]


def test_types_follow_from_the_declaration() -> None:
    types = {text: duckdb_type(Column("c", text)) for text in ("int32", "decimal(12,2)", "varchar(24)", "date")}
    assert list(types.values()) == ["INTEGER", "DECIMAL(12, 2)", "VARCHAR", "DATE"]


@pytest.mark.parametrize("kind", METHODS)
def test_methods_have_different_names_and_one_base_each(kind: str) -> None:
    names = [item.name for item in METHODS[kind]]
    assert len(set(names)) == len(names)
    assert METHODS[kind][0].base
