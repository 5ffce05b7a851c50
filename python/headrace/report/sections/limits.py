"""Limits over time: a band for each data flow, of the verdicts that were written while it went on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.report.markup import Markup, element
from headrace.report.palette import fill
from headrace.report.plot import Legend, at_percent, drawing, figure, framed
from headrace.report.rates import begin_of
from headrace.report.run_files import RunFiles
from headrace.report.scales import clock
from headrace.report.sections import Section
from headrace.report.tables import Column, table
from headrace.report.verdicts import Verdict, phrase
from headrace.report.wording import duration

_HEIGHT: Final = 34
_GAP: Final = 4
_STRIPE: Final = 5
_MOST_FLOWS: Final = 30
_MOST_ROWS: Final = 200
# A part that has no room for its name has none: widths of plots, in pixels, and the class of names for which it takes
# that much.
_ROOMS: Final = ((270, "named"), (500, "named wide"), (800, "named roomy"))
_CHARACTER_PIXELS: Final = 8.2
_MARGIN_PIXELS: Final = 12


class _Part:
    """A verdict, and from when to when it held, on the axis."""

    def __init__(self, verdict: Verdict, begin: float, end: float) -> None:
        self.verdict = verdict
        self.begin = begin
        self.end = end


def section(run: RunFiles) -> Section | None:
    """The bands; nothing if no verdict was written."""
    bands = _bands(run)
    if not bands:
        return None
    shown = dict(list(bands.items())[:_MOST_FLOWS])
    height = len(shown) * (_HEIGHT + _GAP)
    parts, labels, rows = [], [], []
    used: dict[str, float] = {}
    for row, ((_, task), band) in enumerate(shown.items()):
        name = run.table_of(task)
        labels.append(element("li", name, title=task))
        for part in band:
            parts.append(_drawn(run, part, row * (_HEIGHT + _GAP)))
            used[part.verdict.limit] = used.get(part.verdict.limit, 0.0) + part.end - part.begin
            rows.append(
                [
                    name,
                    clock(part.begin, 1),
                    clock(part.end, 1),
                    part.verdict.limit,
                    part.verdict.sentence or "-",
                ]
            )
    chart_name, title = "limits-band", "What limited each data flow"
    drawn = drawing(
        chart_name,
        title,
        "The limit of each data flow over time: " + ", ".join(f"{name} {duration(own)}" for name, own in used.items()),
        run.timeline,
        height,
        *parts,
    )
    columns = (
        Column("table", words=True),
        Column("from"),
        Column("to"),
        Column("limit", words=True),
        Column("evidence", words=True),
    )
    order = sorted(used, key=lambda name: -used[name])
    body = figure(
        chart_name,
        title,
        framed(
            drawn,
            element("ol", *labels, class_="labels", style=f"--lane:{_HEIGHT}px;--gap:{_GAP}px", aria_hidden="true"),
        ),
        lead=_lead(run, order[0]),
        legend=[Legend(fill("limit", name), f"{name}: {phrase(name)}", duration(used[name])) for name in order],
        table=table(columns, rows[:_MOST_ROWS], caption="Verdicts"),
    )
    return Section("limits", "Limits", body)


def _lead(run: RunFiles, most: str) -> str:
    parts = [f"For most of the time the limit was {phrase(most)}."]
    verdict = run.verdict()
    if verdict is not None and verdict.next_limit:
        parts.append(f"Behind {phrase(verdict.limit)} the next one is {phrase(verdict.next_limit)}.")
    return " ".join(parts)


def _bands(run: RunFiles) -> dict[tuple[int, str], list[_Part]]:
    """The parts of each data flow of each attempt, in order: of the verdicts while it went on, or of the last one."""
    lines: dict[tuple[int, str], list[Verdict]] = {}
    for verdict in run.measures.verdicts:
        if verdict.task is not None:
            lines.setdefault((verdict.attempt, verdict.task), []).append(verdict)
    bands = {key: _parts(run, key, sorted(own, key=lambda verdict: verdict.at)) for key, own in lines.items()}
    return {key: parts for key, parts in bands.items() if parts}


def _parts(run: RunFiles, key: tuple[int, str], verdicts: Sequence[Verdict]) -> list[_Part]:
    live = [verdict for verdict in verdicts if not verdict.is_final] or verdicts[-1:]
    flow = run.measures.flows.get(key)
    first = begin_of(run, *key) if flow else 0.0
    last = max(flow.end if flow else 0.0, verdicts[-1].at)
    # A verdict is written when it is another one: it holds until the next one. Nobody has judged before the first.
    begins = [first, *(verdict.at if verdict.begin is None else verdict.begin for verdict in live[1:])]
    parts: list[_Part] = []
    for verdict, begin, end in zip(live, begins, [*begins[1:], last], strict=True):
        if parts and (parts[-1].verdict.limit, parts[-1].verdict.connection) == (verdict.limit, verdict.connection):
            parts[-1].end = run.timeline.place(key[0], end)
        elif end > begin:
            parts.append(_Part(verdict, run.timeline.place(key[0], begin), run.timeline.place(key[0], end)))
    return parts


def _drawn(run: RunFiles, part: _Part, y: int) -> Markup:
    left = run.timeline.share(part.begin)
    width = max(0.002, run.timeline.share(part.end) - left)
    limit = part.verdict.limit
    hint = f"{limit}, {clock(part.begin, 1)} to {clock(part.end, 1)}: {part.verdict.sentence or phrase(limit)}"
    inside = [
        element("title", hint),
        element("rect", class_="tint", width="100%", height=_HEIGHT),
        element("rect", class_="stripe", width="100%", height=_STRIPE),
    ]
    needed = _MARGIN_PIXELS + _CHARACTER_PIXELS * len(limit)
    named = next((class_ for pixels, class_ in _ROOMS if width * pixels >= needed), None)
    if named is not None:
        inside.append(element("text", limit.replace("_", " "), class_=named, x=7, y=_STRIPE + 18))
    return element(
        "svg",
        *inside,
        class_="part",
        style=f"--own:{fill('limit', limit)}",
        x=at_percent(left),
        y=y,
        width=at_percent(width),
        height=_HEIGHT,
    )
