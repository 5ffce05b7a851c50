"""Headrace runs packages: it loads flat files into databases, accounts for every row, and tells what limits the load.

From Python: `load` reads a package file, `Package` builds one, `run` and `resume` execute, and `RunResult` says what
came of it. The command line is `headrace.cli`. Importing `headrace` loads nothing else: these names are found when
they are used for the first time.
"""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"
"""The same as in Cargo.toml: `headrace.core` refuses a core of another version."""

_PUBLIC = (
    "HeadraceError",
    "Package",
    "PackageError",
    "Plan",
    "RunResult",
    "TableResult",
    "TaskResult",
    "load",
    "resume",
)


class CallableModule(ModuleType):
    """The class of the module `headrace.run`, so that `headrace.run(package)` runs a package.

    A function of that name would hide the module from everything that imports it, or the module the function,
    depending on what was imported first.
    """

    def __call__(self, *arguments, **options):  # type: ignore[no-untyped-def]
        """See `headrace.api.run`."""
        return import_module("headrace.api").run(*arguments, **options)


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        # By name: what is below the API may import this module, and must not come to depend on the API.
        return getattr(import_module("headrace.api"), name)
    if name == "run":
        return import_module("headrace.run")
    raise AttributeError(f"module 'headrace' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC, "run"])
