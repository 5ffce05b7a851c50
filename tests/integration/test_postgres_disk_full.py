"""The disk of the server fills up while a table is loaded: the run fails, says so, and every row is as it was.

Two ways to fill it: a tablespace on a small tmpfs that only the server sees, where the system lets users make one, and
a limit for the size of files, which works everywhere (the server then says "File too large").
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.postgres import PostgresProject
from tests.servers.cluster import LOADER, Database
from tests.servers.farm import Farm
from tests.snapshots import assert_snapshot

pytestmark = pytest.mark.faults

# Free at first; LINEITEM needs 45 MB.
SMALL_BYTES = 24_000_000
# Mounts a tmpfs in namespaces of its own, then runs the server as somebody who is not root there.
IN_TMPFS = """
set -eu
small=$1 size=$2; shift 2
mount -t tmpfs -o "size=$size,mode=700" tmpfs "$small"
mkdir "$small/space"
exec unshare --user --map-user=1000 --map-group=1000 "$@"
"""


def in_tmpfs(small: Path) -> list[str]:
    shell = ["sh", "-c", IN_TMPFS, "sh", str(small), str(SMALL_BYTES)]
    return ["unshare", "--user", "--map-root-user", "--mount", *shell]


def can_mount() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module", params=[*(["tmpfs"] if can_mount() else []), "file size"])
def full(request: pytest.FixtureRequest, servers: Farm) -> Iterator[Database]:
    """A database with too little space for a table."""
    if request.param == "tmpfs":
        small = servers.account.folder(servers.folder / "small")
        cluster = servers.cluster(prefix=in_tmpfs(small))
        cluster.psql(f"CREATE TABLESPACE small LOCATION '{small / 'space'}'")
        database = cluster.create_database(options="TABLESPACE small")
    else:
        cluster = servers.cluster(prefix=["prlimit", f"--fsize={SMALL_BYTES}", "--"])
        database = cluster.create_database()
    yield database
    servers.remove(cluster)


@pytest.fixture
def project(full: Database, tmp_path: Path, tpch_files: Path) -> PostgresProject:
    """Loads LINEITEM, of which there are some rows already."""
    (tmp_path / "project").mkdir()
    project = PostgresProject(tmp_path / "project", full)
    project.execute("DROP TABLE IF EXISTS lineitem", "DROP SCHEMA IF EXISTS headrace CASCADE")
    project.link([tpch_files / "lineitem.tbl.1"])
    project.tpch("lineitem")
    project.run().succeeded()
    project.link(tpch_files.glob("lineitem.tbl.[2-8]"))
    return project


@pytest.mark.parametrize("target", ["replace", "append"])
def test_the_disk_is_full(project: PostgresProject, target: str, request: pytest.FixtureRequest) -> None:
    before = project.content()
    ended = project.run(target=target)
    assert ended.exit_code == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    way = request.node.callspec.params["full"].replace(" ", "_")
    if way == "tmpfs":
        assert ended.summary["error"]["kind"] == "target"
        assert "No space left on device" in ended.error
    assert_snapshot(f"postgres_disk_full_{way}_{target}", project.stable(ended.error))
    assert project.content() == before
    assert project.leftovers() == []
    assert project.ledger() == ["success", "failed"]
    # What was appended to the table itself still takes its space, and VACUUM needs some to begin with.
    project.execute("TRUNCATE lineitem")
    project.package((project.folder / "package.yaml").read_text().replace("lineitem.tbl.*", "lineitem.tbl.1"))
    project.run().succeeded()
    assert project.content() == before


def test_the_server_lives_on(full: Database) -> None:
    assert full.rows(f"SELECT count(*) FROM pg_roles WHERE rolname = '{LOADER}'") == [("1",)]
    assert "PANIC" not in full.cluster.log_text()
