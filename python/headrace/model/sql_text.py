"""A script of SQL taken apart: its statements, and where they hold `$name`.

Only as much of the language is known as that needs: what is text, what is a comment, and which words begin a statement.
Both databases agree on it, but for what one of them refuses anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.model.name_limits import MAXIMUM_NAME_BYTES
from headrace.model.yaml_nodes import Mark

# A text that begins with E'...' goes on in the next line, if a text stands there; as the one before, with escapes.
_CONTINUED: Final = r"(?:[ \t\f\v]|--[^\r\n]*+)*+[\r\n](?:\s|--[^\r\n]*+[\r\n])*+'"
_ESCAPED: Final = r"(?:[^'\\]++|\\.|'')*+"
_WORD: Final = r"[A-Za-z_\u0080-\U0010FFFF][A-Za-z0-9_$\u0080-\U0010FFFF]*"
_TAG: Final = r"(?:[A-Za-z_\u0080-\U0010FFFF][A-Za-z0-9_\u0080-\U0010FFFF]*)?"
_TOKEN: Final = re.compile(
    rf"""
      (?P<blank>   \s+ )
    | (?P<comment> --[^\r\n]* )
    | (?P<open>    /\* )
    | (?P<text>    [eE]'{_ESCAPED}'(?:{_CONTINUED}{_ESCAPED}')*+ | '(?:[^']++|'')*+' | "(?:[^"]++|"")*+" )
    | (?P<broken>  [eE]?' | " )
    | (?P<dollar>  \${_TAG}\$ )
    | (?P<name>    \$[A-Za-z_\u0080-\U0010FFFF][A-Za-z0-9_\u0080-\U0010FFFF]* )
    | (?P<number>  \$[0-9]+ )
    | (?P<word>    {_WORD} )
    | (?P<digits>  [0-9][A-Za-z0-9_]* )
    | (?P<sign>    . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_HEAD_WORDS: Final = 4
# Names with more bytes are too long for some database.
_SHORT_NAME_BYTES: Final = min(MAXIMUM_NAME_BYTES.values())
# What begins a name in quotes with escapes, whose length they do not tell.
_ESCAPES_NAME: Final = ("U", "&")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONTROL: Final = _words("ABORT BEGIN COMMIT END RELEASE ROLLBACK SAVEPOINT")
_READS: Final = _words("DESC DESCRIBE EXPLAIN FROM SELECT SHOW SUMMARIZE TABLE VALUES WITH")
# They change nothing but the session.
_SETS: Final = _words("RESET SET USE")
# What changes something inside a statement that begins as one that reads, by where it stands: a statement inside or
# behind WITH, the lock of `FOR UPDATE`, `SELECT ... INTO`, `EXPLAIN ANALYZE`, a function that moves a sequence on.
_INNER_STATEMENTS: Final = _words("DELETE INSERT MERGE UPDATE")
_LOCKS: Final = _words("FOR KEY")
_MOVES_SEQUENCE: Final = _words("NEXTVAL SETVAL")
# Behind these any word is a name.
_NAMES_FOLLOW: Final = _words("AS .")
_CHANGES_ROWS: Final = _words("DELETE INSERT MERGE UPDATE")
# Neither rows nor a number of rows come back.
_SILENT: Final = _SETS | _words(
    "ALTER ANALYZE ATTACH CLUSTER COMMENT DEALLOCATE DETACH DISCARD DO DROP EXPORT GRANT IMPORT INSTALL LISTEN LOAD "
    "LOCK NOTIFY PREPARE REFRESH REINDEX REVOKE SECURITY UNLISTEN VACUUM"
)


class SqlTextError(ValueError):
    """A script that cannot be taken apart. `offset`: where the trouble begins, in characters."""

    def __init__(self, offset: int, what: str, found: str, hint: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what
        self.found = found
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A `$name`; `begin` and `end` count characters of the script."""

    name: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class LongName:
    """A name, without its quotes, that is too long for some database; `begin` counts characters of the script."""

    name: str
    begin: int


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. `text`, which begins at `begin`, has the comments before it, but not the semicolon; `offset` is
    its first word. `head`: its first words, in capital letters; `words`: all of them. `is_ordered`: it has ORDER BY
    outside of all parentheses; `writes`: something in it changes what it does not begin with; `is_copied`: it ends in
    FROM STDIN or TO STDOUT; `long_names`: those that are too long for some database.
    """

    text: str
    begin: int
    offset: int
    head: tuple[str, ...]
    words: frozenset[str]
    placeholders: tuple[Placeholder, ...]
    is_ordered: bool = False
    writes: bool = False
    is_copied: bool = False
    long_names: tuple[LongName, ...] = ()

    @property
    def kind(self) -> str:
        """Its first word; empty if it has none."""
        return self.head[0] if self.head else ""

    @property
    def is_control(self) -> bool:
        """It begins or ends a transaction, or a part of one."""
        return self.kind in _CONTROL or self.head[:2] in (("START", "TRANSACTION"), ("PREPARE", "TRANSACTION"))

    @property
    def copies_through_client(self) -> bool:
        """COPY between the server and whoever has sent the statement."""
        return self.kind == "COPY" and self.is_copied

    @property
    def only_reads(self) -> bool:
        """It changes no data, as far as its text tells: a function that it calls can do anything."""
        return self.kind in _READS | _SETS and not self.writes

    @property
    def is_query(self) -> bool:
        """It only reads, and gives rows."""
        return self.only_reads and self.kind not in _SETS

    @property
    def gives_no_rows(self) -> bool:
        """It cannot give rows."""
        if self.kind in ("CREATE", "TRUNCATE") or self.kind in _SILENT:
            return True
        return self.kind in _CHANGES_ROWS and "RETURNING" not in self.words

    @property
    def changes_no_rows(self) -> bool:
        """It cannot tell how many rows it has changed."""
        return self.kind in _SILENT or self.is_query or (self.kind == "CREATE" and "AS" not in self.words)

    def line(self, maximum_characters: int) -> str:
        """The statement in one line, cut if it is longer."""
        text = " ".join(self.text[self.offset - self.begin :].split())
        return text if len(text) <= maximum_characters else f"{text[: maximum_characters - 3]}..."


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    begin: int
    end: int


def split_statements(script: str) -> list[Statement]:
    """The statements of a script, in their order; empty ones are left out. Raises SqlTextError."""
    return list(_Splitter(script).statements())


def without_schema(text: str, schema: str, table: str) -> str:
    """The text with `table` wherever `schema.table` stands as a name; values may stand in it by number."""
    kept: list[str] = []
    names: list[tuple[int, str]] = []  # of one name with dots: where each part stands among what is kept
    is_open = False  # a dot was the last thing
    for token in _tokens(text, numbers=True):
        kept.append(token.text if token.kind not in ("comment", "text") else text[token.begin : token.end])
        if token.kind in ("blank", "comment"):
            continue
        is_quoted = token.text.startswith('"')
        if token.kind == "word" or is_quoted:
            name = text[token.begin + 1 : token.end - 1].replace('""', '"') if is_quoted else token.text.lower()
            names = [*names, (len(kept) - 1, name)] if is_open else [(len(kept) - 1, name)]
            if is_open and [own for _, own in names] == [schema, table]:
                first, last = names[0][0], names[1][0]
                kept[first:last] = [""] * (last - first)
        elif token.text != ".":
            names = []
        is_open = token.text == "." and bool(names)
    return "".join(kept)


def mark_in(text: str, offset: int) -> Mark:
    """Line and column of a character, both from 1."""
    line, begin = 1, 0
    for end in _LINE_END.finditer(text):
        if end.end() > offset:
            break
        line, begin = line + 1, end.end()
    return Mark(line, offset - begin + 1)


class _Splitter:
    """Gathers the tokens of one statement after the other."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._clear()

    def statements(self) -> Iterator[Statement]:
        """All of them."""
        for token in _tokens(self._script):
            if token.kind == "sign" and token.text == ";" and not self._is_inside():
                yield from self._statement(token.begin)
                continue
            self._add(token)
        yield from self._statement(len(self._script))

    def _clear(self) -> None:
        self._begin: int | None = None
        self._offset: int | None = None
        self._head: list[str] = []
        self._words: set[str] = set()
        self._placeholders: list[Placeholder] = []
        self._parentheses = 0
        self._blocks = 0
        self._before = ""
        self._is_ordered = False
        self._writes = False
        self._is_copied = False
        self._long_names: list[LongName] = []
        # The last two tokens, words in capital letters, and whether the last one is a name in quotes.
        self._last = ("", "")
        self._is_quoted = False

    def _is_inside(self) -> bool:
        """In parentheses, or in the body of a function."""
        return self._parentheses > 0 or self._blocks > 0

    def _statement(self, end: int) -> Iterator[Statement]:
        if self._begin is not None and self._offset is not None:
            self._follow(_Token("end", "", end, end))
            yield Statement(
                self._script[self._begin : end].rstrip(),
                self._begin,
                self._offset,
                tuple(self._head),
                frozenset(self._words),
                tuple(self._placeholders),
                self._is_ordered,
                self._writes,
                self._is_copied,
                tuple(self._long_names),
            )
        self._clear()

    def _add(self, token: _Token) -> None:
        if token.kind == "blank":
            return
        if self._begin is None:
            self._begin = token.begin
        if token.kind == "comment":
            return
        if self._offset is None:
            self._offset = token.begin
        self._name(token)
        self._follow(token)
        if token.kind == "word":
            self._word(token.text.upper())
        elif token.kind == "name":
            self._placeholders.append(Placeholder(token.text[1:], token.begin, token.end))
        elif token.text == "(":
            self._parentheses += 1
        elif token.text == ")":
            self._parentheses = max(0, self._parentheses - 1)

    def _name(self, token: _Token) -> None:
        is_quoted = token.text.startswith('"')
        if not (is_quoted or token.kind == "word") or len(token.text) * 4 <= _SHORT_NAME_BYTES:
            return
        name = token.text[1:-1].replace('""', '"') if is_quoted else token.text
        if self._last != _ESCAPES_NAME and len(name.encode("utf-8", "surrogatepass")) > _SHORT_NAME_BYTES:
            self._long_names.append(LongName(name, token.begin))

    def _follow(self, token: _Token) -> None:
        """What the token before means, now that it is known what follows."""
        before, word = self._last
        is_name = token.kind == "word" or token.text.startswith('"')
        if before not in _NAMES_FOLLOW and not self._is_quoted:
            begins = word in _INNER_STATEMENTS and is_name and before in ("(", ")")
            locks = word == "UPDATE" and before in _LOCKS
            plans = word == "ANALYZE" and self._head[:1] == ["EXPLAIN"]
            self._writes = self._writes or begins or locks or plans or (word == "INTO" and is_name)
        self._writes = self._writes or (word in _MOVES_SEQUENCE and token.text == "(")
        text = token.text.upper() if token.kind == "word" else token.text
        if (word, text) in (("FROM", "STDIN"), ("TO", "STDOUT")) and self._parentheses == 0:
            self._is_copied = True
        self._is_quoted = token.text.startswith('"')
        self._last = (word, text[1:-1].upper() if self._is_quoted else text)

    def _word(self, word: str) -> None:
        if len(self._head) < _HEAD_WORDS:
            self._head.append(word)
        self._words.add(word)
        if (self._before, word, self._parentheses) == ("ORDER", "BY", 0):
            self._is_ordered = True
        if self._makes_routine():
            if self._blocks == 0:
                self._blocks = int(self._before == "BEGIN" and word == "ATOMIC")
            elif word in ("BEGIN", "CASE"):
                self._blocks += 1
            elif word == "END":
                self._blocks -= 1
        self._before = word

    def _makes_routine(self) -> bool:
        head = [word for word in self._head if word not in ("OR", "REPLACE")]
        return head[:2] in (["CREATE", "FUNCTION"], ["CREATE", "PROCEDURE"])


def _tokens(script: str, *, numbers: bool = False) -> Iterator[_Token]:
    """`numbers`: whether `$1` may stand for a value."""
    position = 0
    while position < len(script):
        match = _TOKEN.match(script, position)
        assert match is not None
        kind, end = str(match.lastgroup), match.end()
        if kind == "open":
            kind, end = "comment", _comment_end(script, position)
        elif kind == "dollar":
            kind, end = "text", _dollar_end(script, match.group(), end)
        elif kind == "broken":
            _refuse_open(match.group(), position)
        elif kind == "number" and not numbers:
            raise SqlTextError(
                position,
                "SQL of a package knows no values by number",
                f"`{match.group()}`",
                "Write `$name`, with the name of a variable or parameter.",
            )
        elif kind == "sign":
            _check_sign(script, position)
        yield _Token(kind, match.group(), position, end)
        position = end


def _comment_end(script: str, begin: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(script, begin):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise SqlTextError(begin, "a comment is not closed", "`/*`", "Add `*/`; comments inside comments have their own.")


def _dollar_end(script: str, tag: str, begin: int) -> int:
    end = script.find(tag, begin)
    if end < 0:
        raise SqlTextError(begin - len(tag), "a text is not closed", f"`{tag}`", f"Add `{tag}` where it ends.")
    return end + len(tag)


def _refuse_open(quote: str, begin: int) -> None:
    what = "a name in quotes is not closed" if quote == '"' else "a text is not closed"
    raise SqlTextError(begin, what, f"`{quote}`", f"Add `{quote[-1]}`; inside, write it twice.")


def _check_sign(script: str, begin: int) -> None:
    sign = script[begin]
    if sign == "\0":
        raise SqlTextError(begin, "SQL cannot hold a NUL character", "a NUL character", "Remove it.")
    if sign == "\\":
        raise SqlTextError(
            begin,
            "a command of psql is no SQL",
            f"`{script[begin : begin + 20].split()[0]}`",
            "Write SQL: values come from variables, rows from data flows.",
        )
    if sign == "$" and script.startswith("{", begin + 1):
        raise SqlTextError(
            begin,
            "SQL cannot hold `${...}`",
            f"`{script[begin : begin + 40].split(chr(10))[0]}`",
            "Write `$name` instead of `${name}`: it is bound, not pasted.",
        )
