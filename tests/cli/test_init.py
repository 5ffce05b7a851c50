"""`headrace init`: from unknown files to a loaded table."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import duckdb
import pytest

from headrace import model
from headrace.infer.package import table_name
from tests.cli.conftest import CommandLine
from tests.cli.infer_files import FILES
from tests.snapshots import assert_snapshot


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: files of two kinds, and one whose name is difficult."""
    monkeypatch.chdir(tmp_path)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    for number in (1, 2, 10):
        (inbox / f"orders_{number}.csv").write_text(f"id;day;amount\n{number};31/12/2025;1,5\n{number + 100};;12\n")
    (inbox / "customers.csv").write_text('id,name\n1,"Smith, Ada"\n2,\n')
    (inbox / "we[ir]d ${x}.csv").write_text("id|when\n1|03/04/2026\n")
    return tmp_path


def files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted((folder / "inbox").iterdir())]


def without_seconds(text: str) -> str:
    return re.sub(r"in [0-9.]+ s", "in N s", text)


def test_files_become_a_package_that_loads_them(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("init", *files(folder), "--folder", "sales")
    assert outcome.exit_code == 0
    assert_snapshot("init", without_seconds(outcome.text()))
    made = sorted(path for path in (folder / "sales").rglob("*") if path.is_file())
    parts = [f"--- {path.relative_to(folder)}\n{path.read_text()}" for path in made]
    assert_snapshot("init_files", "\n".join(parts).replace(str(folder), "FOLDER"))
    assert headrace("run", "sales/package.yaml", "--quiet").exit_code == 0
    with duckdb.connect(str(folder / "sales" / "sales.duckdb"), read_only=True) as database:
        tables = {
            table: database.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
            for table in ("orders", "customers", "we_ir_d_x")
        }
    assert len(tables["orders"]) == 6
    assert tables["customers"] == [(1, "Smith, Ada"), (2, None)]
    assert tables["we_ir_d_x"] == [(1, "03/04/2026")]


@pytest.mark.parametrize(("name", "mark"), [("titles", ""), ("comments", "# ")])
def test_rows_below_many_lines_are_loaded(name: str, mark: str, folder: Path, headrace: CommandLine) -> None:
    front = "".join(f"{mark}Instrument setting {number}\n" for number in range(250))
    rows = "".join(f"{number};n{number};{number}.5\n" for number in range(600))
    (folder / "values.csv").write_text(f"{front}id;name;value\n{rows}")
    assert headrace("init", "values.csv", "--folder", name).exit_code == 0
    assert headrace("run", f"{name}/package.yaml", "--quiet").exit_code == 0
    with duckdb.connect(str(folder / name / f"{name}.duckdb"), read_only=True) as database:
        found = database.execute('SELECT count(*), min(name), max(id), max(value)::text FROM "values"').fetchone()
    assert found == (600, "n0", 599, "599.5")


def test_nothing_is_overwritten(folder: Path, headrace: CommandLine) -> None:
    (folder / "layouts").mkdir()
    (folder / "layouts" / "orders.yaml").write_text("mine")
    outcome = headrace("init", "inbox/orders_1.csv")
    assert outcome.exit_code == 1
    assert_snapshot("init_existing", outcome.text())
    assert not (folder / "package.yaml").exists()
    (folder / "package.yaml").write_text("mine")
    assert_snapshot("init_existing_package", headrace("init", "inbox/customers.csv").text())
    assert (folder / "package.yaml").read_text() == "mine"


def test_a_destination_of_its_own_is_created_only(folder: Path, headrace: CommandLine) -> None:
    url = "postgresql://loader@db.example/${env:DATABASE}"
    assert headrace("init", "inbox/customers.csv", "--to", url, "--package", "My Data!").exit_code == 0
    assert_snapshot("init_postgres", (folder / "package.yaml").read_text())
    environ = {**os.environ, "DATABASE": "x"}
    model.load_package(folder / "package.yaml", sets=[], connections=[], streams=None, environ=environ)


@pytest.mark.parametrize(
    ("name", "to"),
    [("password", "postgresql://me:secret-word@db/x"), ("scheme", "mysql://x"), ("no_scheme", "warehouse")],
)
def test_destinations_that_are_refused(name: str, to: str, folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("init", "inbox/customers.csv", "--to", to)
    assert outcome.exit_code == 6
    assert "secret-word" not in outcome.text()
    assert_snapshot(f"init_{name}", outcome.text())
    assert not (folder / "package.yaml").exists()


def test_a_file_that_is_no_table_stops_it(folder: Path, headrace: CommandLine) -> None:
    (folder / "inbox" / "x.json").write_text("{}\n")
    outcome = headrace("init", "inbox/customers.csv", "inbox/x.json")
    assert outcome.exit_code == 1
    assert not (folder / "package.yaml").exists()


def test_json(folder: Path, headrace: CommandLine) -> None:
    document = json.loads(headrace("init", *files(folder), "--folder", "sales", "--json").stdout)
    assert document["files"][-1] == "sales/package.yaml"
    assert {table["table"]: table["rows"] for table in document["tables"]} == {
        "customers": 2,
        "orders": 6,
        "we_ir_d_x": 1,
    }


SPECIAL_FILES = [
    "semicolon_commas.csv",
    "all_qualified.csv",
    "codes.csv",
    "null_words.csv",
    "header_alone.csv",
    "double_names.csv",
    "preamble.csv",
    "comments.csv",
    "latin.csv",
    "utf16.csv",
    "carriage_returns.csv",
    "misfits.csv",
    "escaped.csv",
    "blanks_beside_qualifiers.csv",
    "control_bytes.csv",
    "only_nulls.csv",
    "one_value.csv",
    "shared_formats.csv",
    "nul_in_one_row.csv",
    "escape_sequence.csv",
    "yaml_words.csv",
]


@pytest.mark.parametrize("name", SPECIAL_FILES)
def test_a_package_runs_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headrace: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(FILES[name])
    (table,) = json.loads(headrace("init", name, "--json").stdout)["tables"]
    assert headrace("check", "package.yaml").exit_code == 0
    outcome = headrace("run", "package.yaml", "--json")
    rows, misfits = table["rows"], table["misfits"]["count"]
    # More than 1 % that do not fit are no success.
    assert outcome.exit_code == int(100 * misfits > rows + misfits), outcome.text()
    if rows and outcome.exit_code == 0:
        (loaded,) = json.loads(outcome.stdout)["tables"]
        assert (loaded["rows_loaded"], loaded["rows_rejected"]) == (rows, misfits)


@pytest.mark.parametrize("misfits", [0, 1, 2, 3, 60])
def test_a_few_rows_that_do_not_fit_are_rejects_and_more_are_no_success(
    misfits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headrace: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{number},name {number}\n" for number in range(200 - misfits)]
    (tmp_path / "rows.csv").write_text("id,name\n" + "".join(rows) + "1,2,3\n" * misfits)
    headrace("init", "rows.csv")
    text = (tmp_path / "package.yaml").read_text()
    assert ("rejects: {percent: 1}" in text) == (misfits > 0)
    assert headrace("run", "package.yaml").exit_code == int(misfits > 2)
    if misfits == 3:
        assert_snapshot("init_misfits", text.replace(tmp_path.name, "FOLDER"))


def test_a_run_repeats_the_doubts_about_a_file_until_they_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headrace: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    # A title, an encoding, a word for null, and a column that could be numbers.
    rows = "".join(f"{number};Straße {number};{'n/a' if number % 9 else number};{number},5\n" for number in range(50))
    (tmp_path / "rows.csv").write_text(f"Umsätze\nid;name;count;amount\n{rows}", encoding="cp1252")
    headrace("init", "rows.csv")
    layout = tmp_path / "layouts" / "rows.yaml"
    lines = layout.read_text().splitlines()
    written = [number for number, line in enumerate(lines, start=1) if line.startswith("# doubt: ")]
    written += [number for number, line in enumerate(lines, start=1) if line.endswith(" taken for null")]
    assert len(written) > 2
    for left in range(len(written), -1, -1):
        document = json.loads(headrace("run", "package.yaml", "--json").stdout)
        found = [(doubt["file"], lines[doubt["line"] - 1].partition("# doubt: ")[2]) for doubt in document["doubts"]]
        assert found == [("layouts/rows.yaml", doubt["text"]) for doubt in document["doubts"]]
        assert len(found) == left
        talk, quiet = headrace("run", "package.yaml").stderr, headrace("run", "package.yaml", "--quiet").stderr
        block = "".join(f"    line {doubt['line']}: {doubt['text']}\n" for doubt in document["doubts"])
        head = "open doubts (delete a line from the layout once it is settled):\n  layouts/rows.yaml\n"
        assert (head + block in talk) == (left > 0)
        number = "1 open doubt" if left == 1 else f"{left} open doubts"
        assert quiet.splitlines() == ([f"note: {number} in layouts/rows.yaml"] if left else [])
        if left:
            del lines[document["doubts"][0]["line"] - 1]
            layout.write_text("\n".join(lines) + "\n")


def test_files_in_two_encodings_are_two_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headrace: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, encoding, word in [("a_1", "utf-8", "plain"), ("a_2", "cp1252", "Größe"), ("b_1", "utf-8", "Größe")]:
        (tmp_path / f"{name}.csv").write_text(f"id;name\n1;{word}\n", encoding=encoding)
    tables = json.loads(headrace("init", "a_1.csv", "a_2.csv", "b_1.csv", "--json").stdout)["tables"]
    assert [(table["table"], table["files"], table["dialect"].get("encoding")) for table in tables] == [
        ("a", ["a_1.csv", "a_2.csv"], "windows-1252"),
        ("b", ["b_1.csv"], None),
    ]


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (["orders_w19.csv", "orders_w23.csv"], "orders"),
        (["orders_2026-05.csv", "orders_2026-06.csv"], "orders"),
        (["sales_north.csv", "sales_south.csv"], "sales"),
        (["Q1.csv.gz"], "q"),
        (["2026.csv"], "table_2026"),
        (["plan_b.csv"], "plan_b"),
    ],
)
def test_names_of_tables(names: list[str], table: str) -> None:
    assert table_name([Path(name) for name in names]) == table


def test_files_of_other_things_with_the_same_columns_are_tables_of_their_own(
    folder: Path, headrace: CommandLine
) -> None:
    for name in ("customers.csv", "suppliers.csv", "orders_north.csv", "orders_south.csv"):
        (folder / name).write_text(f"id,name\n1,{name}\n")
    arguments = ["customers.csv", "suppliers.csv", "orders_north.csv", "orders_south.csv", "--folder", "made", "--json"]
    tables = json.loads(headrace("init", *arguments).stdout)["tables"]
    assert [(len(table["files"]), [doubt["text"] for doubt in table["doubts"]]) for table in tables] == [
        (1, []),
        (1, []),
        (2, ["files of orders_north and orders_south have the same columns, and go into one table"]),
    ]
