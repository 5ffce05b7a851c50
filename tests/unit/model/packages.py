"""Small packages for tests: a complete one, and helpers to change it and to load it from a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import HeadraceError
from headrace.model import BoundPackage, load_package

COMPLETE = """\
headrace: 1
package: sales
parameters:
  day: {type: date, default: 2024-01-31}
  mode: {type: string, default: staged, one_of: [staged, single, view]}
  tables: {type: list, default: [orders, returns]}
connections:
  inbox: {type: files, path: data}
  warehouse: {type: duckdb, path: w.duckdb}
layouts:
  orders:
    delimiter: "|"
    columns:
      - {name: id, type: int64, nullable: false}
      - {name: amount, type: "decimal(15,2)"}
tasks:
  load:
    data_flow:
      sources:
        rows: {connection: inbox, files: orders.tbl, layout: orders}
      destinations:
        out: {input: rows, connection: warehouse, table: orders, target: replace}
"""


def change(old: str, new: str, text: str = COMPLETE) -> str:
    """The complete package with one piece exchanged."""
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    return text.replace(old, new)


def load(
    folder: Path,
    text: str | bytes = COMPLETE,
    *,
    sets: list[str] | None = None,
    connections: list[str] | None = None,
    streams: int | None = None,
    environ: dict[str, str] | None = None,
) -> BoundPackage:
    """Write the text as `package.yaml` into the folder and load it from there."""
    (folder / "package.yaml").write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return load_package(
        folder / "package.yaml",
        sets=sets or [],
        connections=connections or [],
        streams=streams,
        environ=environ or {},
    )


def message(folder: Path, text: str | bytes = COMPLETE, **options: object) -> str:
    """What the user reads when the package cannot be loaded; the folder is left out of it."""
    with pytest.raises(HeadraceError) as raised:
        load(folder, text, **options)  # type: ignore[arg-type]
    rendered = raised.value.render()
    for leak in ("pydantic", "https://", "extra_forbidden", "type=", "<class", "Traceback", "headrace_"):
        assert leak not in rendered, rendered
    return rendered.replace(f"{folder}/", "")
