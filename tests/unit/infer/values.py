"""Random texts as columns hold them: of every class, near every class, and nothing of the kind."""

from __future__ import annotations

from hypothesis import strategies

_DIGITS = strategies.text("0123456789", min_size=1, max_size=5)
_NEAR_NUMBERS = strategies.text("0123456789.,-+eE ", max_size=12)
_DATE_LIKE = strategies.builds(
    lambda separator, parts, clock: separator.join(parts) + clock,
    strategies.sampled_from("/.-"),
    strategies.lists(
        strategies.sampled_from(["1", "2", "03", "12", "13", "28", "29", "31", "99", "2023", "2024", "0000"]),
        min_size=3,
        max_size=3,
    ),
    strategies.sampled_from(["", "", " 9:05", " 23:59:59", "T00:00:00.5", " 24:00", " 12:00Z", " 12:00+05:30"]),
)
_FIXED = strategies.sampled_from(
    [
        "0", "1", "007", "+5", "-7", "1.5", "1,5", "1.234", "1,234", "1.234.567", "1,234.50", "1.234,5", "12E3", "1e-5",
        "2024-02-29", "2023-02-29", "2024-01-01 12:00", "2024-01-01T12:00:00.123", "2024-01-01 12:00Z", "12:00",
        "true", "FALSE", "t", "Y", "N", "NULL", "N/A", "-", "?", "123e4567-e89b-12d3-a456-426614174000",
        "d41d8cd98f00b204e9800998ecf8427e", " 12 ", " ", "\t", "a ", "é", "日本", "x" * 70, "9" * 39, "9" * 19,
        "12 %", "1.5%", "$12.50", "-$7", "1.249,00 €", "CHF 5", "1 234 567", "1'234.50",
        "(12.50)", "12,5-", "12-Jan-2026",
        "1. März 2026", "Jan 3, 2026", "3 mai 26 9:05", "030 123 456", "1 2345", "5 Box 2024", "% 5", "$",
        "32767", "32768", "-32769", "9223372036854775808", "0.1234567890123456789", "\\N", "'a'", "#1",
    ]
)  # fmt: skip
_WORDS = strategies.text("abcxyzÄ€ -", max_size=6)

_NEARLY = strategies.text("0123456789 .,-'$€%()JanMai", max_size=12)

# As columns of one file often share them.
_COMMAS = strategies.builds("{},{}".format, strategies.integers(0, 9999), strategies.sampled_from(["5", "25", "00"]))
_DAYS_FIRST = strategies.builds("{:02}/{:02}/2026".format, strategies.integers(13, 28), strategies.integers(1, 12))

KINDS = (_DIGITS, _NEAR_NUMBERS, _DATE_LIKE, _FIXED, _WORDS, _NEARLY, _COMMAS, _DAYS_FIRST)


@strategies.composite
def columns(draw: strategies.DrawFn, most_rows: int = 30) -> list[list[str | None]]:
    """Columns of equally many values; None is null."""
    rows = draw(strategies.integers(1, most_rows))
    count = draw(strategies.integers(1, 4))
    result: list[list[str | None]] = []
    for _ in range(count):
        kinds = strategies.one_of(*draw(strategies.lists(strategies.sampled_from(KINDS), min_size=1, max_size=2)))
        few = draw(strategies.lists(kinds, min_size=1, max_size=4))
        value = draw(strategies.sampled_from([kinds, strategies.sampled_from(few)]))
        nullable = strategies.one_of(value, strategies.none()) if draw(strategies.booleans()) else value
        result.append(draw(strategies.lists(nullable, min_size=rows, max_size=rows)))
    return result
