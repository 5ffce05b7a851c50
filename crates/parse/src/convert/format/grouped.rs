//! Numbers in groups of three digits, `1.234.567,89`: a loop over tiles. Where a group stands follows from the end of the text.

use headrace_types::GroupFormat;

use super::super::digits::{Point, digits_kept, not_digits, number_of};
use crate::raw::fields::{TILE_ROWS, Tile, Words};
use crate::raw::memory::PADDING_BYTES;

/// A mark between groups of three digits.
#[derive(Debug, Clone, Copy)]
pub struct Grouping {
    /// Its bytes, as they stand in a word that ends with the group behind it.
    mark: u64,
    mask: u64,
    /// Bytes of the mark, 1 to 5.
    mark_bytes: u32,
}

/// Digits of a group.
pub const GROUP: u32 = 3;
/// Most groups: 18 digits.
const MOST_GROUPS: usize = 6;

impl Grouping {
    /// None for groups of other sizes.
    pub fn new(group: &GroupFormat) -> Option<Self> {
        let mark = group.mark.as_bytes();
        if group.sizes != [GROUP as u8] || !(1..=8 - GROUP as usize).contains(&mark.len()) {
            return None;
        }
        let first = 8 - GROUP as usize - mark.len();
        let (mut word, mut mask) = ([0; 8], [0; 8]);
        word[first..first + mark.len()].copy_from_slice(mark);
        mask[first..first + mark.len()].fill(u8::MAX);
        Some(Grouping { mark: u64::from_le_bytes(word), mask: u64::from_le_bytes(mask), mark_bytes: mark.len() as u32 })
    }
}

/// Numbers of a tile by `finish`, which makes a value of the number and says (not 0) when there is none.
#[inline(always)]
pub fn grouped_numbers<T>(
    tile: Tile<'_, '_>,
    point: Option<Point>,
    grouping: Grouping,
    values: &mut [T],
    inexact: &mut [u8],
    finish: impl Fn(i64) -> (T, u64),
) {
    let whole = tile.longest().saturating_sub(point.map_or(0, |point| point.bytes() as u32));
    match whole.div_ceil(GROUP + grouping.mark_bytes) {
        ..=2 => numbers_of::<T, 2>(tile, point, grouping, values, inexact, finish),
        3 => numbers_of::<T, 3>(tile, point, grouping, values, inexact, finish),
        _ => numbers_of::<T, MOST_GROUPS>(tile, point, grouping, values, inexact, finish),
    }
}

/// The same for up to N groups.
#[inline(always)]
fn numbers_of<T, const N: usize>(
    tile: Tile<'_, '_>,
    point: Option<Point>,
    grouping: Grouping,
    values: &mut [T],
    inexact: &mut [u8],
    finish: impl Fn(i64) -> (T, u64),
) {
    let (scale, point_bytes) = point.map_or((0, 0), |point| (point.scale(), point.bytes()));
    let distance = u64::from(GROUP + grouping.mark_bytes);
    // Words end at most half of the padding before the end of a field.
    let groups = N.min((PADDING_BYTES as u64 / 2 - point_bytes).div_euclid(distance) as usize + 1);
    let mut words: [Words; N] = [[0; TILE_ROWS]; N];
    for (index, words) in words[..groups].iter_mut().enumerate() {
        tile.words_before((point_bytes + index as u64 * distance) as usize, words);
    }
    let (mut first, mut last) = ([0; TILE_ROWS], [0; TILE_ROWS]);
    let rows = tile.rows();
    let (first, last) = (&tile.words_at(0, &mut first)[..rows], &tile.words_before(0, &mut last)[..rows]);
    let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
    let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
    let longest = groups as u64 * distance - u64::from(grouping.mark_bytes);
    let unit = 10_u64.pow(scale as u32);
    let most_whole = i64::MAX as u64 / unit - 1;
    for row in 0..rows {
        let length = u64::from(ends[row] - starts[row]);
        let negative = u64::from(first[row] & 0xFF == u64::from(b'-'));
        // Wraps when the field is too short; then it is longer than any.
        let whole = length.wrapping_sub(point_bytes + negative);
        let mut wrong = u64::from(whole.wrapping_sub(1) >= longest);
        let (mut magnitude, mut factor) = (0_u64, 1_u64);
        for (index, words) in words.iter().enumerate() {
            let (number, no_group) = group_of(words[row], whole.saturating_sub(index as u64 * distance), grouping);
            magnitude = magnitude.wrapping_add(number.wrapping_mul(factor));
            factor = factor.wrapping_mul(1000);
            wrong |= no_group;
        }
        let fraction = digits_kept(last[row], scale);
        wrong |= not_digits(fraction) | u64::from(magnitude > most_whole);
        wrong |= point.map_or(0, |point| point.missing(last[row]));
        let magnitude = magnitude.wrapping_mul(unit).wrapping_add(number_of(fraction));
        let number = (magnitude ^ negative.wrapping_neg()).wrapping_add(negative) as i64;
        let (value, unfit) = finish(number);
        values[row] = value;
        inexact[row] = u8::from(wrong | unfit != 0);
    }
}

/// Number of the last three digits of `word`, or as many as there are when `left` characters of the number are left; not 0 when
/// they are no digits, or no mark and another digit stand before three of them.
#[inline(always)]
fn group_of(word: u64, left: u64, grouping: Grouping) -> (u64, u64) {
    const FIRST_BIT: u32 = 64 - 8 * GROUP;
    let kept = digits_kept(word, left.min(GROUP.into())) >> FIRST_BIT;
    let number = (kept & 15) * 100 + (kept >> 8 & 15) * 10 + (kept >> 16 & 15);
    let has_more = left > u64::from(GROUP);
    let no_mark = (word & grouping.mask) ^ grouping.mark;
    let ends_with_mark = left.wrapping_sub(u64::from(GROUP) + 1) < u64::from(grouping.mark_bytes);
    (number, not_digits(kept) | (if has_more { no_mark } else { 0 }) | u64::from(ends_with_mark))
}
