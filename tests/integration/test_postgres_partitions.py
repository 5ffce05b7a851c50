"""What the core assumes about the server's own division of tables."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.servers.cluster import Cluster

GOLDEN = Path(__file__).parent.parent / "golden" / "postgres_hash"


def test_every_version_hashes_alike(postgres_versions: Cluster) -> None:
    """The router's golden file, which one server made, holds for all."""
    script = runpy.run_path(str(GOLDEN / "make.py"))["script"]()
    with postgres_versions.database() as database:
        found = database.psql(script, "-A", "-t", "-F", "|")
    assert found == (GOLDEN / "partitions.txt").read_text(encoding="utf-8")
