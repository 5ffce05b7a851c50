"""Instances of DuckDB draw nothing where DuckDB takes Python for a notebook."""

from __future__ import annotations

import subprocess
import sys


def test_no_bar_is_drawn_where_python_runs_no_file() -> None:
    code = (
        "import duckdb; from headrace.model import new_instance; "
        "print([connection.sql(\"SELECT current_setting('enable_progress_bar')\").fetchall() "
        "for connection in (duckdb.connect(), new_instance())])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[[(True,)], [(False,)]]\n", "what DuckDB does by itself, what we do"
