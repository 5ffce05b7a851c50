"""Read a YAML file strictly, and remember where every key and value stands.

Refused, each with line and column: duplicate keys, keys that are not text, merge keys (`<<`), explicit tags,
several documents, aliases that contain themselves or expand to more than `MAXIMUM_ALIAS_NODES` nodes, bytes that
are not UTF-8, files over `MAXIMUM_FILE_BYTES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from headrace.errors import Problem
from headrace.model.suggest import quote, show_name, show_value
from headrace.model.yaml_nodes import (
    MAXIMUM_DEPTH,
    AliasNode,
    MappingNode,
    Mark,
    Node,
    ScalarNode,
    SequenceNode,
    YamlSyntaxError,
    compose,
)
from headrace.model.yaml_scalars import resolve_plain
from headrace.model.yaml_syntax import describe_escape_error, describe_yaml_error

MAXIMUM_ALIAS_NODES = 10_000
# PyYAML reads about 100 KB/s; a package is a few KB. Larger files are something else, given by mistake.
MAXIMUM_FILE_BYTES = 1_000_000

DocumentPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a YAML file, its bytes, and the place of every key and value by its path in the value."""

    file: str
    path: Path
    content: bytes
    value: object
    value_marks: Mapping[DocumentPath, Mark] = field(repr=False)
    key_marks: Mapping[DocumentPath, Mark] = field(repr=False)

    def value_mark(self, path: DocumentPath) -> Mark:
        """Where the value at `path` starts; of its nearest ancestor if there is none."""
        for length in range(len(path), -1, -1):
            mark = self.value_marks.get(path[:length])
            if mark is not None:
                return mark
        return Mark(1, 1)

    def key_mark(self, path: DocumentPath) -> Mark:
        """Where the last key of `path` stands; where the value stands if it has no key."""
        mark = self.key_marks.get(path)
        return self.value_mark(path) if mark is None else mark


def value_at(document: Document, path: DocumentPath) -> object:
    """The value at a path of the document; None if there is none."""
    value = document.value
    for key in path:
        try:
            value = value[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return value


class InvalidYamlError(Exception):
    """The file is not acceptable YAML; holds at least one problem."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems[0].what)
        self.problems = problems


def read_document(path: Path, file: str) -> Document:
    """Read and check the file at `path`; `file` is its name in messages. Raises OSError, InvalidYamlError."""
    with path.open("rb") as stream:
        content = stream.read(MAXIMUM_FILE_BYTES + 1)
    return parse_document(content, path, file)


def parse_document(content: bytes, path: Path, file: str) -> Document:
    """The document in `content`. Raises InvalidYamlError."""
    try:
        node = compose(_decode(content))
    except YamlSyntaxError as error:
        raise InvalidYamlError([_problem(file, error)]) from error
    except yaml.YAMLError as error:
        raise InvalidYamlError([_problem(file, describe_yaml_error(error, content))]) from error
    except (ValueError, OverflowError) as error:
        raise InvalidYamlError([_problem(file, describe_escape_error(content))]) from error
    if node is None:
        raise InvalidYamlError([Problem(file, 1, 1, "the file is empty", expected="a YAML mapping")])
    constructor = _Constructor()
    try:
        value = constructor.construct(node, (), 1)
    except YamlSyntaxError as error:
        constructor.errors.append(error)
    if constructor.errors:
        raise InvalidYamlError([_problem(file, error) for error in constructor.errors])
    return Document(file, path, content, value, constructor.value_marks, constructor.key_marks)


def _problem(file: str, error: YamlSyntaxError) -> Problem:
    return Problem(file, error.mark.line, error.mark.column, error.what, error.found, error.expected, error.hint)


def _decode(content: bytes) -> str:
    if len(content) > MAXIMUM_FILE_BYTES:
        raise YamlSyntaxError(
            Mark(1, 1),
            "the file is too large for a package or layout",
            found=f"more than {MAXIMUM_FILE_BYTES:,} bytes",
            expected=f"at most {MAXIMUM_FILE_BYTES:,} bytes",
            hint="Check that the path names a package, not a data file.",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", errors="replace")
        line_start = before.rfind("\n") + 1
        raise YamlSyntaxError(
            Mark(before.count("\n") + 1, len(before) - line_start + 1),
            "the file is not UTF-8 text",
            found=f"the byte 0x{content[error.start]:02X}",
            expected="UTF-8",
            hint="Save the file in the encoding UTF-8.",
        ) from error


class _Constructor:
    """Builds plain values (dict, list, str, int, Decimal, bool, None) and notes their places."""

    def __init__(self) -> None:
        self.value_marks: dict[DocumentPath, Mark] = {}
        self.key_marks: dict[DocumentPath, Mark] = {}
        self.errors: list[YamlSyntaxError] = []
        self._open_nodes: set[int] = set()
        self._open_aliases: list[Mark] = []
        self._alias_nodes = 0

    def construct(self, node: Node, path: DocumentPath, depth: int) -> object:
        if isinstance(node, AliasNode):
            return self._construct_alias(node, path, depth)
        self._count(depth)
        self.value_marks[path] = node.mark
        if node.tag is not None and node.tag != "!":
            self.errors.append(
                YamlSyntaxError(
                    node.mark,
                    "a YAML tag is not allowed",
                    found=show_name(node.tag.replace("tag:yaml.org,2002:", "!!")),
                    expected="a value without a tag",
                    hint="Remove the tag; to make a value text, quote it.",
                )
            )
        if isinstance(node, ScalarNode):
            return self._construct_scalar(node)
        self._open_nodes.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.construct(item, (*path, index), depth + 1) for index, item in enumerate(node.items)]
            return self._construct_mapping(node, path, depth)
        finally:
            self._open_nodes.discard(id(node))

    def _count(self, depth: int) -> None:
        """Bound what aliases expand to, in number and in depth."""
        if not self._open_aliases:
            return
        self._alias_nodes += 1
        if self._alias_nodes > MAXIMUM_ALIAS_NODES or depth > MAXIMUM_DEPTH:
            limit = (
                f"at most {MAXIMUM_ALIAS_NODES:,} values from aliases"
                if self._alias_nodes > MAXIMUM_ALIAS_NODES
                else f"at most {MAXIMUM_DEPTH} levels"
            )
            raise YamlSyntaxError(
                self._open_aliases[0],
                "the aliases of the file expand to too much",
                expected=limit,
                hint="Write the repeated part as a foreach, or fewer aliases inside aliases.",
            )

    def _construct_scalar(self, node: ScalarNode) -> object:
        try:
            node.text.encode("utf-8")
        except UnicodeEncodeError:
            self.errors.append(
                YamlSyntaxError(
                    node.mark,
                    "a text holds half of a surrogate pair",
                    found=ascii(node.text),
                    expected="whole Unicode characters",
                    hint="Write the character itself instead of two \\u escapes.",
                )
            )
            return ""
        return resolve_plain(node.text) if node.plain else node.text

    def _construct_alias(self, node: AliasNode, path: DocumentPath, depth: int) -> object:
        if id(node.target) in self._open_nodes:
            raise YamlSyntaxError(
                node.mark,
                "an alias contains itself",
                found=f"*{node.name}",
                expected="an anchor that ends above the alias",
                hint="Write the value out instead of the alias.",
            )
        self._open_aliases.append(node.mark)
        try:
            return self.construct(node.target, path, depth)
        finally:
            self._open_aliases.pop()

    def _construct_mapping(self, node: MappingNode, path: DocumentPath, depth: int) -> dict[str, object]:
        mapping: dict[str, object] = {}
        first_marks: dict[str, Mark] = {}
        for key_node, value_node in node.pairs:
            key = self._key(key_node)
            if key is None:
                continue
            first = first_marks.get(key)
            if first is not None:
                self.errors.append(
                    YamlSyntaxError(
                        key_node.mark,
                        f"the key `{show_name(key)}` is given twice",
                        found=f"`{show_name(key)}` again; the first is in line {first.line}",
                        expected="each key once",
                        hint="Remove or rename one of the two.",
                    )
                )
                continue
            first_marks[key] = key_node.mark
            self.key_marks[(*path, key)] = key_node.mark
            mapping[key] = self.construct(value_node, (*path, key), depth + 1)
        return mapping

    def _key(self, node: Node) -> str | None:
        """The text of a key; None, with a problem noted, if the key is not text."""
        if isinstance(node, ScalarNode) and node.tag in (None, "!"):
            if node.plain and node.text == "<<":
                self.errors.append(
                    YamlSyntaxError(
                        node.mark,
                        "merge keys (`<<`) are not allowed",
                        found="<<",
                        expected="keys written out",
                        hint="Write the keys out, or use a foreach for repeated tasks.",
                    )
                )
                return None
            value = self._construct_scalar(node)
            if isinstance(value, (str, bool)):
                return node.text  # `true` and `false` are keys of formats
            shown = quote(node.text)
            found = f"{show_value(value)}, which is not text"
            hint = f"If it is a name, quote it: {shown}."
        else:
            found = "an alias" if isinstance(node, AliasNode) else "a list, mapping or tagged value"
            hint = "Write the key as a plain word."
        self.errors.append(YamlSyntaxError(node.mark, "a key must be text", found=found, expected="text", hint=hint))
        return None
