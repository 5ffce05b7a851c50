"""Divides the query of a build into statements for sessions that share one snapshot.

By a table: each part is the query behind a CTE that has the table's name and a range of its rows, by their places. The
name of a CTE comes before that of a table, so the query itself stays as it is, but for the schema before that name. By
a column: each part asks for rows with some hashes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace import units
from headrace.errors import HeadraceError, TargetError
from headrace.model import without_schema
from headrace.planning import HashRule, QueryColumn, counted
from headrace.targets.builds import DividedTable, QueryDivision, QueryParts
from headrace.targets.postgres import row_wise
from headrace.targets.postgres.catalog import find_relation
from headrace.targets.postgres.connection import Connection, one_row, one_value, roll_back, sql
from headrace.targets.postgres.failures import statement_failure
from headrace.targets.postgres.names import TableName, quote
from headrace.targets.postgres.sql_values import written
from headrace.targets.postgres.statistics import notes_on_statistics
from headrace.targets.sql import Command, interrupted

_ALIAS: Final = "headrace_divided"
_QUERY: Final = "headrace_query"
_HASH: Final = "hash_record"
# Kinds of tables: with rows of their own, and divided ones, which have none.
_PLAIN: Final = "r"
_READ_BY_PAGES: Final = frozenset({_PLAIN, "p"})
_OTHERWISE: Final = "Divide it otherwise, or leave `by` out: then it is one statement."
_NO_TABLE: Final = "it is no table with rows that have places"
# Less is not worth a session.
_LEAST_PAGES: Final = 1_024
# For the session that holds the snapshot, the control session, the one that watches temporary files, and others.
_OTHER_SESSIONS: Final = 4
# No part may have a plan with workers, whose share of the work would be another one each time.
_SETTINGS: Final = "SET LOCAL max_parallel_workers_per_gather = 0"


def divide(
    connect: Callable[[], Connection],
    query: Command,
    division: QueryDivision,
    columns: Sequence[QueryColumn],
    what: str,
    is_cancelled: Callable[[], bool],
) -> QueryParts:
    """The statements of the parts, and notes. Raises TargetError if the query cannot be divided so."""
    connection = connect()
    try:
        with interrupted(is_cancelled, connection.cancel):
            dividing = _Dividing(connection, query, division, what)
            if division.table is not None:
                made = dividing.by_table()
            elif division.column is not None:
                made = dividing.by_column(columns)
            else:
                made = QueryParts((query,))
            return replace(made, notes=(*made.notes, *notes_on_statistics(connection, query)))
    finally:
        connection.close()


class _Dividing:
    def __init__(self, connection: Connection, query: Command, division: QueryDivision, what: str) -> None:
        self._connection = connection
        self._query = query
        self._division = division
        self._what = what
        self._by = division.table or division.column or ""

    def by_table(self) -> QueryParts:
        """Ranges of about the same number of pages; the last one is open, for those that come meanwhile. Of a table
        that is divided, or from which others inherit, each part reads the range in every one of its tables.
        """
        named, _, own = self._by.rpartition(".")
        text = f"{quote(named)}.{quote(own)}" if named else quote(own)
        found = self._connection.query(sql("divided_table"), (text,)).rows
        if not found:
            where = f"schema {named}" if named else "the search_path"
            raise self._refused(f"there is no table of that name in {where}", "Write it as in FROM.")
        schema, wrong = str(found[0][0]), [row for row in found if row[4] not in _READ_BY_PAGES]
        if wrong:
            reason = _NO_TABLE if wrong[0] == found[0] else f"{wrong[0][2]}.{wrong[0][3]} is a foreign table"
            raise self._refused(reason, "Name a table of the query, or divide by the hash of a column.")
        table = TableName(schema, own)
        # Of a name with a schema there is no CTE.
        query = without_schema(self._query.text, named, own) if named else self._query.text
        names = [(str(row[2]), str(row[3])) for row in found]
        pages = [int(row[5] or 0) for row in found]
        divided = DividedTable(table.sql, tuple(str(row[6]) for row in found))
        plan = self._plan(_of_range(query, table, divided, 0, None))
        self._require(row_wise.why_not_same(plan, _QUERY))
        if row_wise.has_no_rows(plan):
            return QueryParts((self._query,), ("1 part: the query has no rows, whatever is in its tables",))
        if named:
            self._refuse_others(plan, own)
        self._require(row_wise.why_not_by_table(plan, names))
        self._refuse_only(plan, names)
        parts, note = self._parts(plan, max(1, sum(pages) // _LEAST_PAGES))
        bounds = page_bounds(pages, parts)
        ends: list[int | None] = [*bounds[1:], None]
        texts = [_of_range(query, table, divided, low, high) for low, high in zip(bounds, ends, strict=True)]
        size = counted(sum(pages) // parts, "page")
        stored = [row for row in found if row[4] == _PLAIN]
        where = f", in each of its {counted(len(stored), 'table')}" if len(stored) > 1 else ""
        made = self._made(texts, f"{counted(parts, 'part')} of about {size} of {table}{where}{note}")
        return replace(made, divided=divided)

    def _refuse_only(self, plan: row_wise.Node, tables: Collection[row_wise.TableKey]) -> None:
        """The server overlooks ONLY in front of what is the name of a CTE."""
        read = row_wise.tables_read(self._plan(self._query.text), tables)
        if read != row_wise.tables_read(plan, tables):
            raise self._refused("the query reads ONLY it, without its parts", _OTHERWISE)

    def _refuse_others(self, plan: row_wise.Node, name: str) -> None:
        """Without its schema the name must not be that of anything else in the query."""
        if row_wise.relations_read(self._plan(self._query.text)) != row_wise.relations_read(plan):
            reason = f"another table, or a part of the query, is called `{name}`, too"
            raise self._refused(reason, "Give that one another name, or divide the query otherwise.")

    def by_column(self, columns: Sequence[QueryColumn]) -> QueryParts:
        """As many hashes each."""
        if self._by not in [column.name for column in columns]:
            raise self._refused(
                f"the query gives {', '.join(column.name for column in columns)}", "Name a column of the query."
            )
        plan = self._plan(_of_hash(self._query.text, self._by, 0, 2))
        self._require(row_wise.why_not_same(plan, _QUERY))
        self._require(row_wise.why_not_by_column(plan, _HASH))
        parts, note = self._parts(plan, None)
        texts = [_of_hash(self._query.text, self._by, number, parts) for number in range(parts)]
        made = self._made(texts, f"{counted(parts, 'part')} by the hash of {self._by}{note}")
        return replace(made, by_hash=(self._query, self._by))

    def _made(self, texts: Sequence[str], note: str) -> QueryParts:
        if len(texts) == 1:
            return QueryParts((self._query,), (note,))
        return QueryParts(tuple(Command(text, self._query.values) for text in texts), (note,))

    def _require(self, reason: str | None) -> None:
        if reason is not None:
            raise self._refused(reason, _OTHERWISE)

    def _refused(self, reason: str, hint: str) -> TargetError:
        way = "the places of rows of table" if self._division.table is not None else "the hash of column"
        return TargetError(f"{self._what}: its query cannot be divided by {way} `{self._by}`", found=reason, hint=hint)

    def _parts(self, plan: row_wise.Node, most_by_size: int | None) -> tuple[int, str]:
        """How many, and why, as the end of a note."""
        wanted = self._division.parts
        memory, all_memory = (int(value or 0) for value in one_row(self._connection, sql("work_memory")) or ["0", "0"])
        memory *= row_wise.memory_nodes(plan)
        if wanted is not None:
            return wanted, self._memory_note(wanted, memory)
        free = int(one_value(self._connection, sql("free_sessions")) or 1) - _OTHER_SESSIONS
        by_memory = all_memory // 2 // memory if memory else self._division.most_parts
        bounds = [self._division.most_parts, free, by_memory, most_by_size or self._division.most_parts]
        parts = max(1, min(bounds))
        return parts, self._memory_note(parts, memory)

    def _memory_note(self, parts: int, memory: int) -> str:
        return f"; hashes and sorts of all of them: up to {units.size(parts * memory)} by work_mem" if memory else ""

    def _plan(self, text: str) -> row_wise.Node:
        """The plan of a part."""
        asked = f"EXPLAIN (VERBOSE, FORMAT JSON)\nWITH {_QUERY} AS (\n{text}\n)\nSELECT * FROM {_QUERY}"
        try:
            self._connection.execute(f"BEGIN; {_SETTINGS}")
            found = one_value(self._connection, asked, [written(value) for value in self._query.values])
            roll_back(self._connection)
        except HeadraceError as error:
            raise statement_failure(error) from error
        plans: list[dict[str, Any]] = json.loads(found or "[]")
        plan: row_wise.Node = plans[0]["Plan"]
        return plan


def page_bounds(pages: Sequence[int], parts: int) -> list[int]:
    """The first page of each part, the same in tables of so many pages each, so that about as many pages of all of them
    lie between two bounds.
    """
    wanted = [sum(pages) * number // parts for number in range(parts)]
    bounds: list[int] = []
    begin, before, sizes = 0, 0, sorted(pages)
    for position, size in enumerate(sizes):
        # Up to the end of this one, so many tables have as many pages as it.
        alike = len(sizes) - position
        while len(bounds) < parts and wanted[len(bounds)] < before + alike * (size - begin):
            bounds.append(begin + (wanted[len(bounds)] - before) // alike)
        begin, before = size, before + alike * (size - begin)
    return bounds + [begin] * (parts - len(bounds))


def _of_range(query: str, table: TableName, divided: DividedTable, low: int, high: int | None) -> str:
    """The query over the rows in some pages of a table. `high`: the page behind the last one; None: up to the end.
    `divided`: its tables; one that becomes a part of it when some sessions have begun would not be read by all.
    """
    below = "" if high is None else f" AND ctid < '({high},0)'::pg_catalog.tid"
    known = f"tableoid IN ({', '.join(divided.tables)})"
    rows = f"SELECT * FROM {table.sql} WHERE ctid >= '({low},0)'::pg_catalog.tid{below} AND {known}"
    return f"WITH {quote(table.name)} AS NOT MATERIALIZED ({rows})\nSELECT * FROM (\n{query}\n) AS {_ALIAS}"


def _of_hash(query: str, column: str, number: int, parts: int) -> str:
    """The rows of the query whose hash is in one of so many parts."""
    hashed = f"pg_catalog.{_HASH}(ROW({_ALIAS}.{quote(column)})) & 2147483647"
    return f"SELECT * FROM (\n{query}\n) AS {_ALIAS}\nWHERE pg_catalog.mod({hashed}, {parts}) = {number}"


@dataclass(frozen=True)
class HashKey:
    """What the hash of a partitioned table is made of: `oid` is the table's, `type` that of its key, as SQL."""

    oid: str
    type: str


def hash_key_of(connection: Connection, table: TableName, column: str) -> HashKey:
    """Asked of a session without a snapshot of before the table was made."""
    relation = find_relation(connection, table)
    oid = "" if relation is None else relation.oid
    return HashKey(oid, one_value(connection, sql("column_type"), (oid, column)) or "")


def of_partitions(query: str, column: str, key: HashKey, rules: Sequence[HashRule]) -> str:
    """The rows of the query that belong into some partitions by the hash of a column."""
    value = f"CAST({_ALIAS}.{quote(column)} AS {key.type})"
    belongs = " OR ".join(
        f"pg_catalog.satisfies_hash_partition({key.oid}::pg_catalog.oid, {rule.modulus}, {rule.remainder}, {value})"
        for rule in rules
    )
    return f"SELECT * FROM (\n{query}\n) AS {_ALIAS}\nWHERE {belongs}"
