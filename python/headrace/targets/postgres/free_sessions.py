"""Whether a server has sessions left for the writers of several tables, which all take their rows at once."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import TargetBusyError
from headrace.planning import DataFlowPlan, counted
from headrace.targets.postgres.connection import one_value, sql
from headrace.targets.postgres.control import Control


def refuse_too_few_sessions(control: Control, plans: Sequence[DataFlowPlan]) -> None:
    """Raises TargetBusyError before a row moves: else a late writer would be refused when others have sent rows."""
    needed = sum(plan.connections for plan in plans)
    free = int(one_value(control, sql("free_sessions")) or 0)
    if free < needed:
        raise TargetBusyError(
            f"the server takes no more sessions: not enough for the {counted(len(plans), 'table')} of {plans[0].flow}",
            found=f"{free} left, by the limits of the server, the database and the user",
            expected=f"{needed}: " + ", ".join(f"{plan.connections} for {plan.table}" for plan in plans),
            hint="Use fewer streams, close other sessions, or raise max_connections of the server.",
        )
