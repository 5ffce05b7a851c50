"""Where the rows are other than a suite expects, and why that was decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.conformance_csv.reading import Outcome


@dataclass(frozen=True)
class Decision:
    """What becomes of a case instead, and the reason."""

    reason: str
    outcome: Outcome


_ONE_COLUMN: Final = (
    "a row without a character is the empty field of the only column, so that no value is lost; blank rows are skipped "
    "where there are several columns"
)
_UNCLOSED: Final = "a qualifier that is never closed is a reject: no reading of it is sure"
_AS_IT_IS: Final = "`stray_qualifiers: keep` leaves a field with text after its closing qualifier as it is in the file"
_NO_DOUBLE: Final = "a doubled qualifier is one qualifier in every layout"
_LETTERS: Final = "letters cannot be marks of a dialect: they are the first bytes of ordinary fields"
_NUL: Final = "NUL is in no text that a database stores, and in no mark: such rows are rejects, such layouts refused"
_TYPES: Final = "types are declared per column, and never guessed from what stands between qualifiers"
_BLANK_BESIDE: Final = "a blank beside a qualifier is text, so the row is a reject; `blanks_around_qualifier` allows it"
_OPTION: Final = "an option of the suite that is none of a layout"

DECISIONS: Final = {
    "csv_spectrum: location_coordinates": Decision(
        "the expected rows of the suite are those of another file: the phone number is not the one of the text",
        Outcome(
            rows=[
                ["Contact Phone Number", "Location Coordinates", "Cities", "Counties"],
                ["2095257564", "37�36'37.8\"N 121�2'17.9\"W", "Modesto", "Stanislaus"],
            ]
        ),
    ),
    "commons_csv: test_default": Decision(
        _BLANK_BESIDE,
        Outcome(
            rows=[
                ["A", "B", "C", "D"],
                ["# plain values", "", "", ""],
                ["a", "b", "c", "d"],
                ["# spaces before and after", "", "", ""],
                [" e ", "f ", " g", "h "],
                ["# quoted: with spaces before and after", "", "", ""],
                ["# empty values", "", "", ""],
                ["", "", "", ""],
                ["# empty quoted values", "", "", ""],
                ["", "", "", ""],
                ["# 3 empty lines", "", "", ""],
                ["# EOF on next line", "", "", ""],
            ],
            rejects=["stray_qualifier"],
        ),
    ),
    "commons_csv: test_default_comment": Decision(
        _BLANK_BESIDE,
        Outcome(
            rows=[
                ["A", "B", "C", "D"],
                ["a", "b", "c", "d"],
                [" e ", "f ", " g", "h "],
                ["", "", "", ""],
                ["", "", "", ""],
            ],
            rejects=["stray_qualifier"],
        ),
    ),
    "commons_csv: test_rfc4180": Decision(
        _BLANK_BESIDE,
        Outcome(
            rows=[
                ["A", "B", "C", "D"],
                ["# plain values", "", "", ""],
                ["a", "b", "c", "d"],
                ["# spaces before and after", "", "", ""],
                [" e ", "f ", " g", "h "],
                ["# quoted: with spaces before and after", "", "", ""],
                ["# empty values", "", "", ""],
                ["", "", "", ""],
                ["# empty quoted values", "", "", ""],
                ["", "", "", ""],
                ["# 3 empty lines", "", "", ""],
                ["", "", "", ""],
                ["", "", "", ""],
                ["", "", "", ""],
                ["# EOF on next line", "", "", ""],
            ],
            rejects=["stray_qualifier"],
        ),
    ),
    "go: LazyQuotes": Decision(_UNCLOSED, Outcome(rejects=["unclosed_qualifier"])),
    "go: CRLFInQuotedField": Decision(
        "line breaks in qualified fields are text, and stay as they are", Outcome(rows=[["A", "Hello\r\nHi", "B"]])
    ),
    "go: BinaryBlobField": Decision(
        "bytes that are not UTF-8 are a reject, never U+FFFD: nothing is replaced silently",
        Outcome(rejects=["invalid_utf8"]),
    ),
    "go: FieldCRCRLFCR": Decision(_ONE_COLUMN, Outcome(rows=[["field\r"], ["\rfield\r"], [""]])),
    "go: NonASCIICommaConfusion": Decision(_LETTERS, Outcome(refused='"λ" cannot be the delimiter')),
    "go: MultipleCRLF": Decision(_ONE_COLUMN, Outcome(rows=[[""], [""], [""], [""]])),
    "go: LazyOddQuotes": Decision(_UNCLOSED, Outcome(rejects=["unclosed_qualifier"])),
    "go: BadComma4": Decision("U+FFFD is a character like any other", Outcome()),
    "go: BadComment3": Decision("U+FFFD is a character like any other", Outcome()),
    "rust_csv_core: empty_lines": Decision(_ONE_COLUMN, Outcome(rows=[[""], [""], [""], [""]])),
    "rust_csv_core: empty_lines_crlf": Decision(_ONE_COLUMN, Outcome(rows=[[""], [""], [""], [""]])),
    "rust_csv_core: empty_lines_mixed": Decision(_ONE_COLUMN, Outcome(rows=[[""], [""], [""], [""]])),
    "rust_csv_core: empty_lines_cr": Decision(_ONE_COLUMN, Outcome(rows=[[""], [""], [""], [""]])),
    "rust_csv_core: term_weird": Decision(_LETTERS, Outcome(refused='"z" cannot be the row end')),
    "rust_csv_core: quote_change": Decision(_LETTERS, Outcome(refused='"z" cannot be the qualifier')),
    "rust_csv_core: quote_delimiter": Decision(
        "the delimiter cannot be the qualifier as well: such a layout means two things",
        Outcome(refused='"," is the delimiter and the qualifier'),
    ),
    "rust_csv_core: delimiter_weird": Decision(_LETTERS, Outcome(refused='"z" cannot be the delimiter')),
    "rust_csv_core: comment_3": Decision(
        "a line break cannot begin a comment: such a layout means two things",
        Outcome(refused='"\\n" cannot begin a comment'),
    ),
    "rust_csv_core: quote_no_escapes": Decision(_AS_IT_IS, Outcome(rows=[['"a\\"b"']])),
    "rust_csv_core: quote_escapes_no_double": Decision(_NO_DOUBLE, Outcome(rows=[['a"b']])),
    "rust_csv_core: quote_escapes_change": Decision(_LETTERS, Outcome(refused='"z" cannot be the escape')),
    "cpython: read_oddinputs 2": Decision("a row without a field is none", Outcome()),
    "cpython: read_oddinputs 4": Decision(_AS_IT_IS, Outcome(rows=[['"ab"c']])),
    "cpython: read_eof 1": Decision(_UNCLOSED, Outcome(rejects=["unclosed_qualifier"])),
    "cpython: read_eof 2": Decision(_UNCLOSED, Outcome(rejects=["unclosed_qualifier"])),
    "cpython: read_eof 3": Decision(
        "an escape with nothing behind it is a reject: what it was to make text is missing",
        Outcome(rejects=["unfinished_escape"]),
    ),
    "cpython: read_nul 1": Decision(_NUL, Outcome(rejects=["nul_byte"])),
    "cpython: read_nul 2": Decision(_NUL, Outcome(rejects=["nul_byte"])),
    "cpython: read_nul 3": Decision(_NUL, Outcome(rejects=["nul_byte"])),
    "cpython: read_nul 4": Decision(_NUL, Outcome(rejects=["nul_byte"])),
    "cpython: read_nul 5": Decision(_NUL, Outcome(rejects=["nul_byte"])),
    "cpython: read_delimiter 3": Decision(_NUL, Outcome(refused='"\\u0000" cannot be the delimiter')),
    "cpython: read_escape 6": Decision(
        "an escape with nothing behind it is a reject: what it was to make text is missing",
        Outcome(rejects=["unfinished_escape"]),
    ),
    "cpython: read_escape 8": Decision(_NUL, Outcome(refused='"\\u0000" cannot be the escape')),
    "cpython: read_quoting 4": Decision(_TYPES, Outcome(rows=[["", "3", "5", "7.3", " 9"]])),
    "cpython: read_quoting 8": Decision(_NUL, Outcome(refused='"\\u0000" cannot be the qualifier')),
    "cpython: read_skipinitialspace 1": Decision(
        "`trim` drops blanks and tabs alike", Outcome(rows=[["no space", "space", "spaces", "tab"]])
    ),
    "papaparse: Bad comments value specified": Decision(
        "the number 5 is no setting there; a layout says text, and rows that begin with it are comments",
        Outcome(rows=[["a", "b", "c"], ["d", "e", "f"]]),
    ),
    "papaparse: Input with only a commented line and blank line after": Decision(
        "a row end ends the last row; there is no row behind it", Outcome()
    ),
    "papaparse: One column input with empty fields": Decision(
        "a row end ends the last row; there is no row behind it",
        Outcome(rows=[["a"], ["b"], [""], [""], ["c"], ["d"], ["e"]]),
    ),
    "papaparse: Fast mode with preview": Decision(
        _OPTION, Outcome(rows=[["a", "b", "c"], ["d", "e", "f"], ["h", "j", "i"]])
    ),
    "papaparse: Fast mode with blank line at end": Decision(
        "a row end ends the last row; there is no row behind it", Outcome(rows=[["a", "b", "c"]])
    ),
    "papaparse: Simple duplicated header names": Decision(
        _OPTION, Outcome(rows=[["A", "A", "A", "A"], ["1", "2", "3", "4"]])
    ),
    "papaparse: Duplicated header names with headerTransform": Decision(
        _OPTION, Outcome(rows=[["A", "A", "A", "A"], ["1", "2", "3", "4"]])
    ),
    "papaparse: Duplicated header names existing column": Decision(
        _OPTION, Outcome(rows=[["c", "c", "c", "c_1"], ["1", "2", "3", "4"]])
    ),
    "papaparse: Duplicate header names with __proto__ field": Decision(
        _OPTION, Outcome(rows=[["__proto__", "__proto__", "__proto__"], ["1", "2", "3"]])
    ),
}
