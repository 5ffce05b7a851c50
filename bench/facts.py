"""Do all readers find the same values? Each peer's sums and bounds of every column, as text that can be compared.

Integers and decimals: the sum. Dates and floats: least and greatest. Texts: characters in all. Always the row count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from typing import Any

from bench import postgres, readers
from bench.columns import Column
from bench.job import Job, Method
from bench.methods import run_headrace
from bench.tables import Table

Facts = dict[str, str]
_TEXTS = ("char", "varchar", "string")
_NUMBERS = ("int32", "int64", "decimal")


def headrace(job: Job) -> Facts:
    """From the summary of a run into `null:`."""
    summary = run_headrace(job, "null:", streams=1)
    (table,) = summary["tables"]
    found = {column["name"]: column for column in table["columns"]}

    def fact(column: Column) -> str:
        values = found[column.name]
        if column.kind in _TEXTS:
            return str(values["total_length"])
        return _number(values["sum"]) if column.kind in _NUMBERS else _bounds(column, values["min"], values["max"])

    return {"rows": str(table["rows_read"])} | {column.name: fact(column) for column in job.data.table.columns}


def duckdb(job: Job) -> Facts:
    """Through the same read_csv as the measured methods."""
    connection = readers.duckdb_connection(job.cores, ordered=False)
    return duckdb_facts(connection, job.data.table, readers.duckdb_source(job.data))


def duckdb_facts(connection: Any, table: Table, source: str) -> Facts:
    """Facts of any relation of DuckDB; also used for what `load` methods have stored."""
    return _sql_facts(table, source, lambda query: connection.execute(query).fetchone())


def postgres_facts(table: Table) -> Facts:
    """Facts of the relation on the server that the variables of libpq name."""
    return _sql_facts(table, table.name, postgres.query)


def _sql_facts(table: Table, source: str, first_row: Callable[[str], Iterable[Any]]) -> Facts:
    def expressions(column: Column) -> list[str]:
        if column.kind in _TEXTS:
            return [f"sum(length({column.name}))"]
        if column.kind in _NUMBERS:
            return [f"sum({column.name})"]
        return [f"min({column.name})", f"max({column.name})"]

    selected = [text for column in table.columns for text in expressions(column)]
    row = iter(first_row(f"SELECT count(*), {', '.join(selected)} FROM {source}"))
    facts = {"rows": str(next(row))}
    for column in table.columns:
        bounds = len(expressions(column)) == 2
        facts[column.name] = _bounds(column, next(row), next(row)) if bounds else _number(next(row))
    return facts


def pyarrow(job: Job) -> Facts:
    """Batch by batch; sums in 38 digits."""
    import pyarrow as arrow
    from pyarrow import compute

    columns = job.data.table.columns
    rows = 0
    totals: dict[str, Any] = {column.name: Decimal(0) for column in columns}
    bounds: dict[str, list[Any]] = {column.name: [] for column in columns}
    for batch in readers.pyarrow_batches(job.data, 1 << 20):
        rows += batch.num_rows
        for column in columns:
            values = batch.column(column.name)
            if column.kind in _TEXTS:
                totals[column.name] += compute.sum(compute.utf8_length(values)).as_py()
            elif column.kind in _NUMBERS:
                scale = column.numbers[1] if column.kind == "decimal" else 0
                with localcontext(prec=60):
                    totals[column.name] += compute.sum(values.cast(arrow.decimal128(38, scale))).as_py()
            else:
                bounds[column.name] += compute.min_max(values).as_py().values()

    def fact(column: Column) -> str:
        found = bounds[column.name]
        return _bounds(column, min(found), max(found)) if found else _number(totals[column.name])

    return {"rows": str(rows)} | {column.name: fact(column) for column in columns}


def polars(job: Job) -> Facts:
    """Sums in 128 bits."""
    import polars as pl

    def expressions(column: Column) -> list[Any]:
        value = pl.col(column.name)
        if column.kind in _TEXTS:
            return [value.str.len_chars().cast(pl.Int64).sum()]
        if column.kind in _NUMBERS:
            return [(value if column.kind == "decimal" else value.cast(pl.Int128)).sum()]
        return [value.min().alias(column.name + " least"), value.max().alias(column.name + " greatest")]

    columns = job.data.table.columns
    selected = [expression for column in columns for expression in expressions(column)]
    scan = readers.polars_scan(job.data, job.cores)
    row = iter(scan.select(pl.len().alias("rows of it"), *selected).collect(engine="streaming").row(0))
    facts = {"rows": str(next(row))}
    for column in columns:
        bounds = column.kind not in _TEXTS + _NUMBERS
        facts[column.name] = _bounds(column, next(row), next(row)) if bounds else _number(next(row))
    return facts


PEERS: dict[str, Callable[[Job], Facts]] = {
    "headrace": headrace,
    "duckdb": duckdb,
    "pyarrow": pyarrow,
    "polars": polars,
}


def of(kind: str, method: Method, job: Job) -> Facts:
    """What the method's reader finds; for `load` and `postgres`, what is in the table that it has just filled."""
    if kind == "parse":
        return PEERS[method.peer](job)
    method.run(job)
    if kind == "postgres":
        return postgres_facts(job.data.table)
    connection = readers.duckdb_connection(job.cores, ordered=False)
    connection.execute(f"ATTACH '{job.database}' AS filled (READ_ONLY)")
    return duckdb_facts(connection, job.data.table, f"filled.{job.data.table.name}")


def verdicts(found: dict[str, Facts | str]) -> dict[str, str | None]:
    """Per peer: None, or why it does not count: its error, or where it differs from what most peers found."""
    texts = Counter(str(facts) for facts in found.values() if isinstance(facts, dict))
    agreed = texts.most_common(1)[0][0] if texts else ""
    reference = next((facts for facts in found.values() if isinstance(facts, dict) and str(facts) == agreed), {})

    def verdict(facts: Facts | str) -> str | None:
        if isinstance(facts, str):
            return f"cannot read it: {facts}"
        different = [name for name in reference if facts.get(name) != reference[name]]
        return f"finds other values: {', '.join(different[:3])}" if different else None

    return {peer: verdict(facts) for peer, facts in found.items()}


def _number(value: object) -> str:
    with localcontext(prec=60):
        return f"{Decimal(str(value)).normalize() + 0:f}"


def _bounds(column: Column, least: object, greatest: object) -> str:
    if column.kind == "float64":
        return f"{float(str(least))!r}..{float(str(greatest))!r}"
    return f"{least}..{greatest}"
