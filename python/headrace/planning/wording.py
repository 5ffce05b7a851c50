"""Numbers and names in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def stream_name(path: str) -> str:
    """Standard input, or the path of a named pipe."""
    return "standard input" if path == "-" else path
