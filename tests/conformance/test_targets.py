"""What every target must do, as far as its capabilities say that it can."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pytest

import headrace.run as run
from headrace.errors import CancelledError
from headrace.model import BoundPackage, load_package
from headrace.model.connections import SCHEMES
from headrace.planning import Capabilities
from headrace.run import ReplayOptions, RunFolder, RunRequest, Summary, TableVerdict
from headrace.targets import capabilities_of
from tests.conformance.destinations import DESTINATIONS, Destination
from tests.conformance.values import CASES, ROWS, Case, expected_column, file_rows
from tests.servers.farm import Farm

# One version of the server for each test; `make test-every-case` has all.
pytestmark = pytest.mark.in_turn("suite", among="postgres ")

PACKAGE = """
headrace: 1
package: conformance
parameters:
  target: {type: string, default: replace}
  limit: {type: integer, default: 0}
connections:
  inbox: {type: files, path: inbox}
  warehouse: {type: "null"}
streams: 3
tasks:
  load:
    data_flow:
      rejects: {limit: "${limit}"}
      sources:
        rows:
          connection: inbox
          files: "rows.*"
          layout:
            delimiter: "|"
            null_tokens: ['\\N']
            columns:
"""
DESTINATION = """
      destinations:
        loaded: {input: rows, connection: warehouse, table: loaded, target: "${target}"}
"""


class Suite:
    """A package, its files and one destination."""

    def __init__(self, folder: Path, destination: Destination) -> None:
        self.folder = folder
        self.inbox = folder / "inbox"
        self.inbox.mkdir()
        self.destination = destination
        self.cases: tuple[Case, ...] = CASES
        self.dispositions = ""

    def write(self, *files: list[str]) -> None:
        """Writes `rows.1`, `rows.2` and so on."""
        for number, rows in enumerate(files, start=1):
            (self.inbox / f"rows.{number}").write_text("".join(rows), encoding="utf-8")

    def bind(self, streams: int = 3, **parameters: object) -> BoundPackage:
        columns = [
            "              - {name: id, type: int32, nullable: false}",
            *(f'              - {{name: {case.name}, type: "{case.type}"{self.dispositions}}}' for case in self.cases),
        ]
        package = self.folder / "package.yaml"
        package.write_text(PACKAGE + "\n".join(columns) + DESTINATION, encoding="utf-8")
        sets = [f"{name}={value}" for name, value in parameters.items()]
        connections = [f"warehouse={self.destination.url}"]
        return load_package(package, sets=sets, connections=connections, streams=streams, environ={})

    def run(self, cancel: threading.Event | None = None, listener: Any = None, **parameters: Any) -> Summary:
        package = self.bind(**parameters)
        return run.execute(package, runs_dir=self.folder / "runs", cancel=cancel, listener=listener)

    def run_to_verify(self, **parameters: Any) -> Summary:
        """A run that keeps what it was asked to do."""
        package = self.bind(**parameters)
        request = RunRequest.of(package.path, [], [], None, self.folder)
        summary = run.execute(package, runs_dir=self.folder / "runs", request=request)
        loaded(summary)
        return summary

    def replay(self, of: Summary, row: str, **parameters: Any) -> Summary:
        """A replay of a run with one reject, whose repaired row this is."""
        package = self.bind(**parameters)
        (self.folder / "repaired").write_text(row, encoding="utf-8")
        request = RunRequest.of(package.path, [], [], None, self.folder)
        replay = run.begin_replay(
            RunFolder(of.run_id, Path(of.run_folder)),
            package,
            ReplayOptions(self.folder / "repaired"),
            runs_dir=self.folder / "runs",
        )
        return run.execute(package, runs_dir=self.folder / "runs", request=request, replay=replay)

    def verdict(self, summary: Summary, **parameters: Any) -> TableVerdict:
        """What the verification says about the table as it is now."""
        folder = RunFolder(summary.run_id, Path(summary.run_folder))
        [verdict] = run.verify(self.bind(**parameters), folder, threading.Event())
        return verdict

    @property
    def capabilities(self) -> Capabilities:
        return capabilities_of(self.bind().connections["warehouse"])

    def check_count(self, rows: int | None) -> None:
        """The table has so many rows, if the target stores any."""
        assert self.destination.count("loaded") == (rows if self.capabilities.stores_tables else None)

    def check_ledger(self, *runs: tuple[str, int, int]) -> None:
        """The ledger says this, if the target keeps one."""
        assert self.destination.ledger() == (list(runs) if self.capabilities.ledger else [])


@pytest.fixture(params=DESTINATIONS)
def suite(request: pytest.FixtureRequest, tmp_path: Path, servers: Farm) -> Iterator[Suite]:
    destination = DESTINATIONS[request.param](tmp_path, servers)
    yield Suite(tmp_path, destination)
    destination.close()


def loaded(summary: Summary) -> dict[str, Any]:
    """The document of a run that must have been a success, with balanced accounts."""
    assert summary.failure is None, summary.failure.render()
    document = summary.to_dict()
    [table] = document["tables"]
    assert table["lines"] == table["rows_read"] + table["rows_skipped"]
    assert table["rows_read"] == table["rows_loaded"] + table["rows_rejected"]
    return document


def test_every_target_is_in_the_suite() -> None:
    assert {name.split()[0] for name in DESTINATIONS} == set(SCHEMES) - {"files"}


def test_capabilities_agree_with_each_other(suite: Suite) -> None:
    capabilities = suite.capabilities
    assert capabilities.target_type == suite.bind().connections["warehouse"].type
    assert capabilities.loads
    assert 1 <= capabilities.max_decimal_precision <= 38
    assert 0 <= capabilities.memory_share < 1
    if not capabilities.stores_tables:
        assert (capabilities.ledger, capabilities.stored_kinds) == (False, None)
    assert all(capabilities.stores(case.kind) for case in CASES)


def test_plans_name_their_steps_and_change_nothing(suite: Suite) -> None:
    suite.write(file_rows())
    before = sorted(suite.folder.rglob("*"))
    first = [step.kind for step in run.plan_package(suite.bind()).flows[0].steps]
    assert sorted(suite.folder.rglob("*")) == sorted([*before, suite.folder / "package.yaml"])
    loaded(suite.run())
    again = {
        target: [step.kind for step in run.plan_package(suite.bind(target=target)).flows[0].steps]
        for target in ("append", "replace")
    }
    if suite.capabilities.hidden_tables:
        # Rows are inserted out of sight, with the commits of their slices.
        unseen = ["insert", "check_accounts"]
        assert first == [*unseen, "switch"]
        assert again == {"append": [*unseen, "commit"], "replace": [*unseen, "switch"]}
    elif suite.capabilities.stores_tables:
        ending = ["insert", "check_accounts", "commit_slices", "commit"]
        assert first == ["create_table", *ending]
        assert again == {"append": ending, "replace": ["delete_rows", *ending]}
    else:
        assert first == again["append"] == again["replace"] == ["insert", "check_accounts"]


def test_create_append_and_replace(suite: Suite) -> None:
    suite.write(file_rows(), file_rows())
    assert loaded(suite.run(target="create"))["rows_loaded"] == 2 * ROWS
    suite.check_count(2 * ROWS)
    again = suite.run(target="create")
    if suite.capabilities.stores_tables:
        assert again.failure is not None
        assert "exists already" in again.failure.what
    assert loaded(suite.run(target="append"))["rows_loaded"] == 2 * ROWS
    suite.check_count(4 * ROWS)
    assert loaded(suite.run(target="replace"))["rows_loaded"] == 2 * ROWS
    suite.check_count(2 * ROWS)
    suite.check_ledger(*[("success", 2, 2 * ROWS)] * 3)


@pytest.mark.parametrize("existing", [False, True], ids=["a new table", "a table with rows"])
def test_a_failed_flow_leaves_nothing(suite: Suite, existing: bool) -> None:
    """The bad row is the last one of the last file: everything else has been handed over before."""
    rows = file_rows()
    suite.write(rows)
    if existing:
        loaded(suite.run())
    suite.write(rows * 50, rows * 50, [*rows, "not a number" + "|" * len(CASES)])
    for _ in range(2):
        summary = suite.run()
        assert summary.status == "failed"
        assert summary.failure is not None and summary.failure.at is not None
        assert summary.failure.at["row"] == ROWS + 1
        assert summary.to_dict()["rows_loaded"] == 0
        suite.check_count(ROWS if existing else None)
    before = [("success", 1, ROWS)] if existing else []
    suite.check_ledger(*before, ("failed", 0, 0), ("failed", 0, 0))


def test_a_cancelled_flow_leaves_nothing(suite: Suite) -> None:
    suite.write(file_rows())
    loaded(suite.run())
    suite.write(*[file_rows() * 400] * 3)
    cancel = threading.Event()

    def listen(event: Mapping[str, Any]) -> None:
        if event["event"] == "task_started":
            cancel.set()

    summary = suite.run(cancel, listen)
    # The load may have been faster than the first look at `cancel`.
    if summary.status == "success":
        suite.check_count(3 * 400 * ROWS)
    else:
        assert (summary.status, summary.exit_code) == ("cancelled", 3)
        suite.check_count(ROWS)
        suite.check_ledger(("success", 1, ROWS), ("cancelled", 0, 0))


def test_rejects_are_counted_and_the_others_loaded(suite: Suite) -> None:
    rows = file_rows()
    suite.write([*rows, "x|\n", *rows], ["y" + "|" * len(CASES) + "\n", *rows])
    document = loaded(suite.run(limit=2))
    assert (document["rows_read"], document["rows_loaded"], document["rows_rejected"]) == (3 * ROWS + 2, 3 * ROWS, 2)
    assert document["tables"][0]["rejects"]["by_rule"] == {"bad_integer": 1, "too_few_fields": 1}
    suite.check_count(3 * ROWS)
    suite.check_ledger(("success", 2, 3 * ROWS))


@pytest.mark.parametrize("streams", [1, 16])
def test_every_type_arrives_exactly(suite: Suite, streams: int) -> None:
    """Each value, and NULL in every type, from one file and from pieces."""
    rows = file_rows()
    suite.write(rows) if streams == 1 else suite.write(*([row] for row in rows))
    document = loaded(suite.run(streams=streams))
    assert document["rows_loaded"] == ROWS
    if suite.capabilities.stores_tables:
        found = {case.name: suite.destination.column("loaded", case) for case in CASES}
        assert found == {case.name: expected_column(case) for case in CASES}
    else:
        columns = {column["name"]: column for column in document["tables"][0]["columns"]}
        assert set(columns) == {"id", *(case.name for case in CASES)}
        for case in CASES:
            check_aggregates(case, columns[case.name])


def check_aggregates(case: Case, column: dict[str, Any]) -> None:
    """Rows and NULLs for every type; sums, extremes and lengths where there are any."""
    values = [value for _, value in case.values]
    assert (column["rows"], column["nulls"]) == (ROWS, ROWS - len(values)), case.name
    if case.kind.startswith("int") or case.kind == "decimal":
        numbers = [Decimal(value) for value in values]
        with localcontext(prec=100):
            total = sum(numbers)
        found = (Decimal(column["sum"]), Decimal(column["min"]), Decimal(column["max"]))
        assert found == (total, min(numbers), max(numbers)), case.name
    elif case.kind == "date":
        assert (column["min"], column["max"]) == (min(values), max(values))
    elif case.kind in ("string", "char", "varchar", "json"):
        lengths = [len(value) for value in values]
        found_lengths = (column["min_length"], column["max_length"], column["total_length"])
        assert found_lengths == (min(lengths), max(lengths), sum(lengths)), case.name
    elif case.kind in ("float32", "float64"):
        # NaN is the greatest, as DuckDB orders floats.
        assert (column["sum"], column["min"], column["max"]) == (None, "-inf", "NaN")


def test_nulls_of_every_type(suite: Suite) -> None:
    """An empty field, and a null token."""
    columns = len(CASES)
    suite.write(["0" + "|" * columns + "\n", "1" + "|\\N" * columns + "\n"])
    document = loaded(suite.run())
    if suite.capabilities.stores_tables:
        assert all(suite.destination.column("loaded", case) == [None, None] for case in CASES)
    else:
        assert [column["nulls"] for column in document["tables"][0]["columns"]] == [0] + [2] * columns


def test_empty_files_that_are_refused(suite: Suite) -> None:
    suite.write([])
    summary = suite.run()
    assert summary.failure is not None
    assert summary.failure.kind == "source"
    suite.check_count(None)


def test_a_repaired_row_is_loaded_once_and_exactly(suite: Suite) -> None:
    rows = file_rows()
    suite.write([*rows[:-1], "x|\n"])
    summary = suite.run_to_verify(limit=1)
    (suite.inbox / "rows.1").unlink()
    repaired = suite.replay(summary, rows[-1], limit=1)
    if not suite.capabilities.ledger:
        assert repaired.failure is not None
        assert "cannot be replayed: it has not loaded" in repaired.failure.what
        return
    assert loaded(repaired)["replay"]["loaded"] == 1
    for case in CASES:
        assert suite.destination.column("loaded", case) == expected_column(case), case.name
    again = suite.replay(summary, rows[-1], limit=1)
    assert again.failure is not None
    assert "was loaded already" in again.failure.what
    suite.check_count(ROWS)
    suite.check_ledger(("success", 1, ROWS - 1), ("success", 1, 1))


def test_a_verification_agrees_for_every_type_and_finds_a_change_in_each_column(suite: Suite) -> None:
    rows = file_rows()
    suite.write([*rows, "x|\n"], rows)
    summary = suite.run_to_verify(limit=1)
    verdict = suite.verdict(summary, limit=1)
    if not suite.capabilities.stores_tables:
        assert (verdict.status, verdict.reason) == ("not_comparable", "the destination stores nothing")
        return
    assert (verdict.status, verdict.differences) == ("equal", ())
    assert (verdict.rows_in_source, verdict.rows_rejected, verdict.rows_in_table) == (2 * ROWS, 1, 2 * ROWS)
    compared = {column.column: column.compared for column in verdict.columns}
    assert set(compared) == {"id", *(case.name for case in CASES)}
    for case in CASES:
        assert compared[case.name] == COMPARED.get(case.kind, ("nulls",)), case.name
    nothing = ", ".join(f"{case.name} = NULL" for case in CASES)
    suite.destination.change(f"UPDATE loaded SET {nothing} WHERE id = 0")
    verdict = suite.verdict(summary, limit=1)
    assert verdict.status == "different"
    assert {item.column for item in verdict.differences if item.aggregate == "nulls"} == {case.name for case in CASES}
    suite.destination.change("DELETE FROM loaded WHERE id = 1")
    verdict = suite.verdict(summary, limit=1)
    rows_found = [(item.source, item.target) for item in verdict.differences if item.aggregate == "rows"]
    assert rows_found == [(str(2 * ROWS), str(2 * ROWS - 2))]
    suite.destination.change("DROP TABLE loaded")
    verdict = suite.verdict(summary, limit=1)
    assert [item.aggregate for item in verdict.differences] == ["table"]


_RANGE = ("nulls", "min", "max")
_NUMBER = ("nulls", "sum", "min", "max")
_LENGTHS = ("nulls", "min_length", "max_length", "total_length")
# Sums of floats are not exact; of truth values, bytes and uuids only the NULLs are counted.
COMPARED = {
    **dict.fromkeys(("int16", "int32", "int64", "decimal"), _NUMBER),
    **dict.fromkeys(("float32", "float64", "date", "time", "timestamp", "timestamptz"), _RANGE),
    **dict.fromkeys(("string", "char", "varchar", "json"), _LENGTHS),
}


def test_appended_rows_are_not_compared(suite: Suite) -> None:
    suite.write(file_rows())
    summary = suite.run_to_verify(target="append")
    verdict = suite.verdict(summary, target="append")
    assert (verdict.status, verdict.rows_in_table, verdict.columns) == ("not_comparable", None, ())
    if suite.capabilities.stores_tables:
        assert verdict.reason == "the rows were appended: the table may hold others too"


def test_a_verification_that_is_cancelled(suite: Suite) -> None:
    suite.write(file_rows())
    summary = suite.run_to_verify()
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(CancelledError):
        list(run.verify(suite.bind(), RunFolder(summary.run_id, Path(summary.run_folder)), cancel))


# What does not fit, and what is left of it if that is ignored: NULL, or the part that fits.
IGNORED = (
    Case("whole", "int16", (("40000", ""), ("seven", ""), ("7", "7"))),
    Case("amount", "decimal(5,2)", (("1.239", "1.23"), ("-1.239", "-1.23"), ("1000.5", ""))),
    Case("wide", "decimal(30,2)", (("0.009", "0.00"), ("12345678901234567.129", "12345678901234567.12"), ("x", ""))),
    Case("day", "date", (("2023-02-29", ""), ("2024-02-29", "2024-02-29"), ("yesterday", ""))),
    Case("clock", "time", (("00:00:00.1234567", "123456"), ("24:00", ""), ("00:00:01", "1000000"))),
    Case("moment", "timestamp", (("1970-01-01 00:00:01.0000009", "1000000"), ("1970-01-01", ""), ("", ""))),
    Case("code", "char(3)", (("abcd", "abc"), ("a  d", "a"), ("äöüß", "äöü"))),
    Case("note", "varchar(4)", (("longer", "long"), ("12345", "1234"), ("four", "four"))),
    Case("truth", "bool", (("maybe", ""), ("true", "true"), ("2", ""))),
)


@pytest.mark.parametrize("streams", [1, 3])
def test_ignored_values_are_null_or_cut(suite: Suite, streams: int) -> None:
    suite.cases = IGNORED
    suite.dispositions = ", on_error: ignore, on_truncation: ignore"
    rows = ["|".join([str(number), *(case.values[number][0] for case in IGNORED)]) + "\n" for number in range(3)]
    suite.write(rows[:1], rows[1:])
    document = loaded(suite.run(streams=streams))
    suite.check_count(3)
    ignored = document["tables"][0]["ignored"]
    assert ignored == {
        "whole": {"nulls": 2, "cut": 0},
        "amount": {"nulls": 1, "cut": 2},
        "wide": {"nulls": 1, "cut": 2},
        "day": {"nulls": 2, "cut": 0},
        "clock": {"nulls": 1, "cut": 1},
        "moment": {"nulls": 1, "cut": 1},
        "code": {"nulls": 0, "cut": 3},
        "note": {"nulls": 0, "cut": 2},
        "truth": {"nulls": 2, "cut": 0},
    }
    if suite.capabilities.stores_tables:
        for case in IGNORED:
            expected = [value or None for _, value in case.values]
            assert [value and value.rstrip(" ") for value in suite.destination.column("loaded", case)] == expected, case


def test_values_for_which_the_load_has_to_fail(suite: Suite) -> None:
    suite.cases = IGNORED[:1]
    suite.dispositions = ", on_error: fail"
    suite.write(["1|7\n", "2|40000\n"])
    summary = suite.run(limit=10)
    assert summary.failure is not None
    what = "a value for column `whole` (2) is outside int16, and the layout says `on_error: fail`"
    assert what in summary.failure.what
    suite.check_count(None)
