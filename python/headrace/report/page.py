"""The page: one HTML document that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Final

from headrace.report.markup import Markup, element
from headrace.report.palette import variables
from headrace.report.rates import table_rates
from headrace.report.run_files import RunFiles
from headrace.report.sections import (
    Section,
    accounting,
    comparison,
    configuration,
    course,
    destination,
    head,
    limits,
    machine,
    rejects,
    throughput,
)

_FILES: Final = "headrace.report"


def page(run: RunFiles, earlier: RunFiles | None = None) -> str:
    """The document of a run, compared with an earlier one if there is one."""
    rates = table_rates(run)
    sections = [
        _evidence(run),
        accounting.section(run),
        throughput.section(run, rates),
        course.section(run),
        limits.section(run),
        destination.section(run),
        machine.section(run),
        rejects.section(run),
        None if earlier is None else comparison.section(run, rates, earlier, table_rates(earlier)),
        configuration.section(run),
    ]
    shown = [section for section in sections if section is not None]
    notes = [*run.notes, *([] if earlier is None else (f"Run {earlier.run_id}: {note}" for note in earlier.notes))]
    body = element(
        "body",
        element("a", "Skip to the accounts", href="#accounts", class_="skip"),
        head.head(run, rates),
        _navigation(shown),
        element("main", _notes(notes), *(_section(section) for section in shown)),
        element("footer", "Drawn from the run folder by `headrace report`. Times are UTC; 1 MB is 1,000,000 bytes."),
        element("script", Markup(_script())),
    )
    return f"<!DOCTYPE html>\n{element('html', _head(run), body, lang='en')}\n"


def _evidence(run: RunFiles) -> Section | None:
    body = head.evidence_section(run)
    title = "Where the time went" if run.verdict() is None else "Verdict"
    return None if body is None else Section("verdict", title, body)


def _head(run: RunFiles) -> Markup:
    """Nothing may be fetched, and no script runs but the page's own."""
    digest = base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="robots", content="noindex"),
        element("title", f"{run.package}, run {run.run_id}: Headrace report"),
        element("style", Markup(_style())),
    )


def _style() -> str:
    return _file("style.css").replace("/*light*/", variables(dark=False)).replace("/*dark*/", variables(dark=True))


def _script() -> str:
    return _file("script.js")


def _file(name: str) -> str:
    return resources.files(_FILES).joinpath(name).read_text(encoding="utf-8").strip()


def _navigation(sections: Sequence[Section]) -> Markup:
    links = [element("li", element("a", section.title, href=f"#{section.anchor}")) for section in sections]
    return element("nav", element("ul", *links), aria_label="Parts of the report")


def _notes(notes: Sequence[str]) -> Markup:
    if not notes:
        return Markup("")
    return element(
        "aside",
        element("h2", "What this report lacks"),
        element("ul", *(element("li", note) for note in notes)),
        class_="lacks",
    )


def _section(section: Section) -> Markup:
    return element("section", element("h2", section.title), section.body, id=section.anchor)
