//! Columns of texts of one class: loops over tiles that check the class of all texts, and say of which they are not sure.
//!
//! The definition is [`ColumnFacts::add`]; what is sure here adds the same facts.

use super::bounds::TextBounds;
use super::class::{Class, Seen, seen, trimmed};
use super::facts::ColumnFacts;
use super::kin;
use super::number::is_inexact_number;
use super::reals::{LONGEST_REAL_BYTES, reals};
use super::seen_numbers::SeenNumbers;
use super::tile_texts::TileTexts;
use crate::convert::Convert;
use crate::convert::digits::{Point, fixed_number};
use crate::convert::temporal::{Date, Timestamp};
use crate::raw::fields::{OTHER_TEXT, TILE_ROWS, Tile};

/// A number below it has no more digits than any double tells again.
const SURE_LIMIT: u64 = 1_000_000_000_000_000;
/// Days from here on, and small numbers, are told apart: 1880 to 2059.
const FIRST_DAY: i64 = -32_768;

/// Texts of one class.
#[derive(Debug, Clone)]
pub struct AlikeTexts {
    class: Class,
    kind: Kind,
    /// Least and greatest number or day that was sure, or what orders them.
    range: Option<(i64, i64)>,
    bounds: TextBounds,
    seen: Option<SeenNumbers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// So many digits behind the mark.
    Number { scale: u32, mark: u8 },
    /// Any digits behind a point.
    Real,
    /// `YYYY-MM-DD`.
    Day,
    /// `YYYY-MM-DD HH:MM:SS[.f]`.
    Moment,
    /// What is nothing else.
    Other,
}

/// Class and kind of a text, if there is a loop for it.
fn kind_of(text: &[u8]) -> Option<(Class, Kind)> {
    let seen = seen(text);
    let class = seen.class();
    let kind = match (seen, class) {
        (_, Class::Date) => Kind::Day,
        (_, Class::Timestamp) => Kind::Moment,
        (_, Class::Other) => Kind::Other,
        (
            Seen::Number(_, number),
            Class::Whole | Class::Point | Class::MaybePoint | Class::Comma | Class::MaybeComma,
        ) => {
            let mark = if matches!(class, Class::Comma | Class::MaybeComma) { b',' } else { b'.' };
            let scale = number.digits_behind;
            if class == Class::Point && Point::new(scale, mark).is_none() {
                return (scale > 0).then_some((class, Kind::Real));
            }
            (scale > 0 && Point::new(scale, mark).is_some() || class == Class::Whole)
                .then_some(Kind::Number { scale, mark })?
        }
        _ => return None,
    };
    Some((class, kind))
}

impl AlikeTexts {
    /// For texts like most of these, all of which the facts have taken in this slice. `has_memory`: whether numbers that were met may
    /// be noted.
    pub fn of<'a>(samples: impl Iterator<Item = &'a [u8]>, facts: &ColumnFacts, has_memory: bool) -> Option<Self> {
        let mut kinds: Vec<((Class, Kind), usize)> = Vec::new();
        for kind in samples.filter_map(kind_of) {
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((kind, 1)),
            }
        }
        let is_point = |known: &&((Class, Kind), usize)| known.0.0 == Class::Point;
        let points = kinds.iter().filter(is_point).map(|(_, count)| count).sum::<usize>();
        if kinds.iter().filter(is_point).count() > 1 {
            kinds.push(((Class::Point, Kind::Real), points));
        }
        let ((class, kind), _) = kinds.into_iter().max_by_key(|(_, count)| *count)?;
        if kind == Kind::Other && !facts.has_many_others() {
            return None; // each has to be counted
        }
        let first = if kind == Kind::Day { FIRST_DAY } else { 0 };
        let has_numbers = matches!(kind, Kind::Number { .. } | Kind::Day);
        let seen = (has_memory && has_numbers && facts.wants_distinct()).then(|| SeenNumbers::new(first));
        Some(AlikeTexts { class, kind, range: None, bounds: TextBounds::default(), seen })
    }

    /// Tells the facts of the texts of a tile that are sure; the others remain unsure.
    #[inline(always)]
    pub fn take(&mut self, tile: Tile<'_, '_>, texts: &mut TileTexts, longest: u32, facts: &mut ColumnFacts) {
        let loaded = match self.kind {
            Kind::Day => {
                days(tile, texts);
                0
            }
            Kind::Number { scale, mark } => {
                // Longer ones are not sure.
                let loaded = texts.load(tile, longest.min(24));
                let point = Point::new(scale, mark).filter(|_| scale > 0);
                match longest {
                    ..=8 => numbers::<1>(tile, texts, point, self.class),
                    9..=16 => numbers::<2>(tile, texts, point, self.class),
                    _ => numbers::<3>(tile, texts, point, self.class),
                }
                loaded
            }
            Kind::Real => {
                let loaded = texts.load(tile, longest.min(LONGEST_REAL_BYTES));
                texts.words[loaded..3].iter_mut().for_each(|words| words.fill(0));
                let found = reals(tile, texts);
                facts.widen_digits(self.class, found.before, found.behind, found.minus, found.inexact);
                loaded
            }
            Kind::Moment => {
                let loaded = texts.load(tile, longest);
                moments(tile, texts);
                loaded
            }
            Kind::Other => {
                let loaded = texts.load(tile, longest);
                others(tile, texts, longest);
                texts.hash(tile, loaded, longest, true);
                loaded
            }
        };
        let rows = tile.rows();
        let (count, lengths) = texts.sure(rows);
        if count == 0 {
            return;
        }
        if self.kind == Kind::Other {
            let (either, behind) = texts.blanks(rows);
            facts.add_blanks(either, behind);
        }
        facts.add_alike(self.class, count, (lengths.0.into(), lengths.1.into()));
        let class = self.class;
        if let Kind::Number { scale, .. } = self.kind {
            self.take_digits(texts, rows, scale, facts);
        }
        let has_range = matches!(self.kind, Kind::Number { .. } | Kind::Day | Kind::Real);
        let range = if has_range { self.take_range(tile, texts, facts) } else { (0, 0) };
        if self.kind != Kind::Day {
            let longest = longest.min(8 * loaded as u32);
            self.bounds.widen(texts, rows, longest, |row| facts.widen_texts(class, tile.field(row).bytes()));
        }
        if !facts.wants_distinct() {
            return;
        }
        if let Some(seen) = self.seen.as_mut().filter(|seen| seen.covers(range.0, range.1)) {
            for row in 0..rows {
                if seen.is_new(texts.numbers[row]) && texts.unsure[row] == 0 {
                    seen.add(texts.numbers[row]);
                    facts.distinct().add(tile.field(row).bytes());
                }
            }
            return;
        }
        let loaded = if self.kind == Kind::Day { texts.load(tile, lengths.1) } else { loaded };
        if self.kind != Kind::Other {
            texts.hash(tile, loaded, longest, false);
        }
        add_hashes(texts, rows, facts);
    }

    /// Signs, and digits before the mark.
    #[inline(always)]
    fn take_digits(&self, texts: &TileTexts, rows: usize, scale: u32, facts: &mut ColumnFacts) {
        let (numbers, unsure) = (&texts.numbers[..rows], &texts.unsure[..rows]);
        let (mut minus, mut all) = (0_u32, 0_u64);
        for row in 0..rows {
            let is_sure = unsure[row] == 0;
            minus += u32::from(is_sure & (numbers[row] < 0));
            all = all.max(if is_sure { numbers[row].unsigned_abs() } else { 0 });
        }
        let mut inexact = 0;
        if all >= SURE_LIMIT {
            let is_long = |row: &usize| unsure[*row] == 0 && numbers[*row].unsigned_abs() >= SURE_LIMIT;
            let is_inexact = |row: usize| is_inexact_number(numbers[row].unsigned_abs(), -i64::from(scale));
            inexact = (0..rows).filter(is_long).filter(|&row| is_inexact(row)).count() as u64;
        }
        let digits = all.checked_ilog10().map_or(0, |power| power + 1);
        facts.widen_digits(self.class, digits.saturating_sub(scale), scale, minus.into(), inexact);
    }

    /// Least and greatest number of the tile. The texts of those that are so far are told.
    #[inline(always)]
    fn take_range(&mut self, tile: Tile<'_, '_>, texts: &TileTexts, facts: &mut ColumnFacts) -> (i64, i64) {
        let rows = tile.rows();
        let (numbers, unsure) = (&texts.numbers[..rows], &texts.unsure[..rows]);
        let (mut least, mut greatest) = (i64::MAX, i64::MIN);
        for row in 0..rows {
            let is_sure = unsure[row] == 0;
            least = least.min(if is_sure { numbers[row] } else { i64::MAX });
            greatest = greatest.max(if is_sure { numbers[row] } else { i64::MIN });
        }
        // A number has one text that is sure, but of reals several may be one here.
        let is_told = self.kind != Kind::Real;
        let (own_least, own_greatest) = self.range.unwrap_or((i64::MAX, i64::MIN));
        if least < own_least || (least == own_least && !is_told) {
            self.tell(least, tile, texts, facts);
        }
        if greatest > own_greatest || (greatest == own_greatest && !is_told) {
            self.tell(greatest, tile, texts, facts);
        }
        self.range = Some((least.min(own_least), greatest.max(own_greatest)));
        (least, greatest)
    }

    #[inline(never)]
    fn tell(&self, number: i64, tile: Tile<'_, '_>, texts: &TileTexts, facts: &mut ColumnFacts) {
        let is_it = |row: &usize| texts.unsure[*row] == 0 && texts.numbers[*row] == number;
        for row in (0..tile.rows()).filter(is_it) {
            let text = tile.field(row).bytes();
            match self.kind {
                Kind::Day => return facts.widen_texts(self.class, text),
                Kind::Number { .. } => return facts.widen_numbers(self.class, text),
                _ => facts.widen_numbers(self.class, text),
            }
        }
    }
}

/// Counts the hashes of the sure rows.
#[inline(always)]
fn add_hashes(texts: &TileTexts, rows: usize, facts: &mut ColumnFacts) {
    let distinct = facts.distinct();
    let greatest = distinct.greatest();
    let mut wanted = [0; TILE_ROWS];
    let (wanted, hashes, unsure) = (&mut wanted[..rows], &texts.hashes[..rows], &texts.unsure[..rows]);
    let mut any = 0;
    for row in 0..rows {
        wanted[row] = u8::from((unsure[row] == 0) & (hashes[row] <= greatest));
        any |= wanted[row];
    }
    if any == 0 {
        return;
    }
    // Without a branch per row: whether a hash is wanted is a matter of chance.
    let (mut found, mut count) = ([0; TILE_ROWS], 0);
    for row in 0..rows {
        found[count.min(TILE_ROWS - 1)] = hashes[row];
        count += usize::from(wanted[row]);
    }
    distinct.add_later(&found[..count]);
}

/// Sure are `[-]digits` and `[-]digits.digits` with so many behind the mark, without zeros in front: a number has one such text.
#[inline(always)]
fn numbers<const N: usize>(tile: Tile<'_, '_>, texts: &mut TileTexts, point: Option<Point>, class: Class) {
    let words = tile.last_words::<N>();
    let rows = tile.rows();
    let (lengths, first) = (&texts.lengths[..rows], &texts.words[0][..rows]);
    let (unsure, numbers) = (&mut texts.unsure[..rows], &mut texts.numbers[..rows]);
    let behind = point.map_or(0, Point::bytes);
    // `1.234` is of another class than `0.234` and `1234.567`.
    let is_thousandth = point.is_some_and(|point| point.scale() == 3);
    let may_be_group = u64::from(matches!(class, Class::MaybePoint | Class::MaybeComma));
    for row in 0..rows {
        let length = u64::from(lengths[row]);
        let (number, wrong) = fixed_number(std::array::from_fn::<_, N, _>(|index| words[index][row]), length, point);
        let sign = u64::from(first[row] & 0xFF == u64::from(b'-'));
        let digit = first[row] >> (8 * sign) & 0xFF;
        let has_zero = (digit == u64::from(b'0')) & (length.wrapping_sub(sign + behind) > 1);
        let magnitude = number.unsigned_abs();
        let is_group = u64::from(magnitude.wrapping_sub(1000) < 999_000);
        let other_class = u64::from(is_thousandth) & (is_group ^ may_be_group);
        let odd = has_zero | ((magnitude == 0) & (sign == 1));
        numbers[row] = number;
        unsure[row] |= u8::from(wrong | other_class | u64::from(odd) != 0);
    }
}

#[inline(always)]
fn days(tile: Tile<'_, '_>, texts: &mut TileTexts) {
    let (mut days, mut inexact) = ([0; TILE_ROWS], [0; TILE_ROWS]);
    let rows = tile.rows();
    let (days, inexact) = (&mut days[..rows], &mut inexact[..rows]);
    let _ = Date.convert_tile(tile, days, inexact);
    let (unsure, numbers) = (&mut texts.unsure[..rows], &mut texts.numbers[..rows]);
    for row in 0..rows {
        numbers[row] = i64::from(days[row]);
        unsure[row] |= inexact[row];
    }
}

#[inline(always)]
fn moments(tile: Tile<'_, '_>, texts: &mut TileTexts) {
    let mut inexact = [0; TILE_ROWS];
    let rows = tile.rows();
    let inexact = &mut inexact[..rows];
    let _ = Timestamp { with_offset: false }.convert_tile(tile, &mut texts.numbers[..rows], inexact);
    let unsure = &mut texts.unsure[..rows];
    for row in 0..rows {
        unsure[row] |= inexact[row];
    }
}

/// Sure are texts that begin as nothing else does, or with digits and a letter that stands in nothing else; and those behind one
/// blank, or before blanks, if they are not short; unless they are kin of numbers and days.
#[inline(always)]
fn others(tile: Tile<'_, '_>, texts: &mut TileTexts, longest: u32) {
    const TRUE: u32 = u32::from_le_bytes(*b"true");
    const FALSE: u32 = u32::from_le_bytes(*b"fals");
    const UUID_LENGTH: u32 = 36;
    const SHORT: u32 = 9;
    let rows = tile.rows();
    texts.load_last(tile);
    let last = &texts.last[..rows];
    let (first, unsure, lengths) = (&texts.words[0][..rows], &mut texts.unsure[..rows], &texts.lengths[..rows]);
    for row in 0..rows {
        let (raw, length) = (first[row], lengths[row]);
        let begins_blank = is_blank(raw as u8);
        let ends_blank = is_blank(last[row]);
        // Without a blank in front.
        let word = if begins_blank { raw >> 8 } else { raw };
        let lower = word | 0x2020_2020_2020_2020;
        let (byte, small) = (word as u8, lower as u8);
        let has_blanks = begins_blank | ends_blank;
        let may_be_truth = ((lower as u32 == TRUE) | (lower as u32 == FALSE)) & ((length <= 5) | has_blanks);
        let is_numeral = byte.wrapping_sub(b'+') <= b'9' - b'+';
        let is_hexadecimal = (small.wrapping_sub(b'a') <= b'f' - b'a') | is_numeral;
        let may_be_uuid = is_hexadecimal & ((length == UUID_LENGTH) | (has_blanks & (length > UUID_LENGTH)));
        let may_be_blank = has_blanks & ((length <= SHORT) | is_blank(byte));
        let odd = may_be_blank | (raw as u8 == b'"') | may_be_truth | may_be_uuid;
        unsure[row] |= u8::from(odd | (is_numeral & !has_word_letter(lower)));
    }
    if longest >= UUID_LENGTH {
        // Most texts of that length have no hyphen there.
        let (last, first, second) = (&texts.last[..rows], &texts.words[0][..rows], &texts.words[1][..rows]);
        let (unsure, lengths) = (&mut texts.unsure[..rows], &texts.lengths[..rows]);
        for row in 0..rows {
            if lengths[row] != UUID_LENGTH || unsure[row] == 0 {
                continue;
            }
            let is_letter = (first[row] as u8).is_ascii_alphabetic() && second[row] as u8 != b'-';
            let is_plain = is_letter && !is_blank(last[row]) && tile.flags()[row] & OTHER_TEXT == 0;
            unsure[row] = u8::from(!is_plain);
        }
    }
    // Behind it, so that what is unsure for another reason stays so.
    unsure_kin(tile, texts);
}

/// Unsure are texts of words that are kin of numbers and days. First and second words and last bytes were loaded.
#[inline(always)]
fn unsure_kin(tile: Tile<'_, '_>, texts: &mut TileTexts) {
    let rows = tile.rows();
    let (last, lengths) = (&texts.last[..rows], &texts.lengths[..rows]);
    let (first, second) = (&texts.words[0][..rows], &texts.words[1][..rows]);
    let mut may_be_kin = [0_u8; TILE_ROWS];
    for (row, may_be_kin) in may_be_kin[..rows].iter_mut().enumerate() {
        let (raw, last) = (first[row], last[row]);
        let (begins_blank, ends_blank) = (is_blank(raw as u8), is_blank(last));
        let word = if begins_blank { raw >> 8 } else { raw };
        let byte = word as u8;
        let is_short = (lengths[row] <= kin::LONGEST) | begins_blank | ends_blank;
        let ends_digit = last.is_ascii_digit() | ends_blank;
        // `12.50 EUR`, `12 Jan 2026`: the last letter of a code, or of a clock.
        let ends_numeral =
            ends_digit | matches!(last, b'%' | b'$' | b')' | b'-' | b'm' | b'z') | last.is_ascii_uppercase();
        let begins_numeral = (byte.wrapping_sub(b'+') <= b'9' - b'+') | (byte == b'(');
        // `EUR 12`, `Jan 1, 2026`, but not `Clerk#000000001`.
        let code = word as u32 & 0x00FF_FFFF;
        let is_code = kin::CODES.iter().fold(byte == b'$', |found, own| found | (code == *own));
        let (is_word, goes_on) = ends_as_word(word);
        let begins_word =
            begins_blank | is_word | (goes_on & (ends_as_word(second[row]).0 | ends_as_word(second[row]).1));
        let of_words = ends_digit & (is_code | begins_word);
        *may_be_kin = u8::from(is_short & ((begins_numeral & ends_numeral) | of_words));
    }
    for row in (0..rows).filter(|&row| may_be_kin[row] != 0) {
        if texts.unsure[row] == 0 {
            texts.unsure[row] = u8::from(kin::kin(trimmed(tile.field(row).bytes())).is_some());
        }
    }
}

/// Whether the first of eight bytes that is no letter ends a word; whether all are letters.
#[inline(always)]
fn ends_as_word(word: u64) -> (bool, bool) {
    let lower = word | eight(0x20);
    let other = !in_range(lower, b'a', b'z') & eight(0x80);
    let first = other & other.wrapping_neg();
    let is = |byte: u8| {
        let zero = lower ^ eight(byte);
        zero.wrapping_sub(eight(1)) & !zero
    };
    (first & (is(b' ') | is(b'.')) != 0, other == 0)
}

#[inline(always)]
fn is_blank(byte: u8) -> bool {
    (byte == b' ') | (byte == b'\t')
}

/// Whether one of eight bytes, capitals made small, is a letter of no number, date, time or UUID: g to s, u to y.
#[inline(always)]
fn has_word_letter(lower: u64) -> bool {
    (in_range(lower, b'g', b's') | in_range(lower, b'u', b'y')) & eight(0x80) != 0
}

/// The high bits of those of eight bytes that are between these, which are ASCII; the other bits mean nothing.
#[inline(always)]
fn in_range(bytes: u64, least: u8, greatest: u8) -> u64 {
    let low = bytes & eight(0x7F);
    let from = |byte: u8| low.wrapping_add(eight(0x80 - byte));
    from(least) & !from(greatest + 1) & !bytes
}

const fn eight(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}
