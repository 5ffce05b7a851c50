"""Packages that are tasks of other packages: found, read and checked before the run, bound when they start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.model.bound import BoundPackage
    from headrace.model.connections import Connection


@dataclass(frozen=True)
class ChildPackage:
    """The package of a task. `bind` gives it with values of its parameters and connections in place of its own; it
    raises PackageError.

    `known`: the package as it is known before the run, values left open.
    """

    path: Path
    known: BoundPackage
    bind: Callable[[Mapping[str, Any], Mapping[str, Connection]], BoundPackage]
