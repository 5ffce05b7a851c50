"""Accounts of data flows in long loops: from the hundredth on, those without anything to look at are only added up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from headrace.executors import (
    added_accounts,
    added_gathered,
    added_joins,
    added_unions,
    gathered_without_rows,
    union_without_rows,
    without_rows,
)

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
        # The last flow with several destinations, and whether it was taken: its ways follow one another.
        self._last: tuple[str, bool] = ("", False)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """One for each task and table."""
        return [dict(document) for document in self._folded.values()]

    def takes(self, document: Mapping[str, Any]) -> bool:
        """Adds a flow up, if there are enough like it already and nothing about it is worth a look; of several
        destinations all or none, by what is told of the flow with the first of them.
        """
        flow = str(document.get("flow_of") or "")
        is_another_way = bool(flow) and self._last[0] == flow and not document.get("shared")
        is_taken = self._last[1] if is_another_way else self._is_like_others(document)
        self._last = (flow, is_taken)
        if is_taken:
            self._add(document)
        return is_taken

    def _is_like_others(self, document: Mapping[str, Any]) -> bool:
        key = _key(document)
        shown = self._shown.get(key, 0)
        rejected = max(document["rows_rejected"], (document.get("shared") or document)["rows_rejected"])
        if shown < SHOWN_FLOWS or document["status"] != "success" or rejected:
            self._shown[key] = shown + 1
            return False
        return not document["values_ignored"]

    def _add(self, document: Mapping[str, Any]) -> None:
        key = _key(document)
        known = self._folded.get(key)
        if known is None:
            known = self._folded[key] = {**document, "task": key[0], "flows": 0, "partitions": [], "columns": None}
            known.update(dict.fromkeys(_SUMMED, 0), notes=[], transforms=[])
            if known.get("flow_of"):
                known.update(flow_of=_TURN.sub("[...]", str(known["flow_of"])), shared=None)
            if known.get("join"):
                known["join"] = without_rows(known["join"])
            if known.get("union"):
                known["union"] = union_without_rows(known["union"])
            if known.get("gathered"):
                known["gathered"] = gathered_without_rows(known["gathered"])
        known["flows"] += 1
        for name, count in (document.get("shared") or {}).items():
            known["shared"] = {**(known["shared"] or {}), name: (known["shared"] or {}).get(name, 0) + count}
        known["transforms"] = added_accounts(known["transforms"], document["transforms"])
        if known.get("join") and document.get("join"):
            known["join"] = added_joins(known["join"], document["join"])
        if known.get("union") and document.get("union"):
            known["union"] = added_unions(known["union"], document["union"])
        if known.get("gathered") and document.get("gathered"):
            known["gathered"] = added_gathered(known["gathered"], document["gathered"])
        for name in _SUMMED:
            known[name] = round(known[name] + document[name], 6)
        known["mb_per_second"] = round(known["bytes_read"] / 1e6 / known["seconds"], 3) if known["seconds"] else 0.0
        known["rows_per_second"] = round(known["rows_read"] / known["seconds"], 1) if known["seconds"] else 0.0


def _key(document: Mapping[str, Any]) -> tuple[str, str]:
    return _TURN.sub("[...]", str(document["task"])), str(document["table"])
