"""From text to a tree of YAML nodes with positions; the meaning of the nodes is `yaml_reader`'s business.

PyYAML's event stream is used instead of its loader because events still show what the loader resolves away:
explicit tags, aliases and whether a scalar was quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import yaml

MAXIMUM_DEPTH = 64

# What libyaml accepts in more places than PyYAML's parser: tabs, byte order marks and rare line breaks inside the
# text, tags, `?` in lists in brackets, and a comment that follows `|` or `>` without a blank. Found by comparing the
# parsers on random texts.
_TAKEN_TOO_EASILY = re.compile("[\t\ufeff\x85\u2028\u2029!?]|[|>][-+0-9]*#")


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the text; line and column count from 1, the column in characters."""

    line: int
    column: int


@dataclass(slots=True)
class ScalarNode:
    """Text, and whether it was plain (unquoted, so that it may be a number or a boolean)."""

    mark: Mark
    text: str
    plain: bool
    tag: str | None


@dataclass(slots=True)
class SequenceNode:
    """A list."""

    mark: Mark
    tag: str | None
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class MappingNode:
    """A mapping; pairs as written, duplicates included."""

    mark: Mark
    tag: str | None
    pairs: list[tuple[Node, Node]] = field(default_factory=list)


@dataclass(slots=True)
class AliasNode:
    """A reference (`*name`) to an anchored node (`&name`), which may still be under construction."""

    mark: Mark
    name: str
    target: Node = field(compare=False)  # may lead back to this alias


Node = ScalarNode | SequenceNode | MappingNode | AliasNode


class YamlSyntaxError(Exception):
    """The text is not a YAML document that a package may be."""

    def __init__(
        self, mark: Mark, what: str, *, found: str | None = None, expected: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(what)
        self.mark = mark
        self.what = what
        self.found = found
        self.expected = expected
        self.hint = hint


def compose(text: str) -> Node | None:
    """The only document of `text`, None if there is no content. Raises YamlSyntaxError and PyYAML's errors."""
    c_loader = getattr(yaml, "CSafeLoader", None)
    # libyaml takes a tenth of the time. PyYAML's own parser decides where the two may differ, so that a package means
    # the same without libyaml: for messages, for values that are missing, and for texts that libyaml takes too easily.
    if c_loader is not None and not _TAKEN_TOO_EASILY.search(text):
        composer = _composer(text, c_loader)
        with suppress(yaml.YAMLError):
            node = composer.document()
            if not composer.has_missing_values:
                return node
    return _composer(text, yaml.SafeLoader).document()


def _composer(text: str, loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> _Composer:
    return _Composer(iter(yaml.parse(text, Loader=loader)))


class _Composer:
    """Recursive descent over the events of one document."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        # Whether something is neither written nor quoted, as in `key:`; parsers differ in where that is.
        self.has_missing_values = False
        self._anchors: dict[str, Node] = {}

    def document(self) -> Node | None:
        node: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise YamlSyntaxError(
                        _mark(event),
                        "the file holds more than one YAML document",
                        found="a second document",
                        expected="one document",
                        hint="Put each package or layout into a file of its own.",
                    )
                node = self._node(next(self._events), 1)
        return node

    def _node(self, event: yaml.Event, depth: int) -> Node:
        mark = _mark(event)
        if depth > MAXIMUM_DEPTH:
            raise YamlSyntaxError(
                mark,
                "the file is nested too deeply",
                expected=f"at most {MAXIMUM_DEPTH} levels",
                hint="Check the brackets and the indentation.",
            )
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), mark)
        if isinstance(event, yaml.ScalarEvent):
            scalar = ScalarNode(mark, event.value, not event.style and event.tag in (None, "!"), event.tag)
            self.has_missing_values |= not event.value and not event.style
            return self._anchored(event.anchor, scalar)
        if isinstance(event, yaml.SequenceStartEvent):
            sequence = SequenceNode(mark, event.tag)
            self._anchored(event.anchor, sequence)
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                sequence.items.append(self._node(event, depth + 1))
            return sequence
        mapping = MappingNode(mark, getattr(event, "tag", None))
        self._anchored(getattr(event, "anchor", None), mapping)
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            mapping.pairs.append((key, self._node(next(self._events), depth + 1)))
        return mapping

    def _anchored(self, anchor: str | None, node: Node) -> Node:
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, name: str, mark: Mark) -> Node:
        if name not in self._anchors:
            raise YamlSyntaxError(
                mark,
                "an alias has no anchor",
                found=f"*{name}",
                expected=f"an anchor &{name} above",
                hint=f"If `*` is part of a text, quote the text: '*{name}'.",
            )
        return AliasNode(mark, name, self._anchors[name])


def _mark(event: yaml.Event) -> Mark:
    start = event.start_mark  # every event of a parsed text has one
    return Mark(1, 1) if start is None else Mark(start.line + 1, start.column + 1)
