"""Calls one function of the user. Started by path, as `python -P call.py PACKAGES FOLDER FUNCTION RESULT`.

PACKAGES: the folder that holds `headrace`. FOLDER: where modules are looked for first. FUNCTION: `module:function` or
`file.py:function`. RESULT: the file descriptor for one line of JSON, `{"value": ...}` or `{"error": ...}`. Arguments
come as JSON from standard input, which is empty afterwards. What the function prints goes where this process prints.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType, TracebackType
from typing import Any

_HERE = os.path.abspath(__file__)


class _CallError(Exception):
    """What is wrong before the user's code runs: members of the error."""

    def __init__(self, what: str, found: str | None = None, expected: str | None = None, hint: str | None = None):
        super().__init__(what)
        self.members = {"what": what, "found": found, "expected": expected, "hint": hint}


def main(arguments: list[str]) -> None:
    """The life of the process."""
    packages, folder, function, descriptor = arguments
    result = int(descriptor)
    os.set_inheritable(result, False)
    text = sys.stdin.buffer.read()
    sys.stdin.close()
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 it is to stay open
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.path.insert(0, packages)
    from headrace.child import tagged_json

    sys.path[0] = folder
    sys.argv = [function]
    try:
        value = _found(function, folder)(**tagged_json.from_text(text))
        reply = f'{{"value":{tagged_json.to_text(value)}}}'
    except tagged_json.UnfitResultError as error:
        what = f"the function returned what no variable can hold{f', at result{error.place}' if error.place else ''}"
        expected = "text, int, Decimal, float, bool, date, datetime, None, and lists or mappings of them"
        reply = json.dumps({"error": {"what": what, "found": error.what, "expected": expected}})
    except _CallError as error:
        reply = json.dumps({"error": error.members})
    except BaseException as error:
        reply = json.dumps({"error": _described(error, folder)})
    _flush()
    with open(result, "wb") as file:
        file.write(reply.encode("utf-8", errors="backslashreplace") + b"\n")


def _found(function: str, folder: str) -> Callable[..., Any]:
    """The function, not called yet, its arguments not looked at."""
    module_name, _, name = function.rpartition(":")
    module = _file(module_name, folder) if module_name.endswith(".py") else _module(module_name, folder)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise _CallError(
            f"there is no function `{name}` in {module_name}",
            found=_names(module),
            hint="Correct `function`, or define it there.",
        )
    if not callable(found):
        raise _CallError(f"`{function}` is no function", found=f"a value of type {type(found).__name__}")
    return _Checked(found, function)


class _Checked:
    """Looks at the arguments before it calls: Python's own error would not tell whose mistake it was."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name

    def __call__(self, **arguments: object) -> object:
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):
            return self._function(**arguments)
        try:
            signature.bind(**arguments)
        except TypeError as error:
            raise _CallError(
                f"`{self._name}` does not take these arguments",
                found=f"{error}; given: {', '.join(arguments) or 'nothing'}",
                expected=f"{self._name.rpartition(':')[2]}{signature}",
                hint="Correct `arguments`.",
            ) from None
        return self._function(**arguments)


def _module(name: str, folder: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # One that the user's module misses is the user's error, with its line.
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        raise _CallError(
            f"there is no module `{name}`",
            found=f"nothing in {folder}, and nothing that is installed",
            hint="Modules are looked for beside the package file; write `path/to/file.py:function` for a file.",
        ) from None


def _file(name: str, folder: str) -> ModuleType:
    path = os.path.abspath(os.path.join(folder, name))
    if not os.path.isfile(path):
        raise _CallError(
            f"there is no file {path}", hint="Correct `function`; the path starts beside the package file."
        )
    # Modules beside it are found as if it were a script; those beside the package file come second.
    sys.path.insert(0, os.path.dirname(path))
    module_name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def _names(module: ModuleType) -> str:
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    names = [name for name, value in own.items() if callable(value) and not name.startswith("_")]
    return ", ".join(names[:10]) if names else "no functions"


def _described(error: BaseException, folder: str) -> dict[str, object]:
    """Type, message, and the last place in the user's code. The whole traceback is printed, without our own frames."""
    own = error.__traceback__
    while own is not None and own.tb_frame.f_code.co_filename in (_HERE, __file__):
        own = own.tb_next
    own = _without_import_machinery(own)
    _flush()
    try:
        traceback.print_exception(type(error), error, own)
    except Exception:
        print(f"{type(error).__name__}: the traceback cannot be printed", file=sys.stderr)
    try:
        message = str(error)
    except Exception:
        message = "(its message cannot be made)"
    place = _place(own, folder, error)
    name = type(error).__qualname__
    if type(error).__module__ not in ("builtins", "__main__"):
        name = f"{type(error).__module__}.{name}"
    return {"type": name, "message": message, **place}


def _without_import_machinery(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(("<frozen importlib", _IMPORTLIB)):
        frames = frames.tb_next
    return frames


def _place(frames: TracebackType | None, folder: str, error: BaseException) -> dict[str, object]:
    if isinstance(error, SyntaxError) and error.filename:
        return {"file": error.filename, "line": error.lineno}
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(frames)]
    own = [
        place for place in places if place[0].startswith(os.path.join(folder, "")) and "site-packages" not in place[0]
    ]
    if not (own or places):
        return {}
    file, line = (own or places[:1])[-1]
    return {"file": file, "line": line}


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()


_IMPORTLIB = os.path.dirname(os.path.abspath(importlib.__file__ or "importlib"))

if __name__ == "__main__":
    main(sys.argv[1:])
