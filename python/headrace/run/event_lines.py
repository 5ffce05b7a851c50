"""The lines of events.jsonl, each declared once: the reference reads this table, and tests compare it with runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class EventLine:
    """One kind of line. `members` stand in each behind `event` and `at`, `of_flows` in those of data flows beside them,
    and `of_some` in those of data flows that have what they tell of.

    `level`: the least `log_level` of a package at which the file has the line.
    """

    name: str
    sentence: str
    level: str
    members: dict[str, str]
    of_flows: dict[str, str] = field(default_factory=dict)
    of_some: dict[str, str] = field(default_factory=dict)


_TASK: Final = {"task": "id of the task in this run, with the turns around it: `each[a.csv].load`", "kind": "its kind"}
_ERROR: Final = {"error": "the error, as in `summary.json`, or null"}

EVENT_LINES: Final[dict[str, EventLine]] = {
    line.name: line
    for line in (
        EventLine(
            "run_started",
            "The run begins, or goes on.",
            "error",
            {
                "run_id": "its id",
                "package": "name of the package",
                "streams": "number of streams",
                "memory_bytes": "the memory that it may use",
                "run_folder": "path of the run folder",
                "tasks": "the data flows that are planned before the run",
            },
        ),
        EventLine(
            "task_started",
            "A task begins. A data flow has a second line when its plan is made.",
            "information",
            _TASK,
            {
                "table": "name of the table",
                "connection": "name of the connection",
                "files": "number of source files",
                "bytes_total": "their size; 0 for destinations behind the first one of their data flow",
                "flow_of": "of one of several destinations the id of their data flow, or null",
                "slices": "number of slices",
                "streams": "streams that can work",
                "notes": "what its user should know of the plan",
            },
        ),
        EventLine(
            "table_built",
            "A build has committed its rows.",
            "information",
            {
                "task": "id of the build",
                "table": "name of the table",
                "connection": "name of the connection",
                "rows_loaded": "rows that the destination has confirmed",
                "parts": "statements that have filled it side by side",
                "seconds": "how long it took",
            },
        ),
        EventLine(
            "lookup_started",
            "The rows of a lookup are read now, before those of the data flow.",
            "information",
            {
                "task": "id of the data flow",
                "table": "name of the table",
                "lookup": "name of the transform",
                "rows_from": "what its rows come from, in words",
                "files": "how many files it has; 0 for a query",
                "bytes_total": "their size",
            },
        ),
        EventLine(
            "lookup_read",
            "The rows of a lookup are in memory; those of the data flow follow.",
            "information",
            {
                "task": "id of the data flow",
                "table": "name of the table",
                "lookup": "name of the transform",
                "rows_from": "what its rows come from, in words",
                "files": "how many files it has; 0 for a query",
                "rows": "rows that can be found",
                "null_keys": "rows that were left out, because a column of their key is NULL",
                "duplicates": "rows that were left out, because a row before them has their key",
                "lines": "lines of the files, or rows of the query",
                "skipped": "lines that are no rows: headers, blank lines, comments",
                "bytes_read": "bytes of text that were read",
                "bytes": "memory that it takes",
                "seconds": "how long it took",
            },
        ),
        EventLine(
            "progress",
            "How far a data flow is; in the file at most once a second.",
            "information",
            {
                "task": "id of the data flow",
                "table": "name of the table",
                "bytes_read": "bytes of text that were read",
                "source_bytes_read": "bytes of the files, compressed or not",
                "counted_bytes": "bytes that were read before the first row, to number rows",
                "bytes_total": "size of the files",
                "rows_read": "rows",
                "rows_rejected": "rows that were rejected",
                "seconds": "since the data flow began",
            },
        ),
        EventLine(
            "limit",
            "What limits a data flow is another thing than before, or can be told now; at its end, of all of it.",
            "information",
            {
                "task": "id of the data flow",
                "table": "name of the table",
                "limit": "one of the limits",
                "sentence": "why, with the numbers behind it",
                "next_limit": "what would be the limit if this one were none, or null",
                "next_megabytes_per_second": "and from where on, MB of source text per second, or null",
                "remedy": "what helps most often",
                "streams_by_limit": "how many streams each limit holds up, each judged alone",
                "is_final": "whether it is about all of the data flow",
            },
            {"connection": "the one of several connections whose part it is"},
        ),
        EventLine(
            "slow_streams",
            "Streams work on although at least half of them have ended; again when others are slow.",
            "information",
            {
                "task": "id of the data flow",
                "table": "name of the table",
                "streams": "a list of `number`, `file`, `behind_seconds`, `limit`, `sentence`, slowest first",
            },
        ),
        EventLine(
            "task_finished",
            "A task has ended, after all tries.",
            "information; failed ones: error",
            {**_TASK, "status": "success, failed or cancelled", "seconds": "how long it took", **_ERROR},
            {
                "table": "name of the table",
                "rows_read": "rows of the source",
                "rows_skipped": "header, footer, comments, blank rows",
                "rows_rejected": "rows that were rejected",
                "rows_filtered": "rows that queries of the flow have left out, or that have gone another way; with a "
                "join those behind it: `join` has those of its sides",
                "flow_of": "of one of several destinations the id of their data flow, or null",
                "rows_loaded": "rows that are committed",
                "bytes_read": "bytes of text",
            },
            {
                "join": "with a join: rows of both sides, as in `summary.json`",
                "union": "with a union: rows of each source, as in `summary.json`",
                "gathered": "with a query over all rows: `rows_in`, `rows_out`, `filtered_behind`; of several the "
                "first `rows_in` and the last `rows_out`, and in `queries` the same of each, with its `name`",
            },
        ),
        EventLine(
            "task_skipped",
            "A task does not run.",
            "information",
            {**_TASK, "reason": "why"},
            {"table": "of one that an earlier attempt has loaded: name of the table"},
        ),
        EventLine(
            "notice",
            "Something that the user should know and that is no error.",
            "warning",
            {"task": "id of the task that it is about, or null", "text": "the text"},
        ),
        EventLine(
            "run_finished",
            "The run has ended.",
            "error",
            {
                "run_id": "its id",
                "status": "success, failed or cancelled",
                "seconds": "how long this attempt took",
                **_ERROR,
            },
        ),
    )
}
