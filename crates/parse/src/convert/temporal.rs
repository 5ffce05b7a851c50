//! Dates, times of day, timestamps. Proleptic Gregorian calendar; days and microseconds count from 1970-01-01 UTC.

use headrace_types::Rule;

use super::Convert;
use super::digits::{not_digits, number_of};
use crate::raw::fields::{Field, TILE_ROWS, Tile};

/// Microseconds of a second.
pub const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MICROSECONDS_PER_MINUTE: i64 = 60 * MICROSECONDS_PER_SECOND;
/// Microseconds of a day.
pub const MICROSECONDS_PER_DAY: i64 = 24 * 60 * MICROSECONDS_PER_MINUTE;

/// Days from 0000-03-01 (start of the computational year) to 1970-01-01.
const EPOCH_DAYS: i32 = 719_468;

/// Days since 1970-01-01 of a field's first ten characters, `YYYY-MM-DD`, 0001-01-01 to 9999-12-31.
#[inline(always)]
fn date(field: Field<'_>) -> Option<i32> {
    let (days, wrong) = civil_date(field.u64_at(0), field.u64_at(2));
    (!wrong).then_some(days)
}

/// Dates: `YYYY-MM-DD`.
pub struct Date;

impl Convert for Date {
    type Value = i32;

    #[inline(always)]
    fn convert(&self, field: Field<'_>) -> Result<i32, Rule> {
        if field.len() != 10 {
            return Err(Rule::BadDate);
        }
        date(field).ok_or(Rule::BadDate)
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [i32], inexact: &mut [u8]) -> bool {
        let (mut first, mut last) = ([0; TILE_ROWS], [0; TILE_ROWS]);
        let rows = tile.rows();
        let (first, last) = (&tile.words_at(0, &mut first)[..rows], &tile.words_before(0, &mut last)[..rows]);
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
        for row in 0..rows {
            let (day, wrong) = civil_date(first[row], last[row]);
            values[row] = day;
            inexact[row] = u8::from(wrong) | u8::from(ends[row] - starts[row] != 10);
        }
        true
    }
}

/// Days since 1970-01-01 of `YYYY-MM-DD`, whose first eight characters are `first` and whose last eight are `last`, and whether
/// the text is no date: without branches and tables.
#[inline(always)]
fn civil_date(first: u64, last: u64) -> (i32, bool) {
    let digits = (first & 0xFFFF) | (last & 0xFFFF) << 16 | (last >> 24 & 0xFFFF) << 32 | (last >> 48) << 48;
    let digits = digits ^ 0x3030_3030_3030_3030;
    let hyphens = (last ^ 0x0000_2D00_002D_0000) & 0x0000_FF00_00FF_0000;
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    let pair = |number: u32| (pairs >> (16 * number)) as u32 & 0xFF;
    let (days, outside) = days_since_epoch(pair(0), pair(1), pair(2), pair(3));
    (days, not_digits(digits) | hyphens | u64::from(outside) != 0)
}

/// Days since 1970-01-01 of a day of the year `100 * century + year_of_century`, and whether there is no such day from 0001-01-01
/// to 9999-12-31; numbers of two digits.
/// Month arithmetic: C. Neri, L. Schneider, "Euclidean affine functions and their application to calendar algorithms", 2022.
#[inline(always)]
pub fn days_since_epoch(century: u32, year_of_century: u32, month: u32, day: u32) -> (i32, bool) {
    let is_leap = (if year_of_century == 0 { century } else { year_of_century }) & 3 == 0;
    let last_day = if month == 2 { 28 + u32::from(is_leap) } else { 30 | ((month ^ (month >> 3)) & 1) };
    let outside = month.wrapping_sub(1) >= 12 || day.wrapping_sub(1) >= last_day || century + year_of_century == 0;
    // The computational year starts in March.
    let before_march = u32::from(month < 3);
    let year = (100 * century + year_of_century).wrapping_sub(before_march);
    let century = century.wrapping_sub(before_march & u32::from(year_of_century == 0));
    let day_of_year = (979 * (month + 12 * before_march)).wrapping_sub(2919) >> 5;
    let days = (1461_u32.wrapping_mul(year) >> 2).wrapping_sub(century).wrapping_add(century >> 2);
    let days = days.wrapping_add(day_of_year).wrapping_add(day);
    ((days as i32).wrapping_sub(EPOCH_DAYS + 1), outside)
}

/// Two digits at the front, and the rest.
fn two_digits(characters: &[u8]) -> Option<(i64, &[u8])> {
    match characters {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] => {
            Some((i64::from(tens - b'0') * 10 + i64::from(ones - b'0'), rest))
        }
        _ => None,
    }
}

/// Microseconds since midnight of `HH:MM[:SS[.digits]]` at the front, whether it has more than six digits after the point that
/// are not zeros, and the rest.
pub fn time(characters: &[u8]) -> Option<(i64, bool, &[u8])> {
    let (hour, rest) = two_digits(characters)?;
    let (minute, rest) = two_digits(rest.strip_prefix(b":")?)?;
    if hour > 23 || minute > 59 {
        return None;
    }
    let minutes = (hour * 60 + minute) * MICROSECONDS_PER_MINUTE;
    // Without seconds there is no fraction either: in 12:34.5 somebody may mean minutes and seconds.
    let Some(rest) = rest.strip_prefix(b":") else { return Some((minutes, false, rest)) };
    let (second, rest) = two_digits(rest)?;
    if second > 59 {
        return None;
    }
    let whole = minutes + second * MICROSECONDS_PER_SECOND;
    let Some(fraction) = rest.strip_prefix(b".") else { return Some((whole, false, rest)) };
    let length = fraction.iter().take_while(|character| character.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let (digits, rest) = fraction.split_at(length);
    let rounds = digits.iter().skip(6).any(|&digit| digit != b'0');
    let microseconds =
        (0..6).fold(0, |number, index| number * 10 + digits.get(index).map_or(0, |digit| i64::from(digit - b'0')));
    Some((whole + microseconds, rounds, rest))
}

/// Times of day: `HH:MM[:SS[.ffffff]]`, microseconds since midnight.
pub struct Time;

impl Convert for Time {
    type Value = i64;

    fn convert(&self, field: Field<'_>) -> Result<i64, Rule> {
        match time(field.bytes()) {
            Some((microseconds, false, [])) => Ok(microseconds),
            Some((_, true, [])) => Err(Rule::WouldRound),
            _ => Err(Rule::BadTime),
        }
    }

    fn convert_cut(&self, field: Field<'_>) -> Result<i64, Rule> {
        time(field.bytes()).map(|(microseconds, _, _)| microseconds).ok_or(Rule::BadTime)
    }
}

/// Timestamps: a date, a blank or `T`, a time, and for instants an offset from UTC.
pub struct Timestamp {
    /// Whether an offset must follow (true) or must not (false).
    pub with_offset: bool,
}

impl Timestamp {
    /// The timestamp without the digits that are too many, and whether there are any that are not zeros.
    fn read(&self, field: Field<'_>) -> Result<(i64, bool), Rule> {
        let characters = field.bytes();
        if characters.len() < 16 || !matches!(characters[10], b' ' | b'T') {
            return Err(Rule::BadTimestamp);
        }
        let days = date(field).ok_or(Rule::BadTimestamp)?;
        let (microseconds, rounds, rest) = time(&characters[11..]).ok_or(Rule::BadTimestamp)?;
        let offset = if self.with_offset { offset_microseconds(rest) } else { rest.is_empty().then_some(0) };
        let offset = offset.ok_or(Rule::BadTimestamp)?;
        Ok((i64::from(days) * MICROSECONDS_PER_DAY + microseconds - offset, rounds))
    }
}

impl Convert for Timestamp {
    type Value = i64;

    fn convert(&self, field: Field<'_>) -> Result<i64, Rule> {
        match self.read(field)? {
            (_, true) => Err(Rule::WouldRound),
            (microseconds, false) => Ok(microseconds),
        }
    }

    fn convert_cut(&self, field: Field<'_>) -> Result<i64, Rule> {
        self.read(field).map(|(microseconds, _)| microseconds)
    }

    /// `YYYY-MM-DD HH:MM:SS` with up to six digits after a point.
    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [i64], inexact: &mut [u8]) -> bool {
        if self.with_offset {
            return false;
        }
        let mut words = [[0; TILE_ROWS]; 5];
        let [first, last, between, clock, fraction] = &mut words;
        let rows = tile.rows();
        let (first, last) = (&tile.words_at(0, first)[..rows], &tile.words_at(2, last)[..rows]);
        let (between, clock) = (&tile.words_at(3, between)[..rows], &tile.words_at(11, clock)[..rows]);
        let fraction = &tile.words_at(19, fraction)[..rows];
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
        for row in 0..rows {
            let length = u64::from(ends[row] - starts[row]);
            let (day, wrong_date) = civil_date(first[row], last[row]);
            let (time, wrong_time) = clock_time(clock[row]);
            let (microseconds, wrong_fraction) = fraction_time(fraction[row], length.wrapping_sub(19));
            let separator = between[row] >> 56;
            let wrong_separator = (separator != u64::from(b' ')) & (separator != u64::from(b'T'));
            // Wraps when the text is no date; then the value is not used.
            let midnight = i64::from(day).wrapping_mul(MICROSECONDS_PER_DAY);
            values[row] = midnight.wrapping_add((time + microseconds) as i64);
            let wrong = wrong_date | wrong_separator | (length < 19) | (wrong_time | wrong_fraction != 0);
            inexact[row] = u8::from(wrong);
        }
        true
    }
}

/// Microseconds since midnight of `HH:MM:SS` in `clock`, and (not 0) whether it is no time of day.
#[inline(always)]
fn clock_time(clock: u64) -> (u64, u64) {
    const COLONS: u64 = 0x0000_3A00_003A_0000;
    const COLON_PLACES: u64 = 0x0000_FF00_00FF_0000;
    let digits = (clock ^ 0x3030_3030_3030_3030) & !COLON_PLACES;
    let pair = |place: u32| (digits >> (8 * place) & 15) * 10 + (digits >> (8 * place + 8) & 15);
    let (hour, minute, second) = (pair(0), pair(3), pair(6));
    let outside = u64::from(hour > 23) | u64::from(minute > 59) | u64::from(second > 59);
    let wrong = not_digits(digits) | ((clock & COLON_PLACES) ^ COLONS) | outside;
    ((hour * 3600 + minute * 60 + second) * MICROSECONDS_PER_SECOND as u64, wrong)
}

/// Microseconds of the first `length - 1` characters behind the point in `fraction`, which starts with it; nothing when
/// `length` is 0. Not 0 when it is something else, or has more than six digits.
#[inline(always)]
fn fraction_time(fraction: u64, length: u64) -> (u64, u64) {
    let digits = ((fraction >> 8) ^ 0x0030_3030_3030_3030)
        & u64::MAX.unbounded_shr(64 - 8 * length.saturating_sub(1).min(6) as u32);
    let no_point = u64::from(length != 0) & u64::from(fraction & 0xFF != u64::from(b'.'));
    let wrong_length = u64::from(length == 1) | u64::from(length > 7);
    // Two zeros in front make eight digits of the six.
    (number_of(digits << 16), not_digits(digits) | no_point | wrong_length)
}

/// Offset east of UTC in microseconds; see [`offset_at_front`].
fn offset_microseconds(characters: &[u8]) -> Option<i64> {
    offset_at_front(characters).and_then(|(offset, rest)| rest.is_empty().then_some(offset))
}

/// Offset east of UTC in microseconds, and the rest: `Z`, `+HH`, `+HH:MM`, `+HHMM`, or the same with a minus; up to 15:59, as in
/// PostgreSQL.
pub fn offset_at_front(characters: &[u8]) -> Option<(i64, &[u8])> {
    let (sign, rest) = match characters {
        [b'Z' | b'z', rest @ ..] => return Some((0, rest)),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = two_digits(rest)?;
    let (minutes, rest) = match two_digits(rest.strip_prefix(b":").unwrap_or(rest)) {
        Some(minutes) => minutes,
        None => (0, rest),
    };
    let offset = sign * (hours * 60 + minutes) * MICROSECONDS_PER_MINUTE;
    (hours <= 15 && minutes <= 59).then_some((offset, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &[u8; 10]) -> Option<i32> {
        let word = |from: usize| u64::from_le_bytes(text[from..from + 8].try_into().unwrap());
        let (days, wrong) = civil_date(word(0), word(2));
        (!wrong).then_some(days)
    }

    #[test]
    fn every_day_of_the_calendar_is_one_after_the_day_before() {
        let mut expected = -719_162; // 0001-01-01
        for year in 1..=9999 {
            for month in 1..=12 {
                for day_of_month in 1..=31 {
                    let text = format!("{year:04}-{month:02}-{day_of_month:02}");
                    if let Some(found) = day(text.as_bytes().try_into().unwrap()) {
                        assert_eq!(found, expected, "{text}");
                        expected += 1;
                    } else {
                        assert!(day_of_month > 28, "{text}");
                    }
                }
            }
        }
        assert_eq!(expected, 2_932_897); // day after 9999-12-31
        assert_eq!(day(b"1970-01-01"), Some(0));
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in [
            b"0000-01-01",
            b"2023-02-29",
            b"1900-02-29",
            b"2023-00-01",
            b"2023-13-01",
            b"2023-01-00",
            b"2023-01-32",
            b"2023/01/01",
            b"2023-1-011",
            b"20230-1-01",
            b" 023-01-01",
            b"2023-01-0x",
            b"2023-01-x1",
            b"202\xb3-01-01",
        ] {
            assert_eq!(day(text), None, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn offsets() {
        for (text, minutes) in [("Z", 0), ("+00", 0), ("+05:30", 330), ("-0800", -480), ("+15:59", 959)] {
            assert_eq!(offset_microseconds(text.as_bytes()), Some(minutes * MICROSECONDS_PER_MINUTE), "{text}");
        }
        for text in ["", "+", "+5", "+05:3", "+16", "+05:60", "UTC", "+05:30x", "05:30"] {
            assert_eq!(offset_microseconds(text.as_bytes()), None, "{text}");
        }
    }
}
