"""Orders that go to tables of several connections in one pass."""

from __future__ import annotations

from tests.integration.several_scenes import package

_AT = "connection: warehouse, table: {}"


def elsewhere(text: str, connections: dict[str, str], places: dict[str, str]) -> str:
    """The package with these connections, and destinations of `several_scenes` in other places."""
    for name, where in places.items():
        text = text.replace(_AT.format(name), f"connection: {where}, table: {name}")
    lines = "".join(f"  {name}: {spec}\n" for name, spec in connections.items())
    return text.replace("connections:\n", f"connections:\n{lines}", 1)


def two_places(target: str = "replace", archive: str = "{type: duckdb, path: archive.duckdb}") -> str:
    """All orders in table `one` of the warehouse, and in table `two` of `archive`."""
    return elsewhere(package(), {"archive": archive}, {"two": "archive"}).replace("target: replace", f"target: {target}")
