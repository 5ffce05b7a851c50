"""What an ended run has rejected: counts and examples from its summary, single rejects from their files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from headrace.errors import CommandLineError, LedgerError
from headrace.model.suggest import did_you_mean, one_of
from headrace.run.folder import RunFolder
from headrace.run.merged_claims import merged_claims
from headrace.run.reject_accounts import RejectAccounts, reject_accounts
from headrace.run.reject_files import RejectFiles, RejectRow
from headrace.run.summary import sources_of
from headrace.targets import Replay

# Examples of each kind that a summary keeps; the first ones of all kinds together are among them.
_KEPT_OF_KIND: Final = 3


@dataclass(frozen=True)
class Choice:
    """Which rejects are meant; None: all of them. `rule` is its name or its code."""

    table: str | None = None
    rule: str | None = None
    column: str | None = None

    def takes(self, kind: Mapping[str, Any]) -> bool:
        """Whether a reject, or a kind of rejects, is meant. The table is not asked."""
        return (self.rule is None or self.rule in (kind["rule"], kind["code"])) and (
            self.column is None or self.column == kind["column"]
        )


@dataclass(frozen=True)
class RejectedTable:
    """One task that has rejected rows. `rows`: that it has read; None if it did not end well, when that says nothing.

    `by_column`: how many of each column and rule that are meant, with the first of them. `accounts`: what has become of
    the rejects; None if the ledger was not asked. `is_replayable`: False in front of a query over all rows, and of a
    join, whose other rows are not read again. `flow`: with several
    destinations the id of their data flow, whose rejects these are, whichever of them has refused a row; `ways`: the
    tasks of all of them; `others`: names of the others. `loaded`: rows of the task that are in its table.
    """

    task: str
    table: str
    status: str
    rows: int | None
    rejected: int
    by_rule: Mapping[str, int]
    by_column: Sequence[Mapping[str, Any]]
    files: RejectFiles
    accounts: RejectAccounts | None = None
    is_replayable: bool = True
    flow: str = ""
    ways: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    loaded: int = 0

    @property
    def tasks(self) -> tuple[str, ...]:
        """Those that have claims on the rejects in a ledger."""
        return self.ways or (self.task,)

    def is_called(self, name: str | None) -> bool:
        """Whether its rejects are meant by the name of a table or a task; None: all are."""
        return name is None or name in (self.table, self.task) or name in self.others

    def chosen(self, choice: Choice) -> Iterator[RejectRow]:
        """The rejects that are meant, from the files. Raises LedgerError for files that are not complete."""
        return (row for row in self.files.rows() if choice.takes(row.members))

    def open(self, choice: Choice) -> Iterator[RejectRow]:
        """Those of them that no replay has resolved, as far as that is known."""
        accounts = self.accounts
        return (row for row in self.chosen(choice) if accounts is None or accounts.is_open(row.number))

    def first(self, choice: Choice, most: int) -> list[Mapping[str, Any]]:
        """The first rejects that are meant. Raises LedgerError if they have to be read, and cannot be."""
        if most <= _KEPT_OF_KIND:
            kept = [reject for kind in self.by_column for reject in kind["first"]]
            return sorted(kept, key=lambda reject: int(reject["number"]))[:most]
        return [row.members for row in islice(self.chosen(choice), most)]

    def to_dict(self, first: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "task": self.task,
            "table": self.table,
            **({"flow_of": self.flow} if self.flow else {}),
            "status": self.status,
            "rows": self.rows,
            "rejected": self.rejected,
            **({} if self.accounts is None else self.accounts.to_dict()),
            "by_rule": dict(self.by_rule),
            "by_column": [dict(kind) for kind in self.by_column],
            "first": [dict(reject) for reject in first],
            "files": [str(path) for path in self.files.paths],
        }


@dataclass(frozen=True)
class RejectedRun:
    """A run that has ended. `rows`: those that its complete tables have read; `tables`: those with rejects that are
    meant.
    """

    run_id: str
    status: str
    rows: int
    tables: Sequence[RejectedTable]


def rejected_run(folder: RunFolder, choice: Choice) -> RejectedRun:
    """What a run has rejected.

    Raises LedgerError if it has no summary, CommandLineError if nothing of what is meant was rejected but other rows
    were.
    """
    summary = _summary(folder)
    # Those of a flow with several destinations are told with the first one.
    told = sources_of(summary["tables"])
    rejected = [
        _table(folder, table, choice, summary["tables"]) for table in told if table["rows_rejected"] or _count(table)
    ]
    meant = [table for table in rejected if table.is_called(choice.table)]
    tables = [table for table in meant if table.by_column or choice.rule is choice.column is None]
    if rejected and not tables:
        raise _nothing_meant(folder, choice, rejected, meant, summary)
    complete = [table for table in told if table["status"] == "success"]
    return RejectedRun(folder.run_id, str(summary["status"]), sum(map(_rows_read, complete)), tables)


def with_accounts(found: RejectedRun, claims: Mapping[str, Sequence[Replay]]) -> RejectedRun:
    """The same with what has become of the rejects of the tasks whose claims are known."""
    return replace(found, tables=[_with_accounts(table, claims) for table in found.tables])


def _with_accounts(table: RejectedTable, claims: Mapping[str, Sequence[Replay]]) -> RejectedTable:
    own = [claims[task] for task in table.tasks if task in claims]
    if len(own) < len(table.tasks):
        return table
    return replace(table, accounts=reject_accounts(table.rejected, merged_claims(own) if table.flow else own[0]))


def _summary(folder: RunFolder) -> Mapping[str, Any]:
    try:
        return dict(json.loads(folder.summary.read_text(encoding="utf-8")))
    except FileNotFoundError:
        waiting = sum(1 for path in folder.rejects.glob(".*.jsonl")) if folder.rejects.is_dir() else 0
        raise LedgerError(
            f"run {folder.run_id} has not ended: its rejects are not put together yet",
            at={"folder": str(folder.path)},
            found="no slice with rejects" if waiting == 0 else f"rejects of {waiting} slice{'s' * (waiting != 1)}",
            hint=f"If its process has died, go on with it: `headrace resume {folder.run_id}`.",
        ) from None
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"the summary of run {folder.run_id} cannot be read",
            at={"file": str(folder.summary)},
            found=getattr(error, "strerror", None) or "not a JSON document",
            hint="Restore the run folder.",
        ) from error


def _rows_read(table: Mapping[str, Any]) -> int:
    """For all destinations of its flow."""
    return int({**table, **(table.get("shared") or {})}["rows_read"])


def _table(
    folder: RunFolder, table: Mapping[str, Any], choice: Choice, tables: Sequence[Mapping[str, Any]]
) -> RejectedTable:
    rejects, flow = table["rejects"], str(table.get("flow_of") or "")
    ways = [own for own in tables if flow and own.get("flow_of") == flow]
    return RejectedTable(
        task=str(table["task"]),
        table=str(table["table"]),
        status=str(table["status"]),
        rows=_rows_read(table) if table["status"] == "success" else None,
        rejected=_count(table),
        by_rule={rule: int(count) for rule, count in rejects["by_rule"].items()},
        by_column=[kind for kind in rejects.get("by_column", []) if choice.takes(kind)],
        files=RejectFiles(folder, table),
        is_replayable=not any({"join", "gathered"} & own.keys() for own in (table, *ways)),
        flow=flow,
        ways=tuple(str(own["task"]) for own in ways),
        loaded=int(table.get("rows_loaded") or 0),
        others=frozenset(str(name) for own in ways for name in (own["task"], own["table"], flow)),
    )


def _count(table: Mapping[str, Any]) -> int:
    return int(table["rejects"].get("count", 0))


def _nothing_meant(
    folder: RunFolder,
    choice: Choice,
    rejected: Sequence[RejectedTable],
    meant: Sequence[RejectedTable],
    summary: Mapping[str, Any],
) -> CommandLineError:
    if choice.table is not None and not meant:
        names = [table.table for table in rejected]
        is_known = any(choice.table in (table["table"], table["task"]) for table in summary["tables"])
        what = "has rejected no row of" if is_known else "has no"
        return CommandLineError(
            f"run {folder.run_id} {what} table `{choice.table}`",
            expected=one_of(names),
            hint=did_you_mean(choice.table, names) or "Name a table with rejects, or leave --table out.",
        )
    asked_tables = [item for item in summary["tables"] if any(item["task"] == own.task for own in meant)]
    kinds = [kind for item in asked_tables for kind in item["rejects"].get("by_column", [])]
    by_option = (("--rule", choice.rule, "rule"), ("--column", choice.column, "column"))
    asked = " and ".join(f"{option} {value}" for option, value, _ in by_option if value is not None)
    option, value, member = next(item for item in by_option if item[1] is not None)
    known = sorted({str(kind[member]) for kind in kinds if kind[member] is not None})
    return CommandLineError(
        f"run {folder.run_id} has rejected no row by {asked}",
        expected=f"{option} with {one_of(known)}" if known else None,
        hint=did_you_mean(str(value), known) or f"Leave {option} out to see all of them.",
    )
