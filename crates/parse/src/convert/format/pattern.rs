//! Dates, times and timestamps of patterns.

use headrace_types::{Element, Part, PatternFormat, Rule, folded, parse_pattern};

use super::super::Convert;
use super::super::temporal::{
    MICROSECONDS_PER_DAY, MICROSECONDS_PER_MINUTE, MICROSECONDS_PER_SECOND, days_since_epoch, offset_at_front,
};
use super::super::ways::{Ways, try_ways};
use super::names::spelled;
use super::pattern_tile::{TilePattern, varies_behind_fraction};
use crate::raw::fields::{Field, Tile};

/// The patterns of a column. No text means two values by two of them, so that their order does not matter.
#[derive(Debug)]
pub struct Patterns {
    patterns: Vec<Pattern>,
    pivot: u32,
    /// Folded names and their months, the longest first.
    short_months: Vec<(String, u32)>,
    long_months: Vec<(String, u32)>,
    offset_microseconds: i64,
}

#[derive(Debug)]
struct Pattern {
    elements: Vec<Element>,
    loops: Option<TilePattern>,
}

/// What a text says. What it does not say is 0.
#[derive(Debug, Clone, Default)]
struct Said {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    microsecond: u32,
    /// Whether there are digits behind the microseconds that are not zeros.
    rounds: bool,
    is_half_day: bool,
    is_afternoon: bool,
    offset_microseconds: Option<i64>,
}

/// Why a text has no value.
enum Miss {
    /// It is none of the pattern, or of no calendar.
    Other,
    /// It has too many digits behind the point; what it says without them.
    Rounds(Moment),
}

/// A day and a time of day in microseconds, and the microseconds east of UTC.
type Moment = (i32, i64, i64);

impl Patterns {
    /// Of a format that has been checked.
    pub fn new(format: &PatternFormat) -> Self {
        let names = |months: &[Vec<String>]| {
            let all = months.iter().zip(1..);
            let all = all.flat_map(|(names, month)| names.iter().map(move |name| (folded(name), month)));
            let mut all: Vec<(String, u32)> = all.collect();
            all.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
            all
        };
        let pivot = format.pivot.map_or(0, u32::from);
        let patterns = format.patterns.iter().map(|pattern| {
            let elements = parse_pattern(pattern).unwrap_or_default();
            Pattern { loops: TilePattern::new(&elements, pivot), elements }
        });
        Patterns {
            patterns: patterns.collect(),
            pivot,
            short_months: names(&format.short_months),
            long_months: names(&format.long_months),
            offset_microseconds: i64::from(format.offset_minutes.unwrap_or(0)) * MICROSECONDS_PER_MINUTE,
        }
    }

    /// Why texts are converted field by field, if they are.
    pub fn field_by_field(&self) -> Option<&'static str> {
        let has = |is: fn(&Element) -> bool| self.patterns.iter().any(|pattern| pattern.elements.iter().any(is));
        if self.patterns.iter().all(|pattern| pattern.loops.is_some()) {
            None
        } else if has(|element| matches!(element, Element::MonthName { .. })) {
            Some("names of months")
        } else if has(|element| *element == Element::Offset) {
            Some("an offset from UTC")
        } else if has(|element| matches!(element, Element::OptionalFraction { .. })) {
            Some("a fraction of changing length")
        } else if self.patterns.iter().any(|pattern| varies_behind_fraction(&pattern.elements)) {
            Some("a fraction before numbers of one or two digits")
        } else {
            Some("a long pattern")
        }
    }

    fn read(&self, text: &[u8]) -> Result<Moment, Miss> {
        let mut miss = Miss::Other;
        for pattern in &self.patterns {
            match self.said(&pattern.elements, text, Said::default()).map(|said| self.moment(&said)) {
                Some(Ok(moment)) => return Ok(moment),
                // The first of them decides, as everywhere.
                Some(Err(rounds @ Miss::Rounds(_))) if matches!(miss, Miss::Other) => miss = rounds,
                Some(Err(_)) | None => {}
            }
        }
        Err(miss)
    }

    /// What a text of the pattern says.
    fn said(&self, elements: &[Element], text: &[u8], mut said: Said) -> Option<Said> {
        let mut rest = text;
        for (index, element) in elements.iter().enumerate() {
            match element {
                Element::Literal(literal) => rest = rest.strip_prefix(literal.as_bytes())?,
                Element::Number { part, least, most } => {
                    let (number, behind) = digits(rest, (*least).into(), (*most).into())?;
                    rest = behind;
                    said.take(*part, number, if *most == 2 { self.pivot } else { 0 });
                }
                Element::MonthName { is_long } => {
                    // A short spelling may begin a long one of the same month: then what follows decides.
                    let names = if *is_long { &self.long_months } else { &self.short_months };
                    return names.iter().find_map(|(name, month)| {
                        let length = spelled(rest, name)?;
                        self.said(&elements[index + 1..], &rest[length..], Said { month: *month, ..said.clone() })
                    });
                }
                Element::Fraction(count) => {
                    let (fraction, behind) = rest.split_at_checked((*count).into())?;
                    said.take_fraction(fraction)?;
                    rest = behind;
                }
                Element::OptionalFraction { mark, most } => {
                    let behind = rest.strip_prefix(&[*mark as u8]).unwrap_or_default();
                    let count = behind.iter().take((*most).into()).take_while(|byte| byte.is_ascii_digit()).count();
                    if count > 0 {
                        said.take_fraction(&behind[..count])?;
                        rest = &behind[count..];
                    }
                }
                Element::HalfDay => {
                    let (half, behind) = rest.split_at_checked(2)?;
                    said.is_afternoon = half.eq_ignore_ascii_case(b"PM");
                    if !said.is_afternoon && !half.eq_ignore_ascii_case(b"AM") {
                        return None;
                    }
                    rest = behind;
                }
                Element::Offset => {
                    let (offset, behind) = offset_at_front(rest)?;
                    said.offset_microseconds = Some(offset);
                    rest = behind;
                }
                Element::Utc => {
                    rest = rest.strip_prefix(b"Z").or_else(|| rest.strip_prefix(b"z"))?;
                    said.offset_microseconds = Some(0);
                }
            }
        }
        rest.is_empty().then_some(said)
    }

    fn moment(&self, said: &Said) -> Result<Moment, Miss> {
        let has_date = said.day > 0 || said.month > 0 || said.year > 0;
        let (days, outside) = match has_date {
            true => days_since_epoch(said.year / 100, said.year % 100, said.month, said.day),
            false => (0, self.patterns.iter().any(Pattern::has_date)),
        };
        let hour = if said.is_half_day { said.hour % 12 + 12 * u32::from(said.is_afternoon) } else { said.hour };
        let wrong_hour = if said.is_half_day { !(1..=12).contains(&said.hour) } else { said.hour > 23 };
        if outside || wrong_hour || said.minute > 59 || said.second > 59 {
            return Err(Miss::Other);
        }
        let seconds = i64::from((hour * 60 + said.minute) * 60 + said.second);
        let time = seconds * MICROSECONDS_PER_SECOND + i64::from(said.microsecond);
        let moment = (days, time, said.offset_microseconds.unwrap_or(self.offset_microseconds));
        if said.rounds { Err(Miss::Rounds(moment)) } else { Ok(moment) }
    }

    /// The loops of those patterns that have any, the later ones where the earlier ones did not know the text.
    #[inline(always)]
    fn convert_tile<'p, L: Ways<&'p TilePattern>>(
        &'p self,
        loops: &L,
        tile: Tile<'_, '_>,
        values: &mut [L::Value],
        inexact: &mut [u8],
    ) -> bool {
        let known = self.patterns.iter().filter_map(|pattern| pattern.loops.as_ref());
        try_ways(loops, known, tile, values, inexact)
    }
}

/// Dates.
struct Days;

impl<'p> Ways<&'p TilePattern> for Days {
    type Value = i32;

    #[inline(always)]
    fn run(&self, pattern: &'p TilePattern, tile: Tile<'_, '_>, values: &mut [i32], inexact: &mut [u8]) {
        pattern.dates(tile, values, inexact);
    }
}

/// Times and timestamps so far east of UTC.
struct Moments(i64);

impl<'p> Ways<&'p TilePattern> for Moments {
    type Value = i64;

    #[inline(always)]
    fn run(&self, pattern: &'p TilePattern, tile: Tile<'_, '_>, values: &mut [i64], inexact: &mut [u8]) {
        pattern.moments(tile, self.0, values, inexact);
    }
}

impl Pattern {
    fn has_date(&self) -> bool {
        self.elements.iter().any(|element| matches!(element, Element::Number { part: Part::Year, .. }))
    }
}

impl Said {
    fn take(&mut self, part: Part, number: u32, pivot: u32) {
        match part {
            Part::Year => self.year = year(number, pivot),
            Part::Month => self.month = number,
            Part::Day => self.day = number,
            Part::Hour => self.hour = number,
            Part::HalfDayHour => (self.hour, self.is_half_day) = (number, true),
            Part::Minute => self.minute = number,
            Part::Second => self.second = number,
        }
    }

    fn take_fraction(&mut self, digits: &[u8]) -> Option<()> {
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let digit = |index: usize| digits.get(index).map_or(0, |digit| u32::from(digit - b'0'));
        self.microsecond = (0..6).fold(0, |number, index| 10 * number + digit(index));
        self.rounds = (6..digits.len()).any(|index| digit(index) != 0);
        Some(())
    }
}

/// The year of two digits in the hundred years from `pivot` on; the number itself, if that is 0.
fn year(number: u32, pivot: u32) -> u32 {
    match pivot {
        0 => number,
        _ => pivot - pivot % 100 + number + if number < pivot % 100 { 100 } else { 0 },
    }
}

/// Number of `least` to `most` digits at the front, as many as there are, and the rest.
fn digits(text: &[u8], least: usize, most: usize) -> Option<(u32, &[u8])> {
    let count = text.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(count);
    (count >= least).then(|| (digits.iter().fold(0, |sum, digit| 10 * sum + u32::from(digit - b'0')), rest))
}

/// Days since 1970-01-01.
pub struct PatternDate<'p>(pub &'p Patterns);

impl Convert for PatternDate<'_> {
    type Value = i32;

    fn convert(&self, field: Field<'_>) -> Result<i32, Rule> {
        self.0.read(field.bytes()).map(|(days, _, _)| days).map_err(|_| Rule::BadDate)
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [i32], inexact: &mut [u8]) -> bool {
        self.0.convert_tile(&Days, tile, values, inexact)
    }
}

fn microseconds((days, time, offset): Moment) -> i64 {
    i64::from(days) * MICROSECONDS_PER_DAY + time - offset
}

/// Times and timestamps: microseconds since midnight, or since 1970-01-01.
pub struct PatternMoment<'p> {
    /// The patterns.
    pub patterns: &'p Patterns,
    /// The rule that other texts break.
    pub bad: Rule,
}

impl Convert for PatternMoment<'_> {
    type Value = i64;

    fn convert(&self, field: Field<'_>) -> Result<i64, Rule> {
        match self.patterns.read(field.bytes()) {
            Ok(moment) => Ok(microseconds(moment)),
            Err(Miss::Rounds(_)) => Err(Rule::WouldRound),
            Err(Miss::Other) => Err(self.bad),
        }
    }

    fn convert_cut(&self, field: Field<'_>) -> Result<i64, Rule> {
        match self.patterns.read(field.bytes()) {
            Ok(moment) | Err(Miss::Rounds(moment)) => Ok(microseconds(moment)),
            Err(Miss::Other) => Err(self.bad),
        }
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [i64], inexact: &mut [u8]) -> bool {
        self.patterns.convert_tile(&Moments(self.patterns.offset_microseconds), tile, values, inexact)
    }
}
