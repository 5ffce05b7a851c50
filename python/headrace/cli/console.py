"""stdout, which gets the result of a command, and stderr, which gets the talk.

Nothing that comes from a file name or a database may steer the terminal: texts are printed without control characters.
rich honours NO_COLOR and the width of the terminal by itself.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from headrace.cli.signals import result_begins
from headrace.errors import OutputError, on_one_line, without_controls

if TYPE_CHECKING:
    from rich.console import Console

# Used when stdout is not a terminal, so that files look the same wherever they are made.
DEFAULT_WIDTH: Final = 80


def talk_console() -> Console:
    """A console on stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False)


def result_width() -> int:
    """Characters per line of results on stdout."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns if is_terminal else DEFAULT_WIDTH


def print_result(text: str) -> None:
    """The result of a command. Raises OutputError, and BrokenPipeError when its reader has gone."""
    _write_result(without_controls(text))


def print_json(document: Mapping[str, Any]) -> None:
    """The one JSON document of a command, in ASCII: every encoding can hold it. Raises as `print_result`."""
    _write_result(json.dumps(document, indent=2))


def say(text: str) -> None:
    """Talk. Whether it can be written decides nothing: a run does not fail because its log is full."""
    write_talk(f"{without_controls(text)}\n")


def write_talk(text: str, stream: TextIO | None = None) -> None:
    """Text on stderr (or `stream`) as it is, control characters included."""
    stream = sys.stderr if stream is None else stream
    if stream is not None:
        with suppress(OSError, ValueError):  # ValueError: the stream is closed
            stream.write(text)
            stream.flush()


def shown_path(path: str | Path) -> str:
    """A path as one would type it here: relative if it is below the current folder."""
    absolute = Path(path).absolute()
    return on_one_line(str(absolute.relative_to(Path.cwd())) if absolute.is_relative_to(Path.cwd()) else str(path))


def prepare_streams() -> None:
    """A character that the encoding of a stream lacks is escaped instead of failing the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def release_streams() -> None:
    """Python flushes the streams when it ends, and complains; what cannot be written is dropped before."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                _discard(stream)


def output_error(error: OSError) -> OutputError:
    """What to say about a stdout that took no more."""
    return OutputError("the result cannot be printed", found=f"stdout: {error.strerror}")


def _write_result(text: str) -> None:
    result_begins()
    if sys.stdout is None:
        raise OutputError("the result cannot be printed", found="stdout is closed")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(error) from error


def _discard(stream: TextIO) -> None:
    """Let a stream lead to nothing, with what it still holds."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        stream.flush()
