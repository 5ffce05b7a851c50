"""Which dialect files have: a pure function of what the core saw of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.errors import SourceError
from headrace.infer.header_block import HeaderBlock, header_block
from headrace.infer.inferred import Doubt
from headrace.infer.not_delimited import refuse_fixed_width, refuse_other_formats
from headrace.infer.ranking import COLONS_IN_VALUES, Scored, Shape, best_of, near, plausible, score
from headrace.infer.text_class import is_data, is_typed
from headrace.infer.wording import are, count, either, shown
from headrace.model.layout import MAXIMUM_FOOTER_ROWS

DELIMITERS: Final = (",", ";", "\t", "|", ":", "~", "^", "\x01", "\x1f", "||")
QUALIFIERS: Final = (None, '"', "'")
ESCAPES: Final = (None, "\\")
# What is written as the delimiter of rows of one field.
_UNUSED_DELIMITERS: Final = (",", ";", "\t", "|", "\x1f", "\x01")
# Last rows that another dialect has to read as rows of the table at least.
_SIBLING_ROWS: Final = 30
_COMMENTS: Final = ("#", "--", "//")
_TEXTS: Final = frozenset({"other", "blank"})
_MAXIMUM_NAME_CHARACTERS: Final = 255
_GROUP_MARKS: Final = (",", ".", "'")
_FIRST_GROUP: Final = re.compile(r"-?[1-9][0-9]{0,2}")
_NEXT_GROUP: Final = re.compile(r"[0-9]{3}")
_YEAR_DIGITS: Final = 4
_YEAR: Final = re.compile(r"(19|20)[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Given:
    """What need not be found; None: it is to be found. `ends_with_cr`: whether rows end with carriage returns alone."""

    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None
    ends_with_cr: bool | None = None

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


def choose_dialect(look: Mapping[str, Any], given: Given) -> Choice:
    """The dialect of a file that was looked at with the candidates of `given`. Raises SourceError for what is no
    delimited text.
    """
    refuse_other_formats(look)
    candidates = given.candidates()
    pairs = enumerate(zip(candidates, look["candidates"], strict=True))
    found = [score(candidate, shape, place) for place, (candidate, shape) in pairs if shape is not None]
    scored = [one for one in found if one is not None]
    usable = [one for one in scored if one.fields >= 2 or given.delimiter is not None]
    if given.delimiter is None:
        usable = plausible(look, usable)
    base = {} if look["encoding"] == "utf-8" else {"encoding": _encoding(look)}
    doubts = [] if given.encoding is not None else _encoding_doubts(look)
    if look["ends_with_cr"]:
        base["row_end"] = "cr"
    if not look["is_row_end_clear"]:
        doubts.append(_row_end_doubt(look))
    if not usable:
        return _one_column(look, scored, base, doubts, given)
    best = best_of(usable)
    rival = next((one for one in near(best, usable) if one.candidate["delimiter"] != best.candidate["delimiter"]), None)
    if rival is not None:
        doubts.append(
            Doubt(
                f"delimiter {shown(rival.candidate['delimiter'])} would do as well: {count(rival.fields)} columns "
                f"instead of {count(best.fields)}",
                topic="delimiter",
            )
        )
    if best.candidate["delimiter"] == ":" and given.delimiter is None:
        example = next((row for row in best.shape["head"][1:] if len(row) == best.fields), best.shape["head"][0])
        values = either([shown(text) for text in example[:3]], "and")
        doubts.append(Doubt(f'":" was taken for the delimiter, and may be text: {values}', topic="delimiter"))
    dialect = {"delimiter": best.candidate["delimiter"]}
    dialect |= {key: best.candidate[key] for key in ("qualifier", "escape") if best.candidate[key] is not None}
    return _described(look, best, {**base, **dialect}, doubts, given)


def _encoding(look: Mapping[str, Any]) -> str:
    encoding = str(look["encoding"])
    return "utf-16" if look["has_mark"] and encoding.startswith("utf-16") else encoding


def _encoding_doubts(look: Mapping[str, Any]) -> list[Doubt]:
    if look["encoding"].startswith("utf-"):
        return []
    words = either([shown(word) for word in look["high_words"]], "and") if look["high_words"] else "no words"
    return [Doubt(f"the text is not UTF-8; taken for {look['encoding']}, in which it has {words}", topic="encoding")]


def _row_end_doubt(look: Mapping[str, Any]) -> Doubt:
    ends = look["row_ends"]
    line_feeds = count(ends["lf"] + ends["crlf"], "line feed")
    what = f"{count(ends['cr'], 'carriage return')} stand alone beside {line_feeds}"
    taken, others = ("the former", "the latter") if look["ends_with_cr"] else ("the latter", "the former")
    return Doubt(f"{what}: {taken} were taken for the ends of rows, {others} for data", topic="row ends")


def _is_qualified(line: str) -> bool:
    """Whether a line is one value between qualifiers: its blanks are part of it, wherever they stand."""
    return len(line) > 1 and line[0] == line[-1] and line[0] in QUALIFIERS


def _one_column(
    look: Mapping[str, Any], scored: Sequence[Scored], base: dict[str, Any], doubts: list[Doubt], given: Given
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
    if not all(is_typed(line) or _is_qualified(line) for line in look["head_lines"][1:]):
        refuse_fixed_width(look)
    doubts.append(Doubt("no delimiter was found: every row is one value"))
    # One that stands in no row, if there is such a one.
    whole = [one for one in alone if set(one.shape["fields"]) == {"1"}] or alone
    usual = [one for one in whole if one.candidate["delimiter"] in _UNUSED_DELIMITERS] or whole
    best = min(usual, key=lambda one: ([-number for number in one.rank], one.place))
    chosen = {key: value for key, value in best.candidate.items() if value is not None}
    return _described(look, best, {**base, **chosen}, doubts, given)


def _described(
    look: Mapping[str, Any], best: Scored, settings: dict[str, Any], doubts: list[Doubt], given: Given
) -> Choice:
    """What stands before and behind the rows, and the names of the columns."""
    shape, fields = best.shape, best.fields
    front, head = shape["front"], shape["head"]
    has_trailing = _has_trailing_delimiter(shape, fields)
    comment = _comment(shape, fields)
    if comment is not None:
        settings["comment"] = comment
        doubts.append(_comment_doubt(shape, fields, comment))
    # Comments need not be skipped once more.
    skipped = 0 if comment is not None else front["rows"]
    doubts_before = len(doubts)
    _footer(look, best, settings, doubts, given)
    if has_trailing:
        settings["trailing_delimiter"] = True
        fields -= 1
    cut_numbers = _cut_numbers(best, head)
    doubts += cut_numbers
    names = [text.strip(" \t") for text in head[0][:fields]]
    block = HeaderBlock(0, 0) if given.header is not None else header_block(head, best.fields)
    if block.rows > 1:
        # The last of these rows is the one that a load skips as the header, whichever has the names.
        names = [text.strip(" \t") for text in head[block.names][:fields]]
        is_header, is_above = True, False
        shown_rows = [shown(" ".join(row)) for row in head[: block.rows]]
        what = f"the first {block.rows} rows hold no values where the others do, and are no data"
        doubts.append(Doubt(f"{what}: {either(shown_rows[:3], 'and')}; the names are those of row {block.names + 1}"))
        lines = shape["head_lines"][block.rows - 1]
        own_line = block.names == block.rows - 1
    else:
        is_header = _is_header(names, shape, doubts, given)
        lines, own_line = shape["head_lines"][0] if skipped else 0, True
        is_sought = skipped and not is_header and given.header is None and not cut_numbers
        above = _names_above(front["last"], fields) if is_sought else None
        is_above = above is not None
        if above is not None:
            names, is_header, own_line = above, True, False
            skipped -= 1
            lines = front["last_line"] if skipped else 0
            row = shown(" ".join(front["last"]))
            doubts.append(Doubt(f"the header has another number of fields than the rows, its names were taken: {row}"))
    if skipped:
        rows = [shown(" ".join(row)) for row in front["first"][:skipped]]
        what = f"{count(skipped, 'row')} before the others {are(skipped)} skipped"
        doubts.insert(doubts_before, Doubt(f"{what}: {either(rows, 'and')}", topic="rows before"))
    if look["separator"]:
        lines += 1
    if lines:
        settings["skip_lines"] = lines
    if look["separator"]:
        doubts.append(Doubt(f"the first line, which says that the delimiter is {shown(look['separator'])}, is skipped"))
    if has_trailing and not is_header:
        what = f"every row ends with {shown(best.candidate['delimiter'])}, which was taken for its end"
        doubts.append(Doubt(f"{what}; it could also stand before one more column that is always empty"))
    if is_header:
        usable = _usable_names(names)
        settings["header"] = "check" if usable == tuple(names) and own_line else "skip"
        wrong = [shown(own) for own, name in zip(names, usable, strict=True) if own != name and (own or not is_above)]
        if wrong:
            doubts.append(Doubt(f"names in the header that cannot be those of columns: {either(wrong[:3], 'and')}"))
        return Choice(_ordered(settings), usable, tuple(doubts))
    return Choice(_ordered(settings), tuple(f"column_{number}" for number in range(1, fields + 1)), tuple(doubts))


def _names_above(row: Sequence[str], fields: int) -> list[str] | None:
    """The names of a header that has a field less or more than rows: without a name for the number of a row, or by a
    delimiter at the end of one of them.
    """
    names = [text.strip(" \t") for text in row]
    if len(names) == fields + 1 and not names[-1]:
        names = names[:-1]
    elif len(names) == fields - 1:
        names = ["", *names]
    named = names[1:] if names[:1] == [""] else names
    is_good = len(names) == fields and len(named) > 1 and all(named) and len(set(named)) == len(named)
    return names if is_good and not any(is_data(name) for name in named) else None


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


def _cut_numbers(best: Scored, rows: Sequence[Sequence[str]]) -> list[Doubt]:
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


def _comment(shape: Shape, fields: int) -> str | None:
    front, head = shape["front"], shape["head"]
    odd = [row for row in head if len(row) != fields]
    for mark in _COMMENTS:
        begins = not front["rows"] or front["begin"].startswith(mark)
        # `# id;name` as the header would be skipped with the comments above it, and a row taken for the header.
        is_header = head[0][0].startswith(mark)
        if begins and not is_header and front["rows"] + len(odd) > 1 and all(row[0].startswith(mark) for row in odd):
            return mark
    return None


def _comment_doubt(shape: Shape, fields: int, comment: str) -> Doubt:
    rows = [*shape["front"]["first"], *shape["head"]]
    first = next((place for place, row in enumerate(rows) if len(row) == fields and not row[0].startswith(comment)), 0)
    lines = [(shown(" ".join(row)), place > first) for place, row in enumerate(rows) if row[0].startswith(comment)]
    front = [line for line, is_behind in lines if not is_behind]
    behind = [line for line, is_behind in lines if is_behind]
    where = f"; behind the first row: {either(behind[:3], 'and')}" if behind else ""
    examples = f": {either(front[:3], 'and')}" if front else ""
    what = f"lines that begin with {shown(comment)} are skipped as comments"
    return Doubt(f"{what}{examples}{where}", topic="comments")


def _siblings(look: Mapping[str, Any], best: Scored, given: Given) -> list[Shape]:
    """The end of the file by other dialects with the same delimiter."""
    shapes = look["candidates"] if look["is_whole"] else look["tail"]
    pairs = zip(given.candidates(), shapes, strict=True)
    return [own for candidate, own in pairs if own and candidate["delimiter"] == best.candidate["delimiter"]]


def _footer(look: Mapping[str, Any], best: Scored, settings: dict[str, Any], doubts: list[Doubt], given: Given) -> None:
    if look["compression"] != "none":
        return
    end = best.shape if look["is_whole"] else (look["tail"][best.place] if look["tail"] else None)
    if end is None or best.fields < 2:
        return
    rows = [number == best.fields for number in end["tail_shape"]]
    behind = rows[::-1].index(True) if True in rows else 0
    comment = settings.get("comment")
    texts = end["tail"][len(rows) - behind :]
    last = max(behind, _SIBLING_ROWS)
    if any(set(other["tail_shape"][-last:]) == {best.fields} for other in _siblings(look, best, given)):
        return  # they are rows of another qualifier: the pass will find them
    if not 0 < behind <= MAXIMUM_FOOTER_ROWS or (comment and any(row[0].startswith(comment) for row in texts)):
        return
    if not all(_is_footer(row, best.shape, can_be_cut=behind == 1 and end["is_unended"]) for row in texts):
        return  # data that is broken: misfits, which the pass counts and a load rejects
    settings["footer_rows"] = behind
    lines = either([shown(" ".join(row)) for row in texts[:3]], "and")
    what = f"{count(behind, 'row')} behind the others {are(behind)} skipped"
    doubts.append(Doubt(f"{what}: {lines}", topic="rows behind"))


def _is_footer(row: Sequence[str], shape: Shape, *, can_be_cut: bool) -> bool:
    """Whether a row of another number of fields does not look like data."""
    begin = row[0].strip()
    if shape["classes"][0] and not set(shape["classes"][0]) & _TEXTS:
        return bool(begin) and not is_data(begin)
    return len(row) == 1 and not can_be_cut


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
    against = [name for name in typed if is_data(name)]
    names_of_typed = [name for name in typed if name and not is_data(name)]
    if names_of_typed:
        if len(against) > len(names_of_typed) and not _are_in_series(against):
            doubts.append(Doubt(f"the first row was taken for data, but {_some(names_of_typed)} could be names"))
            return False
        if against:
            doubts.append(Doubt(f"the first row was taken for names, but {_some(against)} could be data"))
        return True
    if len(set(named)) < len(named):
        return False
    if typed:
        if 0 < len(against) < len(named) and all(_YEAR.fullmatch(name) for name in against):
            doubts.append(Doubt(f"the first row was taken for data, but {_some(against)} could be names"))
        return False
    if any(is_data(name) or COLONS_IN_VALUES.search(name) or not any(map(str.isalnum, name)) for name in named):
        return False
    if not any(shape["classes"]):
        what = "there is one row only" if shape["rows"] < 2 else "the other rows have no value"
        doubts.append(Doubt(f"{what}: the first row was taken for names, and every column is a text"))
        return True
    if any(shape["repeats"][: len(names)]) or _is_alike(shape, names):
        return False
    doubts.append(Doubt(f"all columns are texts: the first row, {_some(names)}, was taken for names"))
    return True


def _are_in_series(names: Sequence[str]) -> bool:
    """Whether they are years, or numbers of months or the like: each one more than that before it."""
    if all(_YEAR.fullmatch(name) for name in names):
        return True
    are_whole = all(name.isascii() and name.isdigit() and len(name) < _YEAR_DIGITS for name in names)
    return are_whole and all(int(other) == int(name) + 1 for name, other in itertools.pairwise(names))


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
