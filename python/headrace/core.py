"""The Rust core as typed Python: the only module that imports `headrace._native`.

Specifications and reports are plain data (see docs/explanation/how-it-works.md); they cross the binding as JSON text.
Rows never do: `Flow.arrow_stream` gives an Arrow C stream whose callbacks are Rust.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from headrace import __version__, _native
from headrace.errors import HeadraceError, InternalError, error_from_dict
from headrace.own_process import when_own

Data = dict[str, Any]
"""A JSON object. The members are listed in crates/engine/src/spec.rs (in) and report.rs (out)."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

if _native.version() != __version__:
    raise ImportError(
        f"headrace {__version__} found the core of version {_native.version()}: "
        "the installation is damaged, install it again"
    )

# Memory of large rows goes back to the system at once; this concerns the whole process.
when_own(_native.return_large_memory)


def _translate(error: _native.CoreError) -> HeadraceError:
    text = str(error)
    try:
        return error_from_dict(json.loads(text))
    except ValueError:
        return InternalError(text)


def _call(
    function: Callable[_Parameters, _Result], *arguments: _Parameters.args, **named: _Parameters.kwargs
) -> _Result:
    try:
        return function(*arguments, **named)
    except _native.CoreError as error:
        raise _translate(error) from None


def _data(text: str) -> Data:
    return cast(Data, json.loads(text))


def version() -> str:
    """Version of the core, the same as that of the package."""
    return _native.version()


def cpu_path() -> str:
    """Instructions the parser uses on this machine: avx512, avx2 or portable (`HEADRACE_CPU` forces one)."""
    return _call(_native.cpu_path)


def cpu_paths() -> list[str]:
    """All instruction sets that the parser can use on this machine, fastest first; `HEADRACE_CPU` takes one of them."""
    return _native.cpu_paths()


def plan_slices(spec: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> Data:
    """Cut files into slices that start and end on row boundaries.

    `spec` has `files` (absolute paths), `slice_bytes` and `layout`; the reply has `files` (as they are now: size,
    modification time, inode, row ends) and `slices`, numbered from 1 in file order. Raises SourceError for a file that
    is missing, unreadable or not a regular file.

    `is_cancelled` is asked as by `key_scan`: files may have to be read whole.
    """
    return _data(_call(_native.plan_slices, json.dumps(spec), is_cancelled))


def field_by_field(layout: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Columns of a layout whose format keeps their texts from being converted many at once, and what in it does."""
    return [(name, reason) for name, reason in json.loads(_call(_native.field_by_field, json.dumps(layout)))]


def hash_places(spec: Mapping[str, Any]) -> Data:
    """Where the core puts keys of partitions by hash.

    `spec` has `type` (of the layout's column), `hash` (as in the `routing` of a flow) and `keys`, texts that the column
    accepts; the reply has `places`, the remainder of each. Raises InternalError for keys and types that do not belong
    together.
    """
    return _data(_call(_native.hash_places, json.dumps(spec)))


def key_bounds(spec: Mapping[str, Any]) -> Data:
    """First and last key of each file, as canonical text; None for a file without a row that conforms to the layout.

    `spec` has `files` (as `plan_slices` replied), `layout` and `column`; the reply has `files`, each with `first` and
    `last`. Raises SourceError or FileChangedError, and InternalError for a column that cannot be a key.
    """
    return _data(_call(_native.key_bounds, json.dumps(spec)))


def key_scan(spec: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> Data:
    """All keys of files, read by several threads that convert no other column.

    `spec` has `files` and `slices` (as `plan_slices` replied), `layout`, `column`, `streams` and `want`:
    `{"periods": {"unit": "hour|day|week|month|quarter|year"}}` for dates and timestamps, `{"periods": {"step": "9"}}`
    for numbers, `{"quantiles": N}` (exact; up to 10,000), or `{"distinct": N}` for texts. The reply has `minimum` and
    `maximum` (canonical text, None without keys and for texts), `rows`, `nulls`, and one of these, ascending:
    `periods`, the first key of each period in which keys lie; `quantiles`, the first key of each of up to N parts of
    equally many keys but the first; `distinct`, the different keys, left out if they are more than N or 16 MB. Rows
    that do not conform to the layout's shape or whose key does not convert are left out; other columns are not looked
    at.

    `is_cancelled` is asked every few milliseconds on the calling thread; CancelledError when it says so, and what it
    raises, as Ctrl-C does, goes through. Raises SourceError or FileChangedError for the files, and InternalError for a
    column that cannot be a key and for what does not fit it.
    """
    return _data(_call(_native.key_scan, json.dumps(spec), is_cancelled))


def look(spec: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> Data:
    """Beginnings and ends of files, by every dialect that they may have.

    `spec` has `files` (absolute paths), `sample_bytes`, `candidates` (`delimiter` or None, `qualifier`, `escape`) and
    perhaps `encoding`, `ends_with_cr` (whether rows end with carriage returns alone) and `from_byte`, where samples
    begin; the reply has `files`: encoding, row ends, and what rows and fields are by each candidate.
    Raises SourceError for what is missing, cannot be read or is no text.
    """
    return _data(_call(_native.look, json.dumps(spec), is_cancelled))


def infer_columns(spec: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> Data:
    """Facts about every column of files, read as a load reads them.

    `spec` has `files` and `slices` (as `plan_slices` replied), `layout`, whose columns are texts that may be null,
    `streams`, and `wants_distinct`. The members of the reply are listed in crates/engine/src/infer/mod.rs. Cancelled
    and failing as `key_scan`.
    """
    return _data(_call(_native.infer_columns, json.dumps(spec), is_cancelled))


def replay_rows(spec: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> Data:
    """The rows of a file of repaired rejects.

    `spec` has `path`, `layouts` of the sources, `files` (of the run whose rejects they are, as `plan_slices` replied)
    and `groups`, in the order of the rows: `{"file", "layout", "rows"}`, the indexes of the source file as which so
    many rows are written (None: all that are left) and of its layout (0 unless said); `first_bytes` of the first
    reject, in which a byte order mark is a part of the row. The reply has `files` and `slices` of a flow that reads
    them, one of each for a group, `rows`, the number of lines, and `blank`, those of them, from 1, that the layouts
    skip: first and last of those that follow each other.

    `is_cancelled` is asked as by `key_scan`.
    """
    return _data(_call(_native.replay_rows, json.dumps(spec), is_cancelled))


class Lookup:
    """Rows of files, or of a query, that are found by their keys, for the flows that are given it."""

    def __init__(
        self, spec: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False, rows: object | None = None
    ) -> None:
        """Read the files, by several threads, or `rows`, the capsule of an Arrow C stream, by one, or a list of
        PostgresRows, by one each; keep their keys and the columns that rows get.

        The members of `spec` are listed in crates/engine/src/lookup/spec.rs. `is_cancelled` is asked as by `key_scan`.
        Raises SourceError for a row that cannot be read and for a key that two rows have, MemoryLimitError at the
        first byte above `budget_bytes`, and what reading files, or a session, raises. A stream that waits is to be
        stopped by `is_cancelled`, which is asked until it has ended.
        """
        text = json.dumps(spec)
        if rows is None:
            self.native = _call(_native.Lookup, text, is_cancelled)
        elif isinstance(rows, list):
            self.native = _call(_native.Lookup.of_sessions, text, [own.native for own in rows], is_cancelled)
        else:
            self.native = _call(_native.Lookup.of_stream, text, rows, is_cancelled)

    def report(self) -> Data:
        """rows, null_keys, values_ignored, bytes_read, form, bytes, peak_bytes, seconds."""
        return _data(self.native.report())


class Flow:
    """One data flow: streams that read, parse and write. Nothing runs before `start`."""

    def __init__(self, spec: Mapping[str, Any], lookups: Sequence[Lookup] = (), rows: object | None = None) -> None:
        """Check the specification; raises InternalError when it contradicts itself. `lookups`: one for each of its
        transforms that is one; `rows`: the capsule of an Arrow C stream, which has them in the place of files.
        """
        arguments = json.dumps(spec), [lookup.native for lookup in lookups]
        if rows is None:
            self._flow = _call(_native.Flow, *arguments)
        else:
            self._flow = _call(_native.Flow.of_stream, *arguments, rows)
        self.started = False

    def start(self) -> None:
        """Start the stream threads; a second call does nothing. A flow that was never started never ends."""
        self.started = True
        _call(self._flow.start)

    def arrow_stream(self) -> _native.ArrowStream:
        """The merged Arrow stream of a flow with an `arrow` sink, once.

        It ends with an error unless every slice ended well, so that its consumer can never commit half a load.
        """
        return self.arrow_stream_of(0)

    def arrow_stream_of(self, destination: int) -> _native.ArrowStream:
        """The same of one of several destinations, numbered from 0."""
        return _call(self._flow.arrow_stream, destination)

    def has_stream_failed(self, destination: int) -> bool:
        """Whether the consumer of that stream was told of an error, so that what it says is a consequence."""
        return self._flow.has_stream_failed(destination)

    def cancel(self, reason: str) -> None:
        """Stop the flow, from any thread; its Arrow stream ends with an error within 20 ms."""
        self._flow.cancel(reason)

    def commit(self) -> None:
        """Commit what a sink with `commit: together` left open, once, after `join` gave a report without error."""
        _call(self._flow.commit)

    def next_window(self) -> _native.Window | None:
        """The next rows that a query of the flow is to be run over, to be answered once, as soon as there are some; for
        any number of threads, none of which holds the GIL while it waits. None when the flow has ended, or was stopped.
        """
        return self._flow.next_window()

    def is_stopped(self) -> bool:
        """Whether the flow was stopped, or has failed."""
        return self._flow.is_stopped()

    def seen_at_work(self, process_ids: Sequence[int]) -> None:
        """Tell that these processes of the server were seen at work: their writers are not given up, even if no byte
        moves for `stall_timeout_seconds`. To be told again and again."""
        self._flow.seen_at_work(None, list(process_ids))

    def seen_at_work_of(self, destination: int, process_ids: Sequence[int]) -> None:
        """The same of the server of one of several destinations."""
        self._flow.seen_at_work(destination, list(process_ids))

    def snapshot(self) -> Data:
        """Live counters for progress: bytes_read, rows_read, rows_out, rows_rejected, slices_done, slices_total,
        streams_active. The accounts come from `join`."""
        return _data(self._flow.snapshot())

    def measure(self) -> Data:
        """All live counters: the members of a `flow` line of docs/spec/metrics.md from `bytes_read` on.

        A call that hangs counts while it hangs; counters never fall. Asks the system about each stream, about 5
        microseconds: for once a second, where `snapshot` is for ten times.
        """
        return _data(self._flow.measure())

    def join(self, timeout_seconds: float) -> Data | None:
        """The report of a flow that ended, or None after the timeout. `status` says how it ended; it never raises for
        that. Other threads run meanwhile."""
        text = self._flow.join(timeout_seconds)
        return None if text is None else _data(text)


class Generation:
    """A running generation of TPC-H files."""

    def __init__(self, generation: _native.Generation) -> None:
        self._generation = generation

    def cancel(self) -> None:
        """Stop; temporary files are removed, complete ones stay."""
        self._generation.cancel()

    def snapshot(self) -> Data:
        """bytes_written, bytes_estimated, rows_written, files_done, files_total."""
        return _data(self._generation.snapshot())

    def join(self, timeout_seconds: float) -> Data | None:
        """The result (`status`, `error`, `files`), or None after the timeout."""
        text = self._generation.join(timeout_seconds)
        return None if text is None else _data(text)


def generate_tpch(spec: Mapping[str, Any]) -> Generation:
    """Start to write TPC-H tables as files.

    `spec`: `scale`, `chunks`, `chunk` (None for all), `tables`, `folder` (absolute), `threads`. Errors come with the
    result.
    """
    return Generation(_call(_native.generate_tpch, json.dumps(spec)))


class QueryResult(NamedTuple):
    """Rows of a statement as text; NULL is None. `tag` says what was done, such as `INSERT 0 3`; `types` are the oids
    of the columns' types; `has_more`: there are more rows, and no tag yet.
    """

    columns: list[str]
    rows: list[list[str | None]]
    tag: str
    types: list[int]
    has_more: bool


class PostgresRows:
    """Rows of a statement in binary form, under way to a `Lookup`. Dropped before, their session ends."""

    def __init__(self, native: _native.PostgresRows) -> None:
        self.native = native


class PostgresConnection:
    """One session of a PostgreSQL server, for statements; rows in bulk go through a `Flow`.

    Calls from several threads wait for one another; only `cancel` never waits. Errors of the server are TargetError or
    TargetBusyError with `server` set. Connecting or any call fails with CancelledError after `cancel`.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Connect and log in. The members of `spec` are listed in crates/engine/src/postgres/spec.rs."""
        self._connection = _call(_native.PostgresConnection, json.dumps(spec))

    def __enter__(self) -> PostgresConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def execute(self, sql: str) -> None:
        """Run statements separated by semicolons; without BEGIN they are one transaction. Rows are dropped."""
        _call(self._connection.execute, sql)

    def query(self, sql: str, parameters: Sequence[str | None] = ()) -> QueryResult:
        """Run one statement with `$1, $2, ...` given as text."""
        return QueryResult(*_call(self._connection.query, sql, list(parameters)))

    def first_rows(self, sql: str, parameters: Sequence[str | None], limit: int) -> QueryResult:
        """The same, its first rows, at most `limit`. The others can be had until the next statement, or the end of the
        transaction, in which this must be.
        """
        return QueryResult(*_call(self._connection.first_rows, sql, list(parameters), limit))

    def next_rows(self, limit: int) -> QueryResult:
        """The next rows of the statement of `first_rows`; without columns and types."""
        return QueryResult(*_call(self._connection.next_rows, limit))

    def describe(self, sql: str) -> list[tuple[str, int, int]]:
        """Name, oid of the type and type modifier of each column of a statement, which is not executed."""
        return _call(self._connection.describe, sql)

    def binary_rows(
        self, sql: str, parameters: Sequence[str | None], count: int, columns: Sequence[Mapping[str, Any]]
    ) -> PostgresRows:
        """Begin a statement whose rows have `count` columns. Those of `columns` are wanted, with the members `place`,
        `type` and `form`. The rows take the session with them: only `cancel` can be called behind that.
        """
        text = json.dumps(list(columns))
        return PostgresRows(_call(self._connection.binary_rows, sql, list(parameters), count, text))

    def cancel(self) -> None:
        """End the wait of another thread and ask the server to stop; the connection is unusable afterwards."""
        self._connection.cancel()

    def address(self) -> str | None:
        """Address and port of the server, the `address` of a host in `spec`; None for a Unix socket."""
        return _call(self._connection.address)

    def process_id(self) -> int:
        """Process of the server that serves this session."""
        return self._connection.process_id()

    def parameter(self, name: str) -> str | None:
        """A setting that the server reports by itself, such as `server_version`, or None."""
        return _call(self._connection.parameter, name)

    def notices(self) -> list[Data]:
        """Notices and warnings since the last call (at most 100), with the members of an error's `server`."""
        return cast(list[Data], json.loads(_call(self._connection.notices)))

    def close(self) -> None:
        """End the session; a second call does nothing. An open transaction is rolled back by the server."""
        self._connection.close()


def raise_for_error(report: Mapping[str, Any]) -> None:
    """Raise the error of a report (of a flow or a generation), if it has one."""
    error = report.get("error")
    if error is not None:
        raise error_from_dict(error)
