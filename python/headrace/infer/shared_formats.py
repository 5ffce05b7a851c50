"""Formats that all columns of a kind have are written once, for the layout: a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headrace.infer.inferred import Doubt, InferredColumn

# Kinds of types by the key of `formats`, and a format that means what none does, for lines that are ready to be taken.
_KINDS: Final[Mapping[str, tuple[tuple[str, ...], Any]]] = {
    "number": (("int16", "int32", "int64", "decimal", "float64"), {"decimal": "."}),
    "date": (("date",), "yyyy-MM-dd"),
    "timestamp": (("timestamp",), None),
}
_FEWEST_COLUMNS: Final = 2


def with_shared_formats(columns: Sequence[InferredColumn]) -> tuple[tuple[InferredColumn, ...], dict[str, Any]]:
    """The columns without formats that they share, and the settings of the layout that hold these."""
    shared: dict[str, Any] = {}
    for key, (kinds, _) in _KINDS.items():
        own = [column for column in columns if column.type.kind in kinds and not _is_plain_whole(column)]
        formats = [column.settings.get("format") for column in own]
        if len(own) >= _FEWEST_COLUMNS and formats[0] is not None and all(one == formats[0] for one in formats):
            shared[key] = formats[0]
    if not shared:
        return tuple(columns), {}
    return tuple(_without(column, shared) for column in columns), {"formats": shared}


def _is_plain_whole(column: InferredColumn) -> bool:
    """Whether every value is digits alone, which any format of numbers takes."""
    return column.type.kind.startswith("int") and "format" not in column.settings


def _without(column: InferredColumn, shared: Mapping[str, Any]) -> InferredColumn:
    settings = dict(column.settings)
    key = _key_of(column.type.kind)
    if key is not None and settings.get("format") == shared.get(key, ""):
        del settings["format"]
    doubts = tuple(Doubt(doubt.text, tuple(_explicit(own, shared) for own in doubt.instead)) for doubt in column.doubts)
    return replace(column, settings=settings, doubts=doubts)


def _explicit(settings: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings that mean the same where the layout has these formats."""
    kind = str(settings["type"]).partition("(")[0]
    key = _key_of(kind)
    if key is None or key not in shared or "format" in settings or kind.startswith("int"):
        return settings
    plain = _KINDS[key][1]
    return settings if plain is None else {**settings, "format": plain}


def _key_of(kind: str) -> str | None:
    return next((key for key, (kinds, _) in _KINDS.items() if kind in kinds), None)
