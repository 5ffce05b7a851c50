"""Which source type fits which target type without loss."""

from __future__ import annotations

import pytest

from headrace.model import DataType
from headrace.planning.types_match import is_lossless

LOSSLESS = [
    ("int16", "int16"),
    ("int16", "int32"),
    ("int16", "int64"),
    ("int16", "float32"),
    ("int16", "decimal(5,0)"),
    ("int32", "int64"),
    ("int32", "float64"),
    ("int32", "decimal(12,2)"),
    ("int64", "decimal(19,0)"),
    ("int64", "decimal(38,0)"),
    ("decimal(15,2)", "decimal(15,2)"),
    ("decimal(15,2)", "decimal(17,4)"),
    ("decimal(15,2)", "decimal(18,2)"),
    ("decimal(4,0)", "int16"),
    ("decimal(9,0)", "int32"),
    ("decimal(18,0)", "int64"),
    ("float32", "float64"),
    ("float64", "float64"),
    ("bool", "bool"),
    ("date", "date"),
    ("date", "timestamp"),
    ("time", "time"),
    ("timestamp", "timestamp"),
    ("timestamptz", "timestamptz"),
    ("string", "string"),
    ("char(10)", "string"),
    ("varchar(10)", "string"),
    ("varchar(10)", "varchar(10)"),
    ("varchar(10)", "varchar(11)"),
    ("char(10)", "char(10)"),
    ("char(10)", "varchar(10)"),
    ("bytes", "bytes"),
    ("uuid", "uuid"),
    ("json", "json"),
    ("json", "string"),
]
LOSSY = [
    ("int32", "int16"),
    ("int64", "int32"),
    ("int64", "float64"),
    ("int32", "float32"),
    ("int16", "decimal(5,1)"),
    ("int64", "decimal(18,0)"),
    ("decimal(15,2)", "decimal(15,1)"),
    ("decimal(15,2)", "decimal(14,2)"),
    ("decimal(15,2)", "decimal(15,4)"),
    ("decimal(15,2)", "int64"),
    ("decimal(15,2)", "float64"),
    ("decimal(5,0)", "int16"),
    ("decimal(10,0)", "int32"),
    ("decimal(19,0)", "int64"),
    ("float64", "float32"),
    ("float64", "decimal(15,2)"),
    ("timestamp", "date"),
    ("timestamp", "timestamptz"),
    ("timestamptz", "timestamp"),
    ("string", "varchar(10)"),
    ("varchar(11)", "varchar(10)"),
    ("varchar(10)", "char(10)"),
    ("string", "json"),
    ("string", "int64"),
    ("int64", "string"),
    ("string", "bytes"),
    ("uuid", "string"),
    ("bool", "int16"),
]


@pytest.mark.parametrize(("source", "target"), LOSSLESS)
def test_lossless(source: str, target: str) -> None:
    assert is_lossless(DataType.parse(source), DataType.parse(target))


@pytest.mark.parametrize(("source", "target"), LOSSY)
def test_lossy(source: str, target: str) -> None:
    assert not is_lossless(DataType.parse(source), DataType.parse(target))
