//! Dates, times, and three numbers that may be a date.

use super::class::{Class, Seen};
use crate::convert::temporal::{days_since_epoch, offset_at_front, time};

/// Most digits of a fraction of a second.
const FRACTION_DIGITS: usize = 6;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// Where the year stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum YearPlace {
    /// Four digits, first.
    First,
    /// Four digits, last.
    Last,
    /// Nobody knows: no number has four digits.
    Short,
}

/// What follows the date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// Nothing.
    None,
    /// Hour and minute.
    Minutes,
    /// Seconds, too.
    Seconds,
}

/// What texts of one pattern have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// Between the numbers.
    pub separator: u8,
    /// Where the year stands.
    pub year: YearPlace,
    /// What follows.
    pub clock: Clock,
    /// Between date and time; 0 where there is none.
    pub between: u8,
}

/// Three numbers that may be a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dated {
    /// How it is written.
    pub signature: Signature,
    /// Which of the numbers have one digit, and whether the hour has.
    pub short: [bool; 4],
    /// Whether seconds have a fraction.
    pub has_fraction: bool,
    /// Whether it is a day, read as year, month, day; as day, month, year; as month, day, year.
    pub valid: [bool; 3],
    /// What orders it among others of the signature, by each of these readings.
    pub keys: [u64; 3],
}

/// What a text is that begins with a digit and is no number.
pub fn moment(text: &[u8]) -> Option<Seen> {
    if let Some(class) = iso(text) {
        return Some(Seen::Class(class));
    }
    dated(text).map(Seen::Dated)
}

/// Microseconds since 1970-01-01 UTC of a text of class `timestamptz`.
pub fn instant(text: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| {
        text.get(from..to)?.iter().try_fold(0, |n, byte| Some(n * 10 + u32::from(digit(*byte)?)))
    };
    let (day, _) = days_since_epoch(number(0, 2)?, number(2, 4)?, number(5, 7)?, number(8, 10)?);
    let (of_day, _, rest) = time(text.get(11..)?)?;
    let (offset, _) = offset_at_front(rest)?;
    Some(i64::from(day) * MICROSECONDS_PER_DAY + of_day - offset)
}

fn iso(text: &[u8]) -> Option<Class> {
    if text.get(2) == Some(&b':') {
        let (_, rounds, rest) = time(text)?;
        return (!rounds && rest.is_empty()).then_some(Class::Time);
    }
    let (day, behind) = text.split_at_checked(10)?;
    let pair = |place: usize| Some(u32::from(digit(day[place])?) * 10 + u32::from(digit(day[place + 1])?));
    let (century, year, month, day_of_month) = (pair(0)?, pair(2)?, pair(5)?, pair(8)?);
    if day[4] != b'-' || day[7] != b'-' || days_since_epoch(century, year, month, day_of_month).1 {
        return None;
    }
    let [between, clock @ ..] = behind else { return Some(Class::Date) };
    if !matches!(between, b' ' | b'T') {
        return None;
    }
    let (_, rounds, rest) = time(clock)?;
    if rounds {
        return None;
    }
    if rest.is_empty() {
        return Some(Class::Timestamp);
    }
    offset_at_front(rest).is_some_and(|(_, rest)| rest.is_empty()).then_some(Class::TimestampTz)
}

fn digit(byte: u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}

/// The digits at the front, at most `most`, their number, and the rest.
fn number(text: &[u8], most: usize) -> Option<(usize, u32, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=most).contains(&length) {
        return None;
    }
    let number = text[..length].iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    Some((length, number, &text[length..]))
}

fn dated(text: &[u8]) -> Option<Dated> {
    let (first_length, first, rest) = number(text, 4)?;
    let [separator @ (b'/' | b'.' | b'-'), rest @ ..] = rest else { return None };
    let (second_length, second, rest) = number(rest, 2)?;
    let rest = rest.strip_prefix(&[*separator])?;
    let (third_length, third, rest) = number(rest, 4)?;
    let year = match (first_length, third_length) {
        (4, 1 | 2) => YearPlace::First,
        (1 | 2, 4) => YearPlace::Last,
        (1 | 2, 1 | 2) => YearPlace::Short,
        _ => return None,
    };
    let Behind { clock, between, hour_length, has_fraction, microseconds } = clock_behind(rest)?;
    let is_day = |year: u32, length: usize, month: u32, day: u32| match length {
        4 => !days_since_epoch(year / 100, year % 100, month, day).1,
        // Which century is unknown: February may have 29 days.
        2 => !days_since_epoch(20, 0, month, day).1,
        _ => false,
    };
    let valid = [
        year != YearPlace::Last && is_day(first, first_length, second, third),
        year != YearPlace::First && is_day(third, third_length, second, first),
        year != YearPlace::First && is_day(third, third_length, first, second),
    ];
    if valid == [false; 3] {
        return None;
    }
    let key = |year: u32, month: u32, day: u32| {
        u64::from((year * 12 + month) * 31 + day) * MICROSECONDS_PER_DAY as u64 + microseconds
    };
    Some(Dated {
        signature: Signature { separator: *separator, year, clock, between },
        short: [first_length == 1, second_length == 1, third_length == 1, hour_length == 1],
        has_fraction,
        valid,
        keys: [key(first, second, third), key(third, second, first), key(third, first, second)],
    })
}

/// Whether a text is nothing, or a clock behind a blank or `T`.
pub fn is_clock(text: &[u8]) -> bool {
    clock_behind(text).is_some()
}

/// A clock behind a date.
struct Behind {
    clock: Clock,
    /// What stands before it; 0 for nothing.
    between: u8,
    hour_length: usize,
    has_fraction: bool,
    /// Since midnight.
    microseconds: u64,
}

/// The clock that a text is.
fn clock_behind(text: &[u8]) -> Option<Behind> {
    let [between, clock @ ..] = text else {
        return Some(Behind { clock: Clock::None, between: 0, hour_length: 0, has_fraction: false, microseconds: 0 });
    };
    if !matches!(between, b' ' | b'T') {
        return None;
    }
    let (hour_length, hour, rest) = number(clock, 2)?;
    let (minute_length, minute, rest) = number(rest.strip_prefix(b":")?, 2)?;
    if hour > 23 || minute > 59 || minute_length != 2 {
        return None;
    }
    let behind = |clock: Clock, second: u32, fraction: Option<u32>| {
        let microseconds = u64::from((hour * 60 + minute) * 60 + second) * 1_000_000 + u64::from(fraction.unwrap_or(0));
        Behind { clock, between: *between, hour_length, has_fraction: fraction.is_some(), microseconds }
    };
    let Some(rest) = rest.strip_prefix(b":") else {
        return rest.is_empty().then(|| behind(Clock::Minutes, 0, None));
    };
    let (second_length, second, rest) = number(rest, 2)?;
    if second > 59 || second_length != 2 {
        return None;
    }
    let Some(fraction) = rest.strip_prefix(b".") else {
        return rest.is_empty().then(|| behind(Clock::Seconds, second, None));
    };
    let (length, digits, rest) = number(fraction, FRACTION_DIGITS)?;
    let micros = digits * 10_u32.pow((FRACTION_DIGITS - length) as u32);
    rest.is_empty().then(|| behind(Clock::Seconds, second, Some(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants() {
        let instant = |text: &str| instant(text.as_bytes());
        assert_eq!(instant("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(instant("1970-01-02 01:00+01:00"), Some(MICROSECONDS_PER_DAY));
        assert_eq!(instant("1969-12-31 23:59:59.5-01"), Some(3_599_500_000));
    }

    #[test]
    fn keys_order_days_as_they_are_read() {
        let key = |text: &str, reading: usize| dated(text.as_bytes()).unwrap().keys[reading];
        assert!(key("31.1.2024", 1) < key("1.2.2024", 1) && key("31.12.2023", 1) < key("1.1.2024", 1));
        assert!(key("01/02/2024", 1) > key("05/01/2024", 1) && key("01/02/2024", 2) < key("05/01/2024", 2));
        assert!(key("2024/1/2 9:05", 0) < key("2024/1/2 10:00", 0));
        assert!(key("2024/1/2 9:05:01", 0) < key("2024/1/2 9:05:01.000001", 0));
    }

    #[test]
    fn readings() {
        let valid = |text: &str| dated(text.as_bytes()).map(|dated| dated.valid);
        assert_eq!(valid("03/04/2026"), Some([false, true, true]));
        assert_eq!(valid("13/04/2026"), Some([false, true, false]));
        assert_eq!(valid("04/13/2026"), Some([false, false, true]));
        assert_eq!(valid("29.02.2024"), Some([false, true, false]));
        assert_eq!(valid("29.02.2023"), None);
        assert_eq!(valid("2024/02/29"), Some([true, false, false]));
        assert_eq!(valid("01-02-03"), Some([true, true, true]));
        assert_eq!(valid("1-02-3"), None);
        assert_eq!(valid("31/12/99"), Some([false, true, false]));
        assert_eq!(valid("1/1/2024 24:00"), None);
    }
}
