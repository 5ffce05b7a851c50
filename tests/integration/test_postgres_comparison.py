"""Divided tables whose keys are compared by something of somebody's own: only the server knows which keys are equal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.integration.postgres import OPERATORS, PostgresProject, any_case_operators
from tests.integration.test_postgres_declared import by_partition, keys_file, run, write
from tests.servers.cluster import Cluster, ServerError

PLAN = [sys.executable, "-m", "headrace", "plan", "package.yaml"]
COLLATION = "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
LISTS = "partition: {list: {column: id, values: {eu: [FR, DE], rest: [CN]}}%s}"


def check_lists(case: PostgresProject, column: str, key: str) -> None:
    """New partitions, and those that exist; what belongs nowhere has the default partition; one is loaded anew."""
    case.execute(
        f"CREATE TABLE keys ({column}, note text) PARTITION BY LIST ({key});"
        "CREATE TABLE keys_eu PARTITION OF keys FOR VALUES IN ('FR', 'DE')"
    )
    write(case, LISTS % ", outside: default", "append", type="string")
    keys_file(case, "a", ["FR", "fr", "cN", "xx", "De", "\\N"])
    said = re.sub(r"\s+", " ", case.command(PLAN).stdout)
    assert "because only it knows which keys are equal by" in said
    for times in (1, 2):
        run(case, verified=False)
        found = {name: sorted(map(str, keys)) for name, keys in by_partition(case).items()}
        expected = {"keys_eu": ["De", "FR", "fr"], "keys_rest": ["cN"], "keys_default": ["None", "xx"]}
        assert found == {name: sorted(keys * times) for name, keys in expected.items()}
    write(case, LISTS % "" + ", partitions: [keys_eu]", type="string")
    keys_file(case, "a", ["de", "cn", "\\N", "xx"])
    assert run(case, verified=False).summary["rows_rejected"] == 3
    assert by_partition(case)["keys_eu"] == ["de"]


def test_lists_by_operators_of_somebody(warehouse: PostgresProject) -> None:
    any_case_operators(warehouse.target)
    check_lists(warehouse, "id text", "id any_case_ops")


@pytest.mark.parametrize(
    ("column", "key"), [("id text COLLATE any_case", "id"), ("id text", "id COLLATE any_case")], ids=["column", "key"]
)
def test_lists_by_a_collation(postgres_versions: Cluster, tmp_path: Path, column: str, key: str) -> None:
    with postgres_versions.database() as database:
        project = PostgresProject(tmp_path, database)
        try:
            project.execute(COLLATION)
        except ServerError as error:
            if "ICU is not supported" in str(error):
                return  # that of the wheel
            raise
        check_lists(project, column, key)


def test_ranges_are_refused(warehouse: PostgresProject) -> None:
    """Their bounds are compared before the first row."""
    members = ", ".join(f"OPERATOR {number} {name}" for number, name in OPERATORS.items())
    warehouse.target.psql(
        f"CREATE OPERATOR CLASS own_ops FOR TYPE bigint USING btree AS {members}, FUNCTION 1 btint8cmp(bigint, bigint)"
    )
    warehouse.execute(
        "CREATE TABLE keys (id bigint, note text) PARTITION BY RANGE (id own_ops);"
        "CREATE TABLE keys_1 PARTITION OF keys FOR VALUES FROM (MINVALUE) TO (0)"
    )
    write(warehouse, "partition: {range: {column: id, bounds: [0]}}", "append")
    keys_file(warehouse, "a", [-1, 0])
    ended = warehouse.run()
    assert ended.exit_code == 1
    assert "`id` is compared by operator class own_ops" in ended.error
