//! Numbers with a point anywhere: loops over tiles.

use super::number;
use super::tile_texts::TileTexts;
use crate::raw::fields::{TILE_ROWS, Tile};

/// Longest text that the loop knows, bytes.
pub const LONGEST_REAL_BYTES: u32 = 24;
const LOW_BITS: u64 = 0x7F7F_7F7F_7F7F_7F7F;
const ONES: u64 = 0x0101_0101_0101_0101;

/// What the sure rows of a tile have in common.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reals {
    /// Most digits before and behind the point.
    pub before: u32,
    pub behind: u32,
    /// How many are negative.
    pub minus: u64,
    /// Of how many a double would tell other digits.
    pub inexact: u64,
}

/// The high bit of every byte that is an ASCII digit.
#[inline(always)]
fn digits(word: u64) -> u64 {
    let values = word ^ (ONES * b'0' as u64);
    !(((values & LOW_BITS) + ONES * (0x80 - 10)) | values) & !LOW_BITS
}

/// The high bit of every byte that is a point.
#[inline(always)]
fn points(word: u64) -> u64 {
    let other = word ^ (ONES * b'.' as u64);
    !(((other & LOW_BITS) + LOW_BITS) | other | LOW_BITS)
}

#[inline(always)]
fn count(high_bits: u64) -> u64 {
    (high_bits >> 7).wrapping_mul(ONES) >> 56
}

/// The byte of the only high bit of a word, and 0 in other words.
#[inline(always)]
fn place(high_bit: u64) -> u64 {
    if high_bit == 0 { 0 } else { u64::from(63 - high_bit.leading_zeros()) >> 3 }
}

/// Sure are `[-]digits.digits` that `1234.567` is like: no zeros in front and none at the end. `numbers` become what orders them: those
/// with equal numbers may differ, others are in this order. Words were loaded, zeros behind them.
#[inline(always)]
pub fn reals(tile: Tile<'_, '_>, texts: &mut TileTexts) -> Reals {
    let rows = tile.rows();
    texts.load_last(tile);
    let mut long = [0_u8; TILE_ROWS];
    let (last, long) = (&texts.last[..rows], &mut long[..rows]);
    let [first, second, third] = [0, 1, 2].map(|index| &texts.words[index][..rows]);
    let (lengths, unsure, numbers) = (&texts.lengths[..rows], &mut texts.unsure[..rows], &mut texts.numbers[..rows]);
    let (mut most_before, mut most_behind, mut minus) = (0_u64, 0_u64, 0_u64);
    for row in 0..rows {
        let (word, length) = (first[row], u64::from(lengths[row]));
        let sign = u64::from(word & 0xFF == u64::from(b'-'));
        let [in_first, in_second, in_third] = [points(word), points(second[row]), points(third[row])];
        let all_digits = count(digits(word)) + count(digits(second[row])) + count(digits(third[row]));
        let all_points = count(in_first) + count(in_second) + count(in_third);
        let base = if in_second != 0 {
            8
        } else if in_third != 0 {
            16
        } else {
            0
        };
        let point = base + place(in_first) + place(in_second) + place(in_third);
        let (before, behind) = (point.wrapping_sub(sign), length.wrapping_sub(point + 1));
        let is_zero = (word >> (8 * sign)) & 0xFF == u64::from(b'0');
        let may_be_group = (behind == 3) & (before <= 3) & !is_zero;
        let is_other = (all_points != 1) | (all_digits + 1 + sign != length) | (length > u64::from(LONGEST_REAL_BYTES));
        let is_odd = (before == 0) | (behind == 0) | (is_zero & (before > 1)) | may_be_group | (last[row] == b'0');
        unsure[row] |= u8::from(is_other | is_odd);
        let is_sure = unsure[row] == 0;
        let before_counted = if is_zero { 0 } else { before };
        most_before = most_before.max(if is_sure { before_counted } else { 0 });
        most_behind = most_behind.max(if is_sure { behind } else { 0 });
        minus += u64::from(is_sure) & sign;
        long[row] = u8::from(is_sure & (before_counted.wrapping_add(behind) > number::SURE_DIGITS as u64));
        let text = (word >> (8 * sign)) | ((second[row] << 56) * sign);
        let order = ((before << 56) | (text.swap_bytes() >> 8)) as i64;
        numbers[row] = if sign == 1 { order.wrapping_neg() } else { order };
    }
    let mut inexact = 0;
    for row in (0..rows).filter(|&row| long[row] != 0) {
        let text = tile.field(row).bytes();
        let text = text.strip_prefix(b"-").unwrap_or(text);
        if let Some(point) = text.iter().position(|byte| *byte == b'.') {
            inexact += u64::from(number::is_inexact(&text[..point], &text[point + 1..], 0));
        }
    }
    Reals { before: most_before as u32, behind: most_behind as u32, minus, inexact }
}
