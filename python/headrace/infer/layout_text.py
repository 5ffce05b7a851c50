"""A layout as text: YAML with what is known of each column above it."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.infer.facts import ColumnFacts
from headrace.infer.inferred import Doubt, Inferred, InferredColumn
from headrace.infer.wording import bare, bare_path, count, either, shown
from headrace.infer.yaml_text import scalar
from headrace.model import DataType
from headrace.model.layout_text import read_layout
from headrace.model.yaml_reader import MAXIMUM_FILE_BYTES

_MOST_FILES_SHOWN = 3
_MOST_KEYS_SHOWN = 5


def layout_text(inferred: Inferred) -> str:
    """The layout. Raises PackageError if it would be none: what is printed can be loaded."""
    text = "\n".join(_lines(inferred)) + "\n"
    if len(text.encode()) > MAXIMUM_FILE_BYTES:
        text = "\n".join(_lines(inferred, has_comments=False)) + "\n"
    read_layout(text.encode(), "the inferred layout")
    return text


def _lines(inferred: Inferred, *, has_comments: bool = True) -> Iterator[str]:
    """Without comments the columns have only their doubts."""
    if inferred.is_sample:
        read = f"only the first {count(inferred.bytes_read, 'byte')} were read: what stands behind them may not fit"
        yield f"# doubt: {read}"
    yield f"# {_head(inferred)}"
    for doubt in inferred.doubts:
        yield from _doubt(doubt, None, "")
    for key, value in inferred.dialect.items():
        yield f"{key}: {scalar(value)}"
    yield "columns:"
    for column, facts in zip(inferred.columns, inferred.facts, strict=True):
        if has_comments:
            yield f"  # {_column_comment(facts, column)}"
        for doubt in column.doubts:
            yield from _doubt(doubt, column, "  ")
        yield f"  - {scalar(column.entry())}"


def _head(inferred: Inferred) -> str:
    names = [bare_path(name) for name in inferred.files[:_MOST_FILES_SHOWN]]
    more = len(inferred.files) - len(names)
    files = " ".join(names) + (f" and {count(more)} more" if more else "")
    extent = "of a sample" if inferred.is_sample else "all of them read"
    text = f"headrace infer {files}: {count(inferred.rows, 'row')}, {extent}."
    if inferred.keys:
        keys = either([" + ".join(bare(name) for name in key) for key in inferred.keys[:_MOST_KEYS_SHOWN]])
        text += f" {'Key' if inferred.keys_are_proved else 'Candidate key'}: {keys}."
    return text


def _doubt(doubt: Doubt, column: InferredColumn | None, indent: str) -> Iterator[str]:
    yield f"{indent}# doubt: {doubt.text}{'. Instead:' if doubt.instead else ''}"
    if column is not None:
        entry = column.entry()
        for settings in doubt.instead:
            kept = {key: value for key, value in entry.items() if key in ("name", "nullable")}
            ordered = {"name": kept.pop("name"), **settings, **kept}
            yield f"{indent}# - {scalar(ordered)}"


def _column_comment(facts: ColumnFacts, column: InferredColumn) -> str:
    parts = []
    distinct = distinct_values(facts, column)
    if distinct is not None:
        parts.append(f"{'' if facts.is_exact else 'about '}{count(distinct)} distinct")
    if column.nulls:
        parts.append(count(column.nulls, "null"))
    least, most = extreme_values(facts, column)
    if least is not None and most is not None:
        show = shown if _is_text(column.type) else bare
        parts.append(f"{show(least)} to {show(most)}" if least != most else f"always {show(least)}")
    return ", ".join(parts) or "no values"


def distinct_values(facts: ColumnFacts, column: InferredColumn) -> int | None:
    """How many different texts there are that are not null; None if they were not counted."""
    return None if facts.distinct is None else max(facts.distinct - column.null_texts, 0)


def extreme_values(facts: ColumnFacts, column: InferredColumn) -> tuple[str | None, str | None]:
    """Least and greatest value, as they stand in the files; of texts the first bytes."""
    if _is_text(column.type):
        return facts.least_text, facts.greatest_text
    if column.extremes is not None:
        return column.extremes
    told = [own for own in facts.classes.values() if own.minimum is not None and own.maximum is not None]
    return (told[0].minimum, told[0].maximum) if len(told) == 1 else (None, None)


def _is_text(kind: DataType) -> bool:
    return kind.kind in ("string", "char", "varchar")
