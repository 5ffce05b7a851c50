"""Which rejects the rows of a file of repaired ones stand for. It is told, never guessed from what they look like."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import CommandLineError, HeadraceError, LedgerError
from headrace.planning import counted
from headrace.run.number_list import (
    Stretch,
    Stretches,
    at_places,
    count_numbers,
    number_list,
    parse_number_list,
    stretches,
    union,
    without,
)
from headrace.run.reject_export import NUMBERS_ENDING

_ROWS_HINT = "Say with --rows which rejects the rows are."


@dataclass(frozen=True)
class Repaired:
    """The rejects of one task that are replayed. `rows`: those whose repaired rows the file holds, in its order;
    `drops`: those that are dropped without a row. `is_named`: `rows` were named by their numbers; if there is one only,
    it has all rows of the file.
    """

    rows: Sequence[Stretch]
    drops: Sequence[Stretch]
    is_named: bool

    @property
    def takes_all(self) -> bool:
        """Whether all rows of the file come from one reject."""
        return self.is_named and count_numbers(self.rows) == 1


def repaired(run_id: str, task: str, count: int, file: Path | None, rows: str | None, drop: str | None) -> Repaired:
    """What the command line says. `count`: rejects of the task.

    Raises CommandLineError for lists that contradict, LedgerError for numbers that are not those of the task.
    """
    drops = _named("--drop", drop, count)
    if file is None:
        if rows is not None or not drops:
            raise CommandLineError(
                "nothing is replayed without a file of repaired rows",
                found="--rows without a file" if rows is not None else "neither a file nor --drop",
                hint="Name the file, or the rejects to be dropped with --drop.",
            )
        return Repaired((), drops, is_named=False)
    named = _named("--rows", rows, count) if rows is not None else _noted(run_id, task, count, file)
    chosen = Stretches(union(without(named or ((1, count),), drops)))
    if rows is not None and count_numbers(chosen) != count_numbers(named):
        raise CommandLineError(
            "a reject cannot be loaded and dropped",
            found=f"--rows {rows} and --drop {drop}",
            hint="Leave it out of one of them.",
        )
    return Repaired(chosen, drops, is_named=rows is not None)


def loaded_and_dropped(
    said: Repaired, lines: int, blank: Sequence[Sequence[int]], unclosed: int | None = None
) -> tuple[Sequence[Stretch], Sequence[Stretch], int]:
    """Which numbers are loaded, which are dropped, and how many rows there are beyond one for each.

    The file has so many `lines`, of which those of the stretches `blank`, from 1, hold nothing. `unclosed`: a reject
    that takes those behind it into its row unless it was repaired. Raises LedgerError if there is not a line for each
    number.
    """
    wanted = count_numbers(said.rows)
    if said.takes_all:
        rows = lines - count_numbers((first, last) for first, last in blank)
        if rows:
            return said.rows, said.drops, rows - 1
        return (), Stretches(union(said.rows, said.drops)), 0
    if blank and blank[-1][1] == lines > wanted:
        lines = max(wanted, blank[-1][0] - 1)  # as an editor leaves them behind the last row
    if lines != wanted:
        raise LedgerError(
            "the file does not have a row for each reject",
            found=counted(lines, "row"),
            expected=f"{counted(wanted, 'row')}, for {_rejects(said.rows)}",
            hint="Say with --rows which rejects the rows are; an emptied row drops its reject."
            if unclosed is None or lines > wanted
            else f"Reject {unclosed} opened a qualifier that swallows what follows: close it, or empty that row.",
        )
    emptied = Stretches(at_places(said.rows, ((first, last) for first, last in blank)))
    return Stretches(without(said.rows, emptied)), Stretches(union(said.drops, emptied)), 0


def _named(option: str, text: str | None, count: int) -> tuple[Stretch, ...]:
    if text is None:
        return ()
    found = parse_number_list(text)
    if found is None:
        raise CommandLineError(
            f"{option} is not a list of numbers",
            found=text,
            expected="ascending numbers of rejects, as in 1-3,7",
            hint="`headrace rejects --json` shows the numbers.",
        )
    _check_count(found, count, CommandLineError, f"{option} {text}")
    return found


def noted_task(run_id: str, file: Path | None) -> str | None:
    """The task of whose rejects in this run a file is a copy, if a note beside it says so."""
    try:
        document = json.loads(Path(f"{file}{NUMBERS_ENDING}").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_own = isinstance(document, dict) and document.get("run") == run_id
    return str(document["task"]) if is_own and "task" in document else None


def _noted(run_id: str, task: str, count: int, file: Path) -> tuple[Stretch, ...]:
    """What stands beside a copy; empty without such a note."""
    path = Path(f"{file}{NUMBERS_ENDING}")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise _no_note(path, getattr(error, "strerror", None) or "not a JSON document") from error
    found = parse_number_list(str(document.get("numbers"))) if isinstance(document, dict) else None
    if found is None:
        raise _no_note(path, "no list of numbers")
    if (document.get("run"), document.get("task")) != (run_id, task):
        raise LedgerError(
            "the file holds rejects of another run or task",
            at={"file": str(path)},
            found=f"run {document.get('run')}, task {document.get('task')}",
            expected=f"run {run_id}, task {task}",
            hint=f"Replay it as what it is: `headrace replay {document.get('run')} {file}`.",
        )
    _check_count(found, count, LedgerError, str(path))
    return found


def _no_note(path: Path, found: str) -> LedgerError:
    return LedgerError("the numbers of a copy cannot be read", at={"file": str(path)}, found=found, hint=_ROWS_HINT)


def _check_count(found: Sequence[Stretch], count: int, kind: type[HeadraceError], named: str) -> None:
    if found[-1][1] > count:
        raise kind(
            f"there is no reject {found[-1][1]}",
            found=named,
            expected=f"numbers from 1 to {count}",
            hint="`headrace rejects --json` shows the numbers.",
        )


def refuse_cut(cut: Sequence[int]) -> None:
    """Raises LedgerError if the run has kept only a part of rows for which the file stands. `cut`: their numbers."""
    if cut:
        raise LedgerError(
            f"{_rejects(tuple(stretches(cut)))} {'was' if len(cut) == 1 else 'were'} too long to be kept whole",
            found="a part of the row",
            hint=f"Drop it (--drop {number_list(stretches(cut))}), or name each row that was completed with --rows.",
        )


def _rejects(named: Sequence[Stretch]) -> str:
    text = number_list(named)
    shown = text if len(text) <= 40 else f"{text[:36]} ..."
    return f"reject{'s' * (count_numbers(named) != 1)} {shown}"
