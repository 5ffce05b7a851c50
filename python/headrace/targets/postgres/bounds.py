"""What a partition takes, in the server's words: for ATTACH PARTITION, as a CHECK that spares its scan, and read back.

Texts of keys stand as literals without a type: the server reads them as values of the column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from headrace.planning import DefaultRule, HashRule, ListRule, PartitionRule, RangeRule
from headrace.targets.postgres.names import literal

# As pg_get_expr writes the bounds of a key of one column: FOR VALUES FROM (1) TO ('-5').
_VALUE: Final = r"'(?:[^']|'')*'|[^,()']+"
_RANGE: Final = re.compile(rf"FOR VALUES FROM \((?P<minimum>{_VALUE})\) TO \((?P<end>{_VALUE})\)")
_LIST: Final = re.compile(rf"FOR VALUES IN \((?P<values>(?:{_VALUE})(?:, (?:{_VALUE}))*)\)")
_ITEM: Final = re.compile(rf"(?:^|, )({_VALUE})")
_HASH: Final = re.compile(r"FOR VALUES WITH \(modulus (?P<modulus>\d+), remainder (?P<remainder>\d+)\)")
_OPEN_ENDS: Final = ("MINVALUE", "MAXVALUE")
# Dates before and behind those that a source can have.
_FAR_BEFORE: Final = re.compile(r"-infinity|.* BC")
_FAR_BEHIND: Final = re.compile(r"infinity|\d{5,}-.*")


def for_values(rule: PartitionRule) -> str:
    """What stands behind the name of a partition in ATTACH PARTITION."""
    match rule:
        case RangeRule(minimum, end):
            lower = "MINVALUE" if minimum is None else literal(minimum)
            upper = "MAXVALUE" if end is None else literal(end)
            return f"FOR VALUES FROM ({lower}) TO ({upper})"
        case ListRule(values):
            return f"FOR VALUES IN ({', '.join('NULL' if value is None else literal(value) for value in values)})"
        case HashRule(modulus, remainder):
            return f"FOR VALUES WITH (MODULUS {modulus}, REMAINDER {remainder})"
        case DefaultRule():
            return "DEFAULT"


def implies(rule: PartitionRule, key: str, others: Sequence[PartitionRule], parent: str | None) -> str | None:
    """The condition from which the server concludes that all rows of a table belong into a partition with this rule.

    It compares expressions, so values stand in the order of `for_values`. `key`: the column, quoted; `others`: rules of
    all other partitions, for a default partition; `parent`: an expression for the oid of the partitioned table, None if
    the server would not recognise its own hash.
    Replies None if the server would not conclude it: ATTACH reads all rows.
    """
    match rule:
        case RangeRule(minimum, end):
            above = "" if minimum is None else f" AND {key} >= {literal(minimum)}"
            below = "" if end is None else f" AND {key} < {literal(end)}"
            return f"{key} IS NOT NULL{above}{below}"
        case ListRule(values):
            listed = ", ".join(literal(value) for value in values if value is not None)
            if not listed:
                return f"{key} IS NULL"
            null = f"{key} IS NULL OR" if None in values else f"{key} IS NOT NULL AND"
            return f"{null} {key} IN ({listed})"
        case HashRule(modulus, remainder):
            if parent is None:
                return None
            return f"pg_catalog.satisfies_hash_partition({parent}, {modulus}, {remainder}, {key})"
        case DefaultRule():
            found = [implies(other, key, (), None) for other in others if not isinstance(other, DefaultRule)]
            return " AND ".join(f"NOT ({condition})" for condition in found if condition is not None) or None


def read_bound(text: str) -> PartitionRule | None:
    """The rule that pg_get_expr has written; None for one of several columns, and for a range that lies outside of the
    dates that a source can have.
    """
    if text == "DEFAULT":
        return DefaultRule()
    if found := _RANGE.fullmatch(text):
        return _range(*(None if end in _OPEN_ENDS else _value(end) for end in found.group("minimum", "end")))
    if found := _HASH.fullmatch(text):
        return HashRule(int(found["modulus"]), int(found["remainder"]))
    if found := _LIST.fullmatch(text):
        return ListRule(tuple(_value(item[1]) for item in _ITEM.finditer(found["values"])))
    return None


def _range(minimum: str | None, end: str | None) -> RangeRule | None:
    """A bound that no date of a source reaches is as good as an open end, if it is on the side of that end."""
    if (minimum is not None and _FAR_BEHIND.fullmatch(minimum)) or (end is not None and _FAR_BEFORE.fullmatch(end)):
        return None
    return RangeRule(
        None if minimum is None or _FAR_BEFORE.fullmatch(minimum) else minimum,
        None if end is None or _FAR_BEHIND.fullmatch(end) else end,
    )


def _value(text: str) -> str | None:
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    return None if text == "NULL" else text
