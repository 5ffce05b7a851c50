"""`headrace plan --graph`: the package as a picture. Nothing is opened but the package itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import headrace.run as run
from headrace import graph
from headrace.cli.console import print_json, print_result, say, shown_path
from headrace.cli.run import RunOptions, load_requested
from headrace.errors import CommandLineError, OutputError, on_one_line
from headrace.model import BoundPackage

FORMATS: Final[Mapping[str, Callable[[graph.Graph], str]]] = {"mermaid": graph.to_mermaid, "svg": graph.to_svg}
# `maxTextSize` and `maxEdges` of Mermaid where nobody has set them: beyond them it draws an error.
_MERMAID_CHARACTERS: Final = 50_000
_MERMAID_LINES: Final = 500


def run_plan_graph(options: RunOptions, form: str, output: Path | None) -> int:
    """Draw, and print or write; returns the exit code."""
    request = options.request()
    package = load_requested(replace(request, package=options.package))
    drawn = graph.graph_of(package, run.left_out(package, request.choice))
    text = FORMATS[form](drawn)
    if output is not None:
        _keep_packages(package, output)
        _write(output, text)
    if form == "mermaid":
        _say_if_too_large(text, sum(1 for _ in drawn.lines()))
    if options.json_output:
        place: dict[str, object] = {"output": None, "text": text} if output is None else {"output": str(output)}
        print_json({"package": drawn.root.title, "format": form, **place, "graph": drawn.to_dict()})
    elif output is None:
        print_result(text.removesuffix("\n"))
    else:
        print_result(f"graph of package {drawn.root.title}: {shown_path(output)}")
    return 0


def _keep_packages(package: BoundPackage, output: Path) -> None:
    """Raises CommandLineError where the graph would take the place of what it was drawn from."""
    waiting = [package]
    while waiting:
        own = waiting.pop()
        if output.exists() and output.samefile(own.path):
            raise CommandLineError(
                "the graph would overwrite the package",
                at={"option": f"--output {on_one_line(str(output))}"},
                hint="Name another file, such as --output graph.svg.",
            )
        waiting += [child.known for child in own.children.values()]


def _say_if_too_large(text: str, lines: int) -> None:
    if len(text) > _MERMAID_CHARACTERS or lines > _MERMAID_LINES:
        say(
            f"Mermaid draws at most {_MERMAID_CHARACTERS:,} characters and {_MERMAID_LINES} lines unless it is set up "
            f"otherwise; these are {len(text):,} and {lines:,}. --graph svg has no such limit."
        )


def _write(path: Path, text: str) -> None:
    try:
        with run.written_whole(path) as unfinished:
            unfinished.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise OutputError(
            "the graph cannot be written",
            at={"file": str(path)},
            found=error.strerror,
            hint="Choose another file with --output.",
        ) from error
