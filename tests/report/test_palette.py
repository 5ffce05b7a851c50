"""Colours that stand side by side differ for everybody; texts can be read on what they stand on."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from importlib import resources

import pytest

from headrace.report.palette import CPU, SERIES, STATES, Colour

Rgb = tuple[float, float, float]
# Machado, Oliveira and Fernandes (2009), severity 1.0, in linear light.
_EYES: Mapping[str, Sequence[Rgb]] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
_LEAST_DISTANCE = 12.0
_STREAM_STATES = ("read", "parse", "transform", "write", "wait_destination", "wait_block", "wait_slice")


def _linear(colour: str) -> Rgb:
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))

    def channel(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return channel(red), channel(green), channel(blue)


def _seen(colour: str, eyes: str) -> Rgb:
    linear = _linear(colour)
    red, green, blue = (
        min(1.0, max(0.0, sum(factor * own for factor, own in zip(row, linear, strict=True)))) for row in _EYES[eyes]
    )
    return red, green, blue


def _lab(linear: Rgb) -> Rgb:
    red, green, blue = linear
    place = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883,
    )
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in place)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _distance(one: str, other: str, eyes: str) -> float:
    pairs = zip(_lab(_seen(one, eyes)), _lab(_seen(other, eyes)), strict=True)
    return float(sum((first - second) ** 2 for first, second in pairs) ** 0.5)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("eyes", _EYES)
@pytest.mark.parametrize(
    "colours",
    [[STATES[name] for name in _STREAM_STATES], list(SERIES), list(CPU.values())],
    ids=["states", "series", "cpu"],
)
def test_colours_are_told_apart(colours: list[Colour], eyes: str, scheme: str) -> None:
    shown = [getattr(colour, scheme) for colour in colours]
    near = {
        (one, other): round(found, 1)
        for one, other in itertools.combinations(shown, 2)
        if (found := _distance(one, other, eyes)) < _LEAST_DISTANCE
    }
    assert not near


def _contrast(one: str, other: str) -> float:
    first, second = sorted((0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (_linear(one), _linear(other))))
    return (second + 0.05) / (first + 0.05)


def _properties(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


@pytest.mark.parametrize("number", [0, 1, 2], ids=["light", "dark", "print"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        ("ink", "page"),
        ("muted", "page"),
        ("accent", "page"),
        ("ink", "panel"),
        ("good", "good-page"),
        ("bad", "bad-page"),
        ("open", "open-page"),
        ("ink", "open-page"),
    ],
)
def test_texts_can_be_read(text: str, ground: str, number: int) -> None:
    style = resources.files("headrace.report").joinpath("style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\n *\}", style, re.DOTALL)
    found = [_properties(block) for block in blocks if "--page" in block][number]
    assert _contrast(found[text], found[ground]) >= 4.5


@pytest.mark.parametrize("colour", ["#c3dbe6", "#8fdcf7", "#e7f1f6", "#d5e6ee"])
def test_texts_of_the_head_can_be_read(colour: str) -> None:
    # The lightest ground: the end of the gradient below the brightest part of the silhouette.
    assert _contrast(colour, "#1a6f92") >= 3.0
    assert _contrast(colour, "#0b5a78") >= 4.5
