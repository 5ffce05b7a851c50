"""Compressed files, folders, pipes and standard input, through the command line: the same rows, or a clear refusal."""

from __future__ import annotations

import gzip
import json
import os
import random
import shlex
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.driver import GOOD_ROWS, PACKAGE, Before, Ended, Project
from tests.integration.postgres import Content, PostgresProject
from tests.patience import HANG_SECONDS
from tests.snapshots import assert_snapshot

ROWS = GOOD_ROWS.encode()
CONTENT = "SELECT count(*), sum(hash({table}))::VARCHAR FROM {table}"


def zstd(text: bytes, header: bytes = b"\xa0") -> bytes:
    """Frames of one raw block each. `header`: descriptor and window; the length of the text follows it."""
    block = struct.pack("<I", len(text) << 3 | 1)[:3]
    return b"\x28\xb5\x2f\xfd" + header + struct.pack("<I", len(text)) + block + text


def bgzf(text: bytes, block_bytes: int) -> bytes:
    """Blocks, and the empty one that ends a file."""
    pieces = [text[at : at + block_bytes] for at in range(0, len(text), block_bytes)]
    return b"".join(_bgzf_block(piece) for piece in [*pieces, b""])


def _bgzf_block(text: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    body = compressor.compress(text) + compressor.flush()
    header = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0" + struct.pack("<H", 18 + len(body) + 8 - 1)
    return header + body + struct.pack("<II", zlib.crc32(text), len(text))


def sources(project: Project, **settings: object) -> None:
    """The package with more settings of the source."""
    members = "".join(f", {name}: {value}" for name, value in settings.items())
    assert "layout: orders}\n" in PACKAGE
    project.package(PACKAGE.replace("layout: orders}\n", f"layout: orders{members}}}\n"))


def check_rows(project: Project, ended: Ended, rows: int = 100) -> None:
    assert ended.succeeded()["rows_loaded"] == rows
    assert project.query("SELECT count(*), count(DISTINCT id), sum(id) FROM orders") == [
        (rows, rows, rows * (rows + 1) // 2)
    ]


def through_shell(project: Project, command: str, **parameters: object) -> Ended:
    """A run whose standard input is what a shell command writes."""
    run = shlex.join(project.arguments(files="-", **parameters))
    return project.command(["bash", "-c", f"{command} | {run}"])


HALF = ROWS.index(b"51|")


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(ROWS),
        gzip.compress(ROWS[:1000]) + gzip.compress(b"") + gzip.compress(ROWS[1000:]) + bytes(1000),
        bgzf(ROWS, 700),
        zstd(ROWS),
        zstd(ROWS[:1000]) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd(ROWS[1000:]),
    ],
    ids=["gzip", "members and padding", "bgzf", "zstd", "frames"],
)
def test_a_compressed_file_is_its_text(project: Project, content: bytes) -> None:
    project.file("orders.tbl.1", content)
    check_rows(project, project.run())
    assert project.query("SELECT file_bytes, end_byte FROM headrace.slice WHERE slice > 0") == [
        (len(content), len(content))
    ]
    assert project.query('SELECT text_bytes FROM headrace."commit" WHERE slice > 0') == [(len(ROWS),)]
    pipe = f"cat {shlex.quote(str(project.inbox / 'orders.tbl.1'))}"
    check_rows(project, through_shell(project, pipe))


def footer(project: Project, rows: int) -> None:
    """The package with a footer of so many rows."""
    assert PACKAGE.count('    delimiter: "|"\n') == 1
    project.package(PACKAGE.replace('    delimiter: "|"\n', f'    delimiter: "|"\n    footer_rows: {rows}\n'))


@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, zstd, lambda text: bgzf(text, 700)], ids=["plain", "gzip", "zstd", "bgzf"]
)
def test_footers_are_no_rows_however_the_text_comes(project: Project, compress: Callable[[bytes], bytes]) -> None:
    footer(project, 2)
    bad = b"101|bad|||\n"
    content = compress(ROWS + bad + b"end of rows\n\nsum|5050\n")
    path = project.file("orders.tbl.1", content)
    for ended in (
        project.run(limit=1),
        through_shell(project, f"cat {shlex.quote(str(path))}", limit=1),
    ):
        assert ended.exit_code == 0, ended.stderr
        [table] = ended.summary["tables"]
        counts = [table[name] for name in ("rows_loaded", "rows_rejected", "rows_skipped", "bytes_read")]
        assert counts == [100, 1, 3, len(ROWS + bad) + 22]
        lines = Path(table["rejects"]["files"][0]).read_text(encoding="utf-8").splitlines()
        assert [(reject["row"], reject["byte"]) for reject in map(json.loads, lines)] == [(101, len(ROWS) + 4)]


def test_a_file_in_pieces_is_cut_into_slices(project: Project) -> None:
    rows = "".join(
        f"{number}|1.25|2024-02-29|customer|{random.random()}{random.random()}\n" for number in range(1, 500_001)
    )
    project.file("orders.tbl.1.gz", bgzf(rows.encode(), 65_280))
    ended = project.run(files="orders.tbl.1.gz")
    check_rows(project, ended, 500_000)
    [table] = ended.summary["tables"]
    assert table["slices"] > 2
    assert table["bytes_read"] == len(rows)


def test_a_folder_stands_for_its_files(project: Project) -> None:
    (project.inbox / "day" / "deeper").mkdir(parents=True)
    project.file("day/a.csv", ROWS[:HALF])
    project.file("day/b.csv.gz", gzip.compress(ROWS[HALF:]))
    for name in (".c.csv", "_SUCCESS", "deeper/d.csv"):
        project.file(f"day/{name}")
    ended = project.run(files="day")
    check_rows(project, ended)
    assert "day/deeper is a folder; it is not read" in ended.stderr


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_named_pipes(project: Project, compress: Callable[[bytes], bytes]) -> None:
    """Both are read at the same time: the writer goes from one to the other and back."""
    os.mkfifo(project.inbox / "one")
    os.mkfifo(project.inbox / "two")
    texts = {"one": compress(ROWS[:HALF]), "two": compress(ROWS[HALF:])}

    def write() -> None:
        with (project.inbox / "one").open("wb") as one, (project.inbox / "two").open("wb") as two:
            for file, text in ((one, texts["one"]), (two, texts["two"])):
                file.write(text[:100])
                file.flush()
            one.write(texts["one"][100:])
            two.write(texts["two"][100:])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    check_rows(project, project.run(files="one,two"))
    writer.join(HANG_SECONDS)
    assert not writer.is_alive()


def test_two_names_of_a_file_are_told(project: Project) -> None:
    path = project.file("orders.tbl.1")
    for name in ("orders.tbl.2", "orders.tbl.latest"):
        (project.inbox / name).symlink_to(path)
    ended = project.run()
    assert ended.succeeded()["rows_loaded"] == 300
    assert "orders.tbl.2 is another name of" in ended.stderr
    assert "orders.tbl.1: its rows are loaded twice, and so for 1 more" in ended.stderr


def truncated(project: Project) -> None:
    content = gzip.compress(ROWS * 500, compresslevel=1)
    project.file("orders.tbl.1", content[:-20_000])


def wrong_checksum(project: Project) -> None:
    content = bytearray(gzip.compress(ROWS * 500))
    content[-5] ^= 1
    project.file("orders.tbl.1", bytes(content))


def garbage(project: Project) -> None:
    project.file("orders.tbl.1", gzip.compress(ROWS * 500) + b"<html>")


def no_gzip(project: Project) -> None:
    project.file("orders.tbl.gz", b"<html>Not found</html>")


def empty_file(project: Project) -> None:
    project.file("orders.tbl.gz", b"")


def empty_text(project: Project) -> None:
    project.file("orders.tbl.gz", gzip.compress(b""))


def bzip2(project: Project) -> None:
    project.file("orders.tbl.bz2", b"BZh91AY&SY\0\0")


def parquet(project: Project) -> None:
    project.file("orders.tbl.1", b"PAR1\x15\x04\x15\x10")


def tar(project: Project) -> None:
    project.file("orders.tbl.gz", gzip.compress(b"orders.tbl".ljust(257, b"\0") + b"ustar".ljust(300, b"\0")))


def compressed_twice(project: Project) -> None:
    project.file("orders.tbl.gz", gzip.compress(gzip.compress(ROWS)))


def dictionary(project: Project) -> None:
    project.file("orders.tbl.zst", zstd(ROWS, b"\xa1\x07"))


def large_window(project: Project) -> None:
    # 2 GB, more than the budget.
    project.file("orders.tbl.zst", zstd(ROWS, b"\x80\xa8"))


def no_last_row_end(project: Project) -> None:
    sources(project, last_row_end="required")
    project.file("orders.tbl.1", gzip.compress(ROWS[:-4]))


def footer_too_long(project: Project) -> None:
    footer(project, 2)
    project.file("orders.tbl.1", gzip.compress(ROWS + b"x" * 9_000_000 + b"\nsum\n", compresslevel=1))


def folder_without_files(project: Project) -> None:
    project.file("_SUCCESS")


def nobody_writes(project: Project) -> None:
    sources(project, wait_seconds=1)
    os.mkfifo(project.inbox / "pipe")


def more_pipes_than_streams(project: Project) -> None:
    for number in range(5):
        os.mkfifo(project.inbox / f"pipe{number}")


@pytest.mark.parametrize(
    ("make", "files"),
    [
        (truncated, "*"),
        (wrong_checksum, "*"),
        (garbage, "*"),
        (no_gzip, "*"),
        (empty_file, "*"),
        (empty_text, "*"),
        (bzip2, "*"),
        (parquet, "*"),
        (tar, "*"),
        (compressed_twice, "*"),
        (dictionary, "*"),
        (large_window, "*"),
        (no_last_row_end, "*"),
        (footer_too_long, "*"),
        (folder_without_files, "."),
        (nobody_writes, "pipe"),
        (more_pipes_than_streams, "pipe0,pipe1,pipe2,pipe3,pipe4"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_nothing_is_loaded_from(project: Project, make: Callable[[Project], None], files: str) -> None:
    before = Before.of(project)
    make(project)
    ended = project.run(files=files)
    assert ended.exit_code == 1, ended.stderr
    assert_snapshot(f"packed_{make.__name__}", project.stable(ended.error))
    before.check(*project.ledger())


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("empty", "true"),
        ("cut_off", r"printf '1|1.25|2024-02-29|customer|note\n2|2.2'"),
        ("archive", r"printf 'PK\003\004......'"),
        ("damaged", f"printf '{chr(92)}037{chr(92)}213{chr(92)}010{chr(92)}000........garbage'"),
    ],
)
def test_standard_input_of_which_nothing_is_loaded(project: Project, name: str, command: str) -> None:
    before = Before.of(project)
    ended = through_shell(project, command)
    assert ended.exit_code == 1, ended.stderr
    assert_snapshot(f"stdin_{name}", project.stable(ended.error))
    before.check("failed")


def test_a_footer_that_is_cut_off_is_refused(project: Project) -> None:
    footer(project, 2)
    ended = through_shell(project, r"printf '1||||\nend\nsum|1'")
    assert ended.exit_code == 1, ended.stderr
    assert_snapshot("stdin_footer_cut_off", project.stable(ended.error))
    assert project.tables() == []


def test_a_last_row_without_row_end_can_be_allowed(project: Project) -> None:
    sources(project, last_row_end="optional")
    check_rows(project, through_shell(project, f"printf '%s' {shlex.quote(GOOD_ROWS.rstrip())}"))


def test_what_was_read_once_is_neither_resumed_nor_verified(project: Project) -> None:
    failed = through_shell(project, r"printf '1|bad|||\n'")
    assert failed.exit_code == 1
    assert_snapshot("stdin_resumed", project.stable(project.resume().error))
    through_shell(project, r"printf '1||||\n'").succeeded()
    verified = project.command([sys.executable, "-m", "headrace", "verify", "--runs-dir", "runs", "last"])
    assert verified.exit_code == 1
    assert_snapshot("stdin_verified", project.stable(verified.error))


def test_a_pipe_that_nobody_writes_to_does_not_hold_up_a_cancelled_run(project: Project) -> None:
    """And who writes when the run is over is told so by the system."""
    os.mkfifo(project.inbox / "pipe")
    with project.started(project.arguments(files="pipe")) as running:
        project.wait_for_event(running, "task_started")
        writer = subprocess.Popen(["bash", "-c", f"exec yes '1|1.25|2024-02-29|c|n' > {project.inbox / 'pipe'}"])
        try:
            time.sleep(0.5)
            running.signal(signal.SIGINT)
            ended = running.wait()
            assert (ended.exit_code, ended.summary["status"]) == (3, "cancelled"), ended.stderr
            assert writer.wait(HANG_SECONDS) == -signal.SIGPIPE
        finally:
            writer.kill()
            writer.wait()
    assert project.tables() == []


def test_a_compressed_file_that_grows_fails_the_run(project: Project) -> None:
    path = project.file("orders.tbl.1", gzip.compress(b"7|1.00|2024-01-01|x|y\n" * 3_000_000, compresslevel=1))
    with project.started(project.arguments()) as running:
        project.wait_for_event(running, "task_started")
        running.freeze()
        with path.open("ab") as file:
            file.write(gzip.compress(ROWS))
        running.thaw()
        ended = running.wait()
    assert ended.summary["error"]["kind"] == "file_changed", ended.stderr
    assert project.tables() == []


def packed(files: Path, project: Project) -> None:
    """LINEITEM in compressed files."""
    for path in files.glob("lineitem.tbl.*"):
        project.file(f"{path.name}.gz", gzip.compress(path.read_bytes(), compresslevel=1))


KILLS = 3


@pytest.mark.faults
def test_killed_and_resumed(project: Project, tmp_path: Path, tpch_files: Path) -> None:
    """A load into DuckDB is one transaction: it begins anew, and is whole behind it."""
    undisturbed = Project(tmp_path)
    undisturbed.tpch("lineitem")
    undisturbed.link(tpch_files.glob("lineitem.tbl.*"))
    undisturbed.run().succeeded()
    project.tpch("lineitem")
    packed(tpch_files, project)
    arguments = project.arguments()
    for _ in range(KILLS):
        with project.started(arguments) as running:
            project.wait_for_event(running, "progress")
            time.sleep(random.random() / 5)
            running.end()
        if project.ledger() != ["running"]:
            break
        assert "main.lineitem" not in project.tables()
        arguments = project.resume_command()
    if project.ledger() == ["running"]:
        project.resume().succeeded()
    query = CONTENT.format(table="lineitem")
    assert project.query(query) == undisturbed.query(query)
    assert project.ledger() == ["success"]


def test_killed_and_resumed_in_postgres(warehouse: PostgresProject, tpch_files: Path) -> None:
    """Files that were committed before the kill are not read again."""
    warehouse.tpch("lineitem")
    warehouse.link(tpch_files.glob("lineitem.tbl.*"))
    warehouse.run().succeeded()
    expected = Content.of(warehouse.target)
    for path in warehouse.inbox.iterdir():
        path.unlink()
    packed(tpch_files, warehouse)
    text = (warehouse.folder / "package.yaml").read_text()
    (warehouse.folder / "package.yaml").write_text(
        text.replace('target: "${target}"}', 'target: "${target}", commit: {bytes: 1 MB}}').replace(
            "streams: 4", "streams: 2"
        )
    )
    assert "commit" in (warehouse.folder / "package.yaml").read_text()
    with warehouse.started(warehouse.arguments()) as running:
        while running.poll() is None and not _committed(warehouse):
            time.sleep(0.01)
        running.end()
    committed = _committed(warehouse)
    resumed = warehouse.resume()
    resumed.succeeded()
    assert Content.of(warehouse.target) == expected
    assert 0 < committed < 8, "killed too late"
    assert f"{committed} slices of 8 were committed before" in resumed.stderr or committed == 1


def _committed(warehouse: PostgresProject) -> int:
    if not warehouse.query("SELECT 1 FROM pg_tables WHERE schemaname = 'headrace' AND tablename = 'commit'"):
        return 0
    latest = "(SELECT run_id FROM headrace.run WHERE status = 'running')"
    [(count,)] = warehouse.query(
        f'SELECT count(DISTINCT slice) FROM headrace."commit" WHERE run_id = {latest} AND slice > 0'
    )
    return int(count or 0)
