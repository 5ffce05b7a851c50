"""What a resumed run says of a table that an earlier attempt has completed: the ledger has its accounts, the run folder
its rejects.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headrace.executors import (
    Ignored,
    kept_gathered,
    kept_ignored,
    kept_joined,
    kept_transformed,
    kept_united,
    not_known,
)
from headrace.model import leaves_told
from headrace.planning import FinishedTask

LOADED_BEFORE: Final = "loaded already by this run"
_SHOWN_REJECTS: Final = 10
_SHOWN_OF_KIND: Final = 3


@dataclass(frozen=True)
class _Sums:
    """The accounts of all slices of a task. `passed`: rows that were no rejects on their way to the destination, or to
    the query over all rows that stands before it.
    """

    slices: int
    passed: int
    rejected: int
    skipped: int
    ignored: int
    filtered: int
    loaded: int

    @classmethod
    def of_ledger(cls, task: FinishedTask) -> _Sums:
        """As the ledger has them."""
        slices = task.slices.values()
        rejected, skipped, ignored, filtered, loaded = (
            sum(getattr(item, name) for item in slices)
            for name in ("rejected", "skipped", "ignored", "filtered", "loaded")
        )
        return cls(len(slices), loaded + filtered, rejected, skipped, ignored, filtered, loaded)

    def with_source(self, slices: Sequence[Mapping[str, Any]], rows_in: int) -> _Sums:
        """With those of what was read for the query over all rows whose result the table holds. `rows_in`: those that
        the query has got.
        """
        rejected, skipped, ignored, filtered = (
            sum(int(item[name]) for item in slices) for name in ("rejected", "skipped", "values_ignored", "filtered")
        )
        return _Sums(len(slices), rows_in + filtered, rejected, skipped, ignored, filtered, self.loaded)


@dataclass(frozen=True)
class FinishedTable:
    """One completed table. `rejects` has the members of a flow result; `ignored`: values by column; `join`: the
    accounts of its join; `gathered`: rows into and out of its query over all rows; `union`: rows of each source;
    `transforms`: what they have done, as far as that is known.
    """

    task: FinishedTask
    sums: _Sums
    rejects: dict[str, Any]
    ignored: Ignored
    join: Mapping[str, Any] | None = None
    gathered: Mapping[str, int] | None = None
    union: Mapping[str, Any] | None = None
    transforms: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, task: FinishedTask, rejects_folder: Path) -> FinishedTable:
        """Reads what the earlier attempt has written."""
        sums = _Sums.of_ledger(task)
        kept = kept_gathered(rejects_folder, task.file_stem, sums.loaded) if task.query else None
        if kept is not None:
            sums = sums.with_source(kept["slices"], int(kept["gathered"]["rows_in"]))
        rejects = _rejects(None if task.flow else sums.rejected, rejects_folder / task.file_stem)
        ignored = kept_ignored(rejects_folder, task.file_stem, sums.ignored)
        is_known = task.is_joined and (kept is not None or not task.query)
        join = kept_joined(rejects_folder, task.file_stem, sums.passed, sums.rejected) if is_known else None
        rows = sums.passed + sums.rejected
        is_known = task.is_united and (kept is not None or not task.query)
        union = kept_united(rejects_folder, task.file_stem, rows, sums.rejected) if is_known else None
        gathered = None if kept is None else kept["gathered"]
        of_ledger = (sums.loaded, sums.rejected, sums.filtered)
        transforms = kept_transformed(rejects_folder, task.file_stem, of_ledger, task.query)
        return cls(task, sums, rejects, ignored, join, gathered, union, transforms)

    @property
    def rows_read(self) -> int:
        """Rejected ones included."""
        # The ledger has what came out of a join, not what went in.
        came = (
            self.sums.passed
            if self.join is None
            else sum(
                int(own["rows"]) + int(own.get("filtered_in_front", 0)) - int(own["rejected_behind"])
                for own in leaves_told(self.join).values()
            )
        )
        return came + self.sums.rejected

    @property
    def rejected_in_flow(self) -> int:
        """Rows that were rejected, on the way to any of its destinations."""
        return self.sums.rejected if self.task.shared is None else int(self.task.shared["rows_rejected"])

    @property
    def read_in_flow(self) -> int:
        """Rows that were read for it, or for any other destination of its flow."""
        return int((self.task.shared or {}).get("rows_read", self.rows_read))

    def _shared(self) -> dict[str, int] | None:
        """Nothing was read now."""
        known = self.task.shared
        return None if known is None else {**known, **({"bytes_read": 0} if "bytes_read" in known else {})}

    def to_dict(self) -> dict[str, Any]:
        """The member of `tables`, as that of a table that is loaded now; nothing of it was read now."""
        sums, read = self.sums, self.rows_read
        notes = [LOADED_BEFORE]
        if self.task.query and self.gathered is None:
            notes.append(not_known(self.task.query))
        elif self.task.is_joined and self.join is None:
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
            "lines": read + sums.skipped,
            "rows_skipped": sums.skipped,
            "rows_read": read,
            "rows_rejected": sums.rejected,
            "rows_filtered": sums.filtered,
            "rows_loaded": sums.loaded,
            "values_ignored": sums.ignored,
            "ignored": self.ignored,
            "mb_per_second": 0.0,
            "rows_per_second": 0.0,
            "streams": 0,
            "slices": sums.slices,
            **({"join": None if self.join is None else dict(self.join)} if self.task.is_joined else {}),
            **({"union": None if self.union is None else dict(self.union)} if self.task.is_united else {}),
            **({"gathered": None if self.gathered is None else dict(self.gathered)} if self.task.query else {}),
            "transforms": [dict(own) for own in self.transforms],
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
    kinds: dict[tuple[int, str, str], dict[str, Any]] = {}
    try:
        with files[0].open(encoding="utf-8") as lines:
            for reject in map(json.loads, lines):
                rules[reject["rule"]] += 1
                cut += reject["bad_bytes"] < reject["row_bytes"]
                column = {name: reject[name] for name in ("column", "rule", "code")}
                # Of several sources, columns with other names have the same number.
                place = (reject["column_number"] or 0, reject["code"], reject["column"] or "")
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
