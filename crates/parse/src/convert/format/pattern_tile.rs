//! Patterns of digits and literals in loops over tiles: piece by piece, each for all rows. A piece of one or two digits that has
//! one moves what stands behind it in its row.

use headrace_types::{Element, Part};

use super::super::digits::{not_digits, number_of};
use super::super::temporal::{MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, days_since_epoch};
use super::pattern::year;
use crate::raw::fields::{TILE_ROWS, Tile};
use crate::raw::memory::PADDING_BYTES;

/// A pattern that the loops know.
#[derive(Debug)]
pub struct TilePattern {
    segments: Vec<Segment>,
    /// Bytes of a text in which every number has its most digits.
    length: u32,
    pivot: u32,
    has_date: bool,
    has_time: bool,
    is_half_day: bool,
}

/// A number and the bytes behind it, together at most eight.
#[derive(Debug, Clone, Default)]
struct Segment {
    /// Place in a text in which every number has its most digits.
    offset: usize,
    number: Number,
    /// Most digits.
    digits: u32,
    /// Whether one digit less may stand there.
    varies: bool,
    /// What stands behind the digits.
    literal: u64,
    literal_bytes: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Number {
    #[default]
    None,
    Part(Part),
    Fraction,
    HalfDay,
}

/// Numbers of each row of a tile.
type Column = [u32; TILE_ROWS];

/// What the rows of a tile say.
struct Columns {
    year: Column,
    month: Column,
    day: Column,
    hour: Column,
    minute: Column,
    second: Column,
    microsecond: Column,
    afternoon: Column,
    /// Digits that are missing so far.
    missing: Column,
    wrong: [u64; TILE_ROWS],
}

impl TilePattern {
    /// None for patterns with names, offsets and pieces that may be missing, and for very long ones.
    pub fn new(elements: &[Element], pivot: u32) -> Option<Self> {
        let mut segments: Vec<Segment> = vec![];
        let mut offset = 0;
        let literal = |segments: &mut Vec<Segment>, bytes: &[u8], offset: &mut usize| {
            for &byte in bytes {
                let is_full = segments.last().is_none_or(|last| last.digits + last.literal_bytes == 8);
                if is_full {
                    segments.push(Segment { offset: *offset, ..Segment::default() });
                }
                if let Some(last) = segments.last_mut() {
                    last.literal |= u64::from(byte) << (8 * last.literal_bytes);
                    last.literal_bytes += 1;
                }
                *offset += 1;
            }
        };
        for element in elements {
            let (number, digits, varies) = match element {
                Element::Literal(text) => {
                    literal(&mut segments, text.as_bytes(), &mut offset);
                    continue;
                }
                Element::Utc => {
                    literal(&mut segments, b"Z", &mut offset);
                    continue;
                }
                Element::Number { part, least, most } => (Number::Part(*part), u32::from(*most), least < most),
                Element::Fraction(count) => (Number::Fraction, u32::from(*count).min(6), false),
                Element::HalfDay => (Number::HalfDay, 2, false),
                Element::MonthName { .. } | Element::OptionalFraction { .. } | Element::Offset => return None,
            };
            segments.push(Segment { offset, number, digits, varies, ..Segment::default() });
            offset += digits as usize;
            if let Element::Fraction(count @ 7..) = element {
                literal(&mut segments, &b"000"[..usize::from(count - 6).min(3)], &mut offset);
            }
        }
        let has = |wanted: Part| segments.iter().any(|segment| segment.number == Number::Part(wanted));
        let is_short = segments.iter().all(|segment| segment.offset <= PADDING_BYTES / 2);
        let (has_date, is_half_day) = (has(Part::Year), has(Part::HalfDayHour));
        let has_time = is_half_day || has(Part::Hour);
        is_short.then_some(TilePattern { length: offset as u32, pivot, has_date, has_time, is_half_day, segments })
    }

    /// Days since 1970-01-01.
    #[inline(always)]
    pub fn dates(&self, tile: Tile<'_, '_>, values: &mut [i32], inexact: &mut [u8]) {
        let columns = self.read(tile);
        let rows = tile.rows();
        let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
        for row in 0..rows {
            let (days, outside) = columns.days(row);
            values[row] = days;
            inexact[row] = u8::from(outside | (columns.wrong[row] != 0));
        }
    }

    /// Microseconds since 1970-01-01, or since midnight, of times so far east of UTC.
    #[inline(always)]
    pub fn moments(&self, tile: Tile<'_, '_>, offset: i64, values: &mut [i64], inexact: &mut [u8]) {
        let columns = self.read(tile);
        let rows = tile.rows();
        let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
        for row in 0..rows {
            let mut wrong = columns.wrong[row] != 0;
            let mut moment = offset.wrapping_neg();
            if self.has_date {
                let (days, outside) = columns.days(row);
                wrong |= outside;
                // Wraps when the text is no date; then the value is not used.
                moment = moment.wrapping_add(i64::from(days).wrapping_mul(MICROSECONDS_PER_DAY));
            }
            if self.has_time {
                let hour = columns.hour[row];
                let (hour, outside) = match self.is_half_day {
                    true => {
                        let noon = if hour == 12 { 0 } else { hour };
                        (noon + 12 * columns.afternoon[row], hour.wrapping_sub(1) > 11)
                    }
                    false => (hour, hour > 23),
                };
                let (minute, second) = (columns.minute[row], columns.second[row]);
                wrong |= outside | (minute > 59) | (second > 59);
                let seconds = i64::from((hour * 60 + minute) * 60 + second);
                let time = seconds * MICROSECONDS_PER_SECOND + i64::from(columns.microsecond[row]);
                moment = moment.wrapping_add(time);
            }
            values[row] = moment;
            inexact[row] = u8::from(wrong);
        }
    }

    #[inline(always)]
    fn read(&self, tile: Tile<'_, '_>) -> Columns {
        let mut columns = Columns::new();
        let mut varies = false;
        for segment in &self.segments {
            segment.read(tile, varies, self.pivot, &mut columns);
            varies |= segment.varies;
        }
        let rows = tile.rows();
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        for row in 0..rows {
            let length = ends[row] - starts[row] + columns.missing[row];
            columns.wrong[row] |= u64::from(length != self.length);
        }
        columns
    }
}

impl Columns {
    #[inline(always)]
    fn new() -> Self {
        const NONE: Column = [0; TILE_ROWS];
        Columns {
            year: NONE,
            month: NONE,
            day: NONE,
            hour: NONE,
            minute: NONE,
            second: NONE,
            microsecond: NONE,
            afternoon: NONE,
            missing: NONE,
            wrong: [0; TILE_ROWS],
        }
    }

    #[inline(always)]
    fn days(&self, row: usize) -> (i32, bool) {
        let year = self.year[row];
        days_since_epoch(year / 100, year % 100, self.month[row], self.day[row])
    }
}

impl Segment {
    /// Takes the segment's number of every row. `moved`: whether digits may be missing before it.
    #[inline(always)]
    fn read(&self, tile: Tile<'_, '_>, moved: bool, pivot: u32, columns: &mut Columns) {
        let rows = tile.rows();
        let mut words = [0; TILE_ROWS];
        let words = match moved {
            false => tile.words_at(self.offset, &mut words),
            true => {
                for ((word, field), missing) in words.iter_mut().zip(tile.places()).zip(&columns.missing) {
                    *word = field.u64_at(self.offset - (*missing as usize).min(self.offset));
                }
                &words
            }
        };
        let words = &words[..rows];
        let Columns { year: years, month, day, hour, minute, second, microsecond, afternoon, missing, wrong } = columns;
        match self.number {
            Number::None => {}
            Number::Part(Part::Year) => {
                let (years, wrong) = (&mut years[..rows], &mut wrong[..rows]);
                for row in 0..rows {
                    // The last digits of eight; zeros before them.
                    let digits =
                        (words[row] << (64 - 8 * self.digits)) ^ (0x3030_3030_3030_3030 << (64 - 8 * self.digits));
                    wrong[row] |= not_digits(digits);
                    years[row] = year(number_of(digits) as u32, if self.digits == 2 { pivot } else { 0 });
                }
            }
            Number::Part(part) => {
                let numbers = match part {
                    Part::Month => month,
                    Part::Day | Part::Year => day,
                    Part::Hour | Part::HalfDayHour => hour,
                    Part::Minute => minute,
                    Part::Second => second,
                };
                match self.varies {
                    false => two_digits(words, &mut numbers[..rows], &mut wrong[..rows]),
                    true => return self.one_or_two_digits(tile, words, numbers, missing, wrong),
                }
            }
            Number::Fraction => {
                let (numbers, wrong) = (&mut microsecond[..rows], &mut wrong[..rows]);
                let unit = 10_u32.pow(6 - self.digits.min(6));
                let shift = 64 - 8 * self.digits;
                for row in 0..rows {
                    let digits = (words[row] << shift) ^ (0x3030_3030_3030_3030 << shift);
                    wrong[row] |= not_digits(digits);
                    numbers[row] = (number_of(digits) as u32).wrapping_mul(unit);
                }
            }
            Number::HalfDay => {
                let (afternoon, wrong) = (&mut afternoon[..rows], &mut wrong[..rows]);
                for row in 0..rows {
                    let half = (words[row] | 0x2020) & 0xFFFF;
                    let (is_am, is_pm) = (half == HALF_DAYS[0], half == HALF_DAYS[1]);
                    afternoon[row] = u32::from(is_pm);
                    wrong[row] |= u64::from(!is_am & !is_pm);
                }
            }
        }
        self.check_literal(words, &mut wrong[..rows]);
    }

    /// The bytes behind a number of all its digits.
    #[inline(always)]
    fn check_literal(&self, words: &Words1, wrong: &mut [u64]) {
        if self.literal_bytes == 0 {
            return;
        }
        let (shift, mask) = (8 * self.digits, u64::MAX >> (64 - 8 * self.literal_bytes));
        for (word, wrong) in std::iter::zip(words, wrong) {
            *wrong |= ((word >> shift) ^ self.literal) & mask;
        }
    }

    #[inline(always)]
    fn one_or_two_digits(
        &self,
        tile: Tile<'_, '_>,
        words: &Words1,
        numbers: &mut Column,
        missing: &mut Column,
        wrong: &mut [u64; TILE_ROWS],
    ) {
        let rows = tile.rows();
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        let (words, numbers) = (&words[..rows], &mut numbers[..rows]);
        let (missing, wrong) = (&mut missing[..rows], &mut wrong[..rows]);
        let mask = u64::MAX.unbounded_shr(64 - 8 * self.literal_bytes);
        let offset = self.offset as u32;
        for row in 0..rows {
            let (first, second) = (words[row] & 0xFF ^ 0x30, words[row] >> 8 & 0xFF ^ 0x30);
            // At the end of the text there is no second one.
            let is_last = ends[row] - starts[row] + missing[row] <= offset + 1;
            let is_one = (second > 9) | is_last;
            numbers[row] = if is_one { first } else { 10 * first + second } as u32;
            wrong[row] |= u64::from(first > 9);
            wrong[row] |= ((words[row] >> if is_one { 8 } else { 16 }) ^ self.literal) & mask;
            missing[row] += u32::from(is_one);
        }
    }
}

/// A word of every row.
type Words1 = [u64];

/// `am` and `pm` as the first two bytes of a word.
const HALF_DAYS: [u64; 2] = [u16::from_le_bytes(*b"am") as u64, u16::from_le_bytes(*b"pm") as u64];

/// Numbers of the first two characters.
#[inline(always)]
fn two_digits(words: &Words1, numbers: &mut [u32], wrong: &mut [u64]) {
    for ((word, number), wrong) in words.iter().zip(numbers).zip(wrong) {
        let (first, second) = (word & 0xFF ^ 0x30, word >> 8 & 0xFF ^ 0x30);
        *number = (10 * first + second) as u32;
        *wrong |= u64::from(first > 9) | u64::from(second > 9);
    }
}
