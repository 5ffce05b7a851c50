//! Numbers of ASCII digits: eight characters at once in a 64-bit register, up to three of those for a number in a tile, and
//! any count of digits for the rest.

use crate::raw::fields::Field;

const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH_NIBBLES: u64 = 0xF0F0_F0F0_F0F0_F0F0;
const SIXES: u64 = 0x0606_0606_0606_0606;

/// Eight characters that end `offset` bytes before the field's end, of which only the last `count` (1..=8) belong to the
/// number; the others are replaced by '0'.
#[inline(always)]
pub fn last_digits(field: &Field<'_>, offset: usize, count: usize) -> u64 {
    debug_assert!((1..=8).contains(&count));
    let shift = 64 - 8 * count as u32;
    let keep = u64::MAX << shift;
    (field.u64_before(offset) & keep) | (ZEROS & !keep)
}

/// Whether all eight characters are '0'..='9'.
#[inline(always)]
pub fn are_digits(word: u64) -> bool {
    not_digits(word ^ ZEROS) == 0
}

/// Number written by eight digits, first character in the lowest byte.
#[inline(always)]
pub fn eight_digits(word: u64) -> u64 {
    number_of(word ^ ZEROS)
}

/// Number written by the `count` (1..=16) characters that end `offset` (0..=16) bytes before the field's end; `None` when
/// one of them is no digit.
#[inline(always)]
pub fn up_to_16_digits(field: &Field<'_>, offset: usize, count: usize) -> Option<u64> {
    if count <= 8 {
        let word = last_digits(field, offset, count);
        return are_digits(word).then(|| eight_digits(word));
    }
    let low = field.u64_before(offset);
    let high = last_digits(field, offset + 8, count - 8);
    (are_digits(low) && are_digits(high)).then(|| eight_digits(high) * 100_000_000 + eight_digits(low))
}

/// The last `count` (0..) digits of eight characters, as their values; 0 in the places before them.
#[inline(always)]
pub fn digits_kept(word: u64, count: u64) -> u64 {
    let dropped_bits = 64 - 8 * count.min(8) as u32;
    (word ^ ZEROS).unbounded_shr(dropped_bits).unbounded_shl(dropped_bits)
}

/// Not 0 when a byte of `digits` is above 9.
#[inline(always)]
pub fn not_digits(digits: u64) -> u64 {
    (digits.wrapping_add(SIXES) | digits) & HIGH_NIBBLES
}

/// Number of eight digit values; see [`digits_kept`].
#[inline(always)]
pub fn number_of(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF
}

/// How many of a number's last `length` characters are in `words[index]`, when `words[0]` holds the last eight characters,
/// `words[1]` the eight before them, and so on.
#[inline(always)]
fn characters_in(index: usize, length: u64) -> u64 {
    length.saturating_sub(8 * index as u64).min(8)
}

/// 1 when the first of the last `length` characters of `words` is a minus.
#[inline(always)]
fn minus<const N: usize>(words: [u64; N], length: u64) -> u64 {
    let mut first = 0;
    for (index, &word) in words.iter().enumerate() {
        let characters = characters_in(index, length);
        let own = word.unbounded_shr(64 - 8 * characters as u32) & 0xFF;
        first = if characters > 0 { own } else { first };
    }
    u64::from(first == u64::from(b'-'))
}

/// Number of the last `digits` characters of `words`; not 0 when one of them is no digit, or the number may not fit 64 bits.
#[inline(always)]
fn magnitude<const N: usize>(words: [u64; N], digits: u64) -> (u64, u64) {
    let (mut magnitude, mut wrong, mut factor) = (0_u64, 0, 1_u64);
    for (index, &word) in words.iter().enumerate() {
        let kept = digits_kept(word, digits.saturating_sub(8 * index as u64));
        let number = number_of(kept);
        magnitude = magnitude.wrapping_add(number.wrapping_mul(factor));
        factor = factor.wrapping_mul(100_000_000);
        wrong |= not_digits(kept);
        // 19 digits always fit.
        wrong |= u64::from(index == 2 && number > 999);
    }
    (magnitude, wrong)
}

/// A decimal point at a fixed place.
#[derive(Clone, Copy)]
pub struct Point {
    /// Bytes of the last word behind the point.
    behind: u64,
    /// Shift that brings the point's byte to the front.
    shift: u32,
    /// Characters behind the point.
    scale: u64,
    /// The point: `.` or another mark.
    mark: u8,
}

impl Point {
    /// A point before the last `scale` (1..=7) characters.
    pub fn new(scale: u32, mark: u8) -> Option<Self> {
        matches!(scale, 1..=7).then(|| Point {
            behind: u64::MAX << (64 - 8 * scale),
            shift: 8 * (7 - scale),
            scale: scale.into(),
            mark,
        })
    }

    /// Characters behind the point.
    #[inline(always)]
    pub fn scale(self) -> u64 {
        self.scale
    }

    /// The same and the point.
    #[inline(always)]
    pub fn bytes(self) -> u64 {
        self.scale + 1
    }

    /// Not 0 when the last eight characters have no point at its place.
    #[inline(always)]
    pub fn missing(self, last: u64) -> u64 {
        ((last >> self.shift) & 0xFF) ^ u64::from(self.mark)
    }
}

/// Number written by the 1 to 8 N characters, N at most 3, at the end of `words` (see [`characters_in`]): `[-]digits`, or with
/// a point `[-]digits.digits` and at least one digit before it. Not 0 when the text is something else or does not fit.
#[inline(always)]
pub fn fixed_number<const N: usize>(words: [u64; N], length: u64, point: Option<Point>) -> (i64, u64) {
    let negative = minus(words, length);
    let mut digits = length.wrapping_sub(negative);
    let (mut squeezed, mut wrong, mut least) = (words, u64::from(length > 8 * N as u64), 1);
    if let Some(point) = point {
        wrong |= point.missing(words[0]);
        digits = digits.wrapping_sub(1);
        least = point.scale + 1;
        // What stands before the point moves up one place.
        for index in 0..N {
            let carried = if index + 1 < N { words[index + 1] >> 56 } else { 0 };
            let behind = if index == 0 { point.behind } else { 0 };
            squeezed[index] = (words[index] & behind) | (((words[index] << 8) | carried) & !behind);
        }
    }
    let (magnitude, no_number) = magnitude(squeezed, digits);
    let number = (magnitude ^ negative.wrapping_neg()).wrapping_add(negative) as i64;
    (number, wrong | no_number | magnitude >> 63 | u64::from((digits as i64) < least as i64))
}

/// Powers of ten.
const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Number written by such characters with a point before any of the last `scale` (0..=7) of them, behind all, or without one,
/// in units of the last of `scale` digits: those that are missing are zeros. Not 0 also when there are more than eleven digits.
#[inline(always)]
pub fn scaled_number<const N: usize>(words: [u64; N], length: u64, mark: u8, scale: u32) -> (i64, u64) {
    const LOW_BITS: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    const COUNTS: u64 = 0x0706_0504_0302_0100;
    let negative = minus(words, length);
    // The high bit of each of the last eight characters that is the mark.
    let kept = u64::MAX.unbounded_shl(64 - 8 * characters_in(0, length) as u32);
    let other = words[0] ^ u64::from_ne_bytes([mark; 8]);
    let hit = !(((other & LOW_BITS) + LOW_BITS) | other | LOW_BITS) & kept;
    // Of a second mark nothing is removed: it is no digit.
    let behind = (hit << 1).wrapping_neg();
    let has_point = u64::from(hit != 0);
    let fraction = if hit == 0 { 0 } else { (hit >> 7).wrapping_mul(COUNTS) >> 56 };
    let mut squeezed = words;
    for index in 0..N {
        let carried = if index + 1 < N { words[index + 1] >> 56 } else { 0 };
        let behind = if index == 0 { behind } else { 0 };
        let moved = (words[index] & behind) | (((words[index] << 8) | carried) & !behind);
        squeezed[index] = if hit == 0 { words[index] } else { moved };
    }
    let digits = length.wrapping_sub(negative + has_point);
    let (magnitude, no_number) = magnitude(squeezed, digits);
    let missing = u64::from(scale).wrapping_sub(fraction);
    let scaled = magnitude.wrapping_mul(POWERS[(missing & 7) as usize]);
    let number = (scaled ^ negative.wrapping_neg()).wrapping_add(negative) as i64;
    let wrong = u64::from(length > 8 * N as u64) | u64::from(digits.wrapping_sub(1) >= 8 * N as u64);
    let outside = u64::from(missing > 7) | u64::from(magnitude > i64::MAX as u64 / POWERS[7]);
    (number, wrong | no_number | outside)
}

/// Number written by ASCII digits of any count; `None` when one is no digit or the number needs more than 127 bits.
/// Leading zeros do not count. No characters are 0.
pub fn long_digits(characters: &[u8]) -> Result<u128, LongDigits> {
    let mut number: u128 = 0;
    for &character in characters {
        let digit = character.wrapping_sub(b'0');
        if digit > 9 {
            return Err(LongDigits::NotADigit);
        }
        number = number.checked_mul(10).and_then(|shifted| shifted.checked_add(u128::from(digit))).unwrap_or(u128::MAX);
        if number > i128::MAX as u128 {
            number = u128::MAX; // stays there: the remaining characters are still checked
        }
    }
    if number > i128::MAX as u128 { Err(LongDigits::TooLarge) } else { Ok(number) }
}

/// Why [`long_digits`] gave no number.
#[derive(Debug, PartialEq, Eq)]
pub enum LongDigits {
    /// A character is not a digit.
    NotADigit,
    /// More than 127 bits.
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_read_and_checked() {
        let word = |text: &[u8; 8]| u64::from_le_bytes(*text);
        assert_eq!(eight_digits(word(b"12345678")), 12_345_678);
        assert_eq!(eight_digits(word(b"99999999")), 99_999_999);
        assert!(are_digits(word(b"00000009")));
        for position in 0..8 {
            for bad in (0..=255_u8).filter(|byte| !byte.is_ascii_digit()) {
                let mut text = *b"00000000";
                text[position] = bad;
                assert!(!are_digits(word(&text)), "{bad}");
            }
        }
    }

    #[test]
    fn long_numbers_stop_at_127_bits() {
        assert_eq!(long_digits(b"170141183460469231731687303715884105727"), Ok(i128::MAX as u128));
        assert_eq!(long_digits(b"170141183460469231731687303715884105728"), Err(LongDigits::TooLarge));
        assert_eq!(long_digits(b"999999999999999999999999999999999999999999999x"), Err(LongDigits::NotADigit));
        assert_eq!(long_digits(b"0000000000000000000000000000000000000000000000007"), Ok(7));
    }
}
