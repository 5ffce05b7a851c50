"""The strict reading of YAML: values, places, and survival of any input."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.errors import HeadraceError, PackageError
from headrace.model import load_package, yaml_nodes
from headrace.model.yaml_nodes import YamlSyntaxError
from headrace.model.yaml_reader import Document, InvalidYamlError, parse_document
from headrace.model.yaml_scalars import resolve_plain
from tests.unit.model.packages import COMPLETE


def read(text: str | bytes) -> Document:
    return parse_document(text if isinstance(text, bytes) else text.encode(), Path("x.yaml"), "x.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-7", -7),
        ("18446744073709551616", 18446744073709551616),
        ("0.10", Decimal("0.10")),
        ("-3.0", Decimal("-3.0")),
    ],
)
def test_typed_scalars(text: str, value: object) -> None:
    result = read(f"a: {text}\n").value
    assert result == {"a": value}
    assert isinstance(result, dict)
    assert type(result["a"]) is type(value)


@pytest.mark.parametrize(
    "text",
    ["no", "yes", "on", "off", "True", "FALSE", "Null", "NULL", "010", "0x1F", "0o17", "0b1", "1_000", "+1", "-0",
     "1e3", "1.5e3", ".5", "5.", ".inf", ".nan", "1:30", "190:20:30", "2024-01-31", "2024-01-31T10:00:00", "=",
     "9" * 41],
)  # fmt: skip
def test_everything_else_is_text(text: str) -> None:
    assert read(f"a: {text}\n").value == {"a": text}


@pytest.mark.parametrize("text", ['"5"', "'5'", '"true"', "'null'", "|-\n  5", ">-\n  5"])
def test_quoted_scalars_are_text(text: str) -> None:
    result = read(f"a: {text}\n").value
    assert isinstance(result, dict)
    assert isinstance(result["a"], str)


@given(st.text())
@example("-0.0")
def test_a_number_reads_as_it_was_written(text: str) -> None:
    value = resolve_plain(text)
    if isinstance(value, Decimal):
        assert format(value, "f") == text
    elif isinstance(value, int) and not isinstance(value, bool):
        assert str(value) == text
    elif isinstance(value, str):
        assert value == text
    else:
        assert text in ("", "~", "null", "true", "false")


@given(st.integers(-(10**37), 10**37))
def test_every_integer_is_read(number: int) -> None:
    assert resolve_plain(str(number)) == number


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20))
def test_every_decimal_is_read_exactly(number: Decimal) -> None:
    value = resolve_plain(format(number, "f"))
    assert isinstance(value, Decimal)
    assert value.as_tuple() == number.as_tuple()


def test_places_of_keys_and_values() -> None:
    document = read("a:\n  - b: 1\n    c: [x, 'é', z]\n")
    assert [(mark.line, mark.column) for mark in (document.key_mark(("a",)), document.value_mark(("a",)))] == [
        (1, 1),
        (2, 3),
    ]
    assert (document.key_mark(("a", 0, "c")).line, document.key_mark(("a", 0, "c")).column) == (3, 5)
    assert document.value_mark(("a", 0, "c", 2)).column == 17
    assert document.value_mark(("a", 0, "c", 2, "missing", 7)).column == 17
    assert document.key_mark(("nothing",)).line == 1


def test_aliases() -> None:
    document = read("a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\n")
    assert document.value == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}, "c": [{"k": [1, 2]}] * 2}
    assert document.value_mark(("b", "k")).line == 1


def test_windows_text() -> None:
    assert read("\ufeffa: 1\r\nb: 2\r\n".encode()).value == {"a": 1, "b": 2}


def composed(text: str, loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> yaml_nodes.Node | YamlSyntaxError | None:
    """What is read by this parser; none if it takes the text for no YAML, or values are missing."""
    composer = yaml_nodes._composer(text, loader)
    try:
        node = composer.document()
        return None if composer.has_missing_values else node
    except YamlSyntaxError as error:
        return error
    except yaml.YAMLError:
        return None


# Pieces that a random text of single characters seldom has.
PARSER_PIECES = st.sampled_from(
    ["a: ", "- ", "? ", "|", ">-", "|2", "#", " #x", "\n", "\n ", "\n  ", "'x'", '"y"', '"\\x41"', '"\\\n', "&a ", "*a",
     "!t ", "---", "--- ", "\n...\n", "%YAML 1.1\n", "{", "}", "[", "]", ",", "b c", "\ufeff", "\r\n", "\t", "a?", ": "]
)  # fmt: skip


@settings(max_examples=1000)
@given(
    st.text(alphabet="ab-:?,[]{}#&*!|>'\"%@` \n\r1é😀\x85\u2028\ufeff\x00", max_size=40)
    | st.lists(PARSER_PIECES, max_size=14).map("".join)
)
@example("a: 😀 b # c\nd: [é, {e: 'f'}]\n")
@example("---\na: |\n  b\n c\n...\n")
@example("&a [*a]")
@example("|#")
@example("a: >2-#")
@example("[a?]")
@example("!'! a")
@example("\ufeff\ufeffa")
@example("a #\r\ufeff")
def test_both_parsers_read_the_same(text: str) -> None:
    """Whatever libyaml is asked for and takes, PyYAML's own parser takes for the same, at the same places."""
    by_c = None if yaml_nodes._TAKEN_TOO_EASILY.search(text) else composed(text, yaml.CSafeLoader)
    if by_c is None:
        return
    by_python = composed(text, yaml.SafeLoader)
    if isinstance(by_c, YamlSyntaxError) and isinstance(by_python, YamlSyntaxError):
        assert (by_c.what, by_c.mark) == (by_python.what, by_python.mark)
    else:
        assert by_c == by_python


def test_many_values_without_aliases_are_fine() -> None:
    value = read("a: [" + ", ".join(["1"] * 20_000) + "]\n").value
    assert isinstance(value, dict)
    assert len(value["a"]) == 20_000


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
@example(b'"\\UFFFFFFFF"')
@example(b"%YAML 9.9\n---\na")
@example(b"%YAML 1." + b"9" * 5000 + b"\n---\na")
@example(b"&a [*a]")
@example(b"? ? ?")
@example(b"{" * 3000)
@example(b"- " * 3000)
def test_any_bytes_give_a_document_or_problems_with_a_place(content: bytes) -> None:
    try:
        parse_document(content, Path("x.yaml"), "x.yaml")
    except InvalidYamlError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.line >= 1
            assert problem.column >= 1
            problem.render().encode("utf-8")


# Pieces that are likely to be replaced by one another.
REPLACEMENTS = ["", " ", "{}", "[]", "null", "5", "true", "${mode}", "${tables}", "{expr: day}", "\n", ":", "- "]
YAML_PIECES = st.sampled_from(
    ["headrace: 1", "package: x", "tasks:", "  load:", "    data_flow:", "      sources:", "        a: {b: c}",
     "- x", "a: &a 1", "b: *a", "<<: {}", "when: 'x'", "{expr: 1}", "${x}", "? a", "|", "'", '"', "!!str", "---",
     "  foreach: {item: i, in: [1], tasks: {}}", "connections: {a: {type: null}}", "layouts: {x: {file: y}}",
     "parameters: {p: {type: list}}", "\t", "~"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(YAML_PIECES | st.text(max_size=8), max_size=12).map("\n".join))
def test_any_package_loads_or_gives_an_error_that_renders(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load_package(path, environ={})
    except PackageError as error:
        error.render().encode("utf-8")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_of_a_package_loads_or_gives_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(COMPLETE) - 1))
    end = data.draw(st.integers(start, min(len(COMPLETE), start + 30)))
    piece = data.draw(
        st.sampled_from(
            ["", " ", "{}", "[]", "null", "5", "true", "${mode}", "${tables}", "{expr: day}", "\n", ":", "- "]
        )
    )
    path = tmp_path_factory.getbasetemp() / "changed.yaml"
    path.write_text(COMPLETE[:start] + piece + COMPLETE[end:])
    try:
        load_package(path, environ={})
    except HeadraceError as error:
        error.render().encode("utf-8")
