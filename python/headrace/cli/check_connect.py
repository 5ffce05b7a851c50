"""The part of `headrace check --connect` that opens the destinations and says what it found."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from headrace import units
from headrace.errors import on_one_line
from headrace.run import Destination
from headrace.targets import SettingAdvice

_INDENT = "  "


def describe_destination(destination: Destination) -> dict[str, Any]:
    """The JSON-ready form of one destination."""
    inspection = destination.inspection
    return {
        "connection": destination.connection,
        "type": destination.type,
        "status": "ready" if is_ready(destination) else "failed",
        "error": None if destination.error is None else destination.error.to_dict(),
        "facts": {} if inspection is None else dict(inspection.facts),
        "problems": list(destination.problems),
        "tables": destination.tables,
        "tables_found": destination.tables_found,
        "settings": [_describe_setting(setting) for setting in ([] if inspection is None else inspection.settings)],
    }


def is_ready(destination: Destination) -> bool:
    """Whether rows could be loaded there, as far as a look can tell."""
    return destination.error is None and not destination.problems


def render_destination(destination: Destination, *, width: int) -> str:
    """What was found, what forbids a load, and the advice on settings; without a final line end."""
    heading = f"{destination.connection} ({destination.type}): {'ready' if is_ready(destination) else 'NOT READY'}"
    lines = [heading]
    if destination.inspection is not None:
        facts = dict(destination.inspection.facts)
        if destination.tables:
            facts["tables"] = f"{destination.tables_found} of {units.count(destination.tables)} exist"
        longest = max(map(len, facts))
        for name, text in facts.items():
            lines += _wrapped(on_one_line(text), f"{_INDENT}{name.ljust(longest)}  ", width)
    for problem in destination.problems:
        lines += _wrapped(f"problem: {on_one_line(problem)}", _INDENT, width)
    if destination.inspection is not None and destination.inspection.settings:
        lines += ["", *_settings(destination.inspection.settings, width)]
    return "\n".join(lines)


def _settings(settings: Sequence[SettingAdvice], width: int) -> list[str]:
    slow = [setting for setting in settings if setting.better is not None]
    fine = [setting for setting in settings if setting.better is None]
    lines = ["settings that a load would like otherwise; nothing was changed:" if slow else "settings: all fine"]
    for setting in slow:
        lines.append(f"{_INDENT}{setting.name} is {setting.value}, better {setting.better}")
        details = {"now": setting.costs, "gives up": setting.gives_up, "to set": setting.statement}
        for label, text in details.items():
            lines += _wrapped(f"{label}: {text}", 2 * _INDENT, width)
    if fine:
        lines += _wrapped("fine: " + ", ".join(f"{item.name} {item.value}" for item in fine), _INDENT, width)
    return lines


def _describe_setting(setting: SettingAdvice) -> dict[str, Any]:
    return {
        "name": setting.name,
        "value": setting.value,
        "better": setting.better,
        "costs": setting.costs,
        "gives_up": setting.gives_up,
        "statement": setting.statement,
    }


def _wrapped(text: str, beginning: str, width: int) -> list[str]:
    """Lines of which the first starts with `beginning`, the others below the text or, behind a label, indented."""
    indent = " " * len(beginning) if beginning.strip() else beginning + _INDENT
    return textwrap.wrap(
        text,
        width,
        initial_indent=beginning,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
