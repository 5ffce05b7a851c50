"""The DuckDB target: see `target.py` and README.md."""
