"""Amounts of memory as texts: `1GB`, `512MiB`."""

from __future__ import annotations

import re
from decimal import Decimal

UNIT_BYTES = {"MB": 1_000_000, "GB": 1_000_000_000, "MiB": 1_048_576, "GiB": 1_073_741_824}
MEMORY_PATTERN = r"[0-9]{1,9}(\.[0-9]{1,9})? ?(MB|GB|MiB|GiB)"


def parse_memory_size(text: str) -> int:
    """Bytes; raises ValueError unless `text` is a positive number with a unit of `UNIT_BYTES`."""
    if not re.fullmatch(MEMORY_PATTERN, text):
        raise ValueError(text)
    number = text.rstrip("MGiB ")
    memory_bytes = int(Decimal(number) * UNIT_BYTES[text[len(number) :].strip()])
    if memory_bytes <= 0:
        raise ValueError(text)
    return memory_bytes
