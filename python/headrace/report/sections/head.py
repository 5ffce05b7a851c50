"""The head: which run, how it ended, and what limited it."""

from __future__ import annotations

from collections import Counter
from typing import Final

from headrace.report.curves import silhouette
from headrace.report.flow_measures import STREAM_STATES
from headrace.report.markup import Attribute, Markup, element, join
from headrace.report.palette import fill
from headrace.report.plot import Legend, at_percent, figure
from headrace.report.rates import Rates
from headrace.report.run_files import RunFiles
from headrace.report.sections.figures import Totals, totals
from headrace.report.values import Document, document, text
from headrace.report.verdicts import Verdict, phrase
from headrace.report.wording import STATE_NAMES, count, duration, evidence, percent, rate, size

_SILHOUETTE_HEIGHT: Final = 150
_BAR_HEIGHT: Final = 26
_LEAST_SHARE: Final = 0.005
_STATUS: Final = {"success": "success", "failed": "failed", "cancelled": "cancelled"}


def head(run: RunFiles, rates: Rates) -> Markup:
    """The head of the page."""
    status = run.status
    shown = status or "not ended"
    kind = _STATUS.get(status or "", "open")
    parts = [
        element(
            "p",
            element("span", "headrace", class_="product"),
            element("span", f"report of run {run.run_id}"),
            class_="brand",
        ),
        element("h1", run.package, element("span", shown, class_=f"status {kind}")),
        element("p", _when(run), class_="when"),
        _sentence(run),
        _figures(totals(run)),
    ]
    water = silhouette(run.timeline, rates.moments, rates.total(), _SILHOUETTE_HEIGHT)
    return element("header", water, element("div", *parts, class_="inside"), class_=f"head {kind}", id="top")


def evidence_section(run: RunFiles) -> Markup | None:
    """What the verdict stands on: figures, the remedy, and where the streams' time went."""
    verdict = run.verdict()
    spent = _time_spent(run)
    parts: list[Markup] = []
    if verdict is not None:
        parts += _of_verdict(verdict)
    if spent is not None:
        parts.append(spent)
    return join(parts) if parts else None


def _when(run: RunFiles) -> str:
    attempts = run.timeline.attempts
    started = next((attempt.started_at for attempt in attempts if attempt.started_at is not None), None)
    parts = [] if started is None else [f"{started:%Y-%m-%d %H:%M:%S} UTC"]
    parts.append(duration(sum(attempt.seconds for attempt in attempts)))
    if len(attempts) > 1:
        parts.append(f"{len(attempts)} attempts")
    return ", ".join(parts)


def _sentence(run: RunFiles) -> Markup:
    verdict = run.verdict()
    if run.status == "failed" and run.error:
        return _failure(run.error)
    if verdict is None:
        so_far = "No limit was named so far." if run.status is None else "No limit was named: too little was measured."
        return element("p", so_far, class_="verdict quiet")
    parts = [
        element("p", "Limited by ", element("em", phrase(verdict.limit)), class_="verdict"),
    ]
    if verdict.sentence:
        parts.append(element("p", _sentence_case(verdict.sentence), class_="because"))
    return join(parts)


def _failure(error: Document) -> Markup:
    place = ", ".join(f"{name} {value}" for name, value in document(error, "at").items())
    facts = [
        (name, value)
        for name, value in (
            ("at", place),
            ("found", text(error, "found") or ""),
            ("expected", text(error, "expected") or ""),
            ("hint", text(error, "hint") or ""),
        )
        if value
    ]
    lines = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    what = text(error, "what") or text(error, "kind") or "the run failed"
    return join(
        [element("p", "Failed: ", element("em", what), class_="verdict"), element("dl", *lines, class_="failure")]
    )


def _figures(figures: Totals) -> Markup:
    tiles = [
        ("rows loaded", count(figures.loaded)),
        ("rejected", count(figures.rejected)),
        ("text read", size(figures.bytes)),
        ("speed of loading", "-" if figures.speed is None else rate(figures.speed)),
        ("rows per second", count(figures.rows_per_second)),
        ("streams", count(figures.streams)),
        ("most memory", size(figures.peak_bytes)),
    ]
    items = [element("div", element("dt", name), element("dd", value)) for name, value in tiles if value != "-"]
    return element("dl", *items, class_="tiles") if items else Markup("")


def _of_verdict(verdict: Verdict) -> list[Markup]:
    parts = []
    if verdict.remedy:
        parts.append(element("p", element("b", "What would help: "), verdict.remedy, class_="remedy"))
    facts = [evidence(name, value) for name, value in verdict.evidence.items() if value]
    if verdict.connection:
        facts.insert(0, ("connection", verdict.connection))
    if verdict.next_limit:
        pace = verdict.next_megabytes_per_second
        at = "" if pace is None else f", at about {rate(pace)}"
        facts.append(("next limit", f"{phrase(verdict.next_limit)}{at}"))
    if facts:
        items = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
        parts.append(element("dl", *items, class_="facts"))
    if verdict.streams:
        other = "; ".join(
            f"stream {item.number} by {phrase(item.limit)}" + (f" ({item.sentence})" if item.sentence else "")
            for item in verdict.streams
            if item.limit != verdict.limit
        )
        if other:
            parts.append(element("p", f"Streams that were limited by something else: {other}."))
    return parts


def _time_spent(run: RunFiles) -> Markup | None:
    """One bar: all streams' time by what they were at."""
    spent: Counter[str] = Counter()
    for flow in run.measures.flows.values():
        spent.update(flow.state_seconds())
    whole = sum(spent.values())
    if whole <= 0:
        return None
    shares = {state: spent[state] / whole for state in STREAM_STATES if spent[state] / whole >= _LEAST_SHARE}
    title = "Time of all streams"
    told = ", ".join(f"{STATE_NAMES[state]} {percent(share)}" for state, share in shares.items())
    parts, left = [], 0.0
    for state, share in shares.items():
        hint = element("title", f"{STATE_NAMES[state]} {percent(share)}")
        place: dict[str, Attribute] = {"x": at_percent(left), "width": at_percent(share), "height": _BAR_HEIGHT}
        parts.append(element("rect", hint, class_="spent", style=f"--own:{fill('state', state)}", **place))
        left += share
    bar = element(
        "svg",
        element("title", title, id="spent-title"),
        element("desc", told, id="spent-description"),
        *parts,
        role="img",
        aria_labelledby="spent-title spent-description",
        class_="plot",
        width="100%",
        height=_BAR_HEIGHT,
    )
    legend = [Legend(fill("state", state), STATE_NAMES[state], percent(share)) for state, share in shares.items()]
    return figure("spent", title, bar, legend=legend)


def _sentence_case(sentence: str) -> str:
    shown = sentence[:1].upper() + sentence[1:]
    return shown if shown.endswith((".", "!", "?")) else f"{shown}."
