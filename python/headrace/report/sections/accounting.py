"""Accounts: what became of every row of each data flow."""

from __future__ import annotations

from headrace.report.markup import Markup, element, join
from headrace.report.run_files import RunFiles
from headrace.report.sections import Section
from headrace.report.sections.figures import FlowAccount, accounts, phases, sources
from headrace.report.sections.joins import joins
from headrace.report.sections.lookups import lookups
from headrace.report.sections.outputs import outputs
from headrace.report.sections.queries import queries
from headrace.report.sections.unions import unions
from headrace.report.tables import Column, table
from headrace.report.values import documents, text
from headrace.report.wording import count, duration, rate, size

_COLUMNS = (
    Column("table", words=True),
    Column("lines"),
    Column("skipped"),
    Column("rows read"),
    Column("rejected"),
    Column("filtered"),
    Column("loaded"),
    Column("balance", words=True),
    Column("text"),
    Column("time"),
    Column("speed"),
)
# Where the column stands that tables without queries do not need.
_FILTERED = 5
# What there is to tell of rows on their way.
_PARTS = (joins, unions, lookups, queries, outputs)
_MOST_TABLES = 200
_MOST_NOTES = 40


def section(run: RunFiles) -> Section | None:
    """The accounts of all data flows."""
    flows = accounts(run)
    skipped = [f"{text(item, 'task')}: {text(item, 'skipped')}" for item in documents(run.summary, "skipped")]
    if not flows and not skipped:
        return Section("accounts", "Accounts", element("p", "The run has loaded no table.", class_="lead"))
    rows = [_row(flow) for flow in flows[:_MOST_TABLES]]
    parts: list[Markup] = [element("p", _lead(flows), class_="lead")]
    if rows:
        total = _total(flows) if len(flows) > 1 else None
        columns = list(_COLUMNS)
        if not any(flow.filtered for flow in flows):
            for cells in (*rows, *([total] if total else [])):
                del cells[_FILTERED]
            del columns[_FILTERED]
        parts.append(table(columns, rows, caption="Rows of each table", total=total, cards=True))
    if len(flows) > _MOST_TABLES:
        parts.append(element("p", f"and {len(flows) - _MOST_TABLES:,} more: summary.json"))
    parts += [own for part in _PARTS if (own := part(run)) is not None]
    notes = [f"{flow.table}: {note}" for flow in flows for note in flow.notes]
    notes += [f"skipped: {line}" for line in skipped]
    if notes:
        parts.append(_list("Notes", notes))
    told = phases(run)
    if told:
        shown = ", ".join(f"{name} {duration(seconds)}" for name, seconds in told)
        parts.append(element("p", element("b", "Phases: "), shown, class_="small"))
    return Section("accounts", "Accounts", join(parts))


def _lead(flows: list[FlowAccount]) -> str:
    wrong = [flow for flow in flows if flow.difference()]
    if wrong:
        return f"The accounts of {', '.join(flow.table for flow in wrong)} do not balance."
    if any(flow.difference() is None and not flow.is_unknown for flow in flows):
        return "Lines are rows and what was skipped; rows were loaded or rejected. Not all tables have been loaded."
    if any(flow.is_unknown for flow in flows):
        return "What was loaded is known; how many rows were read for some tables is not known any more."
    if any(flow.into_query is not None for flow in flows):
        loaded = "" if all(flow.into_query is not None for flow in flows) else "loaded, or "
        return (
            f"Every row is accounted for: lines = skipped + rows read, rows read = rejected + filtered + {loaded}into "
            "a query over all rows, rows out of it = loaded."
        )
    if any(flow.into_join is not None for flow in flows):
        return (
            "Every row is accounted for: lines = skipped + rows read, rows read = rejected + loaded; of a join rows "
            "read = rejected + left out in front + joined, rows out of it = loaded, and rejected behind it."
        )
    filtered = " + filtered" if any(flow.filtered for flow in flows) else ""
    return f"Every row is accounted for: lines = skipped + rows read, rows read = rejected{filtered} + loaded."


def _balance(flow: FlowAccount) -> Markup:
    difference = flow.difference()
    if difference is None and flow.is_unknown and flow.status == "success":
        return element("span", "not known", class_="badge open")
    if difference is None:
        return element("span", flow.status, class_="badge open" if flow.status == "not ended" else "badge failed")
    if difference:
        return element("span", f"differs by {difference:,}", class_="badge failed")
    return element("span", "balances", class_="badge success")


def _row(flow: FlowAccount) -> list[str]:
    return [
        flow.table,
        count(flow.lines),
        count(flow.skipped),
        count(flow.rows),
        count(flow.rejected),
        count(flow.filtered),
        count(flow.loaded),
        _balance(flow),
        size(flow.bytes),
        duration(flow.seconds),
        "-" if flow.speed is None else rate(flow.speed),
    ]


def _total(flows: list[FlowAccount]) -> list[str]:
    told = sources(flows)

    def added(name: str, own: list[FlowAccount]) -> str:
        values = [getattr(flow, name) for flow in own]
        return "-" if any(value is None for value in values) else count(sum(values))

    seconds = sum(flow.seconds or 0.0 for flow in told)
    read = sum(flow.bytes or 0 for flow in told)
    speed = rate(read / 1e6 / seconds) if seconds > 0 else "-"
    figures = [added(name, told) for name in ("lines", "skipped", "rows", "rejected", "filtered")]
    return ["all", *figures, added("loaded", flows), "", size(read), duration(seconds), speed]


def _list(title: str, lines: list[str]) -> Markup:
    items = [element("li", line) for line in lines[:_MOST_NOTES]]
    if len(lines) > _MOST_NOTES:
        items.append(element("li", f"and {len(lines) - _MOST_NOTES:,} more"))
    return element("details", element("summary", f"{title} ({len(lines):,})"), element("ul", *items))
