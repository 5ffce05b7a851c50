//! Binary floating-point numbers, correctly rounded.

use headrace_types::Rule;

use super::Convert;
use super::digits::{digits_kept, not_digits, number_of};
use super::format::Base;
use crate::raw::cpu::CpuPath;
use crate::raw::fields::{Field, TILE_ROWS, Tile, TileMemory};
use crate::raw::floating::Decomposed;
use crate::raw::portable::{equal_bytes, low_bits};

/// Binary floats of a column.
pub trait Float: crate::raw::memory::Plain + Default + fast_float2::FastFloat {
    /// Whether the value is infinite.
    fn infinite(self) -> bool;
    /// The value with the other sign.
    fn negated(self) -> Self;
    /// `magnitude` * 10^`exponent`, negated if asked (1), and whether (not 0) that may not be the nearest float. Integers and
    /// powers of ten that the type holds exactly give the nearest float by one operation (W. D. Clinger, "How to read floating
    /// point numbers accurately", 1990).
    fn scale(magnitude: u64, exponent: i64, negative: u64) -> (Self, u64);
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
            fn negated(self) -> Self {
                -self
            }

            #[inline(always)]
            fn scale(magnitude: u64, exponent: i64, negative: u64) -> (Self, u64) {
                // As many as a mask takes for an index.
                const POWERS: [$type; 16] =
                    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
                let (number, power) = (magnitude as $type, POWERS[(exponent.unsigned_abs() & 15) as usize]);
                let value = if exponent < 0 { number / power } else { number * power };
                let sign = (negative as $bits) << (<$bits>::BITS - 1);
                let inexact = u64::from(magnitude > 1 << <$type>::MANTISSA_DIGITS)
                    | u64::from(exponent.unsigned_abs() > $exact_powers);
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

/// `fast_float2` cuts exponents of more than 655,359, but to no less than 65,536: as far beyond all floats, unless the digits of a number
/// longer than this make up for it.
const LONG_NUMBER_BYTES: usize = 60_000;

/// A number with exponent as one that begins with its first digit behind the point: so no exponent matters that is cut. None without
/// exponent, and for zero.
fn shifted(number: &[u8]) -> Option<Vec<u8>> {
    const BEYOND: i64 = 1_000_000;
    let (front, exponent) = number.split_at(number.iter().rposition(|byte| matches!(byte, b'e' | b'E'))?);
    let exponent = std::str::from_utf8(&exponent[1..]).ok()?;
    // What is too large for an integer is so for the digits of any text.
    let too_large = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
    let exponent: i64 = exponent.parse().unwrap_or(too_large);
    let point = front.iter().position(|byte| *byte == b'.').unwrap_or(front.len());
    let first = front.iter().position(|byte| (b'1'..=b'9').contains(byte))?;
    let before_first = if first < point { (point - first) as i64 } else { -((first - point - 1) as i64) };
    let exponent = exponent.saturating_add(before_first).clamp(-BEYOND, BEYOND);
    let sign: &[u8] = if front.starts_with(b"-") { b"-0." } else { b"0." };
    let digits = front[first..].iter().copied().filter(u8::is_ascii_digit);
    Some([sign, &digits.collect::<Vec<u8>>(), format!("e{exponent}").as_bytes()].concat())
}

/// Floating-point numbers, correctly rounded to binary; `inf` and `nan` in any case.
pub struct Floating<T> {
    path: CpuPath,
    /// The point of texts that the loops know, and whether they know exponents. [`Convert::convert`] takes a point only.
    point: u8,
    has_exponents: bool,
    float: std::marker::PhantomData<T>,
}

impl<T> Floating<T> {
    /// With the instructions of `path`.
    pub fn new(path: CpuPath) -> Self {
        Floating::of_texts(path, b'.', true)
    }

    /// The same in loops over texts with such a point, with exponents or without.
    pub fn of_texts(path: CpuPath, point: u8, has_exponents: bool) -> Self {
        Floating { path, point, has_exponents, float: std::marker::PhantomData }
    }
}

impl<T: Float> Convert for Floating<T> {
    type Value = T;

    fn convert(&self, field: Field<'_>) -> Result<T, Rule> {
        let characters = field.bytes();
        let read = |text: &[u8]| fast_float2::parse(text).map_err(|_| Rule::BadFloat);
        let mut value: T = read(characters)?;
        if characters.len() > LONG_NUMBER_BYTES
            && let Some(shifted) = shifted(characters)
        {
            value = read(&shifted)?;
        }
        // A finite text that became infinite does not fit; "inf" is meant.
        if value.infinite() && characters.iter().any(u8::is_ascii_digit) {
            return Err(Rule::OutOfRange);
        }
        Ok(value)
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) -> bool {
        let mut numbers = Decomposed::default();
        if !numbers.read(tile, self.point, self.path) {
            return false;
        }
        nearest_floats(&numbers, &[0; TILE_ROWS], values, inexact);
        let rest = Listed::new(inexact);
        if rest.count > 0 && self.has_exponents {
            self.with_exponents(tile, rest.rows(), &mut numbers, values, inexact);
        }
        true
    }
}

impl<T: Float> Base for Floating<T> {
    const BAD: Rule = Rule::BadFloat;
    const IS_FLOATING: bool = true;

    #[inline(always)]
    fn negated(value: T) -> T {
        value.negated()
    }

    fn of_whole(&self, _: i128) -> Result<T, Rule> {
        Err(Rule::BadFloat) // hexadecimal numbers are whole numbers
    }
}

impl<T: Float> Floating<T> {
    /// Of the given rows those that are `[-]digits[.digits]e[+-]digits`, with up to 32 characters before the `e` and up to
    /// three digits behind it, if the nearest float is found by exact arithmetic.
    #[inline(always)]
    fn with_exponents(
        &self,
        tile: Tile<'_, '_>,
        rows: &[u8],
        numbers: &mut Decomposed,
        values: &mut [T],
        inexact: &mut [u8],
    ) {
        let (mut lengths, mut exponents) = ([0; TILE_ROWS], [0; TILE_ROWS]);
        for (place, &row) in rows.iter().enumerate() {
            (lengths[place], exponents[place]) = exponent(tile.field(usize::from(row))).unwrap_or((u32::MAX, 0));
        }
        let mut memory = TileMemory::default();
        numbers.read(tile.shortened(rows, &lengths, &mut memory), self.point, self.path);
        let (mut found, mut not_found) = ([T::default(); TILE_ROWS], [0; TILE_ROWS]);
        nearest_floats(numbers, &exponents, &mut found, &mut not_found);
        for (place, &row) in rows.iter().enumerate() {
            values[usize::from(row)] = found[place];
            inexact[usize::from(row)] = not_found[place];
        }
    }
}

/// The floats nearest to the numbers, each times ten to the power of its exponent; not 0 in `inexact` where that is not found
/// by exact arithmetic.
#[inline(always)]
fn nearest_floats<T: Float>(numbers: &Decomposed, exponents: &[i64; TILE_ROWS], values: &mut [T], inexact: &mut [u8]) {
    let rows = numbers.rows();
    let (values, inexact, exponents) = (&mut values[..rows], &mut inexact[..rows], &exponents[..rows]);
    let mut unfits = [0; TILE_ROWS];
    let unfits = &mut unfits[..rows];
    for row in 0..rows {
        let number = numbers.number(row);
        let exponent = exponents[row] - i64::from(number.scale);
        let (value, unfit) = T::scale(number.magnitude, exponent, u64::from(number.negative));
        values[row] = value;
        inexact[row] = u8::from(number.wrong);
        unfits[row] = u8::from((unfit != 0) & !number.wrong);
    }
    for &row in Listed::new(unfits).rows() {
        let row = usize::from(row);
        let number = numbers.number(row);
        match nearest(number.magnitude, exponents[row] - i64::from(number.scale), u64::from(number.negative)) {
            Some(value) => values[row] = value,
            None => inexact[row] = 1,
        }
    }
}

/// The float nearest to `magnitude` * 10^`exponent`, negated if asked (1), if 64 bits and exact division find it.
#[inline(always)]
fn nearest<T: Float>(magnitude: u64, exponent: i64, negative: u64) -> Option<T> {
    let power = POWERS_OF_TEN.get(exponent.unsigned_abs() as usize)?;
    let (whole, scale) = match exponent {
        0.. => (magnitude.checked_mul(*power)?, 0),
        _ => (magnitude, exponent.unsigned_abs()),
    };
    // 0 (many zeros behind the point) has no leading bit.
    (whole != 0).then(|| T::nearest(whole, scale, negative))
}

const _: () = assert!(TILE_ROWS <= 256, "rows of a tile are numbered by bytes");

/// Rows of a tile, listed without branches on each of them: which are wanted cannot be predicted.
struct Listed {
    rows: [u8; TILE_ROWS],
    count: usize,
}

impl Listed {
    /// Those whose flag is 1, not 0.
    #[inline(always)]
    fn new(flags: &[u8]) -> Self {
        let (mut rows, mut count) = ([0; TILE_ROWS], 0);
        for (index, flags) in flags.chunks(64).enumerate() {
            let mut wanted = bits_of(flags);
            while wanted != 0 {
                rows[count] = (64 * index + wanted.trailing_zeros() as usize) as u8;
                count += 1;
                wanted &= wanted - 1;
            }
        }
        Listed { rows, count }
    }

    #[inline(always)]
    fn rows(&self) -> &[u8] {
        &self.rows[..self.count]
    }
}

/// Bit i: flag i, which is 0 or 1, of up to 64.
#[inline(always)]
fn bits_of(flags: &[u8]) -> u64 {
    let (eights, rest) = flags.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let all = eights.iter().chain(std::iter::once(&last)).take(8).enumerate();
    all.fold(0, |bits, (index, eight)| bits | low_bits(u64::from_le_bytes(*eight)) << (8 * index))
}

/// Characters of a field from its `e`, which is one of its last five, and the exponent behind it.
#[inline(always)]
fn exponent(field: Field<'_>) -> Option<(u32, i64)> {
    const LOWER_CASE: u64 = 0x2020_2020_2020_2020;
    const EXPONENT: u64 = 0x6565_6565_6565_6565;
    const LAST_FIVE: u64 = u64::MAX << 24;
    let word = field.u64_before(0);
    let behind = u64::from((equal_bytes(word | LOWER_CASE, EXPONENT) & LAST_FIVE).leading_zeros() / 8);
    let first = word.unbounded_shr(64 - 8 * behind as u32) as u8;
    let is_signed = matches!(first, b'+' | b'-');
    let count = behind.wrapping_sub(u64::from(is_signed));
    let digits = digits_kept(word, count);
    let is_number = (behind < field.len() as u64) & matches!(count, 1..=3) & (not_digits(digits) == 0);
    let number = number_of(digits) as i64;
    is_number.then_some((behind as u32 + 1, if first == b'-' { -number } else { number }))
}
