"""The page of every scenario: whole, escaped, without secrets, small."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import OutputError
from headrace.report import write_report
from tests.report.conftest import RUN_ID
from tests.report.scenarios import SCENARIOS, duckdb_run, failed_run, run_with_rejects
from tests.report.synthetic import write_json
from tests.snapshots import assert_snapshot

_VOID = {"meta", "br", "hr", "link"}
MEGABYTE = 1_000_000


class Outline(HTMLParser):
    """Checks that elements are nested, and keeps headings, names, ids and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.images = 0
        self.lines: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        own = dict(attributes)
        if tag not in _VOID:
            self.open.append(tag)
        if own.get("id"):
            self.ids.append(str(own["id"]))
        self.references += (own.get("aria-labelledby") or "").split()
        self.references += [str(own["href"])[1:]] if (own.get("href") or "").startswith("#") else []
        self.images += own.get("role") == "img"

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.open or "style" in self.open:
            return
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(data)
        if data.strip():
            self.lines.append(data.strip())


def outline(path: Path) -> Outline:
    reader = Outline()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_page_is_whole(name: str, report_of: Callable[[str], Path]) -> None:
    found = outline(report_of(name))
    assert len(found.ids) == len(set(found.ids))
    assert set(found.references) - {"accounts"} <= set(found.ids)
    text = report_of(name).read_text(encoding="utf-8")
    assert not re.search(r"\b(nan|inf|None|Traceback)\b", " ".join(found.lines))
    assert not re.search(r"(?:src|href)=\"(?!#)", text)
    assert "http:" not in text.replace("http://www.w3.org", "")


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_said(name: str, report_of: Callable[[str], Path]) -> None:
    """All texts of the page but those of tables that stand for charts, of axes, and of what is pointed at."""
    text = re.sub(r'<details class="figures".*?</details>', "", report_of(name).read_text(encoding="utf-8"))
    text = re.sub(r"<title>[^<]*</title>|<text [^>]*>[^<]*</text>|<ol class=\"labels.*?</ol>", "", text)
    reader = Outline()
    reader.feed(text)
    assert_snapshot(f"page_{name}", "\n".join(reader.lines))


def test_charts_have_names_and_tables(report_of: Callable[[str], Path]) -> None:
    text = report_of("duckdb").read_text(encoding="utf-8")
    charts = re.findall(r'aria-labelledby="([\w-]+)-title', text)
    assert len(charts) >= 10
    for name in charts:
        assert f'<title id="{name}-title">' in text
        assert re.search(f'<desc id="{name}-description">[^<]{{10}}', text)
    assert {name for name in charts if f'id="{name}-table"' not in text} == {"spent"}, "its legend tells all"


def test_series_are_thinned(report_of: Callable[[str], Path]) -> None:
    text = report_of("hour").read_text(encoding="utf-8")
    paths = re.findall(r'<path class="(line|area|ridge)[^>]* d="([^"]*)"', text)
    assert len(paths) > 60
    for kind, path in paths:
        points = path.count("L") + 1
        assert points <= (1_200 if kind == "area" else 602)


def test_size(report_of: Callable[[str], Path]) -> None:
    """56 streams over an hour, and 2,000 slices."""
    assert report_of("hour").stat().st_size < 2 * MEGABYTE
    assert report_of("many_slices").stat().st_size < MEGABYTE


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a\x1b[2J\x00b", "\ud800"]
)
def test_names_stay_texts(tmp_path: Path, name: str) -> None:
    folder = run_with_rejects(tmp_path / RUN_ID, table="placeholder")
    for path in folder.iterdir():
        replaced = path.read_text(encoding="utf-8").replace('"placeholder"', json.dumps(name))
        path.write_text(replaced, encoding="utf-8")
    written = write_report(folder).path.read_text(encoding="utf-8")
    assert written.count("<script>") == 1, "the page's own"
    assert "<img" not in written
    assert "\x1b" not in written and "\x00" not in written
    outline(folder / "report.html")


CANARY = "c4n4ry-S3cret-pw"


def _with_canary(data: Any) -> Any:
    """Every text of a document with a URL that has a password."""
    if isinstance(data, dict):
        own = ("event", "kind", "at", "status", "task", "run_id", "run_folder")  # what Headrace itself makes
        return {name: value if name in own else _with_canary(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_with_canary(item) for item in data]
    return f"{data} postgresql://loader:{CANARY}@db/sales" if isinstance(data, str) else data


@pytest.mark.parametrize("make", [duckdb_run, failed_run, run_with_rejects])
def test_passwords_in_urls_are_hidden(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """Even if the run had not hidden them when it wrote its files."""
    folder = make(tmp_path / RUN_ID)
    for path in folder.iterdir():
        if path.suffix == ".json":
            write_json(path, _with_canary(json.loads(path.read_text())))
        else:
            lines = [json.dumps(_with_canary(json.loads(line))) for line in path.read_text().splitlines()]
            path.write_text("\n".join(lines) + "\n")
    text = write_report(folder).path.read_text(encoding="utf-8")
    assert CANARY not in text
    assert "//***@db" in text


def test_values_of_rejected_rows_are_not_shown(tmp_path: Path) -> None:
    folder = run_with_rejects(tmp_path / RUN_ID)
    summary = json.loads((folder / "summary.json").read_text())
    for kind in summary["tables"][0]["rejects"]["by_column"]:
        kind["first"][0]["value"] = CANARY
    write_json(folder / "summary.json", summary)
    assert CANARY not in write_report(folder).path.read_text(encoding="utf-8")


def test_a_folder_with_nothing(tmp_path: Path) -> None:
    written = write_report(tmp_path)
    assert written.status is None
    assert written.notes[0].startswith("The run has written next to nothing")


def test_every_file_may_be_missing(tmp_path: Path) -> None:
    for number, name in enumerate(("summary.json", "events.jsonl", "metrics.jsonl", "request.json", "sources.json")):
        folder = duckdb_run(tmp_path / str(number) / RUN_ID)
        (folder / name).unlink()
        assert write_report(folder).size_bytes > 20_000


def test_every_line_may_be_the_last(tmp_path: Path) -> None:
    """Cut anywhere, as a run that goes on leaves its files."""
    folder = failed_run(tmp_path / RUN_ID)
    (folder / "summary.json").unlink()
    for name in ("metrics.jsonl", "events.jsonl"):
        whole = (folder / name).read_bytes()
        for end in range(0, len(whole), max(1, len(whole) // 40)):
            (folder / name).write_bytes(whole[:end])
            write_report(folder)
        (folder / name).write_bytes(whole)


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    folder = failed_run(tmp_path / RUN_ID)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="the report cannot be written"):
        write_report(folder, tmp_path / "file" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError):
        write_report(folder, tmp_path / "folder")
    assert [name for name in os.listdir(tmp_path) if "unfinished" in name] == []
