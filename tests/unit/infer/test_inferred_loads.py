"""What was inferred of all bytes of a file loads that file, without a reject of a value."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Literal

from hypothesis import HealthCheck, given, settings, strategies

from headrace.errors import SourceError
from headrace.infer import Given, InferOptions, infer_files, layout_text
from headrace.infer.checking import check_files
from headrace.model.layout_text import read_layout
from tests.unit.infer.values import columns

Quoting = Literal[0, 1, 2, 3]
_NAMES = ("id", "na me", "Größe", "year", "x1")


def value_rejects(path: Path, options: InferOptions) -> tuple[str, list[dict[str, object]], int]:
    """The layout, the rejects of values and the number of rows of a file that was inferred."""
    inferred = infer_files([path], options)
    text = layout_text(inferred)
    report = check_files([path], read_layout(text.encode(), "layout"), 2)
    rejects = [kind for kind in report["rejects"]["by_column"] if not str(kind["code"]).startswith("HR1")]
    return text, rejects, inferred.rows


def written(values: list[list[str | None]], delimiter: str, quoting: Quoting, *, has_header: bool) -> str:
    """The file as another program writes it: nulls are empty, without qualifiers."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    rows = [list(row) for row in zip(*values, strict=True)]
    if has_header:
        writer.writerow(_NAMES[: len(values)])
    writer.writerows(rows)
    return file.getvalue()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=columns(),
    delimiter=strategies.sampled_from(",;\t|"),
    quoting=strategies.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    has_header=strategies.booleans(),
    is_given=strategies.booleans(),
)
def test_random_files_load_by_their_layouts(
    tmp_path: Path, values: list[list[str | None]], delimiter: str, quoting: Quoting, has_header: bool, is_given: bool
) -> None:
    path = tmp_path / "file.csv"
    path.write_text(written(values, delimiter, quoting, has_header=has_header), encoding="utf-8")
    found = Given(delimiter=delimiter, header=has_header) if is_given else Given()
    try:
        text, rejects, rows = value_rejects(path, InferOptions(given=found, streams=2))
    except SourceError:
        # Nothing but blank lines, and perhaps a header.
        assert not any(value.strip(" \t") for column in values for value in column if value is not None)
        return
    assert rejects == [], text
    if is_given and has_header:
        assert rows <= len(values[0])
