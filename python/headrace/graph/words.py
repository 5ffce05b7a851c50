"""What is said of tasks, from their description (`model.describe`) or from what is written in the package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def over(settings: Document) -> str:
    """What a foreach goes over: `table over lineitem, orders`."""
    names = settings.get("item") or ", ".join(settings.get("as") or ())
    if settings.get("in") is not None:
        values = settings["in"]
        if isinstance(values, list):
            text = ", ".join(map(str, values[:5])) + (f", ... {len(values):,} in all" if len(values) > 5 else "")
        elif isinstance(values, Mapping):
            text = str(values.get("expr"))
        else:
            text = str(values)
    elif settings.get("files") is not None:
        files = settings["files"]
        pattern = files["pattern"]
        text = f"files {', '.join(pattern) if isinstance(pattern, list) else pattern} of {files['connection']}"
    elif settings.get("query") is not None:
        query = settings["query"]
        text = f"the rows of {query.get('file') or ' '.join(str(query.get('text')).split())}"
    elif settings.get("rows") is not None:
        text = f"the rows in {settings['rows']}"
    else:
        own = settings["range"]
        step = f" by {own['step']}" if "step" in own else ""
        text = f"{written(own['from'])} to {written(own['to'])}{step}"
    return f"{names} over {text}"


def division(partition: object) -> Iterator[str]:
    """How a table is divided, from its `partition` clause; nothing without one."""
    clause = partition if isinstance(partition, Mapping) else {}
    for strategy in ("range", "list", "hash"):
        if strategy in clause:
            column = clause[strategy].get("column") if isinstance(clause[strategy], Mapping) else None
            yield f"divided by {strategy}{f' of {column}' if isinstance(column, str) else ''}"


def written(value: object) -> str:
    """A value as it stands in the package; of an expression its SQL."""
    if isinstance(value, Mapping) and set(value) == {"expr"}:
        return " ".join(str(value["expr"]).split())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(written, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def condition(when: object) -> str:
    """A condition on one line."""
    return str(when).lower() if isinstance(when, bool) else " ".join(str(when).split())


def constraint_condition(item: Document) -> str:
    """What a constraint asks beside the end of the other task: `if rows > 0 or skipped`; empty if nothing."""
    text = ""
    if item["when"] is not True:
        text = f"{'or' if item['match'] == 'either' else 'if'} {condition(item['when'])}"
    return " ".join(part for part in (text, "or skipped" if item["or_skipped"] else "") if part)
