"""Lookups of what only servers with extensions and ICU have: citext, nondeterministic collations, foreign tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.postgres import PostgresProject
from tests.integration.table_lookup_scenes import ALL, CREATE, FOUND, LINES, MATCHED, PACKAGE, keyed, lines
from tests.servers import installations
from tests.servers.cluster import LOADER, PASSWORD
from tests.servers.farm import Farm
from tests.snapshots import assert_snapshot


@pytest.fixture
def facts(servers: Farm, tmp_path: Path) -> Iterator[PostgresProject]:
    """On a server of the system's packages: those of the wheel have none of it."""
    found = installations.with_tls()
    if found is None:
        pytest.skip("NOT CHECKED: citext and ICU need a PostgreSQL server of the system's packages")
    with servers.shared(found.version).database() as database:
        project = PostgresProject(tmp_path, database)
        project.package(PACKAGE)
        lines(project)
        project.execute(CREATE)
        yield project


@pytest.mark.parametrize("of", ["table", "query"])
@pytest.mark.parametrize("compares", ["citext", "collation"])
def test_texts_that_the_database_compares_otherwise(facts: PostgresProject, compares: str, of: str) -> None:
    if compares == "citext":
        facts.target.psql("CREATE EXTENSION IF NOT EXISTS citext")
        column = "code citext"
    else:
        facts.execute("CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        column = "code text COLLATE any_case"
    facts.execute(f"CREATE TABLE colors ({column}, label text); INSERT INTO colors VALUES ('Red', 'as red')")
    before, _, rest = PACKAGE.partition("          lookup: ")
    rows = "table: colors" if of == "table" else "query: SELECT * FROM colors"
    keys = "on: {color: code}, add: [label], no_match: {default: null}"
    after = f"\n      destinations:{rest.partition('      destinations:')[2]}"
    facts.package(f"{before}          lookup: {{connection: warehouse, {rows}, {keys}}}{after}")
    ended = facts.run()
    assert ended.exit_code == 1
    assert_snapshot(f"postgres_lookup_{compares}_{of}", facts.stable(ended.error))
    for case, found in (("exact", 0), ("ignore", LINES)):
        facts.package(f"{before}          lookup: {{connection: warehouse, {rows}, {keys}, case: {case}}}{after}")
        assert keyed(facts.run())["matched"] == found


def test_foreign_tables(facts: PostgresProject) -> None:
    here = f"host '127.0.0.1', port '{facts.target.cluster.port}', dbname '{facts.target.name}'"
    facts.target.psql(
        "ALTER TABLE parts RENAME TO all_parts; CREATE EXTENSION postgres_fdw; "
        f"CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({here}); "
        f"CREATE USER MAPPING FOR {LOADER} SERVER here OPTIONS (user '{LOADER}', password '{PASSWORD}'); "
        "CREATE FOREIGN TABLE parts (p_key bigint NOT NULL, p_sk int, p_name text) SERVER here "
        f"OPTIONS (table_name 'all_parts'); GRANT SELECT ON parts TO {LOADER}"
    )
    assert keyed(facts.run())["matched"] == MATCHED
    assert facts.query(FOUND) == [ALL]
