"""Packages that are killed at any moment and resumed: the end is that of an undisturbed run, nothing is twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.control_flow import NOTHING_TO_RESUME, TARGETS, PackageProject, package_project
from tests.integration.moments import Moments
from tests.servers.cluster import Cluster

pytestmark = pytest.mark.faults

# `make soak` sets this: kills of each package on each target.
KILLS = int(os.environ.get("HEADRACE_SOAK_PACKAGE_KILLS", "4"))
FILES = 4
PACKAGE = """\
headrace: 1
package: files
max_concurrent: 3
variables:
  files_done: {type: integer, value: 0}
  rows_done:  {type: integer, value: 0}
  total:      {type: integer}
connections:
  inbox:     {type: files, path: inbox}
  warehouse: {type: duckdb, path: warehouse.duckdb}
layouts:
  orders: {delimiter: ",", columns: [{name: id, type: int64}, {name: file, type: string, from: file_name}]}
tasks:
  make:
    sql:
      connection: warehouse
      text: |
        CREATE TABLE done (what VARCHAR(100), n BIGINT);
        CREATE TABLE counted (n BIGINT);
        INSERT INTO counted VALUES (0);
  first:
    after: make
    sql: {connection: warehouse, text: "INSERT INTO done VALUES ('first', 0)"}
  second:
    after: make
    sql: {connection: warehouse, text: "INSERT INTO done VALUES ('second', 0)"}
  files:
    after: [first, second]
    on:
      post_execute:
        propagate: false
        tasks:
          note: {sql: {connection: warehouse, text: "UPDATE counted SET n = n + 1"}}
    foreach:
      item: name
      files: {connection: inbox, pattern: "*.csv"}
      tasks:
        load:
          data_flow:
            sources: {rows: {connection: inbox, files: "${name}", layout: orders}}
            destinations: {loaded: {input: rows, connection: warehouse, table: orders, target: append, load: single}}
        count:
          after: load
          variables: {here: {type: integer}}
          sql: {connection: warehouse, text: "INSERT INTO done SELECT $name, count(*) FROM orders WHERE file = $name"}
        archive:
          after: count
          file: {archive: "${name}", connection: inbox, to: archive/, compression: gzip}
        add:
          after: archive
          set: {files_done: files_done + 1}
  squares:
    after: files
    for:
      initial: {total: "0"}
      while: total < 9
      step: {total: total + 3}
      tasks:
        note: {sql: {connection: warehouse, text: "INSERT INTO done VALUES ('step', $total)"}}
  end:
    after: squares
    sql: {connection: warehouse, text: "INSERT INTO done VALUES ('files', $files_done), ('total', $total)"}
"""


@contextmanager
def scene(target: str, folder: Path, postgres: Cluster, package: str = PACKAGE) -> Iterator[PackageProject]:
    """A fresh project with files in its inbox."""
    with package_project(target, folder, postgres) as made:
        files = {
            f"inbox/{number}.csv": "".join(f"{1000 * number + row}\n" for row in range(50)) for number in range(FILES)
        }
        made.write({"package.yaml": package, **files})
        yield made


def check(made: PackageProject) -> dict[str, object]:
    """All is done, each once, and counted; how often handlers ran is at least once for each task that ended."""
    content = made.content("n")
    done = made.rows("SELECT what, n FROM done ORDER BY what, n")
    expected = [(f"{number}.csv", "50") for number in range(FILES)]
    expected += [("files", str(FILES)), ("first", "0"), ("second", "0")]
    expected += [("step", "0"), ("step", "3"), ("step", "6"), ("total", "9")]
    assert done == sorted(expected)
    assert made.rows("SELECT count(*), count(DISTINCT id) FROM orders") == [(str(FILES * 50), str(FILES * 50))]
    assert made.files("inbox") == [f"archive/{number}.csv.gz" for number in range(FILES)]
    return dict(content)


def killed_and_resumed(
    target: str, folder: Path, postgres: Cluster, package: str, check: Callable[[PackageProject], object]
) -> None:
    """At moments spread over the whole run, and again while it is resumed."""
    with scene(target, folder / "undisturbed", postgres, package) as made:
        made.run().succeeded()
        expected, lines = check(made), len(made.journal())
    moments = Moments(lines, KILLS)
    for number, moment in enumerate(moments):
        with scene(target, folder / str(number), postgres, package) as made:
            moments.in_time(made.killed(made.run_command(), int(moment)))
            made.finish(lines)
            assert check(made) == expected, moment


@pytest.mark.parametrize("target", TARGETS)
def test_killed(target: str, tmp_path: Path, postgres: Cluster) -> None:
    killed_and_resumed(target, tmp_path, postgres, PACKAGE, check)


HANDLERS = """\
headrace: 1
package: handlers
connections:
  warehouse: {type: duckdb, path: warehouse.duckdb}
maximum_errors: 10
on:
  task_failed:
    tasks:
      one: {sql: {connection: warehouse, text: "INSERT INTO failures VALUES ('one')"}}
      two: {after: one, sql: {connection: warehouse, text: "INSERT INTO failures VALUES ('two')"}}
      three: {after: two, file: {create: "made/${system.source_task}"}}
tasks:
  make: {sql: {connection: warehouse, text: "CREATE TABLE failures (what VARCHAR(10)); CREATE TABLE done (n BIGINT)"}}
  fails: {after: make, sql: {connection: warehouse, text: "INSERT INTO no_such_table VALUES (1)"}}
  behind: {after: {fails: completion}, sql: {connection: warehouse, text: "INSERT INTO done VALUES (1)"}}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_killed_inside_a_handler(target: str, tmp_path: Path, postgres: Cluster) -> None:
    """The task is tried again and fails again, and so is what it starts: each attempt of a handler counts once."""
    for number in range(max(KILLS // 3, 2)):
        with package_project(target, tmp_path / str(number), postgres) as made:
            made.write({"package.yaml": HANDLERS})
            made.killed(made.run_command(), 2 + number % 4)
            made.finish(6, kill_again=0)
            ones, twos = (
                int(str(made.rows(f"SELECT count(*) FROM failures WHERE what = '{what}'")[0][0]))
                for what in ("one", "two")
            )
            attempts = len({str(line) for line in made.journal() if str(line.get("end", "")).endswith("].one")})
            assert 1 <= twos <= ones <= attempts + 1
            assert (made.folder / "made" / "fails").is_dir()


def interrupted(made: PackageProject, signals: int) -> int:
    with made.project.started(made.run_command()) as running:
        made.project.wait_for_event(running, "task_started", task="slow")
        for _ in range(signals):
            running.signal(signal.SIGINT)
            running.wait_until(0.3)
        return running.wait().exit_code


SLOW = """\
headrace: 1
package: slow
connections:
  warehouse: {type: duckdb, path: warehouse.duckdb}
tasks:
  make: {sql: {connection: warehouse, text: "CREATE TABLE done (n BIGINT)"}}
  slow:
    after: make
    sql:
      connection: warehouse
      text: INSERT INTO done SELECT count(*) FROM speed a, speed b, speed c WHERE a.n + b.n + c.n > 0
  behind: {after: slow, sql: {connection: warehouse, text: "INSERT INTO done VALUES (-1)"}}
"""
SPEED = "CREATE TABLE speed AS SELECT 1 AS n FROM {numbers}"
NUMBERS = {"duckdb": "range(10000)", "postgres": "generate_series(1, 10000)"}


@pytest.mark.parametrize("signals", [1, 2])
@pytest.mark.parametrize("target", TARGETS)
def test_ctrl_c(target: str, signals: int, tmp_path: Path, postgres: Cluster) -> None:
    """Once: rolled back and said. Twice: at once. `resume` goes on behind both."""
    with package_project(target, tmp_path / "project", postgres) as made:
        made.project.execute(SPEED.format(numbers=NUMBERS[target]))
        made.write({"package.yaml": SLOW})
        assert interrupted(made, signals) in ((3,) if signals == 1 else (3, 130, -signal.SIGINT))
        made.project.execute("DELETE FROM speed", "INSERT INTO speed VALUES (1)")
        assert made.rows("SELECT n FROM done") == []
        made.resume().succeeded()
        assert made.rows("SELECT n FROM done ORDER BY n") == [("-1",), ("1",)]


CUT = """\
headrace: 1
package: cut
variables: {n: {type: integer, value: 0}}
connections:
  warehouse: {type: duckdb, path: warehouse.duckdb}
tasks:
  make: {sql: {connection: warehouse, text: "CREATE TABLE done (n BIGINT)"}}
  turns:
    after: make
    foreach:
      item: i
      range: {from: 1, to: 3}
      tasks:
        note: {sql: {connection: warehouse, text: "INSERT INTO done VALUES ($i)"}}
        add: {after: note, set: {n: n + i}}
  fails:
    after: turns
    sql: {connection: warehouse, text: "INSERT INTO later VALUES ($n)"}
"""


def test_a_journal_that_is_cut_off(tmp_path: Path, postgres: Cluster) -> None:
    """At any byte of its last lines, as a crash of the machine leaves it: what is missing is in the ledger."""
    with package_project("duckdb", tmp_path / "project", postgres) as made:
        made.write({"package.yaml": CUT})
        assert made.run().exit_code == 1
        whole = made.journal_bytes()
        kept = made.folder.parent / "kept"
        shutil.copytree(made.folder, kept)
        # One cut in each line, at a byte that chance takes.
        ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
        cuts = [random.randint(first + 1, last) for first, last in zip([-1, *ends], ends, strict=False)]
        for cut in random.sample(cuts, 6):
            shutil.rmtree(made.folder)
            shutil.copytree(kept, made.folder)
            (path,) = made.project.runs.glob("*/journal.jsonl")
            path.write_bytes(whole[:cut])
            made.project.execute("CREATE TABLE later (n BIGINT)")
            made.resume().succeeded()
            assert made.rows("SELECT n FROM done ORDER BY n") == [("1",), ("2",), ("3",)], cut
            assert made.rows("SELECT n FROM later") == [("6",)], cut


def test_a_full_disk_for_the_journal(tmp_path: Path, postgres: Cluster) -> None:
    """The run fails and says why; with space, `resume` ends it."""
    library = tmp_path / "full_disk.so"
    source = Path(__file__).with_name("full_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    with scene("duckdb", tmp_path / "project", postgres) as made:
        full = {"LD_PRELOAD": str(library), "FULL_DISK_PATH": "journal.jsonl", "FULL_DISK_BYTES": "900"}
        ended = made.run(environment=full)
        assert ended.exit_code == 1, ended.stderr
        assert "Traceback" not in ended.stderr
        assert "cannot write the journal of the run" in ended.error
        while (ended := made.resume()).exit_code != NOTHING_TO_RESUME:
            ended.succeeded()
        check(made)
