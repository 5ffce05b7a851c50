"""Options that commands share, and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def without_tilde(option: typer.CallbackParam, folder: Path | None) -> Path | None:
    """Refuse a path that the shell has not completed: `--out=~/data` would make a folder called `~`."""
    if str(folder).startswith("~"):
        from headrace.errors import CommandLineError

        raise CommandLineError(
            f"{option.opts[0]} begins with `~`, which only a shell replaces",
            found=str(folder),
            hint="Write $HOME instead of `~`; for a name that begins with `~` write `./~`.",
        )
    return folder


# Parameters of commands that take the URL of a connection, or a text in which there may be one.
URL_PARAMETERS = frozenset({"connection", "connections", "sets", "to", "texts"})


def without_login(word: str, parameter: Any, context: typer.Context) -> None:
    """Refuse a URL with a login in the place of a file, a run or a name."""
    if "@" not in word or ":/" not in word:
        return
    from headrace.errors import CommandLineError
    from headrace.model.url_logins import login_of

    if login_of(word):
        option = parameter.param_type_name == "option"
        name = parameter.opts[0] if option else (parameter.metavar or parameter.name).strip("[]")
        raise CommandLineError(
            f"`{context.command_path}` takes no URL as {name}",
            found="a URL with a user or a password, which is not repeated here",
            hint="Give the URL of a connection as --connection NAME=URL, its password as ${env:X}."
            if "connections" in context.params
            else "Write a path or a name there.",
        )


PackageArgument = Annotated[
    # Whether it can be read is for the package loader to say, with its own exit codes.
    Path,
    typer.Argument(metavar="PACKAGE", help="The package: a YAML file.", show_default=False, readable=False),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Give a parameter a value; lists are comma-separated. Repeatable."
    ),
]
ConnectionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--connection",
        metavar="NAME=URL",
        help="Replace a connection: postgresql://..., duckdb:FILE, files:FOLDER or null:; ${env:X} stands for a "
        "variable. Repeatable.",
    ),
]
StreamsOption = Annotated[
    int | None,
    typer.Option(
        "--streams", metavar="N", min=1, help="Parser threads of the run, instead of the package's.", show_default=False
    ),
]
EnvironmentOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="Environment: values from environments.yaml beside the package.",
        show_default=False,
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="TASK,...", help="Run these tasks, nothing else. Repeatable."),
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="TASK", help="Run this task and those behind it.", show_default=False),
]
SkipOption = Annotated[
    list[str] | None,
    typer.Option("--skip", metavar="TASK,...", help="Leave these tasks out. Repeatable."),
]
MaximumOption = Annotated[
    int | None,
    typer.Option(
        "--max-concurrent",
        metavar="N",
        min=1,
        help="Tasks side by side, data flows apart, instead of the package's.",
        show_default=False,
    ),
]
TrustOption = Annotated[
    bool,
    typer.Option("--trust", help="Let the package run its programs and Python functions, and reach any file."),
]
LOG_LEVELS = ["error", "warning", "information", "verbose"]
LogLevelOption = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        help="Events in events.jsonl: error, warning, information, verbose.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress; results and errors only.")]
RunsFolderOption = Annotated[
    Path,
    typer.Option(
        "--runs-dir", metavar="FOLDER", help="Where run folders are made.", readable=False, callback=without_tilde
    ),
]
DEFAULT_RUNS_FOLDER = Path(".headrace/runs")


def names(values: list[str] | None) -> tuple[str, ...]:
    """The names of a repeatable option that also takes lists with commas."""
    return tuple(name.strip() for value in values or () for name in value.split(",") if name.strip())


def only(what: str, written: str, allowed: list[str], command: str) -> None:
    """Refuse a word that is not one of the allowed ones."""
    if written not in allowed:
        raise unknown(what, written, allowed, command)


def unknown(what: str, written: str, allowed: list[str], command: str) -> Exception:
    from headrace.errors import CommandLineError
    from headrace.model.suggest import did_you_mean, one_of

    return CommandLineError(
        f"unknown {what} `{written}`",
        expected=one_of(allowed),
        hint=did_you_mean(written, allowed) or f"`{command} --help` says more.",
    )
