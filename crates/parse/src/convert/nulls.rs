//! What NULL looks like in a column.

use crate::raw::fields::Field;

/// The null tokens of a column; an empty field is NULL besides.
#[derive(Debug, Clone, Default)]
pub struct NullRule {
    tokens: Vec<Vec<u8>>,
    /// Lengths of the tokens that are also the text of a value of the column's type; none when there are no such tokens.
    lengths_of_values: Option<Lengths>,
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
    /// The given texts mean NULL, besides the empty field. `is_value` says whether a text is also that of a value.
    pub fn new(tokens: &[String], is_value: impl Fn(&[u8]) -> bool) -> Self {
        let mut lengths_of_values = None;
        for token in tokens.iter().filter(|token| is_value(token.as_bytes())) {
            lengths_of_values.get_or_insert_with(Lengths::default).add(token.len());
        }
        NullRule { tokens: tokens.iter().map(|token| token.as_bytes().to_vec()).collect(), lengths_of_values }
    }

    /// Lengths of fields that may be tokens although the type takes them for values.
    #[inline(always)]
    pub fn lengths_of_values(&self) -> Option<Lengths> {
        self.lengths_of_values
    }

    /// Whether the field is a token that the type would take for a value.
    #[inline(always)]
    pub fn is_value_token(&self, field: Field<'_>) -> bool {
        self.lengths_of_values.is_some() && self.is_token(field.bytes())
    }

    /// Whether the field is one of the tokens.
    pub fn is_token(&self, field: &[u8]) -> bool {
        self.tokens.iter().any(|token| token == field)
    }
}
