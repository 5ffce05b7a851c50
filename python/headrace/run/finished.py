"""What a resumed run says of a table that an earlier attempt has completed: the ledger has its accounts, the run folder
its rejects.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace.executors import Ignored, kept_ignored, kept_joined
from headrace.model import SIDES
from headrace.planning import FinishedTask

LOADED_BEFORE: Final = "loaded already by this run"
_SHOWN_REJECTS: Final = 10
_SHOWN_OF_KIND: Final = 3


@dataclass(frozen=True)
class FinishedTable:
    """One completed table. `rejects` has the members of a flow result; `ignored`: values by column; `join`: the
    accounts of its join.
    """

    task: FinishedTask
    rejects: dict[str, Any]
    ignored: Ignored
    join: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, task: FinishedTask, rejects_folder: Path) -> FinishedTable:
        """Reads what the earlier attempt has written."""
        slices = task.slices.values()
        path = rejects_folder / task.file_stem
        rejects = _rejects(None if task.flow else sum(item.rejected for item in slices), path)
        ignored = kept_ignored(rejects_folder, task.file_stem, sum(item.ignored for item in slices))
        passed, rejected = sum(item.loaded + item.filtered for item in slices), sum(item.rejected for item in slices)
        join = kept_joined(rejects_folder, task.file_stem, passed, rejected) if task.is_joined else None
        return cls(task, rejects, ignored, join)

    @property
    def rows_read(self) -> int:
        """Rejected ones included."""
        slices = self.task.slices.values()
        # The ledger has what came out of a join, not what went in.
        came = (
            sum(item.loaded + item.filtered for item in slices)
            if self.join is None
            else sum(int(self.join[side]["rows"]) - int(self.join[side]["rejected_behind"]) for side in SIDES)
        )
        return came + sum(item.rejected for item in slices)

    @property
    def rejected_in_flow(self) -> int:
        """Rows that were rejected, on the way to any of its destinations."""
        own = sum(item.rejected for item in self.task.slices.values())
        return own if self.task.shared is None else int(self.task.shared["rows_rejected"])

    def _shared(self) -> dict[str, int] | None:
        return None if self.task.shared is None else dict(self.task.shared)

    def to_dict(self) -> dict[str, Any]:
        """The member of `tables`, as that of a table that is loaded now; nothing of it was read now."""
        slices = self.task.slices.values()
        loaded, rejected, skipped, ignored, filtered = (
            sum(getattr(item, name) for item in slices)
            for name in ("loaded", "rejected", "skipped", "ignored", "filtered")
        )
        read = self.rows_read
        notes = [LOADED_BEFORE]
        if self.task.is_joined and self.join is None:
            notes.append("how many rows its join has read is not known any more: those it has made count as read")
        return {
            "task": self.task.task,
            **({"flow_of": self.task.flow, "shared": self._shared()} if self.task.flow else {}),
            "table": self.task.table,
            "connection": self.task.connection,
            "target": self.task.target,
            "load": self.task.load,
            "status": "success",
            "seconds": 0.0,
            "cpu_seconds": 0.0,
            "bytes_read": 0,
            "lines": read + skipped,
            "rows_skipped": skipped,
            "rows_read": read,
            "rows_rejected": rejected,
            "rows_filtered": filtered,
            "rows_loaded": loaded,
            "values_ignored": ignored,
            "ignored": self.ignored,
            "mb_per_second": 0.0,
            "rows_per_second": 0.0,
            "streams": 0,
            "slices": len(slices),
            **({"join": None if self.join is None else dict(self.join)} if self.task.is_joined else {}),
            "transforms": [],
            "limit": None,
            "switch_seconds": 0.0,
            "partitions": [],
            "rejects": {**self.rejects, **({"table": self.task.reject_table} if self.task.reject_table else {})},
            "columns": None,
            "memory": {},
            "notes": notes,
        }


def _rejects(count: int | None, path: Path) -> dict[str, Any]:
    """The report of rejects whose files are called `path` but for their endings; its details are those in the files.
    `count`: None of several destinations, whose rejects are told with the first one.
    """
    files = [path.with_name(f"{path.name}.{ending}") for ending in ("jsonl", "bad")]
    first: list[dict[str, Any]] = []
    rules: Counter[str] = Counter()
    cut = 0
    kinds: dict[tuple[int, str], dict[str, Any]] = {}
    try:
        with files[0].open(encoding="utf-8") as lines:
            for reject in map(json.loads, lines):
                rules[reject["rule"]] += 1
                cut += reject["bad_bytes"] < reject["row_bytes"]
                column = {name: reject[name] for name in ("column", "rule", "code")}
                place = (reject["column_number"] or 0, reject["code"])
                kind = kinds.setdefault(place, {**column, "count": 0, "first": []})
                kind["count"] += 1
                if len(kind["first"]) < _SHOWN_OF_KIND:
                    kind["first"].append(reject)
                if len(first) < _SHOWN_REJECTS:
                    first.append(reject)
    except (OSError, ValueError, KeyError):  # none, taken away, or written by an earlier version
        return {"count": count or 0, "by_rule": {}, "by_column": [], "first": [], "files": [], "cut": 0}
    return {
        "count": rules.total() if count is None else count,
        "by_rule": dict(sorted(rules.items())),
        "by_column": [kind for _, kind in sorted(kinds.items())],
        "first": first,
        "files": [str(file) for file in files],
        "cut": cut,
    }
