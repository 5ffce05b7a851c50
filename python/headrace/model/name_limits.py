"""How long names may be in a database. A server that cuts longer ones does so without a word: two tables become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.model.suggest import CUT_MARK

# By type of connection, in bytes of UTF-8; types that are not here have no limit. PostgreSQL: NAMEDATALEN - 1.
MAXIMUM_NAME_BYTES: Final[Mapping[str, int]] = {"postgres": 63}


@dataclass(frozen=True, slots=True)
class CutName:
    """A name that is too long, as errors tell it."""

    found: str
    expected: str
    hint: str = "Choose a shorter name."


def cut_name(name: str, maximum_bytes: int | None) -> CutName | None:
    """What a database would make of a name that is too long for it; None for a name that fits."""
    encoded = name.encode("utf-8", "surrogatepass")
    if maximum_bytes is None or len(encoded) <= maximum_bytes:
        return None
    kept = encoded[:maximum_bytes].decode("utf-8", "ignore")
    # With the mark, by which the beginning of a secret is found.
    found = f"{len(encoded)} bytes; it would become {kept}{CUT_MARK}{len(kept.encode('utf-8'))} bytes)"
    return CutName(found, f"at most {maximum_bytes} bytes")
