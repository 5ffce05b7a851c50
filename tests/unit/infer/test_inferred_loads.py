"""What was inferred of all bytes of a file loads that file, without a reject of a value."""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies

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


def test_a_million_numbers_then_a_text(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("id;value\n" + "".join(f"{number};{number % 7}\n" for number in range(1_000_000)) + "1;x\n")
    text, rejects, rows = value_rejects(path, InferOptions(streams=2))
    assert (rejects, rows) == ([], 1_000_001)
    assert '# doubt: 1,000,000 of 1,000,001 values could be whole numbers, 1 could not: the first is "x" (' in text
    assert "# - {name: value, type: int16, nullable: false}" in text
    assert "- {name: value, type: char(1), nullable: false}" in text


LINES_TO_TAKE = {
    "currencies": ["$5", "$1,250.75", "-$7", "USD 3"],
    "euros": ["1.249,00 €", "48,50 €", "3"],
    "groups with blanks": ["1 234 567,5", "12", "999,25"],
    "groups with apostrophes": ["1'234.50", "12.00", "7"],
    "parentheses": ["(12.50)", "12.50", "(1,250.75)"],
    "minus behind": ["12,50-", "3,75", "1.000,5-"],
    "names of months": ["12-Jan-2026", "1-Feb-2026", "30-SEP-2025"],
    "names of months, German": ["1. März 2026 12:30", "12. Mai 2025 00:00"],
    "ambiguous dates": ["03/04/2026", "05/06/2026"],
    "leading zeros": ["007", "12"],
    "unclear marks": ["1,234", "12,500"],
    "exponents": ["12E3", "13E4"],
}


@pytest.mark.parametrize("name", LINES_TO_TAKE)
def test_lines_that_are_ready_to_be_taken_load(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("id;value\n" + "".join(f"{row};{value}\n" for row, value in enumerate(LINES_TO_TAKE[name], 1)))
    inferred = infer_files([path], InferOptions(streams=1))
    text = layout_text(inferred)
    lines = re.findall(r"^  # (- \{name: value, .*)$", text, re.MULTILINE)
    assert lines, text
    for line in lines:
        own = next(one for one in text.splitlines() if one.startswith("  - {name: value, "))
        taken = text.replace(own, f"  {line}")
        report = check_files([path], read_layout(taken.encode(), "layout"), 1)
        assert report["rejects"]["count"] == 0, taken


def test_columns_that_share_a_format_load_by_it(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    rows = "1;1.249,50;2,5;31/12/2025;01/01/2026;7\n2;3;4,75;13/01/2026;02/02/2026;-12\n"
    path.write_text("id;net;gross;day;due;n\n" + rows * 3)
    text, rejects, _ = value_rejects(path, InferOptions(streams=1))
    assert rejects == []
    # `net` has groups, `gross` has none: they share nothing. Of the dates one fits two patterns.
    assert "formats:" not in text
    path.write_text(path.read_text().replace("1.249", "1249").replace("01/01/2026", "31/01/2026"))
    text, rejects, _ = value_rejects(path, InferOptions(streams=1))
    assert rejects == []
    assert 'formats: {number: {decimal: ","}, date: dd/MM/yyyy}\n' in text
    assert "format: " not in text


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=columns(),
    encoding=strategies.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-be"]),
    row_end=strategies.sampled_from(["\n", "\r\n", "\r"]),
    title=strategies.sampled_from(["", "", "Report\n", "Report of May\n\nby nobody\n"]),
    footer=strategies.sampled_from(["", "", "Total\n", "3 rows\nend\n"]),
    is_packed=strategies.booleans(),
    files=strategies.integers(1, 2),
)
def test_files_as_other_programs_write_them_load_by_their_layouts(
    tmp_path: Path,
    values: list[list[str | None]],
    encoding: str,
    row_end: str,
    title: str,
    footer: str,
    is_packed: bool,
    files: int,
) -> None:
    text = title + written(values, ";", csv.QUOTE_MINIMAL, has_header=True) + footer
    paths = [tmp_path / f"file_{number}.csv{'.gz' if is_packed else ''}" for number in range(files)]

    def write(row_end: str) -> None:
        content = text.replace("\n", row_end).encode(encoding, errors="replace")
        for path in paths:
            path.write_bytes(gzip.compress(content) if is_packed else content)

    write(row_end)
    try:
        inferred = infer_files(paths, InferOptions(streams=2))
    except SourceError:
        assert not any(value.strip(" \t") for column in values for value in column if value is not None)
        return
    layout = layout_text(inferred)
    report = check_files(paths, read_layout(layout.encode(), "layout"), 2)
    kinds = report["rejects"]["by_column"]
    assert [kind for kind in kinds if not str(kind["code"]).startswith("HR1")] == [], layout
    assert report["rejects"]["count"] == inferred.misfits["count"], layout
    if row_end == "\r":
        # What rows end with changes nothing else.
        write("\n")
        plain = infer_files(paths, InferOptions(streams=2))
        assert inferred.dialect == {**plain.dialect, "row_end": "cr"}, layout
        assert (inferred.rows, inferred.columns, inferred.doubts) == (plain.rows, plain.columns, plain.doubts)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=columns(),
    delimiter=strategies.sampled_from(",;\t|"),
    quoting=strategies.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    has_header=strategies.booleans(),
    is_given=strategies.booleans(),
)
# Blanks in the same places of all lines, but between qualifiers.
@example(values=[["1/1/1 9:05"] * 3], delimiter=",", quoting=csv.QUOTE_ALL, has_header=False, is_given=False)
@example(values=[["New York"] * 3], delimiter=",", quoting=csv.QUOTE_MINIMAL, has_header=False, is_given=False)
@example(
    values=[["an apple", "no apple", "my apple"]],
    delimiter=",",
    quoting=csv.QUOTE_ALL,
    has_header=False,
    is_given=False,
)
def test_random_files_load_by_their_layouts(
    tmp_path: Path, values: list[list[str | None]], delimiter: str, quoting: Quoting, has_header: bool, is_given: bool
) -> None:
    path = tmp_path / "file.csv"
    path.write_text(written(values, delimiter, quoting, has_header=has_header), encoding="utf-8")
    found = Given(delimiter=delimiter, header=has_header) if is_given else Given()
    try:
        text, rejects, rows = value_rejects(path, InferOptions(given=found, streams=2))
    except SourceError as error:
        if "fixed width" in error.what:
            # What stands there by chance looks so.
            lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
            assert len(values) == 1 and len({len(line) for line in lines}) == 1 and len(set(lines)) > 1
            assert any(set(places) == {" "} for places in zip(*lines, strict=True))
            return
        # Nothing but blank lines, and perhaps a header.
        assert not any(value.strip(" \t") for column in values for value in column if value is not None)
        return
    assert rejects == [], text
    if is_given and has_header:
        assert rows <= len(values[0])
