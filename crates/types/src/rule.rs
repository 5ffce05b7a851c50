//! Why a row was rejected.

use serde::Serialize;

/// The rule a rejected row broke. Codes are stable: scripts may depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The row has fewer fields than the layout has columns.
    TooFewFields,
    /// The row has more fields than the layout has columns.
    TooManyFields,
    /// The row is longer than `max_row`.
    RowTooLong,
    /// Text between a closing qualifier and the next delimiter or row end.
    TextAfterQualifier,
    /// A qualifier in a field that does not begin with one.
    StrayQualifier,
    /// A qualifier that opens a field and is never closed.
    UnclosedQualifier,
    /// An escape character with nothing behind it.
    UnfinishedEscape,
    /// Another row end than that of the file's first row.
    OtherRowEnd,
    /// The row ends before its last column does, or in the middle of a field.
    RowTooNarrow,
    /// The row goes on behind its last column.
    RowTooWide,
    /// An empty field or null token in a column that is not nullable.
    NullNotAllowed,
    /// Not a whole number.
    BadInteger,
    /// Not a decimal number.
    BadDecimal,
    /// Not a floating-point number.
    BadFloat,
    /// Not a truth value.
    BadBool,
    /// Not a date.
    BadDate,
    /// Not a time of day.
    BadTime,
    /// Not a timestamp.
    BadTimestamp,
    /// Not a UUID.
    BadUuid,
    /// Not hexadecimal bytes.
    BadBytes,
    /// Not a JSON document.
    BadJson,
    /// A number outside the range of its type.
    OutOfRange,
    /// A number with more digits after the point than its type keeps.
    WouldRound,
    /// More code points than the column's length.
    TooLong,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// Bytes that are no character of the file's encoding.
    Unmappable,
    /// A NUL byte in a text column.
    NulByte,
    /// A key that belongs to no partition of the destination.
    Partition,
    /// A key that no row of a lookup has.
    NoMatch,
    /// A row of which a query cannot compute its result.
    Expression,
}

impl Rule {
    /// All rules, each at the place of its number.
    pub const ALL: [Rule; 30] = [
        Rule::TooFewFields,
        Rule::TooManyFields,
        Rule::RowTooLong,
        Rule::TextAfterQualifier,
        Rule::StrayQualifier,
        Rule::UnclosedQualifier,
        Rule::UnfinishedEscape,
        Rule::OtherRowEnd,
        Rule::RowTooNarrow,
        Rule::RowTooWide,
        Rule::NullNotAllowed,
        Rule::BadInteger,
        Rule::BadDecimal,
        Rule::BadFloat,
        Rule::BadBool,
        Rule::BadDate,
        Rule::BadTime,
        Rule::BadTimestamp,
        Rule::BadUuid,
        Rule::BadBytes,
        Rule::BadJson,
        Rule::OutOfRange,
        Rule::WouldRound,
        Rule::TooLong,
        Rule::InvalidUtf8,
        Rule::Unmappable,
        Rule::NulByte,
        Rule::Partition,
        Rule::NoMatch,
        Rule::Expression,
    ];

    /// Whether a text is no value of its column's type.
    pub fn is_conversion(self) -> bool {
        use Rule::*;
        matches!(
            self,
            BadInteger | BadDecimal | BadFloat | BadBool | BadDate | BadTime | BadTimestamp | BadUuid | BadBytes
        )
    }

    /// Stable code.
    pub fn code(self) -> &'static str {
        self.row().0
    }

    /// Whether a value breaks it by being too long or too exact for its column, so that a part of it could be kept.
    pub fn is_truncation(self) -> bool {
        matches!(self, Rule::WouldRound | Rule::TooLong)
    }

    /// Whether it is a rule of values: not of rows, of NULL, or of keys.
    pub fn is_of_values(self) -> bool {
        self >= Rule::BadInteger && self < Rule::Partition
    }

    /// What the rule demands, for messages: "found X, expected ...".
    pub fn expected(self) -> &'static str {
        self.row().1
    }

    /// What a user can do about it.
    pub fn hint(self) -> &'static str {
        self.row().2
    }

    /// The table behind the accessors: code, what is expected, hint.
    fn row(self) -> (&'static str, &'static str, &'static str) {
        use Rule::*;
        match self {
            TooFewFields => (
                "HR101",
                "as many fields as the layout has columns",
                "Check the delimiter and `trailing_delimiter` of the layout, or repair the row.",
            ),
            TooManyFields => (
                "HR102",
                "as many fields as the layout has columns",
                "Check the delimiter and `trailing_delimiter` of the layout, or repair the row.",
            ),
            RowTooLong => (
                "HR103",
                "a row no longer than `max_row`",
                "A row end or a closing qualifier is missing, or the delimiter is not this file's.",
            ),
            TextAfterQualifier => (
                "HR104",
                "a delimiter or the row end after a closing qualifier",
                "Double every qualifier that belongs to the text of a qualified field, or set `stray_qualifiers` of the layout.",
            ),
            StrayQualifier => (
                "HR110",
                "qualifiers only around whole fields",
                "Set `stray_qualifiers: keep` in the layout if they are text, or repair the row.",
            ),
            UnclosedQualifier => (
                "HR105",
                "a closing qualifier",
                "Close the field, or leave `qualifier` out of the layout if this file has none.",
            ),
            UnfinishedEscape => (
                "HR106",
                "a character behind an escape",
                "Double the escape if it is data, or leave `escape` out of the layout.",
            ),
            OtherRowEnd => (
                "HR107",
                "the row end of the file's first row",
                "Set `mixed_row_ends: accept` in the layout if both are right, or repair the row.",
            ),
            RowTooNarrow => (
                "HR108",
                "a row as wide as the columns of the layout",
                "Check `row_end` and the widths of the layout, or repair the row.",
            ),
            RowTooWide => (
                "HR109",
                "a row as wide as the columns of the layout",
                "Check `row_end` and the widths of the layout, or repair the row.",
            ),
            NullNotAllowed => (
                "HR201",
                "a value: the column is not nullable",
                "Set `nullable: true` in the layout if empty fields mean NULL.",
            ),
            BadInteger => {
                ("HR301", "digits with an optional sign", "Set another type for the column, or repair the row.")
            }
            BadDecimal => (
                "HR302",
                "digits with an optional sign and one decimal point",
                "Set another type for the column, or repair the row.",
            ),
            BadFloat => {
                ("HR303", "a decimal number, exponent allowed", "Set another type for the column, or repair the row.")
            }
            BadBool => (
                "HR304",
                "true, false, t, f, yes, no, y, n, 1 or 0",
                "Set another type for the column, or repair the row.",
            ),
            BadDate => (
                "HR305",
                "a date YYYY-MM-DD from 0001-01-01 to 9999-12-31",
                "Set another type for the column, or repair the row.",
            ),
            BadTime => ("HR306", "a time HH:MM:SS[.ffffff]", "Set another type for the column, or repair the row."),
            BadTimestamp => (
                "HR307",
                "YYYY-MM-DD HH:MM:SS[.ffffff], with an offset from UTC for timestamptz and without one for timestamp",
                "Set another type for the column, or repair the row.",
            ),
            BadUuid => (
                "HR308",
                "32 hexadecimal digits, hyphens optional",
                "Set another type for the column, or repair the row.",
            ),
            BadBytes => ("HR309", "an even number of hexadecimal digits, \\x optional", "Repair the row."),
            BadJson => ("HR310", "a JSON document", "Use type `string` to load the text as it is."),
            OutOfRange => ("HR401", "a number inside the type's range", "Use a wider type for the column."),
            WouldRound => (
                "HR402",
                "no more digits after the point than the type keeps",
                "Use a larger scale: Headrace never rounds.",
            ),
            TooLong => {
                ("HR403", "no more characters than the column's length", "Use a longer type: Headrace never truncates.")
            }
            InvalidUtf8 => (
                "HR501",
                "UTF-8 text",
                "Set `encoding` of the layout to that of the file, for example windows-1252, or repair the row.",
            ),
            Unmappable => (
                "HR503",
                "characters of the file's encoding",
                "Correct `encoding` of the layout, or set `unmappable: replace`: then such bytes are read as U+FFFD.",
            ),
            NulByte => (
                "HR502",
                "text without NUL bytes",
                "The file is damaged, is not a text file, or is UTF-16: then set `encoding: utf-16le`.",
            ),
            Partition => (
                "HR601",
                "a key that one of the partitions takes",
                "Declare a partition for the key, or set `outside: default`.",
            ),
            NoMatch => (
                "HR602",
                "a key that a row of the lookup has",
                "Add the missing row to the lookup, or give rows that find nothing a value: `no_match: {default: VALUE}`.",
            ),
            Expression => (
                "HR603",
                "values that the query of the transform can compute with",
                "Repair the row, or let the `sql` of the transform provide for it, with CASE or TRY.",
            ),
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use Rule::*;
        formatter.write_str(match self {
            TooFewFields => "too_few_fields",
            TooManyFields => "too_many_fields",
            RowTooLong => "row_too_long",
            TextAfterQualifier => "text_after_qualifier",
            StrayQualifier => "stray_qualifier",
            UnclosedQualifier => "unclosed_qualifier",
            UnfinishedEscape => "unfinished_escape",
            OtherRowEnd => "other_row_end",
            RowTooNarrow => "row_too_narrow",
            RowTooWide => "row_too_wide",
            NullNotAllowed => "null_not_allowed",
            BadInteger => "bad_integer",
            BadDecimal => "bad_decimal",
            BadFloat => "bad_float",
            BadBool => "bad_bool",
            BadDate => "bad_date",
            BadTime => "bad_time",
            BadTimestamp => "bad_timestamp",
            BadUuid => "bad_uuid",
            BadBytes => "bad_bytes",
            BadJson => "bad_json",
            OutOfRange => "out_of_range",
            WouldRound => "would_round",
            TooLong => "too_long",
            InvalidUtf8 => "invalid_utf8",
            Unmappable => "unmappable",
            NulByte => "nul_byte",
            Partition => "partition",
            NoMatch => "no_match",
            Expression => "expression",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_at_its_place_and_has_a_code_of_its_own() {
        for (place, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, place);
            assert_eq!(Rule::ALL.iter().filter(|other| other.code() == rule.code()).count(), 1);
        }
        assert_eq!(Rule::Expression as usize + 1, Rule::ALL.len());
    }
}
