"""The JSON Schemas: valid, complete, up to date, and in agreement with the loader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from headrace.model import environments_schema, layout_schema, package_schema
from headrace.model.yaml_reader import read_document
from tests.snapshots import assert_file
from tests.unit.model.packages import COMPLETE, change

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "tpch"


def value_of(path: Path) -> object:
    """A YAML file as JSON has it."""
    return json.loads(json.dumps(read_document(path, path.name).value, default=float))


def errors_of(schema: dict[str, Any], value: object) -> list[str]:
    return [f"{list(error.path)}: {error.message}" for error in Draft202012Validator(schema).iter_errors(value)]


def settings_of(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every key of every mapping, its schema, and whether it is required."""
    for name, definition in {"package": schema, **schema.get("$defs", {})}.items():
        for key, setting in definition.get("properties", {}).items():
            yield f"{name}.{key}", setting, key in definition.get("required", [])


def types_of(setting: dict[str, Any]) -> set[object]:
    """The types of the alternatives of a setting."""
    return {choice.get("type") for choice in setting.get("anyOf", ())}


@pytest.mark.parametrize(
    "schema",
    [package_schema(), layout_schema(), environments_schema()],
    ids=["package", "layout", "environments"],
)
def test_the_schema_is_valid_and_describes_every_key(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)
    for name, setting, required in settings_of(schema):
        assert setting.get("description"), name
        # An empty mapping or list is what anybody expects where nothing is said; made defaults are described.
        is_made = "default" not in setting and {setting.get("type"), *types_of(setting)} & {"object", "array"}
        assert required or "default" in setting or is_made or name.endswith(".rejects"), name
    assert "x-headrace" not in json.dumps(schema)


def test_the_reference_page_explains_every_key() -> None:
    reference = ROOT / "docs" / "reference"
    page = "".join((reference / name).read_text(encoding="utf-8") for name in ("package.md", "tasks.md"))
    missing = [name for name, _, _ in settings_of(package_schema()) if f"`{name.split('.')[1]}`" not in page]
    assert missing == []


@pytest.mark.parametrize("name", ["package", "layout", "environments"])
def test_the_stored_schemas_are_up_to_date(name: str) -> None:
    schema = {"package": package_schema, "layout": layout_schema, "environments": environments_schema}[name]()
    assert_file(ROOT / "docs" / "reference" / f"{name}.schema.json", json.dumps(schema, indent=2))


def test_the_example_fits() -> None:
    assert errors_of(package_schema(), value_of(EXAMPLE / "load.yaml")) == []
    layouts = sorted((EXAMPLE / "layouts").glob("*.yaml"))
    assert len(layouts) == 8
    for layout in layouts:
        assert errors_of(layout_schema(), value_of(layout)) == []


GOOD = {
    "complete": COMPLETE,
    "streams_by_reference": change("package: sales", "package: sales\nstreams: ${mode}"),
    "memory_by_reference": change("package: sales", 'package: sales\nmemory: "${mode}"'),
    "files_by_reference": change("files: orders.tbl", "files: [a, '${mode}']"),
    "choice_by_expression": change("layout: orders}", "layout: orders, missing: {expr: \"'skip'\"}}"),
    "condition": change("    data_flow:", '    when: "1 = 1"\n    data_flow:'),
    "columns": change("target: replace", "target: replace, columns: {a: id}"),
    "postgres_connection": change(
        "{type: duckdb, path: w.duckdb}",
        "{type: postgres, url: '${env:HOME}', port: 5, sslmode: prefer, ledger: {schema: x}}",
    ),
    "ledger_off": change("{type: duckdb, path: w.duckdb}", "{type: postgres, ledger: off}"),
    "partition": change("target: replace", "target: replace, partition: {range: {column: id, bounds: files}}"),
    "partition_by_expression": change(
        "target: replace", "target: replace, partition: {range: {column: {expr: \"nullif('id', 'id')\"}}}"
    ),
    "options": change(
        "target: replace",
        "target: replace, lock: true, check_constraints: false, keep_identity: false, disable_triggers: true, "
        "analyze: true, indexes: before",
    ),
    "null_connection": change("{type: duckdb, path: w.duckdb}", "{type: null}"),
    "generate": change("rows: {connection: inbox, files: orders.tbl, layout: orders}",
                       "rows: {generate: {tpch: orders, scale: 0.1, chunks: '${n}'}, layout: orders}"),
}  # fmt: skip
BAD = {
    "unknown_key": change("target: replace", "target: replace, tagret: x"),
    "choice": change("target: replace", "target: upsert"),
    "version": change("headrace: 1", "headrace: 2"),
    "type": change("type: int64", "type: bigint"),
    "streams": change("package: sales", "package: sales\nstreams: 0"),
    "memory": change("package: sales", "package: sales\nmemory: 1gb"),
    "connection_type": change("type: duckdb", "type: sqlserver"),
    "reference_in_name": change("package: sales", 'package: "${mode}"'),
    "reserved_parameter": change("  day:", "  system:"),
    "expression_outside_tasks": change("package: sales", 'package: sales\nstreams: {expr: "1"}'),
    "ledger": change("{type: duckdb, path: w.duckdb}", "{type: postgres, ledger: on}"),
    "partition_bounds": change("target: replace", "target: replace, partition: {range: {column: id, bounds: month}}"),
    "option": change("target: replace", "target: replace, indexes: never"),
    "missing_key": change(", target: replace", ""),
}


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_the_schema_agrees_with_the_loader(name: str, tmp_path: Path) -> None:
    path = tmp_path / "package.yaml"
    path.write_text({**GOOD, **BAD}[name])
    assert (errors_of(package_schema(), value_of(path)) == []) is (name in GOOD), errors_of(
        package_schema(), value_of(path)
    )
