//! Patterns of digits and literals in loops over tiles. A few words of eight bytes cover a text; where one digit stands in place
//! of two, a zero is put in, and the words behind it are read from one byte earlier. Then every text looks alike: numbers are at
//! places that the pattern alone decides on.

use headrace_types::{Element, Part};

use super::super::digits::{not_digits, number_of};
use super::super::temporal::{MICROSECONDS_PER_DAY, MICROSECONDS_PER_SECOND, days_since_epoch};
use crate::raw::fields::{TILE_ROWS, Tile, Words};
use crate::raw::memory::PADDING_BYTES;

/// Most words of a text.
const MOST_WORDS: usize = 4;
const WORD_BYTES: usize = 8;
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// A pattern that the loops know.
#[derive(Debug)]
pub struct TilePattern {
    words: Vec<Word>,
    /// Century, year of the century, month, day.
    date: [Pair; 4],
    /// Hour, minute, second, and zeros.
    time: [Pair; 4],
    half_day: Option<Pair>,
    fraction: Option<Fraction>,
    has_date: bool,
    has_time: bool,
    /// First of the hundred years that two digits can mean; 0 for years of four digits.
    pivot: u32,
    /// Bytes of a text in which every number has its most digits. Offsets are those of such a text.
    length: u32,
}

/// Eight bytes of the text.
#[derive(Debug, Default)]
struct Word {
    offset: usize,
    literal: u64,
    literal_mask: u64,
    /// Bytes at which numbers begin that may have one digit.
    varies: Vec<usize>,
}

/// Two bytes of a word.
#[derive(Debug, Clone, Copy)]
struct Pair {
    word: usize,
    shift: u32,
    mask: u64,
    /// What is there when the pattern has no such number.
    fill: u64,
}

/// Up to six digits of a fraction of a second.
#[derive(Debug, Clone, Copy)]
struct Fraction {
    offset: usize,
    digits: u32,
}

const NO_PAIR: Pair = Pair { word: 0, shift: 0, mask: 0, fill: 0x3030 };

/// A number of each row of a tile.
type Column = [u32; TILE_ROWS];

/// Whether numbers of one or two digits follow a fraction.
pub fn varies_behind_fraction(elements: &[Element]) -> bool {
    let is_fraction = |element: &Element| matches!(element, Element::Fraction(_));
    let varies = |element: &Element| matches!(element, Element::Number { least, most, .. } if least < most);
    elements.iter().position(is_fraction).is_some_and(|at| elements[at..].iter().any(varies))
}

/// Puts words and pairs together from the front of the pattern on.
struct Cover {
    words: Vec<Word>,
    offset: usize,
}

impl Cover {
    /// The word with the next `bytes` bytes, and their place in it.
    fn take(&mut self, bytes: usize) -> (usize, usize) {
        let is_full = self.words.last().is_none_or(|last| self.offset + bytes > last.offset + WORD_BYTES);
        if is_full {
            self.words.push(Word { offset: self.offset, ..Word::default() });
        }
        let index = self.words.len() - 1;
        let place = self.offset - self.words[index].offset;
        self.offset += bytes;
        (index, place)
    }

    fn literal(&mut self, text: &[u8]) {
        for &byte in text {
            let (index, place) = self.take(1);
            self.words[index].literal |= u64::from(byte) << (8 * place);
            self.words[index].literal_mask |= 0xFF << (8 * place);
        }
    }

    fn pair(&mut self, varies: bool) -> Pair {
        let (word, place) = self.take(2);
        if varies {
            self.words[word].varies.push(place);
        }
        Pair { word, shift: 8 * place as u32, mask: 0xFFFF, fill: 0 }
    }
}

impl TilePattern {
    /// None for patterns with names, offsets and pieces that may be missing, with numbers of one or two digits behind a fraction, and
    /// for very long ones.
    pub fn new(elements: &[Element], pivot: u32) -> Option<Self> {
        // Fractions are read once all digits that are missing are known, those behind them too.
        if varies_behind_fraction(elements) {
            return None;
        }
        let mut cover = Cover { words: vec![], offset: 0 };
        let mut pattern = TilePattern {
            words: vec![],
            date: [NO_PAIR; 4],
            time: [NO_PAIR; 4],
            half_day: None,
            fraction: None,
            has_date: false,
            has_time: false,
            pivot: 0,
            length: 0,
        };
        for element in elements {
            match element {
                Element::Literal(text) => cover.literal(text.as_bytes()),
                Element::Utc => cover.literal(b"Z"),
                Element::Number { part: Part::Year, most, .. } => {
                    pattern.has_date = true;
                    if *most == 2 {
                        pattern.pivot = pivot;
                    } else {
                        pattern.date[0] = cover.pair(false);
                    }
                    pattern.date[1] = cover.pair(false);
                }
                Element::Number { part, least, most } => {
                    let pair = cover.pair(least < most);
                    match part {
                        Part::Month => pattern.date[2] = pair,
                        Part::Day | Part::Year => pattern.date[3] = pair,
                        Part::Hour | Part::HalfDayHour => (pattern.time[0], pattern.has_time) = (pair, true),
                        Part::Minute => pattern.time[1] = pair,
                        Part::Second => pattern.time[2] = pair,
                    }
                }
                Element::HalfDay => pattern.half_day = Some(cover.pair(false)),
                Element::Fraction(count) => {
                    let kept = (*count).min(6);
                    pattern.fraction = Some(Fraction { offset: cover.offset, digits: kept.into() });
                    cover.offset += usize::from(kept);
                    // What would be rounded away has to be zeros.
                    cover.literal(&b"000"[..usize::from(count - kept).min(3)]);
                }
                Element::MonthName { .. } | Element::OptionalFraction { .. } | Element::Offset => return None,
            }
        }
        pattern.length = cover.offset as u32;
        pattern.words = cover.words;
        let most_offset = PADDING_BYTES / 2; // see `Field::u64_at`
        let fits = pattern.words.len() <= MOST_WORDS
            && pattern.words.iter().all(|word| word.offset <= most_offset)
            && pattern.fraction.is_none_or(|fraction| fraction.offset <= most_offset);
        fits.then_some(pattern)
    }

    /// Days since 1970-01-01.
    #[inline(always)]
    pub fn dates(&self, tile: Tile<'_, '_>, values: &mut [i32], inexact: &mut [u8]) {
        let rows = tile.rows();
        let text = Texts::read(self, tile);
        let date = text.pairs(&self.date, rows);
        let (values, inexact, wrong) = (&mut values[..rows], &mut inexact[..rows], &text.wrong[..rows]);
        for row in 0..rows {
            let (days, no_date) = self.days(date.digits(row));
            values[row] = days;
            inexact[row] = u8::from(no_date | (wrong[row] != 0));
        }
    }

    /// Microseconds since 1970-01-01, or since midnight, of times so far east of UTC.
    #[inline(always)]
    pub fn moments(&self, tile: Tile<'_, '_>, offset: i64, values: &mut [i64], inexact: &mut [u8]) {
        match (self.has_date, self.has_time) {
            (true, true) => self.moments_of::<true, true>(tile, offset, values, inexact),
            (true, false) => self.moments_of::<true, false>(tile, offset, values, inexact),
            (false, _) => self.moments_of::<false, true>(tile, offset, values, inexact),
        }
    }

    #[inline(always)]
    fn moments_of<const DATE: bool, const TIME: bool>(
        &self,
        tile: Tile<'_, '_>,
        offset: i64,
        values: &mut [i64],
        inexact: &mut [u8],
    ) {
        let rows = tile.rows();
        let mut text = Texts::read(self, tile);
        let (mut hours, mut microseconds) = ([0; TILE_ROWS], [0; TILE_ROWS]);
        text.half_days(self.half_day, rows, &mut hours);
        text.fractions(self.fraction, tile, &mut microseconds);
        let (date, time) = (text.pairs(&self.date, rows), text.pairs(&self.time, rows));
        let (hours, microseconds) = (&hours[..rows], &microseconds[..rows]);
        let (values, inexact, wrong) = (&mut values[..rows], &mut inexact[..rows], &text.wrong[..rows]);
        let (first_hour, last_hour) = if self.half_day.is_some() { (1, 12) } else { (0, 23) };
        // 12 o'clock is the hour 0 of its half day.
        let hours_of_a_round = if self.half_day.is_some() { 12 } else { 24 };
        for row in 0..rows {
            let mut no_moment = wrong[row] != 0;
            let mut moment = offset.wrapping_neg();
            if DATE {
                let (days, no_date) = self.days(date.digits(row));
                no_moment |= no_date;
                // Wraps when the text is no date; then the value is not used.
                moment = moment.wrapping_add(i64::from(days).wrapping_mul(MICROSECONDS_PER_DAY));
            }
            if TIME {
                let digits = time.digits(row);
                let [hour, minute, second, _] = pairs_of(digits);
                no_moment |= (not_digits(digits) != 0) | (minute > 59) | (second > 59);
                no_moment |= (hour < first_hour) | (hour > last_hour);
                let hour = if hour == hours_of_a_round { 0 } else { hour } + hours[row];
                let seconds = i64::from((hour * 60 + minute) * 60 + second);
                moment = moment.wrapping_add(seconds * MICROSECONDS_PER_SECOND + i64::from(microseconds[row]));
            }
            values[row] = moment;
            inexact[row] = u8::from(no_moment);
        }
    }

    /// Days since 1970-01-01 of the digits of a date, and whether there is no such day.
    #[inline(always)]
    fn days(&self, digits: u64) -> (i32, bool) {
        let [century, year, month, day] = pairs_of(digits);
        let century = century + self.pivot / 100 + u32::from(year < self.pivot % 100);
        let (days, outside) = days_since_epoch(century, year, month, day);
        (days, outside | (not_digits(digits) != 0))
    }
}

/// Numbers of two digits each.
#[inline(always)]
fn pairs_of(digits: u64) -> [u32; 4] {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00FF_00FF_00FF_00FF;
    std::array::from_fn(|number| (pairs >> (16 * number)) as u32 & 0xFF)
}

/// The texts of a tile, each with all digits that its numbers can have.
struct Texts {
    words: [Words; MOST_WORDS],
    /// Digits that were missing.
    missing: Column,
    /// Not 0 where the text has other literals or another length.
    wrong: Words,
}

/// Where four pairs of the texts are.
struct PairsOf<'a> {
    pairs: [(&'a [u64], Pair); 4],
}

impl PairsOf<'_> {
    /// The digits of a row, as their values.
    #[inline(always)]
    fn digits(&self, row: usize) -> u64 {
        let digits = |number: usize| {
            let (words, pair) = self.pairs[number];
            ((words[row] >> pair.shift & pair.mask) | pair.fill) << (16 * number)
        };
        (digits(0) | digits(1) | digits(2) | digits(3)) ^ ZEROS
    }
}

impl Texts {
    #[inline(always)]
    fn read(pattern: &TilePattern, tile: Tile<'_, '_>) -> Self {
        let none = [0; TILE_ROWS];
        let mut texts = Texts { words: [none; MOST_WORDS], missing: [0; TILE_ROWS], wrong: none };
        let rows = tile.rows();
        let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
        let mut is_moved = false;
        for (word, words) in std::iter::zip(&pattern.words, &mut texts.words) {
            if is_moved {
                words_moved(tile, word.offset, &texts.missing, words);
            } else {
                tile.words_at(word.offset, words);
            }
            for &byte in &word.varies {
                put_zeros_in(tile, word.offset, byte, words, &mut texts.missing);
                is_moved = true;
            }
            for (wrong, word_of_row) in std::iter::zip(&mut texts.wrong[..rows], &words[..rows]) {
                *wrong |= (word_of_row ^ word.literal) & word.literal_mask;
            }
        }
        let (missing, wrong) = (&texts.missing[..rows], &mut texts.wrong[..rows]);
        for row in 0..rows {
            wrong[row] |= u64::from(ends[row] - starts[row] + missing[row] != pattern.length);
        }
        texts
    }

    #[inline(always)]
    fn pairs(&self, pairs: &[Pair; 4], rows: usize) -> PairsOf<'_> {
        PairsOf { pairs: pairs.map(|pair| (&self.words[pair.word][..rows], pair)) }
    }

    /// Adds twelve hours to those of the afternoon.
    #[inline(always)]
    fn half_days(&mut self, pair: Option<Pair>, rows: usize, hours: &mut Column) {
        const AM: u64 = u16::from_le_bytes(*b"am") as u64;
        const PM: u64 = u16::from_le_bytes(*b"pm") as u64;
        let Some(pair) = pair else { return };
        let (words, hours, wrong) = (&self.words[pair.word][..rows], &mut hours[..rows], &mut self.wrong[..rows]);
        for row in 0..rows {
            let half = (words[row] >> pair.shift & pair.mask) | 0x2020;
            hours[row] = if half == PM { 12 } else { 0 };
            wrong[row] |= u64::from((half != AM) & (half != PM));
        }
    }

    #[inline(always)]
    fn fractions(&mut self, fraction: Option<Fraction>, tile: Tile<'_, '_>, microseconds: &mut Column) {
        let Some(fraction) = fraction else { return };
        let rows = tile.rows();
        let mut words = [0; TILE_ROWS];
        words_moved(tile, fraction.offset, &self.missing, &mut words);
        let (words, wrong) = (&words[..rows], &mut self.wrong[..rows]);
        let microseconds = &mut microseconds[..rows];
        let (unit, shift) = (10_u32.pow(6 - fraction.digits.min(6)), 64 - 8 * fraction.digits);
        for row in 0..rows {
            // The last digits of eight; zeros before them.
            let digits = (words[row] << shift) ^ (ZEROS << shift);
            wrong[row] |= not_digits(digits);
            microseconds[row] = (number_of(digits) as u32).wrapping_mul(unit);
        }
    }
}

/// The words at `offset`, as many bytes earlier as digits are missing before it.
#[inline(always)]
fn words_moved(tile: Tile<'_, '_>, offset: usize, missing: &Column, words: &mut Words) {
    for ((word, field), missing) in words.iter_mut().zip(tile.places()).zip(missing) {
        *word = field.u64_at(offset - (*missing as usize).min(offset));
    }
}

/// Puts a zero before numbers of one digit, which begin at `byte` (at most 6) of the words.
#[inline(always)]
fn put_zeros_in(tile: Tile<'_, '_>, offset: usize, byte: usize, words: &mut Words, missing: &mut Column) {
    let rows = tile.rows();
    let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
    let (words, missing) = (&mut words[..rows], &mut missing[..rows]);
    let shift = 8 * byte as u32;
    let before = (1 << shift) - 1;
    let second = (offset + byte + 1) as u32;
    for row in 0..rows {
        let word = words[row];
        let no_digit = (((word >> (shift + 8)) & 0xFF) ^ 0x30) > 9;
        // At the end of the text there is no second character.
        let is_one = no_digit | (ends[row] - starts[row] + missing[row] <= second);
        let longer = (word & before) | 0x30 << shift | (word & !before) << 8;
        words[row] = if is_one { longer } else { word };
        missing[row] += u32::from(is_one);
    }
}
