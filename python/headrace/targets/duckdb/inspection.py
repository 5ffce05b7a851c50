"""What `check --connect` says about a DuckDB file. That it is not locked is known: it could be opened."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb

from headrace.targets.base import Inspection
from headrace.targets.duckdb.connection import STORAGE_VERSION

_STORAGE = "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = 'target'"


def inspect_file(connection: duckdb.DuckDBPyConnection, path: Path) -> Inspection:
    """File, versions, and whether this user can write there. `connection` has the file attached if it exists."""
    exists = path.exists()
    facts = {
        "file": str(path),
        "size": f"{path.stat().st_size:,} bytes" if exists else "none yet: the first run makes the file",
        "free space": f"{shutil.disk_usage(path.parent).free:,} bytes",
        "DuckDB": duckdb.__version__,
        "storage": _storage_version(connection) if exists else f"{STORAGE_VERSION} and later",
        "lock": "no other process has the file open",
    }
    # The log of changes stands beside the file while it is open.
    needed = [path, path.parent] if exists else [path.parent]
    problems = [f"the user may not write {item}" for item in needed if not os.access(item, os.W_OK)]
    return Inspection(facts if exists else {**facts, "lock": "none"}, tuple(problems))


def _storage_version(connection: duckdb.DuckDBPyConnection) -> str:
    row = connection.execute(_STORAGE).fetchone()
    found = row[0] if row else None
    return "not told" if found is None else str(found).replace("+", " and later")
