"""Rejects: how many rows break which rule in which column. Their values are not shown: reports are handed on."""

from __future__ import annotations

from typing import Final

from headrace.errors import render_location
from headrace.report.markup import Markup, digits, element, join
from headrace.report.run_files import RunFiles
from headrace.report.sections import Section
from headrace.report.tables import Column, table
from headrace.report.values import Document, documents, number, text, whole
from headrace.report.wording import count, file_name, percent
from headrace.units import plural

_COLUMNS: Final = (
    Column("table", words=True),
    Column("rule", words=True),
    Column("code", words=True),
    Column("column", words=True),
    Column("rows"),
    Column("share", words=True),
    Column("first", words=True),
)
_MOST_KINDS: Final = 100


def section(run: RunFiles) -> Section | None:
    """All kinds of rejects of all tables, the most frequent first."""
    kinds: list[tuple[str, Document]] = []
    files: list[str] = []
    flows = set[str]()
    rejected = rows = 0
    for item in documents(run.summary, "tables"):
        rejected += whole(item, "rejects", "count") or 0
        # What several destinations that were filled in one pass have read, is told with the first of them.
        read = whole(item, "shared", "rows_read") or whole(item, "rows_read") or 0
        rows += 0 if (flow := text(item, "flow_of")) and flow in flows else read
        flows.add(flow or "")
        name = text(item, "table") or text(item, "task") or ""
        kinds += [(name, kind) for kind in documents(item, "rejects", "by_column")]
        rejects = item.get("rejects")
        listed = rejects.get("files") if isinstance(rejects, dict) else None
        files += [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
    if not rejected:
        measured = sum(whole(flow.last_line, "rows_rejected") or 0 for flow in run.measures.flows.values())
        if not measured or run.summary:
            return None
        lead = f"{plural(measured, 'row')} rejected so far; rules and columns are known when the run has ended."
        return Section("rejects", "Rejects", element("p", lead, class_="lead"))
    kinds.sort(key=lambda kind: -(number(kind[1], "count") or 0.0))
    cells = [_row(name, kind, rejected) for name, kind in kinds[:_MOST_KINDS]]
    share = f", {percent(rejected / rows)} of all" if rows else ""
    parts: list[Markup] = [element("p", f"{plural(rejected, 'row')} rejected{share}.", class_="lead")]
    if cells:
        parts.append(table(_COLUMNS, cells, caption="Rejects by rule and column", cards=True))
    if len(kinds) > _MOST_KINDS:
        parts.append(element("p", f"and {len(kinds) - _MOST_KINDS:,} more kinds: headrace rejects {run.run_id}"))
    if files:
        parts.append(element("p", "All of them: ", element("code", files[0]), class_="small"))
    return Section("rejects", "Rejects", join(parts))


def _row(name: str, kind: Document, rejected: int) -> list[str]:
    own = whole(kind, "count") or 0
    first = next(iter(documents(kind, "first")), None)
    return [
        name,
        text(kind, "rule") or "-",
        text(kind, "code") or "-",
        text(kind, "column") or "the row as a whole",
        count(own),
        _bar(own / rejected),
        "-" if first is None else _place(first),
    ]


def _bar(share: float) -> Markup:
    return element(
        "span",
        element("i", style=f"--share:{digits(100 * share)}"),
        element("span", percent(share)),
        class_="bar-cell",
    )


def _place(reject: Document) -> str:
    path = text(reject, "file")
    place = {"file": file_name(path) if path else None, "row": whole(reject, "row"), "byte": whole(reject, "byte")}
    return render_location({name: value for name, value in place.items() if value is not None}) or "-"
