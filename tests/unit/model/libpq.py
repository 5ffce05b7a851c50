"""The parser of connection strings inside libpq, if this machine has the library: an oracle for ours."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache


class _Option(ctypes.Structure):
    """PQconninfoOption of libpq-fe.h."""

    _fields_ = (
        ("keyword", ctypes.c_char_p),
        ("envvar", ctypes.c_char_p),
        ("compiled", ctypes.c_char_p),
        ("val", ctypes.c_char_p),
        ("label", ctypes.c_char_p),
        ("dispchar", ctypes.c_char_p),
        ("dispsize", ctypes.c_int),
    )


@cache
def _library() -> ctypes.CDLL | None:
    path = ctypes.util.find_library("pq")
    if path is None:
        return None
    library = ctypes.CDLL(path)
    library.PQconninfoParse.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)]
    library.PQconninfoParse.restype = ctypes.POINTER(_Option)
    library.PQconninfoFree.argtypes = [ctypes.POINTER(_Option)]
    library.PQconninfoFree.restype = None
    return library


def is_installed() -> bool:
    """Whether there is an oracle."""
    return _library() is not None


def parse(text: str) -> dict[str, str] | None:
    """The values by keyword; None if libpq refuses the text, or if a value is not UTF-8."""
    library = _library()
    assert library is not None
    options = library.PQconninfoParse(text.encode("utf-8"), None)
    if not options:
        return None
    found: dict[str, bytes] = {}
    position = 0
    while options[position].keyword is not None:
        if options[position].val is not None:
            found[options[position].keyword.decode()] = options[position].val
        position += 1
    library.PQconninfoFree(options)
    try:
        return {keyword: value.decode("utf-8") for keyword, value in found.items()}
    except UnicodeDecodeError:
        return None
