//! Exact decimal numbers: `numeric_send` and `numeric_recv` of the server's `numeric.c`.
//!
//! Four 16-bit numbers (count of digits, weight of the first digit, sign, decimal digits to show behind the point), then
//! the digits: 16-bit numbers in base 10000, aligned to the decimal point, without zeros at either end.

use std::ops::Range;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_buffer::NullBuffer;

use super::cells::{Cells, Fault, LENGTH_BYTES, NULL, Stride, nulls_of};
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

type Fill = dyn Fn(&Shape, &dyn Array, Range<usize>, &mut Cells<'_>) -> Result<(), Fault> + Send + Sync;

/// How to write a column of decimals.
pub(crate) struct Numeric {
    shape: Shape,
    /// Writes the cells of some rows.
    fill: Box<Fill>,
}

/// What all values of a column share.
pub(crate) struct Shape {
    /// Decimal digits behind the point.
    scale: u8,
    /// Groups behind the point.
    fraction_groups: u8,
    /// Decimal digits that the last group holds, 0 if it holds all four.
    odd_decimals: u8,
    /// Factor that fills up the last group.
    align: u64,
    /// Magnitudes below this one fit one word when aligned.
    short_end: u64,
    /// Magnitudes below this one are in the column's precision.
    end: u128,
    /// Of a cell.
    pub(crate) stride: Stride,
}

impl Numeric {
    /// Numbers of type `S` with `precision` decimal digits, `scale` of them behind the point.
    pub(crate) fn of<S>(precision: u8, scale: u8) -> Encoding
    where
        S: ArrowPrimitiveType,
        S::Native: Into<i128>,
    {
        let shape = Shape::new(precision, scale);
        Encoding::Numeric(Numeric { shape, fill: Box::new(fill::<S>) })
    }

    /// Of a cell.
    pub(crate) fn stride(&self) -> Stride {
        self.shape.stride
    }

    /// Writes the cells of some rows.
    pub(crate) fn fill(&self, array: &dyn Array, rows: Range<usize>, cells: &mut Cells<'_>) -> Result<(), Fault> {
        (self.fill)(&self.shape, array, rows, cells)
    }
}

impl Shape {
    fn new(precision: u8, scale: u8) -> Shape {
        let odd_decimals = scale % GROUP_DECIMALS;
        let align = if odd_decimals == 0 { 1 } else { 10u64.pow(u32::from(GROUP_DECIMALS - odd_decimals)) };
        let groups = (precision - scale).div_ceil(GROUP_DECIMALS) + scale.div_ceil(GROUP_DECIMALS);
        Shape {
            scale,
            fraction_groups: scale.div_ceil(GROUP_DECIMALS),
            odd_decimals,
            align,
            short_end: WORD / align,
            end: 10u128.pow(u32::from(precision)),
            // The short way always stores a whole word.
            stride: Stride::for_cells_of(FRONT_BYTES + 2 * usize::from(groups))
                .unwrap_or(Stride::Bytes64)
                .max(Stride::Bytes32),
        }
    }

    /// The four numbers in front of the digits.
    #[inline(always)]
    fn front(&self, groups: u64, first_weight: i64, is_negative: bool) -> [u8; 8] {
        // Zero has no digits and so no weight.
        let weight = if groups == 0 { 0 } else { first_weight as u16 };
        let sign = if is_negative { 0x4000 } else { 0 };
        (groups << 48 | u64::from(weight) << 32 | sign << 16 | u64::from(self.scale)).to_be_bytes()
    }

    /// Writes a magnitude below `short_end` without a branch; returns the bytes that count.
    #[inline(always)]
    fn write_short(&self, magnitude: u64, is_negative: bool, cell: &mut [u8]) -> u8 {
        let word = split(magnitude * self.align);
        let leading = u64::from(word.leading_zeros() / 16);
        let trailing = u64::from(word.trailing_zeros() / 16);
        // All four of the groups of zero are leading and trailing.
        let groups = (WORD_GROUPS as u64 - leading).saturating_sub(trailing);
        let first_weight = WORD_GROUPS as i64 - 1 - i64::from(self.fraction_groups) - leading as i64;
        let content_bytes = 8 + 2 * groups as u32;
        // Twice, because a shift by all 64 bits is none.
        let digits = word << (8 * leading) << (8 * leading);
        cell[..4].copy_from_slice(&content_bytes.to_be_bytes());
        cell[4..12].copy_from_slice(&self.front(groups, first_weight, is_negative));
        cell[12..20].copy_from_slice(&digits.to_be_bytes());
        content_bytes as u8 + LENGTH_BYTES as u8
    }

    /// Writes any magnitude below `end`; returns the bytes that count.
    #[inline(never)]
    fn write_long(&self, magnitude: u128, is_negative: bool, cell: &mut [u8]) -> u8 {
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
        let has_last = usize::from(self.odd_decimals != 0);
        digits[MOST_GROUPS * 2..].copy_from_slice(&(last as u16).to_be_bytes());
        let all = &digits[..(MOST_GROUPS + has_last) * 2];

        let is_zero = |group: &[u8]| group == [0, 0];
        let leading = all.chunks_exact(2).take_while(|group| is_zero(group)).count();
        let trailing = all[leading * 2..].rchunks_exact(2).take_while(|group| is_zero(group)).count();
        let kept = &all[leading * 2..all.len() - trailing * 2];
        let first_weight = all.len() as i64 / 2 - 1 - i64::from(self.fraction_groups) - leading as i64;
        let content_bytes = 8 + kept.len();
        cell[..4].copy_from_slice(&(content_bytes as u32).to_be_bytes());
        cell[4..12].copy_from_slice(&self.front(kept.len() as u64 / 2, first_weight, is_negative));
        cell[12..12 + kept.len()].copy_from_slice(kept);
        (LENGTH_BYTES + content_bytes) as u8
    }

    #[inline(always)]
    fn write_all<N: Into<i128> + Copy>(
        &self,
        values: &[N],
        nulls: Option<(&NullBuffer, usize)>,
        cells: &mut Cells<'_>,
    ) -> Result<(), usize> {
        let places = cells.bytes.chunks_exact_mut(cells.stride).zip(cells.lengths.iter_mut());
        for (row, (value, (cell, length))) in values.iter().zip(places).enumerate() {
            if nulls.is_some_and(|(nulls, first)| nulls.is_null(first + row)) {
                cell[..LENGTH_BYTES].copy_from_slice(&NULL);
                *length = LENGTH_BYTES as u8;
                continue;
            }
            let value: i128 = (*value).into();
            let magnitude = value.unsigned_abs();
            if magnitude >= self.end {
                return Err(row);
            }
            *length = if magnitude < u128::from(self.short_end) {
                self.write_short(magnitude as u64, value < 0, cell)
            } else {
                self.write_long(magnitude, value < 0, cell)
            };
        }
        Ok(())
    }
}

/// Four groups, the first one in the highest bits.
#[inline(always)]
fn split(number: u64) -> u64 {
    let (high, low) = ((number / (GROUP * GROUP)) as u32, (number % (GROUP * GROUP)) as u32);
    let pair = |number: u32| u64::from(number / GROUP as u32) << 16 | u64::from(number % GROUP as u32);
    pair(high) << 32 | pair(low)
}

fn fill<S>(shape: &Shape, array: &dyn Array, rows: Range<usize>, cells: &mut Cells<'_>) -> Result<(), Fault>
where
    S: ArrowPrimitiveType,
    S::Native: Into<i128>,
{
    let array = array.as_primitive_opt::<S>().ok_or_else(|| Fault::of_type(array))?;
    let values = &array.values()[rows.clone()];
    let written = match nulls_of(array) {
        None => shape.write_all(values, None, cells),
        Some(nulls) => shape.write_all(values, Some((nulls, rows.start)), cells),
    };
    written.map_err(|row| Fault { row: rows.start + row, found: format!("{:?} (unscaled)", values[row]) })
}
