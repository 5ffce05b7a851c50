"""Files with a qualifier: quoted delimiters, line breaks and quotes, from the command line to the table."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from tests.integration.driver import PACKAGE, Before, Project
from tests.snapshots import assert_snapshot

# What is wrong with a row does not depend on the processor.
pytestmark = pytest.mark.usefixtures("cpu_path")

QUALIFIED = PACKAGE.replace('delimiter: "|"', "delimiter: ','\n    qualifier: '\"'\n    header: skip")
KEPT = QUALIFIED.replace("header: skip", "header: skip\n    stray_qualifiers: keep")
HEADER = 'id,amount,"day,\nas it was",customer,note\n'
# What matters between qualifiers; NULL is nothing at all, an empty text is two qualifiers.
NOTES = ["plain", "a,b", "line\nbreak", "line\r\nbreak", 'say "no"', '"', '""\n,', "\n\n", "", None, '5" nail', "NULL"]
COLUMNS = "{id: 'BIGINT', amount: 'DECIMAL(9,2)', day: 'DATE', customer: 'VARCHAR', note: 'VARCHAR'}"


@pytest.fixture
def qualified(project: Project) -> Project:
    """A project whose layout has a qualifier."""
    project.package(QUALIFIED)
    return project


def field(value: object, always: bool) -> str:
    """A field as it stands in a file; in qualifiers where it must be, or wherever it can be."""
    text = "" if value is None else str(value)
    needed = value == "" or text.startswith('"') or any(character in text for character in ",\r\n")
    if value is None or not (needed or always):
        return text
    return '"' + text.replace('"', '""') + '"'


def write(path: Path, ids: range, row_end: str) -> None:
    """Rows of `ids`, the header in front."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(HEADER.rstrip("\n") + row_end)
        for number in ids:
            day = None if number % 7 == 0 else f"2024-02-{number % 28 + 1:02}"
            note = NOTES[number % len(NOTES)]
            values = [number, Decimal(number % 1000) / 4, day, f"cust {number % 900}", note]
            file.write(",".join(field(value, number % 3 == 0) for value in values) + row_end)


def differences(project: Project, files: list[Path], row_end: str) -> list[tuple[object, ...]]:
    """Rows that only the table or only DuckDB's own reader has."""
    paths = ", ".join(f"'{path}'" for path in files)
    new_line = row_end.encode("unicode_escape").decode()
    own = (
        f"(SELECT * FROM read_csv([{paths}], delim = ',', quote = '\"', escape = '\"', new_line = '{new_line}', "
        "header = true, nullstr = '', allow_quoted_nulls = false, auto_detect = false, parallel = false, "
        f"columns = {COLUMNS}))"
    )
    both = f"(FROM orders EXCEPT ALL FROM {own}) UNION ALL (FROM {own} EXCEPT ALL FROM orders)"
    return project.query(both)


@pytest.mark.parametrize("row_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_qualified_files_load_as_duckdb_reads_them(qualified: Project, row_end: str) -> None:
    qualified.package(KEPT)
    files = [qualified.inbox / f"orders.tbl.{number}" for number in range(3)]
    for number, path in enumerate(files):
        write(path, range(number * 30_000, (number + 1) * 30_000), row_end)
    assert files[0].stat().st_size > 1_000_000  # more than one block
    summary = qualified.run().succeeded()
    assert [summary[name] for name in ("rows_read", "rows_loaded", "rows_rejected", "rows_skipped")] == [
        90_000, 90_000, 0, 3,
    ]  # fmt: skip
    assert qualified.query("SELECT count(*) FROM headrace.slice WHERE slice > 0") == [(3,)]
    assert differences(qualified, files, row_end) == []
    notes = qualified.query(f"SELECT DISTINCT note FROM orders WHERE id < {len(NOTES)} ORDER BY note NULLS LAST")
    assert {note for (note,) in notes} == set(NOTES)


@pytest.mark.parametrize("streams", ["1", "4"])
def test_a_file_is_cut_behind_rows(qualified: Project, streams: str) -> None:
    """Whatever the slices: the rows of one pass from the front."""
    qualified.package(KEPT)
    path = qualified.inbox / "orders.tbl.1"
    write(path, range(300_000), "\n")
    ended = qualified.command([*qualified.arguments()[:3], "plan", "package.yaml", "--json"])
    assert ended.exit_code == 0, ended.stderr
    (flow,) = json.loads(ended.stdout)["tasks"]
    assert len(flow["slices"]) > 1
    summary = qualified.run("--streams", streams).succeeded()
    assert (summary["rows_loaded"], summary["rows_skipped"]) == (300_000, 1)
    assert differences(qualified, [path], "\n") == []


@pytest.mark.parametrize("stray", ["reject", "keep", "lenient"])
def test_slices_have_the_rows_of_one_reading_whatever_stray_qualifiers_are(qualified: Project, stray: str) -> None:
    qualified.package(QUALIFIED.replace("header: skip", f"header: skip\n    stray_qualifiers: {stray}"))
    # Leniently one field, otherwise many rows: a cut by other rules than those of the rows is inside of one of them.
    lenient = '"e' + f'"{"f" * 80}\n' * 10 + 'g"'
    customers = ['"a,\nb"', lenient, '5" nail', lenient, ' "h"', lenient, '"i""\n""j"', lenient, 'k"', ""]
    rows = [f'{n},1.00,,{customers[n % 10]},{"n" * (n % 40)}{n}"\n' for n in range(25_000)]

    def loaded(streams: str) -> tuple[object, ...]:
        summary = qualified.run("--streams", streams, limit=1_000_000).succeeded()
        counts = [summary[name] for name in ("rows_read", "rows_loaded", "rows_rejected")]
        notes = [note for note in summary["tables"][0]["notes"] if "qualifier" in note]
        slices.append(summary["tables"][0]["slices"])
        return counts, notes, qualified.query("SELECT count(*), sum(hash(orders)) FROM orders")

    slices: list[int] = []
    # Each of these is read in one piece.
    parts = [qualified.file(f"orders.tbl.{first}", HEADER + "".join(rows[first::8])) for first in range(8)]
    expected = loaded("1")
    for part in parts:
        part.unlink()
    qualified.file("orders.tbl.1", HEADER + "".join(row for first in range(8) for row in rows[first::8]))
    assert (loaded("1"), loaded("16")) == (expected, expected)
    assert slices[0] == 8 and slices[1] > 1


BAD_ROWS = {
    "text_after_qualifier": '101,1.00,2024-01-01,"Miller" Joe,x\n',
    "unclosed_qualifier": '101,1.00,2024-01-01,"Miller,x\n102,2.00,2024-01-01,y,z\n',
    "qualified_empty_number": '101,"",2024-01-01,Miller,x\n',
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_the_first_bad_row_is_named_in_rows_not_lines(qualified: Project, name: str) -> None:
    before = Before.of(qualified)
    good = "".join(f'{number},1.00,,"a\nb",\n' for number in range(1, 101))
    qualified.file("orders.tbl.1", HEADER + good + BAD_ROWS[name])
    ended = qualified.run()
    assert ended.exit_code == 1
    assert ended.summary["error"]["at"]["row"] == 102
    assert_snapshot(f"qualified_{name}", qualified.stable(ended.error))
    before.check("failed")


def test_rejects_keep_their_bytes_and_nothing_else_is_lost(qualified: Project) -> None:
    behind = '103,1.00,,"a\nb",\n'
    content = HEADER + BAD_ROWS["text_after_qualifier"] + behind + BAD_ROWS["unclosed_qualifier"]
    qualified.file("orders.tbl.1", content)
    summary = qualified.run(limit=2).succeeded()
    assert (summary["rows_loaded"], summary["rows_rejected"], summary["rows_skipped"]) == (1, 2, 1)
    assert qualified.query("SELECT id, note, customer FROM orders") == [(103, None, "a\nb")]
    files = summary["tables"][0]["rejects"]["files"]
    rejects = [json.loads(line) for line in Path(files[0]).read_text().splitlines()]
    assert [(reject["row"], reject["code"], reject["column"]) for reject in rejects] == [
        (2, "HR104", "customer"),
        (4, "HR105", "customer"),
    ]
    assert [content.encode()[reject["byte"] :][:7] for reject in rejects] == [b'"Miller', b'"Miller']
    assert Path(files[1]).read_text() == BAD_ROWS["text_after_qualifier"] + BAD_ROWS["unclosed_qualifier"]
