"""The data flows of a package that are known before the run, under names that may be shown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Container
from dataclasses import replace
from typing import Final

from headrace.model import BoundPackage, DataFlowTask
from headrace.run.redact import Redactor

# Behind the name of a task that is done anew, at the end or before what is inside.
_GENERATION: Final = re.compile(r"#([0-9]+)(?=[.\[]|$)")


def nameable_flows(package: BoundPackage) -> list[tuple[DataFlowTask, bool]]:
    """The data flows of a package under names that may be shown and stored.

    The item of a foreach is part of a task's id and can be a secret. Ids that are equal without it are numbered,
    because the ledger tells the tasks of a run by them.
    """
    redactor = Redactor(package.secrets)
    flows = package.data_flows()
    taken = {flow.id.casefold() for flow in flows if redactor.text(flow.id) == flow.id}
    named = []
    for flow in flows:
        shown = redactor.text(flow.id)
        if shown != flow.id:
            shown = unique_name(shown, taken, "#")
            taken.add(shown.casefold())
        named.append((replace(flow, id=shown), flow.when))
    return named


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
