"""Loads of partitioned targets with plans made by hand, and a flow that puts each row where its test says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace import core
from headrace.model import DataType
from headrace.planning import (
    ALL_PARTITIONS,
    STRAYS,
    DataFlowPlan,
    HashRule,
    ListRule,
    OutputColumn,
    Partition,
    Partitioning,
    PartitionRule,
    RangeRule,
    StagingTable,
)
from headrace.planning.partitioning import PartitionAction, Strategy, Way
from headrace.targets import LoadTimes
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES
from headrace.targets.postgres.connection import Connection
from headrace.targets.postgres.target import PostgresTarget
from tests.integration.test_postgres_target import Run, plan, record
from tests.integration.unit_flow import UnitFlow
from tests.servers.cluster import Database

# By slice and partition in the ledger: rows as SQL values.
Placed = Mapping[int, Mapping[str, Sequence[str]]]


def partition(number: int, rule: PartitionRule, action: PartitionAction = "attach", **members: Any) -> Partition:
    """The partition `orders_NUMBER`, called NUMBER in the ledger."""
    replaces = f"orders_{number}" if action == "exchange" else None
    return Partition(str(number), f"orders_{number}", rule, action=action, replaces=replaces, **members)


def partitioned(
    target: str,
    way: Way,
    parts: Sequence[Partition],
    slices: int = 2,
    key: OutputColumn | None = None,
    owned: bool = True,
    drops: tuple[str, ...] = (),
    **members: Any,
) -> DataFlowPlan:
    """A plan as planning makes it: `home` gives slice N the partition N."""
    column = key or OutputColumn("id", "id", DataType("int64"), nullable=True)
    every = tuple(range(1, slices + 1))
    if way == "server":
        staging = [StagingTable(ALL_PARTITIONS, "orders", every, owned=False)]
    elif way == "shared":
        staging = [StagingTable(part.name, part.table, every, owned) for part in parts]
    else:
        homes = [(number,) if number <= slices else () for number in range(1, len(parts) + 1)]
        staging = [
            StagingTable(part.name, part.table, home, owned and bool(home))
            for part, home in zip(parts, homes, strict=True)
        ]
        staging.append(StagingTable(STRAYS, "orders", every, owned=False))
    strategies: dict[type[object], Strategy] = {RangeRule: "range", ListRule: "list", HashRule: "hash"}
    strategy = next(strategies[type(part.rule)] for part in parts if type(part.rule) in strategies)
    planned = plan(
        "attach",
        target,
        rows=dict.fromkeys(every, ()),
        staging=tuple(staging),
        columns=(column, OutputColumn("note", "note", DataType("string"), nullable=True)),
        **members,
    )
    divided = Partitioning(
        strategy,
        column.target,
        column.source,
        column.type,
        way,
        tuple(parts),
        has_strays=way == "home",
        drops=drops,
        hash_key=POSTGRES_CAPABILITIES.hash_keys[column.type.kind] if strategy == "hash" else None,
    )
    return replace(planned, partitioning=divided)


class PlacingFlow(UnitFlow):
    """Fills the tables of a sink as the core does. `committed`: slices that an earlier attempt has completed; `dies`:
    called with each partition before its commit, and may raise.
    """

    def __init__(
        self,
        sink: Mapping[str, Any],
        placed: Placed,
        before_switch: Callable[[], object] = lambda: None,
        committed: Collection[int] = (),
        dies: Callable[[str], object] = lambda partition: None,
    ) -> None:
        super().__init__(sink, before_switch, committed)
        self._placed = placed
        self._dies = dies

    def rows_out(self) -> Mapping[int, int]:
        return {number: sum(len(rows) for rows in placed.values()) for number, placed in self._placed.items()}

    def tables(self) -> Sequence[Mapping[str, Any]]:
        strays = [self._sink["strays"]] if self._sink["strays"] else []
        return [*strays, *super().tables()]

    def unit(self, table: Mapping[str, Any], slices: Sequence[int]) -> None:
        connection = core.PostgresConnection(self._sink["connection"])
        try:
            self._fill(connection, table, slices)
        finally:
            connection.close()

    def _fill(self, connection: core.PostgresConnection, table: Mapping[str, Any], slices: Sequence[int]) -> None:
        rows = {number: self._rows_of(table["partition"], number) for number in slices}
        for number in [number for number in slices if str(number) in table["committed"]]:
            assert table["committed"][str(number)] == len(rows.pop(number))
        connection.execute(table["begin"])
        self.insert(connection, table, [row for found in rows.values() for row in found])
        if self._sink["commit_slices"] and rows:
            # Rejected and skipped lines are in one of the commit rows of a slice.
            is_first = (
                table == self._sink["tables"][0] if self._sink["way"] == "shared" else table != self._sink["strays"]
            )
            counts = {number: len(found) for number, found in rows.items()}
            self.commit_rows(connection, table, counts, skipped=int(is_first))
        self._dies(table["partition"])
        connection.execute("COMMIT")

    def _rows_of(self, partition: str, number: int) -> Sequence[str]:
        placed = self._placed[number]
        if partition == ALL_PARTITIONS:
            return [row for rows in placed.values() for row in rows]
        if partition != STRAYS:
            return placed.get(partition, ())
        home = next(table["partition"] for table in self._sink["tables"] if number in table["slices"])
        return [row for name, rows in placed.items() if name != home for row in rows]


def load(
    database: Database, planned: DataFlowPlan, placed: Placed, lock_timeout_seconds: int = 1, **members: Any
) -> LoadTimes:
    """A whole run."""
    run = Run(database, lock_timeout_seconds=lock_timeout_seconds)
    with run.target:
        run.begin()
        run.target.record_slices(run.run_id, planned)
        flow = PlacingFlow(run.target.sink_spec(run.run_id, planned), placed, **members)
        times = run.target.load(run.run_id, planned, flow, flow.settle)
        run.target.end_run(run.run_id, "success", None)
        return times


class DyingConnection:
    """One of a process that is killed in front of its statement `number`, from 0."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._left = number

    def execute(self, sql: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise ProcessLookupError(f"killed before {sql}")
        self._connection.execute(sql)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def start(
    database: Database, planned: DataFlowPlan, placed: Placed, statements: int | None = None, **members: Any
) -> Run:
    """A run whose flow dies, or its process behind some of the `statements` that make the shared tables. What it raises
    is passed over, and its control connection goes.
    """
    run = Run(database)
    run.begin()
    run.target.record_slices(run.run_id, planned)
    sink = run.sink = run.target.sink_spec(run.run_id, planned)
    control: Any = run.target._control
    try:
        run.target._staging[planned.task].make_shared(
            control if statements is None else DyingConnection(control, statements)
        )
        PlacingFlow(sink, placed, **members).start()
    except ProcessLookupError:
        pass
    finally:
        run.target.close()
    return run


def resume(database: Database, run: Run, planned: DataFlowPlan, placed: Placed) -> LoadTimes:
    """What is left of a run."""
    with Run(database).target as target:
        target.resume_run(record(run.run_id))
        times = load_rest(target, run.run_id, planned, placed)
        target.end_run(run.run_id, "success", None)
        return times


def load_rest(target: PostgresTarget, run_id: str, planned: DataFlowPlan, placed: Placed) -> LoadTimes:
    """After `resume_run`."""
    committed = target.task_progress(run_id, planned.task).slices
    rest = planned.continued(committed)
    flow = PlacingFlow(target.sink_spec(run_id, rest), placed, committed=set(committed))
    return target.load(run_id, rest, flow, flow.settle)


def by_partition(database: Database, table: str = "orders") -> dict[str, list[str | None]]:
    """Keys in each partition that has rows."""
    found: dict[str, list[str | None]] = {}
    for name, key in database.rows(f"SELECT tableoid::regclass, id FROM {table} ORDER BY 1, 2, note"):
        found.setdefault(str(name), []).append(key)
    return found
