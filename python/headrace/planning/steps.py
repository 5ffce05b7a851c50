"""What a target does, in order, as data and as sentences."""

from __future__ import annotations

from headrace.planning.partitioning import STRAYS, Partitioning
from headrace.planning.plan import Step
from headrace.planning.reject_table import RejectTable
from headrace.planning.staging import Staging
from headrace.planning.target_table import TargetTable
from headrace.planning.wording import counted

_CHECK_ACCOUNTS = Step("check_accounts", "every slice once, lines = rows + skipped, rows = loaded + rejected")
_CHECK_FILTERED = Step(
    "check_accounts", "every slice once, lines = rows + skipped, rows = loaded + filtered + rejected"
)
_CHECK_JOIN = Step(
    "check_accounts",
    "every slice once, lines = rows + skipped, rows = joined + rejected, rows out of the join = loaded + filtered + "
    "rejected behind it",
)
_CHECK_JOIN_OF_FRONTS = Step(
    "check_accounts", _CHECK_JOIN.text.replace("rows = joined + rejected", "rows = joined + filtered before + rejected")
)
_CHECK_JOINS = Step(
    "check_accounts",
    _CHECK_JOIN_OF_FRONTS.text.replace(
        "rows out of the join =",
        "rows out of each join = into the next one + filtered + rejected, out of the last one =",
    ),
)


def plan_steps(
    table: TargetTable,
    staging: Staging,
    partitioning: Partitioning | None,
    slices: int,
    *,
    commits: bool,
    rejects: RejectTable | None = None,
    joins: int = 0,
    filters: bool = False,
    has_fronts: bool = False,
) -> tuple[Step, ...]:
    """The steps of one data flow. `rejects`: the table that takes them, if any does; `joins`: how many there are;
    `filters`: a query may leave some out; `has_fronts`: some pass transforms before they meet.
    """
    of_join = _CHECK_JOINS if joins > 1 else _CHECK_JOIN_OF_FRONTS if has_fronts else _CHECK_JOIN
    check_accounts = of_join if joins else _CHECK_FILTERED if filters else _CHECK_ACCOUNTS
    if not table.capabilities.stores_tables:
        return Step("insert", "parse, convert and aggregate every row, then discard it"), check_accounts
    if not table.capabilities.hidden_tables:
        steps = (
            _into_partitions(table, partitioning)
            if partitioning is not None and partitioning.has_tables
            else _in_one_transaction(table, check_accounts)
        )
        return (*steps, *_stored(rejects), *_committed(slices))
    if staging.switch == "none":
        steps = [*_straight(table, commits=commits), *_stored(rejects, ", in the transaction that completes the task")]
    else:
        steps = _switched(table, staging, partitioning, commits=commits)
        # Readers of the table do not wait while they are stored.
        steps[-1:] = [*_stored(rejects, ", in the transaction of the switch"), steps[-1]]
    if table.destination.options.analyze:
        steps.append(Step("analyze", f"make the statistics of {table.name}"))
    return tuple(steps)


def _stored(rejects: RejectTable | None, when: str = "") -> list[Step]:
    if rejects is None:
        return []
    made = "" if rejects.exists else ", which is made first"
    return [Step("store_rejects", f"store the rejects in {rejects.shown}{made}{when}")]


def _committed(slices: int) -> list[Step]:
    return [
        Step("commit_slices", f"write {counted(slices, 'commit row')} to the ledger"),
        Step("commit", "commit: the rows become visible in this one transaction"),
    ]


def _in_one_transaction(table: TargetTable, check_accounts: Step) -> list[Step]:
    steps = []
    if table.catalog is None:
        steps.append(Step("create_table", f"create table {table.name}"))
    elif table.destination.target == "replace":
        steps.append(Step("delete_rows", f"delete all rows of {table.name}"))
    return [
        *steps,
        Step("insert", f"insert the rows of all streams into {table.name}"),
        check_accounts,
    ]


def _into_partitions(table: TargetTable, partitioning: Partitioning) -> list[Step]:
    """All in one transaction, in which one table after the other is filled."""
    parts = partitioning.partitions
    old = _old_parts(table, partitioning)
    steps = [Step("create_staging", _made(partitioning, old))]
    if len(parts) == 1:
        steps += [Step("insert", f"insert the rows of all streams into {parts[0].table}"), _CHECK_ACCOUNTS]
    else:
        steps += [
            Step("insert", "sort the rows of all streams by partition, in a hidden temporary table"),
            _CHECK_ACCOUNTS,
            Step("fill_partitions", f"insert the rows of {counted(len(parts), 'partition')} into their tables"),
        ]
    return [
        *steps,
        Step("switch", f"make {table.name} the view of its partitions"),
    ]


def _made(partitioning: Partitioning, old: int) -> str:
    actions = [part.action for part in partitioning.partitions]
    made = []
    if old:
        made.append(f"drop {counted(old, 'old table')}")
    if "exchange" in actions:
        made.append(f"delete the rows of {counted(actions.count('exchange'), 'partition')}")
    if "attach" in actions:
        made.append(f"create {counted(actions.count('attach'), 'table')}")
    return ", ".join(made) or "no table is new"


def _old_parts(table: TargetTable, partitioning: Partitioning) -> int:
    is_whole = table.destination.target == "replace" and not table.destination.partitions
    return len(table.own_tables()) if is_whole else len(partitioning.drops)


def _straight(table: TargetTable, *, commits: bool) -> list[Step]:
    if commits:
        return [Step("insert", f"copy the rows into {table.name}, each writer commits as it goes"), _CHECK_ACCOUNTS]
    return [
        Step("insert", f"copy the rows into {table.name}, each writer in a transaction that stays open"),
        _CHECK_ACCOUNTS,
        Step("commit", "commit the writers' transactions one after the other"),
    ]


def _switched(table: TargetTable, staging: Staging, partitioning: Partitioning | None, *, commits: bool) -> list[Step]:
    catalog = table.catalog
    has_indexes = catalog is not None and bool(catalog.indexes) and staging.switch in ("rename", "attach")
    indexes_first = has_indexes and table.destination.options.indexes == "before"
    tables = _hidden_tables(staging, partitioning)
    if indexes_first:
        tables += f" with the indexes of {table.name}"
    to_create = [part for part in staging.tables if not part.owned]
    owned = all(part.owned for part in staging.tables if part.partition != STRAYS)
    is_shared = partitioning is not None and partitioning.way == "shared"
    unit = "table" if owned or is_shared else "stream and table"
    created = "a hidden table for strays" if owned else tables
    steps = [Step("create_staging", f"create {created}")] if to_create else []
    how_often = "committed as they go" if commits else f"a transaction for each {unit}"
    steps += [Step("insert", f"copy the rows into {tables}, {how_often}"), _CHECK_ACCOUNTS]
    if has_indexes and not indexes_first:
        steps.append(Step("build_indexes", f"build the indexes of {table.name} for the new rows"))
    if partitioning is not None:
        moves = _moves(table, partitioning)
        return [*steps, Step("switch", f"{moves}: the rows become visible in this one transaction")]
    how = {
        "schema": f"make it table {table.name}",
        "rename": f"let it take the place of {table.name}",
        "move": f"empty {table.name} and move the rows there"
        if table.destination.target == "replace"
        else f"move the rows into {table.name}",
        "view": f"make {table.name} the view of them",
    }[staging.switch]
    return [*steps, Step("switch", f"{how}: the rows become visible in this one transaction")]


def _hidden_tables(staging: Staging, partitioning: Partitioning | None) -> str:
    if partitioning is not None and partitioning.way == "server":
        return f"1 hidden table with {counted(len(partitioning.partitions), 'partition')}"
    strays = sum(part.partition == STRAYS for part in staging.tables)
    text = counted(len(staging.tables) - strays, "hidden table")
    return f"{text} and 1 for strays" if strays else text


def _moves(table: TargetTable, partitioning: Partitioning) -> str:
    """What the switch does, in its order."""
    actions = [part.action for part in partitioning.partitions]
    moves = []
    if partitioning.drops:
        moves.append(f"drop {counted(len(partitioning.drops), 'old partition')}")
    if "exchange" in actions:
        moves.append(f"let them take the place of {counted(actions.count('exchange'), 'partition')} of {table.name}")
    if "attach" in actions:
        new = actions.count("attach")
        them = "them" if new == len(actions) else counted(new, "table")
        moves.append(f"make {them} {'a partition' if new == 1 else 'partitions'} of {table.name}")
    if "insert" in actions:
        moves.append(f"move rows into {counted(actions.count('insert'), 'existing partition')}")
    if "discard" in actions:
        moves.append(f"leave {table.name} without new partitions")
    if partitioning.has_strays and len(partitioning.partitions) > 1:
        moves.append("move the strays into their partitions")
    return ", ".join(moves)
