"""Small packages, sources and targets for the tests of planning. No file and no connection is involved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from headrace.model import (
    DataFlowTask,
    DataType,
    Destination,
    DuckdbConnection,
    FileSource,
    Layout,
    LoadOptions,
    RejectLimits,
)
from headrace.planning import Capabilities, CatalogColumn, CatalogTable, SourceSnapshot

STORING = Capabilities(
    target_type="sample",
    sink_kind="arrow",
    loads=("single",),
    stores_tables=True,
    ledger=True,
    case_insensitive_names=True,
    stored_kinds=frozenset({"int32", "int64", "decimal", "date", "string", "varchar", "char"}),
    max_decimal_precision=38,
    memory_share=0.4,
)
ORDERED = frozenset({"int32", "int64", "decimal", "date"})
SERVER = Capabilities(
    target_type="server",
    sink_kind="postgres",
    loads=("single", "staged", "view"),
    stores_tables=True,
    ledger=True,
    case_insensitive_names=False,
    stored_kinds=STORING.stored_kinds,
    max_decimal_precision=38,
    memory_share=0.0,
    writer_per_stream=True,
    hidden_tables=True,
    partition_loads=("staged",),
    partition_key_kinds={"range": ORDERED, "list": ORDERED | {"varchar", "char"}, "hash": ORDERED | {"varchar"}},
    core_routes={"range": ORDERED, "list": ORDERED | {"varchar"}, "hash": ORDERED | {"varchar"}},
    hash_keys={"int32": "integer", "int64": "integer", "decimal": "numeric", "date": "date", "varchar": "bytes"},
    commits_inside=True,
    maximum_name_bytes=63,
    freezes=True,
    keys_block_writers=True,
    options=frozenset({"lock", "check_constraints", "keep_identity", "disable_triggers", "analyze", "indexes"}),
)
# One process, one merged stream: every partition is a table of its own, or one table keeps the declaration.
EMBEDDED = replace(
    STORING,
    target_type="embedded",
    partition_loads=("view",),
    partition_key_kinds=SERVER.partition_key_kinds,
    core_routes={**SERVER.core_routes, "list": SERVER.partition_key_kinds["list"]},
    hash_keys=SERVER.hash_keys,
)
CASE_SENSITIVE = replace(STORING, case_insensitive_names=False)
DISCARDING = replace(STORING, target_type="void", sink_kind="null", stores_tables=False, stored_kinds=None)


def layout(**types: str) -> Layout:
    """A layout of nullable columns; a type that ends with `!` is not nullable."""
    columns = [
        {"name": name, "type": text.rstrip("!"), "nullable": not text.endswith("!")} for name, text in types.items()
    ]
    return Layout.model_validate({"delimiter": "|", "columns": columns})


ORDERS = layout(o_orderkey="int64!", o_totalprice="decimal(15,2)", o_orderdate="date", o_comment="varchar(79)")


def table(*columns: tuple[str, str], kind: str = "table") -> CatalogTable:
    """A table; a type that ends with `!` is NOT NULL, with `=` has a default, with `*` is computed.

    With `#` the table numbers the column itself.
    """
    found = []
    for name, text in columns:
        plain = text.rstrip("!=*#")
        known = None if plain == "STRUCT" else DataType.parse(plain)
        found.append(
            CatalogColumn(
                name=name,
                type=known,
                native_type=plain.upper(),
                nullable="!" not in text,
                has_default="=" in text,
                generated="*" in text,
                identity="#" in text,
            )
        )
    return CatalogTable("main", "orders", tuple(found), kind)


def source(slices: int = 4) -> SourceSnapshot:
    """One file of `slices` slices, 100 bytes each."""
    return SourceSnapshot(
        name="orders",
        files=[{"path": "/data/orders.tbl", "size_bytes": slices * 100, "modified_ns": 1, "inode": 2}],
        slices=[
            {"number": number + 1, "file": 0, "begin_byte": number * 100, "end_byte": (number + 1) * 100}
            for number in range(slices)
        ],
    )


def files(*slices_of_files: int) -> SourceSnapshot:
    """Several files of that many slices, 100 bytes each."""
    slices: list[dict[str, Any]] = []
    for file, count in enumerate(slices_of_files):
        for part in range(count):
            slices.append(
                {"number": len(slices) + 1, "file": file, "begin_byte": part * 100, "end_byte": (part + 1) * 100}
            )
    return SourceSnapshot(
        name="orders",
        files=[
            {"path": f"/data/orders.tbl.{file + 1}", "size_bytes": count * 100, "modified_ns": 1, "inode": file}
            for file, count in enumerate(slices_of_files)
        ],
        slices=slices,
    )


def task(
    *,
    target: Literal["create", "append", "replace"] = "replace",
    load: Literal["staged", "single", "view"] = "single",
    **members: Any,
) -> DataFlowTask:
    """A data flow from files to `warehouse.orders`.

    `layout`, `schema`, `columns`, `table`, `partition`, `partitions`, `commit`, `options`, `takes_back`, `rejects`,
    `folder` and `files` can be given.
    """
    return DataFlowTask(
        id="load_orders",
        name="load_orders",
        when=True,
        source=FileSource(
            "orders",
            "inbox",
            members.get("folder", Path("/data")),
            members.get("files", ["orders.tbl"]),
            members.get("layout", ORDERS),
        ),
        destination=Destination(
            name="sales",
            connection=DuckdbConnection("warehouse", Path("/data/w.duckdb")),
            schema=members.get("schema"),
            table=members.get("table", "orders"),
            target=target,
            load=load,
            columns=members.get("columns"),
            partition=members.get("partition"),
            partitions=members.get("partitions", ()),
            commit=members.get("commit"),
            options=members.get("options", LoadOptions()),
            takes_back=members.get("takes_back", False),
        ),
        rejects=members.get("rejects", RejectLimits()),
    )
