"""A column type that takes every value, but does not keep it as it was, is named in the plan."""

from __future__ import annotations

from headrace.model import Column, DataType
from headrace.planning import CatalogColumn, CatalogTable
from headrace.planning.columns import map_columns
from headrace.targets.postgres.capabilities import POSTGRES_CAPABILITIES


def test_a_column_that_alters_values_is_named() -> None:
    layout = [Column(name=name, type=DataType("json")) for name in ("kept", "altered")]
    columns = (
        CatalogColumn("kept", DataType("json"), "json", True),
        CatalogColumn("altered", DataType("json"), "jsonb", True, alters="keeps the last of repeated keys"),
    )
    mapping = map_columns("t", layout, None, CatalogTable("s", "t", columns), POSTGRES_CAPABILITIES)
    assert mapping.notes == ["`altered` is jsonb, which keeps the last of repeated keys"]
