//! Numbers: marks, digits, signs.

use super::class::{Class, Seen};

/// Digits of a key on either side of the mark.
const KEY_DIGITS: usize = 38;
/// As many significant digits any double tells again.
pub const SURE_DIGITS: usize = 15;
/// With a last digit that stands for no more and no less than these powers of ten.
const SURE_POWER: i64 = 280;
/// More no double tells again.
const MOST_DIGITS: usize = 17;

/// Powers of ten that are doubles, and of five.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
const FIVES: [u64; 23] = {
    let (mut fives, mut tens) = ([1; 23], 1);
    while tens < 23 {
        fives[tens] = 5 * fives[tens - 1];
        tens += 1;
    }
    fives
};

/// A number as it stands there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number {
    /// Digits before the mark, zeros in front of others not counted.
    pub digits_before: u32,
    /// Digits behind it.
    pub digits_behind: u32,
    /// Whether it begins with a plus.
    pub has_plus: bool,
    /// Whether it begins with a minus.
    pub has_minus: bool,
    /// Whether a zero stands before another digit.
    pub has_leading_zero: bool,
    /// Whether a double would tell other digits.
    pub is_inexact: bool,
    /// What numbers are ordered by; none for those with too many digits, or an exponent.
    pub key: Option<Key>,
}

/// Orders numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    is_positive: bool,
    /// Those of negative numbers are inverted.
    whole: u128,
    /// Digits behind the mark, filled up to 38.
    fraction: u128,
}

/// The number that a trimmed text is.
pub fn number(text: &[u8]) -> Option<Seen> {
    let (has_plus, has_minus) = (text.first() == Some(&b'+'), text.first() == Some(&b'-'));
    let body = &text[usize::from(has_plus || has_minus)..];
    let (mut exponent, mut counts) = (None, [0_usize; 2]);
    for (place, byte) in body.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {}
            b'.' => counts[0] += 1,
            b',' => counts[1] += 1,
            b'e' | b'E' => {
                exponent = Some(place);
                break;
            }
            _ => return None,
        }
    }
    let (mantissa, exponent) = match exponent {
        Some(place) => (&body[..place], Some(&body[place + 1..])),
        None => (body, None),
    };
    let marks = marks(mantissa, counts)?;
    let (before, behind) = match marks.decimal {
        Some(place) => (&mantissa[..place], &mantissa[place + 1..]),
        None => (mantissa, &[][..]),
    };
    let first_digit = before.iter().position(|byte| (b'1'..=b'9').contains(byte));
    let digits_before =
        first_digit.map_or(0, |first| before[first..].iter().filter(|byte| byte.is_ascii_digit()).count());
    let has_leading_zero = before.first() == Some(&b'0') && before.len() > 1;
    let mut number = Number {
        digits_before: digits_before as u32,
        digits_behind: behind.len() as u32,
        has_plus,
        has_minus,
        has_leading_zero,
        is_inexact: false,
        key: None,
    };
    let Some(exponent) = exponent else {
        if digits_before + behind.len() > SURE_DIGITS {
            number.is_inexact = is_inexact(before, behind, 0);
        }
        number.key = key(has_minus, before, behind);
        return Some(Seen::Number(marks.class, number));
    };
    if !matches!(marks.class, Class::Whole | Class::Point | Class::MaybePoint) {
        return None;
    }
    let (sign, digits) = match exponent {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (0, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let is_bare = sign == 0 && marks.class == Class::Whole;
    let power = digits.iter().fold(0_i64, |power, digit| (power * 10 + i64::from(digit - b'0')).min(1 << 40));
    number.is_inexact = is_inexact(before, behind, if sign < 0 { -power } else { power });
    Some(Seen::Number(if is_bare { Class::BareExponent } else { Class::Exponent }, number))
}

struct Marks {
    class: Class,
    /// Place of the mark between the digits before and behind it.
    decimal: Option<usize>,
}

/// What the marks of digits, and so many points and commas, are.
fn marks(text: &[u8], [points, commas]: [usize; 2]) -> Option<Marks> {
    let mark = |class, decimal| Some(Marks { class, decimal });
    let places = |wanted: u8| text.iter().enumerate().filter(move |(_, byte)| **byte == wanted).map(|(place, _)| place);
    if points + commas == text.len() {
        return None; // no digit
    }
    let (one, other, is_point) = match (points, commas) {
        (0, 0) => return mark(Class::Whole, None),
        (1, 0) | (0, 1) => {
            let place = places(if points == 1 { b'.' } else { b',' }).next()?;
            let may_be_group = text.len() - place == 4 && (1..=3).contains(&place) && text[0] != b'0';
            let class = match (points == 1, may_be_group) {
                (true, false) => Class::Point,
                (true, true) => Class::MaybePoint,
                (false, false) => Class::Comma,
                (false, true) => Class::MaybeComma,
            };
            return mark(class, Some(place));
        }
        (_, 0) => (b'.', None, true),
        (0, _) => (b',', None, false),
        // The mark that is there once, behind all others, is that of decimals.
        (1, _) if text.iter().rposition(|byte| *byte == b',') < places(b'.').next() => {
            (b',', places(b'.').next(), false)
        }
        (_, 1) if text.iter().rposition(|byte| *byte == b'.') < places(b',').next() => {
            (b'.', places(b',').next(), true)
        }
        _ => return None,
    };
    let whole = &text[..other.unwrap_or(text.len())];
    let mut groups = whole.split(|byte| *byte == one);
    let first = groups.next()?;
    let is_grouped = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    let class = if is_point { Class::GroupedPoint } else { Class::GroupedComma };
    let is_cut = other.is_some_and(|place| place + 1 == text.len());
    if is_grouped && !is_cut { mark(class, other) } else { None }
}

fn key(is_negative: bool, before: &[u8], behind: &[u8]) -> Option<Key> {
    let whole = digits(before, KEY_DIGITS)?;
    if behind.len() > KEY_DIGITS {
        return None;
    }
    let fraction = digits(behind, KEY_DIGITS)? * 10_u128.pow((KEY_DIGITS - behind.len()) as u32);
    if is_negative && (whole, fraction) != (0, 0) {
        return Some(Key { is_positive: false, whole: !whole, fraction: !fraction });
    }
    Some(Key { is_positive: true, whole, fraction })
}

/// Their number; marks between them count for nothing.
fn digits(text: &[u8], most: usize) -> Option<u128> {
    // Of most numbers 18 digits are all there are.
    if text.len() <= 18 {
        let digits = text.iter().filter(|byte| byte.is_ascii_digit());
        return Some(u128::from(digits.fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'))));
    }
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).skip_while(|byte| **byte == b'0');
    if digits.clone().count() > most {
        return None;
    }
    Some(digits.fold(0_u128, |number, digit| number * 10 + u128::from(digit - b'0')))
}

/// Whether the nearest double, written with as many significant digits, is another number.
pub fn is_inexact(before: &[u8], behind: &[u8], power: i64) -> bool {
    let length = before.len() + behind.len();
    if length <= SURE_DIGITS && power.abs() <= SURE_POWER {
        return false;
    }
    let digits = before.iter().chain(behind).copied().filter(u8::is_ascii_digit);
    // 19 digits are a number of 64 bits; more are mostly too many.
    let digits = digits.skip_while(|digit| *digit == b'0');
    let zeros = if length <= 19 {
        0
    } else {
        digits.clone().collect::<Vec<_>>().iter().rev().take_while(|digit| **digit == b'0').count()
    };
    let kept = if length <= 19 { length } else { digits.clone().count() - zeros };
    if kept > 19 {
        return true;
    }
    let number = digits.take(kept).fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    is_inexact_number(number, power - behind.len() as i64 + zeros as i64)
}

/// The same of `number * 10^power`.
pub fn is_inexact_number(mut number: u64, mut power: i64) -> bool {
    if number == 0 {
        return false;
    }
    while number.is_multiple_of(10) {
        number /= 10;
        power += 1;
    }
    let kept = number.ilog10() as usize + 1;
    if kept <= SURE_DIGITS && power.abs() <= SURE_POWER {
        return false;
    }
    kept > MOST_DIGITS
        || nearly_told(number, power).map_or_else(|| is_told_otherwise(number, kept, power), |is_told| !is_told)
}

/// Whether the double that is nearest to `number * 10^power` differs from it by less than half of the last digit; none where that is
/// not easily said.
fn nearly_told(number: u64, power: i64) -> Option<bool> {
    const LEAST_MANTISSA: u64 = 1 << 52;
    if power == 0 {
        return Some(number as f64 as u64 == number); // less than half of 1 is nothing
    }
    // 53 bits times 5^22 are 105 bits.
    let tens = usize::try_from(-power).ok().filter(|tens| (1..=22).contains(tens))?;
    // Of a number that is no double this is rounded twice, and may be a double beside the nearest one.
    let bits = (number as f64 / TENS[tens]).to_bits();
    let (mut mantissa, exponent) = (bits & (LEAST_MANTISSA - 1) | LEAST_MANTISSA, (bits >> 52) as i64 - 1075);
    // Everything times 10^tens * 2^shift: a double is mantissa * step, its exponent that of the first one.
    let shift = u32::try_from(-(exponent + tens as i64)).ok().filter(|shift| *shift <= 63)?;
    let (step, wanted) = (u128::from(FIVES[tens]), u128::from(number) << shift);
    let mut told = u128::from(mantissa) * step;
    for _ in 0..2 {
        if 2 * told.abs_diff(wanted) > step {
            (mantissa, told) = if told < wanted { (mantissa + 1, told + step) } else { (mantissa - 1, told - step) };
        }
    }
    let difference = 2 * told.abs_diff(wanted);
    let is_nearest = difference < step && mantissa > LEAST_MANTISSA && mantissa < 2 * LEAST_MANTISSA;
    (is_nearest && difference != 1 << shift).then_some(difference < 1 << shift)
}

/// The definition: text by text.
#[cold]
fn is_told_otherwise(number: u64, kept: usize, power: i64) -> bool {
    let text = number.to_string();
    let tens = power + kept as i64 - 1;
    let scientific = format!("{}.{}e{tens}", &text[..1], if kept > 1 { &text[1..] } else { "0" });
    let Ok(value) = scientific.parse::<f64>() else { return true };
    let told = format!("{value:.*e}", kept - 1);
    let Some((digits, exponent)) = told.split_once('e') else { return true };
    digits.bytes().filter(u8::is_ascii_digit).ne(text.bytes()) || exponent != tens.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Number {
        match number(text.as_bytes()) {
            Some(Seen::Number(_, number)) => number,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn digits_are_counted_as_they_stand_there() {
        for (text, before, behind) in
            [("0", 0, 0), ("007", 1, 0), ("0.50", 0, 2), (".5", 0, 1), ("1,234,567.8", 7, 1), ("-12.", 2, 0)]
        {
            let number = of(text);
            assert_eq!((number.digits_before, number.digits_behind), (before, behind), "{text}");
        }
        assert!(of("007").has_leading_zero && !of("0").has_leading_zero && !of("0.5").has_leading_zero);
        assert!(of("+1").has_plus && of("-1").has_minus);
    }

    #[test]
    fn keys_order_numbers() {
        let ascending = ["-1,000.5", "-2", "-1.99", "-0.01", "0", "0.001", "1", "1.5", "9", "10", "1,234,567"];
        let keys: Vec<Key> = ascending.iter().filter_map(|text| of(text).key).collect();
        assert_eq!(keys.len(), ascending.len());
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(of("-0.0").key, of("0").key);
        assert_eq!(of("99999999999999999999999999999999999999999").key, None);
        assert!(of("99999999999999999999999999999999999999").key.is_some());
    }

    #[test]
    fn what_is_easily_said_of_doubles_is_so() {
        let (mut state, mut said) = (0x9E37_79B9_7F4A_7C15_u64, [0, 0]);
        for _ in 0..50_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            // 16 and 17 digits, and what doubles are written as.
            let mut number = state % 10_u64.pow(16 + (state >> 60) as u32 % 2);
            number += u64::from(number.is_multiple_of(10));
            let power = -((state >> 20) as i64 % 23);
            let kept = number.to_string().len();
            if let Some(is_told) = nearly_told(number, power) {
                assert_eq!(is_told, !is_told_otherwise(number, kept, power), "{number}e{power}");
                said[usize::from(is_told)] += 1;
            }
        }
        assert!(said[0] > 1000 && said[1] > 1000, "{said:?}");
    }

    #[test]
    fn doubles_tell_again_what_they_can() {
        for text in ["1e-5", "1.5e300", "0.1e0", "123456789012345", "9007199254740992", "0e999"] {
            assert!(!of(text).is_inexact, "{text}");
        }
        for text in ["9007199254740993", "1e309", "1e-400", "123456789012345678", "0.12345678901234567891"] {
            assert!(of(text).is_inexact, "{text}");
        }
    }
}
