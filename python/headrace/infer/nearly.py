"""Values that people take for numbers or days, and no type takes as they are: doubts that say what they look like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace.infer.facts import ClassFacts
from headrace.infer.inferred import Doubt
from headrace.infer.numbers import FLOATING, MAXIMUM_DIGITS, NUMBERS
from headrace.infer.wording import count, either, first_value
from headrace.model.column_format_months import folded, long_months, short_months

NOUNS: Final = {
    "percent": "numbers with a percent sign",
    "currency": "numbers with a currency",
    "other_groups": "numbers in groups with blanks or apostrophes",
    "accounting": "numbers with a minus behind them or in parentheses",
    "month_name": "dates with names of months",
}
# The first language of two that have the same name.
_LOCALES: Final = ("en", "de", "fr", "es", "it", "nl", "pt")
_PIVOT: Final = 1950
_NUMBERS: Final = frozenset({"percent", "currency", "other_groups", "accounting"})
_CURRENCY: Final = re.compile(r"[^\d\s.,()+\u00a0\u202f-]+")
_GROUP: Final = re.compile(r"\d([ '\u2019\u00a0\u202f])\d")
_DATE: Final = re.compile(
    r"(?P<day>\d{1,2})(?P<one>[-/ ]|\. ?)(?P<month>[^\W\d]+\.?)(?P<two>[-/ .])(?P<year>\d{4}|\d\d)"
    r"(?P<clock>[ T]\d\d:\d\d(?::\d\d)?)?"
)
_WHOLE_KINDS: Final = (("int16", 4), ("int32", 9), ("int64", 18))


def doubt(classes: Mapping[str, ClassFacts], decimal_mark: str | None, files: Sequence[str]) -> Doubt | None:
    """The doubt of a column of nothing but such values, plain numbers among them; None for any other."""
    near = [name for name in classes if name in NOUNS]
    if not near or not set(classes) <= ({"month_name"} if near == ["month_name"] else _NUMBERS | set(NUMBERS)):
        return None
    values = count(sum(own.count for own in classes.values()))
    nouns = either([f"{NOUNS[name]} ({count(classes[name].count)} of {values})" for name in near], "and")
    text = f"{nouns}, which no type takes as they are; the first is {first_value(classes[near[0]].first, files)}"
    if near == ["month_name"]:
        settings = _date_settings(classes["month_name"].first.value.strip(" \t"))
    else:
        settings = _number_settings(classes, decimal_mark)
        text += "; no format reads percent signs" if "percent" in classes else ""
    return Doubt(text, () if settings is None else (settings,))


def _date_settings(text: str) -> dict[str, Any] | None:
    """A pattern for dates written as this one is, if its month is known."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    month = folded(match["month"])
    for locale in _LOCALES:
        for letters, names in (("MMM", short_months(locale)), ("MMMM", long_months(locale))):
            if any(month == folded(name) for spellings in names for name in spellings):
                clock = _clock(match["clock"] or "")
                year = "y" * len(match["year"])
                pattern = f"d{match['one']}{letters}{match['two']}{year}{clock}"
                pivot = {"pivot": _PIVOT} if year == "yy" else {}
                own = {"pattern": pattern, "locale": locale, **pivot}
                return {"type": "timestamp" if clock else "date", "format": own}
    return None


def _clock(text: str) -> str:
    if not text:
        return ""
    between = "'T'" if text[0] == "T" else " "
    return f"{between}HH:mm{':ss' if text.count(':') == 2 else ''}"


def _number_settings(classes: Mapping[str, ClassFacts], decimal_mark: str | None) -> dict[str, Any] | None:
    """A format for numbers written as the first of each kind is; None if none is sure."""
    if "percent" in classes or set(classes) & set(FLOATING) or any(own.leading_zeros for own in classes.values()):
        return None
    own: dict[str, Any] = {}
    bare = []
    for name, facts in classes.items():
        text = facts.first.value.strip(" \t")
        if name == "currency":
            found = _CURRENCY.search(text)
            own["currency"] = found[0] if found else ""
        if name == "accounting":
            own["negative"] = "parentheses" if text.startswith("(") else "trailing_minus"
        group = _GROUP.search(text)
        if group is not None:
            own["group"] = group[1]
            text = text.replace(group[1], "")
        bare.append(re.sub(r"[^\d.,]", "", text))
    marks = _marks(bare, decimal_mark)
    if marks is None or (marks[1] and "group" in own):
        return None
    decimal, group_mark = marks
    own = {**({} if decimal == "." else {"decimal": decimal}), **({"group": group_mark} if group_mark else {}), **own}
    if any(not value for value in own.values()):
        return None
    kind = _kind(classes)
    return None if kind is None else {"type": kind, "format": own}


def _marks(texts: Sequence[str], decimal_mark: str | None) -> tuple[str, str | None] | None:
    """Decimal mark and mark between groups, as texts of digits, points and commas have them; None if nobody knows."""
    decimals: set[str] = set()
    groups: set[str] = set()
    for text in texts:
        marks = re.findall(r"[.,]", text)
        if len(set(marks)) == 2:
            decimals.add(marks[-1])
            groups.add(marks[0])
        elif len(marks) > 1:
            groups.add(marks[0])
        elif marks and not re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", text):
            decimals.add(marks[0])
        elif marks and decimal_mark is None:
            return None
        elif marks:
            (decimals if marks[0] == decimal_mark else groups).add(marks[0])
    if len(decimals) > 1 or len(groups) > 1 or decimals & groups:
        return None
    group = next(iter(groups), None)
    usual = {".": ",", ",": "."}.get(group or "", decimal_mark or ".")
    return next(iter(decimals), usual), group


def _kind(classes: Mapping[str, ClassFacts]) -> str | None:
    before = max(own.digits_before for own in classes.values())
    behind = max(own.digits_behind for own in classes.values())
    if before + behind > MAXIMUM_DIGITS:
        return None
    if behind == 0:
        whole = next((kind for kind, digits in _WHOLE_KINDS if before <= digits), None)
        return whole or f"decimal({before},0)"
    return f"decimal({before + behind},{behind})"
