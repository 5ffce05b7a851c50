"""What columns that are made say of the run that loads their rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class RunFacts:
    """The same in all rows and all attempts of a run; its members are called as in `from` of a column. `load_time`:
    when the run began, microseconds since 1970; None for a run of a version that loaded no such time.
    """

    run_id: str
    package_hash: str
    load_time: int | None


def layout_of_run(layout: dict[str, Any], run: RunFacts | None) -> dict[str, Any]:
    """A layout as the core reads it, with what columns that are made say of the run."""
    made = layout.get("made")
    return layout if not made else {**layout, "made": [{**own, "from": of_run(own["from"], run)} for own in made]}


def of_run(made_from: object, run: RunFacts | None) -> object:
    """What the core is told of a column that is made; without a run, what only a run has is None."""
    if not isinstance(made_from, dict):
        return made_from
    known = {} if run is None else asdict(run)
    return {name: known.get(name) for name in made_from}
