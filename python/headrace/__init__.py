"""Headrace loads flat files into databases, accounts for every row, and tells what limits the load.

The command line is `headrace.cli`. From Python: `headrace.model.load_package` reads a package,
`headrace.run.plan_package` shows what a run would do, `headrace.run.execute` does it.
Importing `headrace` itself loads nothing else.
"""

__version__ = "0.1.0"
"""The same as in Cargo.toml: `headrace.core` refuses a core of another version."""
