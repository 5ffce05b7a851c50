"""`headrace check --file`: what a load would reject, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.snapshots import assert_snapshot

LAYOUT = """\
delimiter: ";"
header: check
columns:
  - {name: id, type: int16, nullable: false}
  - {name: day, type: date}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a layout, a good file and a bad one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "good.csv").write_text("id;day\n1;2024-01-01\n2;\n")
    bad = "".join(f"{number};2024-02-30\n" for number in range(5))
    (tmp_path / "bad.csv").write_text(f"id;day\n{bad};2024-01-01\n1;2;3\n99999;\n\x1b[31m;\n7;2024-01-01\n")
    return tmp_path


def test_files_that_fit(folder: Path, headrace: CommandLine) -> None:
    assert_snapshot("check_file_good", headrace("check", "--file", "good.csv", "--layout", "layout.yaml").text())
    assert sorted(path.name for path in folder.iterdir()) == ["bad.csv", "good.csv", "layout.yaml"]


def test_rejects_by_column_and_rule(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("check", "--file", "good.csv", "--file", "bad.csv", "--layout", "layout.yaml", "--streams", "3")
    assert outcome.exit_code == 1
    assert_snapshot("check_file_bad", outcome.text())
    assert sorted(path.name for path in folder.iterdir()) == ["bad.csv", "good.csv", "layout.yaml"]


def test_json_has_three_examples_of_each_kind(folder: Path, headrace: CommandLine) -> None:
    outcome = headrace("check", "--file", "bad.csv", "--layout", "layout.yaml", "--json")
    document = json.loads(outcome.stdout)
    assert (document["status"], document["rows"], document["rejected"]) == ("failed", 10, 9)
    kinds = {(kind["column"], kind["rule"]): (kind["count"], len(kind["first"])) for kind in document["by_column"]}
    assert kinds[("day", "bad_date")] == (5, 3)
    assert kinds[(None, "too_many_fields")] == (1, 1)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("no_layout", ["--file", "good.csv"]),
        ("no_file", ["--layout", "layout.yaml"]),
        ("package", ["package.yaml", "--file", "good.csv", "--layout", "layout.yaml"]),
        ("nothing", []),
        ("missing_layout", ["--file", "good.csv", "--layout", "no.yaml"]),
        ("missing_file", ["--file", "no.csv", "--layout", "layout.yaml"]),
        ("no_layout_file", ["--file", "good.csv", "--layout", "good.csv"]),
        ("other_header", ["--file", "other.csv", "--layout", "layout.yaml"]),
    ],
)
def test_refusals(name: str, arguments: list[str], folder: Path, headrace: CommandLine) -> None:
    (folder / "other.csv").write_text("id;date\n1;2024-01-01\n")
    text = headrace("check", *arguments).text().replace(str(folder), "FOLDER")
    assert_snapshot(f"check_file_{name}", text)
