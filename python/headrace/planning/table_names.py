"""Names of the tables that a load makes beside the target: `orders_6`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_DIGEST_DIGITS = 8
_SHORT_SUFFIX_BYTES = 24


def numbered_name(table: str, number: int, maximum_bytes: int | None) -> str:
    """`orders_6`. A name that is too long for the target is cut, and a digest of the whole keeps it apart from others
    that are cut to the same letters.
    """
    suffix = f"_{number}"
    name = table + suffix
    if maximum_bytes is None or len(name.encode("utf-8")) <= maximum_bytes:
        return name
    suffix = f"_{hashlib.sha256(table.encode('utf-8')).hexdigest()[:_DIGEST_DIGITS]}{suffix}"
    kept = table.encode("utf-8")[: maximum_bytes - len(suffix)].decode("utf-8", errors="ignore")
    return kept + suffix


def suffixed_name(table: str, suffix: str, maximum_bytes: int | None) -> str:
    """`orders_2024_01`, cut as `numbered_name` does; a suffix that is too long itself is cut with the table."""
    name = f"{table}_{suffix}"
    if maximum_bytes is None or len(name.encode("utf-8")) <= maximum_bytes:
        return name
    digest = f"_{hashlib.sha256(name.encode('utf-8')).hexdigest()[:_DIGEST_DIGITS]}"
    is_short = len(suffix.encode("utf-8")) <= _SHORT_SUFFIX_BYTES
    head, tail = (table, f"{digest}_{suffix}") if is_short else (name, digest)
    kept = head.encode("utf-8")[: maximum_bytes - len(tail.encode("utf-8"))].decode("utf-8", errors="ignore")
    return kept + tail


def highest_number(table: str, names: Iterable[str], maximum_bytes: int | None) -> int:
    """The largest number that `numbered_name` has given to one of these names; 0 if there is none."""
    highest = 0
    for name in names:
        found = re.search(r"_([1-9][0-9]{0,17})$", name)
        if found and numbered_name(table, int(found[1]), maximum_bytes) == name:
            highest = max(highest, int(found[1]))
    return highest
