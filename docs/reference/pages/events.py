"""events.md: events, names in handlers, the lines of events.jsonl."""

from __future__ import annotations

from headrace.model.task_kinds import EVENT_KINDS, HANDLER_SYSTEM_NAMES, RUN_SYSTEM_NAMES, STATIC_SYSTEM_NAMES
from headrace.run.event_lines import EVENT_LINES, EventLine

_MEANINGS = {
    "machine": "name of the machine",
    "package": "name of the package",
    "user": "name of the operating system's user",
    "run_id": "id of the run",
    "started_at": "when the run began, UTC; a resumed run keeps it",
    "task": "id of the task in this run",
    "event": "name of the event",
    "source_task": "id of the task that it happened to",
    "error": "text of its error, or null",
    "error_kind": "kind of its [error](errors.md), or null",
}

_HEAD = """# Events

<!-- Written by docs/reference/generate.py from the program. Do not edit; run `make docs`. -->

`on` of a package, a container or a task names what happens at an event: a control flow of its own, which sees what
happened in `system.*`. Handlers of the task run first, then those of what is around it, from the inside out, until one
says `propagate: false`. The task has ended only when they have.

```yaml
on:
  task_failed:
    tasks:
      note:
        sql: {connection: warehouse, text: "INSERT INTO failures VALUES ($task, $error)"}
        variables:
          task:  {type: string, expr: system.source_task}
          error: {type: string, expr: system.error}
```
"""

_LINES = """The run folder holds what happened, one JSON object per line, flushed line by line; those of a resumed run
stand behind the others. Listeners of the Python API get the same mappings. Secrets are `***`. Every line has `event`
and `at`, the time in UTC. `log_level` of the package says which lines are written."""


def page() -> str:
    """The whole page."""
    events = [f"| `{kind.name}` | {kind.sentence} |" for kind in EVENT_KINDS.values()]
    names = [
        f"| `system.{name}` | {known} | {_MEANINGS[name]} |"
        for known, group in (
            ("before the run", STATIC_SYSTEM_NAMES),
            ("when the run goes on", RUN_SYSTEM_NAMES),
            ("in handlers", HANDLER_SYSTEM_NAMES),
        )
        for name in group
    ]
    parts = [
        _HEAD,
        "| event | when |",
        "|---|---|",
        *events,
        "\n## System names\n",
        "| name | known | meaning |",
        "|---|---|---|",
        *names,
        "\n## Lines of `events.jsonl`\n",
        _LINES,
        *(_line(line) for line in EVENT_LINES.values()),
    ]
    return "\n".join(parts) + "\n"


def _line(line: EventLine) -> str:
    rows = [f"| `{name}` | {meaning} |" for name, meaning in line.members.items()]
    rows += [f"| `{name}` | data flows: {meaning} |" for name, meaning in line.of_flows.items()]
    rows += [f"| `{name}` | data flows {meaning} |" for name, meaning in line.of_some.items()]
    head = f"\n### `{line.name}`\n\n{line.sentence} `log_level`: {line.level}.\n"
    return "\n".join([head, "| member | meaning |", "|---|---|", *rows])
