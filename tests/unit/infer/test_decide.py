"""What columns are, by their values: the facts are those of the slow model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.infer.decide import Proofs, decide
from headrace.infer.facts import ColumnFacts
from headrace.infer.inferred import InferredColumn
from headrace.infer.yaml_text import scalar
from tests.snapshots import assert_snapshot
from tests.unit.infer.slow_model import facts_of


def column(
    values: Sequence[str | None], mark: str | None = None, pattern: str | None = None, *, can_trim: bool = True
) -> InferredColumn:
    facts = ColumnFacts.of_core(facts_of("c", values))
    proofs = Proofs(mark, frozenset() if pattern is None else frozenset({pattern}))
    return decide(facts, proofs, ["f.csv"], can_trim=can_trim)


CASES: dict[str, Sequence[str | None]] = {
    "whole numbers": ["1", "32767", "-32768"],
    "more than int16": ["1", "32768"],
    "more than int32": ["-2147483649"],
    "more than int64": ["9223372036854775808"],
    "38 digits": ["9" * 38],
    "39 digits": ["9" * 39],
    "39 digits, round": ["1" + "0" * 39],
    "zero and one": ["0", "1", "1"],
    "decimals": ["1.50", "-0.25", "10"],
    "decimal commas": ["1,5", "12"],
    "groups": ["1,234,567", "12", "1,234.50"],
    "groups of whole numbers": ["1.234.567", "12", "1.234"],
    "point, three digits": ["1.234", "12.500"],
    "comma, three digits": ["1,234", "12,500"],
    "comma, three digits, beside one": ["1,234", "1,5"],
    "point and comma, three digits": ["1.234", "1,234"],
    "comma, three digits, beside points": ["1,234", "1.5"],
    "points and commas": ["1.5", "1,5"],
    "leading zeros": ["007", "12", "1"],
    "plus": ["+49", "+1"],
    "plus and minus": ["+49", "-1"],
    "exponents": ["1.5e3", "2"],
    "exponents, no sign": ["12E3", "13E4"],
    "exponents, inexact": ["1e-5", "9007199254740993"],
    "dates": ["2024-02-29", "2023-01-01"],
    "a date that is none": ["2024-02-29", "2024-01-01", "2024-02-30"],
    "timestamps": ["2024-02-29 12:00", "2024-02-29T12:00:01.5"],
    "timestamps with offset": ["2024-02-29 12:00Z"],
    "times": ["12:00", "23:59:59"],
    "ambiguous dates": ["03/04/2026", "05/06/2026"],
    "day first": ["03/04/2026", "13/04/2026"],
    "month first": ["3/4/2026", "3/14/2026 "],
    "contradicting dates": ["13/04/2026", "04/13/2026"],
    "two digits of the year": ["31.12.99"],
    "dates in two ways": ["31.12.1999", "31/12/1999"],
    "unpadded": ["2024-1-2", "2024-10-12"],
    "day and time": ["31.12.1999 9:05", "01.01.2000 23:59"],
    "day and second": ["2024/12/31 23:59:59", "2024/12/31 23:59:59.125"],
    "truth": ["true", "FALSE"],
    "yes and no": ["Y", "N"],
    "uuids": ["123e4567-e89b-12d3-a456-426614174000"],
    "hashes": ["d41d8cd98f00b204e9800998ecf8427e"],
    "texts": ["ab", "abc"],
    "texts of one length": ["ab", "cd"],
    "texts of one length that end with a blank": ["ab", "c "],
    "long texts": ["x" * 10_001],
    "nulls": ["1", None],
    "only nulls": [None, None],
    "nothing": [],
    "null words": ["1", "NULL", "n/a", "2"],
    "four null words": ["1", "NULL", "n/a", "-", "?"],
    "null words among texts": ["ab", "NULL"],
    "one text among numbers": ["1", "2", "x"],
    "one number among texts": ["ab", "cd", "1"],
    "empty texts": ["ab", ""],
    "empty texts among numbers": ["1", ""],
    "blanks around numbers": [" 1", "2 "],
    "blank values": ["1", "  "],
    "only blanks": ["  ", " "],
    "several kinds": ["2024-01-01", "1", "2024-01-02"],
    "one text among ambiguous dates": ["03/04/2026", "05/06/2026", "31/06/2026"],
    "one text among amounts": ["1.249,00", "48,50", "39,9O"],
    "percent": ["12 %", "7,5%", "3"],
    "percent, groups": ["1 234 %"],
    "currency behind": ["1.249,00 €", "48,50 €", "3"],
    "currency before": ["$12.50", "-$7"],
    "currency, whole": ["EUR 12", "EUR 70000"],
    "currency, unclear": ["$1,234", "$5,678"],
    "groups with blanks": ["1 234 567,5", "12", "999,25"],
    "groups with apostrophes": ["1'234.50", "12.00"],
    "groups with blanks, leading zero": ["030 123 456"],
    "parentheses": ["(12.50)", "12.50"],
    "minus behind": ["12,50-", "3,75"],
    "minus before and behind a currency": ["(1.234,50)", "12,50 €"],
    "names of months": ["12-Jan-2026", "1-Feb-2026"],
    "names of months, German": ["1. März 2026 12:30"],
    "names of months, unknown": ["3 Foo 2026"],
    "names of months, short years": ["03 mai 26"],
    "month first, by name": ["Jan 3, 2026"],
    "names of months among dates": ["3 May 2026", "2026-05-04"],
    "currencies among texts": ["ab", "cd", "$5"],
    "texts among currencies": ["$5", "$6.50", "free"],
    "control characters": ["1", "2", "\x1b[31m\n# x: y"],
}


def told(name: str, found: InferredColumn) -> str:
    lines = [f"{name}: {scalar(found.entry())}"]
    for doubt in found.doubts:
        lines.append(f"    {doubt.text}")
        lines += [f"    - {scalar(settings)}" for settings in doubt.instead]
    return "\n".join(lines)


def test_every_kind_of_column() -> None:
    assert_snapshot("decide", "\n".join(told(name, column(values)) for name, values in CASES.items()))


def test_other_columns_tell_the_mark() -> None:
    cases = {
        "comma, others have a point": (["1,234"], "."),
        "comma, others have a comma": (["1,234"], ","),
        "point, others have a comma": (["1.234"], ","),
        "point, others have a point": (["1.234"], "."),
        "both, others have a comma": (["1.234", "1,234"], ","),
    }
    assert_snapshot("decide_mark", "\n".join(told(name, column(*case)) for name, case in cases.items()))


def test_other_columns_tell_the_pattern() -> None:
    assert_snapshot("decide_pattern", told("day", column(["03/04/2026", "05/06/2026"], pattern="MM/dd/yyyy")))


def test_blanks_that_trim_does_not_take_make_a_text() -> None:
    assert_snapshot("decide_blanks", told("blanks", column([" 1", "2"], can_trim=False)))


@pytest.mark.parametrize("values", [["1"], ["x"], ["2024-01-01"], ["true"]])
def test_what_was_never_null_may_not_be(values: list[str]) -> None:
    assert not column(values).nullable
    assert column([*values, None]).nullable
