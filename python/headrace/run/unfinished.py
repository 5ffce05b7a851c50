"""Earlier runs of a package that did not end well."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.errors import LedgerError
from headrace.planning import DataFlowPlan, RunPlan, SkippedTask
from headrace.run.flow_sources import PreparedFlow
from headrace.run.preparation import OpenTargets
from headrace.targets import LostRun, Target


def appended_by_unfinished_runs(
    package: str,
    plan: RunPlan,
    prepared: list[PreparedFlow | SkippedTask],
    targets: OpenTargets,
    *,
    may_abandon: bool,
) -> list[tuple[Target, list[LostRun]]]:
    """Runs of `package` that did not end well, and have made rows visible in tables to which the plan appends.

    Raises LedgerError if there are any and they are not to be given up: their rows would be appended again.
    """
    found = []
    for target in targets.all():
        own = [
            task
            for item, task in zip(prepared, plan.tasks, strict=True)
            if isinstance(item, PreparedFlow) and isinstance(task, DataFlowPlan)
            if targets[item.task.destination.connection] is target
        ]
        appended = _tables_to_keep(own)
        unfinished = [run for run in target.unfinished_runs(package) if not appended.isdisjoint(run.tables)]
        if unfinished and not may_abandon:
            last = unfinished[-1]
            raise LedgerError(
                f"run {last.run_id} of this package did not end well, and has appended rows already",
                found=f"rows committed into {', '.join(table for table in last.tables if table in appended)}",
                hint=_hint(last.run_id, (table for table in last.tables if table in appended)),
            )
        if unfinished:
            found.append((target, unfinished))
    return found


def refuse_unfinished(package: str, target: Target, *, may_abandon: bool) -> list[LostRun]:
    """Runs of `package` that did not end well, and have made rows visible anywhere in the destination: for packages of
    which it is not known before to which tables they append.

    Raises LedgerError if there are any and they are not to be given up.
    """
    unfinished = [run for run in target.unfinished_runs(package) if run.tables]
    if unfinished and not may_abandon:
        last = unfinished[-1]
        raise LedgerError(
            f"run {last.run_id} of this package did not end well, and has made rows visible already",
            found=f"rows committed into {', '.join(last.tables)}",
            hint=_hint(last.run_id, last.tables),
        )
    return unfinished


def _hint(run_id: str, tables: Iterable[str]) -> str:
    return (
        f"Go on with it: `headrace resume {run_id}`; or delete its rows from {', '.join(tables)} and give it up: "
        "`headrace run --abandon`."
    )


def _tables_to_keep(flows: list[DataFlowPlan]) -> set[str]:
    """Tables to whose present rows the flows append: none of them replaces these rows first."""
    kept, made = set[str](), set[tuple[str | None, str]]()
    for flow in flows:
        table = (flow.schema, flow.table)
        if flow.target != "append":
            # Partitions that are loaded anew have no rows of others.
            made.update([] if flow.reloads else [table])
        elif table not in made:
            kept.add(flow.table)
    return kept
