"""The example of a nightly package, on DuckDB and PostgreSQL, undisturbed, killed and with a file that is not right."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.control_flow import TARGETS, PackageProject, Rows, copied, package_project
from tests.integration.moments import Moments
from tests.servers.cluster import Cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "nightly"
ARCHIVED = ["sales_2026-11-01.csv", "sales_2026-11-02.csv", "sales_2026-11-04.csv"]
KILLS = int(os.environ.get("HEADRACE_SOAK_PACKAGE_KILLS", "2"))
# Of the table of rejects: what differs from run to run.
CHANGING = ("run_id", "file", "load_time", "rejected_at", "created_at", "attempt")


@pytest.fixture(params=TARGETS)
def nightly(request: pytest.FixtureRequest, tmp_path: Path, postgres: Cluster) -> Iterator[PackageProject]:
    """A copy of the example."""
    with package_project(request.param, tmp_path / "nightly", postgres) as made:
        copied(EXAMPLE, made.folder)
        made.package = "nightly.yaml"
        yield made


def check(nightly: PackageProject) -> dict[str, Rows]:
    """The night has done all of its work; what is in the tables."""
    content = nightly.content(*CHANGING)
    tables = {name.split(".", 1)[1]: rows for name, rows in content.items()}
    log = nightly.rows("SELECT file, rows_loaded, rows_rejected FROM load_log ORDER BY file")
    assert log == [(ARCHIVED[0], "12", "0"), (ARCHIVED[1], "11", "1"), (ARCHIVED[2], "10", "2")]
    sums = nightly.rows("SELECT sold_on, receipts, amount FROM sales_of_day ORDER BY sold_on")
    assert sums == [
        ("2026-11-01", "12", "4178.43"),
        ("2026-11-02", "11", "4186.59"),
        ("2026-11-03", "0", "0.00"),
        ("2026-11-04", "10", "4734.92"),
    ]
    assert nightly.rows("SELECT count(*), count(DISTINCT receipt) FROM sales") == [("33", "33")]
    assert nightly.rows("SELECT count(*) FROM sales WHERE customer_key = -1") != [("0",)]
    assert nightly.rows("SELECT customer_key, customer FROM customer ORDER BY 1 LIMIT 3") == [
        ("-1", "?"),
        ("1", "C001"),
        ("2", "C002"),
    ]
    assert (tables["arrived"], tables["load_failures"], len(tables["bad_sales"])) == ([], [], 3)
    assert nightly.files("inbox/archive") == [f"{name}.gz" for name in ARCHIVED]
    for name in ARCHIVED:
        archived = gzip.decompress((nightly.folder / "inbox" / "archive" / f"{name}.gz").read_bytes())
        assert archived == (EXAMPLE / "inbox" / name).read_bytes()
    assert nightly.files("inbox") == [
        "announced.csv",
        *(f"archive/{name}.gz" for name in ARCHIVED),
        "customers.csv",
    ]
    return tables


def test_undisturbed(nightly: PackageProject) -> None:
    nightly.run().succeeded()
    before = check(nightly)
    # The next night finds no file, and leaves everything as it is.
    nightly.run().succeeded()
    assert check(nightly) == before


def test_a_file_that_has_not_the_rows_that_were_announced(nightly: PackageProject) -> None:
    announced = nightly.folder / "inbox" / "announced.csv"
    right = announced.read_text()
    announced.write_text(right.replace("02.csv,12", "02.csv,13"))
    ended = nightly.run()
    assert ended.exit_code == 0, ended.stderr
    assert ended.summary["tasks_failed"] == 1
    [(task, file, problem)] = nightly.rows("SELECT task, file, problem FROM load_failures")
    assert (task, file) == (f"files[{ARCHIVED[1]}].one_file.check", ARCHIVED[1])
    assert str(problem).endswith(f"{ARCHIVED[1]} has 12 rows, announced were 13")
    assert nightly.files("inbox/failed") == [ARCHIVED[1]]
    assert nightly.files("inbox/archive") == [f"{ARCHIVED[0]}.gz", f"{ARCHIVED[2]}.gz"]
    # The sender corrects the number; the next night loads the file, and makes the sums of all days anew.
    announced.write_text(right)
    nightly.run().succeeded()
    nightly.project.execute("DELETE FROM load_failures")
    (nightly.folder / "inbox" / "failed" / ARCHIVED[1]).unlink()
    # Each run has noted the bad row of that file.
    latest = "SELECT run_id FROM bad_sales ORDER BY run_id DESC LIMIT 1"
    nightly.project.execute(f"DELETE FROM bad_sales WHERE run_id = ({latest})")
    check(nightly)


@pytest.mark.faults
@pytest.mark.parametrize("target", TARGETS)
def test_killed(target: str, tmp_path: Path, postgres: Cluster) -> None:
    """At any moment, and while it is resumed: the end is that of an undisturbed night."""
    with package_project(target, tmp_path / "undisturbed", postgres) as undisturbed:
        copied(EXAMPLE, undisturbed.folder)
        undisturbed.package = "nightly.yaml"
        undisturbed.run().succeeded()
        expected = check(undisturbed)
        lines = len(undisturbed.journal())
    moments = Moments(lines, KILLS)
    for number, moment in enumerate(moments):
        with package_project(target, tmp_path / str(number), postgres) as nightly:
            copied(EXAMPLE, nightly.folder)
            nightly.package = "nightly.yaml"
            moments.in_time(nightly.killed(nightly.run_command(), int(moment)))
            nightly.finish(lines)
            assert check(nightly) == expected, moment
