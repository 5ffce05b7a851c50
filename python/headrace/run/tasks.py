"""The data flows of a package that are known before the run, under names that may be shown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container
from dataclasses import replace
from typing import Final

from headrace.model import BoundPackage, DataFlowTask
from headrace.run.redact import Redactor

# Behind the name of a task that is done anew, at the end or before what is inside, or before one of its destinations.
_GENERATION: Final = re.compile(r"#([0-9]+)(?=[.\[/]|$)")


def nameable_flows(package: BoundPackage) -> list[tuple[DataFlowTask, bool]]:
    """The data flows of a package under names that may be shown and stored.

    The item of a foreach is part of a task's id and can be a secret. Ids that are equal without it are numbered,
    because the ledger tells the tasks of a run by them.
    """
    redactor = Redactor(package.secrets)
    flows = package.data_flows()
    taken = {name.casefold() for flow in flows if redactor.text(name := flow.flow or flow.id) == name}
    # Ways of one data flow follow one another, and are called by its name and that of their destination.
    shown_flow, known = "", ""
    named = []
    for flow in flows:
        name = flow.flow or flow.id
        shown = redactor.text(name)
        if shown != name:
            if flow.flow and known == name:
                shown = shown_flow
            else:
                shown = unique_name(shown, taken, "#")
                taken.add(shown.casefold())
        shown_flow, known = shown, flow.flow
        own = replace(flow, id=f"{shown}/{flow.destination.name}", flow=shown) if flow.flow else replace(flow, id=shown)
        named.append((own, flow.when))
    return named


def known_names(package: BoundPackage) -> dict[str, str]:
    """How tasks whose ids may not be shown are called, by id: data flows that are known before the run, as the control
    asks for them; one with several destinations as a whole.
    """
    pairs = zip(package.flows, nameable_flows(package), strict=True)
    names = {flow.flow or flow.id: named.flow or named.id for flow, (named, _) in pairs}
    return {own: name for own, name in names.items() if own != name}


def unique_name(name: str, taken: Container[str], mark: str) -> str:
    """The name, with the first number behind it that makes it, case folded, different from those taken."""
    numbers = itertools.chain([""], (f"{mark}{number}" for number in itertools.count(2)))
    return next(candidate for number in numbers if (candidate := name + number).casefold() not in taken)


def earlier_names(instance: str) -> list[str]:
    """How a task, or what is around it, was called before it was done anew: `a#2.b` was `a.b`."""
    parts = _GENERATION.split(instance)
    choices = [range(1, int(number) + 1) for number in parts[1::2]]
    names = []
    for numbers in itertools.product(*choices):
        suffixes = ["" if number == 1 else f"#{number}" for number in numbers]
        pairs = itertools.zip_longest(parts[::2], suffixes, fillvalue="")
        names.append("".join(text + suffix for text, suffix in pairs))
    return [name for name in names if name != instance]


def file_stem(table: str, taken: set[str]) -> str:
    """A name for files of this task: letters, digits, `_`, `-` and `.`, different from those taken, also on file
    systems that do not tell upper from lower case.
    """
    stem = "".join(character if character.isalnum() or character in "_-." else "_" for character in table).lstrip(".")
    stem = unique_name(stem or "table", taken, "_")
    taken.add(stem.casefold())
    return stem
