"""`headrace rejects`: which rows a run has rejected, and why."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import headrace.run as run
from headrace import units
from headrace.cli.cells import cells, cut, wrap
from headrace.cli.console import print_json, print_result, result_width, say, shown_path
from headrace.cli.run import load_requested
from headrace.cli.text_table import GAP, TextColumn, render_table
from headrace.errors import CommandLineError, HeadraceError, on_one_line, render_location, rows_are
from headrace.model.suggest import quote
from headrace.run import RejectedRun, RejectedTable

_KINDS = (
    TextColumn("rule", words=True),
    TextColumn("code", words=True, drop_when_narrow=1),
    TextColumn("column", words=True),
    TextColumn("rows"),
    TextColumn("first", words=True),
)
_INDENT = "  "
_LEAST_EXAMPLE = 20
_LONGEST_NAME = 20
_SMALLEST_PERCENT = 0.01


@dataclass(frozen=True)
class RejectsOptions:
    """The command line of `headrace rejects`."""

    run_name: str
    table: str | None
    rule: str | None
    column: str | None
    first: int
    out: Path | None
    copy: Path | None
    sets: list[str]
    connections: list[str]
    runs_folder: Path
    json_output: bool


def run_rejects(options: RejectsOptions) -> int:
    """Look and report; returns the exit code."""
    folder = run.RunFolder.find(options.runs_folder, options.run_name, run.REJECTS)
    choice = run.Choice(options.table, options.rule, options.column)
    found = _with_accounts(run.rejected_run(folder, choice), folder, options)
    if options.copy is not None:
        _copy(found, choice, options.copy)
    if options.out is not None:
        count = run.export_rejects(found, choice, options.out)
        say(f"{units.plural(count, 'reject')} written to {shown_path(options.out)}")
    first = [table.first(choice, options.first) for table in found.tables]
    if options.json_output:
        tables = [table.to_dict(shown) for table, shown in zip(found.tables, first, strict=True)]
        print_json({"run_id": found.run_id, "status": found.status, "tables": tables})
    else:
        print_result(render_rejects(found, first, width=result_width()))
    return 0


def render_rejects(found: RejectedRun, first: Sequence[Sequence[Mapping[str, Any]]], *, width: int) -> str:
    """What was rejected, table by table, each with the `first` of its rejects; without a final line end."""
    parts = [_sum(found)]
    parts += [_table(table, shown, width) for table, shown in zip(found.tables, first, strict=True)]
    if any(table.status == "success" and _is_to_do(table) for table in found.tables):
        copy = f"headrace rejects {found.run_id} --copy repair.csv"
        hint = f"hint: repair a copy ({copy}), then replay it (headrace replay {found.run_id} repair.csv)"
        parts.append("\n".join(textwrap.wrap(hint, width, subsequent_indent=_INDENT, break_on_hyphens=False)))
    return "\n\n".join(parts)


def _is_to_do(table: RejectedTable) -> bool:
    """Whether rows are left to be repaired: who does not go on with a replay may replay them anew."""
    if not table.is_replayable:
        return False
    return table.accounts is None or table.accounts.open + table.accounts.unfinished > 0


def _with_accounts(found: RejectedRun, folder: run.RunFolder, options: RejectsOptions) -> RejectedRun:
    """With what the destinations know, if they can be opened."""
    loaded = [task for table in found.tables if table.status == "success" for task in table.tasks]
    if not loaded:
        return found
    try:
        package = load_requested(run.load_request(folder, options.sets, options.connections))
        return run.with_accounts(found, run.read_claims(run.with_late_flows(package, folder), folder.run_id, loaded))
    except CommandLineError:
        raise
    except HeadraceError as error:
        detail = f" ({error.found})" if error.found else ""
        say(f"which rejects are open is not known: {error.what}{detail}")
        return found


def _copy(found: RejectedRun, choice: run.Choice, path: Path) -> None:
    count, cut = run.copy_rejects(found, choice, path)
    say(f"{units.plural(count, 'row')} written to {shown_path(path)}, their numbers to {path.name}{run.NUMBERS_ENDING}")
    if cut:
        say(f"{units.plural(cut, 'row')} left out: too long to be kept whole")


def _sum(found: RejectedRun) -> str:
    rejected = sum(table.rejected for table in found.tables)
    of = f" of {units.count(found.rows)}" if all(table.rows is not None for table in found.tables) else ""
    amount = "none" if rejected == 0 else units.count(rejected)
    accounts = [table.accounts for table in found.tables if table.accounts is not None]
    is_open = f", {units.count(sum(own.open for own in accounts))} open" if accounts else ""
    return f"run {found.run_id}: {found.status}, {amount}{of} rows rejected{is_open}"


def _table(table: RejectedTable, first: Sequence[Mapping[str, Any]], width: int) -> str:
    name = f" ({table.files.paths[1].name})" if table.files.paths else ""
    rejected = f"{units.count(table.rejected)} rejected{_percent(table)}{_by_all(table)}{_since(table)}"
    text = f"{on_one_line(table.table)}{name}: {rejected}"
    lines = wrap(text, width, then=_INDENT)
    lines.append(textwrap.indent(_kinds(table, width - len(_INDENT)), _INDENT))
    for reject in first:
        lines.append(f"{_INDENT}{reject['number']}: {_place(reject, shown_path(reject['file']))}")
        text = on_one_line(f"{reject['message']}: {quote(reject['value'])}")
        lines += wrap(text, width, first=2 * _INDENT, then=3 * _INDENT)
    return "\n".join(lines)


def _by_all(table: RejectedTable) -> str:
    return f", by all destinations of `{on_one_line(table.flow)}`" if table.flow else ""


def _percent(table: RejectedTable) -> str:
    if not table.rows:
        loaded = f"{rows_are(table.loaded)} in the table" if table.loaded else "nothing was loaded"
        return f" ({table.status}: {loaded})" if table.status != "success" else ""
    percent = 100 * table.rejected / table.rows
    return f" ({percent:.2f} %)" if percent >= _SMALLEST_PERCENT else f" (below {_SMALLEST_PERCENT} %)"


def _since(table: RejectedTable) -> str:
    accounts = table.accounts
    if accounts is None:
        return ""
    parts = [f"{units.count(accounts.open)} open"]
    for item in accounts.replays:
        if item.is_unfinished:
            parts.append(f"{units.count(item.numbers)} in a replay to go on with: headrace resume {item.run_id}")
            continue
        amounts = [
            ("loaded", item.loaded),
            ("rejected again", item.rejected_again),
            ("filtered", item.filtered),
            ("dropped", item.dropped),
        ]
        parts += [f"{units.count(amount)} {what} by {item.run_id}" for what, amount in amounts if amount]
    return ", " + ", ".join(parts)


def _kinds(table: RejectedTable, width: int) -> str:
    kinds = sorted(table.by_column, key=lambda kind: -int(kind["count"]))
    rows = [
        [
            str(kind["rule"]),
            str(kind["code"]),
            cut(on_one_line(kind["column"] or "-"), _LONGEST_NAME),
            units.count(int(kind["count"])),
        ]
        for kind in kinds
    ]
    others = [max(map(cells, texts)) for texts in zip(*rows, strict=True)]
    headings = [len(column.heading) for column in _KINDS]
    taken = sum(max(own, heading) + len(GAP) for own, heading in zip(others, headings, strict=False))
    room = max(_LEAST_EXAMPLE, width - taken)
    examples = [_example(kind["first"][0], room) if kind["first"] else "" for kind in kinds]
    return render_table(_KINDS, [[*row, example] for row, example in zip(rows, examples, strict=True)], width=width)


def _example(reject: Mapping[str, Any], room: int) -> str:
    """Where a reject stands, and its value; of a row as a whole what is wrong with it. Without the byte where there is
    no room for all of it.
    """
    is_value = reject["column"] is not None
    what = quote(reject["value"]) if is_value else on_one_line(reject["message"].rpartition(": ")[2])
    place = {"file": Path(reject["file"]).name, "row": reject["row"], "byte": reject["byte"]}
    texts = [f"{render_location(dict(list(place.items())[:members]))}: {what}" for members in (3, 2)]
    return next((text for text in texts if cells(text) <= room), cut(texts[-1], room))


def _place(reject: Mapping[str, Any], file: str) -> str:
    return render_location({"file": file, "row": reject["row"], "byte": reject["byte"]})
