"""The PostgreSQL target: see `target.py` and README.md."""
