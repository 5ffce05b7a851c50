"""What the marks of transactions tell of data flows with several destinations."""

from __future__ import annotations

import json
from collections.abc import Mapping

from headrace.model import DataFlowTask
from headrace.targets import Target


def shared_by_destinations(task: DataFlowTask, target: Target, run_id: str | None) -> Mapping[str, int] | None:
    """What the mark of its transaction, or of the one around it, tells with it of all destinations of its flow."""
    for name in (task.flow, task.flow.rpartition(".")[0]) if run_id else ():
        mark = target.finished_task(str(run_id), name)
        known = json.loads((None if mark is None else mark.result) or "{}").get("tasks", {}).get(task.id, {})
        if "shared" in known:
            return dict(known["shared"])
    return None
