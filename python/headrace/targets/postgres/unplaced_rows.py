"""The error for a row that no partition takes, where the server looks for the partition and not the core."""

from __future__ import annotations

import re
from typing import Final

from headrace.errors import HeadraceError, TargetError
from headrace.planning import DataFlowPlan
from headrace.targets.postgres.failures import fields_of, server_words, sqlstate
from headrace.targets.postgres.names import TableName

_CHECK_VIOLATION: Final = "23514"
# `Partition key of the failing row contains (id) = (XX).`, in whatever language around it.
_KEY: Final = re.compile(r"\((?P<columns>.+)\) = \((?P<values>.*)\)[^)]*", re.DOTALL)
_ONE_ROW: Final = "Correct the row in the source, "
_HINTS: Final = {
    "reload": _ONE_ROW + "leave it out, or name its partition too: `partitions`.",
    "list": _ONE_ROW + "add its key to a list, or set `outside: default`.",
    "range": _ONE_ROW + "declare a range for its key, or set `outside: default`.",
    "existing": _ONE_ROW + "or add a partition to the table that takes it: one for its key, or a default partition.",
}


def unplaced_row(
    error: HeadraceError, plan: DataFlowPlan, divided: TableName | None, what: str, consequence: str
) -> TargetError | None:
    """None if the error is another one. `divided`: the partitioned table into which rows are copied or moved.

    A constraint has a name; what the server says of a row without partition names the partitioned table alone.
    """
    server = fields_of(error)
    if server is None or divided is None or sqlstate(error) != _CHECK_VIOLATION or server.get("constraint"):
        return None
    if (server.get("schema"), server.get("table")) != (divided.schema, divided.name):
        return None
    planned = plan.partitioning
    key = _KEY.search(str(server.get("detail") or ""))
    column = planned.column if planned is not None else key["columns"] if key else None
    place = None if error.at is None else {**error.at, "column": column}
    case = "existing" if planned is None else "reload" if plan.reloads else planned.strategy
    problem = TargetError(
        f"{what}: no partition takes a row{consequence}",
        at=place,
        found=f"`{column}` = {key['values']} (SQLSTATE {_CHECK_VIOLATION})" if key else server_words(server),
        expected="a key that belongs into one of the partitions",
        hint=_HINTS.get(case, _HINTS["existing"]),
    )
    problem.server = dict(server)
    return problem
