"""TPC-H as test and demo data: the generator's front, the package that loads it, and an independent check of a load."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headrace.model.spec_data_flow import TPCH_TABLES_IN_ONE_CHUNK

TABLES: Final = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")


def package_path() -> Path:
    """The package that loads the eight tables: examples/tpch/load.yaml of the repository, shipped with the wheel."""
    return Path(__file__).parent / "package" / "load.yaml"


def file_names(table: str, chunks: int) -> list[str]:
    """The names of the files that hold a table generated in `chunks` parts."""
    if chunks == 1 or table in TPCH_TABLES_IN_ONE_CHUNK:
        return [f"{table}.tbl"]
    return [f"{table}.tbl.{chunk}" for chunk in range(1, chunks + 1)]


def text_files(folder: Path, table: str) -> list[Path]:
    """The files of a table: `orders.tbl` and `orders.tbl.K`, the latter by number."""
    numbered = [path for path in folder.glob(f"{table}.tbl.*") if path.suffix[1:].isdecimal()]
    whole = [path for path in [folder / f"{table}.tbl"] if path.exists()]
    return whole + sorted(numbered, key=lambda path: int(path.suffix[1:]))
