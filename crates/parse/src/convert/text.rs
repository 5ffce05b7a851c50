//! Text as 16-byte string views into the block (Arrow's "view" layout): length, then up to 12 bytes of text, or a 4-byte
//! prefix, the buffer number (always 0: the block) and the offset.

use headrace_types::Rule;

use super::Convert;
use crate::fields::{Field, TILE_ROWS, Tile};

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
pub struct Texts {
    /// Code points at most; `u32::MAX` without limit.
    pub max_length: usize,
    /// Whether trailing blanks mean nothing and are dropped (char).
    pub drop_trailing_blanks: bool,
    /// Whether the block holds NUL bytes or bytes that are not UTF-8, so that every value must be looked at.
    pub suspicious: bool,
    /// Whether values must be JSON documents.
    pub json: bool,
}

impl Convert for Texts {
    type Value = u128;

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

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [u128], inexact: &mut [u8]) -> bool {
        if self.suspicious || self.json {
            return false;
        }
        let (mut first, mut second) = ([0; TILE_ROWS], [0; TILE_ROWS]);
        let rows = tile.rows();
        let (first, second) = (&tile.words_at(0, &mut first)[..rows], &tile.words_at(4, &mut second)[..rows]);
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
        let max_length = self.max_length.min(u32::MAX as usize) as u32;
        for row in 0..rows {
            let length = ends[row] - starts[row];
            values[row] = view_of_words(first[row], second[row], starts[row], length);
            inexact[row] = u8::from(length == 0) | u8::from(length > max_length);
        }
        if self.drop_trailing_blanks {
            for (inexact, field) in std::iter::zip(inexact, tile.fields()) {
                *inexact |= u8::from(field.byte_before(1) == b' ');
            }
        }
        true
    }
}

/// The same as [`view`] of the eight bytes from `start` and the eight bytes from `start + 4`.
#[inline(always)]
fn view_of_words(first: u64, second: u64, start: u32, length: u32) -> u128 {
    let kept = |word: u64, bytes: u32| word & u64::MAX.unbounded_shr(64 - 8 * bytes);
    let low = u64::from(length) | kept(first, length.min(4)) << 32;
    let inline = kept(second, length.saturating_sub(4).min(8));
    let high = if length <= INLINE_BYTES as u32 { inline } else { u64::from(start) << 32 };
    u128::from(low) | u128::from(high) << 64
}

impl Texts {
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
