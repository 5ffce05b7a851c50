//! Text as 16-byte string views into the block (Arrow's "view" layout): length, then up to 12 bytes of text, or a 4-byte
//! prefix, the buffer number (0: the block, 1: the slab with texts that were rewritten) and the offset.

use headrace_types::Rule;

use super::{Convert, Unescaped};
use crate::raw::fields::{Field, OTHER_TEXT, TILE_ROWS, Tile};
use crate::raw::memory::PADDING_BYTES;

/// Longest text a view holds itself.
const INLINE_BYTES: u32 = 12;

/// The first `count` (0..=8) bytes of a word.
#[inline(always)]
fn kept(word: u64, count: u32) -> u64 {
    word & u64::MAX.unbounded_shr(64 - 8 * count)
}

/// View of a text of the block: of the eight bytes from `start`, and the eight bytes from `start + 4`.
#[inline(always)]
fn view(first: u64, second: u64, start: u32, length: u32) -> u128 {
    let low = u64::from(length) | kept(first, length.min(4)) << 32;
    let inline = kept(second, length.saturating_sub(4).min(8));
    let high = if length <= INLINE_BYTES { inline } else { u64::from(start) << 32 };
    u128::from(low) | u128::from(high) << 64
}

/// The buffer with the text that stands for empty fields, behind the block and the slab.
pub const CONSTANT_BUFFER: usize = 2;

/// View of a text that stands in another buffer than the block.
fn view_of(text: &[u8], buffer: usize, offset: usize) -> u128 {
    let mut words = [0; 16];
    let copied = text.len().min(INLINE_BYTES as usize);
    words[..copied].copy_from_slice(&text[..copied]);
    let length = text.len() as u32;
    let inline = (u128::from_le_bytes(words) << 32) | u128::from(length);
    let prefix = u128::from(inline as u64);
    if length <= INLINE_BYTES { inline } else { prefix | (buffer as u128) << 64 | (offset as u128) << 96 }
}

/// What a text column demands of its values.
pub struct Texts<'a> {
    /// Code points at most; `u32::MAX` without limit.
    pub max_length: usize,
    /// Whether trailing blanks mean nothing and are dropped (char).
    pub drop_trailing_blanks: bool,
    /// Whether the block holds NUL bytes or bytes that are not UTF-8, so that every value must be looked at.
    pub suspicious: bool,
    /// Whether values must be JSON documents.
    pub json: bool,
    /// Where texts go that are rewritten; none when there are no such texts.
    pub unescaped: Option<&'a Unescaped<'a>>,
}

impl Convert for Texts<'_> {
    type Value = u128;
    const IS_TEXT: bool = true;

    #[inline(always)]
    fn convert(&self, field: Field<'_>) -> Result<u128, Rule> {
        if let Some(unescaped) = self.unescaped
            && field.is_rewritten()
        {
            return self.convert_escaped(unescaped, field);
        }
        let length = self.length(field.bytes())?;
        Ok(view(field.u64_at(0), field.u64_at(4), field.start(), length as u32))
    }

    fn convert_constant(&self, field: Field<'_>) -> Result<u128, Rule> {
        let length = self.length(field.bytes())?;
        Ok(view_of(&field.bytes()[..length], CONSTANT_BUFFER, PADDING_BYTES))
    }

    fn convert_cut(&self, field: Field<'_>) -> Result<u128, Rule> {
        match self.unescaped.filter(|_| field.is_rewritten()) {
            Some(unescaped) => {
                unescaped.keep(field, |text, offset| Ok(view_of(&text[..self.length_cut(text)?], 1, offset as usize)))
            }
            None => {
                let length = self.length_cut(field.bytes())?;
                Ok(view(field.u64_at(0), field.u64_at(4), field.start(), length as u32))
            }
        }
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
            values[row] = view(first[row], second[row], starts[row], length);
            inexact[row] = u8::from(length == 0) | u8::from(length > max_length);
        }
        if self.drop_trailing_blanks {
            for (inexact, field) in std::iter::zip(&mut *inexact, tile.places()) {
                *inexact |= u8::from(field.byte_before(1) == b' ');
            }
        }
        if self.unescaped.is_some() {
            for (inexact, flags) in std::iter::zip(inexact, tile.flags()) {
                *inexact |= flags & OTHER_TEXT;
            }
        }
        true
    }
}

impl Texts<'_> {
    /// Length of the value that a text stands for, or the rule it breaks.
    #[inline(always)]
    fn length(&self, text: &[u8]) -> Result<usize, Rule> {
        let mut length = text.len();
        if self.drop_trailing_blanks && text.last() == Some(&b' ') {
            length = without_trailing_blanks(text);
        }
        // A value has at most as many code points as bytes.
        if length > self.max_length || self.suspicious || self.json {
            self.check(&text[..length])?;
        }
        Ok(length)
    }

    /// Length of the first code points of a text that is too long.
    fn length_cut(&self, text: &[u8]) -> Result<usize, Rule> {
        let text = std::str::from_utf8(text).map_err(|_| Rule::InvalidUtf8)?;
        let end = text.char_indices().nth(self.max_length).map_or(text.len(), |(at, _)| at);
        let kept = &text.as_bytes()[..end];
        Ok(if self.drop_trailing_blanks { without_trailing_blanks(kept) } else { end })
    }

    #[inline(never)]
    fn convert_escaped(&self, unescaped: &Unescaped<'_>, field: Field<'_>) -> Result<u128, Rule> {
        let careful = Texts { suspicious: self.suspicious || unescaped.makes_bytes(), ..*self };
        unescaped.keep(field, |text, offset| Ok(view_of(&text[..careful.length(text)?], 1, offset as usize)))
    }

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
