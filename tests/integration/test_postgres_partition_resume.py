"""Partitioned loads that die between the commits of their units, against servers of every version: no row is lost, none
comes twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from headrace.errors import LedgerError, TargetBusyError, TargetError
from headrace.planning import CommittedSlice, DefaultRule, HashRule, RangeRule
from headrace.planning.partitioning import Way
from tests.integration.partitioned import Placed, PlacingFlow, by_partition, load, partition, partitioned, resume, start
from tests.integration.test_postgres_target import END_CONTROL, Run, left, plan, record, writer
from tests.integration.unit_flow import text_hash
from tests.servers.cluster import Cluster, Database

pytestmark = pytest.mark.faults

TENS = [RangeRule(str(number * 10), str(number * 10 + 10)) for number in range(1, 4)]
PARTS = [*(partition(number, rule) for number, rule in enumerate(TENS, 1)), partition(4, DefaultRule())]
PLACED: Placed = {
    1: {"1": ["10, 'a'", "19, 'b'"], "2": ["20, 'c'"]},
    2: {"2": ["29, 'd'"], "3": ["30, 'e'"], "4": ["NULL, 'f'"]},
    3: {"1": ["11, 'g'"], "3": ["31, 'h'"]},
}
KEYS: dict[str, Sequence[str | None]] = {
    "orders_1": ["10", "11", "19"],
    "orders_2": ["20", "29"],
    "orders_3": ["30", "31"],
    "orders_4": [None],
}
WAYS: tuple[Way, ...] = ("home", "shared", "server")


@pytest.fixture
def database(postgres_versions: Cluster) -> Iterator[Database]:
    with postgres_versions.database() as database:
        yield database


def dying(number: int) -> Any:
    """Ends the flow in front of a commit: the one with this number, from 0."""
    commits = itertools.count()

    def die(partition: str) -> None:
        if next(commits) >= number:
            raise ProcessLookupError(f"killed before the commit of {partition}")

    return die


@pytest.mark.in_turn("target")
@pytest.mark.parametrize("target", ["create", "replace", "append"])
@pytest.mark.parametrize("owned", [True, False], ids=["owned", "committing"])
@pytest.mark.parametrize("way", WAYS)
def test_a_load_that_dies_before_any_commit_is_resumed(database: Database, way: Way, owned: bool, target: str) -> None:
    """Before each commit of each unit, until none is left. Meanwhile the next run leaves nothing behind either."""
    expected: dict[str, list[str | None]] = {name: list(keys) for name, keys in KEYS.items()}
    if target != "create":
        load(database, partitioned("create", "shared", PARTS, slices=3), PLACED)
    if target == "append":
        expected = {name: twice(keys) for name, keys in KEYS.items()}
    parts = [replace(part, action="insert") for part in PARTS] if target == "append" else PARTS
    planned = partitioned(target, way, parts, slices=3, owned=owned)
    units = {("home", True): 6, ("home", False): 6, ("shared", True): 4, ("shared", False): 12}.get((way, owned), 3)
    for number in range(units + 1):
        run = start(database, planned, PLACED, dies=dying(number))
        resume(database, run, planned, PLACED)
        assert by_partition(database) == expected, f"killed before commit {number}"
        assert left(database) == []
        account = database.rows(
            'SELECT count(*), sum(rows_loaded), sum(rows_skipped) FROM headrace."commit" '
            f"WHERE run_id = '{run.run_id}' AND slice > 0"
        )
        per_slice = {"home": 2, "shared": 4, "server": 1}[way]
        assert account == [(str(3 * per_slice), "8", "3")]
        restore(database, target)
    # The same for runs that nobody resumes.
    for number in (0, units // 2, units):
        dead = start(database, planned, PLACED, dies=dying(number))
        load(database, planned, PLACED)
        assert by_partition(database) == expected
        assert left(database) == []
        assert database.rows(f"SELECT 1 FROM headrace.commit WHERE run_id = '{dead.run_id}'") == []
        restore(database, target)


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_dies_while_it_makes_hidden_tables_is_resumed(database: Database, way: Way) -> None:
    """Before each of its statements: what is there is complete, with its place in the table and its indexes."""
    load(database, partitioned("create", "shared", PARTS, slices=3), PLACED)
    database.as_loader("CREATE INDEX by_note ON orders (note)")
    planned = partitioned("replace", way, PARTS, slices=3, owned=False)
    got_through: list[str] = []

    def die(partition: str) -> None:
        got_through.append(partition)
        raise ProcessLookupError

    for number in itertools.count():
        run = start(database, planned, PLACED, statements=number, dies=die)
        resume(database, run, planned, PLACED)
        assert by_partition(database) == KEYS, f"killed before statement {number}"
        assert left(database) == []
        indexes = database.rows("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '% (note)'")
        assert indexes == [(str(1 + len(PARTS)),)], f"killed before statement {number}"
        quiet = database.rows("SELECT relname FROM pg_class WHERE 'autovacuum_enabled=false' = ANY (reloptions)")
        assert quiet == [], f"killed before statement {number}"
        if got_through:
            assert number > 0 or way == "home"
            break


def twice(keys: Sequence[str | None]) -> list[str | None]:
    return [key for key in keys for _ in range(2)]


def restore(database: Database, target: str) -> None:
    """What the next round needs."""
    database.as_loader("DROP TABLE orders")
    if target != "create":
        load(database, partitioned("create", "shared", PARTS, slices=3), PLACED)


def test_a_slice_is_complete_with_all_its_units(database: Database) -> None:
    planned = partitioned("create", "home", PARTS, slices=3)
    run = start(database, planned, PLACED, dies=dying(4))  # strays of three slices, and the home of slice 1
    with Run(database).target as target:
        target.resume_run(record(run.run_id))
        assert target.task_progress(run.run_id, "load").slices == {1: CommittedSlice(3, 0, 1, 0, text_hash(1))}
        sink = target.sink_spec(run.run_id, planned)
        assert sink["strays"]["committed"] == {"2": 2, "3": 1}
        assert [table["committed"] for table in sink["tables"]] == [{}, {}, {}, {}]


def test_a_load_has_begun_with_the_first_rows_of_a_slice(database: Database) -> None:
    planned = partitioned("create", "home", PARTS, slices=3)
    for commits in (0, 1):
        run = start(database, planned, PLACED, dies=dying(commits))
        with Run(database).target as target:
            target.resume_run(record(run.run_id))
            progress = target.task_progress(run.run_id, "load")
        assert (progress.slices, progress.begun) == ({}, commits > 0)


def test_rows_that_wait_for_resume_belong_to_the_whole(database: Database) -> None:
    """A table without commit rows goes when a load fails; the others stay, and so does what they depend on."""
    parts = [partition(number, HashRule(3, number - 1)) for number in (1, 2, 3)]
    placed: Placed = {1: {"1": ["NULL, 'a'"]}, 2: {"1": ["NULL, 'b'"]}}
    planned = partitioned("create", "shared", parts)
    run = Run(database)
    with run.target, pytest.raises(TargetBusyError):
        run.begin()
        run.target.record_slices(run.run_id, planned)
        sink = run.target.sink_spec(run.run_id, planned)
        flow = PlacingFlow({**sink, "tables": sink["tables"][:2]}, placed, lambda: database.rows(END_CONTROL))
        run.target.load(run.run_id, planned, flow, flow.settle)
    assert [str(name).rsplit("_", 1)[-1] for (name,) in left(database)] == ["1", "2", "p"]
    resume(database, run, planned, placed)
    assert by_partition(database) == {"orders_1": [None, None]}
    assert left(database) == []


def test_a_resume_with_other_partitions_is_refused(database: Database) -> None:
    """Under the same names: the ledger knows what each takes."""
    planned = partitioned("create", "shared", PARTS, slices=3)
    run = start(database, planned, PLACED, dies=dying(2))
    other = [*PARTS[:2], partition(3, RangeRule("30", "41")), PARTS[3]]
    with pytest.raises(LedgerError, match="cannot be resumed") as failure:
        resume(database, run, partitioned("create", "shared", other, slices=3), PLACED)
    assert '"end": "41"' in str(failure.value.found)
    resume(database, run, planned, PLACED)
    assert by_partition(database) == KEYS


def test_a_hash_of_another_table_is_refused(database: Database) -> None:
    parts = [partition(number, HashRule(2, number - 1)) for number in (1, 2)]
    placed: Placed = {1: {"1": ["NULL, 'a'"]}, 2: {"1": ["NULL, 'b'"]}}
    load(database, partitioned("create", "shared", parts), placed)
    planned = partitioned("replace", "shared", parts)
    run = start(database, planned, placed, dies=dying(1))
    database.as_loader("DROP TABLE orders; CREATE TABLE orders (id bigint, note text) PARTITION BY HASH (id)")
    with pytest.raises(LedgerError, match="cannot be resumed"):
        resume(database, run, planned, placed)


def test_two_runs(database: Database) -> None:
    """The second one waits for the lock of the table, and does not touch what the first one has in hand."""
    planned = partitioned("create", "shared", PARTS, slices=3)
    other = Run(database)

    def load_too() -> None:
        with other.target:
            other.begin()
            other.target.record_slices(other.run_id, planned)
            flow = PlacingFlow(other.target.sink_spec(other.run_id, planned), PLACED)
            with pytest.raises(TargetBusyError, match="loaded by another run"):
                other.target.load(other.run_id, planned, flow, flow.settle)

    load(database, planned, PLACED, before_switch=load_too)
    assert by_partition(database) == KEYS
    assert left(database) == []


def test_a_writer_that_comes_back_cannot_commit(database: Database) -> None:
    planned = partitioned("create", "shared", PARTS, slices=3, owned=False)
    run = start(database, planned, PLACED, dies=dying(5))
    with Run(database).target as target:
        target.resume_run(record(run.run_id))
        zombie = writer(run)
        values = ["1", "{2}", *["{0}"] * 6, "{NULL}"]
        assert zombie.query(run.sink["commit_slices"], values).tag == "INSERT 0 0"
        zombie.close()
    resume(database, run, planned, PLACED)
    assert by_partition(database) == KEYS


def test_a_half_appended_table_is_not_made_whole_by_reloading_one_partition(database: Database) -> None:
    """The rows of the dead run in other partitions are still there."""
    load(database, partitioned("create", "home", PARTS, slices=3), PLACED)
    appended = plan("none", "append")
    dead = Run(database)
    dead.die(appended, {1: ["12, 'p'"], 2: ["13, 'q'"]}, [1]).commit()
    reload = [replace(PARTS[2], action="exchange", replaces="orders_3")]
    load(database, partitioned("replace", "home", reload, slices=1), {1: {"3": ["33, 'n'"]}})
    with pytest.raises(TargetError, match="holds a part"):
        Run(database).load(appended)
    load(database, partitioned("replace", "home", PARTS, slices=3), PLACED)
    Run(database).load(appended, {1: ["12, 'p'"], 2: ["13, 'q'"]})
    assert by_partition(database)["orders_1"] == ["10", "11", "12", "13", "19"]


def test_strays_have_a_table_of_their_own(database: Database) -> None:
    times = load(database, partitioned("create", "home", PARTS, slices=3), PLACED)
    assert {part.name: (part.rows, part.strays) for part in times.partitions} == {
        "orders_1": (3, 1),
        "orders_2": (2, 1),
        "orders_3": (2, 1),
        "orders_4": (1, 1),
    }
    assert database.rows("SELECT sum(rows_loaded) FROM headrace.commit WHERE partition = 'strays'") == [("4",)]
    assert database.rows("SELECT count(*) FROM headrace.unit WHERE staging IS NOT NULL") == [("5",)]
