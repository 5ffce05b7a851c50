//! What a text could be.

use super::kin;
use super::moment::{self, Dated};
use super::number::{self, Number};

/// Kinds of texts that no text is two of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Digits.
    Whole,
    /// Digits with a point.
    Point,
    /// Digits with a comma.
    Comma,
    /// `1.234`: 1.234 or 1234.
    MaybePoint,
    /// `1,234`: 1.234 or 1234.
    MaybeComma,
    /// Groups of three with points between, and perhaps a comma: `1.234.567`, `1.234,5`.
    GroupedPoint,
    /// Groups of three with commas between, and perhaps a point.
    GroupedComma,
    /// A number with an exponent that has a sign, or with a point before it.
    Exponent,
    /// `12E3`, which may be a code.
    BareExponent,
    /// A number and a percent sign.
    Percent,
    /// A number and a currency.
    Currency,
    /// Groups of three with blanks or apostrophes between.
    OtherGroups,
    /// `(12.50)` or `12.50-`.
    Accounting,
    /// `YYYY-MM-DD`, a day of the calendar.
    Date,
    /// That, a blank or `T`, and a time.
    Timestamp,
    /// The same with an offset from UTC.
    TimestampTz,
    /// `HH:MM[:SS[.ffffff]]`.
    Time,
    /// Three numbers that may be a day, with or without a time.
    Dated,
    /// `1-Jan-2026`, and what is written like it.
    MonthName,
    /// true or false, in any case.
    Truth,
    /// A UUID with hyphens.
    Uuid,
    /// Blanks and tabs.
    Blank,
    /// Anything else.
    Other,
}

impl Class {
    /// All classes, each at the place of its number.
    pub const ALL: [Class; 23] = [
        Class::Whole,
        Class::Point,
        Class::Comma,
        Class::MaybePoint,
        Class::MaybeComma,
        Class::GroupedPoint,
        Class::GroupedComma,
        Class::Exponent,
        Class::BareExponent,
        Class::Percent,
        Class::Currency,
        Class::OtherGroups,
        Class::Accounting,
        Class::Date,
        Class::Timestamp,
        Class::TimestampTz,
        Class::Time,
        Class::Dated,
        Class::MonthName,
        Class::Truth,
        Class::Uuid,
        Class::Blank,
        Class::Other,
    ];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Whole => "whole",
            Class::Point => "point",
            Class::Comma => "comma",
            Class::MaybePoint => "maybe_point",
            Class::MaybeComma => "maybe_comma",
            Class::GroupedPoint => "grouped_point",
            Class::GroupedComma => "grouped_comma",
            Class::Exponent => "exponent",
            Class::BareExponent => "bare_exponent",
            Class::Percent => "percent",
            Class::Currency => "currency",
            Class::OtherGroups => "other_groups",
            Class::Accounting => "accounting",
            Class::Date => "date",
            Class::Timestamp => "timestamp",
            Class::TimestampTz => "timestamptz",
            Class::Time => "time",
            Class::Dated => "dated",
            Class::MonthName => "month_name",
            Class::Truth => "truth",
            Class::Uuid => "uuid",
            Class::Blank => "blank",
            Class::Other => "other",
        }
    }
}

/// A text that was looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    /// A number.
    Number(Class, Number),
    /// Three numbers that may be a day.
    Dated(Dated),
    /// Anything else.
    Class(Class),
}

impl Seen {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            Seen::Number(class, _) | Seen::Class(class) => *class,
            Seen::Dated(_) => Class::Dated,
        }
    }
}

/// Without blanks and tabs at its ends.
pub fn trimmed(text: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let Some(first) = text.iter().position(is_text) else { return &[] };
    let last = text.iter().rposition(is_text).unwrap_or(first);
    &text[first..=last]
}

/// What a text is that is not empty. Blanks at its ends count for nothing.
pub fn seen(text: &[u8]) -> Seen {
    let text = trimmed(text);
    let Some(first) = text.first() else { return Seen::Class(Class::Blank) };
    let found = match first {
        b'0'..=b'9' => number::number(text).or_else(|| moment::moment(text)).or_else(|| uuid(text)),
        b'+' | b'-' | b'.' | b',' => number::number(text),
        b'a'..=b'f' | b'A'..=b'F' | b't' | b'T' => truth(text).or_else(|| uuid(text)),
        _ => None,
    };
    found.or_else(|| kin::kin(text)).unwrap_or(Seen::Class(Class::Other))
}

fn truth(text: &[u8]) -> Option<Seen> {
    let is_truth = text.eq_ignore_ascii_case(b"true") || text.eq_ignore_ascii_case(b"false");
    is_truth.then_some(Seen::Class(Class::Truth))
}

fn uuid(text: &[u8]) -> Option<Seen> {
    let is_part = |(place, byte): (usize, &u8)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    (text.len() == 36 && text.iter().enumerate().all(is_part)).then_some(Seen::Class(Class::Uuid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_texts() {
        use Class::*;
        for (class, texts) in [
            (Whole, &["0", "-7", "+7", "007", " 12\t", "99999999999999999999999999999999999999999999"][..]),
            (Point, &["1.5", ".5", "5.", "-0.25", "0.125", "1234.567", "012.345"]),
            (Comma, &["1,5", ",5", "1234,567", "0,125"]),
            (MaybePoint, &["1.234", "-12.345", "123.000"]),
            (MaybeComma, &["1,234"]),
            (GroupedPoint, &["1.234.567", "1.234,5"]),
            (GroupedComma, &["1,234,567", "1,234.50", "-1,234,567.891"]),
            (Exponent, &["1e-5", "1.5E3", "1E+5", ".5e1"]),
            (BareExponent, &["12E3", "1e5"]),
            (Date, &["2024-02-29", "0001-01-01"]),
            (Timestamp, &["2024-02-29 12:00", "2024-02-29T12:00:59.123456"]),
            (TimestampTz, &["2024-02-29 12:00Z", "2024-02-29T12:00:59+05:30"]),
            (Time, &["12:00", "23:59:59.5"]),
            (Dated, &["1/2/2024", "31.12.99", "2024/01/02", "31-12-2024 23:59:59", "2024-1-2", "1/1/2024 9:05"]),
            (Percent, &["12%", "-1,5 %", "1.234,5\u{a0}%"]),
            (Currency, &["$12.50", "12,50 €", "-£5", "EUR 1.249,00", "CHF1", "$-5", "7 USD"]),
            (OtherGroups, &["1 234", "-1'234'567.50", "1\u{202f}234,5", "12\u{2019}000"]),
            (Accounting, &["(12.50)", "12,50-", "1-"]),
            (MonthName, &["1-Jan-2026", "01/FEB/26", "1. März 2026", "3 mai 2026 12:30", "Sept. 30, 2026"]),
            (Truth, &["true", "FALSE"]),
            (Uuid, &["123e4567-e89b-12d3-a456-426614174000"]),
            (Blank, &[" ", "\t "]),
            (
                Other,
                &[
                    "x",
                    "-",
                    ".",
                    "1.2.3",
                    "1,23,456",
                    "1.234.56",
                    "1.234,",
                    "1e",
                    "e5",
                    "2024-02-30",
                    "24:00",
                    "12:00:00.1234567",
                    "1/2",
                    "1/2-2024",
                    "1 2",
                    "1 2345",
                    "1 234'567",
                    "%",
                    "1.5e3 %",
                    "$",
                    "$ -",
                    "-$-5",
                    "5 $ 7",
                    "(-5)",
                    "(5",
                    "5--",
                    "1-Ja-2026",
                    "1-Jan-202",
                    "32-Jan-2026",
                    "1-Jan/2026",
                    "Jan 1 2026",
                    "1-Jan-2026 25:00",
                    "t",
                    "0x1F",
                    "--1",
                    "32.13.2024",
                    "\u{663}",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(seen(text.as_bytes()).class(), class, "{text}");
            }
        }
        for (place, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, place);
        }
    }
}
