"""What a run did, as text: the accounts per table, rejected rows, where the run folder is, what limited the run.

Everything is read from the summary document (`summary.json`), so that the same text can be made from a finished run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from headrace import units
from headrace.cli.console import shown_path
from headrace.cli.limit_text import closing_words
from headrace.cli.task_accounts import closing_line, render_failures, render_tasks
from headrace.cli.text_table import TextColumn, render_table
from headrace.errors import render_location
from headrace.executors import added_joins, added_unions, join_of_flow
from headrace.model import SIDES, joins_told
from headrace.model.suggest import quote
from headrace.run.summary import bytes_read, seconds_of_passes, sources_of

Document = Mapping[str, Any]

# Rejected rows shown per table; the file named below them has all.
SHOWN_REJECTS: Final = 3
# Partitions shown per table; the summary has all.
SHOWN_PARTITIONS: Final = 20
_NO_BREAK: Final = "\u00a0"

_COLUMNS: Final = (
    TextColumn("table", words=True),
    TextColumn("lines", drop_when_narrow=2),
    TextColumn("skipped", drop_when_narrow=1),
    TextColumn("rows"),
    TextColumn("rejected"),
    TextColumn("filtered"),
    TextColumn("loaded"),
    TextColumn("seconds", drop_when_narrow=3),
    TextColumn("MB/s"),
)


_AGGREGATES: Final = (
    TextColumn("column", words=True),
    TextColumn("nulls"),
    TextColumn("minimum"),
    TextColumn("maximum"),
    TextColumn("sum"),
)
_PARTITIONS: Final = (
    TextColumn("partition", words=True),
    TextColumn("rows"),
    TextColumn("strays", drop_when_narrow=1),
    TextColumn("switch ms"),
)
_FOUND: Final = ("rows", "matched", "defaulted", "rejected", "null_keys", "filtered", "slices_not_counted")
_SUMMED: Final = (
    "lines",
    "rows_skipped",
    "rows_read",
    "rows_rejected",
    "rows_filtered",
    "rows_loaded",
    "seconds",
    "bytes_read",
)
# Where the column stands that tables without queries do not need.
_FILTERED: Final = 5


def render_summary(summary: Document, *, width: int) -> str:
    """The whole report of a run, without a final line end."""
    tables = summary["tables"]
    parts = [render_aggregates(table, width=width) for table in tables if table["columns"]]
    if tables:
        parts.append(render_accounts(tables, width=width))
    parts += [render_partitions(table, width=width) for table in tables if table["partitions"]]
    parts.append(render_joins(tables, width=width))
    parts.append(render_unions(tables, width=width))
    parts.append(render_transforms(tables, width=width))
    parts += [text for table in _ignoring(tables) if (text := render_ignored(table, width=width))]
    parts += [text for table in tables if (text := render_rejects(table, width=width))]
    tasks = summary.get("tasks", [])
    parts += [render_tasks(tasks, width=width), render_failures(tasks, summary.get("error"), width=width)]
    parts = [part for part in parts if part]
    parts.append("\n".join(_closing_lines(summary, width)))
    return "\n\n".join(parts)


def render_accounts(tables: Sequence[Document], *, width: int) -> str:
    """One line per table and a total of those that were loaded. lines = rows + skipped, rows = rejected + filtered +
    loaded.

    A table that was not loaded has no accounts: what its streams had done when it stopped is an accident.
    """
    loaded = [table for table in tables if table["status"] == "success"]
    sums = _summed(loaded)
    total = _account_cells({"table": "total", "status": "success", **sums})
    rows = [_account_cells(table) for table in tables]
    columns = list(_COLUMNS)
    if not any(part.get("rows_filtered") for part in (sums, *loaded)):
        del columns[_FILTERED]
        for cells in (total, *rows):
            del cells[_FILTERED]
    return render_table(columns, rows, total=total if len(loaded) > 1 else None, width=width)


def _summed(tables: Sequence[Document]) -> dict[str, float]:
    """Of all tables. What several of them have got in one pass over their source was read once."""
    sums = {name: sum(table.get(name, 0) for table in sources_of(tables)) for name in _SUMMED}
    for table in sources_of(tables):
        shared = table.get("shared") or {}
        for name in sums.keys() & shared.keys():
            sums[name] += shared[name] - table.get(name, 0)
    now = {"bytes_read": bytes_read(tables), "seconds": seconds_of_passes(tables)}
    return {**sums, **now, "rows_loaded": sum(table.get("rows_loaded", 0) for table in tables)}


def _account_cells(table: Document) -> list[str]:
    name, seconds = str(table["table"]), float(table["seconds"])
    if table["status"] != "success":
        return [f"{name} ({table['status']})", *["-"] * 5, "0", f"{seconds:.2f}", "-"]
    return [
        name,
        units.count(table["lines"]),
        units.count(table["rows_skipped"]),
        units.count(table["rows_read"]),
        units.count(table["rows_rejected"]),
        units.count(table.get("rows_filtered", 0)),
        units.count(table["rows_loaded"]),
        f"{seconds:.2f}",
        units.megabytes_per_second(table["bytes_read"], seconds),
    ]


def render_aggregates(table: Document, *, width: int) -> str:
    """What a `null:` destination found out about each column; for texts, the lengths instead of the values."""
    rows = []
    for column in table["columns"]:
        if column["total_length"] is None:
            values = [column["min"], column["max"], column["sum"]]
        else:
            lengths = [column["min_length"], column["max_length"], column["total_length"]]
            values = [None if length is None else f"length {length}" for length in lengths]
        rows.append(
            [column["name"], units.count(column["nulls"]), *("-" if value is None else value for value in values)]
        )
    heading = f"{table['table']}: {units.plural(table['rows_loaded'], 'row')}, not stored"
    return f"{heading}\n{render_table(_AGGREGATES, rows, width=width)}"


def render_partitions(table: Document, *, width: int) -> str:
    """How the rows of a table spread over its partitions; one by one if some held rows of other files' partitions.

    What each took of the switch is in summary.json in any case.
    """
    parts: Sequence[Document] = table["partitions"]
    counts = [int(part["rows"]) for part in parts]
    heading = (
        f"{table['table']}: {units.plural(len(parts), 'partition')} switched in {table['switch_seconds']:.2f} s, "
        f"{units.count(min(counts))} to {units.count(max(counts))} rows each, "
        f"{units.count(sum(counts) // len(counts))} in the mean"
    )
    lines = _wrapped(heading, "", width)
    if not any(part["strays"] for part in parts):
        return "\n".join(lines)
    rows = [
        [
            str(part["name"]),
            units.count(part["rows"]),
            units.count(part["strays"]),
            f"{float(part['switch_seconds']) * 1000:.1f}",
        ]
        for part in parts[:SHOWN_PARTITIONS]
    ]
    lines.append(render_table(_PARTITIONS, rows, width=width))
    if len(parts) > SHOWN_PARTITIONS:
        lines.append(f"and {units.count(len(parts) - SHOWN_PARTITIONS)} more: summary.json in the run folder")
    return "\n".join(lines)


def _ignoring(tables: Sequence[Document]) -> list[Document]:
    """Tables whose ignored values are told: of those that were filled in one pass the first, and others that have
    columns of another source.
    """
    first, told, found = sources_of(tables), set[tuple[str, str]](), []
    for table in tables:
        columns = {(str(table.get("flow_of", "")), column) for column in table["ignored"]}
        if any(table is own for own in first) or columns - told:
            found.append(table)
        told |= columns
    return found


def render_ignored(table: Document, *, width: int) -> str:
    """How many values of rows that could be read are not those of the file, by column; empty without any."""
    if not table["values_ignored"]:
        return ""
    kinds = [
        f"{column} {units.count(counts[kind])} {what}"
        for column, counts in table["ignored"].items()
        for kind, what in (("nulls", "as NULL"), ("cut", "cut"))
        if counts[kind]
    ]
    columns = f" ({', '.join(kinds)})" if kinds else ""
    return "\n".join(
        _wrapped(f"{table['table']}: {units.plural(table['values_ignored'], 'value')} ignored{columns}", "", width)
    )


def render_joins(tables: Sequence[Document], *, width: int) -> str:
    """What became of the rows of both sides of joins, and how many came out; empty without any. Of several joins of a
    flow each behind those whose rows it takes, of flows into one table, as those of a loop, the sums.
    """
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for table in sources_of([own for own in tables if own.get("join")]):
        join = join_of_flow(table) if table["status"] == "success" else None
        if join:
            # The rows of all destinations of a flow have come out of it. Other tasks may load the table, too.
            whose = str(table.get("flow_of") or table["table"])
            names = ((own["name"], *(own[side]["source"] for side in SIDES)) for own in joins_told(join))
            key = (whose, *(str(name) for of_join in names for name in of_join))
            sums[key] = added_joins(sums[key], join) if key in sums else join
    return "\n".join(
        _join(whose, own, width, is_beside=join["is_beside"])
        for (whose, *_), join in sums.items()
        for own in joins_told(join)
    )


def _join(whose: str, join: Document, width: int, *, is_beside: bool) -> str:
    sides = []
    for side in (join["left"], join["right"]):
        what = f"{side['source']} {units.plural(side['rows'], 'row')}"
        where = "not for the join" if is_beside and "join" not in side else "left out in front"
        others = [(where, side.get("filtered_in_front")), ("rejected in front", side.get("rejected_in_front"))]
        told = ", ".join(f"{units.count(rows)} {become}" for become, rows in others if rows)
        what += f" ({told})" if told else ""
        what += f", {units.count(side['matched'])} matched"
        if side["filtered"]:
            what += f", {units.count(side['filtered'])} left out"
        elif side["unmatched"]:
            what += f", {units.count(side['unmatched'])} kept without the other side"
        without = f" ({units.count(side['null_keys'])} of them without a key)" if side["null_keys"] else ""
        sides.append(what + without)
    behind = join["left"]["rejected_behind"] + join["right"]["rejected_behind"]
    rejected = f", {units.count(behind)} rejected behind it" if behind else ""
    text = (
        f"{whose}: join {join['name']}: {'; '.join(sides)}; {units.plural(join['rows_out'], 'row')} came out{rejected}"
    )
    return "\n".join(_wrapped(text, "", width))


def render_unions(tables: Sequence[Document], *, width: int) -> str:
    """How many rows came of each source of unions; empty without any. Of flows into one table, as those of a loop, the
    sums.
    """
    sums: dict[tuple[str, ...], dict[str, Any]] = {}
    for table in sources_of([own for own in tables if own.get("union")]):
        union = table.get("union") if table["status"] == "success" else None
        if union:
            # The rows of all destinations of a flow have come out of it. Other tasks may load the table, too.
            whose = str(table.get("flow_of") or table["table"])
            key = (whose, str(union["name"]), *(str(own["source"]) for own in union["sources"]))
            sums[key] = added_unions(sums[key], union) if key in sums else dict(union)
    lines = []
    for (whose, name, *_), union in sums.items():
        rows = ", ".join(f"{own['source']} {units.plural(own['rows_read'], 'row')}" for own in union["sources"])
        lines += _wrapped(f"{whose}: union {name}: {rows}", "", width)
    return "\n".join(lines)


def render_transforms(tables: Sequence[Document], *, width: int) -> str:
    """What became of the rows of tables in each of their transforms; empty without any. Of flows into one table, as
    those of a loop, the sums.
    """
    sums: dict[tuple[str, str, str, str | None], dict[str, int]] = {}
    outputs: dict[tuple[str, str, str, str | None], dict[str, int]] = {}
    told = set[tuple[str, str]]()
    for table in tables:
        flow = str(table.get("flow_of", ""))
        for transform in table.get("transforms", ()) if table["status"] == "success" else ():
            if flow and (flow, transform["name"]) in told:
                continue  # the rows of all destinations of a flow have passed it
            told.add((flow, transform["name"]))
            whose = flow or table["table"]
            key = (whose, transform.get("kind", "lookup"), transform["name"], transform["no_match"])
            known = sums.setdefault(key, dict.fromkeys(_FOUND, 0))
            known.update({count: known[count] + transform.get(count, 0) for count in _FOUND})
            own = outputs.setdefault(key, {})
            own.update({name: own.get(name, 0) + rows for name, rows in transform.get("outputs", {}).items()})
    lines = []
    for key, counts in sums.items():
        whose, kind, name, no_match = key
        text = {"sql": _queried, "split": _parted, "gathered": _gathered, "union": _united}.get(
            kind, partial(_looked_up, no_match)
        )(counts, outputs[key])
        word = {"sql": "query", "gathered": "query"}.get(kind, kind)
        lines += _wrapped(f"{whose}: {word} {name}: {text}{_not_counted(counts)}", "", width)
    return "\n".join(lines)


def _looked_up(no_match: str | None, counts: Mapping[str, int], outputs: Mapping[str, int]) -> str:
    without = f", {units.count(counts['null_keys'])} of them without a key" if counts["null_keys"] else ""
    others = [
        f", {units.count(counts[count])} {what}"
        for count, what, wanted in (("defaulted", "got the default", "default"), ("rejected", "rejected", "reject"))
        if counts[count] or no_match == wanted
    ]
    others += [f", {units.count(rows)} to {output}" for output, rows in outputs.items()]
    rows = units.plural(counts["rows"], "row")
    return f"{rows}, {units.count(counts['matched'])} matched{''.join(others)}{without}"


def _parted(counts: Mapping[str, int], outputs: Mapping[str, int]) -> str:
    parts = "".join(f", {units.count(rows)} {output}" for output, rows in outputs.items())
    rejected = f", {units.count(counts['rejected'])} rejected" if counts["rejected"] else ""
    return f"{units.plural(counts['rows'], 'row')}{parts}{rejected}"


def _queried(counts: Mapping[str, int], _outputs: Mapping[str, int]) -> str:
    left_out = f", {units.count(counts['filtered'])} left out"
    rejected = f", {units.count(counts['rejected'])} rejected" if counts["rejected"] else ""
    return f"{units.plural(counts['rows'], 'row')}, {units.count(counts['matched'])} went on{left_out}{rejected}"


def _gathered(counts: Mapping[str, int], _outputs: Mapping[str, int]) -> str:
    return f"{units.plural(counts['rows'], 'row')} in, {units.count(counts['matched'])} out"


def _united(counts: Mapping[str, int], _outputs: Mapping[str, int]) -> str:
    return units.plural(counts["rows"], "row")


def _not_counted(counts: Mapping[str, int]) -> str:
    slices = counts["slices_not_counted"]
    were = "was" if slices == 1 else "were"
    return f"; {units.plural(slices, 'slice')} {were} committed before and not counted" if slices else ""


def render_rejects(table: Document, *, width: int) -> str:
    """How many rows of a table were rejected and why, the first ones, and the file with all; empty without rejects."""
    rejects = table.get("rejects") or {}
    if not rejects.get("count"):
        return ""
    rules = ", ".join(f"{rule} {units.count(amount)}" for rule, amount in sorted(rejects["by_rule"].items()))
    whose = table.get("flow_of") or table["table"]
    lines = [f"{whose}: {units.plural(rejects['count'], 'row')} rejected ({rules})"]
    for reject in rejects["first"][:SHOWN_REJECTS]:
        place = render_location({"file": shown_path(reject["file"]), "row": reject["row"], "byte": reject["byte"]})
        lines += [f"  {place}", *_wrapped(f"{reject['message']}: {quote(reject['value'])}", "    ", width)]
    if rejects["cut"]:
        lines.append(f"  {units.plural(rejects['cut'], 'row')} longer than is kept: only the front")
    if rejects["files"]:
        lines.append(f"  all of them: {shown_path(rejects['files'][0])}")
    if "table" in rejects:
        lines.append(f"  and in table {rejects['table']}")
    return "\n".join(lines)


def _closing_lines(summary: Document, width: int) -> list[str]:
    phases = [f"{name} {units.duration(seconds)}" for name, seconds in summary["phases"].items()]
    lines = [f"run {summary['run_id']}: {summary['status']} in {units.duration(summary['seconds'])}"]
    if phases:
        unbroken = ", ".join(phase.replace(" ", _NO_BREAK) for phase in phases)
        lines += [line.replace(_NO_BREAK, " ") for line in _wrapped(unbroken, "  ", width)]
    lines += [f"skipped: {task['task']}, {task['skipped']}" for task in summary["skipped"]]
    if summary["limit"] and summary["status"] == "success":
        first, *more = closing_words(summary["limit"])
        lines += _wrapped(first, "", width)
        lines += [line for words in more for line in _wrapped(words, "  ", width)]
    failed = closing_line(summary)
    lines += [] if failed is None else _wrapped(failed, "", width)
    lines.append(f"run folder: {shown_path(summary['run_folder'])}")
    return lines


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False)
