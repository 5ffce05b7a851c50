"""What a package means once it is bound."""

from __future__ import annotations

import json
import pickle
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from headrace.errors import PackageError, PackageNotFoundError
from headrace.model import (
    DataFlowTask,
    DuckdbConnection,
    FilesConnection,
    FileSource,
    GenerateSource,
    NullConnection,
    RejectBounds,
    RejectLimits,
    describe,
    load_package,
)
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import COMPLETE, change, load, message

SOURCE = "rows: {connection: inbox, files: orders.tbl, layout: orders}"


def flow(folder: Path, text: str, **options: object) -> DataFlowTask:
    """The only data flow of a package."""
    (only,) = load(folder, text, **options).data_flows()  # type: ignore[arg-type]
    return only


def file_source(folder: Path, text: str, **options: object) -> FileSource:
    source = flow(folder, text, **options).source
    assert isinstance(source, FileSource)
    return source


def test_the_complete_package(tmp_path: Path) -> None:
    package = load(tmp_path)
    assert package.name == "sales"
    assert package.path == tmp_path / "package.yaml"
    assert package.memory_bytes == 1_000_000_000
    assert package.parameters == {"day": date(2024, 1, 31), "mode": "staged", "tables": ["orders", "returns"]}
    assert package.given == {"day": False, "mode": False, "tables": False}
    assert package.secrets == set()
    (definition,) = package.tasks
    assert (definition.id, definition.kind, definition.constraints) == ("load", "data_flow", ())
    (task,) = package.flows
    assert (task.id, task.name, task.when, task.rejects) == ("load", "load", True, RejectLimits())
    assert isinstance(task.source, FileSource)
    assert task.source.folder == tmp_path / "data"
    assert task.source.patterns == ["orders.tbl"]
    assert (task.source.missing, task.source.empty) == ("error", "error")
    assert task.source.layout.column_names() == ["id", "amount"]
    assert task.destination.connection == DuckdbConnection("warehouse", tmp_path / "w.duckdb")
    assert (task.destination.schema, task.destination.table) == (None, "orders")
    assert (task.destination.target, task.destination.load, task.destination.columns) == ("replace", "staged", None)


def test_bound_flows_pickle(tmp_path: Path) -> None:
    """They are what another process is told; the package itself can bind more, which only this one does."""
    package = load(tmp_path)
    assert pickle.loads(pickle.dumps(package.flows)) == package.flows


def test_streams_come_from_the_command_line_then_the_package(tmp_path: Path) -> None:
    text = change("package: sales", "package: sales\nstreams: 3")
    assert load(tmp_path, text).streams == 3
    assert load(tmp_path, text, streams=5).streams == 5
    assert load(tmp_path).streams >= 1


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MB", 64_000_000), ("1GB", 10**9), ("512MiB", 2**29), ("2 GiB", 2**31), ("1.5GB", 1_500_000_000)],
)
def test_memory(tmp_path: Path, text: str, size: int) -> None:
    assert load(tmp_path, change("package: sales", f"package: sales\nmemory: {text}")).memory_bytes == size


# References ---------------------------------------------------------------------------------------------------


def test_a_whole_reference_keeps_its_type(tmp_path: Path) -> None:
    text = change("package: sales", "package: sales\nstreams: ${count}")
    text = change("  mode:", "  count: {type: integer, default: 8}\n  mode:", text)
    text = change("files: orders.tbl", 'files: "${tables}"', text)
    package = load(tmp_path, text, sets=["count=2", "tables=a.tbl,b.tbl"])
    assert package.streams == 2
    assert file_source(tmp_path, text, sets=["tables=a.tbl,b.tbl"]).patterns == ["a.tbl", "b.tbl"]


def test_a_reference_inside_a_text_is_written_out(tmp_path: Path) -> None:
    text = change("files: orders.tbl", 'files: "orders_${day}_${mode}.tbl"')
    assert file_source(tmp_path, text).patterns == ["orders_2024-01-31_staged.tbl"]
    assert file_source(tmp_path, text, sets=["day=2025-12-31"]).patterns == ["orders_2025-12-31_staged.tbl"]


def test_a_date_in_a_text_setting_becomes_text(tmp_path: Path) -> None:
    assert flow(tmp_path, change("table: orders", 'table: "${day}"')).destination.table == "2024-01-31"


def test_an_escaped_reference_is_text(tmp_path: Path) -> None:
    text = change("table: orders", 'table: "$${day}_$5_${mode}"')
    assert flow(tmp_path, text).destination.table == "${day}_$5_staged"


def test_descriptions_may_hold_anything(tmp_path: Path) -> None:
    text = change("package: sales", 'package: sales\ndescription: "set ${nothing} and ${"')
    assert load(tmp_path, text).description == "set ${nothing} and ${"


def test_environment_and_files(tmp_path: Path) -> None:
    (tmp_path / "folder.txt").write_text("deep/down\n")
    text = change("path: data", 'path: "${file:folder.txt}/${env:AREA}"')
    text = change("package: sales", "package: sales\nstreams: ${env:STREAMS}", text)
    package = load(tmp_path, text, environ={"AREA": "north", "STREAMS": "4"})
    assert package.streams == 4
    assert package.connections["inbox"] == FilesConnection("inbox", tmp_path / "deep/down/north")
    assert package.secrets == {"deep/down", "north"}


def test_system_values(tmp_path: Path) -> None:
    text = change("table: orders", 'table: "${system.package}_${system.user}_${system.machine}"')
    assert flow(tmp_path, text.replace(".machine", ".package")).destination.table.startswith("sales_")


def test_default_from_the_environment(tmp_path: Path) -> None:
    text = change("default: 2024-01-31", 'default: "${env:DAY}"')
    assert load(tmp_path, text, environ={"DAY": "2025-01-01"}).parameters["day"] == date(2025, 1, 1)
    assert load(tmp_path, text, sets=["day=2026-01-01"]).parameters["day"] == date(2026, 1, 1)
    assert "does not fit" in message(tmp_path, text, environ={"DAY": "soon"})


@pytest.mark.parametrize("canary", ['hunter2-"\\canary', "canary-" * 30, "line one canary\nline two canary"])
def test_a_secret_reaches_no_message_and_no_description(tmp_path: Path, canary: str) -> None:
    wrong = [
        change("target: replace", "target: '${env:SECRET}'"),
        change("connection: inbox", "connection: '${env:SECRET}'"),
        change("table: orders", "table: 'a.b.c.${env:SECRET}'"),
        change("table: orders", "table: '${env:SECRET}.b.c'"),
        change("layouts:\n", "layouts:\n  other: {file: '${env:SECRET}/x.yaml'}\n"),
        change("package: sales", "package: sales\nmemory: ${env:SECRET}"),
        change("package: sales", "package: sales\nstreams: ${env:SECRET}"),
        change("default: 2024-01-31", "default: '${env:SECRET}'"),
        change("type: date, default: 2024-01-31", "type: string, default: '${env:SECRET}'").replace(
            "    data_flow", '    when: "day::INTEGER = 1"\n    data_flow'
        ),
    ]
    for text in wrong:
        rendered = message(tmp_path, text, environ={"SECRET": canary})
        assert "canary" not in rendered, rendered
        assert "***" in rendered
    package = load(tmp_path, change("path: data", 'path: "${env:SECRET}/x"'), environ={"SECRET": canary})
    assert canary in package.secrets
    assert "canary" not in json.dumps(describe(package))
    assert "canary" not in json.dumps(package.connections["inbox"].describe())
    assert "secrets" not in repr(package.connections["inbox"])


# Parameters ---------------------------------------------------------------------------------------------------


def test_paths_are_relative_to_where_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    text = change("  mode:", "  folder: {type: path, default: data}\n  mode:").replace(
        "path: data", 'path: "${folder}"'
    )
    assert file_source(tmp_path, text).folder == tmp_path / "data"
    assert file_source(tmp_path, text, sets=["folder=data"]).folder == tmp_path / "elsewhere" / "data"
    assert file_source(tmp_path, text, sets=["folder=/x/../y"]).folder == Path("/y")


def test_parameter_types(tmp_path: Path) -> None:
    text = change(
        "  mode:",
        "  rate: {type: decimal, default: 0.10}\n  full: {type: boolean, default: true}\n"
        "  none: {type: integer}\n  days: {type: list, items: date, default: [2024-01-01]}\n  mode:",
    )
    parameters = load(tmp_path, text).parameters
    assert str(parameters["rate"]) == "0.10"
    assert parameters["full"] is True
    assert parameters["none"] is None
    assert parameters["days"] == [date(2024, 1, 1)]
    given = load(tmp_path, text, sets=["rate=1.50", "full=false", "none=-3", "days="])
    assert given.parameters["rate"] == Decimal("1.50")
    assert given.parameters["full"] is False
    assert given.parameters["none"] == -3
    assert given.parameters["days"] == []
    assert given.given["days"] and not given.given["mode"]


# Expressions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("when", "result"),
    [
        ("true", True),
        ("false", False),
        ("\"mode = 'staged'\"", True),
        ("\"day > DATE '2024-06-01'\"", False),
        ("\"len(tables) = 2 AND list_contains(tables, 'orders')\"", True),
        ('"given.mode"', False),
        ('"given.day"', True),
        ("\"system.package = 'sales' -- a comment\"", True),
    ],
)
def test_conditions(tmp_path: Path, when: str, result: bool) -> None:
    text = change("    data_flow:", f"    when: {when}\n    data_flow:")
    assert flow(tmp_path, text, sets=["day=2024-01-31"]).when is result


def test_expressions_in_settings(tmp_path: Path) -> None:
    text = change(
        "layout: orders}", "layout: {expr: \"'ord' || 'ers'\"}, missing: {expr: \"if(given.day, 'error', 'skip')\"}}"
    )
    text = change("table: orders", 'table: {expr: "year(day)"}', text)
    text = change("    data_flow:\n", '    data_flow:\n      rejects: {limit: {expr: "10 * len(tables)"}}\n', text)
    task = flow(tmp_path, text)
    assert isinstance(task.source, FileSource)
    assert task.source.missing == "skip"
    assert task.destination.table == "2024"
    assert task.rejects == RejectLimits(RejectBounds(20))


def test_expressions_see_parameters_of_every_type(tmp_path: Path) -> None:
    text = change(
        "  mode:",
        "  rate: {type: decimal, default: 0.10}\n"
        "  none: {type: date}\n"
        "  big: {type: integer, default: 12345678901234567890}\n"
        "  empty: {type: list, items: decimal, default: []}\n"
        "  few: {type: list, items: integer, default: [1, 2]}\n"
        "  mode:",
    )
    condition = "rate = 0.10 AND none IS NULL AND big > 12345678901234567889 AND len(empty) = 0 AND list_sum(few) = 3"
    assert flow(tmp_path, change("    data_flow:", f'    when: "{condition}"\n    data_flow:', text)).when


def test_expressions_reach_no_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("hunter2\n")
    condition = f"(SELECT count(*) FROM read_csv('{secret}')) = 1"
    rendered = message(tmp_path, change("    data_flow:", f'    when: "{condition}"\n    data_flow:'))
    assert "disabled" in rendered or "Permission" in rendered


def test_expr_is_a_column_name_in_a_column_mapping(tmp_path: Path) -> None:
    text = change("target: replace", "target: replace, columns: {expr: id}")
    assert flow(tmp_path, text).destination.columns == {"expr": "id"}


# Connections and layouts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("duckdb:///abs/x.duckdb", "/abs/x.duckdb"),
        ("duckdb:/abs/x.duckdb", "/abs/x.duckdb"),
        ("duckdb:rel.duckdb", "CURRENT/rel.duckdb"),
        ("duckdb://rel.duckdb", "CURRENT/rel.duckdb"),
        ("duckdb:../a b%20.duckdb", "PARENT/a b%20.duckdb"),
    ],
)
def test_duckdb_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, path: str) -> None:
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    expected = path.replace("CURRENT", str(tmp_path / "current")).replace("PARENT", str(tmp_path))
    text = change("path: w.duckdb", "path: w.duckdb, lock_timeout_seconds: 5")
    package = load(tmp_path, text, connections=[f"warehouse={url}"])
    assert package.connections["warehouse"] == DuckdbConnection("warehouse", Path(expected), 5)
    assert package.data_flows()[0].destination.connection == package.connections["warehouse"]


@pytest.mark.parametrize(("sets", "seconds"), [([], 7), (["timeout=9"], 9)])
def test_a_lock_timeout_by_reference_is_kept_too(tmp_path: Path, sets: list[str], seconds: int) -> None:
    text = change("path: w.duckdb", 'path: "${env:SECRET}", lock_timeout_seconds: "${timeout}"').replace(
        "parameters:\n", "parameters:\n  timeout: {type: integer, default: 7}\n"
    )
    package = load(tmp_path, text, sets=sets, connections=["warehouse=duckdb:other.duckdb"])
    connection = package.connections["warehouse"]
    assert isinstance(connection, DuckdbConnection) and connection.lock_timeout_seconds == seconds


def test_other_urls(tmp_path: Path) -> None:
    package = load(tmp_path, connections=["warehouse=null:", "inbox=files:///somewhere"])
    assert package.connections["warehouse"] == NullConnection("warehouse")
    assert file_source(tmp_path, COMPLETE, connections=["inbox=files:///somewhere"]).folder == Path("/somewhere")


def test_an_overridden_connection_needs_no_secrets(tmp_path: Path) -> None:
    text = change("path: w.duckdb", 'path: "${env:NOT_SET}"')
    assert load(tmp_path, text, connections=["warehouse=null:"]).connections["warehouse"].type == "null"


@pytest.mark.parametrize(
    ("written", "qualifier"), [("'\"'", '"'), ('"\'"', "'"), ('"\\t"', "\t"), ("null", None), ('"`"', "`")]
)
def test_the_qualifier_of_a_layout(tmp_path: Path, written: str, qualifier: str | None) -> None:
    layout = file_source(tmp_path, change('delimiter: "|"', f'delimiter: "|"\n    qualifier: {written}')).layout
    assert (layout.qualifier, layout.to_core()["qualifier"]) == (qualifier, qualifier)


@pytest.mark.parametrize("spelling", ["null", '"null"', "~"])
def test_the_null_connection_as_yaml_null_or_as_text(tmp_path: Path, spelling: str) -> None:
    text = change("{type: duckdb, path: w.duckdb}", f"{{type: {spelling}}}")
    assert load(tmp_path, text).connections["warehouse"] == NullConnection("warehouse")


def layout_in_file(folder: Path, layout: str) -> str:
    (folder / "layouts").mkdir(exist_ok=True)
    (folder / "layouts" / "orders.yaml").write_text(layout)
    start, end = COMPLETE.index("  orders:\n"), COMPLETE.index("tasks:")
    return COMPLETE[:start] + "  orders: {file: layouts/orders.yaml}\n" + COMPLETE[end:]


def test_a_layout_in_a_file(tmp_path: Path) -> None:
    text = layout_in_file(tmp_path, "delimiter: ';'\nnull_tokens: [NA]\ncolumns:\n  - {name: a, type: date}\n")
    layout = file_source(tmp_path, text).layout
    core = layout.to_core()
    assert (core["delimiter"], core["row_end"], core["qualifier"]) == (";", "auto", None)
    assert core["columns"] == [
        {
            "name": "a",
            "type": {"kind": "date"},
            "nullable": True,
            "delimiter": None,
            "qualified": True,
            "trim": "none",
            "empty": "null",
            "qualified_empty_is_null": False,
            "null_tokens": ["NA"],
            "qualified_null_tokens": False,
        }
    ]
    assert layout.to_core({"a"})["columns"][0]["nullable"] is False


@pytest.mark.parametrize(
    ("text", "row_end"),
    [
        ("auto", "auto"),
        ("lf", {"exactly": "\n"}),
        ("crlf", {"exactly": "\r\n"}),
        ("cr", {"exactly": "\r"}),
        ("@@", {"exactly": "@@"}),
    ],
)
def test_row_ends_have_names(tmp_path: Path, text: str, row_end: object) -> None:
    package = layout_in_file(tmp_path, f"delimiter: ';'\nrow_end: '{text}'\ncolumns:\n  - {{name: a, type: date}}\n")
    assert file_source(tmp_path, package).layout.to_core()["row_end"] == row_end


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("unknown_key", "delimiter: ';'\ncolums:\n  - {name: a, type: date}\n"),
        ("bad_type", "delimiter: ';'\ncolumns:\n  - {name: a, type: date}\n  - {name: b, type: datetime}\n"),
        ("not_yaml", "delimiter: ';\ncolumns: [\n"),
        ("not_a_mapping", "- a\n"),
        ("reference", "delimiter: ${d}\ncolumns:\n  - {name: a, type: date}\n"),
    ],
)
def test_problems_in_a_layout_file_name_that_file(tmp_path: Path, name: str, layout: str) -> None:
    rendered = message(tmp_path, layout_in_file(tmp_path, layout))
    assert "layouts/orders.yaml:" in rendered
    assert_snapshot(f"layout_file_{name}", rendered)


def test_an_inline_layout_in_a_source(tmp_path: Path) -> None:
    text = change("layout: orders}", 'layout: {delimiter: "\\t", columns: [{name: a, type: json}]}}')
    assert file_source(tmp_path, text).layout.delimiter == "\t"


def test_the_hash_covers_package_and_layout_files(tmp_path: Path) -> None:
    layout = "delimiter: ';'\ncolumns:\n  - {name: a, type: date}\n"
    text = layout_in_file(tmp_path, layout)
    first = load(tmp_path, text).content_hash
    assert len(first) == 64
    assert load(tmp_path, text, sets=["mode=view"], streams=2).content_hash == first
    assert load(tmp_path, text + "# comment\n").content_hash != first
    layout_in_file(tmp_path, layout + "# comment\n")
    assert load(tmp_path, text).content_hash != first


# Tasks --------------------------------------------------------------------------------------------------------


def test_schema_and_columns(tmp_path: Path) -> None:
    text = change(
        "table: orders, target: replace", "table: sales.orders, target: append, columns: {key: id, total: amount}"
    )
    destination = flow(tmp_path, text).destination
    assert (destination.schema, destination.table) == ("sales", "orders")
    assert destination.columns == {"key": "id", "total": "amount"}


def test_generated_rows(tmp_path: Path) -> None:
    text = change(SOURCE, "rows: {generate: {tpch: orders, scale: 0.01, chunks: 4}, layout: orders}")
    source = flow(tmp_path, text).source
    assert isinstance(source, GenerateSource)
    assert (source.generator, source.table, source.scale, source.chunks) == ("tpch", "orders", 0.01, 4)


@pytest.mark.parametrize(("table", "chunks"), [("orders", 6), ("nation", 1)])
def test_chunks_default_to_the_streams(tmp_path: Path, table: str, chunks: int) -> None:
    text = change(SOURCE, f"rows: {{generate: {{tpch: {table}}}, layout: orders}}")
    source = flow(tmp_path, text, streams=6).source
    assert isinstance(source, GenerateSource)
    assert (source.scale, source.chunks) == (1.0, chunks)


NESTED = (
    COMPLETE[: COMPLETE.index("tasks:")]
    + """\
tasks:
  outer:
    when: "len(tables) > 0"
    foreach:
      item: table
      in: ${tables}
      tasks:
        inner:
          foreach:
            item: year
            in: [2023, 2024]
            tasks:
              load:
                when: '"table" = ''orders'' OR year = 2024'
                data_flow:
                  sources:
                    rows: {connection: inbox, files: "${table}_${year}.tbl", layout: orders}
                  destinations:
                    out: {input: rows, connection: warehouse, table: "${table}", target: append}
"""
)


def test_nested_foreach(tmp_path: Path) -> None:
    package = load(tmp_path, NESTED)
    assert [task.id for task in package.data_flows()] == [
        "outer[orders].inner[2023].load",
        "outer[orders].inner[2024].load",
        "outer[returns].inner[2023].load",
        "outer[returns].inner[2024].load",
    ]
    assert [task.when for task in package.data_flows()] == [True, True, False, True]
    assert [task.source.patterns for task in package.data_flows() if isinstance(task.source, FileSource)] == [
        ["orders_2023.tbl"],
        ["orders_2024.tbl"],
        ["returns_2023.tbl"],
        ["returns_2024.tbl"],
    ]
    assert {flow.definition for flow in package.flows} == {"outer.inner.load"}
    assert [(task.id, task.kind) for task in package.all_tasks()] == [
        ("outer", "foreach"),
        ("outer.inner", "foreach"),
        ("outer.inner.load", "data_flow"),
    ]


def test_foreach_over_nothing(tmp_path: Path) -> None:
    package = load(tmp_path, NESTED, sets=["tables="])
    assert package.flows == []
    assert [task.id for task in package.all_tasks()][-1] == "outer.inner.load"


def test_foreach_over_an_expression(tmp_path: Path) -> None:
    text = NESTED.replace("in: [2023, 2024]", 'in: {expr: "range(2020, 2023)"}')
    assert len(load(tmp_path, text, sets=["tables=orders"]).data_flows()) == 3


# Files that are not packages ----------------------------------------------------------------------------------


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PackageNotFoundError) as raised:
        load_package(tmp_path / "nothing.yaml")
    assert raised.value.exit_code == 4
    assert_snapshot("package_not_found", raised.value.render().replace(f"{tmp_path}/", ""))


def test_folder_instead_of_file(tmp_path: Path) -> None:
    with pytest.raises(PackageError) as raised:
        load_package(tmp_path)
    assert raised.value.exit_code == 5
    assert_snapshot("package_is_folder", raised.value.render().replace(str(tmp_path), "folder"))


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_impossible_paths(path: str) -> None:
    with pytest.raises(PackageError) as raised:
        load_package(path)
    assert raised.value.exit_code == 5


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "package.yaml"
    path.write_text(COMPLETE)

    def refuse(self: Path, mode: str = "r") -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)  # a superuser may read every file
        with pytest.raises(PackageError) as raised:
            load_package(path)
    assert_snapshot("package_unreadable", raised.value.render().replace(f"{tmp_path}/", ""))


def test_an_example_of_everything_described(tmp_path: Path) -> None:
    package = load(tmp_path, f"{NESTED}max_concurrent: 3\n", sets=["tables=orders"], streams=2)
    text = (
        json.dumps(describe(package), indent=2).replace(str(tmp_path), "FOLDER").replace(package.content_hash, "HASH")
    )
    assert_snapshot("describe", text)
