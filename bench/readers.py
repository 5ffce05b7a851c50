"""How each peer is told to read a table: everything declared, nothing guessed. Measuring and checking share these."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from bench.columns import END_OF_ROW, duckdb_type, polars_type, pyarrow_type, pyarrow_type_of_headrace
from bench.data import DataSet
from bench.tables import Table


def duckdb_connection(threads: int, *, ordered: bool) -> Any:
    """An instance in memory with DuckDB's own limits."""
    import duckdb

    return duckdb.connect(config={"threads": threads, "preserve_insertion_order": ordered})


def duckdb_columns(table: Table) -> str:
    """The columns of CREATE TABLE."""
    return ", ".join(f"{column.name} {duckdb_type(column)} NOT NULL" for column in table.columns)


def duckdb_source(data: DataSet) -> str:
    """read_csv that guesses nothing."""
    table, dialect = data.table, data.table.dialect
    if dialect.widths:
        return _duckdb_places(data)
    types = {column.name: duckdb_type(column) for column in table.columns}
    if dialect.trailing_delimiter:
        types[END_OF_ROW] = "VARCHAR"
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    files = ", ".join(f"'{file}'" for file in data.files)
    qualifier = dialect.qualifier or ""
    return (
        f"read_csv([{files}], auto_detect = false, header = false, delim = '{dialect.delimiter}', "
        f"quote = '{qualifier}', escape = '{qualifier}', columns = {{{columns}}})"
    )


def _duckdb_places(data: DataSet) -> str:
    """Rows as one text each, cut and converted by SQL: DuckDB has no reader of fixed width."""
    files = ", ".join(f"'{file}'" for file in data.files)
    fields, start = list[str](), 1
    for column, width in zip(data.table.columns, data.table.dialect.widths, strict=True):
        fields.append(f"CAST(trim(line[{start}:{start + width - 1}]) AS {duckdb_type(column)}) AS {column.name}")
        start += width
    lines = f"read_csv([{files}], auto_detect = false, header = false, delim = '\x01', columns = {{'line': 'VARCHAR'}})"
    return f"(SELECT {', '.join(fields)} FROM {lines})"


def pyarrow_batches(data: DataSet, block_bytes: int) -> Iterator[Any]:
    """Batches of all files. One thread: pyarrow's incremental reader is not faster with more."""
    import pyarrow
    from pyarrow import csv

    table, dialect = data.table, data.table.dialect
    pyarrow.set_cpu_count(1)
    types = {column.name: pyarrow_type(column) for column in table.columns}
    names = [*types, END_OF_ROW] if dialect.trailing_delimiter else [*types]
    for file in data.files:
        yield from csv.open_csv(
            file,
            read_options=csv.ReadOptions(column_names=names, use_threads=False, block_size=block_bytes),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.qualifier or False,
                newlines_in_values=dialect.qualifier is not None,
            ),
            convert_options=csv.ConvertOptions(column_types=types, include_columns=list(types)),
        )


def headrace_like_batches(data: DataSet) -> Iterator[Any]:
    """pyarrow's batches with the types of Headrace's: 64-bit decimals, string views."""
    import pyarrow

    fields = [pyarrow.field(column.name, pyarrow_type_of_headrace(column), False) for column in data.table.columns]
    schema = pyarrow.schema(fields)
    for batch in pyarrow_batches(data, block_bytes=16 << 20):
        yield batch.cast(schema)


class OnlyStream:
    """An Arrow C stream and nothing else, so that DuckDB takes no other way to the rows."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._reader.__arrow_c_stream__(requested_schema)


def polars_scan(data: DataSet, threads: int) -> Any:
    """A lazy frame over all files."""
    assert os.environ["POLARS_MAX_THREADS"] == str(threads)
    import polars

    table, dialect = data.table, data.table.dialect
    schema = {column.name: polars_type(column) for column in table.columns}
    if dialect.trailing_delimiter:
        schema[END_OF_ROW] = polars.String
    return polars.scan_csv(
        data.files, separator=dialect.delimiter, has_header=False, quote_char=dialect.qualifier, schema=schema
    )
