"""The outermost layer: every way in which a command can end becomes an exit code and at most one error message.

With `--json` the error is also the one document on stdout, so that a caller never has to read two places.
A traceback never reaches the screen: it is saved to a file and the message says where.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

import typer

from headrace.errors import CancelledError, CommandLineError, HeadraceError, InternalError

# typer turns Ctrl-C into this exit code (128 + SIGINT); no command of ours uses it.
_TYPER_INTERRUPTED = 130


def run_app(app: typer.Typer, arguments: list[str]) -> int:
    """Run a command line and return its exit code. Never raises, except for the end of the process itself."""
    json_output = "--json" in arguments
    try:
        command = typer.main.get_command(app)
        code = command.main(args=arguments, prog_name="headrace", standalone_mode=False)
        if code == _TYPER_INTERRUPTED:
            raise CancelledError("stopped by Ctrl-C")
        return code if isinstance(code, int) else 0
    except HeadraceError as error:
        return report(error, json_output=json_output)
    except typer.TyperException as error:
        return report(_command_line_error(error, arguments), json_output=json_output)
    except BrokenPipeError:
        # The reader of stdout went away (`headrace plan ... | head`). Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return report(internal_error(error, Path(tempfile.gettempdir())), json_output=json_output)


def report(error: HeadraceError, *, json_output: bool) -> int:
    """Print one error and return its exit code."""
    print(error.render(), file=sys.stderr)
    if json_output:
        status = "cancelled" if isinstance(error, CancelledError) else "failed"
        print(json.dumps({"status": status, "error": error.to_dict()}, indent=2, ensure_ascii=False))
    return error.exit_code


def internal_error(error: Exception, folder: Path) -> InternalError:
    """What to say about a defect of Headrace; the traceback goes to a new file in `folder`."""
    try:
        handle, path = tempfile.mkstemp(prefix="headrace-internal-", suffix=".txt", dir=folder, text=True)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            traceback.print_exception(error, file=file)
        kept = f"Please report it with {path}."
    except OSError as failure:
        kept = f"Please report it. (The traceback could not be saved: {failure.strerror}.)"
    return InternalError(
        f"internal: {type(error).__name__} in the program itself",
        found=str(error) or None,
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
        known = [name for item in context.command.params for name in item.opts] if context is not None else []
        hint = " ".join(filter(None, [did_you_mean(option_name, known), help_hint]))
        return CommandLineError(f"unknown option `{option_name}` of `{path}`", hint=hint)
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


def _written_value(option_names: list[str], arguments: list[str]) -> str | None:
    """What was written for an option, if it can be told: typer's errors do not carry it."""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in option_names:
            return value if equals else arguments[number + 1] if number + 1 < len(arguments) else None
    return None
