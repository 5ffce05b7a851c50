"""Names of types in layouts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model import DataType, DataTypeError
from headrace.model.data_type import LENGTH_KINDS, PLAIN_KINDS
from headrace.model.layout_column import TYPE_PATTERN

TYPES = (
    st.sampled_from(PLAIN_KINDS).map(DataType)
    | st.tuples(st.integers(1, 38), st.integers(0, 38))
    .filter(lambda numbers: numbers[1] <= numbers[0])
    .map(lambda numbers: DataType("decimal", precision=numbers[0], scale=numbers[1]))
    | st.tuples(st.sampled_from(LENGTH_KINDS), st.integers(1, 10_485_760)).map(
        lambda pair: DataType(pair[0], length=pair[1])
    )
)


@given(TYPES)
def test_a_type_reads_back_from_its_text(data_type: DataType) -> None:
    assert DataType.parse(str(data_type)) == data_type
    assert re.match(TYPE_PATTERN, str(data_type))


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("int64", {"kind": "int64"}),
        ("decimal( 15 , 2 )", {"kind": "decimal", "precision": 15, "scale": 2}),
        ("decimal(5,0)", {"kind": "decimal", "precision": 5, "scale": 0}),
        ("varchar(44)", {"kind": "varchar", "length": 44}),
        (" char(1) ", {"kind": "char", "length": 1}),
    ],
)
def test_to_core(text: str, core: dict[str, object]) -> None:
    assert DataType.parse(text).to_core() == core


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("bigint", "int64"),
        ("INTEGER", "int32"),
        ("tinyint", "int16"),
        ("double precision", "float64"),
        ("Double  Precision", "float64"),
        ("text", "string"),
        ("numeric(12,4)", "decimal(12,4)"),
        ("number(9)", "decimal(9,0)"),
        ("numeric", "decimal(15,2)"),
        ("character varying(20)", "varchar(20)"),
        ("nvarchar(20)", "varchar(20)"),
        ("nvarchar", "string"),
        ("character", "char(1)"),
        ("timestamp with time zone", "timestamptz"),
        ("bytea", "bytes"),
        ("jsonb", "json"),
        ("boolean", "bool"),
        ("datte", "date"),
    ],
)
def test_other_spellings_get_a_hint(text: str, hint: str) -> None:
    with pytest.raises(DataTypeError) as raised:
        DataType.parse(text)
    assert raised.value.hint is not None
    assert f"`{hint}`" in raised.value.hint
    DataType.parse(hint)


@given(st.text())
def test_any_text_is_a_type_or_refused(text: str) -> None:
    try:
        assert DataType.parse(text).to_core()
    except DataTypeError as error:
        assert error.expected
