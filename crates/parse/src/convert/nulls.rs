//! What stands for NULL in a column, or for another value than what stands there.

use arrow_buffer::Buffer;
use headrace_types::{Column, EmptyField, Encoding};

use crate::raw::fields::{Field, Text};
use crate::raw::memory::PADDING_BYTES;

/// Null tokens and the meaning of empty fields.
#[derive(Debug, Clone)]
pub struct NullRule {
    tokens: Vec<Vec<u8>>,
    /// Lengths of the tokens that are also the text of a value of the column's type; none when there are no such tokens.
    lengths_of_values: Option<Lengths>,
    empty: Empty,
    /// Whether the same holds for a field with nothing between its qualifiers.
    qualified_empty_is_null: bool,
    /// Whether tokens mean NULL between qualifiers.
    qualified_tokens: bool,
}

/// What an empty field without qualifiers is.
#[derive(Debug, Clone)]
enum Empty {
    Null,
    /// Text without a byte.
    Text,
    /// What this text means.
    Value(Constant),
}

/// A text of the layout, as converters and views want it.
#[derive(Debug, Clone)]
pub struct Constant {
    /// The text between padding.
    pub padded: Buffer,
    length: usize,
}

impl Constant {
    /// Of this text.
    pub fn new(text: &[u8]) -> Self {
        let mut padded = vec![0; PADDING_BYTES];
        padded.extend_from_slice(text);
        padded.resize(text.len() + 2 * PADDING_BYTES, 0);
        Constant { padded: Buffer::from_vec(padded), length: text.len() }
    }

    /// The text as a field; none if it is longer than any field.
    pub fn field(&self) -> Option<Field<'_>> {
        Text::new(&self.padded, self.length).map(Field::whole)
    }
}

/// A set of lengths; those from 63 on are one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lengths(u64);

impl Lengths {
    fn add(&mut self, length: usize) {
        self.0 |= 1 << length.min(63);
    }

    /// 1 when the set may hold the length, 0 when it does not.
    #[inline(always)]
    pub fn contains(self, length: u32) -> u8 {
        (self.0 >> length.min(63)) as u8 & 1
    }
}

impl NullRule {
    /// Of a column whose null tokens are these, in files of this encoding. `is_value` says whether a text is also that of a value.
    pub fn new(column: &Column, tokens: &[String], encoding: Encoding, is_value: impl Fn(&[u8]) -> bool) -> Self {
        let encoded = |token: &String| encoding.encode(token).unwrap_or_else(|| token.as_bytes().to_vec());
        let mut lengths_of_values = None;
        for token in tokens.iter().filter(|token| is_value(token.as_bytes())) {
            lengths_of_values.get_or_insert_with(Lengths::default).add(encoded(token).len());
        }
        NullRule {
            tokens: tokens.iter().map(encoded).collect(),
            lengths_of_values,
            empty: match &column.empty {
                EmptyField::Text if column.column_type.is_text() => Empty::Text,
                EmptyField::Null | EmptyField::Text => Empty::Null,
                EmptyField::Value(text) => Empty::Value(Constant::new(text.as_bytes())),
            },
            qualified_empty_is_null: column.qualified_empty_is_null,
            qualified_tokens: column.qualified_null_tokens,
        }
    }

    /// Lengths of fields that may be tokens although the type takes them for values.
    #[inline(always)]
    pub fn lengths_of_values(&self) -> Option<Lengths> {
        self.lengths_of_values
    }

    /// Whether the field is NULL although the type may take it for a value.
    #[inline(always)]
    pub fn is_null_value(&self, field: Field<'_>) -> bool {
        (field.len() == 0 || self.lengths_of_values.is_some()) && self.is_null(field)
    }

    /// Whether the field is NULL.
    pub fn is_null(&self, field: Field<'_>) -> bool {
        match (field.len(), field.is_qualified()) {
            (0, true) => self.qualified_empty_is_null || (self.qualified_tokens && self.is_token(b"")),
            (0, false) => matches!(self.empty, Empty::Null) || self.is_token(b""),
            (_, is_qualified) => (!is_qualified || self.qualified_tokens) && self.is_token(field.bytes()),
        }
    }

    /// What is converted in the place of an empty field.
    #[inline(always)]
    pub fn constant(&self, field: Field<'_>) -> Option<&Constant> {
        if field.len() == 0 && !field.is_qualified() { self.constant_of_empty() } else { None }
    }

    /// The same, if any field is given one.
    pub fn constant_of_empty(&self) -> Option<&Constant> {
        if let Empty::Value(constant) = &self.empty { Some(constant) } else { None }
    }

    fn is_token(&self, field: &[u8]) -> bool {
        self.tokens.iter().any(|token| token == field)
    }
}
