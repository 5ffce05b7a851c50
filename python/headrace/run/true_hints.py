"""Hints that name a command, as they are true in the state of their run: where rows of it stay in tables to which it
appends, a new run would append them once more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from headrace.errors import HeadraceError
from headrace.model import BoundPackage, DataFlowTask, FilesConnection
from headrace.targets import OpenOptions, open_target, target_key

NEW_RUN: Final = "Start a new run: `headrace run`."
# As it stands in hints, those of the core too.
_NEW_RUN: Final = re.compile(r"([Ss])tart a new run(: `headrace run`)?(?! with)")
_AGAIN: Final = re.compile(r"([Rr])un again")
_NO_MEMORY_BYTES: Final = 100_000_000


# Where nobody knows what a run has done.
UNKNOWN: Final = "delete what the run has appended, if it has"


def true_hint(
    hint: str | None, run_id: str, tables: Sequence[str], *, is_begun: bool, is_known: bool = True
) -> str | None:
    """The hint of an error of a run. `tables`: to which the run has appended rows that are there; `is_begun`: something
    of it is done; `is_known`: ledgers know what, so that it can be resumed.
    """
    if hint is None:
        return None
    if not is_known:
        return _AGAIN.sub(lambda found: _capital(found, f"{UNKNOWN}, and run again"), hint) if is_begun else hint
    if tables:
        deleted = f"delete the rows of run {run_id} from {', '.join(tables)}, then start a new run"
        hint = _NEW_RUN.sub(lambda found: _capital(found, f"{deleted}: `headrace run --abandon`"), hint)
    if (is_begun or tables) and f"headrace resume {run_id}" not in hint:
        hint = _AGAIN.sub(lambda found: _capital(found, f"go on: `headrace resume {run_id}`"), hint)
    return hint


def load_again(flows: Sequence[DataFlowTask], run_id: str) -> str:
    """The hint to load the sources of data flows once more, of which a run has loaded the rows already."""
    first = flows[0]
    kept = [flow.destination for flow in flows if flow.destination.target != "replace" or flow.destination.partitions]
    appended = [own.table for own in kept if own.target == "append"]
    made = [own.table for own in kept if own.target == "create"]
    before = [f"delete the rows of run {run_id} from {', '.join(appended)}"] * bool(appended)
    before += [f"drop {', '.join(made)}"] * bool(made)
    steps = ["Repair the source files", *before, f"load them again: `headrace run --only {first.definition}`"]
    return f"{', '.join(steps[:-1])}, and {steps[-1]}."


def appended_tables(package: BoundPackage, run_id: str) -> tuple[str, ...]:
    """The tables to which a run has appended rows that are there, as far as its destinations can be asked now."""
    found: dict[str, None] = {}
    places = {target_key(own): own for own in package.connections.values() if not isinstance(own, FilesConnection)}
    options = OpenOptions(_NO_MEMORY_BYTES, 1, None, True, lambda _text: None, lambda: False)
    for connection in places.values():
        with suppress(HeadraceError), open_target(connection, options) as target:
            found |= dict.fromkeys(target.appended_tables(run_id))
    return tuple(found)


def _capital(found: re.Match[str], text: str) -> str:
    """The text in the place of what was found, which begins a sentence or not."""
    return text[0].upper() + text[1:] if found[1].isupper() else text
