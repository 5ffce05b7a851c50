"""The result of a run: one document, stored as summary.json and printed by `--json`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headrace.errors import EXIT_CANCELLED, EXIT_FAILED, HeadraceError
from headrace.executors import (
    FlowOutcome,
    gathered_counts,
    ignored_by_column,
    is_source_known,
    join_accounts,
    union_accounts,
)
from headrace.model import SIDES, DataType, joins_told
from headrace.planning import DataFlowPlan, RowsBefore, SkippedTask
from headrace.run.finished import FinishedTable
from headrace.run.folded import FoldedFlows
from headrace.run.transformed import transform_accounts

_STAGES = ("read", "parse", "transform", "write")
# Files that a note names.
_NAMED_FILES = 3
_KEPT_SKIPPED = 1_000
_SLICE_SUMS = ("bytes", "lines", "skipped", "rows", "rejected", "filtered", "out", "values_ignored")


_IN_FRONT = "filtered_in_front"
_OF_SOURCES = ("rows_read", "rows_skipped")

Document = dict[str, Any]
Item = TypeVar("Item")


@dataclass
class TableResult:
    """What became of one task."""

    plan: DataFlowPlan
    outcome: FlowOutcome
    # What has limited it, with the evidence.
    limit: Document | None = None

    @property
    def is_told(self) -> bool:
        """Whether what is told once of a pass over a source is told with it, and not with another destination."""
        return not self.plan.flow or not self.outcome.result or self.outcome.result.get("shared") is not None

    @property
    def is_first(self) -> bool:
        """Whether it is the first one that this pass has filled; a complete place may have been told before."""
        return self.is_told or bool((self.outcome.result or {}).get("goes_on"))

    @property
    def _tells_files(self) -> bool:
        """Whether what was seen of its files is told with it."""
        is_first = self.plan.front is not None and bool((self.outcome.result or {}).get("tells_files"))
        return self.is_told or is_first

    def rejected_in_flow(self) -> int:
        """Rows that were rejected, on the way to any of its destinations."""
        return int({"rows_rejected": self.sums()["rejected"], **self._shared}["rows_rejected"])

    def read_in_flow(self) -> int:
        """Rows that were read for it, or for any other destination of its flow."""
        return int({"rows_read": self.sums()["rows"], **self._shared}["rows_read"])

    @property
    def _shared(self) -> Mapping[str, Any]:
        return (self.outcome.result or {}).get("shared") or {}

    def sums(self) -> dict[str, int]:
        """The accounts of all slices that ended, in this attempt of the run or before. `bytes`: read in this one."""
        slices = self.outcome.result["slices"] if self.outcome.result else []
        return {name: sum(int(item[name]) for item in slices) for name in _SLICE_SUMS}

    def notes(self) -> list[str]:
        """What reading the files has shown: files without rows, two ways of ending rows, an encoding that may be meant,
        fields and rows that the layout takes although they are irregular, ignored values. Files are told of once for
        several destinations.
        """
        of_files: Sequence[Callable[[], list[str]]] = (
            self._rowless_notes,
            self._row_end_notes,
            self._encoding_notes,
            self._irregular_notes,
            self._ignored_notes,
        )
        return [note for notes in of_files if self._tells_files for note in notes()] + self._empty_notes()

    def _row_end_notes(self) -> list[str]:
        if self.plan.replay is not None:
            return []  # each row has that of its own file, or that of an editor
        ends: dict[int, tuple[int, int]] = {}
        for item in self.outcome.result["slices"] if self.outcome.result else []:
            lf, crlf = ends.get(item["file"], (0, 0))
            ends[item["file"]] = (lf + int(item["lf_lines"]), crlf + int(item["crlf_lines"]))
        mixed = [(file, lf, crlf) for file, (lf, crlf) in sorted(ends.items()) if lf and crlf]
        notes = [
            f"lines end in two ways in {self.plan.source.files[file]['path']}: {lf:,} with LF, {crlf:,} with CR LF"
            for file, lf, crlf in mixed[:_NAMED_FILES]
        ]
        if len(mixed) > _NAMED_FILES:
            notes.append(f"lines end in two ways in {len(mixed) - _NAMED_FILES:,} more files")
        return notes

    def _rowless_notes(self) -> list[str]:
        """Files that are not empty, and have no row."""
        counts: dict[int, tuple[int, int]] = {}
        for item in self.outcome.result["slices"] if self.outcome.result else []:
            lines, rows = counts.get(item["file"], (0, 0))
            counts[item["file"]] = (lines + int(item["lines"]), rows + int(item["rows"]))
        files = [(file, lines) for file, (lines, rows) in sorted(counts.items()) if lines and not rows]
        what = "header, footer, comment or blank"
        notes = [
            f"there is no row in {self.plan.source.files[file]['path']}: "
            + (
                f"its only line is {what}; is `row_end` of the layout right?"
                if lines == 1
                else f"each of its {lines:,} lines is {what}"
            )
            for file, lines in files[:_NAMED_FILES]
        ]
        return notes + (
            [f"there is no row in {len(files) - _NAMED_FILES:,} more files"] if len(files) > _NAMED_FILES else []
        )

    def ignored(self) -> dict[str, dict[str, int]]:
        """By column of the layout, values of rows that are not those of the file: `nulls` and `cut`."""
        return ignored_by_column(self.plan, self.outcome.result)

    def _ignored_notes(self) -> list[str]:
        notes = []
        for column, counts in self.ignored().items():
            if counts["nulls"]:
                notes.append(f"column `{column}`: {_values(counts['nulls'])} no {self._type_of(column)}, so NULL")
            if counts["cut"]:
                notes.append(f"column `{column}`: {_values(counts['cut'])} cut to {self._type_of(column)}")
        return notes

    def _empty_notes(self) -> list[str]:
        sums = self.sums()
        is_replaced = self.plan.target == "replace" and self.plan.partitioning is None
        if is_replaced and sums["rows"] and not sums["out"] and self.outcome.error is None:
            rows = sums["rows"]
            all_rejected = sums["rejected"] == rows
            gone = f"all {rows:,} rows were rejected" if all_rejected else f"none of {rows:,} rows is left"
            return [f"{gone}: table {self.plan.table} is empty now"]
        return []

    def _type_of(self, column: str) -> str:
        """Of a column of a layout, as it is shown; the destination need not have it."""
        core = next(
            own["type"]
            for source, layout in enumerate(self.plan.layouts)
            for number, own in enumerate(layout["columns"])
            if self.plan.shown_column(source, number) == column
        )
        return str(DataType(**core))

    def _encoding_notes(self) -> list[str]:
        """Files that seem to be UTF-8 and were read as something else, and what was replaced."""
        seen: dict[int, bool] = {}
        for item in self.outcome.result["slices"] if self.outcome.result else []:
            if item.get("is_utf8") is not None:
                seen[item["file"]] = seen.get(item["file"], True) and bool(item["is_utf8"])
        files = [file for file, is_utf8 in sorted(seen.items()) if is_utf8]
        notes = [
            f"{self.plan.source.files[file]['path']} is read as {self._encoding(file)}, and all of it is valid UTF-8: "
            "is `encoding: utf-8` meant?"
            for file in files[:_NAMED_FILES]
        ]
        if len(files) > _NAMED_FILES:
            names = " or ".join(dict.fromkeys(self._encoding(file) for file in files[_NAMED_FILES:]))
            notes.append(f"{len(files) - _NAMED_FILES:,} more files are valid UTF-8 and read as {names}")
        for name, count in self._by_column("replaced").items():
            what = "1 character was" if count == 1 else f"{count:,} characters were"
            notes.append(f"column `{name}`: {what} unmappable and read as U+FFFD")
        return notes

    def _irregular_notes(self) -> list[str]:
        """Rows and fields that are taken only because the layout says so."""
        notes = []
        for name, count in self._by_column("stray_qualifiers").items():
            what = "1 value with stray qualifiers was" if count == 1 else f"{count:,} values with stray qualifiers were"
            notes.append(f"column `{name}`: {what} read as text")
        slices = self.outcome.result["slices"] if self.outcome.result else []
        for counter, what in (
            ("filled_rows", "shorter than the layout: what is missing was read as empty"),
            ("extended_rows", "longer than the layout: the last column has read the rest"),
        ):
            if count := sum(int(item.get(counter, 0)) for item in slices):
                notes.append(f"{'1 row was' if count == 1 else f'{count:,} rows were'} {what}")
        return notes

    def _by_column(self, counter: str) -> dict[str, int]:
        """What the slices have counted by column of their layout, by the column's name."""
        counts: dict[tuple[int, int], int] = {}
        for item in self.outcome.result["slices"] if self.outcome.result else []:
            for column, count in item.get(counter, {}).items():
                place = (self.plan.source_number(int(item["file"])), int(column))
                counts[place] = counts.get(place, 0) + int(count)
        return {self.plan.shown_column(*place): count for place, count in sorted(counts.items())}

    def _encoding(self, file: int) -> str:
        return str(self.plan.layouts[self.plan.source_number(file)]["encoding"])

    def join(self) -> Document | None:
        """The accounts of its join, if it has one."""
        return join_accounts(self.plan, self.outcome.result) if self._is_source_known() else None

    def union(self) -> Document | None:
        """What was read of each source of its union, if it has one."""
        return union_accounts(self.plan, self.outcome.result) if self._is_source_known() else None

    def gathered(self) -> Document | None:
        """The rows of its query over all rows, if it has one."""
        return gathered_counts(self.plan, self.outcome.result)

    def _is_source_known(self) -> bool:
        return self.outcome.result is None or is_source_known(self.outcome.result)

    def _not_known(self) -> Document:
        """Accounts that it has and that nobody knows any more."""
        own = {"join": self.plan.join, "union": self.plan.union, "gathered": self.plan.gather}
        return {} if self._is_source_known() else {name: None for name, plan in own.items() if plan is not None}

    def _rejects(self) -> Document:
        """What the flow says of them; and the table that holds them, too, once it does."""
        rejects = dict(self.outcome.result["rejects"]) if self.outcome.result else {}
        table = self.plan.reject_table
        return rejects if table is None or self.outcome.error is not None else {**rejects, "table": table.shown}

    def _source(self) -> Document:
        """Which of several sources of its flow it is of, whose rows meet those of no others."""
        plan = self.plan
        if plan.together is None or plan.front is None or not plan.is_apart:
            return {}
        return {"source": plan.together.source_names[plan.front]}

    def _rows_read_now(self) -> int:
        streams = self.outcome.result["streams"] if self.outcome.result else []
        return sum(int(stream["rows"]) for stream in streams)

    def rows_loaded(self) -> int:
        """Rows that are committed in the destination, also by a load that has failed then."""
        if self.outcome.error is not None:
            return self.outcome.rows_committed
        return self.outcome.times.rows_loaded if self.outcome.times else 0

    def to_dict(self) -> dict[str, Any]:
        """The member of `tables`. Speeds are those of this attempt of the run."""
        sums, seconds, result = self.sums(), self.outcome.seconds, self.outcome.result
        times = self.outcome.times if self.outcome.error is None else None
        return {
            "task": self.plan.task,
            **({"flow_of": self.plan.flow, "shared": (result or {}).get("shared")} if self.plan.flow else {}),
            **self._source(),
            "table": self.plan.table,
            "connection": self.plan.connection,
            "target": self.plan.target,
            "load": self.plan.load,
            "status": self.outcome.status,
            "seconds": round(seconds, 6),
            "cpu_seconds": round(self.outcome.cpu_seconds, 3),
            "bytes_read": sums["bytes"],
            "lines": sums["lines"],
            "rows_skipped": sums["skipped"],
            "rows_read": sums["rows"],
            "rows_rejected": sums["rejected"],
            "rows_filtered": sums["filtered"],
            "rows_loaded": self.rows_loaded(),
            "values_ignored": sums["values_ignored"],
            "ignored": self.ignored(),
            "mb_per_second": round(sums["bytes"] / 1e6 / seconds, 3) if seconds > 0 else 0.0,
            "rows_per_second": round(self._rows_read_now() / seconds, 1) if seconds > 0 else 0.0,
            "streams": self.plan.streams,
            "slices": len(self.plan.alone.source.slices),
            **({} if (join := self.join()) is None else {"join": join}),
            **({} if (union := self.union()) is None else {"union": union}),
            **({} if (gathered := self.gathered()) is None else {"gathered": gathered}),
            **self._not_known(),
            "transforms": transform_accounts(self.plan, self.outcome),
            "limit": self.limit,
            "switch_seconds": round(times.switch_seconds, 6) if times else 0.0,
            "partitions": [part.to_dict() for part in times.partitions] if times else [],
            "rejects": self._rejects(),
            "columns": result["columns"] if result else None,
            "memory": {**self.plan.memory.to_dict(), **(result["memory"] if result else {})},
            "notes": [*self.plan.notes, *self.notes()],
        }


@dataclass
class Summary:
    """The result of a run, the rows of its earlier attempts included.

    `failure` is None exactly when the status is success. `finished`: the tables that an earlier attempt has completed;
    `tables`: those behind them. `replay`: of a replay, what became of the rejects. `redact` takes the secrets out of
    the document, whoever asks for it.
    """

    run_id: str
    run_folder: str
    package: str
    status: str = "success"
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    finished: list[FinishedTable] = field(default_factory=list)
    tables: list[TableResult] = field(default_factory=list)
    skipped: list[SkippedTask] = field(default_factory=list)
    limit: Document | None = None
    failure: HeadraceError | None = None
    peak_resident_bytes: int = 0
    replay: Document | None = None
    redact: Callable[[Document], Document] = field(default=lambda document: document, repr=False)
    tasks: list[Document] = field(default_factory=list)
    tasks_failed: int = 0
    doubts: list[Document] = field(default_factory=list)
    # Data flows by task: those that were tried in this attempt, and those whose slices are in the ledger.
    tried: set[str] = field(default_factory=set, repr=False)
    retried: set[str] = field(default_factory=set, repr=False)
    folded: FoldedFlows = field(default_factory=FoldedFlows, repr=False)
    # Streams of flows that were added up.
    _folded_streams: list[Document] = field(default_factory=list, repr=False)

    def add(self, table: TableResult) -> None:
        """Takes over what became of a data flow; of one that is tried again only the last try counts."""
        if table.plan.task in self.tried:
            self.tables = [known for known in self.tables if known.plan.task != table.plan.task]
        if self.folded.takes(table.to_dict()):
            self._folded_streams = merged_streams(self._streams([table]))
        else:
            self.tables.append(table)

    def skip(self, task: SkippedTask) -> None:
        """Takes over that a data flow has loaded nothing; of very many the first ones."""
        if len(self.skipped) < _KEPT_SKIPPED:
            self.skipped.append(task)

    def add_finished(self, table: FinishedTable) -> None:
        """Takes over what an earlier attempt of the run has completed."""
        if not self.folded.takes(table.to_dict()):
            self.finished.append(table)

    @property
    def exit_code(self) -> int:
        """The exit code of the command line for this run."""
        if self.failure is not None:
            return self.failure.exit_code
        return {"success": 0, "cancelled": EXIT_CANCELLED}.get(self.status, EXIT_FAILED)

    def _streams(self, tables: Sequence[TableResult]) -> list[Mapping[str, Any]]:
        """Of flows that were added up before, and these."""
        results = [table.outcome.result for table in tables if table.is_first and table.outcome.result]
        return [*self._folded_streams, *(stream for result in results for stream in result["streams"])]

    def _sources(self) -> list[TableResult]:
        """Of several tables that were loaded in one pass the first, unless that was complete before."""
        known = {table.task.flow for table in self.finished} - {""}
        return _first_of_flows([own for own in self.tables if own.plan.flow not in known], lambda own: own.plan.flow)

    def rows_before(self, flow: str = "") -> RowsBefore:
        """What the data flows that have ended have read, in this attempt of the run or before. `flow`: the one that
        asks, which may have been tried before, or complete in some places.
        """
        finished = _first_of_flows(self.finished, lambda own: own.task.flow)
        finished = [table for table in finished if (table.task.flow or table.task.task) != flow]
        rejected = sum(table.rejected_in_flow for table in finished)
        tables = [table for table in self._sources() if (table.plan.flow or table.plan.task) != flow]
        folded = sum(_of_flow(document, "rows_read") for document in sources_of(self.folded.documents))
        return RowsBefore(
            rejected + sum(table.rejected_in_flow() for table in tables),
            folded + sum(table.read_in_flow for table in finished) + sum(table.read_in_flow() for table in tables),
        )

    def to_dict(self) -> Document:
        """The document, without secrets."""
        tables = [*(table.to_dict() for table in self.finished), *(table.to_dict() for table in self.tables)]
        tables += self.folded.documents
        document = {
            "run_id": self.run_id,
            "package": self.package,
            "status": self.status,
            "seconds": round(self.seconds, 6),
            "phases": {name: round(seconds, 6) for name, seconds in self.phases.items()},
            "bytes_read": bytes_read(tables),
            **{name: sum(_of_flow(table, name) for table in sources_of(tables)) for name in _OF_SOURCES},
            "rows_loaded": sum(table["rows_loaded"] for table in tables),
            "rows_rejected": sum(_of_flow(table, "rows_rejected") for table in sources_of(tables)),
            "rows_filtered": sum(_of_flow(table, "rows_filtered") for table in sources_of(tables))
            + _filtered_by_joins(tables),
            "tables": tables,
            "skipped": [task.to_dict() for task in self.skipped],
            "tasks": self.tasks,
            "tasks_failed": self.tasks_failed,
            "streams": merged_streams(self._streams(self.tables)),
            "limit": self.limit,
            "doubts": self.doubts,
            "peak_resident_bytes": self.peak_resident_bytes,
            "error": None if self.failure is None else self.failure.to_dict(),
            "run_folder": self.run_folder,
            **({} if self.replay is None else {"replay": self.replay}),
        }
        return self.redact(document)


def sources_of(tables: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of several tables that were loaded in one pass over their source the first: what was read is told once."""
    return _first_of_flows(tables, lambda table: str(table.get("flow_of", "")))


def _first_of_flows(items: Sequence[Item], flow_of: Callable[[Item], str]) -> list[Item]:
    flows = set[str]()
    first = []
    for item in items:
        flow = flow_of(item)
        if not flow or flow not in flows:
            first.append(item)
        flows.add(flow)
    return first


def seconds_of_passes(tables: Sequence[Mapping[str, Any]]) -> float:
    """The time of this attempt, once for tables that were loaded in one pass; those that were complete before have
    none.
    """
    return sum(_most(tables, "seconds", lambda table, place: table.get("flow_of") or place).values())


def bytes_read(tables: Sequence[Mapping[str, Any]]) -> int:
    """What this attempt has read, once for tables that were loaded in one pass. No table has all of it where some have
    that of their own source alone: it is told with the first one, unless that was complete before.
    """

    def flow(table: Mapping[str, Any], place: int) -> Hashable:
        return table.get("flow_of") or place

    of_sources: dict[Hashable, float] = {}
    by_source = _most(tables, "bytes_read", lambda table, place: (flow(table, place), table.get("source")))
    for (own, _), size in by_source.items():
        of_sources[own] = of_sources.get(own, 0) + size
    of_flows = _most(
        [table.get("shared") or {} for table in tables], "bytes_read", lambda _, place: flow(tables[place], place)
    )
    return int(sum(max(size, of_flows[own]) for own, size in of_sources.items()))


def _most(
    tables: Sequence[Mapping[str, Any]], name: str, what: Callable[[Mapping[str, Any], int], Any]
) -> dict[Any, float]:
    """For each thing the most that a table has of it. `what`: which thing that is of a table, by its place."""
    most: dict[Any, float] = {}
    for place, table in enumerate(tables):
        key = what(table, place)
        most[key] = max(most.get(key, 0.0), float(table.get(name, 0)))
    return most


def _of_flow(table: Mapping[str, Any], name: str) -> int:
    """What all ways of its flow have of it together; what one way has alone, where nothing is told of the others."""
    return int({**table, **(table.get("shared") or {})}[name])


def _sides(table: Mapping[str, Any]) -> list[Document]:
    """The accounts of both sides of its joins."""
    return [join[side] for join in joins_told(table["join"]) for side in SIDES] if table.get("join") else []


def _filtered_by_joins(tables: Sequence[Mapping[str, Any]]) -> int:
    """Rows that joins have left out, or what stands in front of them; of each flow once."""
    joined = sources_of([table for table in tables if table.get("join")])
    # What does not come to a join may go elsewhere: it is told then how many rows do neither.
    beside = {str(table["flow_of"]): own for table in tables if (own := table.get("shared")) and _IN_FRONT in own}
    in_front = sum(int(own[_IN_FRONT]) for own in beside.values())
    for table in joined:
        is_told = table.get("flow_of") in beside
        in_front += sum(own["filtered"] + (0 if is_told else own.get(_IN_FRONT, 0)) for own in _sides(table))
    return in_front


def _values(count: int) -> str:
    return "1 value was" if count == 1 else f"{count:,} values were"


def merged_streams(streams: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each stream's counters over all data flows of the run, by stream number."""
    totals: dict[int, dict[str, Any]] = {}
    for stream in streams:
        number = int(stream["number"])
        total = totals.setdefault(number, {"number": number, "slices": 0, "rows": 0, "bytes": 0, "cpu_seconds": 0.0})
        for name in ("slices", "rows", "bytes", "cpu_seconds"):
            total[name] += stream[name]
        stages = total.setdefault("stages", {stage: {} for stage in _STAGES})
        for stage in _STAGES:
            for name, value in stream["stages"].get(stage, {}).items():
                stages[stage][name] = stages[stage].get(name, 0) + value
    return [totals[number] for number in sorted(totals)]
