"""What became of the rejects of a replay, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import units


def render_replay(summary: Mapping[str, Any]) -> str:
    """One or two lines behind the accounts of the run that the replay is; empty for another run, or without success."""
    replay: Mapping[str, Any] | None = summary.get("replay")
    if replay is None or summary["status"] != "success":
        return ""
    added = f" and {units.plural(replay['rows_added'], 'row')} more" if replay["rows_added"] else ""
    filtered = f"{units.count(replay['filtered'])} filtered, " if replay.get("filtered") else ""
    lines = [
        f"replay of run {replay['of_run']}: {units.plural(replay['numbers'], 'reject')}{added}: "
        f"{units.count(replay['loaded'])} loaded, {units.count(replay['rejected_again'])} rejected again, "
        f"{filtered}{units.count(replay['dropped'])} dropped"
    ]
    if replay["open"] is not None:
        lines.append(f"  {units.count(replay['open'])} of that run still open")
    return "\n".join(lines)
