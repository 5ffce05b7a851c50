"""Reads the text of a case by the core, as a load does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
from pydantic import ValidationError

from headrace import core
from headrace.errors import HeadraceError
from headrace.model.layout import Layout
from tests.conformance_csv.layouts import Case, Row

_ANY_NUMBER = 2**40


@dataclass(frozen=True)
class Outcome:
    """Rows that were loaded, codes of those that were rejected, or why the layout or file was refused."""

    rows: list[Row] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    refused: str | None = None


def read(case: Case, folder: Path) -> Outcome:
    """What becomes of a case."""
    path = folder / "case.csv"
    path.write_bytes(case.text)
    try:
        layout = Layout.model_validate(case.layout()).to_core()
        slicing = core.plan_slices({"files": [str(path)], "slice_bytes": 1 << 20, "layout": layout})
        return _load(layout, slicing, folder)
    except ValidationError as error:
        return Outcome(refused=str(error.errors()[0]["msg"]))
    except HeadraceError as error:
        return Outcome(refused=error.what)


def _load(layout: dict[str, Any], slicing: dict[str, Any], folder: Path) -> Outcome:
    names = [column["name"] for column in layout["columns"]]
    flow = core.Flow(
        {
            "name": "case",
            "layout": layout,
            "source": slicing,
            "sink": {"kind": "arrow", "columns": names},
            "streams": 1,
            "memory": {"block_bytes": 1 << 16, "blocks": 4, "max_row_bytes": 1 << 20},
            "rejects": {"limit": _ANY_NUMBER, "folder": str(folder), "file_stem": "case"},
        }
    )
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.register("flow", flow.arrow_stream())
        flow.start()
        rows = [list(row) for row in connection.execute("FROM flow").fetchall()]
    while (result := flow.join(1.0)) is None:
        pass
    core.raise_for_error(result)
    rejects = result["rejects"]
    return Outcome(rows, [code for code, count in rejects["by_rule"].items() for _ in range(count)])
