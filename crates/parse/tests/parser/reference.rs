//! A plain, slow parser, row by row and byte by byte. Shares no code with the crate but the types of its results.

use headrace_parse::Reject;
use headrace_types::{Column, Layout, RowEnd, Rule};

use crate::reference_values::convert;

/// One converted value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// Whole numbers, unscaled decimals, days or microseconds since 1970, microseconds since midnight.
    Number(i128),
    /// Bits of a 32-bit or 64-bit float; all NaN are one.
    Float(u64),
    /// Truth values.
    Truth(bool),
    /// Bytes and UUIDs.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
}

/// What is known after the last row of a slice.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    /// Rows that conform.
    pub rows: Vec<Vec<Value>>,
    /// Rows that do not.
    pub rejects: Vec<Reject>,
    /// Lines of any kind.
    pub lines: u64,
    /// Header and blank lines.
    pub skipped: u64,
}

/// Parses a whole slice whose first byte stands at `first_byte` of the file.
pub fn parse(layout: &Layout, row_end: RowEnd, at_file_start: bool, bytes: &[u8], first_byte: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut at = 0;
    while at < bytes.len() {
        let mut end = at;
        while end < bytes.len() && bytes[end] != b'\n' {
            end += 1;
        }
        let next = if end < bytes.len() { end + 1 } else { end };
        let mut content = &bytes[at..end];
        if row_end == RowEnd::Crlf && content.ends_with(b"\r") {
            content = &content[..content.len() - 1];
        }
        let is_header = at_file_start && outcome.lines < u64::from(layout.header_rows);
        let can_be_empty = layout.columns.len() == 1 && !layout.trailing_delimiter;
        if is_header || (content.is_empty() && !can_be_empty) {
            outcome.skipped += 1;
        } else {
            match parse_row(layout, content) {
                Ok(row) => outcome.rows.push(row),
                Err(bad) => {
                    let row_byte = first_byte + at as u64;
                    outcome.rejects.push(Reject {
                        line: outcome.lines,
                        row_byte,
                        byte: row_byte + bad.offset as u64,
                        column: bad.column,
                        rule: bad.rule,
                        value: bad.value.iter().copied().take(1000).collect(),
                        note: bad.note,
                        row: bytes[at..next].to_vec(),
                    });
                }
            }
        }
        outcome.lines += 1;
        at = next;
    }
    outcome
}

struct Bad {
    rule: Rule,
    column: Option<usize>,
    offset: usize,
    value: Vec<u8>,
    note: Option<String>,
}

fn parse_row(layout: &Layout, content: &[u8]) -> Result<Vec<Value>, Bad> {
    let mut fields: Vec<(usize, &[u8])> = vec![];
    let mut start = 0;
    for at in 0..=content.len() {
        if at == content.len() || content[at] == layout.delimiter as u8 {
            fields.push((start, &content[start..at]));
            start = at + 1;
        }
    }
    let bad_shape =
        |rule, note: String| Bad { rule, column: None, offset: 0, value: content.to_vec(), note: Some(note) };
    let closed = content.last() == Some(&(layout.delimiter as u8));
    if layout.trailing_delimiter && closed {
        fields.pop();
    }
    let (found, wanted) = (fields.len(), layout.columns.len());
    if found != wanted {
        let rule = if found < wanted { Rule::TooFewFields } else { Rule::TooManyFields };
        let noun = if found == 1 { "field" } else { "fields" };
        return Err(bad_shape(rule, format!("{found} {noun} instead of {wanted}")));
    }
    if layout.trailing_delimiter && !closed {
        return Err(bad_shape(Rule::TooFewFields, "no delimiter after the last field".to_owned()));
    }
    let mut row = vec![];
    for (index, (offset, field)) in fields.into_iter().enumerate() {
        match convert_field(layout, &layout.columns[index], field) {
            Ok(value) => row.push(value),
            Err(rule) => return Err(Bad { rule, column: Some(index), offset, value: field.to_vec(), note: None }),
        }
    }
    Ok(row)
}

fn convert_field(layout: &Layout, column: &Column, field: &[u8]) -> Result<Value, Rule> {
    if field.is_empty() || layout.null_tokens.iter().any(|token| token.as_bytes() == field) {
        return if column.nullable { Ok(Value::Null) } else { Err(Rule::NullNotAllowed) };
    }
    convert(column.column_type, field)
}
