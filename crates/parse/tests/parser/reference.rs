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
    parse_up_to(layout, row_end, at_file_start, bytes, first_byte, usize::MAX)
}

/// The same where longer rows, with the row ends that they have or lack, are rejected and not kept.
pub fn parse_up_to(
    layout: &Layout,
    row_end: RowEnd,
    at_file_start: bool,
    bytes: &[u8],
    first_byte: u64,
    max_row_bytes: usize,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut at = 0;
    while at < bytes.len() {
        let row = RawRow::cut(layout, row_end, &bytes[at..]);
        let next = at + row.length;
        let unclosed = matches!(row.fields.last(), Some(Field { form: Form::Unclosed, .. }));
        let is_header = at_file_start && outcome.lines < u64::from(layout.header_rows);
        let can_be_empty = layout.columns.len() == 1 && !layout.trailing_delimiter;
        // Behind a qualifier that is never closed there may be rows: even in a header this is not passed over in silence.
        if !unclosed && (is_header || (row.content.is_empty() && !can_be_empty)) {
            outcome.skipped += 1;
        } else if row.length + usize::from(unclosed || !bytes[at..next].ends_with(b"\n")) > max_row_bytes {
            let row_byte = first_byte + at as u64;
            outcome.rejects.push(Reject {
                line: outcome.lines,
                row_byte,
                byte: row_byte,
                column: None,
                rule: Rule::RowTooLong,
                value: bytes[at..next].iter().copied().take(1000).collect(),
                note: None,
                row: vec![],
            });
        } else {
            match parse_row(layout, &row) {
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

/// How a field is written.
enum Form {
    /// As it is.
    Plain,
    /// Between qualifiers; its text.
    Qualified(Vec<u8>),
    /// Something stands behind its closing qualifier.
    TextBehind,
    /// To the end of the slice.
    Unclosed,
}

/// A field as it stands in the file.
struct Field<'a> {
    offset: usize,
    raw: &'a [u8],
    form: Form,
}

/// A row as it stands in the file.
struct RawRow<'a> {
    fields: Vec<Field<'a>>,
    /// Without its row end.
    content: &'a [u8],
    /// With its row end.
    length: usize,
}

impl<'a> RawRow<'a> {
    /// Cuts the first row off.
    fn cut(layout: &Layout, row_end: RowEnd, bytes: &'a [u8]) -> Self {
        let delimiter = layout.delimiter as u8;
        let mut fields = vec![];
        let mut offset = 0;
        loop {
            let (form, length) = cut_field(layout, &bytes[offset..]);
            let end = offset + length;
            let ends_row = bytes.get(end) != Some(&delimiter);
            fields.push(Field { offset, raw: &bytes[offset..end], form });
            if !ends_row {
                offset = end + 1;
                continue;
            }
            let last = fields.last_mut().unwrap();
            let mut content = &bytes[..end];
            let is_crlf = row_end == RowEnd::Crlf && last.raw.ends_with(b"\r") && !matches!(last.form, Form::Unclosed);
            if is_crlf {
                content = &content[..end - 1];
                // The carriage return may be all there is behind a closing qualifier.
                last.form = cut_field(layout, &content[offset..]).0;
                last.raw = &content[offset..];
            }
            return RawRow { fields, content, length: (end + 1).min(bytes.len()) };
        }
    }
}

/// Form of the first field and how long it is.
fn cut_field(layout: &Layout, bytes: &[u8]) -> (Form, usize) {
    let ends_plain = |byte: &u8| *byte == layout.delimiter as u8 || *byte == b'\n';
    let plain_length = |bytes: &[u8]| bytes.iter().position(ends_plain).unwrap_or(bytes.len());
    let Some(qualifier) = layout.qualifier.filter(|&qualifier| bytes.first() == Some(&(qualifier as u8))) else {
        return (Form::Plain, plain_length(bytes));
    };
    // Of each run of qualifiers every two are one of the text; the first run with one left over closes the field.
    let qualifier = qualifier as u8;
    let (mut text, mut at) = (vec![], 1);
    loop {
        let Some(data) = bytes[at..].iter().position(|&byte| byte == qualifier) else {
            return (Form::Unclosed, bytes.len());
        };
        let run = bytes[at + data..].iter().take_while(|&&byte| byte == qualifier).count();
        text.extend_from_slice(&bytes[at..at + data]);
        text.extend(std::iter::repeat_n(qualifier, run / 2));
        at += data + run;
        if run % 2 == 1 {
            let behind = plain_length(&bytes[at..]);
            return (if behind == 0 { Form::Qualified(text) } else { Form::TextBehind }, at + behind);
        }
    }
}

fn parse_row(layout: &Layout, row: &RawRow<'_>) -> Result<Vec<Value>, Bad> {
    let mut fields: Vec<&Field<'_>> = row.fields.iter().collect();
    let last = fields[fields.len() - 1];
    if let Form::Unclosed = last.form {
        let column = (fields.len() <= layout.columns.len()).then_some(fields.len() - 1);
        let (offset, value) = (last.offset, last.raw.to_vec());
        return Err(Bad { rule: Rule::UnclosedQualifier, column, offset, value, note: None });
    }
    let bad_shape =
        |rule, note: String| Bad { rule, column: None, offset: 0, value: row.content.to_vec(), note: Some(note) };
    // Nothing stands between the last delimiter and the row end.
    let closed = fields.len() > 1 && last.raw.is_empty();
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
    let mut values = vec![];
    for (index, field) in fields.into_iter().enumerate() {
        let converted = match &field.form {
            Form::Qualified(text) => convert(layout.columns[index].column_type, text),
            Form::TextBehind => Err(Rule::TextAfterQualifier),
            Form::Plain | Form::Unclosed => convert_plain(layout, &layout.columns[index], field.raw),
        };
        match converted {
            Ok(value) => values.push(value),
            Err(rule) => {
                let (offset, value) = (field.offset, field.raw.to_vec());
                return Err(Bad { rule, column: Some(index), offset, value, note: None });
            }
        }
    }
    Ok(values)
}

fn convert_plain(layout: &Layout, column: &Column, field: &[u8]) -> Result<Value, Rule> {
    if field.is_empty() || layout.null_tokens.iter().any(|token| token.as_bytes() == field) {
        return if column.nullable { Ok(Value::Null) } else { Err(Rule::NullNotAllowed) };
    }
    convert(column.column_type, field)
}
