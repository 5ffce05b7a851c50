"""`switch`: exchanges a partition of a table for another table, by metadata alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from headrace.errors import CancelledError
from headrace.model.spec_switch import PartitionKeysSpec, SwitchSpec
from headrace.planning import DefaultRule, ListRule, PartitionRule, RangeRule
from headrace.run.leaves.base import LeafContext, LeafResult
from headrace.targets import ExchangedTable, PartitionExchange, described


class SwitchLeaf:
    """A `Leaf`. Exactly once: the target finds the mark of an earlier attempt in its ledger; without a ledger it
    compares the tables with what that attempt has noted.
    """

    def run(self, settings: SwitchSpec, context: LeafContext) -> LeafResult:
        """Raises HeadraceError; nothing is exchanged then."""
        what = f"task {context.instance}"
        context.cancellation.check(what)
        target = context.services.target(context.connection(settings.connection))
        try:
            done = target.switch_partition(
                context.run_id, _exchange(settings, context.instance), context.memory, context.cancellation.is_set
            )
        except CancelledError as error:
            if context.cancellation.is_set():
                raise context.cancellation.error(what) from error
            raise
        if done.was_done:
            context.notice(f"{what}: an earlier attempt of the run has exchanged {settings.partition} already")
        if done.made:
            context.notice(f"{what}: table {settings.in_} was given {', '.join(done.made)}")
        for warning in done.warnings:
            context.warn(warning)
        return LeafResult(
            details={
                "connection": settings.connection,
                "table": settings.table,
                "partition": settings.partition,
                "in": settings.in_,
                "out": settings.out,
                "was_done": done.was_done,
                "made": list(done.made),
                "switch_seconds": round(done.switch_seconds, 6),
            }
        )

    def describe(self, settings: SwitchSpec) -> Sequence[str]:
        """What it would do."""
        partition = f"partition {settings.partition} of {settings.connection}.{settings.table}"
        if settings.in_ is None:
            return (f"take {partition} out: it becomes table {settings.out}",)
        if settings.for_ is not None:
            return (f"make table {settings.in_} the new {partition}, for {described(_rule(settings.for_))}",)
        goes = f"which becomes table {settings.out}" if settings.out is not None else "which is DROPPED with its rows"
        return (f"put table {settings.in_} in the place of {partition}, {goes}",)


def _exchange(settings: SwitchSpec, task: str) -> PartitionExchange:
    return PartitionExchange(
        task,
        _table(settings.table),
        settings.partition,
        None if settings.in_ is None else _table(settings.in_),
        settings.out,
        None if settings.for_ is None else _rule(settings.for_),
    )


def _table(name: str) -> ExchangedTable:
    schema, _, table = name.rpartition(".")
    return ExchangedTable(schema or None, table)


def _rule(keys: PartitionKeysSpec) -> PartitionRule:
    if keys.default is not None:
        return DefaultRule()
    if keys.values is not None:
        return ListRule(tuple(_text(value) for value in keys.values))
    return RangeRule(_text(keys.from_), _text(keys.to))


def _text(value: object) -> str | None:
    """A key as every database reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date):
        return value.isoformat()
    return None if value is None else str(value)
