"""The parts of a report, one module each: `section(run)` draws it, or says that there is nothing to draw."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.report.markup import Markup


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, its heading, and what it shows."""

    anchor: str
    title: str
    body: Markup
