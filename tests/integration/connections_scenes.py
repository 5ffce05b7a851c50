"""Orders that go to tables of several connections in one pass."""

from __future__ import annotations

from tests.integration.several_scenes import package

_AT = "connection: warehouse, table: {},"


def elsewhere(text: str, connections: dict[str, str], places: dict[str, str]) -> str:
    """The package with these connections, and destinations of `several_scenes` in other places."""
    for name, where in places.items():
        text = text.replace(_AT.format(name), f"connection: {where}, table: {name},")
    lines = "".join(f"  {name}: {spec}\n" for name, spec in connections.items())
    return text.replace("connections:\n", f"connections:\n{lines}", 1)


def two_places(target: str = "replace", archive: str = "{type: duckdb, path: archive.duckdb}") -> str:
    """All orders in table `one` of the warehouse, and in table `two` of `archive`."""
    return elsewhere(package(), {"archive": archive}, {"two": "archive"}).replace(
        "target: replace", f"target: {target}"
    )


# The command line, with a process that kills itself, or fails, at a moment of the commits: `before` or `behind` the
# commit of the place with that number, from 0.
MOMENT = """
import os, signal, time
from headrace.errors import TargetBusyError
from headrace.targets.duckdb.group import DuckdbGroup
from headrace.targets.null.group import NullGroup
from headrace.targets.postgres.group import PostgresGroup

commits = []
moments = {moments!r}

def stop():
    if {error!r} == "SIGINT":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
        return
    if {error!r}:
        raise TargetBusyError({error!r})
    os.kill(os.getpid(), signal.SIGKILL)

def at(moment):
    if moments.pop((moment, len(commits)), False):
        stop()

for group in (DuckdbGroup, PostgresGroup, NullGroup):
    def commit(self, result, own=group.commit):
        at("before")
        done = own(self, result)
        at("behind")
        commits.append(self)
        return done
    group.commit = commit

from headrace.cli import main
main()
"""


def stopped(moment: str, place: int, error: str = "") -> str:
    """The command line that does not live through that moment, or fails once then; `SIGINT`: that is interrupted."""
    return MOMENT.format(error=error, moments={(moment, place): True})
