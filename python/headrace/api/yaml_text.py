"""The YAML of a package that was built in Python: always the same for the same package, and readable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from headrace.infer.yaml_text import scalar

_WIDTH: Final = 100
_STEP: Final = "  "


def document_text(root: Mapping[str, object]) -> str:
    """The mapping as a YAML file. A mapping or list that holds nothing nested stands on one line, if it fits."""
    return "".join(f"{line}\n" for line in _mapping(root, ""))


def _mapping(mapping: Mapping[str, object], margin: str) -> Iterator[str]:
    for key, value in mapping.items():
        yield from _entry(f"{margin}{_key(key)}:", value, margin + _STEP)


def _list(items: Sequence[object], margin: str) -> Iterator[str]:
    for item in items:
        yield from _entry(f"{margin}-", item, margin + _STEP)


def _entry(head: str, value: object, margin: str) -> Iterator[str]:
    if isinstance(value, str) and _is_literal(value):
        yield f"{head} |{'' if value.endswith(chr(10)) else '-'}"
        yield from (f"{margin}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))
        return
    line = f"{head} {_on_one_line(value)}"
    if not _is_nested(value) or (_is_flat(value) and len(line) <= _WIDTH):
        yield line
        return
    yield head
    yield from _mapping(value, margin) if isinstance(value, Mapping) else _list(_items(value), margin)


def _is_literal(text: str) -> bool:
    """Whether the text can stand behind `|`: nothing in it or at its ends gets lost there."""
    lines = text.removesuffix("\n").split("\n")
    return (
        len(lines) > 1
        and not lines[0][:1].isspace()
        and lines[0] != ""
        and lines[-1] != ""
        and all(line.isprintable() and "\ufeff" not in line for line in lines)
    )


def _on_one_line(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {_on_one_line(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_on_one_line(inner) for inner in value) + "]"
    return format(value, "f") if isinstance(value, Decimal) else scalar(value)


def _key(key: str) -> str:
    """`on` is a setting; quoting it for readers that take it for a truth value would hide that."""
    return key if key == "on" else scalar(key)


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) else ()


def _is_nested(value: object) -> bool:
    """Whether it has lines of its own when it is too long for one. An empty one has none."""
    return isinstance(value, (Mapping, list, tuple)) and len(value) > 0


def _is_flat(value: object) -> bool:
    """Whether a mapping or list holds nothing that wants lines of its own."""
    inner = value.values() if isinstance(value, Mapping) else _items(value)
    return not any(_is_nested(item) or (isinstance(item, str) and _is_literal(item)) for item in inner)
