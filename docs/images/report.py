"""Makes the pictures of docs/how-to/read-the-report.md: run folders of the tests, drawn, and looked at in Chromium.

PYTHONPATH=python .venv-ci/bin/python docs/images/report.py
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from headrace.report import write_report  # noqa: E402 it is found only now
from tests.report import chromium  # noqa: E402
from tests.report.scenarios import duckdb_run, postgres_hour  # noqa: E402

STREAMS = 24


@dataclass(frozen=True)
class Picture:
    """A part of a page: from the upper end of one element to the lower end of another one, or `height` pixels."""

    name: str
    report: str
    width: int
    first: str
    last: str | None = None
    height: int = 0
    scheme: str = "light"
    scale: float = 0.75


PICTURES = (
    Picture("report-head", "hour", 1_180, ".head", height=872),
    Picture("report-streams", "hour", 1_180, "#course-streams", "#limits-band svg.plot"),
    Picture("report-phone", "duckdb", 400, ".head", height=980, scheme="dark"),
)
PLACE = "((node) => { const area = node.getBoundingClientRect(); return [area.top + scrollY, area.bottom + scrollY]; })"


def main() -> None:
    """Draw, look, store."""
    program = chromium.program()
    if program is None:
        sys.exit("there is no Chromium: .ci/install-chromium")
    with tempfile.TemporaryDirectory() as temporary, chromium.Browser(program) as browser:
        folders = {
            "hour": postgres_hour(Path(temporary) / "20261120-010000-7f3a9c", streams=STREAMS, step=4.0),
            "duckdb": duckdb_run(Path(temporary) / "20261119-010000-51be02"),
        }
        pages = {name: write_report(folder).path for name, folder in folders.items()}
        for picture in PICTURES:
            take(browser, picture, pages[picture.report])


def take(browser: chromium.Browser, picture: Picture, path: Path) -> None:
    """One picture."""
    with browser.page(path, width=picture.width, scheme=picture.scheme) as page:
        top, _ = page.evaluate(f"{PLACE}(document.querySelector('{picture.first}'))")
        bottom = top + picture.height
        if picture.last is not None:
            _, bottom = page.evaluate(f"{PLACE}(document.querySelector('{picture.last}'))")
        margin = 0 if top < 1 else 16
        clip = {"x": 0.0, "y": top - margin, "width": picture.width, "height": bottom - top + 2 * margin}
        clip["scale"] = picture.scale
        page.picture(Path(__file__).with_name(f"{picture.name}.png"), clip=clip)


if __name__ == "__main__":
    main()
