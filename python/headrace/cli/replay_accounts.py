"""What became of the rejects of a replay, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import units
from headrace.errors import on_one_line


def render_replay(summary: Mapping[str, Any]) -> str:
    """A few lines behind the accounts of the run that the replay is; empty for another run, or without success."""
    replay: Mapping[str, Any] | None = summary.get("replay")
    if replay is None or summary["status"] != "success":
        return ""
    lines = [f"replay of run {replay['of_run']}: {_sums(replay)}"]
    if "tables" in replay:
        # A row that several tables lacked is loaded into each of them.
        taken = f"{units.plural(replay['numbers'], 'reject')}, {units.count(replay['dropped'])} dropped"
        lines = [f"replay of run {replay['of_run']}: {taken}"]
        lines += [f"  {on_one_line(own['table'])}: {_sums(own)}" for own in replay["tables"]]
    if replay["open"] is not None:
        lines.append(f"  {units.count(replay['open'])} of that run still open")
    return "\n".join(lines)


def _sums(counts: Mapping[str, Any]) -> str:
    added = f" and {units.plural(counts['rows_added'], 'row')} more" if counts["rows_added"] else ""
    filtered = f"{units.count(counts['filtered'])} filtered, " if counts.get("filtered") else ""
    return (
        f"{units.plural(counts['numbers'], 'reject')}{added}: {units.count(counts['loaded'])} loaded, "
        f"{units.count(counts['rejected_again'])} rejected again, {filtered}{units.count(counts['dropped'])} dropped"
    )
