"""Accounts of data flows in long loops: from the hundredth on, those without anything to look at are only added up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from headrace.executors import added_joins, without_rows
from headrace.run.transformed import added_accounts

# Flows of one task into one table that are told one by one.
SHOWN_FLOWS: Final = 100
_TURN: Final = re.compile(r"\[[^\[\]]*\]")
_SUMMED: Final = (
    "seconds",
    "cpu_seconds",
    "bytes_read",
    "lines",
    "rows_skipped",
    "rows_read",
    "rows_filtered",
    "rows_loaded",
    "slices",
    "switch_seconds",
)


class FoldedFlows:
    """Adds up what is not shown. `documents` has members as those of `tables` in the summary, and `flows`."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], int] = {}
        self._folded: dict[tuple[str, str], dict[str, Any]] = {}

    @property
    def documents(self) -> list[dict[str, Any]]:
        """One for each task and table."""
        return [dict(document) for document in self._folded.values()]

    def takes(self, document: Mapping[str, Any]) -> bool:
        """Adds a flow up, if there are enough like it already and nothing about it is worth a look."""
        key = (_TURN.sub("[...]", str(document["task"])), str(document["table"]))
        shown = self._shown.get(key, 0)
        if shown < SHOWN_FLOWS or document["status"] != "success" or document["rows_rejected"]:
            self._shown[key] = shown + 1
            return False
        if document["values_ignored"]:
            return False
        known = self._folded.get(key)
        if known is None:
            known = self._folded[key] = {**document, "task": key[0], "flows": 0, "partitions": [], "columns": None}
            known.update(dict.fromkeys(_SUMMED, 0), notes=[], transforms=[])
            if known.get("flow"):
                known["flow"] = _TURN.sub("[...]", str(known["flow"]))
            if known.get("shared"):
                known["shared"] = dict.fromkeys(known["shared"], 0)
            if known.get("join"):
                known["join"] = without_rows(known["join"])
        known["flows"] += 1
        for name, count in (document.get("shared") or {}).items():
            known["shared"][name] += count
        known["transforms"] = added_accounts(known["transforms"], document["transforms"])
        if known.get("join") and document.get("join"):
            known["join"] = added_joins(known["join"], document["join"])
        for name in _SUMMED:
            known[name] = round(known[name] + document[name], 6)
        known["mb_per_second"] = round(known["bytes_read"] / 1e6 / known["seconds"], 3) if known["seconds"] else 0.0
        known["rows_per_second"] = round(known["rows_read"] / known["seconds"], 1) if known["seconds"] else 0.0
        return True
