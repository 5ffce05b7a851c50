"""How the rows of a lookup are read, as a plan has it: which rows, about how many, by what, in which memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from headrace.errors import SourceError
from headrace.model import (
    Column,
    DatabaseSource,
    EmbeddedQuery,
    FileSource,
    Lookup,
    LookupColumn,
    QuerySource,
    TableSource,
)
from headrace.model.arrow_rows import ROWS_PER_BATCH
from headrace.planning.made_columns import longest_text
from headrace.planning.memory import LOOKUP_BLOCK_BYTES, MAXIMUM_ROW_BYTES, slab_bytes, value_bytes
from headrace.planning.run_facts import RunFacts, of_run
from headrace.planning.source_snapshot import SourceSnapshot
from headrace.planning.wording import counted

_BLOCKS_PER_STREAM: Final = 2
# Largest part of the budget that the readers of a lookup have, unless one alone takes more.
_READER_SHARE: Final = 0.05
# What a query has to compute with, at least.
_LEAST_ENGINE_BYTES: Final = 32_000_000
# Beside the rows that are appended DuckDB has the next ones.
_BATCHES: Final = 2
# Of a session of a server: what it has read and not yet appended, the batch and what has come behind it.
_SESSION_BYTES: Final = 4_000_000
# Of each row of a table that has texts: how long they are nobody knows before they are read.
_TEXT_BYTES: Final = 64


class LookupReading(Protocol):
    """`rows`: about as many there are, None if that cannot be told before. `streams`: threads at work, and
    `most_streams` if memory is no matter.
    """

    @property
    def rows(self) -> int | None: ...
    @property
    def streams(self) -> int: ...
    @property
    def source(self) -> SourceSnapshot: ...
    @property
    def query(self) -> EmbeddedQuery | None:
        """What gives the rows; None if the core reads files."""

    @property
    def engine_bytes(self) -> int:
        """Memory of what gives the rows, if it is there for them alone."""

    @property
    def reader_bytes(self) -> int:
        """Memory of those that read."""

    @property
    def most_reader_bytes(self) -> int:
        """The same, were there memory for all that have something to read."""

    @property
    def text_bytes(self) -> int:
        """All texts together are not longer, as far as that is known."""

    @property
    def made_bytes(self) -> int:
        """Texts that are copied into each row."""

    @property
    def words(self) -> str:
        """What rows come from, in a sentence."""

    def core_spec(self, run: RunFacts | None) -> dict[str, Any]:
        """Members of the core's specification."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""


def planned_reading(lookup: Lookup, source: SourceSnapshot, streams: int, memory_bytes: int) -> LookupReading:
    """Raises SourceError for files of which no such rows can be made."""
    wanted = {key.lookup_column for key in lookup.keys} | {column.lookup_column for column in lookup.added}
    if isinstance(lookup.source, DatabaseSource):
        return DatabaseReading(lookup.source, source, wanted, streams, memory_bytes)
    if isinstance(lookup.source, QuerySource):
        return QueryReading(lookup.source, source, wanted, streams, memory_bytes)
    needed = [column for column in lookup.source.layout.columns if column.name in wanted]
    _check_source(lookup.name, needed, source)
    most = _readers(source, streams)
    reading = FileReading(lookup.source, source, needed, most, most)
    working = min(most, max(1, int(memory_bytes * _READER_SHARE) // reading.bytes_of(1)))
    return FileReading(lookup.source, source, needed, working, most)


@dataclass(frozen=True)
class FileReading:
    """Files, looked at once. `needed`: the columns of them that are converted."""

    files: FileSource
    source: SourceSnapshot
    needed: Sequence[Column]
    streams: int
    most_streams: int

    query = None
    engine_bytes = 0

    @property
    def rows(self) -> int | None:
        # Compressed files tell nothing of their text.
        return None if self.source.compressions else round(self.source.bytes_total / self.source.row_bytes)

    @property
    def reader_bytes(self) -> int:
        return self.bytes_of(self.streams)

    @property
    def most_reader_bytes(self) -> int:
        return self.bytes_of(self.most_streams)

    @property
    def text_bytes(self) -> int:
        return self.source.bytes_total

    @property
    def made_bytes(self) -> int:
        made = [longest_text(column, self.source.paths) for column in self.needed]
        return sum(len(text.encode()) for text in made if text is not None)

    @property
    def words(self) -> str:
        return counted(len(self.source.files), "file")

    def bytes_of(self, streams: int) -> int:
        """Memory of so many streams."""
        slab = slab_bytes(self.needed, LOOKUP_BLOCK_BYTES, rewrites=self.files.layout.rewritten_blocks)
        return streams * _BLOCKS_PER_STREAM * (LOOKUP_BLOCK_BYTES + slab) + self.source.decoding_bytes(streams)

    def core_spec(self, run: RunFacts | None) -> dict[str, Any]:
        layout = self.files.layout.to_core((), {column.name: column.type for column in self.needed})
        if "made" in layout:
            layout["made"] = [{**column, "from": of_run(column["from"], run)} for column in layout["made"]]
        return {
            "files": self.source.files,
            "slices": self.source.slices,
            "layout": layout,
            "memory": {
                "block_bytes": LOOKUP_BLOCK_BYTES,
                "blocks": self.streams * _BLOCKS_PER_STREAM,
                "max_row_bytes": MAXIMUM_ROW_BYTES,
            },
        }

    def to_dict(self) -> dict[str, Any]:
        return {"files": self.source.files, "slices": len(self.source.slices)}


@dataclass(frozen=True)
class QueryReading:
    """A query, whose rows one thread appends. `wanted`: the columns of it that are kept; `streams`: threads that fill
    the index behind that.
    """

    of: QuerySource
    source: SourceSnapshot
    wanted: Collection[str]
    streams: int
    memory_bytes: int

    rows = None
    text_bytes = 0
    made_bytes = 0
    words = "a query"

    @property
    def query(self) -> EmbeddedQuery:
        return self.of.query

    @property
    def engine_bytes(self) -> int:
        return lookup_engine_bytes(self.memory_bytes)

    @property
    def reader_bytes(self) -> int:
        return self.engine_bytes + _batch_bytes(self.of.columns.values())

    @property
    def most_reader_bytes(self) -> int:
        return self.reader_bytes

    def core_spec(self, run: RunFacts | None) -> dict[str, Any]:
        del run
        columns = [column for column in self.of.columns.values() if column.name in self.wanted]
        return _stream_spec("query", columns, [self.of.places[column.name] for column in columns])

    def to_dict(self) -> dict[str, Any]:
        return {"query": self.of.query.written}


@dataclass(frozen=True)
class DatabaseReading:
    """A table or query of a database, whose rows one thread for each session appends. `wanted`: the columns of it that
    are read; `streams`: threads that fill the index behind that.
    """

    of: DatabaseSource
    source: SourceSnapshot
    wanted: Collection[str]
    streams: int
    memory_bytes: int

    query = None
    made_bytes = 0

    @property
    def rows(self) -> int | None:
        return None if self.of.found is None else self.of.found.rows

    @property
    def columns(self) -> list[LookupColumn]:
        """Those that are read."""
        return [column for name, column in self.of.columns.items() if name in self.wanted]

    @property
    def engine_bytes(self) -> int:
        return 0 if self._is_remote else lookup_engine_bytes(self.memory_bytes)

    @property
    def sessions(self) -> int:
        """As many read it, at most."""
        return 1 if self.of.found is None else min(self.streams, self.of.found.parts)

    @property
    def reader_bytes(self) -> int:
        return self.sessions * _SESSION_BYTES if self._is_remote else self.engine_bytes + _batch_bytes(self.columns)

    @property
    def most_reader_bytes(self) -> int:
        return self.reader_bytes

    @property
    def text_bytes(self) -> int:
        return (self.rows or 0) * _TEXT_BYTES

    @property
    def words(self) -> str:
        if not isinstance(self.of, TableSource):
            return f"a query of {self.of.connection.name}"
        parts = (self.of.connection.name, self.of.schema, self.of.table)
        return ".".join(part for part in parts if part is not None)

    def core_spec(self, run: RunFacts | None) -> dict[str, Any]:
        del run
        word = "table" if isinstance(self.of, TableSource) else "query"
        return _stream_spec(word, self.columns, range(len(self.columns)))

    def to_dict(self) -> dict[str, Any]:
        own = {"connection": self.of.connection.name, "sessions": self.sessions}
        if not isinstance(self.of, TableSource):
            return {**own, "query": self.of.query.written}
        return {**own, "schema": self.of.schema, "table": self.of.table}

    @property
    def _is_remote(self) -> bool:
        return self.of.found is not None and self.of.found.is_remote


def lookup_engine_bytes(memory_bytes: int) -> int:
    """Memory of a database that is there for a lookup alone, of the run's budget."""
    return max(_LEAST_ENGINE_BYTES, int(memory_bytes * _READER_SHARE))


def _batch_bytes(columns: Collection[LookupColumn]) -> int:
    return _BATCHES * ROWS_PER_BATCH * sum(value_bytes(column.type) for column in columns)


def _stream_spec(word: str, columns: Sequence[LookupColumn], places: Sequence[int]) -> dict[str, Any]:
    return {
        "source": word,
        "columns": [
            {"name": column.name, "type": column.type.to_core(), "nullable": column.nullable} for column in columns
        ],
        "places": list(places),
    }


def _check_source(name: str, needed: Sequence[Column], source: SourceSnapshot) -> None:
    if source.streams:
        raise SourceError(
            f"lookup `{name}` cannot read what can be read once only",
            found=source.streams[0],
            expected="files",
            hint="Write the rows to a file first.",
        )
    numbered = [column.name for column in needed if column.from_ == "row_number"]
    if numbered and len(source.files) > 1:
        raise SourceError(
            f"`{numbered[0]}` of lookup `{name}` is the number of a row in its file",
            found=f"{len(source.files)} files, each with a row 1",
            expected="one file",
            hint="Give the rows numbers of their own in the files.",
        )


def _readers(source: SourceSnapshot, streams: int) -> int:
    """Streams that read the files: each has a few blocks to read, at least. What is packed is longer than it says."""
    blocks = max(1, source.bytes_total // (_BLOCKS_PER_STREAM * LOOKUP_BLOCK_BYTES))
    most = len(source.slices) if source.compressions else min(len(source.slices), blocks)
    return max(1, min(streams, most))
