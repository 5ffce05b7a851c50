"""The report in a real browser: no errors, no network, nothing cut off, in every width, scheme and medium."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report.chromium import Browser, Page

SCENARIOS = ("duckdb", "rejects", "failed", "damaged", "two_attempts", "hour")
# Widths of a phone, of a tablet, of a screen; and what is left of A4.
WIDTHS = (400, 820, 1_440)
PRINTED = 690
# Texts that stick out of the window, or of what they stand in, unless that scrolls by itself.
OVERFLOW = """
(() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  const all = document.documentElement.scrollWidth;
  if (all > width) found.push(`the page is ${all} wide`);
  const scrolls = (node) => node.closest(".scroll, nav ul, .labels, .skip, caption, details:not([open])");
  for (const node of document.querySelectorAll("main *, header *, footer, .plot text")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || scrolls(node) || ["title", "desc"].includes(node.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const area = range.getBoundingClientRect();
    if (!area.width) continue;
    if (area.left < -1 || area.right > width + 1) found.push(`${node.tagName} ${node.textContent.slice(0, 40)}`);
    const part = node.closest("svg.part");
    if (part && area.right > part.getBoundingClientRect().right + 1) found.push(`cut: ${node.textContent}`);
  }
  return found;
})()
"""
# Labels of axes that lie on one another.
COLLISIONS = """
[...document.querySelectorAll("svg.plot")].flatMap((plot) => {
  const ticks = [...plot.querySelectorAll(":scope > .tick")]
    .map((node) => node.getBoundingClientRect()).filter((area) => area.width);
  const touch = (one, other) => one.left < other.right && other.left < one.right
    && one.top + 4 < other.bottom && other.top + 4 < one.bottom;
  return ticks.flatMap((one, number) => ticks.slice(number + 1).filter((other) => touch(one, other))
    .map(() => plot.querySelector("title").textContent));
})
"""
# Brings the middle of something into the window, and says where it is there.
PLACE = """
((node) => {
  node.scrollIntoView({ block: "center", behavior: "instant" });
  const area = node.getBoundingClientRect();
  return [area.left + area.width / 3, area.top + area.height / 2];
})
"""
GROUND = "getComputedStyle(document.body).backgroundColor"


def check(page: Page, path: Path) -> None:
    assert page.seen.messages == []
    assert page.seen.requests == [path.as_uri()]
    assert page.evaluate(OVERFLOW) == []
    assert page.evaluate(COLLISIONS) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_light(browser: Browser, report_of: Callable[[str], Path], name: str, width: int) -> None:
    path = report_of(name)
    with browser.page(path, width=width) as page:
        check(page, path)
        assert page.evaluate(GROUND) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [400, 1_440])
def test_dark(browser: Browser, report_of: Callable[[str], Path], width: int) -> None:
    path = report_of("duckdb")
    with browser.page(path, width=width, scheme="dark") as page:
        check(page, path)
        assert page.evaluate(GROUND) == "rgb(15, 22, 28)"


@pytest.mark.parametrize("name", SCENARIOS)
def test_print(browser: Browser, report_of: Callable[[str], Path], name: str, tmp_path: Path) -> None:
    """On white paper, whatever the screen is."""
    path = report_of(name)
    with browser.page(path, width=PRINTED, media="print", scheme="dark") as page:
        check(page, path)
        assert page.evaluate(GROUND) == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
        page.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_without_script(browser: Browser, report_of: Callable[[str], Path]) -> None:
    """All of it is there: the script only shows sooner what shapes say."""
    path = report_of("duckdb")
    with browser.page(path, width=1_440) as page:
        whole = page.evaluate("document.querySelector('main').innerText")
    with browser.page(path, width=1_440, script=False) as page:
        check(page, path)
        assert page.evaluate("document.querySelector('main').innerText") == whole


@pytest.mark.parametrize(
    ("selector", "says"),
    [
        ("#throughput-tables svg.plot", "lineitem: "),
        ("#course-streams .hint:last-of-type", "stream "),
        ("#course-tasks .bar", "success"),
        ("#limits-band .tint", "parse"),
    ],
)
def test_what_is_pointed_at(browser: Browser, report_of: Callable[[str], Path], selector: str, says: str) -> None:
    with browser.page(report_of("duckdb"), width=1_440) as page:
        place = page.evaluate(f"{PLACE}(document.querySelector('{selector}'))")
        page.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": place[0], "y": place[1]})
        assert says in page.evaluate("document.querySelector('.tip').innerText")


def test_tables_of_charts_open(browser: Browser, report_of: Callable[[str], Path]) -> None:
    with browser.page(report_of("duckdb"), width=400) as page:
        page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        assert page.evaluate(OVERFLOW) == []


def test_the_checks_see_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "wrong.html"
    path.write_text(
        "<main><p style='width:900px;white-space:nowrap'>" + "wide " * 200 + "</p>"
        "<svg class=plot width=100><title>t</title><text class=tick x=1 y=20>1,000</text>"
        "<text class=tick x=9 y=20>2,000</text></svg></main><script src=gone.js></script><script>nothing()</script>"
    )
    with browser.page(path, width=400) as page:
        assert page.evaluate(OVERFLOW)
        assert page.evaluate(COLLISIONS) == ["t"]
        assert len(page.seen.messages) >= 2
        assert len(page.seen.requests) == 2
