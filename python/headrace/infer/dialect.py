"""Which dialect files have: a pure function of what the core saw of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.errors import SourceError
from headrace.infer.inferred import Doubt
from headrace.infer.not_delimited import refuse_fixed_width, refuse_other_formats
from headrace.infer.text_class import is_typed
from headrace.infer.wording import are, count, either, shown

DELIMITERS: Final = (",", ";", "\t", "|", ":", "~", "^", "\x01", "\x1f", "||")
QUALIFIERS: Final = (None, '"', "'")
ESCAPES: Final = (None, "\\")
# What is written as the delimiter of rows of one field.
_UNUSED_DELIMITERS: Final = (",", ";", "\t", "|", "\x1f", "\x01")
# Shares of rows that count for the same, so many rows of a short file, and shares of typed fields.
_SAME_SHARE: Final = 0.05
_SAME_ROWS: Final = 2
_SAME_TYPED: Final = 0.02
_MOST_FOOTER_ROWS: Final = 100
_COMMENTS: Final = ("#", "--", "//")
_TEXTS: Final = frozenset({"other", "blank"})
_MAXIMUM_NAME_CHARACTERS: Final = 255
_GROUP_MARKS: Final = (",", ".", "'")
_FIRST_GROUP: Final = re.compile(r"-?[1-9][0-9]{0,2}")
_NEXT_GROUP: Final = re.compile(r"[0-9]{3}")
_YEAR: Final = re.compile(r"(19|20)[0-9]{2}")

Candidate = Mapping[str, Any]
Shape = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """What need not be found. `header`: None if it is to be found, too."""

    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None

    def candidates(self) -> list[dict[str, Any]]:
        """The dialects to try, those that are preferred first."""
        delimiters = DELIMITERS if self.delimiter is None else (self.delimiter,)
        return [
            {"delimiter": delimiter, "qualifier": qualifier, "escape": escape}
            for delimiter in delimiters
            for qualifier in QUALIFIERS
            for escape in ESCAPES
        ]


@dataclass(frozen=True, slots=True)
class Choice:
    """The dialect of one file. `settings`: those of the layout but its columns; `names`: those of the columns."""

    settings: Mapping[str, Any]
    names: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()

    @property
    def kind(self) -> tuple[object, ...]:
        """What files that one layout can read have in common."""
        common = (
            "delimiter",
            "escape",
            "header",
            "row_end",
            "trailing_delimiter",
            "comment",
            "skip_lines",
            "footer_rows",
        )
        return (*(self.settings.get(key) for key in common), self.names)


@dataclass(frozen=True, slots=True)
class _Scored:
    candidate: Candidate
    shape: Shape
    fields: int
    share: float
    typed: float
    place: int

    @property
    def rank(self) -> tuple[float, int, int, int]:
        """Greater is better, among dialects that explain as many rows."""
        is_qualified = int(self.candidate["qualifier"] is not None and self.shape["qualified"] > 0)
        is_plain = int(self.candidate["escape"] is None)
        return round(self.typed / _SAME_TYPED), self.fields, is_qualified, is_plain


def choose_dialect(look: Mapping[str, Any], given: Given) -> Choice:
    """The dialect of a file that was looked at with the candidates of `given`. Raises SourceError for what is no
    delimited text.
    """
    refuse_other_formats(look)
    candidates = given.candidates()
    pairs = enumerate(zip(candidates, look["candidates"], strict=True))
    found = [_score(candidate, shape, place) for place, (candidate, shape) in pairs if shape is not None]
    scored = [one for one in found if one is not None]
    usable = [one for one in scored if one.fields >= 2 or given.delimiter is not None]
    base = {} if look["encoding"] == "utf-8" else {"encoding": _encoding(look)}
    doubts = [] if given.encoding is not None else _encoding_doubts(look)
    if look["row_ends"]["lf"] == look["row_ends"]["crlf"] == 0 and look["row_ends"]["cr"]:
        base["row_end"] = "cr"
    if not usable:
        return _one_column(look, scored, base, doubts, given)
    best = _best(usable)
    rival = next(
        (one for one in _near(best, usable) if one.candidate["delimiter"] != best.candidate["delimiter"]), None
    )
    if rival is not None:
        doubts.append(
            Doubt(
                f"delimiter {shown(rival.candidate['delimiter'])} would do as well: {count(rival.fields)} columns "
                f"instead of {count(best.fields)}",
                topic="delimiter",
            )
        )
    dialect = {"delimiter": best.candidate["delimiter"]}
    dialect |= {key: best.candidate[key] for key in ("qualifier", "escape") if best.candidate[key] is not None}
    return _described(look, best, {**base, **dialect}, doubts, given)


def _score(candidate: Candidate, shape: Shape, place: int) -> _Scored | None:
    rows = int(shape["rows"])
    if not rows or (candidate["qualifier"] is not None and (not shape["qualified"] or shape["is_open"])):
        return None
    fields, common = max(((int(number), own) for number, own in shape["fields"].items()), key=lambda one: one[::-1])
    values = sum(sum(classes.values()) for classes in shape["classes"])
    typed = sum(own for classes in shape["classes"] for name, own in classes.items() if name not in _TEXTS)
    share = max(0, common - shape["text_behind"]) / rows
    return _Scored(candidate, shape, fields, share, typed / values if values else 0.0, place)


def _best(scored: Sequence[_Scored]) -> _Scored:
    most = max(one.share for one in scored)
    # In short files a title and a row or two of another shape are a large share, and say little.
    noise = 0.0 if most == 1 else _SAME_ROWS / max(one.shape["rows"] for one in scored)
    equal = [one for one in scored if one.share >= most - max(_SAME_SHARE, noise)]
    # Of those that are alike the one that is tried first.
    return max(equal, key=lambda one: (one.rank, -one.place))


def _near(best: _Scored, scored: Sequence[_Scored]) -> list[_Scored]:
    """Those that explain as much, the best first."""
    near = [one for one in scored if one.share >= best.share - 0.02 and one.typed >= best.typed - _SAME_TYPED]
    return sorted(near, key=lambda one: (one.rank, -one.place), reverse=True)


def _encoding(look: Mapping[str, Any]) -> str:
    encoding = str(look["encoding"])
    return "utf-16" if look["has_mark"] and encoding.startswith("utf-16") else encoding


def _encoding_doubts(look: Mapping[str, Any]) -> list[Doubt]:
    if look["encoding"].startswith("utf-"):
        return []
    words = either([shown(word) for word in look["high_words"]], "and") if look["high_words"] else "no words"
    return [Doubt(f"the text is not UTF-8; taken for {look['encoding']}, in which it has {words}", topic="encoding")]


def _one_column(
    look: Mapping[str, Any], scored: Sequence[_Scored], base: dict[str, Any], doubts: list[Doubt], given: Given
) -> Choice:
    alone = [one for one in scored if one.fields == 1]
    if not alone:
        raise SourceError(
            "a file holds no rows",
            at={"file": look["path"]},
            found="blank lines only",
            expected="delimited text",
            hint="Leave it out.",
        )
    refuse_fixed_width(look)
    doubts.append(Doubt("no delimiter was found: every row is one value"))
    # One that stands in no row, if there is such a one.
    whole = [one for one in alone if set(one.shape["fields"]) == {"1"}] or alone
    usual = [one for one in whole if one.candidate["delimiter"] in _UNUSED_DELIMITERS] or whole
    best = min(usual, key=lambda one: ([-number for number in one.rank], one.place))
    chosen = {key: value for key, value in best.candidate.items() if value is not None}
    return _described(look, best, {**base, **chosen}, doubts, given)


def _described(
    look: Mapping[str, Any], best: _Scored, settings: dict[str, Any], doubts: list[Doubt], given: Given
) -> Choice:
    """What stands before and behind the rows, and the names of the columns."""
    shape, fields = best.shape, best.fields
    has_trailing = _has_trailing_delimiter(shape, fields)
    is_row = [number == fields for number in shape["head_shape"]]
    comment = _comment(look, shape, is_row)
    if comment is not None:
        settings["comment"] = comment
    first = is_row.index(True) if True in is_row else 0
    skipped = (
        0 if comment is not None and first < len(shape["head"]) and _all_comments(shape, first, comment) else first
    )
    if 0 < skipped < len(shape["head_lines"]):
        settings["skip_lines"] = shape["head_lines"][skipped]
        lines = [shown(" ".join(row)) for row in shape["head"][:skipped]]
        what = f"{count(skipped, 'row')} before the others {are(skipped)} skipped"
        doubts.append(Doubt(f"{what}: {either(lines[:3], 'and')}", topic="rows before"))
    _footer(look, best, settings, doubts, given)
    if has_trailing:
        settings["trailing_delimiter"] = True
        fields -= 1
    doubts += _cut_numbers(best, shape["head"][first:])
    texts = shape["head"][first][:fields] if first < len(shape["head"]) else [""] * fields
    names = [text.strip(" \t") for text in texts]
    is_header = _is_header(names, shape, doubts, given)
    if is_header:
        usable = _usable_names(names)
        settings["header"] = "check" if usable == tuple(names) else "skip"
        if usable != tuple(names):
            wrong = either([shown(own) for own, name in zip(names, usable, strict=True) if own != name][:3], "and")
            doubts.append(Doubt(f"names in the header that cannot be those of columns: {wrong}"))
        return Choice(_ordered(settings), usable, tuple(doubts))
    return Choice(_ordered(settings), tuple(f"column_{number}" for number in range(1, fields + 1)), tuple(doubts))


_ORDER: Final = (
    "encoding",
    "delimiter",
    "qualifier",
    "escape",
    "row_end",
    "comment",
    "trailing_delimiter",
    "skip_lines",
    "header",
    "footer_rows",
)


def _ordered(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: settings[key] for key in _ORDER if key in settings}


def _cut_numbers(best: _Scored, rows: Sequence[Sequence[str]]) -> list[Doubt]:
    """`1,234` without quotes, which the delimiter makes two values: in every row that was kept three digits behind at
    most three.
    """
    if best.candidate["delimiter"] not in _GROUP_MARKS:
        return []
    whole = [row for row in rows if len(row) == best.fields]
    data = whole[1:] if whole and not any(is_typed(text) for text in whole[0]) else whole
    for place in range(best.fields - 1 if len(data) > 1 else 0):
        pairs = [(row[place].strip(), row[place + 1].strip()) for row in data]
        if all(_FIRST_GROUP.fullmatch(one) and _NEXT_GROUP.fullmatch(other) for one, other in pairs):
            number = shown(best.candidate["delimiter"].join(pairs[0]))
            what = (
                f"values {place + 1} and {place + 2} of rows could be one number in groups of three, such as {number}"
            )
            return [Doubt(f"{what}: then another delimiter, or qualifiers, are needed", topic="cut numbers")]
    return []


def _has_trailing_delimiter(shape: Shape, fields: int) -> bool:
    """Whether the last field of every row is empty, that of a header too."""
    if fields < 2 or shape["classes"][fields - 1]:
        return False
    rows = [row for row in shape["head"] if len(row) == fields]
    return bool(rows) and all(row[-1] == "" for row in rows) and len(rows) > 1


def _comment(look: Mapping[str, Any], shape: Shape, is_row: Sequence[bool]) -> str | None:
    odd = [row for row, is_one in zip(shape["head"], is_row, strict=False) if not is_one]
    for mark in _COMMENTS:
        own = [row for row in odd if row and row[0].startswith(mark)]
        if len(own) > 1 and len(own) == len(odd) and look["head_lines"]:
            return mark
    return None


def _all_comments(shape: Shape, first: int, comment: str) -> bool:
    return all(row and row[0].startswith(comment) for row in shape["head"][:first])


def _siblings(look: Mapping[str, Any], best: _Scored, given: Given) -> list[Shape]:
    """The end of the file by other dialects with the same delimiter."""
    shapes = look["candidates"] if look["is_whole"] else look["tail"]
    pairs = zip(given.candidates(), shapes, strict=True)
    return [own for candidate, own in pairs if own and candidate["delimiter"] == best.candidate["delimiter"]]


def _footer(
    look: Mapping[str, Any], best: _Scored, settings: dict[str, Any], doubts: list[Doubt], given: Given
) -> None:
    if look["compression"] != "none":
        return
    end = best.shape if look["is_whole"] else (look["tail"][best.place] if look["tail"] else None)
    if end is None or best.fields < 2:
        return
    rows = [number == best.fields for number in end["tail_shape"]]
    behind = rows[::-1].index(True) if True in rows else 0
    comment = settings.get("comment")
    texts = end["tail"][len(rows) - behind :]
    if any(set(other["tail_shape"]) == {best.fields} for other in _siblings(look, best, given)):
        return  # they are rows of another qualifier: the pass will find them
    if not 0 < behind <= _MOST_FOOTER_ROWS or (comment and any(row[0].startswith(comment) for row in texts)):
        return
    settings["footer_rows"] = behind
    lines = either([shown(" ".join(row)) for row in texts[:3]], "and")
    what = f"{count(behind, 'row')} behind the others {are(behind)} skipped"
    doubts.append(Doubt(f"{what}: {lines}", topic="rows behind"))


def _is_header(names: Sequence[str], shape: Shape, doubts: list[Doubt], given: Given) -> bool:
    """Whether the first row names the columns."""
    if given.header is not None:
        return given.header
    named = [name for name in names if name]
    if not named or 2 * len(named) < len(names):
        return False
    # A column of a type, and a name that is none of it: names. One that could be a value speaks against it.
    columns = list(zip(names, shape["classes"][: len(names)], strict=True))
    typed = [name for name, classes in columns if classes and not set(classes) & _TEXTS]
    against = [name for name in typed if is_typed(name)]
    if any(name and not is_typed(name) for name in typed):
        if against:
            doubts.append(Doubt(f"the first row was taken for names, but {_some(against)} could be data"))
        return True
    if len(set(named)) < len(named):
        return False
    if typed:
        if 0 < len(against) < len(named) and all(_YEAR.fullmatch(name) for name in against):
            doubts.append(Doubt(f"the first row was taken for data, but {_some(against)} could be names"))
        return False
    if any(is_typed(name) or not any(map(str.isalnum, name)) for name in named):
        return False
    if not any(shape["classes"]):
        what = "there is one row only" if shape["rows"] < 2 else "the other rows have no value"
        doubts.append(Doubt(f"{what}: the first row was taken for names, and every column is a text"))
        return True
    if any(shape["repeats"][: len(names)]) or _is_alike(shape, names):
        return False
    doubts.append(Doubt(f"all columns are texts: the first row, {_some(names)}, was taken for names"))
    return True


def _some(names: Sequence[str]) -> str:
    return either([shown(name) for name in names[:3]], "and")


def _is_alike(shape: Shape, names: Sequence[str]) -> bool:
    """Whether the fields of every column are equally long, those of the first row too: codes, perhaps."""
    rows = [row for row in shape["head"] if len(row) == len(shape["classes"])]
    lengths = [{len(row[place]) for row in rows} for place in range(len(names))]
    return len(rows) > 2 and all(len(own) == 1 for own in lengths)


def _usable_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names, with `column_3` for those that no column can have."""
    taken: set[str] = set()
    usable = []
    for number, name in enumerate(names, 1):
        is_text = name.isprintable() and "\ufffd" not in name and "${" not in name
        is_good = is_text and 0 < len(name) <= _MAXIMUM_NAME_CHARACTERS
        if not is_good or name.casefold() in taken:
            name = f"column_{number}"
            while name in taken:
                name += "_"
        taken.add(name.casefold())
        usable.append(name)
    return tuple(usable)
