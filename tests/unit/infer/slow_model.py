"""Facts about a column, plainly: what the core tells must equal this."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

NUMBER_CLASSES = (
    "whole",
    "point",
    "comma",
    "maybe_point",
    "maybe_comma",
    "grouped_point",
    "grouped_comma",
    "exponent",
    "bare_exponent",
)
_PATTERNS = [
    ("whole", r"[+-]?[0-9]+"),
    ("maybe_point", r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}"),
    ("maybe_comma", r"[+-]?[1-9][0-9]{0,2},[0-9]{3}"),
    ("point", r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)"),
    ("comma", r"[+-]?([0-9]+,[0-9]*|,[0-9]+)"),
    ("grouped_point", r"[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+|[+-]?[0-9]{1,3}(\.[0-9]{3}){2,}"),
    ("grouped_comma", r"[+-]?[0-9]{1,3}(,[0-9]{3})+\.[0-9]+|[+-]?[0-9]{1,3}(,[0-9]{3}){2,}"),
    ("bare_exponent", r"[+-]?[0-9]+[eE][0-9]+"),
    ("exponent", r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
    ("truth", r"(?i:true|false)"),
    ("uuid", r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
]
_NUMBER = "|".join(f"(?:{pattern})" for name, pattern in _PATTERNS[:7])
_BLANKS = "[ \u00a0\u202f]*"
_CURRENCY = r"(?:\$|€|£|¥|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD)"
_MARK = "(?P<mark>[ '\u2019\u00a0\u202f])"
# Numbers with something around them; the group `inner` is the number.
_AROUND = [
    ("percent", rf"(?P<inner>{_NUMBER}){_BLANKS}%"),
    ("currency", rf"{_CURRENCY}{_BLANKS}(?P<inner>{_NUMBER})"),
    ("currency", rf"-{_CURRENCY}{_BLANKS}(?P<inner>(?=[0-9])(?:{_NUMBER}))"),
    ("currency", rf"(?P<inner>{_NUMBER}){_BLANKS}{_CURRENCY}"),
    ("other_groups", rf"(?P<inner>[+-]?[0-9]{{1,3}}{_MARK}[0-9]{{3}}((?P=mark)[0-9]{{3}})*([.,][0-9]*)?)"),
    ("accounting", rf"\((?P<inner>(?![+-])(?:{_NUMBER}))\)"),
    ("accounting", rf"(?P<inner>(?![+-])(?:{_NUMBER}))-"),
]
_DAY = r"(?:0?[1-9]|[12][0-9]|3[01])"
_YEAR = r"(?:[0-9]{4}|[0-9]{2})(?:[ T](?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6})?)?)?"
_WORD = r"[^\W\d_]{3,}\.*"
_MONTH_NAME = re.compile(
    rf"{_DAY}(?P<one>-|/|\. ?| )(?P<word>{_WORD})(?P<two>[-/. ]){_YEAR}|(?P<front>{_WORD}) {_DAY}, {_YEAR}"
)
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6}0*)?)?"
_OFFSET = r"([Zz]|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
_ISO = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})(?:[ T](?P<time>{_TIME})(?P<offset>{_OFFSET})?)?")
_DATED = re.compile(
    r"([0-9]{1,4})([/.-])([0-9]{1,2})\2([0-9]{1,4})"
    r"(?:(?P<between>[ T])(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?P<fraction>\.[0-9]{1,6})?)?)?"
)


def class_of(text: str) -> str:
    """The class of a text that is not empty."""
    text = text.strip(" \t")
    if not text:
        return "blank"
    for name, pattern in _PATTERNS:
        if re.fullmatch(pattern, text):
            return name
    if re.fullmatch(_TIME, text):
        return "time"
    iso = _ISO.fullmatch(text)
    if iso is not None and _is_day(int(iso[1]), int(iso[2]), int(iso[3])):
        return "date" if iso["time"] is None else "timestamp" if iso["offset"] is None else "timestamptz"
    if dated(text) is not None:
        return "dated"
    found = around(text)
    return found[0] if found is not None else "month_name" if _has_month_name(text) else "other"


def around(text: str) -> tuple[str, str] | None:
    """Class of a number with something around it, and the number."""
    ends = text[0] in "0123456789(+-.," or text[-1] in "0123456789"
    if not ends or len(text.encode()) > 40:
        return None
    for name, pattern in _AROUND:
        match = re.fullmatch(pattern, text)
        if match is not None:
            inner = match["inner"]
            inner = inner if name != "other_groups" else inner.replace(match["mark"], "")
            return (name, inner) if class_of(inner) in NUMBER_CLASSES else None
    return None


def _has_month_name(text: str) -> bool:
    digits = "0123456789"
    if len(text.encode()) > 40 or not (text[0] in digits or text[-1] in digits):
        return False
    match = _MONTH_NAME.fullmatch(text)
    if match is None:
        return False
    return match["one"] is None or match["two"] == {". ": " "}.get(match["one"], match["one"])


def dated(text: str) -> tuple[tuple[str, str, str, str], dict[str, bool], list[bool], bool] | None:
    """Signature, readings, which numbers are short, and whether there is a fraction."""
    match = _DATED.fullmatch(text)
    if match is None:
        return None
    first, separator, second, third = match[1], match[2], match[3], match[4]
    lengths = (len(first), len(third))
    if lengths[0] == 4 and lengths[1] <= 2:
        year = "first"
    elif lengths[1] == 4 and lengths[0] <= 2:
        year = "last"
    elif max(lengths) <= 2:
        year = "short"
    else:
        return None
    clock = "none"
    if match["hour"] is not None:
        if int(match["hour"]) > 23 or int(match["minute"]) > 59 or int(match["second"] or 0) > 59:
            return None
        clock = "minutes" if match["second"] is None else "seconds"
    valid = {
        "ymd": year != "last" and _is_day_of(first, second, third),
        "dmy": year != "first" and _is_day_of(third, second, first),
        "mdy": year != "first" and _is_day_of(third, first, second),
    }
    if not any(valid.values()):
        return None
    short = [len(first) == 1, len(second) == 1, len(third) == 1, len(match["hour"] or "12") == 1]
    return (separator, year, clock, match["between"] or ""), valid, short, match["fraction"] is not None


# Groups of the pattern that are year, month and day.
_ORDERS = {"ymd": (1, 3, 4), "dmy": (4, 3, 1), "mdy": (4, 1, 3)}


def _range(texts: Sequence[str], order: str) -> list[str] | None:
    """The first and the last of those that are days by an order; of one moment the least text."""
    keys = {}
    for text in texts:
        match, found = _DATED.fullmatch(text), dated(text)
        if match is not None and found is not None and found[1][order]:
            clock = [int(match[name] or 0) for name in ("hour", "minute", "second")]
            fraction = (match["fraction"] or "").lstrip(".").ljust(6, "0")
            keys[text] = (*(int(match[group]) for group in _ORDERS[order]), *clock, int(fraction))
    if not keys:
        return None
    last = max(keys.values())
    return [min(keys, key=lambda text: (keys[text], text)), min(text for text in keys if keys[text] == last)]


def _instants(texts: Sequence[str]) -> dict[str, str]:
    """The first and the last timestamp with an offset; of one moment the least text."""
    keys = {}
    for text in texts:
        moment = datetime.datetime.fromisoformat(text)
        offset = moment.utcoffset()
        assert offset is not None
        of_day = moment.replace(tzinfo=None) - datetime.datetime.combine(moment.date(), datetime.time())
        keys[text] = datetime.timedelta(days=moment.toordinal()) + of_day - offset
    last = max(keys.values())
    first = min(keys, key=lambda text: (keys[text], text))
    return {"minimum": first, "maximum": min(text for text in keys if keys[text] == last)}


def _is_day_of(year: str, month: str, day: str) -> bool:
    if len(year) not in (2, 4):
        return False
    # In a century that is unknown February may have 29 days.
    return _is_day(int(year) if len(year) == 4 else 2000, int(month), int(day))


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def number_facts(numbers: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Digits, signs and range of numbers, each with its class and the text that it stands in."""
    facts: Counter[str] = Counter()
    before = behind = 0
    ranged: list[tuple[Decimal, str]] = []
    for name, text, whole_text in numbers:
        bare = text.lstrip("+-")
        facts["plus"] += text.startswith("+")
        facts["minus"] += text.startswith("-")
        mantissa, _, power = bare.lower().partition("e")
        decimal = {"grouped_point": ",", "comma": ",", "maybe_comma": ",", "grouped_comma": "."}.get(name, ".")
        whole, _, fraction = mantissa.partition(decimal)
        facts["leading_zeros"] += bool(re.match(r"0.", whole))
        digits = re.sub(r"[.,]", "", whole).lstrip("0")
        before, behind = max(before, len(digits)), max(behind, len(fraction))
        value = Decimal(f"{digits or 0}.{fraction or 0}")
        if power == "" and "e" not in bare.lower() and len(digits) <= 38 and len(fraction) <= 38:
            ranged.append((-value if text.startswith("-") else value, whole_text))
        facts["inexact"] += _is_inexact(digits, fraction, int(power or 0))
    least = min(ranged, key=lambda one: (one[0], one[1].encode()), default=(None, None))[1]
    most = max(ranged, key=lambda one: one[0], default=(None, None))
    greatest = min((text for value, text in ranged if value == most[0]), key=str.encode, default=None)
    return {
        "minimum": least,
        "maximum": greatest,
        "digits_before": before,
        "digits_behind": behind,
        **{key: facts[key] for key in ("plus", "minus", "leading_zeros", "inexact")},
    }


def _is_inexact(digits: str, fraction: str, power: int) -> bool:
    significant = (digits + fraction).strip("0")
    if not significant:
        return False
    if len(significant) > 17:
        return True
    if abs(power) > 400:
        return True
    exact = Decimal(f"{digits or 0}.{fraction or 0}e{power}")
    try:
        told = Decimal(f"{float(exact):.{len(significant) - 1}e}")
    except (OverflowError, ValueError, ArithmeticError):
        return True
    return not told.is_finite() or told != exact


def facts_of(name: str, values: Sequence[str | None]) -> dict[str, Any]:
    """All facts about a column; the rows of its values are 1, 2, 3 and so on of file 0."""
    present = [(row, value) for row, value in enumerate(values, 1) if value is not None]
    texts = [value for _, value in present]
    by_class: dict[str, list[tuple[int, str]]] = {}
    for row, value in present:
        if value:
            by_class.setdefault(class_of(value), []).append((row, value))
    others = Counter(value for _, value in by_class.get("other", []))
    is_complete = len(others) <= 16 and all(len(text.encode()) <= 64 for text in others)
    encoded = sorted(text.encode()[:64] for text in texts)
    distinct = len(set(texts))
    return {
        "name": name,
        "values": len(texts),
        "nulls": len(values) - len(texts),
        "empty": texts.count(""),
        "classes": {own: _class_facts(own, members) for own, members in by_class.items()},
        "dates": _dates(by_class.get("dated", [])),
        "blank_ends": sum(text != text.strip(" \t") for text in texts),
        "ends_blank": sum(text.endswith(" ") for text in texts),
        "least_length": min(map(len, texts), default=None),
        "greatest_length": max(map(len, texts), default=None),
        "least_text": encoded[0].decode(errors="ignore") if encoded else None,
        "greatest_text": encoded[-1].decode(errors="ignore") if encoded else None,
        "others": [[text, others[text]] for text in sorted(others, key=str.encode)] if is_complete else [],
        "others_complete": is_complete,
        "high_bytes": sum(not text.isascii() for text in texts),
        "quoted": sum(text.startswith('"') for text in texts),
        "distinct": distinct,
        "is_exact": True,
    }


def _first(row: int, value: str) -> dict[str, Any]:
    return {"value": value, "file": 0, "row": row}


def _class_facts(name: str, members: Sequence[tuple[int, str]]) -> dict[str, Any]:
    trimmed = [value.strip(" \t") for _, value in members]
    numbers = number_facts([found for text in trimmed if (found := _number_in(name, text)) is not None])
    if name in ("date", "timestamp", "time"):
        numbers |= {"minimum": min(trimmed), "maximum": max(trimmed)}
    if name == "timestamptz":
        numbers |= _instants(trimmed)
    return {"count": len(members), "first": _first(*members[0]), **numbers}


def _number_in(name: str, text: str) -> tuple[str, str, str] | None:
    """Class of the number that a text is or holds, the number, the text."""
    if name in NUMBER_CLASSES:
        return name, text, text
    found = around(text) if text else None
    return None if found is None or found[0] != name else (class_of(found[1]), found[1], text)


def _dates(members: Sequence[tuple[int, str]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, str, str], list[tuple[int, str]]] = {}
    for row, value in members:
        found = dated(value.strip(" \t"))
        assert found is not None
        groups.setdefault(found[0], []).append((row, value))
    orders = {"year": ["first", "last", "short"], "clock": ["none", "minutes", "seconds"]}
    result = []
    for signature in sorted(
        groups, key=lambda one: (one[0], orders["year"].index(one[1]), orders["clock"].index(one[2]), one[3])
    ):
        own = groups[signature]
        found_all = [found for _, value in own if (found := dated(value.strip(" \t"))) is not None]
        result.append(
            {
                **dict(zip(("separator", "year", "clock", "between"), signature, strict=True)),
                "count": len(own),
                "first": _first(*own[0]),
                "valid": {order: sum(found[1][order] for found in found_all) for order in ("ymd", "dmy", "mdy")},
                "short": [sum(found[2][place] for found in found_all) for place in range(4)],
                "fractions": sum(found[3] for found in found_all),
                "ranges": {order: _range([text.strip(" \t") for _, text in own], order) for order in _ORDERS},
            }
        )
    return result
