"""What a target does, in order, as data and as sentences."""

from __future__ import annotations

from headrace.planning.plan import Step
from headrace.planning.staging import Staging
from headrace.planning.target_table import TargetTable
from headrace.planning.wording import counted

_CHECK_ACCOUNTS = Step("check_accounts", "every slice once, lines = rows + skipped, rows = loaded + rejected")


def plan_steps(table: TargetTable, staging: Staging, slices: int) -> tuple[Step, ...]:
    """The steps of one data flow."""
    if not table.capabilities.stores_tables:
        return Step("insert", "parse, convert and aggregate every row, then discard it"), _CHECK_ACCOUNTS
    if not table.capabilities.hidden_tables:
        return tuple(_in_one_transaction(table, slices))
    steps = _straight(table) if staging.switch == "none" else _switched(table, staging)
    if table.destination.options.analyze:
        steps.append(Step("analyze", f"make the statistics of {table.name}"))
    return tuple(steps)


def _in_one_transaction(table: TargetTable, slices: int) -> list[Step]:
    steps = []
    if table.catalog is None:
        steps.append(Step("create_table", f"create table {table.name}"))
    elif table.destination.target == "replace":
        steps.append(Step("delete_rows", f"delete all rows of {table.name}"))
    return [
        *steps,
        Step("insert", f"insert the rows of all streams into {table.name}"),
        _CHECK_ACCOUNTS,
        Step("commit_slices", f"write {counted(slices, 'commit row')} to the ledger"),
        Step("commit", "commit: the rows become visible in this one transaction"),
    ]


def _straight(table: TargetTable) -> list[Step]:
    return [
        Step("insert", f"copy the rows into {table.name}, each writer in a transaction that stays open"),
        _CHECK_ACCOUNTS,
        Step("commit", "commit the writers' transactions one after the other"),
    ]


def _switched(table: TargetTable, staging: Staging) -> list[Step]:
    catalog = table.catalog
    has_indexes = catalog is not None and bool(catalog.indexes) and staging.switch in ("rename", "attach")
    indexes_first = has_indexes and table.destination.options.indexes == "before"
    tables = counted(len(staging.tables), "hidden table")
    if indexes_first:
        tables += f" with the indexes of {table.name}"
    owned = all(part.owned for part in staging.tables)
    unit = "table" if owned else "stream and table"
    steps = [] if owned else [Step("create_staging", f"create {tables}")]
    steps += [Step("insert", f"copy the rows into {tables}, a transaction for each {unit}"), _CHECK_ACCOUNTS]
    if has_indexes and not indexes_first:
        steps.append(Step("build_indexes", f"build the indexes of {table.name} for the new rows"))
    how = {
        "schema": f"make it table {table.name}",
        "rename": f"let it take the place of {table.name}",
        "move": f"empty {table.name} and move the rows there",
        "attach": f"make them partitions of {table.name}",
        "view": f"make {table.name} the view of them",
    }[staging.switch]
    return [*steps, Step("switch", f"{how}: the rows become visible in this one transaction")]
