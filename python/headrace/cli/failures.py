"""The outermost layer: every way in which a command can end becomes an exit code and at most one error message.

With `--json` the error is also the one document on stdout, so that a caller never has to read two places.
A traceback never reaches the screen: it is saved to a file and the message says where.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from headrace.cli import asks_for_json
from headrace.cli.console import output_error, print_json, say
from headrace.errors import EXIT_FAILED, CancelledError, CommandLineError, HeadraceError, InternalError, OutputError

# typer turns Ctrl-C into this exit code (128 + SIGINT); no command of ours uses it.
_TYPER_INTERRUPTED = 130


# Importing it takes as long as many commands, and without it there is no package yet.
_REDACTION = "headrace.model.redaction"
# Made once: reading the declarations of all commands takes longer than most of them do.
command_of = functools.cache(typer.main.get_command)


def run_app(app: typer.Typer, arguments: list[str]) -> int:
    """Run a command line and return its exit code. Never raises, except for the end of the process itself."""
    json_output = asks_for_json(arguments)
    if _REDACTION in sys.modules:
        sys.modules[_REDACTION].Secrets.forget()
    told = functools.partial(report, json_output=json_output, arguments=arguments)
    try:
        code = command_of(app).main(args=arguments, prog_name="headrace", standalone_mode=False)
        if code == _TYPER_INTERRUPTED:
            raise CancelledError("stopped by Ctrl-C")
        return code if isinstance(code, int) else 0
    except HeadraceError as error:
        return told(error)
    except typer.TyperException as error:
        return told(_command_line_error(error, arguments))
    except BrokenPipeError:
        return EXIT_FAILED  # the reader of stdout went away (`headrace plan ... | head`)
    except Exception as error:
        if isinstance(error, OSError) and _is_from_typer(error):
            return told(output_error(error))
        if isinstance(error, FileNotFoundError) and _is_folder_gone():
            return told(_folder_gone())
        return told(internal_error(error, Path(tempfile.gettempdir()), arguments))


def _is_from_typer(error: Exception) -> bool:
    """Whether typer itself failed; it reads nothing, but prints the help."""
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).startswith("typer.")


def _is_folder_gone() -> bool:
    """Whether the current folder was deleted: then no relative path can be made absolute."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _folder_gone() -> CommandLineError:
    return CommandLineError(
        "the current folder does not exist any more",
        found="a folder that was deleted or made anew",
        expected="a folder from which relative paths lead somewhere",
        hint='Change into a folder that exists, such as cd "$PWD" if it was made anew.',
    )


def report(error: HeadraceError, *, json_output: bool, arguments: Sequence[str] = ()) -> int:
    """Print one error and return its exit code; what cannot be printed is left out. `arguments`: those of the command
    line, whose logins are hidden.
    """
    _redact(error, arguments)
    say(error.render())
    if json_output:
        status = "cancelled" if isinstance(error, CancelledError) else "failed"
        with suppress(OSError, OutputError):
            print_json({"status": status, "error": error.to_dict()})
    return error.exit_code


def _redact(error: HeadraceError, arguments: Sequence[str]) -> None:
    """Hides all secrets that the process knows, wherever the error comes from. Without a package there are none."""
    if _REDACTION in sys.modules or any("@" in text for text in (error.render(), *arguments)):
        from headrace.run.redact import Redactor

        Redactor(_known_secrets(arguments)).error(error)


def _known_secrets(arguments: Sequence[str]) -> set[str]:
    """Those of packages, and the logins of URLs on the command line, whole and in pieces, as options cut them."""
    from headrace.model.redaction import Secrets, secret_texts
    from headrace.model.url_logins import logins

    found = [login for argument in arguments for login in logins(argument)]
    pieces = [piece for login in found for piece in (login, *re.split("[=,:/]", login))]
    return Secrets.alive().union(*map(secret_texts, pieces))


def internal_error(error: Exception, folder: Path, arguments: Sequence[str] = ()) -> InternalError:
    """What to say about a defect of Headrace; the traceback goes to a new file in `folder`, without any secret that the
    process knows.
    """
    from headrace.model.redaction import redact

    secrets = _known_secrets(arguments)
    try:
        handle, path = tempfile.mkstemp(prefix="headrace-internal-", suffix=".txt", dir=folder, text=True)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(redact("".join(traceback.format_exception(error)), secrets))
        kept = f"Please report it with {path}."
    except OSError as failure:
        kept = f"Please report it. (The traceback could not be saved: {failure.strerror}.)"
    return InternalError(
        f"internal: {type(error).__name__} in the program itself",
        found=redact(str(error), secrets) or None,
        hint=f"This is a defect of Headrace, not of your package or data. {kept}",
    )


def _command_line_error(error: typer.TyperException, arguments: list[str]) -> CommandLineError:
    """A usage error of typer in our words. Its classes are told apart by their fields."""
    from headrace.model.suggest import did_you_mean

    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else " ".join(["headrace", *arguments[:1]])
    help_hint = f"`{path} --help` shows the options and an example."
    option_name = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    if option_name is not None and hasattr(error, "possibilities"):
        command = context.command if context is not None else None
        known = [] if command is None else _option_names(command)
        if any(option_name in _option_names(inner) for inner in getattr(command, "commands", {}).values()):
            hint = f"Write it behind the command: `{path} COMMAND {option_name}`."
        else:
            hint = " ".join(filter(None, [did_you_mean(option_name, known), help_hint]))
        return CommandLineError(f"unknown option `{option_name}` of `{path}`", hint=hint)
    if option_name is not None and "does not take a value" in error.message:
        return CommandLineError(
            f"option `{option_name}` of `{path}` takes no value", hint=f"Write `{option_name}` alone."
        )
    if option_name is not None:
        return CommandLineError(f"option `{option_name}` of `{path}` needs a value", hint=help_hint)
    if parameter is not None and hasattr(error, "param_type"):
        name = parameter.metavar or parameter.name
        missing = name if parameter.param_type_name == "argument" else f"{parameter.opts[0]} {name}"
        return CommandLineError(f"`{path}` needs {missing}", hint=help_hint)
    if parameter is not None:
        name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar or parameter.name
        return CommandLineError(
            f"wrong value for {name} of `{path}`",
            found=_written_value(parameter.opts, arguments),
            expected=error.message.removeprefix("Input should be ").split(",")[0],
            hint=help_hint,
        )
    return CommandLineError(f"the command line of `{path}` is wrong", found=error.message, hint=help_hint)


def _option_names(command: Any) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts]


def _written_value(option_names: list[str], arguments: list[str]) -> str | None:
    """What was written for an option, if it can be told: typer's errors do not carry it."""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in option_names:
            return value if equals else arguments[number + 1] if number + 1 < len(arguments) else None
    return None
