//! Binary floating-point numbers, correctly rounded.

use headrace_types::Rule;

use super::Convert;
use super::digits::floating_number;
use crate::raw::fields::{Field, TILE_ROWS, Tile, TileMemory, Words};

/// Binary floats of a column.
pub trait Float: crate::raw::memory::Plain + Default + fast_float2::FastFloat {
    /// Whether the value is infinite.
    fn infinite(self) -> bool;
    /// `magnitude` / 10^`scale`, negated if asked (1), and whether (not 0) that is not the nearest float. Integers and powers
    /// of ten that the type holds exactly give the nearest float by one division (W. D. Clinger, "How to read floating point
    /// numbers accurately", 1990).
    fn divide(magnitude: u64, scale: u64, negative: u64) -> (Self, u64);
    /// The float nearest to `magnitude` / 10^`scale`, negated if asked (1); ties go to even. `magnitude` is not 0, `scale` at
    /// most 19.
    fn nearest(magnitude: u64, scale: u64, negative: u64) -> Self;
}

macro_rules! float {
    ($type:ty, $bits:ty, $exact_powers:expr) => {
        impl Float for $type {
            fn infinite(self) -> bool {
                self.is_infinite()
            }

            #[inline(always)]
            fn divide(magnitude: u64, scale: u64, negative: u64) -> (Self, u64) {
                const POWERS: [$type; 16] =
                    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
                let value = magnitude as $type / POWERS[(scale & 15) as usize];
                let sign = (negative as $bits) << (<$bits>::BITS - 1);
                let inexact = u64::from(magnitude > 1 << <$type>::MANTISSA_DIGITS) | u64::from(scale > $exact_powers);
                (<$type>::from_bits(value.to_bits() | sign), inexact)
            }

            #[inline(always)]
            fn nearest(magnitude: u64, scale: u64, negative: u64) -> Self {
                let (mantissa, exponent) = round_quotient(magnitude, scale, <$type>::MANTISSA_DIGITS);
                // The leading bit of the mantissa is not stored: added to the exponent it makes it one larger.
                let biased = (exponent + <$type>::MAX_EXP + <$type>::MANTISSA_DIGITS as i32 - 3) as $bits;
                let sign = (negative as $bits) << (<$bits>::BITS - 1);
                <$type>::from_bits(((biased << (<$type>::MANTISSA_DIGITS - 1)) + mantissa as $bits) | sign)
            }
        }
    };
}
float!(f32, u32, 10);
float!(f64, u64, 15);

/// Most digits behind the point of [`Float::nearest`]: 10^19 is the last power of ten in 64 bits.
const MAX_SCALE: u64 = 19;

const POWERS_OF_TEN: [u64; MAX_SCALE as usize + 1] = {
    let mut powers = [1; MAX_SCALE as usize + 1];
    let mut exponent = 1;
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// `magnitude` / 10^`scale`, rounded to `bits` binary digits: the digits as a whole number and the exponent of two. Exact
/// integer division, whose remainder decides ties. `magnitude` is not 0, `scale` at most 19.
fn round_quotient(magnitude: u64, scale: u64, bits: u32) -> (u64, i32) {
    let divisor = POWERS_OF_TEN[scale.min(MAX_SCALE) as usize];
    let (up, divisor_up) = (magnitude.leading_zeros(), divisor.leading_zeros());
    let (dividend, divisor) = (u128::from(magnitude << up) << 63, u128::from(divisor << divisor_up));
    // Both had their leading bit moved to the top, so the quotient has 63 or 64 bits.
    let quotient = (dividend / divisor) as u64;
    let remainder = dividend - u128::from(quotient) * divisor;
    let surplus = u64::BITS - quotient.leading_zeros() - bits;
    let exponent = divisor_up as i32 - up as i32 - 63 + surplus as i32;
    let (kept, cut) = (quotient >> surplus, quotient & ((1 << surplus) - 1));
    let half = 1 << (surplus - 1);
    let above_half = (cut > half) | ((cut == half) & (remainder != 0));
    let tie_to_even = (cut == half) & (remainder == 0) & (kept & 1 == 1);
    // Rounding up to the next power of two leaves the mantissa with one bit more, which is the same value.
    (kept + u64::from(above_half | tie_to_even), exponent)
}

/// Floating-point numbers, correctly rounded to binary; `inf` and `nan` in any case.
pub struct Floating<T>(std::marker::PhantomData<T>);

impl<T> Default for Floating<T> {
    fn default() -> Self {
        Floating(std::marker::PhantomData)
    }
}

impl<T: Float> Convert for Floating<T> {
    type Value = T;

    fn convert(&self, field: Field<'_>) -> Result<T, Rule> {
        let characters = field.bytes();
        let value: T = fast_float2::parse(characters).map_err(|_| Rule::BadFloat)?;
        // A finite text that became infinite does not fit; "inf" is meant.
        if value.infinite() && characters.iter().any(u8::is_ascii_digit) {
            return Err(Rule::OutOfRange);
        }
        Ok(value)
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) -> bool {
        match tile.longest() {
            ..=8 => floats::<T, 1>(tile, values, inexact),
            9..=16 => floats::<T, 2>(tile, values, inexact),
            _ => floats::<T, 3>(tile, values, inexact),
        }
        true
    }
}

/// The numbers of a tile, decomposed: row by row.
struct Decomposed {
    magnitudes: Words,
    /// Digits behind the point.
    scales: Words,
    negatives: Words,
    /// Not 0 when the text is no `[-]digits[.digits]`, or too long.
    wrongs: Words,
}

impl Decomposed {
    /// Of up to 8 N characters.
    #[inline(always)]
    fn new<const N: usize>(tile: Tile<'_, '_>) -> Self {
        let words = tile.last_words::<N>();
        let rows = tile.rows();
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        let none = [0; TILE_ROWS];
        let mut all = Decomposed { magnitudes: none, scales: none, negatives: none, wrongs: none };
        let (magnitudes, scales) = (&mut all.magnitudes[..rows], &mut all.scales[..rows]);
        let (negatives, wrongs) = (&mut all.negatives[..rows], &mut all.wrongs[..rows]);
        for row in 0..rows {
            let length = u64::from(ends[row] - starts[row]);
            let number = floating_number(std::array::from_fn::<_, N, _>(|index| words[index][row]), length);
            magnitudes[row] = number.magnitude;
            scales[row] = number.scale;
            negatives[row] = number.negative;
            wrongs[row] = number.wrong | u64::from(number.scale > MAX_SCALE);
        }
        all
    }
}

const _: () = assert!(TILE_ROWS <= 256, "rows of a tile are numbered by bytes");

/// Rows of a tile, listed without branches: which of them are wanted cannot be predicted.
struct Listed {
    rows: [u8; TILE_ROWS],
    count: usize,
}

impl Listed {
    #[inline(always)]
    fn new(wanted: impl Iterator<Item = bool>) -> Self {
        // A number of its own, not the field: it has to stay in a register.
        let (mut rows, mut count) = ([0; TILE_ROWS], 0);
        for (row, wanted) in wanted.enumerate().take(TILE_ROWS) {
            rows[count] = row as u8;
            count += usize::from(wanted);
        }
        Listed { rows, count }
    }

    #[inline(always)]
    fn rows(&self) -> &[u8] {
        &self.rows[..self.count]
    }
}

/// Floats of a tile from up to 8 N characters, and those with exponents behind them.
#[inline(always)]
fn floats<T: Float, const N: usize>(tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) {
    let numbers = Decomposed::new::<N>(tile);
    let rows = tile.rows();
    let (magnitudes, scales) = (&numbers.magnitudes[..rows], &numbers.scales[..rows]);
    let (negatives, wrongs) = (&numbers.negatives[..rows], &numbers.wrongs[..rows]);
    let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
    let mut unfits = [0; TILE_ROWS];
    let unfits = &mut unfits[..rows];
    for row in 0..rows {
        let (value, unfit) = T::divide(magnitudes[row], scales[row], negatives[row]);
        values[row] = value;
        inexact[row] = u8::from(wrongs[row] != 0);
        unfits[row] = u8::from((unfit != 0) & (wrongs[row] == 0));
    }
    for &row in Listed::new(unfits.iter().map(|&unfit| unfit != 0)).rows() {
        let row = usize::from(row);
        // A magnitude of 0 (many zeros behind the point) has no leading bit.
        match magnitudes[row] {
            0 => inexact[row] = 1,
            magnitude => values[row] = T::nearest(magnitude, scales[row], negatives[row]),
        }
    }
    let rest = Listed::new(inexact.iter().map(|&inexact| inexact != 0));
    if rest.count > 0 {
        with_exponents(tile, rest.rows(), values, inexact);
    }
}

/// Of the given rows those that are `[-]digits[.digits]e[+-]digits`, with up to 24 characters before the `e` and up to three
/// digits behind it, if the nearest float is found by exact arithmetic.
#[inline(always)]
fn with_exponents<T: Float>(tile: Tile<'_, '_>, rows: &[u8], values: &mut [T], inexact: &mut [u8]) {
    let (mut lengths, mut exponents) = ([0; TILE_ROWS], [0; TILE_ROWS]);
    for (place, &row) in rows.iter().enumerate() {
        let row = usize::from(row);
        (lengths[place], exponents[place]) = exponent(tile.field(row)).unwrap_or((u32::MAX, 0));
    }
    let mut memory = TileMemory::default();
    let numbers = Decomposed::new::<3>(tile.shortened(rows, &lengths, &mut memory));
    for (place, &row) in rows.iter().enumerate() {
        let row = usize::from(row);
        let (magnitude, negative) = (numbers.magnitudes[place], numbers.negatives[place]);
        let exponent = exponents[place] - numbers.scales[place] as i64;
        let power = POWERS_OF_TEN.get(exponent.unsigned_abs() as usize).copied();
        // Whole numbers are exact in 64 bits, or are left to the library.
        let (whole, scale) = match exponent {
            0.. => (power.and_then(|power| magnitude.checked_mul(power)), 0),
            _ => (power.map(|_| magnitude), exponent.unsigned_abs()),
        };
        if let Some(whole) = whole.filter(|&whole| whole != 0 && numbers.wrongs[place] == 0) {
            values[row] = T::nearest(whole, scale, negative);
            inexact[row] = 0;
        }
    }
}

/// Characters of a field from its `e`, which is one of its last five, and the exponent behind it.
#[inline(always)]
fn exponent(field: Field<'_>) -> Option<(u32, i64)> {
    let characters = field.bytes();
    let behind = characters.iter().rev().take(5).position(|character| matches!(character, b'e' | b'E'))?;
    let (sign, digits) = match &characters[characters.len() - behind..] {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] | digits => (1, digits),
    };
    let is_number = matches!(digits.len(), 1..=3) && digits.iter().all(u8::is_ascii_digit);
    let number = digits.iter().fold(0, |number, digit| 10 * number + i64::from(digit & 15));
    is_number.then_some((behind as u32 + 1, sign * number))
}
