"""The PostgreSQL target without a server: names, types, statements in their order, and what follows a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from headrace.errors import AccountsError, CancelledError, HeadraceError, LedgerError, TargetBusyError, TargetError
from headrace.model import DataType, LoadOptions, PostgresConnection, RejectLimits
from headrace.model.conninfo import ConnectionParameters
from headrace.planning import (
    ALL_PARTITIONS,
    STRAYS,
    WHOLE_TABLE,
    CommitSize,
    DataFlowPlan,
    OutputColumn,
    Partition,
    Partitioning,
    RangeRule,
    SourceSnapshot,
    StagingTable,
)
from headrace.planning.memory import MemorySplit
from headrace.targets import OpenOptions, RunRecord
from headrace.targets.postgres.connection import ConnectionSpec, Row
from headrace.targets.postgres.failures import explained
from headrace.targets.postgres.names import (
    TableName,
    literal,
    parse_staging_name,
    quote,
    run_lock_key,
    session_name,
    staging_name,
    table_lock_key,
    writers_lock_key,
)
from headrace.targets.postgres.target import PostgresTarget
from headrace.targets.postgres.types import native_type, readable_type, server_type
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot
from tests.unit.targets.fake_postgres import FakeFlow, FakeSession, server_error

RUN = "20261120-101530-ab12cd"
COLUMNS = (
    OutputColumn("o_id", "id", DataType("int64"), False),
    OutputColumn("o_note", 'no"te', DataType("varchar", length=10), True),
)
ORDERS = TableName("mart", "Orders")
TABLE: dict[str, list[Row]] = {
    "relation": [["4711", "table", "f", "loader", "t"]],
    "columns": [
        ["id", "bigint", "int8recv", "-1", "f", "f", "f", "f"],
        ['no"te', "mart.short", "varcharrecv", "14", "t", "f", "f", "f"],
    ],
    "rights": [["t", "t", "t"]],
    "rebuild": [
        ["Orders_pkey", "t", "t", "PRIMARY KEY (id)", None, "pkey"],
        ["by note", "f", "f", ' USING btree ("no""te")', 'no"te', "idx"],
    ],
    "sequences": [["id", "mart", "Orders_id_seq", "t"], ['no"te', "mart", "notes", "f"]],
    "storage": [[" WITH (fillfactor = '90')", None]],
    "appearance": [['GRANT SELECT ON TABLE "mart"."Orders" TO PUBLIC']],
}


def plan(switch: str, target: str = "replace", **members: Any) -> DataFlowPlan:
    slices = members.pop("slices", (1, 2))
    whole = (StagingTable(WHOLE_TABLE, "Orders", tuple(slices), members.pop("owned", True)),)
    files = [{"path": '/data/"a"\\b.tbl', "size_bytes": 9, "modified_ns": 1}]
    return DataFlowPlan(
        task="load_orders",
        connection="warehouse",
        schema="mart",
        table="Orders",
        target=target,
        load="single",
        switch=switch,  # type: ignore[arg-type]
        partitioning=members.pop("partitioning", None),
        staging=members.pop("staging", whole),
        commit=members.pop("commit", None),
        options=members.pop("options", LoadOptions()),
        streams=members.pop("streams", 2),
        source=SourceSnapshot(
            "orders",
            files,
            [{"number": number, "file": 0, "begin_byte": 0, "end_byte": 9} for number in slices],
        ),
        layout={},
        columns=COLUMNS,
        steps=(),
        notes=(),
        memory=MemorySplit(0, 0, 0, 0, 0, 0, 0),
        sink_kind="postgres",
        rejects=RejectLimits(),
        file_stem="orders",
    )


def model(**members: Any) -> PostgresConnection:
    parameters = ConnectionParameters(
        hosts=(("db", 5432),), database="shop", user="loader", password="secret", options="-c work_mem=1MB"
    )
    return PostgresConnection("warehouse", parameters, **members)


class Load:
    """One load with fakes around it. Sessions after the first are `later`."""

    def __init__(self, planned: DataFlowPlan, answers: dict[str, list[Row]] | None = None, **members: Any) -> None:
        self.plan = planned
        self.session = FakeSession({"schema_rights": [["t", "t"]], "committed": [["0", "0"]], **(answers or {})})
        self.later: list[FakeSession | HeadraceError] = []
        self.flow = FakeFlow([int(item["number"]) for item in planned.source.slices])
        self.notices: list[str] = []
        self.cancel = threading.Event()
        sessions = [self.session]
        # All sessions that work beside the control connection.
        self.beside = FakeSession()

        def connect(spec: ConnectionSpec) -> FakeSession:
            if spec["application_name"] == session_name(RUN, "load_orders"):
                return self.beside
            found = sessions.pop() if sessions else self.later.pop(0)
            if isinstance(found, HeadraceError):
                raise found
            return found

        options = OpenOptions(0, 2, None, False, self.notices.append, self.cancel.is_set)
        self.target = PostgresTarget(model(**members), options, connect)
        self.target.begin_run(RunRecord(RUN, "shop", "hash", "1", "host", 7, datetime(2026, 11, 20, tzinfo=UTC)))
        self.target.record_slices(RUN, planned)
        self.sink = self.target.sink_spec(RUN, planned)
        self.session.log.clear()

    def run(self, also: Callable[[str], None] = lambda text: None) -> Any:
        """The load; the ledger has no slices before it and all behind it. `also` is called for every statement."""
        slices = str(len(self.plan.source.slices))
        counts: list[Row] = [[slices, slices]]
        self.session.answers["hidden"] = [["4712", "table", "f", "loader", "t"]]
        hidden = staging_name(RUN, ORDERS, self.plan.staging[0].partition)
        indexes = self.session.answers.get("rebuild", [])
        copies: list[Row] = [[f"{hidden}_i{number}", *index[1:]] for number, index in enumerate(indexes, 1)]
        if self.plan.options.indexes == "before":
            self.session.answers["rebuild of 4712"] = copies

        def built(text: str) -> None:
            self.session.answers["rebuild of 4712"] = copies
            also(text)

        self.beside.on_statement = built

        def note(text: str) -> None:
            if text.startswith("committed("):
                self.session.answers["committed"] = [["0", "0"]] if not self.flow.started else counts
            also(text)

        self.session.on_statement = note
        return self.target.load(RUN, self.plan, self.flow, self.flow.settle)


# --- names and types --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["orders", "Größe", "select", 'a"b', "x" * 63, "ü" * 31, "_", "a_1"])
def test_the_name_of_a_staging_table_tells_where_it_belongs(name: str) -> None:
    table = TableName("mart", name)
    for partition in (WHOLE_TABLE, STRAYS, ALL_PARTITIONS, "1", "4096"):
        staging = staging_name(RUN, table, partition)
        assert staging.isascii() and len(staging) <= 60
        parsed = parse_staging_name(staging)
        assert parsed is not None
        assert (parsed.run_id, parsed.partition) == (RUN, partition)
    assert staging_name(RUN, table, "1") != staging_name(RUN, TableName("other", name), "1")


@pytest.mark.parametrize("name", ["run", "slice", "commit", "a_b_c_d", f"{RUN}_orders_12345678_y"])
def test_other_tables_are_no_staging_tables(name: str) -> None:
    assert parse_staging_name(name) is None


def test_sessions_are_named_in_ascii_with_room_for_the_writer() -> None:
    name = session_name(RUN, "größe " * 20)
    assert name.startswith(f"headrace {RUN} gr??e")
    assert len(f"{name} w4096") <= 63


def test_lock_keys_are_the_same_in_every_version() -> None:
    """Two versions of Headrace must see each other's locks."""
    assert run_lock_key(RUN) == 7228495488034784200
    assert writers_lock_key(RUN) == 1550843477724339811
    assert table_lock_key("shop", ORDERS) == -3688135554931371795


def test_quoting() -> None:
    assert quote('a"b') == '"a""b"'
    assert literal("it's a \\") == "'it''s a \\'"


def test_types() -> None:
    numbers = [(15, 2), (50, 0), (5, 2048 - 2), (2, 5)]
    modifiers = {"numeric_recv": [-1, *((precision << 16) + scale + 4 for precision, scale in numbers)]}
    modifiers |= {name: [-1, 7] for name in ("varcharrecv", "bpcharrecv")}
    modifiers |= {name: [-1, 6, 3] for name in ("time_recv", "timestamp_recv", "timestamptz_recv")}
    others = ["int2recv", "int4recv", "int8recv", "float4recv", "float8recv", "boolrecv", "date_recv", "textrecv"]
    others += ["namerecv", "citextrecv", "enum_recv", "bytearecv", "uuid_recv", "json_recv", "jsonb_recv"]
    lines: list[str] = []
    read: list[str] = []
    for receive in [*modifiers, *others, "array_recv", "interval_recv", None]:
        for modifier in modifiers.get(receive or "", [-1]):
            for found, into in ((server_type(receive, modifier), lines), (readable_type(receive, modifier), read)):
                into.append(f"{receive} {modifier}: {f'{found.form} {found.type}' if found else 'nothing'}")
    # What lookups read, where it differs from what is written.
    other = [text for text, written in zip(read, lines, strict=True) if text != written]
    assert_snapshot("postgres_types_read", "\n".join(other))
    kinds = ["int16", "decimal(15,2)", "char(3)", "varchar(4)", "string", "timestamp", "timestamptz", "json", "bytes"]
    lines += [f"{text}: {native_type(DataType.parse(text))}" for text in kinds]
    assert_snapshot("postgres_types", "\n".join(lines))


# --- statements -------------------------------------------------------------------------------------------------------

RULES = (RangeRule("1", "100"), RangeRule("100", "201"))
PARTITIONING = Partitioning(
    "range",
    "id",
    "o_id",
    DataType.parse("int64"),
    "home",
    tuple(Partition(str(number), f"Orders_{number}", rule) for number, rule in enumerate(RULES, 1)),
)
VIEW = PARTITIONS = tuple(StagingTable(str(number), f"Orders_{number}", (number,), True) for number in (1, 2))
LOADS: dict[str, tuple[DataFlowPlan, dict[str, list[Row]]]] = {
    "new": (plan("schema", "create"), {}),
    "new_shared": (plan("schema", "create", owned=False), {}),
    "rename": (plan("rename"), TABLE),
    "rename_indexes_before": (plan("rename", options=LoadOptions(indexes="before", lock=True, analyze=True)), TABLE),
    "move": (plan("move", options=LoadOptions(disable_triggers=True)), {**TABLE, "triggers": [["audit", "A"]]}),
    "append": (plan("none", "append", owned=False), TABLE),
    "attach_new": (plan("attach", "create", staging=PARTITIONS, partitioning=PARTITIONING), {}),
    "attach_replace": (
        plan("attach", staging=PARTITIONS, partitioning=PARTITIONING, streams=1),
        {
            **TABLE,
            "relation": [["4711", "table", "t", "loader", "t"]],
            "partitions": [["mart", "Orders_1", "FOR VALUES FROM ('1') TO ('50')", "4712"]],
        },
    ),
    "view_new": (plan("view", "create", staging=VIEW), {}),
    "view_append": (
        plan("view", "append", staging=VIEW),
        {**TABLE, "relation": [["4711", "view", "f", "loader", "t"]], "view_tables": [["Orders_7"]]},
    ),
}


@pytest.mark.parametrize("case", LOADS)
def test_statements(case: str) -> None:
    """What the writers are told, and what the control connection does before and behind them."""
    planned, answers = LOADS[case]
    load = Load(planned, answers)
    load.run()
    writers = [
        f"--- {table['name']}, partition '{table['partition']}', slices {table['slices']}, owned {table['owned']}\n"
        f"{table['begin']}\n{table['copy']}"
        for table in load.sink["tables"]
    ]
    head = f"commit {load.sink['commit']}, columns {load.sink['columns']}\n{load.sink['commit_slices']}"
    beside = ["=== beside", load.beside.statements()] if load.beside.log else []
    text = "\n\n".join([head, *writers, *beside, "=== control", load.session.statements()])
    assert_snapshot(f"postgres_{case}", text)
    assert load.flow.committed == (planned.switch == "none")


def test_writers_have_the_sessions_settings_and_the_password() -> None:
    connection = Load(plan("schema")).sink["connection"]
    assert connection["password"] == "secret"
    assert connection["application_name"] == f"headrace {RUN} load_orders"
    assert connection["options"].startswith("-c work_mem=1MB -c statement_timeout=0 ")
    assert "-c lock_timeout=30s" in connection["options"]
    assert "keepalives" not in connection["options"]
    assert connection["hosts"] == [{"host": "db", "port": 5432, "address": "10.0.0.7:5432"}]


def test_writers_have_what_nobody_has_decided() -> None:
    undecided: list[Row] = [["client_min_messages"], ["tcp_keepalives_idle"]]
    options = Load(plan("schema"), {"undecided_settings": undecided}).sink["connection"]["options"]
    assert "-c tcp_keepalives_idle=60 -c client_min_messages=warning" in options
    assert "tcp_keepalives_count" not in options


def test_without_a_ledger() -> None:
    load = Load(plan("schema", owned=False), ledger_schema=None)
    assert load.sink["commit_slices"] is None
    load.run()
    assert_snapshot("postgres_without_ledger", load.session.statements())


def test_a_standby_is_refused() -> None:
    with pytest.raises(TargetError, match="is a standby"):
        Load(plan("schema"), {"server": [["99", "t", "UTF8"]]})


# --- failures ---------------------------------------------------------------------------------------------------------


def cleaned_up(session: FakeSession, *, is_new: bool = False) -> bool:
    """Rolled back, staging table dropped. A new session has nothing to roll back."""
    text = session.statements()
    return ("ROLLBACK" in text or is_new) and "DROP TABLE IF EXISTS" in text and "forget_commits" in text


def test_a_failed_flow_leaves_nothing() -> None:
    load = Load(plan("schema"))
    load.flow.error = AccountsError("one row too few")
    with pytest.raises(AccountsError, match="one row too few"):
        load.run()
    assert cleaned_up(load.session)


def test_an_index_that_cannot_be_made_is_named() -> None:
    load = Load(plan("rename"), TABLE)
    load.beside.failures["ADD CONSTRAINT"] = server_error("23505", "could not create", detail="Key (id)=(1) is double.")
    with pytest.raises(TargetError) as failure:
        load.run()
    assert_snapshot("postgres_duplicate_key", failure.value.render())
    assert cleaned_up(load.session)


def test_a_run_that_was_taken_over_makes_nothing_visible() -> None:
    load = Load(plan("schema"))
    with pytest.raises(LedgerError, match="does not agree"):
        load.target.load(RUN, load.plan, load.flow, load.flow.settle)
    assert "SET SCHEMA" not in load.session.statements()
    assert cleaned_up(load.session)


def test_moved_rows_are_counted() -> None:
    """A rule or a trigger may leave rows out."""
    load = Load(plan("move"), TABLE)
    load.session.rows_moved = 3
    with pytest.raises(AccountsError) as failure:
        load.run()
    assert failure.value.found == "3 rows"
    assert cleaned_up(load.session)


def test_a_lost_control_connection_stops_the_flow() -> None:
    load = Load(plan("schema"))
    load.later = [FakeSession()]
    load.session.failures["SELECT pg_catalog.pg_stat_clear_snapshot()"] = server_error(
        "57P01", "terminating connection"
    )
    stopped = threading.Event()

    def cancel(reason: str) -> None:
        load.flow.cancelled_for = reason
        stopped.set()

    def settle(rows: int | None) -> dict[str, Any]:
        assert stopped.wait(HANG_SECONDS)
        raise CancelledError("the flow was cancelled")

    load.flow.cancel = cancel  # type: ignore[method-assign]
    later = load.later[0]
    assert isinstance(later, FakeSession)
    with pytest.raises(TargetBusyError, match="the server has ended the session"):
        load.target.load(RUN, load.plan, load.flow, settle)
    assert load.flow.cancelled_for == "the control connection was lost"
    assert cleaned_up(later, is_new=True)


@pytest.mark.parametrize(("switch", "target"), [("schema", "replace"), ("none", "append")])
def test_a_control_connection_lost_when_the_last_stream_ends(switch: str, target: str) -> None:
    """The flow itself has succeeded, but what its writers have not committed is cancelled."""
    load = Load(plan(switch, target))
    load.later = [FakeSession()]
    load.session.failures["SELECT pg_catalog.pg_stat_clear_snapshot()"] = server_error(
        "57P01", "terminating connection"
    )
    stopped = threading.Event()
    load.flow.cancel = lambda reason: stopped.set()  # type: ignore[method-assign]

    def settle(rows: int | None) -> dict[str, Any]:
        assert stopped.wait(HANG_SECONDS)
        return load.flow.join(0) or {}

    with pytest.raises(TargetBusyError, match="the server has ended the session"):
        load.target.load(RUN, load.plan, load.flow, settle)
    assert not load.flow.committed


@pytest.mark.parametrize("is_committed", [True, False])
def test_an_answer_to_the_commit_that_is_lost(is_committed: bool) -> None:
    """The ledger knows."""
    load = Load(plan("schema"))
    later = FakeSession({"is_switched": [["t"]] if is_committed else []})
    load.later = [later]

    def lose(text: str) -> None:
        if text.startswith("commit_slices"):
            load.session.failures["COMMIT"] = TargetBusyError("the connection was lost")

    if is_committed:
        assert "it is committed" in load.run(lose).warnings[0]
    else:
        with pytest.raises(TargetBusyError, match="the connection was lost"):
            load.run(lose)
        assert cleaned_up(later)


def test_cancelled_while_a_statement_runs() -> None:
    load = Load(plan("schema"))
    later = FakeSession()
    load.later = [later]

    def switch(text: str) -> None:
        if "SET SCHEMA" in text:
            load.cancel.set()
            assert load.session.cancelled.wait(HANG_SECONDS)

    with pytest.raises(CancelledError):
        load.run(switch)
    assert cleaned_up(later, is_new=True)


def test_cancelled_while_an_index_is_built() -> None:
    """The session that builds it is ended; the control connection is not."""
    load = Load(plan("rename"), TABLE)

    def build(text: str) -> None:
        if "ADD CONSTRAINT" in text:
            load.cancel.set()
            assert load.beside.cancelled.wait(HANG_SECONDS)

    with pytest.raises(CancelledError):
        load.run(build)
    assert load.beside.log[-1] == "(closed)"
    assert cleaned_up(load.session)


@pytest.mark.parametrize("is_committed", [True, False])
def test_an_append_whose_commit_is_not_confirmed_waits_for_its_writers(is_committed: bool) -> None:
    load = Load(plan("none", "append"), TABLE)
    lost = TargetBusyError("connection to db was lost while running a statement")

    def commit() -> None:
        load.session.log.clear()
        raise lost

    load.flow.commit = commit  # type: ignore[method-assign]

    def on_statement(text: str) -> None:
        # The server is still committing: it shows the rows only to those who wait for that.
        if load.session.log[:1] == [f"committed({RUN}, load_orders)"] or not is_committed:
            load.session.answers["committed"] = [["0", "0"]]

    if is_committed:
        assert load.run(on_statement).warnings
    else:
        with pytest.raises(TargetBusyError):
            load.run(on_statement)
    assert load.session.log[0] == f"wait_for_commits({RUN})"


def test_writers_that_do_not_end_their_commit_leave_the_rest_to_resume() -> None:
    load = Load(plan("none", "append"), TABLE)
    load.flow.commit = lambda: (_ for _ in ()).throw(TargetBusyError("lost"))  # type: ignore[method-assign]
    load.session.failures["wait_for_commits"] = server_error("55P03", "canceling statement due to lock timeout")
    with pytest.raises(LedgerError) as failure:
        load.run()
    assert f"headrace resume {RUN}" in str(failure.value.hint)


def test_another_run_loads_the_table() -> None:
    load = Load(plan("schema"), lock_timeout_seconds=0)
    load.session.answers["lock_holder"] = [[f"headrace {RUN} control", "99", "anna", "10.0.0.1"]]
    original = load.session.query

    def query(text: str, parameters: Any = ()) -> Any:
        result = original(text, parameters)
        return replace(result, rows=[["f"]]) if "pg_try_advisory_lock" in text else result

    load.session.query = query  # type: ignore[method-assign]
    with pytest.raises(TargetBusyError) as failure:
        load.run()
    assert_snapshot("postgres_table_is_busy", failure.value.render())
    assert not load.flow.started


def test_a_part_that_was_appended_is_not_appended_again() -> None:
    load = Load(plan("none", "append"), TABLE)
    load.session.answers["half_appended"] = [["20261119-080000-000000", "lost", "load_orders", "8", "3"]]
    with pytest.raises(TargetError) as failure:
        load.run()
    assert_snapshot("postgres_half_appended", failure.value.render())
    assert not load.flow.started


def test_rows_that_are_committed_as_they_come_stay() -> None:
    load = Load(plan("none", "append", commit=CommitSize(rows=1000)), TABLE)
    assert (load.sink["commit"], load.sink["commit_rows"], load.sink["commit_bytes"]) == ("unit", 1000, None)
    load.flow.error = server_error("57P01", "terminating connection")

    def committed(text: str) -> None:
        load.session.answers["committed"] = [["1", "1"]]

    with pytest.raises(TargetBusyError) as failure:
        load.run(committed)
    assert "; 1 of its rows is in the table" in failure.value.what
    assert failure.value.rows_committed == 1
    assert f"headrace resume {RUN}" in str(failure.value.hint)


def test_rows_that_are_committed_as_they_come_need_a_ledger() -> None:
    load = Load(plan("none", "append", commit=CommitSize(rows=1000)), TABLE, ledger_schema=None)
    with pytest.raises(TargetError, match="without a ledger"):
        load.run()
    assert not load.flow.started


SQLSTATES = ["23505", "23514", "22003", "40P01", "42501", "53100", "53300", "55P03", "57P01", "58030", "XX000", "99999"]


def test_every_code_has_advice() -> None:
    texts = []
    for code in SQLSTATES:
        error = explained(server_error(code, "the words of the server"), "loading table warehouse.orders", "; so what")
        texts.append(f"retryable {error.retryable}\n{error.render()}")
        assert error.server is not None
        assert explained(error, "loading table warehouse.orders") is error
    assert_snapshot("postgres_errors", "\n\n".join(texts))


def test_disabled_triggers_need_one_transaction() -> None:
    with pytest.raises(TargetError, match="cannot be kept from firing"):
        Load(
            plan("none", "append", options=LoadOptions(disable_triggers=True)), {**TABLE, "triggers": [["audit", "O"]]}
        )
