//! What is known of the texts of one column: gathered by each stream, merged at the end.

use std::collections::BTreeMap;

use serde::Serialize;

use super::class::{Class, Seen, trimmed};
use super::distinct::Distinct;
use super::extremes::{Extremes, Kept};
use super::moment::{Clock, Dated, Signature, YearPlace, instant};
use super::number::{Key, Number};

/// Different texts of no class that are kept.
const MOST_OTHERS: usize = 16;
/// A longer one is not worth keeping, bytes.
const LONGEST_OTHER: usize = 64;
/// What is kept of the least and the greatest text, bytes.
const KEPT_TEXT_BYTES: usize = 64;
/// What is kept of a first value, bytes.
const KEPT_FIRST_BYTES: usize = 200;

/// Where a value stands: number of the slice, line of the slice from 0.
pub type Place = (u32, u64);

/// Facts about one column.
#[derive(Debug, Clone)]
pub struct ColumnFacts {
    values: u64,
    nulls: u64,
    empty: u64,
    blank_ends: u64,
    ends_blank: u64,
    high: u64,
    quoted: u64,
    /// Least and greatest length, code points.
    lengths: Option<(u64, u64)>,
    /// Least and greatest text.
    texts: Option<(Kept, Kept)>,
    /// By the number of the class.
    classes: [Option<Box<ClassFacts>>; Class::ALL.len()],
    dates: BTreeMap<Signature, DateFacts>,
    others: Others,
    distinct: Distinct,
}

/// Values of one class.
#[derive(Debug, Clone)]
struct ClassFacts {
    count: u64,
    first: First,
    /// Of dates and times: the least and the greatest text.
    texts: Option<(Kept, Kept)>,
    /// Of timestamps with an offset.
    instants: Extremes<i64>,
    numbers: NumberFacts,
}

/// The first value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct First {
    place: Place,
    value: Kept,
}

#[derive(Debug, Clone, Default)]
struct NumberFacts {
    digits_before: u32,
    digits_behind: u32,
    plus: u64,
    minus: u64,
    leading_zeros: u64,
    inexact: u64,
    range: Extremes<Key>,
}

/// Values of one signature.
#[derive(Debug, Clone)]
struct DateFacts {
    count: u64,
    first: First,
    valid: [u64; 3],
    short: [u64; 4],
    fractions: u64,
    /// By each reading, of the values that are days by it.
    ranges: [Extremes<u64>; 3],
}

/// Texts of no class, until there are too many.
#[derive(Debug, Clone, Default)]
struct Others {
    texts: BTreeMap<Box<[u8]>, u64>,
    are_too_many: bool,
}

impl ColumnFacts {
    /// Facts about nothing, which keep so many hashes.
    pub fn new(hashes: usize) -> Self {
        ColumnFacts {
            values: 0,
            nulls: 0,
            empty: 0,
            blank_ends: 0,
            ends_blank: 0,
            high: 0,
            quoted: 0,
            lengths: None,
            texts: None,
            classes: [const { None }; Class::ALL.len()],
            dates: BTreeMap::new(),
            others: Others::default(),
            distinct: Distinct::new(hashes),
        }
    }

    /// Takes nulls.
    pub fn add_nulls(&mut self, count: u64) {
        self.nulls += count;
    }

    /// Takes a value, UTF-8.
    pub fn add(&mut self, bytes: &[u8], place: Place) {
        self.add_many(bytes, 1, place);
    }

    /// Takes a value that was met so often, first at this place.
    pub fn add_many(&mut self, bytes: &[u8], count: u64, place: Place) {
        self.values += count;
        let is_ascii = bytes.is_ascii();
        self.high += count * u64::from(!is_ascii);
        let length = if is_ascii { bytes.len() } else { code_points(bytes) } as u64;
        self.widen_lengths(length, length);
        widen(&mut self.texts, bytes);
        self.distinct.add(bytes);
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            self.empty += count;
            return;
        };
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        self.blank_ends += count * u64::from(is_blank(first) || is_blank(last));
        self.ends_blank += count * u64::from(*last == b' ');
        self.quoted += count * u64::from(*first == b'"');
        let seen = super::class::seen(bytes);
        let class = seen.class();
        let facts = match &mut self.classes[class as usize] {
            Some(facts) => facts,
            none => none.insert(Box::new(ClassFacts::new(First::new(bytes, place)))),
        };
        facts.count += count;
        facts.first.keep_earlier(bytes, place);
        match seen {
            Seen::Number(_, number) => facts.numbers.add(&number, count, bytes),
            Seen::Dated(dated) => DateFacts::add(&mut self.dates, &dated, count, bytes, place),
            Seen::Class(Class::Other) => self.others.add(bytes, count),
            Seen::Class(Class::Date | Class::Timestamp | Class::Time) => widen(&mut facts.texts, trimmed(bytes)),
            Seen::Class(Class::TimestampTz) => {
                instant(trimmed(bytes)).into_iter().for_each(|instant| facts.instants.widen(instant, bytes));
            }
            Seen::Class(_) => {}
        }
    }

    fn widen_lengths(&mut self, least: u64, greatest: u64) {
        self.lengths = Some(self.lengths.map_or((least, greatest), |(own, most)| (own.min(least), most.max(greatest))));
    }

    /// Takes values of a class that was met in this slice before: of ASCII, without quotes before them, their lengths between
    /// these. What they widen and how many different ones there are is to be told besides.
    pub(super) fn add_alike(&mut self, class: Class, count: u64, lengths: (u64, u64)) {
        self.values += count;
        self.widen_lengths(lengths.0, lengths.1);
        if let Some(facts) = &mut self.classes[class as usize] {
            facts.count += count;
        }
    }

    /// How many of the values that were taken so have a blank at an end, and how many end with one.
    pub(super) fn add_blanks(&mut self, either: u64, behind: u64) {
        self.blank_ends += either;
        self.ends_blank += behind;
    }

    /// What is known of the signs and digits of numbers that were taken so.
    pub(super) fn widen_digits(&mut self, class: Class, before: u32, behind: u32, minus: u64, inexact: u64) {
        if let Some(facts) = &mut self.classes[class as usize] {
            let numbers = &mut facts.numbers;
            numbers.digits_before = numbers.digits_before.max(before);
            numbers.digits_behind = numbers.digits_behind.max(behind);
            numbers.minus += minus;
            numbers.inexact += inexact;
        }
    }

    /// One of the values that were taken so may be the least or greatest number of its class.
    pub(super) fn widen_numbers(&mut self, class: Class, text: &[u8]) {
        if let (Some(facts), Seen::Number(_, number)) = (&mut self.classes[class as usize], super::class::seen(text)) {
            facts.numbers.widen(&number, text);
        }
    }

    /// One of the values that were taken so may be the least or greatest text, of the column and of its class.
    pub(super) fn widen_texts(&mut self, class: Class, text: &[u8]) {
        widen(&mut self.texts, text);
        if let (Class::Date | Class::Timestamp, Some(facts)) = (class, &mut self.classes[class as usize]) {
            widen(&mut facts.texts, text);
        }
    }

    /// Counts different values.
    pub(super) fn distinct(&mut self) -> &mut Distinct {
        &mut self.distinct
    }

    /// Whether different values are counted.
    pub(super) fn wants_distinct(&self) -> bool {
        self.distinct.is_told()
    }

    /// Whether texts of no class are only counted.
    pub(super) fn has_many_others(&self) -> bool {
        self.others.are_too_many
    }

    /// Takes what another stream has gathered.
    pub fn merge(&mut self, other: &ColumnFacts) {
        self.values += other.values;
        self.nulls += other.nulls;
        self.empty += other.empty;
        self.blank_ends += other.blank_ends;
        self.ends_blank += other.ends_blank;
        self.high += other.high;
        self.quoted += other.quoted;
        let both = self.lengths.into_iter().chain(other.lengths);
        self.lengths = both.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        widen_by(&mut self.texts, &other.texts);
        for (own, other) in self.classes.iter_mut().zip(&other.classes) {
            match (own.as_mut(), other) {
                (Some(own), Some(other)) => own.merge(other),
                (None, Some(_)) => own.clone_from(other),
                (_, None) => {}
            }
        }
        for (signature, dates) in &other.dates {
            match self.dates.get_mut(signature) {
                Some(own) => own.merge(dates),
                None => drop(self.dates.insert(*signature, dates.clone())),
            }
        }
        self.others.merge(&other.others);
        self.distinct.merge(&other.distinct);
    }

    /// Everything, as data. `locate` says of a place which file, from 0, and which row of it, from 1, it is.
    pub fn report(&self, name: &str, locate: &dyn Fn(Place) -> (usize, u64)) -> ColumnReport {
        let (least_text, greatest_text) = shown(&self.texts);
        let distinct = self.distinct.count(self.values);
        let classes = Class::ALL.iter().zip(&self.classes);
        ColumnReport {
            name: name.to_owned(),
            values: self.values,
            nulls: self.nulls,
            empty: self.empty,
            classes: classes
                .filter_map(|(class, facts)| Some((class.name(), facts.as_ref()?.report(locate))))
                .collect(),
            dates: self.dates.iter().map(|(signature, dates)| dates.report(signature, locate)).collect(),
            blank_ends: self.blank_ends,
            ends_blank: self.ends_blank,
            least_length: self.lengths.map(|(least, _)| least),
            greatest_length: self.lengths.map(|(_, greatest)| greatest),
            least_text,
            greatest_text,
            others: self.others.texts.iter().map(|(text, count)| (as_text(text), *count)).collect(),
            others_complete: !self.others.are_too_many,
            high_bytes: self.high,
            quoted: self.quoted,
            distinct: distinct.map(|(count, _)| count),
            is_exact: distinct.is_some_and(|(_, is_exact)| is_exact),
        }
    }
}

/// Of UTF-8.
fn code_points(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

fn widen(range: &mut Option<(Kept, Kept)>, text: &[u8]) {
    let text = &text[..KEPT_TEXT_BYTES.min(text.len())];
    match range {
        None => *range = Some((text.into(), text.into())),
        Some((least, _)) if *text < **least => *least = text.into(),
        Some((_, greatest)) if *text > **greatest => *greatest = text.into(),
        Some(_) => {}
    }
}

fn widen_by(range: &mut Option<(Kept, Kept)>, other: &Option<(Kept, Kept)>) {
    if let Some((least, greatest)) = other {
        widen(range, least);
        widen(range, greatest);
    }
}

fn shown(range: &Option<(Kept, Kept)>) -> (Option<String>, Option<String>) {
    range.as_ref().map(|(least, greatest)| (as_text(least), as_text(greatest))).unzip()
}

/// A text of which the last character may be cut.
fn as_text(bytes: &[u8]) -> String {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    valid.to_owned()
}

fn as_texts((least, greatest): (Kept, Kept)) -> (String, String) {
    (as_text(&least), as_text(&greatest))
}

impl First {
    fn new(value: &[u8], place: Place) -> Self {
        First { place, value: value[..KEPT_FIRST_BYTES.min(value.len())].into() }
    }

    fn keep_earlier(&mut self, value: &[u8], place: Place) {
        if place < self.place {
            *self = First::new(value, place);
        }
    }

    fn report(&self, locate: &dyn Fn(Place) -> (usize, u64)) -> FirstReport {
        let (file, row) = locate(self.place);
        FirstReport { value: as_text(&self.value), file, row }
    }
}

impl ClassFacts {
    fn new(first: First) -> Self {
        ClassFacts { count: 0, first, texts: None, instants: Extremes::default(), numbers: NumberFacts::default() }
    }

    fn merge(&mut self, other: &ClassFacts) {
        self.count += other.count;
        self.first.keep_earlier(&other.first.value, other.first.place);
        widen_by(&mut self.texts, &other.texts);
        self.instants.merge(&other.instants);
        self.numbers.merge(&other.numbers);
    }

    fn report(&self, locate: &dyn Fn(Place) -> (usize, u64)) -> ClassReport {
        let numbers = &self.numbers;
        let range = numbers.range.texts().or_else(|| self.instants.texts());
        let (minimum, maximum) = shown(&range.or_else(|| self.texts.clone()));
        ClassReport {
            count: self.count,
            first: self.first.report(locate),
            minimum,
            maximum,
            digits_before: numbers.digits_before,
            digits_behind: numbers.digits_behind,
            plus: numbers.plus,
            minus: numbers.minus,
            leading_zeros: numbers.leading_zeros,
            inexact: numbers.inexact,
        }
    }
}

impl NumberFacts {
    fn add(&mut self, number: &Number, count: u64, text: &[u8]) {
        self.digits_before = self.digits_before.max(number.digits_before);
        self.digits_behind = self.digits_behind.max(number.digits_behind);
        self.plus += count * u64::from(number.has_plus);
        self.minus += count * u64::from(number.has_minus);
        self.leading_zeros += count * u64::from(number.has_leading_zero);
        self.inexact += count * u64::from(number.is_inexact);
        self.widen(number, text);
    }

    fn widen(&mut self, number: &Number, text: &[u8]) {
        if let Some(key) = number.key {
            self.range.widen(key, text);
        }
    }

    fn merge(&mut self, other: &NumberFacts) {
        self.digits_before = self.digits_before.max(other.digits_before);
        self.digits_behind = self.digits_behind.max(other.digits_behind);
        self.plus += other.plus;
        self.minus += other.minus;
        self.leading_zeros += other.leading_zeros;
        self.inexact += other.inexact;
        self.range.merge(&other.range);
    }
}

impl DateFacts {
    fn add(all: &mut BTreeMap<Signature, DateFacts>, dated: &Dated, count: u64, text: &[u8], place: Place) {
        let new = || DateFacts {
            count: 0,
            first: First::new(text, place),
            valid: [0; 3],
            short: [0; 4],
            fractions: 0,
            ranges: Default::default(),
        };
        let facts = all.entry(dated.signature).or_insert_with(new);
        facts.count += count;
        facts.first.keep_earlier(text, place);
        std::iter::zip(&mut facts.valid, dated.valid).for_each(|(own, is)| *own += count * u64::from(is));
        std::iter::zip(&mut facts.short, dated.short).for_each(|(own, is)| *own += count * u64::from(is));
        facts.fractions += count * u64::from(dated.has_fraction);
        for (reading, range) in facts.ranges.iter_mut().enumerate().filter(|(reading, _)| dated.valid[*reading]) {
            range.widen(dated.keys[reading], text);
        }
    }

    fn merge(&mut self, other: &DateFacts) {
        self.count += other.count;
        self.first.keep_earlier(&other.first.value, other.first.place);
        std::iter::zip(&mut self.valid, other.valid).for_each(|(count, more)| *count += more);
        std::iter::zip(&mut self.short, other.short).for_each(|(count, more)| *count += more);
        self.fractions += other.fractions;
        std::iter::zip(&mut self.ranges, &other.ranges).for_each(|(own, other)| own.merge(other));
    }

    fn report(&self, signature: &Signature, locate: &dyn Fn(Place) -> (usize, u64)) -> DateReport {
        let text = |byte: u8| if byte == 0 { String::new() } else { char::from(byte).to_string() };
        DateReport {
            separator: text(signature.separator),
            year: match signature.year {
                YearPlace::First => "first",
                YearPlace::Last => "last",
                YearPlace::Short => "short",
            },
            clock: match signature.clock {
                Clock::None => "none",
                Clock::Minutes => "minutes",
                Clock::Seconds => "seconds",
            },
            between: text(signature.between),
            count: self.count,
            first: self.first.report(locate),
            valid: ValidReport { ymd: self.valid[0], dmy: self.valid[1], mdy: self.valid[2] },
            short: self.short,
            fractions: self.fractions,
            ranges: RangesReport {
                ymd: self.ranges[0].texts().map(as_texts),
                dmy: self.ranges[1].texts().map(as_texts),
                mdy: self.ranges[2].texts().map(as_texts),
            },
        }
    }
}

impl Others {
    fn add(&mut self, text: &[u8], count: u64) {
        if self.are_too_many {
            return;
        }
        if let Some(known) = self.texts.get_mut(text) {
            *known += count;
        } else if self.texts.len() == MOST_OTHERS || text.len() > LONGEST_OTHER {
            *self = Others { are_too_many: true, ..Others::default() };
        } else {
            self.texts.insert(text.into(), count);
        }
    }

    fn merge(&mut self, other: &Others) {
        if other.are_too_many {
            *self = Others { are_too_many: true, ..Others::default() };
        }
        other.texts.iter().for_each(|(text, count)| self.add(text, *count));
    }
}

/// Facts about a column.
#[derive(Debug, Clone, Serialize)]
pub struct ColumnReport {
    /// Its name.
    pub name: String,
    /// Values that are not null.
    pub values: u64,
    /// Nulls.
    pub nulls: u64,
    /// Values without a character: they stood between qualifiers.
    pub empty: u64,
    /// What the others are, by class.
    pub classes: BTreeMap<&'static str, ClassReport>,
    /// Those of class `dated`, by how they are written.
    pub dates: Vec<DateReport>,
    /// Values with blanks or tabs at their ends.
    pub blank_ends: u64,
    /// Values that end with a blank.
    pub ends_blank: u64,
    /// Shortest value, code points.
    pub least_length: Option<u64>,
    /// Longest value, code points.
    pub greatest_length: Option<u64>,
    /// Least value in the order of its bytes, cut.
    pub least_text: Option<String>,
    /// Greatest value.
    pub greatest_text: Option<String>,
    /// Values of class `other` with their counts; none if there are too many.
    pub others: Vec<(String, u64)>,
    /// Whether these are all.
    pub others_complete: bool,
    /// Values with characters that are not ASCII.
    pub high_bytes: u64,
    /// Values that begin with a quote.
    pub quoted: u64,
    /// How many values are different; none if they were not counted.
    pub distinct: Option<u64>,
    /// Whether that is so, or about so.
    pub is_exact: bool,
}

/// Values of one class. Digits, signs and zeros are those of numbers.
#[derive(Debug, Clone, Serialize)]
pub struct ClassReport {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: FirstReport,
    /// The least one of numbers, dates and times.
    pub minimum: Option<String>,
    /// The greatest one.
    pub maximum: Option<String>,
    /// Most digits before the mark.
    pub digits_before: u32,
    /// Most digits behind it.
    pub digits_behind: u32,
    /// How many begin with a plus.
    pub plus: u64,
    /// How many begin with a minus.
    pub minus: u64,
    /// In how many a zero stands before another digit.
    pub leading_zeros: u64,
    /// Of how many a double would tell other digits.
    pub inexact: u64,
}

/// A value and where it stands.
#[derive(Debug, Clone, Serialize)]
pub struct FirstReport {
    /// The value, cut.
    pub value: String,
    /// Index of the file.
    pub file: usize,
    /// Its row.
    pub row: u64,
}

/// Values that may be dates, written alike.
#[derive(Debug, Clone, Serialize)]
pub struct DateReport {
    /// Between the numbers.
    pub separator: String,
    /// Where the year stands: first, last, or short: two digits.
    pub year: &'static str,
    /// What follows: none, minutes, seconds.
    pub clock: &'static str,
    /// Between date and time.
    pub between: String,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: FirstReport,
    /// How many are days by each order of year, month and day.
    pub valid: ValidReport,
    /// In how many the first, second, third number and the hour have one digit.
    pub short: [u64; 4],
    /// How many seconds have a fraction.
    pub fractions: u64,
    /// The first and the last day.
    pub ranges: RangesReport,
}

/// The first and the last of values that are days, as they stand in the files.
#[derive(Debug, Clone, Serialize)]
pub struct RangesReport {
    /// Read as year, month, day.
    pub ymd: Option<(String, String)>,
    /// Read as day, month, year.
    pub dmy: Option<(String, String)>,
    /// Read as month, day, year.
    pub mdy: Option<(String, String)>,
}

/// How many are days.
#[derive(Debug, Clone, Serialize)]
pub struct ValidReport {
    /// Read as year, month, day.
    pub ymd: u64,
    /// Read as day, month, year.
    pub dmy: u64,
    /// Read as month, day, year.
    pub mdy: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts as text, so that all of them are compared.
    fn told(facts: &ColumnFacts) -> String {
        let report = facts.report("c", &|(slice, line)| (slice as usize, line));
        serde_json::to_string(&report).unwrap()
    }

    #[test]
    fn merged_facts_are_those_of_all_values_in_any_order() {
        let values = [
            "1",
            "2.50",
            "1,234",
            "x",
            "NULL",
            "",
            " 7 ",
            "03/04/2026",
            "13/4/2026",
            "2024-01-01",
            "2023-12-31",
            "-0",
            "0.0",
            "-5",
            "+3",
            "007",
            "true",
            "é",
            "1e5",
            "1.5e-3",
            "12345678901234567890123456789012345678901",
            "\t",
            "1.234.567,8",
            "12:00",
            "\"q",
            "10",
            "9",
        ];
        let all = |places: &mut dyn Iterator<Item = usize>| {
            let mut facts = ColumnFacts::new(8);
            for place in places {
                match values[place % values.len()] {
                    "NULL" => facts.add_nulls(1),
                    value => facts.add(value.as_bytes(), (place as u32 / 10, place as u64 % 10)),
                }
            }
            facts
        };
        let count = 3 * values.len();
        let serial = all(&mut (0..count));
        assert_eq!(told(&all(&mut (0..count).rev())), told(&serial));
        for parts in 2..5 {
            let mut merged = ColumnFacts::new(8);
            for part in (0..parts).rev() {
                merged.merge(&all(&mut (0..count).filter(|place| place % parts == part)));
            }
            assert_eq!(told(&merged), told(&serial));
        }
    }

    #[test]
    fn a_seventeenth_other_text_ends_the_list() {
        let mut halves = [ColumnFacts::new(0), ColumnFacts::new(0)];
        for number in 0..17 {
            halves[number % 2].add(format!("x{number}").as_bytes(), (0, number as u64));
        }
        let [mut one, other] = halves;
        assert_eq!(one.others.texts.len(), 9);
        one.merge(&other);
        assert!(one.others.are_too_many && one.others.texts.is_empty());
        let mut long = ColumnFacts::new(0);
        long.add("x".repeat(LONGEST_OTHER + 1).as_bytes(), (0, 0));
        assert!(long.others.are_too_many);
    }
}
