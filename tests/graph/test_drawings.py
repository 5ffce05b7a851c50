"""What is in the text for Mermaid and in the SVG: everything, as it was written, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from headrace.errors import without_controls
from headrace.graph import Box, Graph, Line, graph_of, to_mermaid, to_svg
from headrace.model import load_package
from tests.graph.pictures import ALL_KINDS, HOSTILE, PACKAGES, ROOT, graph, later_graph
from tests.graph.random_graphs import graphs
from tests.snapshots import assert_file, assert_snapshot

SVG = "{http://www.w3.org/2000/svg}"
# The few forms of lines that there are. Between quotation marks: what is no markup anywhere in Mermaid.
# No two dollars, which begin a formula, no icons, no backslash before an n, and never nothing.
_QUOTED = r'"(?:(?!\$\$|:fa-|\#92;n)[\w\s.,:/=+*()$\'!?-]|\#\d+;|<br/>)+"'
_MERMAID = re.compile(
    rf"""flowchart\ TB
    | \ +acc(?:Title|Descr):[^"#;<>{{}}\[\]%]*
    | \ +n\d+(?:\[{_QUOTED}\]|\[/{_QUOTED}/\]|\[\\{_QUOTED}\\\]|\[\({_QUOTED}\)\]|\{{\{{{_QUOTED}\}}\}})
    | \ +subgraph\ n\d+\[{_QUOTED}\]
    | \ +direction\ (?:TB|LR)
    | \ +end
    | \ +n\d+\ (?:-->|-\.->|-\.-o|==>|-\.-x|(?:--|-\.|==)\ {_QUOTED}\ (?:-->|\.->|\.-o|==>|\.-x))\ n\d+
    | \ +classDef\ off\ [\w:,.\ -]+
    | \ +class\ n\d+(?:,n\d+)*\ off
    | \ +linkStyle\ \d+(?:,\d+)*\ stroke:\#[0-9a-f]{{6}}""",
    re.VERBOSE,
)


@pytest.mark.parametrize("name", PACKAGES)
def test_mermaid_of_a_package(name: str) -> None:
    assert_snapshot(f"mermaid_{name}", to_mermaid(graph(name)))


def test_a_flow_of_a_later_version() -> None:
    assert_snapshot("mermaid_later", to_mermaid(later_graph()))


def test_left_out_tasks() -> None:
    drawn = graph_of(load_package(ALL_KINDS, environ={}), {"loop", "loop.flow"})
    assert {box.id: box.mark for box in drawn.boxes() if box.mark} == {
        "loop": "LEFT OUT",
        "loop.flow": "LEFT OUT",
        "subgraph": "DISABLED",
    }


def test_parts_that_are_called_alike(tmp_path: Path) -> None:
    """A source, a transform and their tables, and a table called as the rejects are: a box for each, lines between."""
    (tmp_path / "package.yaml").write_text(
        """
headrace: 1
package: alike
connections:
  inbox: {type: files, path: .}
  out: {type: duckdb, path: out.duckdb}
layouts:
  lines: {delimiter: ",", columns: [{name: day, type: date}]}
tasks:
  load:
    data_flow:
      rejects: {limit: 5}
      sources: {lines: {connection: inbox, files: "*.csv", layout: lines}}
      transforms: {days: {input: lines, sql: "SELECT day, count(*) AS n FROM lines GROUP BY day"}}
      destinations:
        lines: {input: lines, connection: out, table: lines, target: replace}
        days: {input: days, connection: out, table: days, target: replace}
        rejects: {input: lines, connection: out, table: copies, target: replace}
""",
        encoding="utf-8",
    )
    drawn = graph_of(load_package(tmp_path / "package.yaml", environ={}), set())
    shapes = {box.id: box.shape for box in drawn.boxes()}
    assert len(shapes) == len(list(drawn.boxes())) == 7
    runs = {(shapes[line.begin], shapes[line.end], line.kind) for line in drawn.lines()}
    assert runs == {
        ("file", "transform", "rows"),
        ("file", "table", "rows"),
        ("transform", "table", "rows"),
        ("file", "rejects", "rejects"),
        ("transform", "rejects", "rejects"),
    }
    assert not [line for line in drawn.lines() if line.begin == line.end]


def test_a_line_whose_text_is_blank() -> None:
    boxes = tuple(Box(name, "task", "a title", "sql") for name in ("r.0", "r.1"))
    drawn = Graph(Box("r", "package", "a package", "", boxes=boxes, lines=(Line("r.0", "r.1", "event", "\n"),)))
    assert "n1 -.-o n2" in to_mermaid(drawn)


@settings(deadline=None)
@given(graphs())
def test_mermaid_of_any_graph(drawn: Graph) -> None:
    text = to_mermaid(drawn)
    for line in text.splitlines():
        assert _MERMAID.fullmatch(line), line
    assert text == to_mermaid(drawn)
    named = re.findall(r"^ +(?:subgraph )?(n\d+)[\[{]", text, re.MULTILINE)
    assert len(named) == len(set(named)) == len(list(drawn.boxes()))
    lines = re.findall(r"^ +n\d+ .* n\d+$", text, re.MULTILINE)
    assert len(lines) == len(list(drawn.lines()))
    assert text.count("\n" + " " * 2) and len(re.findall(r"^ +subgraph ", text, re.MULTILINE)) == len(
        re.findall(r"^ +end$", text, re.MULTILINE)
    )


@settings(deadline=None)
@given(graphs())
def test_svg_of_any_graph(drawn: Graph) -> None:
    text = to_svg(drawn)
    root = ElementTree.fromstring(text)
    assert text == to_svg(drawn)
    described = [(node.text or "") for node in root.iter(f"{SVG}title")]
    for box in drawn.boxes():
        assert any(title.startswith(shown(box.title)) for title in described)
    runs = [node for node in root.iter(f"{SVG}path") if node.get("class") == "run"]
    samples = len({line.kind for line in drawn.lines()})
    assert len(runs) == len(list(drawn.lines())) + samples


def shown(text: str) -> str:
    """As a parser of XML gives it back."""
    return without_controls(text)


@pytest.mark.parametrize("name", PACKAGES)
def test_svg_needs_nothing_else(name: str) -> None:
    """No script, nothing that is fetched, and words for those who do not see it."""
    text = to_svg(graph(name))
    root = ElementTree.fromstring(text)
    assert {node.tag.removeprefix(SVG) for node in root.iter()} <= {
        "svg", "title", "desc", "style", "g", "rect", "path", "text",
    }  # fmt: skip
    assert not re.search(r"url\(|@import|href|https?://(?!www\.w3\.org/2000/svg)", text)
    assert root.get("role") == "img"
    ids = {node.get("id"): node for node in root.iter() if node.get("id")}
    for label in (root.get("aria-labelledby") or "").split():
        assert ids[label].text


def test_hostile_names_are_texts() -> None:
    boxes = tuple(Box(f"b{number}", "task", name) for number, name in enumerate(HOSTILE))
    drawn = Graph(Box("", "package", "end", boxes=boxes))
    texts = [node.text or "" for node in ElementTree.fromstring(to_svg(drawn)).iter(f"{SVG}text")]
    for name in ("end", "<script>alert(1)</script>", "&amp;", "]]>", '"quoted"'):
        assert name in texts
    assert all(_MERMAID.fullmatch(line) for line in to_mermaid(drawn).splitlines())


CANARY = "canary-71b0c4"
SECRETIVE = """
headrace: 1
package: secretive
description: about ${env:SECRET}
connections:
  w: {type: postgres, url: "postgresql://user:${env:SECRET}@nowhere.invalid/db"}
  inbox: {type: files, path: "/nowhere/${env:SECRET}"}
layouts:
  l: {delimiter: "|", columns: [{name: id, type: int64}]}
tasks:
  load:
    data_flow:
      rejects: {limit: 5}
      sources: {rows: {connection: inbox, files: "a_${env:SECRET}.csv", layout: l}}
      destinations: {out: {input: rows, connection: w, table: "t_${env:SECRET}", target: append, load: single}}
  literal:
    sql: {connection: w, text: "SELECT 'canary-71b0c4'"}
"""


def test_no_secret_is_in_it_and_nothing_is_opened(tmp_path: Path) -> None:
    """Neither folder nor server exists."""
    path = tmp_path / "secretive.yaml"
    path.write_text(SECRETIVE)
    package = load_package(path, environ={"SECRET": CANARY})
    drawn = graph_of(package)
    for text in (to_svg(drawn), to_mermaid(drawn), repr(drawn.to_dict())):
        assert CANARY not in text
        assert CANARY[:9] not in text
        assert "***" in text or "#42;" in text


@pytest.mark.parametrize("name", ["tpch", "nightly"])
def test_pictures_of_the_documents(name: str) -> None:
    assert_file(ROOT / "docs/images" / f"graph-{name}.svg", to_svg(graph(name)))


def test_svg_of_all_kinds() -> None:
    assert_file(Path(__file__).parent / "snapshots" / "all_kinds.svg", to_svg(graph("all_kinds")))


def test_svg_of_a_flow_of_a_later_version() -> None:
    assert_file(Path(__file__).parent / "snapshots" / "later.svg", to_svg(later_graph()))
