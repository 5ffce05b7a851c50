"""Checks of formats: whether they fit their type, mean one thing, and can be told from the delimiters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from headrace.model.column_format import (
    NUMBER_KINDS,
    TEMPORAL_KINDS,
    ColumnFormat,
    given,
    keys_of,
    offset_minutes,
)
from headrace.model.column_format_months import folded, long_months, short_months
from headrace.model.column_format_patterns import Element, check_for_type, parse_pattern
from headrace.model.column_format_reading import Reading, shown, witness
from headrace.model.settings import errors_below, own_error
from headrace.model.suggest import one_of, quote

_BLANKS = " \u00a0\u202f"
_MONTHS_OF_A_YEAR = 12


def check_format(column_format: ColumnFormat, kind: str) -> None:
    """Raise an own error, whose path leads from the format, if it is none of a type of this kind."""
    allowed = keys_of(kind)
    if not allowed:
        raise own_error(
            f"columns of type {kind} have no format",
            expected="a format of a number, date, time, timestamp or bool",
            hint="Remove `format`.",
        )
    wrong = next((key for key in given(column_format) if key not in allowed), None)
    if wrong is not None:
        raise own_error(
            f"`{wrong}` means nothing for the type {kind}", expected=one_of(allowed), path=(wrong,),
            hint=f"Remove `{wrong}`." if wrong != "pattern" else _instead_of_pattern(kind),
        )  # fmt: skip
    if kind == "bool":
        _check_truth(column_format)
    elif kind in NUMBER_KINDS:
        _check_number(column_format, kind)
    elif kind in TEMPORAL_KINDS:
        _check_temporal(column_format, kind)


def _instead_of_pattern(kind: str) -> str:
    example = "{true: [J], false: [N]}" if kind == "bool" else '{decimal: ","}'
    return f"Write a mapping, such as `{example}`."


def _check_number(column_format: ColumnFormat, kind: str) -> None:
    group = column_format.group
    if group is not None and (group.mark in column_format.decimal or column_format.decimal in group.mark):
        raise own_error(
            f"the decimal mark {quote(column_format.decimal)} and the group mark {quote(group.mark)} are alike",
            expected="two marks of which none is in the other",
            hint='Set `decimal: ","`.' if group.mark == "." and "decimal" not in given(column_format) else None,
            path=("group",) if "decimal" not in given(column_format) else ("decimal",),
        )
    if column_format.hex:
        surplus = next((key for key in given(column_format) if key not in ("hex", "negative")), None)
        if kind not in ("int16", "int32", "int64") or surplus is not None:
            raise own_error(
                f"hexadecimal numbers have no `{surplus}`" if surplus else f"a {kind} cannot be hexadecimal",
                expected="`hex` alone or with `negative`" if surplus else "int16, int32 or int64",
                path=(surplus or "hex",),
            )
    _check_currencies(column_format)


def _check_currencies(column_format: ColumnFormat) -> None:
    marks = column_format.decimal + ("" if column_format.group is None else column_format.group.mark) + _BLANKS
    for number, currency in enumerate(column_format.currency):
        is_part = any(character in "0123456789+-()" or not character.isprintable() for character in currency)
        if is_part or not currency.strip(marks) or currency != currency.strip(_BLANKS):
            raise own_error(
                f"{quote(currency)} cannot be a currency",
                expected="texts without digits, signs and parentheses, without blanks around them",
                path=("currency", number),
            )
    for first, second in combinations(sorted(column_format.currency, key=len), 2):
        rests = [second.removeprefix(first), second.removesuffix(first)]
        if any(len(rest) < len(second) and not rest.strip(marks) for rest in rests):
            raise own_error(
                f"the currencies {quote(first)} and {quote(second)} cannot be told apart beside a mark",
                expected="currencies that differ by more than a mark or blank",
                path=("currency",),
            )


def _check_truth(column_format: ColumnFormat) -> None:
    for key in ("true", "false"):
        texts = getattr(column_format, key)
        if not texts:
            raise own_error(
                f"the texts that mean {key} are missing",
                expected="`true` and `false` with a list of texts each",
                path=(key,),
            )
        if "" in texts:
            raise own_error(
                "an empty text is null, not a truth value",
                expected="texts that are not empty",
                path=(key, texts.index("")),
            )
    seen: set[str] = set()
    every = [("true", *item) for item in enumerate(column_format.true)]
    every += [("false", *item) for item in enumerate(column_format.false)]
    for key, number, text in every:
        if folded(text) in seen:
            raise own_error(
                f"the text {quote(text)} is given twice", expected="different texts, also in small letters",
                path=(key, number),
            )  # fmt: skip
        seen.add(folded(text))


def _check_temporal(column_format: ColumnFormat, kind: str) -> None:
    if column_format.epoch is not None:
        _check_epoch(column_format, kind)
        return
    if not column_format.pattern:
        raise own_error("a pattern is missing", expected="a pattern such as dd.MM.yyyy", hint="Add `pattern`.")
    parsed: list[tuple[Element, ...]] = []
    for number, pattern in enumerate(column_format.pattern):
        with errors_below("pattern", number):
            parsed.append(parse_pattern(pattern))
            check_for_type(parsed[-1], pattern, kind)
    _check_pivot(column_format, parsed)
    months = _check_months(column_format, parsed)
    _check_offset(column_format, parsed, kind)
    _check_ambiguity(column_format, parsed, months)


def _check_epoch(column_format: ColumnFormat, kind: str) -> None:
    surplus = next((key for key in given(column_format) if key != "epoch"), None)
    if kind not in ("timestamp", "timestamptz"):
        raise own_error(f"a {kind} is no count of seconds", expected="timestamp or timestamptz", path=("epoch",))
    if surplus is not None:
        raise own_error(
            f"`epoch` and `{surplus}` contradict each other", expected="one of them", path=(surplus,),
            hint=f"Remove `{surplus}`.",
        )  # fmt: skip


def _uses(parsed: Sequence[Sequence[Element]], part: str, most: int, kind: str = "number") -> bool:
    return any(
        element.part == part and element.most == most and element.kind == kind
        for elements in parsed
        for element in elements
    )


def _check_pivot(column_format: ColumnFormat, parsed: Sequence[Sequence[Element]]) -> None:
    is_used = _uses(parsed, "year", 2)
    if is_used and column_format.pivot is None:
        raise own_error(
            "`yy` can mean any century",
            expected="`pivot`: the first of the hundred years that two digits can mean",
            hint="Set `pivot: 1950` if 50 is 1950 and 49 is 2049.",
            path=("pattern",),
        )
    if column_format.pivot is not None and not is_used:
        raise own_error("`pivot` without a year of two digits", expected="`yy` in a pattern", path=("pivot",))


def _check_months(column_format: ColumnFormat, parsed: Sequence[Sequence[Element]]) -> dict[str, list[list[str]]]:
    """The names of months that the patterns need, as the core reads them."""
    names: dict[str, list[list[str]]] = {}
    for most, letters, key in ((3, "MMM", "short"), (4, "MMMM", "long")):
        if not _uses(parsed, "month", most, "month_name"):
            continue
        own = [] if column_format.months is None else getattr(column_format.months, key)
        if own:
            names[f"{key}_months"] = _own_names(own, key)
        elif column_format.locale is not None:
            make = short_months if key == "short" else long_months
            names[f"{key}_months"] = make(column_format.locale)
        else:
            raise own_error(
                f"`{letters}` needs names of months",
                expected=f"`locale`, or `months` with `{key}`",
                hint="Set `locale: de` or another language.",
                path=("pattern",),
            )
    unused = "locale" if column_format.locale is not None else "months"
    if not names and getattr(column_format, unused) is not None:
        raise own_error(f"`{unused}` without names of months", expected="`MMM` or `MMMM` in a pattern", path=(unused,))
    return names


def _own_names(names: list[str], key: str) -> list[list[str]]:
    path = ("months", key)
    if len(names) != _MONTHS_OF_A_YEAR:
        raise own_error(f"{len(names)} names of months", expected="twelve names from January on", path=path)
    for number, name in enumerate(names):
        if not name or any(character.isdigit() or not character.isprintable() for character in name):
            raise own_error(
                f"{quote(name)} cannot be the name of a month", expected="texts without digits", path=(*path, number)
            )
        for other in names[:number] + names[number + 1 :]:
            if folded(other).startswith(folded(name)):
                raise own_error(
                    f"the names {quote(name)} and {quote(other)} begin alike",
                    expected="names of which none begins another",
                    path=(*path, number),
                )
    return [[name] for name in names]


def _check_offset(column_format: ColumnFormat, parsed: Sequence[Sequence[Element]], kind: str) -> None:
    without = [
        number for number, elements in enumerate(parsed) if not any(element.part == "offset" for element in elements)
    ]
    if kind != "timestamptz":
        if column_format.offset is not None:
            raise own_error(
                f"a {kind} has no offset from UTC", expected="no `offset`", hint="Remove `offset`.", path=("offset",)
            )
        return
    if column_format.offset is None:
        if without:
            raise own_error(
                f"the pattern {quote(column_format.pattern[without[0]])} gives no offset from UTC",
                expected="`zzz` or `Z` in the pattern, or `offset`",
                hint='Set `offset: "+00:00"` if the times are in UTC.',
                path=("pattern", without[0]),
            )
        return
    if offset_minutes(column_format.offset) is None:
        raise own_error(
            f"{quote(column_format.offset)} is no offset from UTC",
            expected='an offset such as "+01:00", up to 15:59',
            hint="Names of time zones are not known." if column_format.offset.isalpha() else None,
            path=("offset",),
        )
    if len(without) < len(parsed):
        raise own_error(
            "a pattern gives the offset from UTC, and so does `offset`",
            expected="one of the two",
            hint="Remove `offset`, or `zzz` from the pattern.",
            path=("offset",),
        )


def _check_ambiguity(
    column_format: ColumnFormat, parsed: Sequence[Sequence[Element]], months: dict[str, list[list[str]]]
) -> None:
    """No text may have two values, so that the order of the patterns does not matter."""
    names = {
        key: tuple(tuple(dict.fromkeys(folded(name) for name in one)) for one in months.get(f"{key}_months", []))
        for key in ("short", "long")
    }
    offset = 0 if column_format.offset is None else offset_minutes(column_format.offset) or 0
    reading = Reading(column_format.pivot or 0, names["short"], names["long"], offset)
    for first, second in combinations(range(len(parsed)), 2):
        found = witness(parsed[first], parsed[second], reading)
        if found is not None:
            text, *values = found
            patterns = (column_format.pattern[first], column_format.pattern[second])
            both = [f"{shown(value)} by {quote(own)}" for value, own in zip(values, patterns, strict=True)]
            raise own_error(
                f"{quote(text)} is {' and '.join(both)}",
                expected="patterns of which no text has two values",
                hint="Leave out the pattern that this file does not use.",
                path=("pattern", second),
            )


def month_names(column_format: ColumnFormat) -> dict[str, list[list[str]]]:
    """The names of months of a format that has been checked, as the core reads them."""
    return _check_months(column_format, [parse_pattern(pattern) for pattern in column_format.pattern])


def texts_of(column_format: ColumnFormat, kind: str) -> list[tuple[tuple[str | int, ...], str]]:
    """Texts that stand in fields as they are, with the path to each."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    for number, pattern in enumerate(column_format.pattern):
        found += [(("pattern", number), element.text) for element in parse_pattern(pattern) if element.text]
    for key in ("currency", "true", "false"):
        found += [((key, number), text) for number, text in enumerate(getattr(column_format, key))]
    if kind in NUMBER_KINDS and not column_format.hex:
        if column_format.scientific or kind not in ("int16", "int32", "int64"):
            found.append((("decimal",), column_format.decimal))
        if column_format.group is not None:
            found.append((("group",), column_format.group.mark))
    return found
