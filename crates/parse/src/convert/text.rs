//! Text as 16-byte string views into the block (Arrow's "view" layout): length, then up to 12 bytes of text, or a 4-byte
//! prefix, the buffer number (always 0: the block) and the offset.

use headrace_types::Rule;

use super::Convert;
use crate::fields::Field;

/// Longest text a view holds itself.
const INLINE_BYTES: usize = 12;

/// View of the bytes `start..start + length` of the block, whose first 16 bytes from `start` are `head`.
#[inline(always)]
fn view(head: u128, start: u32, length: usize) -> u128 {
    let shift = 8 * length.min(INLINE_BYTES) as u32;
    let inline = (head & ((1_u128 << shift) - 1)) << 32;
    let prefix = u128::from(head as u32) << 32;
    let reference = prefix | (u128::from(start) << 96);
    length as u128 | if length <= INLINE_BYTES { inline } else { reference }
}

/// What a text column demands of its values.
pub struct Text {
    /// Code points at most; `u32::MAX` without limit.
    pub max_length: usize,
    /// Whether trailing blanks mean nothing and are dropped (char).
    pub drop_trailing_blanks: bool,
    /// Whether the block holds NUL bytes or bytes that are not UTF-8, so that every value must be looked at.
    pub suspicious: bool,
    /// Whether values must be JSON documents.
    pub json: bool,
}

impl Convert for Text {
    type Value = u128;
    const EMPTY_IS_TEXT: bool = true;

    #[inline(always)]
    fn convert(&self, field: Field<'_>) -> Result<u128, Rule> {
        let mut length = field.len();
        if self.drop_trailing_blanks && field.byte_before(1) == b' ' {
            length = without_trailing_blanks(field.bytes());
        }
        // A value has at most as many code points as bytes.
        if length > self.max_length || self.suspicious || self.json {
            self.check(&field.bytes()[..length])?;
        }
        Ok(view(field.u128_at(0), field.start, length))
    }
}

impl Text {
    #[inline(never)]
    fn check(&self, value: &[u8]) -> Result<(), Rule> {
        let text = std::str::from_utf8(value).map_err(|_| Rule::InvalidUtf8)?;
        if value.contains(&0) {
            return Err(Rule::NulByte);
        }
        if text.chars().count() > self.max_length {
            return Err(Rule::TooLong);
        }
        if self.json && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return Err(Rule::BadJson);
        }
        Ok(())
    }
}

#[inline(never)]
fn without_trailing_blanks(value: &[u8]) -> usize {
    value.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)
}
