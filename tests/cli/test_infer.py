"""`headrace infer` on files as other programs write them: what it prints, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import duckdb
import pytest

from headrace.model.layout_text import read_layout
from tests.cli.conftest import CommandLine
from tests.cli.infer_files import FILES
from tests.snapshots import assert_snapshot


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with all files."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_file(name: str, folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("infer", name, "--quiet")
    if outcome.exit_code == 0:
        read_layout(outcome.stdout.encode(), name)
        assert_every_row_fits(folder / name, outcome.stdout, headrace)
    assert_snapshot(f"infer_{name.partition('.')[0]}", outcome.text().replace(str(folder), "FOLDER"))


def assert_every_row_fits(path: Path, layout: str, headrace: CommandLine) -> None:
    """No value is rejected; rows of another shape, and what cannot be read, are told as doubts."""
    (path.parent / "layout.yaml").write_text(layout, encoding="utf-8")
    outcome = headrace("check", "--file", path, "--layout", path.parent / "layout.yaml", "--json")
    document = json.loads(outcome.stdout)
    doubts = ("# doubt: too ", "# doubt: NUL bytes", "# doubt: text behind ", "# doubt: quotes inside of values: ")
    is_told = any(doubt in layout for doubt in doubts)
    assert [kind for kind in document["by_column"] if not kind["code"].startswith("HR1")] == [] or is_told
    assert bool(document["rejected"]) == is_told


def test_several_files_have_one_layout(folder: Path, headrace: CommandLine) -> None:
    (folder / "a.csv").write_text("id;x\n1;1\n")
    (folder / "b.csv").write_text('id;x\n2;"a;b"\n')
    outcome = headrace("infer", "a.csv", "b.csv", "--out", "x.yaml")
    assert outcome.exit_code == 0
    assert outcome.stderr.startswith("x.yaml: 2 columns, 2 rows, ")
    assert_snapshot("infer_two_files", (folder / "x.yaml").read_text())
    outcome = headrace("infer", "a.csv", "--out", "x.yaml")
    assert_snapshot("infer_not_overwritten", outcome.text())


def test_files_of_two_kinds_are_refused(folder: Path, headrace: CommandLine) -> None:
    assert_snapshot("infer_two_kinds", headrace("infer", "plain.csv", "tabs.tsv").text())
    (folder / "latin2.csv").write_bytes("id;name\n1;ü\n".encode())
    assert_snapshot("infer_two_encodings", headrace("infer", "latin.csv", "latin2.csv").text())


def test_what_is_given_is_not_found(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("infer", "years_as_header.csv", "--header", "no", "--quiet")
    assert_snapshot("infer_given_header", outcome.text())
    outcome = headrace("infer", "two_delimiters.csv", "--delimiter", ",", "--encoding", "windows-1252", "--quiet")
    assert_snapshot("infer_given_delimiter", outcome.text())


@pytest.mark.parametrize(
    "arguments",
    [["--delimiter", "ab"], ["--encoding", "klingon"], ["--header", "maybe"], ["--sample", "1"]],
    ids=lambda arguments: arguments[0][2:],
)
def test_wrong_options(arguments: list[str], folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("infer", "plain.csv", *arguments)
    assert outcome.exit_code == 6
    assert_snapshot(f"infer_wrong_{arguments[0][2:]}", outcome.text())


def test_a_pipe_is_refused(folder: Path, headrace: CommandLine) -> None:
    os.mkfifo(folder / "pipe")
    assert_snapshot("infer_pipe", headrace("infer", "pipe").text())


def test_a_quote_behind_the_sample_is_found_by_the_pass(folder: Path, headrace: CommandLine) -> None:
    rows = [f"{number};text {number}\n" for number in range(80_000)]
    (folder / "late.csv").write_text("id;text\n" + "".join(rows) + '80000;"a;b"\n')
    outcome = headrace("infer", "late.csv", "--quiet")
    assert "qualifier: '\"'" in outcome.stdout
    assert_snapshot("infer_late_quote", outcome.text())


@pytest.mark.parametrize(
    ("last", "is_qualifier"),
    [('80000;"a"', True), ('80000;"a" b', False), ('80000;"a', False), ('80000;3" x 5"', False)],
    ids=["closed", "text behind", "open", "inches"],
)
def test_quotes_behind_the_sample_are_data_or_qualifiers(
    last: str, is_qualifier: bool, folder: Path, headrace: CommandLine
) -> None:
    # The quote stands before the end of the file, which is looked at.
    rows = [f"{number};text {number}\n" for number in range(80_000)]
    (folder / "late.csv").write_text("id;text\n" + "".join(rows) + f"{last}\n" + "".join(rows[:5000]))
    text = headrace("infer", "late.csv", "--quiet").stdout
    assert ("qualifier:" in text) == is_qualifier
    assert ("# doubt: quotes at the front of 1 value are taken for data" in text) == (
        not is_qualifier and '3"' not in last
    )


def test_a_sample_says_so(folder: Path, headrace: CommandLine) -> None:
    rows = [f"{number};text {number}\n" for number in range(200_000)]
    (folder / "long.csv").write_text("id;text\n" + "".join(rows))
    text = headrace("infer", "long.csv", "--sample", "1MB", "--quiet").stdout
    assert text.startswith("# doubt: only the first ")
    assert "nullable: false" not in text


def test_json_is_one_document(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("infer", "ambiguous_dates.csv", "--json")
    document = json.loads(outcome.stdout)
    assert outcome.stderr == ""
    document["seconds"] = 0
    assert_snapshot("infer_json", json.dumps(document, indent=2))


def test_the_same_file_gives_the_same_bytes(folder: Path, headrace: CommandLine) -> None:
    outputs = {headrace("infer", "misfits.csv").stdout for _ in range(3)}
    assert len(outputs) == 1


def test_keys_are_proved(folder: Path, headrace: CommandLine) -> None:
    rows = [f"{number},{number // 2},{number % 2},{number * 7 % 5000}" for number in range(4000)]
    rows[-1] = "3998" + rows[-1][4:]  # the first column is nearly one
    (folder / "keys.csv").write_text('nearly,half,odd,"a ""b"""\n' + "\n".join(rows) + "\n")
    assert "Candidate key: nearly" in headrace("infer", "keys.csv").stdout
    outcome = headrace("infer", "keys.csv", "--exact-keys", "--quiet")
    assert outcome.stdout.splitlines()[0].endswith('Key: a \\"b\\".')
    pairs = [f"{number // 2},{number % 2},x" for number in range(3000)]
    (folder / "pairs.csv").write_text("half,odd,same\n" + "\n".join(pairs) + "\n")
    assert "Key: half + odd." in headrace("infer", "pairs.csv", "--exact-keys", "--quiet").stdout
    assert "ey: " not in headrace("infer", "null_words.csv", "--exact-keys", "--quiet").stdout.replace("Key: id.", "")


def test_differences_to_a_table(folder: Path, headrace: CommandLine) -> None:
    with duckdb.connect(str(folder / "w.duckdb")) as database:
        database.execute("CREATE SCHEMA mart")
        database.execute(
            "CREATE TABLE mart.t (ID smallint, big bigint, text varchar(3), must integer NOT NULL, "
            "odd integer[], day integer, extra integer, needed integer NOT NULL)"
        )
        database.execute("CREATE TABLE same (a smallint)")
    rows = "40000;1;abcd;;1;2024-01-01;x\n7;2;ab;1;2;2024-01-02;y\n"
    (folder / "against.csv").write_text("id;big;text;must;odd;day;new\n" + rows)
    arguments = ["infer", "against.csv", "--to", "duckdb:w.duckdb", "--against"]
    outcome = headrace(*arguments, "mart.t", "--quiet")
    read_layout(outcome.stdout.encode(), "layout")
    assert_snapshot("infer_against", outcome.stdout[outcome.stdout.index("# against") :])
    document = json.loads(headrace(*arguments, "mart.t", "--json").stdout)
    assert {one["column"]: one["kind"] for one in document["differences"]}["new"] == "not_in_table"
    (folder / "same.csv").write_text("a\n1\n2\n")
    same = headrace("infer", "same.csv", "--to", "duckdb:w.duckdb", "--against", "same", "--quiet").stdout
    assert same.endswith("# against same: no difference\n")
    texts = [headrace(*arguments, "nothing").text(), headrace("infer", "same.csv", "--to", "duckdb:w.duckdb").text()]
    texts.append(headrace("infer", "same.csv", "--to", "mysql:x", "--against", "t").text())
    assert_snapshot("infer_against_refused", "\n".join(texts))


def test_keys_are_proved_of_values(folder: Path, headrace: CommandLine) -> None:
    """Not of texts: 1.0 and 1.00 are one number, NA is none."""
    (folder / "equal.csv").write_text("id,other,missing\n1.0,a,NA\n1.00,a,1\n2.5,b,2\n")
    outcome = headrace("infer", "equal.csv", "--exact-keys", "--quiet")
    assert "ey: " not in outcome.stdout
    (folder / "one.csv").write_text("id,other\n1.0,a\n1.50,a\n2.5,b\n")
    assert "Key: id." in headrace("infer", "one.csv", "--exact-keys", "--quiet").stdout
    outcome = headrace("infer", "one.csv", "--exact-keys", "--sample", "1MB")
    assert (outcome.exit_code, outcome.stdout) == (6, "")
    assert_snapshot("infer_keys_of_a_sample", outcome.text())


def test_a_file_that_is_given_twice(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("infer", "plain.csv", "./plain.csv")
    assert outcome.exit_code == 1
    assert_snapshot("infer_given_twice", outcome.text())
