"""The files of a table on disk: a large set of eight files, and a small set that is its first two."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from bench.columns import headrace_layout
from bench.tables import Table

FILES = 8
SMALL_FILES = 2
SEED = 20261120
# Rows that differ, per table: more text than any cache keeps, and than a branch predictor learns.
_DISTINCT_BYTES = 25_000_000
# Changes when the rows of any table change.
_FORMAT = 1


@dataclass(frozen=True)
class DataSet:
    """Files of one table in one folder; `also`: tables beside it that are read as well.

    `chosen`: only these of the files.
    """

    table: Table
    folder: Path
    also: tuple[Table, ...] = ()
    chosen: tuple[Path, ...] = ()

    @property
    def files(self) -> list[Path]:
        """In file order."""
        return list(self.chosen) or sorted(self.folder.glob(f"{self.table.name}.tbl.*"))

    @property
    def size_bytes(self) -> int:
        """All files together."""
        files = [file for table in (self.table, *self.also) for file in self.folder.glob(f"{table.name}.tbl.*")]
        return sum(file.stat().st_size for file in files)


def prepare(table: Table, data: Path, factor: float = 1.0) -> tuple[DataSet, DataSet]:
    """The small and the large set of a table, made now or taken from an earlier call; `factor` scales their sizes.

    The files are read once, so that they are in the page cache.
    """
    folder = data / f"{table.name}-{factor:g}"
    small, large = DataSet(table, folder / "small"), DataSet(table, folder / "large")
    stamp = folder / "complete.json"
    wanted = {"format": _FORMAT, "table": repr((table.columns, table.dialect, table.scale, table.megabytes))}
    if not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        large.folder.mkdir(parents=True)
        small.folder.mkdir()
        if table.scale is not None:
            _generate(table, table.scale * factor, large.folder)
        else:
            _write(table, round(table.megabytes * factor * 1e6), large.folder)
        for file in large.files[:SMALL_FILES]:
            (small.folder / file.name).hardlink_to(file)
        stamp.write_text(json.dumps(wanted), encoding="utf-8")
    for file in large.files:
        read_once(file)
    return small, large


def read_once(file: Path) -> None:
    """So that the file is in the page cache."""
    with file.open("rb", buffering=0) as stream:
        while stream.read(1 << 22):
            pass


def prepare_tpch(tables: tuple[Table, ...], scale: float, data: Path, name: str = "scale") -> DataSet:
    """Several TPC-H tables of one scale in one folder, which is called by `name`."""
    folder = data / f"{name}-{scale:g}"
    stamp = folder / "complete.json"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for table in tables:
            _generate(table, scale, folder)
        stamp.write_text("{}", encoding="utf-8")
    return DataSet(tables[0], folder, tables[1:])


def prepare_together(
    tables: tuple[Table, ...], scale: float, data: Path, name: str = "scale"
) -> tuple[DataSet, DataSet]:
    """TPC-H tables whose files belong together by their numbers: the small set has the first ones of each."""
    whole = prepare_tpch(tables, scale, data, name)
    small = DataSet(tables[0], whole.folder / "small", tables[1:])
    small.folder.mkdir(exist_ok=True)
    for table in tables:
        for file in sorted(whole.folder.glob(f"{table.name}.tbl.*")):
            read_once(file)
            link = small.folder / file.name
            if int(file.suffix[1:]) <= SMALL_FILES and not link.exists():
                link.hardlink_to(file)
    return small, whole


def write_join_package(left: Table, right: Table, path: Path) -> None:
    """A Headrace package that joins the files of two tables by their first columns, and discards the rows."""
    sources = {
        table.name: {"connection": "files", "files": [f"{table.name}.tbl.*"], "layout": table.name}
        for table in (left, right)
    }
    key = {left.columns[0].name: right.columns[0].name}
    flow = {
        "sources": sources,
        "transforms": {"joined": {"join": {"left": left.name, "right": right.name, "on": key}}},
        "destinations": {
            "loaded": {"input": "joined", "connection": "warehouse", "table": "joined", "target": "replace"}
        },
    }
    package = {
        "headrace": 1,
        "package": "bench",
        "parameters": {"data": {"type": "path", "required": True}},
        "connections": {"files": {"type": "files", "path": "${data}"}, "warehouse": {"type": "null"}},
        "layouts": {table.name: headrace_layout(table.columns, table.dialect) for table in (left, right)},
        "tasks": {"join": {"data_flow": flow}},
    }
    path.write_text(json.dumps(package, indent=1), encoding="utf-8")


def write_package(tables: tuple[Table, ...], path: Path, settings: Mapping[str, Any]) -> None:
    """A Headrace package that loads the tables of a folder, one after the other. JSON is YAML.

    `settings`: further ones of the destinations.
    """

    def task(table: Table) -> dict[str, Any]:
        source = {"connection": "files", "files": [f"{table.name}.tbl.*"], "layout": table.name}
        loaded = {"input": "rows", "connection": "warehouse", "table": table.name, "target": "replace"}
        return {"data_flow": {"sources": {"rows": source}, "destinations": {"loaded": {**loaded, **settings}}}}

    package = {
        "headrace": 1,
        "package": "bench",
        "parameters": {"data": {"type": "path", "required": True}},
        "connections": {"files": {"type": "files", "path": "${data}"}, "warehouse": {"type": "null"}},
        "layouts": {table.name: headrace_layout(table.columns, table.dialect) for table in tables},
        "tasks": {f"load_{table.name}": task(table) for table in tables},
    }
    path.write_text(json.dumps(package, indent=1), encoding="utf-8")


def _generate(table: Table, scale: float, folder: Path) -> None:
    from headrace import core

    generation = core.generate_tpch(
        {
            "scale": scale,
            "chunks": FILES,
            "chunk": None,
            "tables": [table.name],
            "folder": str(folder.resolve()),
            "threads": 2,
        }
    )
    while (result := generation.join(1.0)) is None:
        pass
    core.raise_for_error(result)


def _write(table: Table, size_bytes: int, folder: Path) -> None:
    assert table.rows is not None
    file_bytes = size_bytes // FILES
    block = _text(table.rows(Random(SEED)), min(file_bytes, _DISTINCT_BYTES))
    for number in range(1, FILES + 1):
        with (folder / f"{table.name}.tbl.{number}").open("wb") as file:
            for _ in range(max(1, round(file_bytes / len(block)))):
                file.write(block)


def _text(rows: Iterator[str], size_bytes: int) -> bytes:
    lines, length = list[str](), 0
    while length < size_bytes:
        line = next(rows)
        lines.append(line)
        length += len(line)
    return "".join(lines).encode()
