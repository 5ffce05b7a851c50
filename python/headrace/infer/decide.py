"""What a column is, from facts about its values: a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.infer import dates, nearly, numbers
from headrace.infer.dates import ISO_UNPADDED, counted_patterns, is_unpadded_iso, patterns
from headrace.infer.facts import ClassFacts, ColumnFacts
from headrace.infer.inferred import Doubt, InferredColumn
from headrace.infer.text_class import NULL_WORDS
from headrace.infer.wording import are, count, either, first_value, shown
from headrace.model import DataType

# A longer text has no length.
MAXIMUM_LENGTH: Final = 10_000
MAXIMUM_NULL_WORDS: Final = 3
# The first year that two digits mean, in lines that are ready to be taken.
_PIVOT: Final = 1950
_PLAIN_TYPES: Final = {
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "time": "time",
    "truth": "bool",
    "uuid": "uuid",
}
_NOUNS: Final = {
    "whole": "whole numbers",
    "point": "numbers with a point",
    "comma": "numbers with a comma",
    "maybe_point": "numbers such as 1.234",
    "maybe_comma": "numbers such as 1,234",
    "grouped_point": "numbers in groups with points",
    "grouped_comma": "numbers in groups with commas",
    "exponent": "numbers with an exponent",
    "bare_exponent": "texts such as 12E3",
    "date": "dates",
    "timestamp": "timestamps",
    "timestamptz": "timestamps with an offset",
    "time": "times",
    "dated": "dates",
    **nearly.NOUNS,
    "truth": "truth values",
    "uuid": "UUIDs",
    "other": "other texts",
}


@dataclass(frozen=True, slots=True)
class Proofs:
    """What some columns of files prove, and others leave open: the decimal mark, patterns of dates."""

    decimal_mark: str | None = None
    patterns: frozenset[str] = frozenset()


NOTHING_PROVED: Final = Proofs()


def proofs_of(columns: Sequence[ColumnFacts]) -> Proofs:
    """What columns prove."""
    patterns_of = [fitting for own in columns for one in own.dates if len(fitting := patterns(one)) == 1]
    return Proofs(
        numbers.proved_mark([own.classes for own in columns]),
        frozenset(pattern for fitting in patterns_of for pattern in fitting),
    )


@dataclass(frozen=True, slots=True)
class _Typed:
    """What all values of a column are; no type: a text."""

    type: DataType | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()
    extremes: tuple[str, str] | None = None


def decide(
    facts: ColumnFacts, proofs: Proofs = NOTHING_PROVED, files: Sequence[str] = (), *, can_trim: bool = True
) -> InferredColumn:
    """The narrowest exact type of a column, and what nobody can know.

    `proofs`: what other columns of the files prove. `can_trim`: whether `trim` takes all blanks at the ends of
    fields; not where they may stand between qualifiers or behind an escape.
    """
    classes = {name: own for name, own in facts.classes.items() if name != "blank"}
    words = _null_words(facts, classes)
    typed = {name: own for name, own in classes.items() if name != "other"} if words else classes
    if not typed:
        return _text(facts, ())
    found = _typed(facts, typed, proofs, files)
    if found.type is None:
        return _text(facts, found.doubts)
    if facts.blank_ends and not can_trim:
        blanks = f"blanks stand at the ends of {count(facts.blank_ends, 'value')}, perhaps between qualifiers"
        doubt = f"{blanks}; without them the type would be {found.type}"
        return _text(facts, (Doubt(doubt),))
    settings = dict(found.settings)
    doubts = list(found.doubts)
    if facts.blank_ends:
        settings["trim"] = "both"
    if words:
        settings |= {"null_tokens": [word for word, _ in words], "qualified_null_tokens": True}
        counted = either([f"{shown(word)} ({count(number)})" for word, number in words], "and")
        doubts.append(Doubt(f"{counted} among other values {are(len(words))} taken for null"))
    if facts.empty:
        settings["qualified_empty"] = "null"
        doubts.append(Doubt(f"{count(facts.empty, 'empty text')} between qualifiers {are(facts.empty)} taken for null"))
    blank = facts.classes["blank"].count if "blank" in facts.classes else 0
    nulls = facts.nulls + facts.empty + blank + sum(number for _, number in words)
    return InferredColumn(
        facts.name,
        found.type,
        nulls > 0,
        settings,
        tuple(doubts),
        found.extremes,
        nulls=nulls,
        null_texts=len(words) + bool(facts.empty),
    )


def _null_words(facts: ColumnFacts, classes: Mapping[str, ClassFacts]) -> tuple[tuple[str, int], ...]:
    """Known words for null, if they are the only texts among values of a type."""
    is_mixed = "other" in classes and len(classes) > 1
    are_words = 0 < len(facts.others) <= MAXIMUM_NULL_WORDS and all(word in NULL_WORDS for word, _ in facts.others)
    return facts.others if is_mixed and facts.others_complete and are_words else ()


def _text(facts: ColumnFacts, doubts: tuple[Doubt, ...]) -> InferredColumn:
    least, most = facts.least_length, facts.greatest_length
    if not most or most > MAXIMUM_LENGTH:
        kind = DataType("string")
    elif least == most and not facts.ends_blank:
        kind = DataType("char", length=most)
    else:
        kind = DataType("varchar", length=most)
    return InferredColumn(facts.name, kind, facts.nulls > 0 or facts.values == 0, {}, doubts, nulls=facts.nulls)


def _typed(facts: ColumnFacts, classes: Mapping[str, ClassFacts], proofs: Proofs, files: Sequence[str]) -> _Typed:
    kinds = set(classes)
    if "other" in kinds:
        return _Typed(doubts=_mixed_with_text(facts, classes, proofs, files))
    if kinds <= set(numbers.NUMBERS):
        return _numbers(classes, proofs.decimal_mark, files)
    if kinds <= {"date", "dated"} and "dated" in kinds:
        return _dates(facts, kinds, proofs, files)
    doubt = nearly.doubt(classes, proofs.decimal_mark, files)
    if doubt is not None:
        return _Typed(doubts=(doubt,))
    if len(kinds) == 1:
        return _Typed(DataType(_PLAIN_TYPES[kinds.pop()]))
    return _Typed(doubts=(Doubt(f"values of several kinds: {_counted(classes, files)}"),))


def _counted(classes: Mapping[str, ClassFacts], files: Sequence[str]) -> str:
    """`10 dates, 2 whole numbers; the first of the last is "7" (a.csv, row 3)`; the rarest kind last."""
    ordered = sorted(classes.items(), key=lambda item: -item[1].count)
    kinds = ", ".join(f"{_NOUNS[name]}: {count(own.count)}" for name, own in ordered)
    return f"{kinds}; the first of the last kind is {first_value(ordered[-1][1].first, files)}"


def _mixed_with_text(
    facts: ColumnFacts, classes: Mapping[str, ClassFacts], proofs: Proofs, files: Sequence[str]
) -> tuple[Doubt, ...]:
    """Texts among values of a type are worth a word where they are the smaller part."""
    others = classes["other"]
    all_of = sum(own.count for own in classes.values())
    if 2 * others.count > all_of:
        return ()
    rest = {name: own for name, own in classes.items() if name != "other"}
    kinds = either([_NOUNS[name] for name in rest], "and")
    text = (
        f"{count(all_of - others.count)} of {count(all_of, 'value')} could be {kinds}, "
        f"{count(others.count)} could not: the first is {first_value(others.first, files)}"
    )
    return (Doubt(text, _choices(_typed(facts, rest, proofs, files), facts)),)


def _choices(typed: _Typed, facts: ColumnFacts) -> tuple[Mapping[str, Any], ...]:
    """What a column could be whose other values are rejected: the one type, or those that a doubt has."""
    if typed.type is not None:
        choices: tuple[Mapping[str, Any], ...] = ({"type": str(typed.type), **typed.settings},)
    else:
        choices = tuple(settings for doubt in typed.doubts for settings in doubt.instead)
    trimmed = {"trim": "both"} if facts.blank_ends else {}
    return tuple({**settings, **trimmed} for settings in choices)


def _numbers(classes: Mapping[str, ClassFacts], decimal_mark: str | None, files: Sequence[str]) -> _Typed:
    plus = sum(own.plus for own in classes.values())
    minus = sum(own.minus for own in classes.values())
    zeros = sum(own.leading_zeros for own in classes.values())
    if zeros or (plus and not minus):
        what = f"{count(zeros, 'number')} with a leading zero" if zeros else f"{count(plus, 'number')} with a plus"
        first = min((own.first for own in classes.values()), key=lambda one: (one.file, one.row))
        readings = numbers.readings_of(classes)
        as_number = readings[0].type(classes) if readings else None
        instead = ({"type": str(as_number), **_number_settings(readings[0], as_number)},) if as_number else ()
        return _Typed(
            doubts=(Doubt(f"{what}: perhaps codes; the first value is {first_value(first, files)}", instead),)
        )
    if set(classes) & set(numbers.FLOATING):
        return _floating(classes, files)
    readings = numbers.readings_of(classes)
    if not readings:
        return _Typed(doubts=(Doubt(f"points and commas contradict each other: {_counted(classes, files)}"),))
    if len(readings) == 1:
        return _of_reading(readings[0], classes, files)
    return _ambiguous(readings, classes, decimal_mark, files)


def _number_settings(reading: numbers.Reading, kind: DataType) -> dict[str, Any]:
    return reading.settings(is_whole=kind.kind.startswith("int"))


def _of_reading(
    reading: numbers.Reading, classes: Mapping[str, ClassFacts], files: Sequence[str], doubts: tuple[Doubt, ...] = ()
) -> _Typed:
    kind = reading.type(classes)
    if kind is None:
        return _too_many_digits(classes, files)
    return _Typed(kind, _number_settings(reading, kind), doubts, reading.extremes(classes))


def _too_many_digits(classes: Mapping[str, ClassFacts], files: Sequence[str]) -> _Typed:
    first = max(classes.values(), key=lambda own: own.digits_before + own.digits_behind).first
    digits = f"more than {numbers.MAXIMUM_DIGITS} digits; the first value is {first_value(first, files)}"
    is_told_again = not any(own.inexact for own in classes.values()) and set(classes) <= set(numbers.PLAIN)
    if is_told_again:
        return _Typed(DataType("float64"), {}, (Doubt(f"{digits}; every one is told again by a float64"),))
    return _Typed(doubts=(Doubt(digits),))


def _floating(classes: Mapping[str, ClassFacts], files: Sequence[str]) -> _Typed:
    with_exponent = [own for name, own in classes.items() if name in numbers.FLOATING]
    first = min((own.first for own in with_exponent), key=lambda one: (one.file, one.row))
    number = sum(own.count for own in with_exponent)
    what = f"{count(number, 'value')} with an exponent, the first {first_value(first, files)}"
    instead = ({"type": "float64"},)
    if "bare_exponent" in classes:
        return _Typed(doubts=(Doubt(f"{what}: a number, or a code", instead),))
    if set(classes) - {*numbers.PLAIN, "exponent"}:
        return _Typed(doubts=(Doubt(f"points and commas contradict each other: {_counted(classes, files)}"),))
    inexact = sum(own.inexact for own in classes.values())
    if inexact:
        lost = f"of {count(inexact, 'value')} a float64 would tell other digits"
        return _Typed(doubts=(Doubt(f"{what}; {lost}", instead),))
    return _Typed(DataType("float64"), {}, (Doubt(f"{what}: float64 is not exact, but tells every value again"),))


def _ambiguous(
    readings: Sequence[numbers.Reading],
    classes: Mapping[str, ClassFacts],
    decimal_mark: str | None,
    files: Sequence[str],
) -> _Typed:
    """`1,234` and nothing that says whether it is more or less than two."""
    maybe = next(own for name, own in classes.items() if name in numbers.MAYBE.values())
    choices: dict[numbers.Reading, dict[str, Any]] = {}
    for reading in readings:
        kind = reading.type(classes)
        if kind is not None:
            choices[reading] = {"type": str(kind), **_number_settings(reading, kind)}
    what = f"every number with a mark is like {first_value(maybe.first, files)}, with three digits behind it"
    proved = [reading for reading in readings if reading.decimal == decimal_mark]
    usual = [reading for reading in readings if reading == numbers.POINT]
    if len(proved) == 1:
        chosen, why = proved[0], f"taken for {_meaning(proved[0], classes)}, as in other columns"
    elif usual:
        chosen, why = usual[0], "taken for a decimal point"
    else:
        return _Typed(doubts=(Doubt(f"{what}: a decimal mark, or one between groups", tuple(choices.values())),))
    others = tuple(settings for reading, settings in choices.items() if reading != chosen)
    return _of_reading(chosen, classes, files, (Doubt(f"{what}: {why}", others),))


def _meaning(reading: numbers.Reading, classes: Mapping[str, ClassFacts]) -> str:
    is_group = any(name in reading.groups for name in classes)
    return "a mark between groups" if is_group else "a decimal mark"


def _dates(facts: ColumnFacts, kinds: set[str], proofs: Proofs, files: Sequence[str]) -> _Typed:
    if is_unpadded_iso(facts.dates):
        extremes = dates.unpadded_extremes(facts.dates, facts.classes.get("date"))
        return _Typed(DataType("date"), {"format": ISO_UNPADDED}, extremes=extremes)
    if len(facts.dates) > 1 or "date" in kinds:
        forms = "dates and times are written in several ways"
        return _Typed(doubts=(Doubt(f"{forms}; the first value is {first_value(facts.dates[0].first, files)}"),))
    found = facts.dates[0]
    kind = "date" if found.clock == "none" else "timestamp"
    fitting = patterns(found)
    first = f"the first is {first_value(found.first, files)}"
    if found.year == "short":
        instead = tuple({"type": kind, "format": {"pattern": pattern, "pivot": _PIVOT}} for pattern in fitting)
        return _Typed(doubts=(Doubt(f"dates whose year has two digits: which century is unknown; {first}", instead),))
    if len(fitting) == 1:
        return _Typed(DataType(kind), {"format": fitting[0]}, extremes=dates.extremes(found, fitting[0]))
    if not fitting:
        counted = counted_patterns(found)
        partly = either([f"{count(number)} {pattern}" for pattern, number in counted], "and")
        most = max(number for _, number in counted)
        instead = tuple({"type": kind, "format": pattern} for pattern, number in counted if number == most)
        text = f"of {count(found.count, 'value')} {partly} fit, but no pattern fits all; {first}"
        return _Typed(doubts=(Doubt(text, instead),))
    named = either(fitting, "and")
    all_fit = f"all {count(found.count, 'value')} fit" if found.count > 1 else "the only value fits"
    what = f"{all_fit} {named}, none only one of them; {first}"
    proved = [pattern for pattern in fitting if pattern in proofs.patterns]
    if len(proved) == 1:
        what += f"; other columns are {proved[0]} only"
        fitting.sort(key=lambda pattern: pattern != proved[0])
    return _Typed(doubts=(Doubt(what, tuple({"type": kind, "format": pattern} for pattern in fitting)),))
