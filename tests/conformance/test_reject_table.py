"""A table of rejects: the same rows in every destination, with every way of loading, exactly when the load is there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import headrace.run as run
from headrace.model import BoundPackage, load_package
from headrace.run import Summary
from tests.cancelling import CancelledOnceStarted
from tests.conformance.destinations import DESTINATIONS, REJECT_COLUMNS, Destination, loads_of
from tests.servers.farm import Farm

# One version of the server for each test; `make test-every-case` has all.
pytestmark = pytest.mark.in_turn("scene", among="postgres ")

PACKAGE = """
headrace: 1
package: bad-rows
connections:
  inbox: {{type: files, path: inbox}}
  warehouse: {{type: "null"}}
streams: 3
tasks:
  load:
    data_flow:
      rejects: {{limit: {limit}, table: {table}}}
      sources:
        rows:
          connection: inbox
          files: "rows.*"
          layout:
            delimiter: ","
            qualifier: '"'
            columns:
              - {{name: id, type: int32, nullable: false}}
              - {{name: word, type: varchar(1200000)}}
              - {{name: day, type: date}}
      destinations:
        sales: {{input: rows, connection: warehouse, table: sales, target: {target}{others}}}
"""
PARTITIONS = "partition: {range: {column: id, bounds: [100, 1000]}}"
MEGABYTE = 1_000_000
GOOD = b"".join(b"%d,word,2026-01-01\n" % number for number in range(1, 40))
# In two files: every kind of value that a client could spoil on its way.
BAD = (
    [
        b"x,one,2026-01-01\n",
        b"2,zero\0byte,2026-01-01\n",
        b'3,"quotes "" back\\slash {braces} \'single\'",no day\n',
        b"4,too few\n",
        "5x,\u00fcn\u00efc\u00f6de \U0001f600,2026-13-01\n".encode(),
        b"6,not \xff UTF-8,2026-01-01\n",
    ],
    [
        b",no id,2026-01-01\n",
        b'8,"a line\r\nof two",-\n',
        b"9x," + b"y" * (MEGABYTE - 20) + b",2026-01-01\n",
        b"10x," + b"z" * (MEGABYTE + 20) + b",2026-01-01\n",
    ],
)


@dataclass
class Scene:
    """A package with its files and one destination."""

    folder: Path
    destination: Destination

    def write(self) -> None:
        """Good rows around the bad ones."""
        (self.folder / "inbox").mkdir(exist_ok=True)
        for number, rows in enumerate(BAD, start=1):
            (self.folder / "inbox" / f"rows.{number}").write_bytes(GOOD + b"".join(rows) + GOOD)

    def bind(
        self, target: str = "replace", others: str = "", limit: int = 100, table: str = "bad_sales"
    ) -> BoundPackage:
        text = PACKAGE.format(target=target, others=f", {others}" if others else "", limit=limit, table=table)
        (self.folder / "package.yaml").write_text(text, encoding="utf-8")
        url = f"warehouse={self.destination.url}"
        return load_package(self.folder / "package.yaml", sets=[], connections=[url], streams=3, environ={})

    def run(self, **members: Any) -> Summary:
        return run.execute(self.bind(**members), runs_dir=self.folder / "runs")

    def succeeded(self, **members: Any) -> Summary:
        summary = self.run(**members)
        assert summary.failure is None, summary.failure.render()
        return summary

    def refusal(self, **members: Any) -> str:
        """The words of a run that must not begin."""
        failure = self.run(**members).failure
        assert failure is not None
        return failure.render()

    def way(self, name: str) -> dict[str, Any]:
        """Members of the package for a way of loading."""
        load = self.destination.partition_load
        return {
            "create": {"target": "create"},
            "replace": {"target": "replace"},
            "append": {"target": "append"},
            "append, committed on the way": {"target": "append", "others": "load: single, commit: {rows: 20}"},
            "replace, committed on the way": {"target": "replace", "others": "load: single, commit: {rows: 20}"},
            "partitions": {"target": "replace", "others": f"load: {load}, {PARTITIONS}"},
            "appended partitions": {"target": "append", "others": f"load: {load}, {PARTITIONS}"},
            "view": {"target": "append", "others": "load: view"},
        }[name]


WAYS = (
    "create",
    "replace",
    "append",
    "append, committed on the way",
    "replace, committed on the way",
    "partitions",
    "appended partitions",
    "view",
)

PLACES = [name for name in DESTINATIONS if name != "null"]
# In some destinations a view always has partitions.
CASES = [(place, way) for place in PLACES for way in WAYS if way != "view" or "view" in loads_of(place)]


@pytest.fixture(params=PLACES)
def scene(request: pytest.FixtureRequest, tmp_path: Path, servers: Farm) -> Iterator[Scene]:
    destination = DESTINATIONS[request.param](tmp_path, servers)
    scene = Scene(tmp_path, destination)
    scene.write()
    yield scene
    destination.close()


def expected(summary: Summary) -> list[tuple[str | None, ...]]:
    """What the table has to hold of a run, by the files in its folder."""
    rejects = Path(summary.run_folder) / "rejects"
    bad = (rejects / "sales.bad").read_bytes()
    rows = []
    for line in (rejects / "sales.jsonl").read_text(encoding="utf-8").splitlines():
        reject = json.loads(line)
        begin, length = reject["bad_byte"], reject["bad_bytes"]
        members = {
            **reject,
            "run_id": summary.run_id,
            "task": "load",
            "column_name": reject["column"],
            "value": reject["value"].replace("\0", "\\x00"),
            "also": json.dumps(reject["also"], ensure_ascii=False) if reject["also"] else None,
            "original": None if length > MEGABYTE else hashlib.md5(bad[begin : begin + length]).hexdigest(),
        }
        rows.append(tuple(None if members[name] is None else str(members[name]) for name in REJECT_COLUMNS))
    return rows


@pytest.mark.parametrize(("scene", "way"), CASES, indirect=["scene"])
def test_all_rejects_of_every_way_of_loading(scene: Scene, way: str) -> None:
    members = scene.way(way)
    first = scene.succeeded(**members)
    stored = scene.destination.rejects("bad_sales")
    assert stored == expected(first)
    assert len(stored) == sum(map(len, BAD))
    assert [row[-1] is None for row in stored].count(True) == 1, "only the row above 1 MB has no bytes"
    if members["target"] == "create":
        return
    second = scene.succeeded(**members)
    own = {summary.run_id: expected(summary) for summary in (first, second)}
    stored = scene.destination.rejects("bad_sales")
    assert {run_id: [row for row in stored if row[0] == run_id] for run_id in own} == own
    assert len(stored) == 2 * sum(map(len, BAD))


def test_values_that_a_client_could_spoil(scene: Scene) -> None:
    scene.succeeded()
    stored = [dict(zip(REJECT_COLUMNS, row, strict=True)) for row in scene.destination.rejects("bad_sales")]
    by_code = {str(row["code"]): row for row in stored}
    assert by_code["HR502"]["value"] == "zero\\x00byte"
    assert by_code["HR502"]["original"] == hashlib.md5(b"2,zero\0byte,2026-01-01\n").hexdigest()
    assert by_code["HR501"]["original"] == hashlib.md5(b"6,not \xff UTF-8,2026-01-01\n").hexdigest()
    assert by_code["HR101"]["column_name"] is None
    [unicode] = [row for row in stored if row["value"] == "5x"]
    assert json.loads(str(unicode["also"]))[0]["column"] == "day"


@pytest.mark.parametrize(("scene", "way"), [case for case in CASES if "committed" not in case[1]], indirect=["scene"])
def test_a_failed_flow_stores_nothing(scene: Scene, way: str) -> None:
    members = scene.way(way)
    assert scene.run(**members, limit=3).failure is not None
    assert scene.destination.count("sales") in (None, 0)
    if scene.destination.count("bad_sales") is not None:
        assert scene.destination.rejects("bad_sales") == []


def test_no_rejects(scene: Scene) -> None:
    """The table is there for whoever asks it."""
    for number in (1, 2):
        (scene.folder / "inbox" / f"rows.{number}").write_bytes(GOOD)
    scene.succeeded(limit=0)
    assert scene.destination.rejects("bad_sales") == []


def test_a_load_that_is_cancelled_stores_nothing(scene: Scene) -> None:
    runs_dir = scene.folder / "runs"
    summary = run.execute(scene.bind(), runs_dir=runs_dir, cancel=CancelledOnceStarted(runs_dir))
    assert summary.status == "cancelled"
    assert scene.destination.count("bad_sales") in (None, 0)


CHANGES = {
    "a column that is missing": ("ALTER TABLE bad_sales DROP COLUMN also", "no column `also`"),
    "another type": ('ALTER TABLE bad_sales ALTER COLUMN "row" TYPE integer', "column `row` of type"),
    "a column that may not be NULL": ("ALTER TABLE bad_sales ALTER COLUMN value SET NOT NULL", "column `value`, which"),
    "a view": ("ALTER TABLE bad_sales RENAME TO moved; CREATE VIEW bad_sales AS SELECT 1 AS one", "a view"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_is_none_of_rejects(scene: Scene, change: str) -> None:
    scene.succeeded()
    statement, found = CHANGES[change]
    scene.destination.change(statement)
    words = scene.refusal()
    assert "table warehouse.bad_sales is no table of rejects" in words
    assert f"found: {found}" in words


def test_a_table_with_more_columns(scene: Scene) -> None:
    """Somebody notes who has repaired what."""
    scene.succeeded()
    scene.destination.change("ALTER TABLE bad_sales ADD COLUMN repaired_by varchar(10)")
    scene.succeeded()
    assert len(scene.destination.rejects("bad_sales")) == 2 * sum(map(len, BAD))


@pytest.mark.parametrize("name", ["sales", "sales_2"])
def test_a_table_that_the_run_loads(scene: Scene, name: str) -> None:
    members = scene.way("partitions")
    words = scene.refusal(**members, table=name)
    assert f"cannot be stored in table warehouse.{name}: the run loads it, too" in words
    assert scene.destination.count("sales") is None


def test_plans_name_the_step(scene: Scene) -> None:
    for way in ("create", "append", "partitions"):
        [flow] = run.plan_package(scene.bind(**scene.way(way))).flows
        assert [step.text for step in flow.steps if step.kind == "store_rejects"] != [], way
    assert scene.destination.count("bad_sales") is None


def test_a_destination_that_stores_nothing(tmp_path: Path, servers: Farm) -> None:
    scene = Scene(tmp_path, DESTINATIONS["null"](tmp_path, servers))
    scene.write()
    words = scene.refusal()
    assert "rejects of task `load` cannot be stored in a table" in words
    assert "connection `warehouse`: type null" in words
