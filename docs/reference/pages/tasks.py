"""tasks.md: every kind of task."""

from __future__ import annotations

from pathlib import Path

from docs.reference.pages.settings import tables
from headrace.model.settings import SpecModel
from headrace.model.spec_tasks import TaskSpec
from headrace.model.task_kinds import TASK_KINDS, TaskKind

EXAMPLES = Path(__file__).parents[1] / "examples"

_HEAD = """# Tasks

<!-- Written by docs/reference/generate.py from the program. Do not edit; run `make docs`. -->

A task does exactly one thing, its kind, and may have the settings of every task beside it. In the tables, *also* says
what may stand in place of a value: `${}` a [reference](package.md#references), `{expr: SQL}` an
[expression](package.md#expressions); *is SQL*: the value itself is an expression; `$name`: values of variables are
bound in it. How tasks follow one another: [control flow](../explanation/control-flow.md). A setting that holds `NAME`
below stands once for each name that you choose.

What a resumed run does again: a task that had ended is not repeated. One that was killed in the middle is undone or
continued where the table says *exactly once*, and repeated where it says *at least once*.
"""


def page() -> str:
    """The whole page."""
    rows = [
        f"| [`{kind.name}`](#{kind.name}) | {kind.sentence} | {kind.repeat} | {_trust(kind)} |"
        for kind in TASK_KINDS.values()
    ]
    overview = "\n".join(["| kind | | when killed | needs trust |", "|---|---|---|---|", *rows])
    common = "\n\n".join(tables(TaskSpec, leave_out=frozenset(TASK_KINDS)))
    parts = [_HEAD, f"{overview}\n", "## Settings of every task\n", f"{common}\n"]
    return "\n".join([*parts, *(_section(kind) for kind in TASK_KINDS.values())])


def _trust(kind: TaskKind) -> str:
    """When it needs trust; nothing for never."""
    if kind.trusted_setting is not None:
        return f"with `{kind.trusted_setting}: true`"
    return "yes" if kind.needs_trust else ""


def _section(kind: TaskKind) -> str:
    example = (EXAMPLES / f"{kind.name}.yaml").read_text(encoding="utf-8")
    facts = [f"When killed: {kind.repeat}."]
    if _trust(kind):
        when = "" if kind.needs_trust else f" {_trust(kind)}"
        facts.append(f"Needs trust{when}: `--trust`, or `trusted` in the user's own config.")
    if kind.is_container:
        facts.append("Holds other tasks.")
    lines = [f"## `{kind.name}`", "", kind.sentence, *_more(kind.spec), "", " ".join(facts), "", "```yaml"]
    lines += [example.rstrip(), "```", ""]
    if kind.spec is None:
        return "\n".join(
            [*lines, "A mapping of variables to DuckDB SQL, all computed before the first one is set.", ""]
        )
    return "\n".join([*lines, "\n\n".join(tables(kind.spec)), ""])


def _more(spec: type[SpecModel] | None) -> list[str]:
    """What the model says behind its first sentence."""
    paragraphs = ((spec.__doc__ or "") if spec is not None else "").split("\n\n")[1:]
    return [line for paragraph in paragraphs for line in ("", " ".join(paragraph.split()))]
