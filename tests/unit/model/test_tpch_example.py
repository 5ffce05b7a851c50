"""The example that users read first: examples/tpch/load.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import CommandLineError
from headrace.model import BoundPackage, FileSource, load_package
from tests.snapshots import assert_snapshot

EXAMPLE = Path(__file__).parents[3] / "examples" / "tpch" / "load.yaml"
TABLES = ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"]


def load(*sets: str) -> BoundPackage:
    return load_package(EXAMPLE, sets=["data=/data", *sets], connections=["warehouse=duckdb:///x.duckdb"], environ={})


def sources(package: BoundPackage) -> dict[str, FileSource]:
    return {task.destination.table: task.source for task in package.data_flows() if isinstance(task.source, FileSource)}


def test_eight_tables_one_after_the_other() -> None:
    package = load()
    assert [task.id for task in package.data_flows()] == [f"load_tables[{table}].load" for table in TABLES]
    assert package.streams == 8
    for task in package.data_flows():
        assert (task.destination.target, task.destination.load, task.rejects.flow.limit) == ("replace", "staged", 0)
    assert sources(package)["orders"].patterns == ["orders.tbl", "orders.tbl.*"]


def test_only_a_table_that_was_asked_for_must_have_files() -> None:
    assert {source.missing for source in sources(load()).values()} == {"skip"}
    asked = sources(load("tables=orders,nation", "mode=single", "streams=2"))
    assert list(asked) == ["orders", "nation"]
    assert {source.missing for source in asked.values()} == {"error"}


def test_unknown_table() -> None:
    with pytest.raises(CommandLineError) as raised:
        load("tables=lineitems")
    assert_snapshot("example_unknown_table", raised.value.render())


def test_data_is_required() -> None:
    with pytest.raises(CommandLineError) as raised:
        load_package(EXAMPLE, environ={})
    assert_snapshot("example_data_missing", raised.value.render())


def test_the_types_are_those_of_the_record() -> None:
    lines = []
    for table, source in sources(load()).items():
        layout = source.layout
        assert (layout.delimiter, layout.trailing_delimiter, layout.header) == ("|", True, "none")
        assert not any(column.nullable for column in layout.columns)
        lines.append(f"{table}: " + ", ".join(f"{column.name} {column.type}" for column in layout.columns))
    assert_snapshot("example_types", "\n".join(lines))


def test_the_six_big_tables_are_partitioned_by_their_first_key() -> None:
    partitions = {
        task.destination.table: task.destination.partition and task.destination.partition.column
        for task in load().data_flows()
    }
    assert partitions.pop("nation") is None
    assert partitions.pop("region") is None
    first_columns = {table: source.layout.columns[0] for table, source in sources(load()).items()}
    assert partitions == {table: first_columns[table].name for table in partitions}
    assert len(partitions) == 6
