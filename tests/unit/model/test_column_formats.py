"""Formats of columns: what is accepted, every message about one that is not, what the core is told."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from headrace.model import Layout
from headrace.model.column_format_checks import check_format
from headrace.model.column_format_months import long_months, short_months
from headrace.model.column_format_patterns import parse_pattern
from headrace.model.column_format_reading import Reading, shown, witness
from tests.snapshots import assert_snapshot
from tests.unit.model.packages import change, message

NO_NAMES = Reading(1950, (), (), 0)


def package(data_type: str, column_format: str, settings: str = "") -> str:
    text = change("type: int64, nullable: false}", f'type: "{data_type}", format: {column_format}}}')
    return text.replace('    delimiter: "|"\n', f'    delimiter: "|"\n{settings}')


def formats(text: str, data_type: str = "int64") -> str:
    column = change("type: int64, nullable: false}", f'type: "{data_type}"}}')
    return column.replace('    delimiter: "|"\n', f'    delimiter: "|"\n    formats: {text}\n')


BAD = {
    "not_a_format": package("date", "5"),
    "of_a_text": package("string", "dd.MM.yyyy"),
    "pattern_of_a_number": package("int32", "dd.MM.yyyy"),
    "pattern_of_a_truth_value": package("bool", "J"),
    "mark_of_a_date": package("date", '{decimal: ","}'),
    "unknown_key": package("date", "{patern: dd.MM.yyyy}"),
    "wrong_value": package("decimal(9,2)", "{negative: brackets}"),
    "mark_is_a_digit": package("decimal(9,2)", '{decimal: "1"}'),
    "mark_is_a_sign": package("decimal(9,2)", '{decimal: ",", group: "-"}'),
    "marks_alike": package("decimal(9,2)", '{group: "."}'),
    "marks_alike_both_given": package("decimal(9,2)", '{decimal: ",", group: ","}'),
    "group_of_no_digits": package("decimal(9,2)", '{decimal: ",", group: {mark: ".", sizes: [0]}}'),
    "group_without_a_mark": package("decimal(9,2)", '{decimal: ",", group: {sizes: [3]}}'),
    "currency_with_a_digit": package("decimal(9,2)", '{currency: [€, "5"]}'),
    "currencies_alike": package("decimal(9,2)", '{currency: ["Rs", "Rs."]}'),
    "hexadecimal_decimal": package("decimal(9,2)", "{hex: true}"),
    "hexadecimal_with_groups": package("int32", '{hex: true, group: ","}'),
    "hexadecimal_numbers": formats("{number: {hex: true}}"),
    "no_pattern": package("date", "[]"),
    "pattern_unknown_letter": package("date", "DD.MM.YYYY"),
    "pattern_three_letters": package("date", "[yyyy-MM-dd, ddd.MM.yyyy]"),
    "pattern_literal_letters": package("timestamp", "yyyy-MM-ddTHH:mm"),
    "pattern_literal_digit": package("date", "yyyy-MM-dd 00"),
    "pattern_quote_not_closed": package("date", '"yyyy-MM-dd\'T"'),
    "pattern_without_year": package("date", "dd.MM."),
    "pattern_month_for_minute": package("timestamp", "dd.mm.yyyy HH:MM"),
    "pattern_twice": package("date", "dd.MM.yyyy dd"),
    "pattern_half_day_without_mark": package("time", '"hh:mm"'),
    "pattern_hours_contradict": package("time", '"HH:mm tt"'),
    "pattern_not_separated": package("date", "dMyyyy"),
    "pattern_time_of_a_date": package("date", '"dd.MM.yyyy HH:mm"'),
    "pattern_date_of_a_time": package("time", '"dd.MM.yyyy HH:mm"'),
    "pattern_time_of_a_timestamp": package("timestamp", '"HH:mm"'),
    "pattern_offset_of_a_timestamp": package("timestamp", '"yyyy-MM-dd HH:mmzzz"'),
    "pattern_fraction_without_mark": package("time", '"HH:mm:ssFFF"'),
    "pattern_fraction_too_long": package("time", '"HH:mm:ss.ffffffffff"'),
    "pivot_missing": package("date", "dd.MM.yy"),
    "pivot_unused": package("date", "{pattern: dd.MM.yyyy, pivot: 1950}"),
    "pivot_out_of_range": package("date", "{pattern: dd.MM.yy, pivot: 0}"),
    "locale_missing": package("date", "d MMMM yyyy"),
    "locale_unknown": package("date", "{pattern: d MMMM yyyy, locale: xx}"),
    "locale_unused": package("date", "{pattern: d.M.yyyy, locale: de}"),
    "months_too_few": package("date", "{pattern: d MMM yyyy, months: {short: [a, b]}}"),
    "months_alike": package("date", "{pattern: d MMM yyyy, months: {short: [a, b, c, d, e, f, g, h, i, j, k, ab]}}"),
    "offset_missing": package("timestamptz", '"yyyy-MM-dd HH:mm"'),
    "offset_twice": package("timestamptz", '{pattern: "yyyy-MM-dd HH:mmzzz", offset: "+01:00"}'),
    "offset_is_a_name": package("timestamptz", '{pattern: "yyyy-MM-dd HH:mm", offset: CET}'),
    "offset_of_a_date": package("date", '{pattern: yyyy/MM/dd, offset: "+01:00"}'),
    "epoch_of_a_date": package("date", "{epoch: s}"),
    "epoch_and_pattern": package("timestamp", "{epoch: s, pattern: dd.MM.yyyy}"),
    "ambiguous": package("date", "[dd.MM.yyyy, yyyy-MM-dd, MM.dd.yyyy]"),
    "ambiguous_without_separators": package("date", "[ddMMyyyy, yyyyMMdd]"),
    "ambiguous_formats": formats("{date: [M/d/yyyy, d/M/yyyy]}", "date"),
    "truth_without_false": package("bool", "{true: [J]}"),
    "truth_twice": package("bool", "{true: [J, X], false: [N, x]}"),
    "truth_empty": package("bool", "{true: [X], false: ['']}"),
    "truth_not_text": package("bool", "{true: [1], false: [0]}"),
    "mark_is_the_delimiter": package("decimal(9,2)", '{decimal: ","}').replace('delimiter: "|"', 'delimiter: ","'),
    "mark_is_the_delimiter_of_all": formats('{number: {decimal: ","}}', "decimal(9,2)").replace(
        'delimiter: "|"', 'delimiter: ","'
    ),
    "literal_is_the_delimiter": package("date", '"yyyy-MM-dd"').replace('delimiter: "|"', 'delimiter: "-"'),
    "mark_is_the_delimiter_of_an_unqualified_column": package(
        "decimal(9,2)", '{decimal: ","}, qualified: false'
    ).replace('delimiter: "|"', 'delimiter: ","\n    qualifier: \'"\''),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str, tmp_path: Path) -> None:
    assert_snapshot(f"format_{name}", message(tmp_path, BAD[name]))


def layout(data_type: str, column_format: object, **more: object) -> Layout:
    column = {"name": "a", "type": data_type}
    columns = [column if column_format is None else {**column, "format": column_format}]
    return Layout.model_validate({"delimiter": "|", "columns": columns, **more})


def core(data_type: str, column_format: object, **more: object) -> Any:
    return layout(data_type, column_format, **more).to_core()["columns"][0].get("format")


NUMBER = {
    "kind": "number",
    "decimal": ",",
    "group": {"mark": ".", "sizes": [3], "optional": True},
    "currency": [],
    "negative": ["minus"],
    "scientific": False,
    "hex": False,
}


def test_what_the_core_is_told() -> None:
    assert core("decimal(9,2)", {"decimal": ",", "group": "."}) == NUMBER
    assert core("float64", {"decimal": ",", "group": "."}) == {**NUMBER, "scientific": True}
    assert core("date", "dd.MM.yyyy") == {"kind": "patterns", "patterns": ["dd.MM.yyyy"]}
    told = core(
        "timestamptz", {"pattern": ["d.M.yy HH:mm", "d. MMMM yyyy"], "pivot": 1970, "locale": "de", "offset": "-0130"}
    )
    assert (told["pivot"], told["offset_minutes"], told["long_months"][2]) == (1970, -90, ["März"])
    assert "short_months" not in told
    assert core("timestamp", {"epoch": "ms"}) == {"kind": "epoch", "unit": "ms"}
    assert core("bool", {"true": "J", "false": ["N", "nein"]}) == {
        "kind": "truth",
        "true": ["J"],
        "false": ["N", "nein"],
    }


def test_what_the_type_accepts_anyway_is_no_format() -> None:
    assert core("decimal(9,2)", {"decimal": "."}) is None
    assert core("int32", {"decimal": ","}) is None
    assert core("float64", {"scientific": True}) is None
    assert core("float64", {"scientific": False})["scientific"] is False
    assert core("int32", {"scientific": True})["scientific"] is True


def test_formats_of_the_layout_are_those_of_columns_without_one() -> None:
    formats = {
        "number": {"decimal": ",", "group": "."},
        "date": "dd.MM.yyyy",
        "boolean": {"true": ["J"], "false": ["N"]},
    }
    assert core("decimal(9,2)", None, formats=formats) == NUMBER
    assert core("int16", None, formats=formats) == NUMBER
    assert core("date", None, formats=formats) == {"kind": "patterns", "patterns": ["dd.MM.yyyy"]}
    assert core("bool", None, formats=formats)["true"] == ["J"]
    assert core("decimal(9,2)", {"decimal": "."}, formats=formats) is None
    for other in ("timestamp", "string", "json", "uuid"):
        assert core(other, None, formats=formats) is None


@pytest.mark.parametrize("more", [{"qualifier": '"'}, {"escape": "\\"}, {"row_end_in_fields": "data"}])
def test_marks_may_be_delimiters_of_fields_that_are_told_apart(more: dict[str, object]) -> None:
    assert core("decimal(9,2)", {"decimal": ","}, delimiter=",", **more) is not None


def test_every_language_has_names_that_can_be_told_apart() -> None:
    for locale in ("en", "de", "fr", "es", "it", "nl", "pt"):
        for names in (long_months(locale), short_months(locale)):
            assert len(names) == 12
            flat = [(month, name.lower()) for month, one in enumerate(names) for name in one]
            assert not [pair for pair in flat for other in flat if pair[0] != other[0] and pair[1].startswith(other[1])]
        told = core("date", {"pattern": ["d MMM yyyy", "d. MMMM yyyy"], "locale": locale})
        assert (told["short_months"], told["long_months"]) == (short_months(locale), long_months(locale))


DATES = ["dd.MM.yyyy", "d.M.yyyy", "M.d.yyyy", "yyyyMMdd", "ddMMyyyy", "MMddyyyy", "dd-MM-yy", "yy-MM-dd", "yyyy-MM-dd",
         "d.M.yy", "dd/MM/yyyy", "MM/dd/yyyy", "yyyy/MM/dd", "ddMMyy", "yyMMdd", "yyyyddMM"]  # fmt: skip


def literal(pattern: str, day: date) -> str:
    values = {"yyyy": f"{day:%Y}".zfill(4), "yy": f"{day:%y}", "dd": f"{day:%d}", "MM": f"{day:%m}", "d": str(day.day),
              "M": str(day.month)}  # fmt: skip
    text = pattern
    for letters in ("yyyy", "yy", "dd", "MM", "d", "M"):
        text = text.replace(letters, f"<{values[letters]}>") if letters in text else text
    return text.replace("<", "").replace(">", "")


DAYS = st.integers(0, 36_524).map(lambda days: date(1950, 1, 1) + timedelta(days=days))


@given(st.sampled_from(DATES), st.sampled_from(DATES), st.lists(DAYS, min_size=200, max_size=200))
@settings(max_examples=60, deadline=None)
def test_patterns_without_a_witness_never_give_two_values(first: str, second: str, days: list[date]) -> None:
    one, two = parse_pattern(first), parse_pattern(second)
    found = witness(one, two, NO_NAMES)
    for pattern in (first, second):
        for day in days:
            text = literal(pattern, day)
            values = NO_NAMES.values(one, text) | NO_NAMES.values(two, text)
            assert len(values) == 1 or (len(values) > 1 and found is not None), (text, first, second)
            assert found is not None or shown(values.pop()) == day.isoformat()
    if found is not None:
        text, ours, theirs = found
        assert NO_NAMES.values(one, text) == {ours}
        assert NO_NAMES.values(two, text) == {theirs} != {ours}


def test_the_order_of_patterns_does_not_matter() -> None:
    for first in DATES:
        for second in DATES:
            ways = [witness(parse_pattern(one), parse_pattern(two), NO_NAMES) for one, two in
                    ((first, second), (second, first))]  # fmt: skip
            assert (ways[0] is None) == (ways[1] is None), (first, second)


@given(
    st.text(alphabet="dMyHhmsfFtzZ.,:/- 'T", max_size=20), st.sampled_from(["date", "time", "timestamp", "timestamptz"])
)
@settings(max_examples=400, deadline=None)
def test_any_pattern_is_taken_or_refused_with_a_reason(pattern: str, data_type: str) -> None:
    try:
        accepted = layout(data_type, {"pattern": pattern, "pivot": 1950} if "yy" in pattern else pattern)
    except ValidationError as error:
        assert all(details["type"] == "headrace" for details in error.errors())
    else:
        check_format(accepted.columns[0].format, data_type)  # type: ignore[arg-type]
