//! Exact decimal numbers: `numeric_send` and `numeric_recv` of the server's `numeric.c`.
//!
//! Four 16-bit numbers (count of digits, weight of the first digit, sign, decimal digits to show behind the point), then
//! the digits: 16-bit numbers in base 10000, aligned to the decimal point, without zeros at either end.

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_buffer::NullBuffer;

use super::slots::{Fault, LENGTH_BYTES, Slots, nulls_of};
use crate::postgres::plan::Encoding;

/// Decimal digits in one digit of the server.
const GROUP_DECIMALS: u8 = 4;
const GROUP: u64 = 10_000;
/// Server digits that fit 64 bits, and the first number that needs more.
const WORD_GROUPS: usize = 4;
const WORD: u64 = 10_000_000_000_000_000;
/// 38 decimal digits with the decimal point anywhere among them, in whole words.
const MOST_GROUPS: usize = 12;
/// Length and the four numbers in front of the digits.
const FRONT_BYTES: usize = LENGTH_BYTES + 8;
/// The byte of a value that is [`NEGATIVE`] or not.
const SIGN_AT: usize = LENGTH_BYTES + 4;
const NEGATIVE: u8 = 0x40;
/// Room of any value.
const ROOM_BYTES: usize = FRONT_BYTES + 2 * (MOST_GROUPS + 1);
/// Room of a value whose digits are in one word.
const WORD_ROOM_BYTES: usize = FRONT_BYTES + 2 * WORD_GROUPS;
/// One more than the largest [`front_place`].
const FRONTS: usize = front_place(WORD_GROUPS, WORD_GROUPS) + 1;

/// What all values of a column share.
struct Shape {
    /// Decimal digits behind the point.
    scale: u8,
    /// Groups behind the point.
    fraction_groups: u8,
    /// Decimal digits that the last group holds, 0 if it holds all four.
    odd_decimals: u8,
    /// Factor that fills up the last group.
    align: u64,
    /// Magnitudes below this one fit the lower half of a word when aligned.
    tiny_end: u128,
    /// Magnitudes below this one fit a word when aligned.
    short_end: u128,
    /// Magnitudes below this one are in the column's precision.
    end: u128,
    /// What stands in front of digits that are in one word, by [`front_place`], but for the sign; in the last byte the bytes that
    /// the value takes in all.
    fronts: [[u8; 16]; FRONTS],
}

/// Numbers of type `S` with `precision` decimal digits, `scale` of them behind the point.
pub(crate) fn decimals<S>(precision: u8, scale: u8) -> Encoding
where
    S: ArrowPrimitiveType,
    S::Native: Into<i128>,
{
    let shape = Shape::new(precision, scale);
    Encoding::bounded(ROOM_BYTES, move |array, slots| {
        let array = array.as_primitive_opt::<S>().ok_or_else(|| Fault::of_type(array))?;
        shape
            .append_all(&array.values()[slots.rows()], nulls_of(array), slots)
            .map_err(|row| Fault { row, found: format!("{:?} (unscaled)", array.value(row)) })
    })
}

impl Shape {
    fn new(precision: u8, scale: u8) -> Shape {
        let odd_decimals = scale % GROUP_DECIMALS;
        let align = if odd_decimals == 0 { 1 } else { 10u64.pow(u32::from(GROUP_DECIMALS - odd_decimals)) };
        let fraction_groups = scale.div_ceil(GROUP_DECIMALS);
        let end = 10u128.pow(u32::from(precision));
        let mut shape = Shape {
            scale,
            fraction_groups,
            odd_decimals,
            align,
            tiny_end: end.min(u128::from(GROUP * GROUP / align)),
            short_end: end.min(u128::from(WORD / align)),
            end,
            fronts: [[0; 16]; FRONTS],
        };
        for leading in 0..=WORD_GROUPS {
            for trailing in 0..=WORD_GROUPS {
                let groups = WORD_GROUPS.saturating_sub(leading + trailing);
                let mut front = [0; 16];
                front[..FRONT_BYTES].copy_from_slice(&shape.front(groups, WORD_GROUPS - leading));
                front[15] = (FRONT_BYTES + 2 * groups) as u8;
                shape.fronts[front_place(leading, trailing)] = front;
            }
        }
        shape
    }

    /// Length and the four numbers in front of `groups` digits, the first of which is the one of `place` from the end.
    fn front(&self, groups: usize, place: usize) -> [u8; FRONT_BYTES] {
        // Zero has no digits and so no weight.
        let weight = if groups == 0 { 0 } else { place as i16 - 1 - i16::from(self.fraction_groups) };
        let mut front = [0; FRONT_BYTES];
        front[..4].copy_from_slice(&(8 + 2 * groups as u32).to_be_bytes());
        front[4..6].copy_from_slice(&(groups as u16).to_be_bytes());
        front[6..8].copy_from_slice(&weight.to_be_bytes());
        front[10..].copy_from_slice(&u16::from(self.scale).to_be_bytes());
        front
    }

    /// Writes a magnitude whose groups are in one word, without a branch; returns the bytes that count.
    #[inline(always)]
    fn write_word(&self, word: u64, is_negative: bool, place: &mut [u8]) -> usize {
        let leading_bits = word.leading_zeros();
        let front = &self.fronts[front_place(leading_bits as usize / 16, word.trailing_zeros() as usize / 16)];
        place[..16].copy_from_slice(front);
        place[SIGN_AT] = if is_negative { NEGATIVE } else { 0 };
        // A word of zeros may be shifted by anything.
        place[FRONT_BYTES..FRONT_BYTES + 8].copy_from_slice(&(word << (leading_bits & 0x30)).to_be_bytes());
        usize::from(front[15])
    }

    /// Writes any magnitude below `end`; returns the bytes that count.
    #[inline(never)]
    fn write_long(&self, magnitude: u128, is_negative: bool, place: &mut [u8]) -> usize {
        // The last group apart: filled up to four decimals, the number as a whole could pass 128 bits.
        let odd = 10u128.pow(u32::from(self.odd_decimals));
        let last = (magnitude % odd) as u64 * self.align;
        let mut whole = magnitude / odd;
        let mut digits = [0; MOST_GROUPS * 2 + 2];
        for place in (0..MOST_GROUPS / WORD_GROUPS).rev() {
            let word = split((whole % u128::from(WORD)) as u64);
            whole /= u128::from(WORD);
            digits[place * 8..][..8].copy_from_slice(&word.to_be_bytes());
        }
        digits[MOST_GROUPS * 2..].copy_from_slice(&(last as u16).to_be_bytes());
        let has_last = usize::from(self.odd_decimals != 0);
        let all = &digits[..(MOST_GROUPS + has_last) * 2];

        let is_zero = |group: &[u8]| group == [0, 0];
        let leading = all.chunks_exact(2).take_while(|group| is_zero(group)).count();
        let trailing = all[leading * 2..].rchunks_exact(2).take_while(|group| is_zero(group)).count();
        let kept = &all[leading * 2..all.len() - trailing * 2];
        place[..FRONT_BYTES].copy_from_slice(&self.front(kept.len() / 2, all.len() / 2 - leading));
        place[SIGN_AT] = if is_negative { NEGATIVE } else { 0 };
        place[FRONT_BYTES..][..kept.len()].copy_from_slice(kept);
        FRONT_BYTES + kept.len()
    }

    /// Appends all values of a tile, in the shortest way that suffices for them.
    ///
    /// # Errors
    /// The first row of the batch whose value is outside the precision.
    #[inline(always)]
    fn append_all<N: Into<i128> + Copy>(
        &self,
        values: &[N],
        nulls: Option<&NullBuffer>,
        slots: &mut Slots,
    ) -> Result<(), usize> {
        // No magnitude is larger.
        let bound = values.iter().fold(0, |bound, value| bound | (*value).into().unsigned_abs());
        let word_of = |row: usize, word: fn(u64) -> u64, place: &mut [u8]| {
            let value: i128 = values[row].into();
            self.write_word(word(value.unsigned_abs() as u64 * self.align), value < 0, place)
        };
        if bound < self.tiny_end {
            slots.append(WORD_ROOM_BYTES, nulls, |row, place| word_of(row, |aligned| pair(aligned as u32), place));
            return Ok(());
        }
        if bound < self.short_end {
            slots.append(WORD_ROOM_BYTES, nulls, |row, place| word_of(row, split, place));
            return Ok(());
        }
        let rows = slots.rows();
        let is_bad = |row: &usize| {
            values[row - rows.start].into().unsigned_abs() >= self.end && nulls.is_none_or(|nulls| nulls.is_valid(*row))
        };
        if let Some(row) = rows.clone().find(is_bad) {
            return Err(row);
        }
        slots.append(ROOM_BYTES, nulls, |row, place| {
            let value: i128 = values[row].into();
            match value.unsigned_abs() {
                magnitude if magnitude < self.short_end => word_of(row, split, place),
                magnitude if magnitude < self.end => self.write_long(magnitude, value < 0, place),
                _ => 0, // stands in the place of a NULL
            }
        });
        Ok(())
    }
}

/// Place of what belongs to a word with this many groups of zeros at its ends.
#[inline(always)]
const fn front_place(leading: usize, trailing: usize) -> usize {
    leading << 3 | trailing
}

/// Four groups, the first one in the highest bits.
#[inline(always)]
fn split(number: u64) -> u64 {
    pair((number / (GROUP * GROUP)) as u32) << 32 | pair((number % (GROUP * GROUP)) as u32)
}

/// Two groups in the lower half of a word.
#[inline(always)]
fn pair(number: u32) -> u64 {
    u64::from(number / GROUP as u32) << 16 | u64::from(number % GROUP as u32)
}
