//! What is said of rejects.

use std::fmt::Write as _;

use headrace_parse::Reject;
use headrace_types::{Layout, Rule, Trim};

use super::LocatedReject;

/// What is wrong with a row, one sentence.
pub fn message(reject: &Reject, layout: &Layout, max_row_bytes: usize) -> String {
    let column = reject.column.and_then(|index| Some((index, layout.columns.get(index)?)));
    let Some((index, column)) = column else {
        return match (reject.rule, &reject.note) {
            (Rule::OtherRowEnd, _) => "a row ends otherwise than the first row of its file".to_owned(),
            (Rule::RowTooLong, _) => format!("a row is longer than {} bytes", max_row_bytes),
            (Rule::UnclosedQualifier, _) => "a qualifier behind the last column of a row is never closed".to_owned(),
            (Rule::NoMatch, Some(note)) => format!("no match in {note}"),
            (Rule::NullNotAllowed, Some(note)) => format!("no value for {note}"),
            (Rule::TooLong | Rule::Expression, Some(note)) => note.to_string(),
            (Rule::StrayQualifier | Rule::TextAfterQualifier, None) => {
                "a field that no column takes has a qualifier that does not enclose it".to_owned()
            }
            (_, Some(note)) => format!("a row does not fit the layout: {note}"),
            (rule, None) => format!("a row breaks the rule {rule}"),
        };
    };
    let place = format!("column `{}` ({})", column.name, index + 1);
    let kind = column.column_type;
    match reject.rule {
        Rule::NullNotAllowed => {
            format!("no value for {place}, which {}", reject.note.as_deref().unwrap_or("is not nullable"))
        }
        Rule::OutOfRange => format!("a value for {place} is outside {kind}"),
        Rule::WouldRound => format!("a value for {place} has more digits after the point than {kind} keeps"),
        Rule::TooLong => match &reject.note {
            Some(note) => format!("a value for {place} is longer than {note}"),
            None => format!("a value for {place} is longer than {kind}"),
        },
        Rule::InvalidUtf8 => format!("a value for {place} is not UTF-8"),
        Rule::Unmappable => {
            let hole = reject.note.as_deref().unwrap_or("a byte");
            format!("a value for {place} holds {hole}, which is no character of {}", layout.encoding)
        }
        Rule::NulByte => format!("a value for {place} has a NUL byte"),
        Rule::TextAfterQualifier => format!("text follows the closing qualifier of a value for {place}"),
        Rule::StrayQualifier => format!("a value for {place} has a qualifier that does not enclose it"),
        Rule::UnclosedQualifier => format!("the qualifier of a value for {place} is never closed"),
        Rule::Partition => format!("no partition takes the value of {place}"),
        Rule::NoMatch => format!("no match in {} for {place}", reject.note.as_deref().unwrap_or("the lookup")),
        _ => format!("cannot convert a value for {place} to {kind}"),
    }
}

/// What the format of the column, numbered from 1, demands of a value that breaks the rule, if it says so.
fn of_format(layout: &Layout, rule: Rule, column_number: Option<usize>) -> Option<String> {
    let column = layout.columns.get(column_number?.wrapping_sub(1))?;
    column.format.as_ref()?.expected(rule)
}

/// What is expected in the place of what was found.
pub fn expected(layout: &Layout, rule: Rule, column_number: Option<usize>) -> String {
    of_format(layout, rule, column_number).unwrap_or_else(|| rule.expected().to_owned())
}

/// What a user can do about it.
pub fn hint(layout: &Layout, rule: Rule, first: &LocatedReject) -> String {
    if let Some(trim) = missing_trim(layout, rule, first) {
        // What stands between qualifiers is never trimmed.
        let outside = if layout.qualifier.is_some() { "stand outside of qualifiers and " } else { "" };
        return format!("Set `trim: {trim}` if the blanks {outside}are no part of the value, or repair the row.");
    }
    let is_blank = |character: char| character == ' ' || character == '\t';
    let whole = first.value.trim_matches(is_blank);
    let inner = layout.qualifier.and_then(|own| whole.strip_prefix(own)?.strip_suffix(own));
    if matches!(rule, Rule::StrayQualifier | Rule::TextAfterQualifier)
        && layout.qualifier.is_some_and(|own| inner.is_some_and(|inner| !inner.contains(own)))
    {
        return "Set `blanks_around_qualifier: true` in the layout if blanks around qualifiers are no text.".to_owned();
    }
    match of_format(layout, rule, first.column_number) {
        Some(_) => "Correct the `format` of the column, or repair the row.".to_owned(),
        None => rule.hint().to_owned(),
    }
}

/// What the column would need for a value that cannot be converted as long as it has blanks at its ends.
fn missing_trim(layout: &Layout, rule: Rule, first: &LocatedReject) -> Option<&'static str> {
    let column = layout.columns.get(first.column_number?.wrapping_sub(1))?;
    let blanks = [' ', '\t'];
    let (is_left, is_right) = (first.value.starts_with(blanks), first.value.ends_with(blanks));
    // What the column trims already it goes on to trim.
    let trims_left = matches!(column.trim, Trim::Left | Trim::Both);
    let trims_right = matches!(column.trim, Trim::Right | Trim::Both);
    let is_missing = (is_left && !trims_left) || (is_right && !trims_right);
    let trim = match (is_left || trims_left, is_right || trims_right) {
        (true, true) => "both",
        (true, false) => "left",
        _ => "right",
    };
    (rule.is_conversion() && is_missing).then_some(trim)
}

/// Bytes as text; what is not UTF-8 as \xNN.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}"); // writing to a String cannot fail
        }
    }
    text
}

/// A value for a message: quoted, control characters escaped, shortened.
pub fn shown(value: &str) -> String {
    const LONGEST: usize = 120;
    let mut text = String::from("\"");
    for character in value.chars().take(LONGEST) {
        match character {
            character if character.is_control() => text.extend(character.escape_default()),
            character => text.push(character),
        }
    }
    text.push('"');
    if value.chars().count() > LONGEST {
        text.push_str(" ...");
    }
    text
}
