"""Pictures in a real browser: no text is wider than was thought, on light and dark pages and on paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.graph import to_svg
from headrace.report.palette import Colour
from tests.graph.pictures import PACKAGES, graph, later_graph
from tests.report.chromium import Browser

# Texts that stick out of the shape that they stand in, or lie on one another.
WRONG = """
(() => {
  const found = [];
  const page = document.documentElement.getBoundingClientRect();
  const texts = [...document.querySelectorAll("text")];
  const areas = texts.map((node) => node.getBoundingClientRect());
  texts.forEach((node, number) => {
    const own = areas[number];
    const shape = node.parentNode.querySelector(":scope > .shape");
    const around = shape && !node.classList.contains("label") ? shape.getBoundingClientRect() : page;
    if (own.left < around.left || own.right > around.right || own.bottom > around.bottom + 1)
      found.push(`out: ${node.textContent}`);
    areas.forEach((other, index) => {
      if (index > number && own.left < other.right - 1 && other.left < own.right - 1
          && own.top + 3 < other.bottom && other.top + 3 < own.bottom)
        found.push(`on one another: ${node.textContent} / ${texts[index].textContent}`);
    });
  });
  return found;
})()
"""
GROUND = "getComputedStyle(document.querySelector('.page')).fill"
WHITE, BLACK = "rgb(255, 255, 255)", "rgb(15, 22, 28)"


@pytest.mark.parametrize("name", [*PACKAGES, "later"])
@pytest.mark.parametrize(
    ("scheme", "media", "ground"), [("light", "screen", WHITE), ("dark", "screen", BLACK), ("dark", "print", WHITE)]
)
def test_texts_fit(browser: Browser, tmp_path: Path, name: str, scheme: str, media: str, ground: str) -> None:
    path = tmp_path / f"{name}.svg"
    path.write_text(to_svg(later_graph() if name == "later" else graph(name)), encoding="utf-8")
    with browser.page(path, width=1_200, scheme=scheme, media=media) as page:
        assert page.seen.messages == []
        assert page.seen.requests == [path.as_uri()]
        assert page.evaluate(WRONG) == []
        assert page.evaluate(GROUND) == ground


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast() -> None:
    """Texts 4.5, lines 3, on every ground that there is."""
    style = (Path(__file__).parents[2] / "python/headrace/graph/style.css").read_text(encoding="utf-8")
    light, dark = (block_of(style, number) for number in (0, 1))
    colours = {name: Colour(light[name], dark[name]) for name in light}
    for name, colour in colours.items():
        if name in ("page", "panel", "box", "line"):
            continue
        for scheme in ("light", "dark"):
            for ground in ("page", "panel", "box"):
                one, other = luminance(getattr(colour, scheme)), luminance(getattr(colours[ground], scheme))
                assert (max(one, other) + 0.05) / (min(one, other) + 0.05) >= 4.5, (name, scheme, ground)


def block_of(style: str, number: int) -> dict[str, str]:
    block = style.split("{ --page")[number + 1].split("}")[0]
    pairs = (item.split(":") for item in f"--page{block}".split(";") if "--" in item)
    return {name.strip().removeprefix("--"): value.strip() for name, value in pairs}
