"""The null target: see `target.py`."""
