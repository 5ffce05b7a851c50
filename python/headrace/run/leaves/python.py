"""Tasks of kind `python`: a function of the user, called in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from headrace import child
from headrace.child import tagged_json
from headrace.errors import ProcessError, PythonTaskError
from headrace.model import Rows
from headrace.model.spec_leaves import PythonSpec
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.run.leaves.process import environment_of, kept, open_log
from headrace.run.leaves.program_failures import last_words
from headrace.run.leaves.program_output import Collected, LogFile
from headrace.run.leaves.programs import Ended, Program, run_program

MAXIMUM_RESULT_BYTES: Final = 16_000_000
_CALL: Final = Path(child.__file__).with_name("call.py")
_PACKAGES: Final = Path(child.__file__).parents[2]


class PythonLeaf:
    """Calls the function and takes what it returns."""

    def run(self, settings: PythonSpec, context: LeafContext) -> LeafResult:
        """Raises PythonTaskError for what the function raises, ProcessError if its process ends without a result."""
        output, errors = open_log(context, "stdout"), open_log(context, "stderr")
        result = Collected(MAXIMUM_RESULT_BYTES)
        folder = os.path.abspath(context.folder)
        ended = run_program(
            Program(
                command=[sys.executable, "-P", "-u", str(_CALL), str(_PACKAGES), folder, settings.function],
                folder=context.folder,
                environment=environment_of(context, {}),
                input=_arguments(settings, context).encode("ascii"),
                output=output,
                errors=errors,
                result=result,
            ),
            context,
        )
        if result.is_too_long:
            raise PythonTaskError(
                f"the function {settings.function} returns too much",
                at={"task": context.instance},
                expected=f"at most {MAXIMUM_RESULT_BYTES:,} bytes",
                hint="Let it write a file; a data flow loads files of any size.",
            )
        reply = _reply(bytes(result.content), settings, ended, errors, context)
        if "value" in reply:
            return LeafResult(_outputs(settings, reply["value"], context), {"logs": kept(output, errors)})
        raise _raised(reply["error"], settings, errors, context)

    def describe(self, settings: PythonSpec) -> Sequence[str]:
        """The call."""
        return [f"calls {settings.function}({', '.join(settings.arguments)})"]


def _arguments(settings: PythonSpec, context: LeafContext) -> str:
    try:
        return tagged_json.to_text({name: _plain(value) for name, value in settings.arguments.items()})
    except tagged_json.UnfitResultError as error:
        raise PythonTaskError(
            "an argument cannot be given to a function",
            at={"task": context.instance, "argument": error.place},
            found=error.what,
            hint="Correct `arguments`.",
        ) from error


def _plain(value: object) -> object:
    """Rows are a list of mappings to the function."""
    if isinstance(value, Rows):
        return [dict(zip(value.columns, row, strict=True)) for row in value.rows]
    return value


def _reply(content: bytes, settings: PythonSpec, ended: Ended, errors: LogFile, context: LeafContext) -> dict[str, Any]:
    with suppress(ValueError, KeyError, TypeError):
        reply: dict[str, Any] = json.loads(content)
        return {"value": tagged_json.unpacked(reply["value"])} if "value" in reply else {"error": reply["error"]}
    raise ProcessError(
        f"the process of {settings.function} has ended without a result",
        at={"task": context.instance},
        found=ended.describe() + last_words(errors),
        hint="Let the function return; it must not end its process.",
    )


def _raised(error: Mapping[str, Any], settings: PythonSpec, errors: LogFile, context: LeafContext) -> PythonTaskError:
    if "type" not in error:
        return PythonTaskError(
            context.redact(error["what"]),
            at={"task": context.instance},
            found=_redacted(error.get("found"), context),
            expected=_redacted(error.get("expected"), context),
            hint=error.get("hint"),
        )
    place = {"file": error["file"], "line": error["line"]} if "file" in error else {}
    message = f"{error['type']}: {error['message']}" if error["message"] else str(error["type"])
    return PythonTaskError(
        f"the function {settings.function} has failed",
        at={**place, "task": context.instance},
        found=context.redact(message),
        hint=f"The traceback is in {errors.path}." if kept(errors) else None,
    )


def _redacted(text: str | None, context: LeafContext) -> str | None:
    return None if text is None else context.redact(text)


def _outputs(settings: PythonSpec, value: object, context: LeafContext) -> dict[str, object]:
    if settings.result is None:
        return {}
    if isinstance(settings.result, str):
        return {settings.result: _as_rows(value)}
    if not isinstance(value, Mapping):
        raise _no_mapping(settings, f"a value of type {type(value).__name__}", context)
    missing = [key for key in settings.result.values() if key not in value]
    if missing:
        raise _no_mapping(settings, f"no key {json.dumps(missing[0], ensure_ascii=False)}", context)
    return {name: _as_rows(value[key]) for name, key in settings.result.items()}


def _no_mapping(settings: PythonSpec, found: str, context: LeafContext) -> PythonTaskError:
    assert isinstance(settings.result, dict)
    return PythonTaskError(
        f"the function {settings.function} does not return what `result` asks for",
        at={"task": context.instance},
        found=found,
        expected=f"a mapping with the keys {', '.join(settings.result.values())}",
        hint="Correct `result`, or what the function returns.",
    )


def _as_rows(value: object) -> object:
    """A list of mappings with the same keys is what a variable of type rows holds; no other type takes it."""
    if not isinstance(value, list) or not value or not all(isinstance(item, Mapping) for item in value):
        return value
    columns = tuple(value[0])
    if any(set(item) != set(columns) for item in value):
        return value
    return Rows(columns, [[item[column] for column in columns] for item in value])
