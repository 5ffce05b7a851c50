//! Up to eight ASCII digits at once in one 64-bit register.

use crate::fields::Field;

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
    (word & HIGH_NIBBLES) | ((word.wrapping_add(SIXES) & HIGH_NIBBLES) >> 4) == 0x3333_3333_3333_3333
}

/// Number written by eight digits, first character in the lowest byte.
#[inline(always)]
pub fn eight_digits(word: u64) -> u64 {
    let digits = word & 0x0F0F_0F0F_0F0F_0F0F;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF
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
