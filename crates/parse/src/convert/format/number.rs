//! Numbers with marks, groups, currencies, signs in other places, exponents.
//!
//! A text is squeezed into the one form that the converter of the type knows; that decides on range and digits.

use headrace_types::{ColumnType, GroupFormat, Negative, NumberFormat, Rule, is_blank};

use super::super::Convert;
use super::super::ways::{Ways, try_ways};
use super::grouped::{GROUP, Grouping};
use crate::raw::fields::{Field, TILE_ROWS, Text, Tile, TileMemory};
use crate::raw::memory::PADDING_BYTES;

/// The converter of a number type, which a squeezed text is handed to.
pub trait Base: Convert {
    /// The rule that texts break which are no numbers.
    const BAD: Rule;
    /// Whether the type has no digits behind the point.
    const IS_WHOLE: bool = false;
    /// Whether the type is binary floating point: it takes exponents as they are, and words.
    const IS_FLOATING: bool = false;
    /// What it takes for a point.
    fn point(&self) -> u8 {
        b'.'
    }
    /// The value with the other sign; one that the loops over tiles have found.
    fn negated(value: Self::Value) -> Self::Value;
    /// The value of a whole number.
    fn of_whole(&self, number: i128) -> Result<Self::Value, Rule>;
    /// Whether there are loops for digits in groups.
    const HAS_GROUPS: bool = false;
    /// As [`Convert::convert_tile`], for digits in groups.
    #[inline(always)]
    fn grouped_tile(&self, _: Grouping, _: Tile<'_, '_>, _: &mut [Self::Value], _: &mut [u8]) -> bool {
        false
    }
}

/// How numbers are written.
#[derive(Debug)]
pub struct NumberRules {
    decimal: Vec<u8>,
    group: Option<GroupFormat>,
    /// The longest first.
    currency: Vec<Vec<u8>>,
    minus: bool,
    trailing_minus: bool,
    parentheses: bool,
    scientific: bool,
    hex: bool,
    loops: Loops,
}

/// Which loops over tiles know texts of the format.
#[derive(Debug, Clone, Copy)]
enum Loops {
    None,
    /// Those of the type: digits, a minus in front, a mark of one byte.
    Plain,
    /// Those of groups of three, and whether the others are worth a try as well.
    Grouped(Grouping, bool),
}

impl NumberRules {
    /// Of a format that has been checked.
    pub fn new(format: &NumberFormat) -> Self {
        let mut currency: Vec<_> = format.currency.iter().map(|text| text.as_bytes().to_vec()).collect();
        currency.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let negative = |wanted| format.negative.contains(&wanted);
        let minus = negative(Negative::Minus);
        let loops = match &format.group {
            _ if format.hex || format.decimal.len() > 1 => Loops::None,
            None => Loops::Plain,
            Some(group) => match Grouping::new(group) {
                Some(grouping) => Loops::Grouped(grouping, group.optional),
                None if group.optional => Loops::Plain,
                None => Loops::None,
            },
        };
        NumberRules {
            decimal: format.decimal.as_bytes().to_vec(),
            group: format.group.clone(),
            currency,
            minus,
            trailing_minus: negative(Negative::TrailingMinus),
            parentheses: negative(Negative::Parentheses),
            scientific: format.scientific,
            hex: format.hex,
            loops,
        }
    }

    /// The decimal mark, if it is one byte; otherwise what a point is squeezed to.
    pub fn point(&self) -> u8 {
        match self.decimal[..] {
            [mark] => mark,
            _ => b'.',
        }
    }

    /// Whether numbers may have exponents.
    pub fn has_exponents(&self) -> bool {
        self.scientific
    }

    /// Why texts of the format are converted field by field, if they are.
    pub fn field_by_field(&self, column_type: ColumnType) -> Option<&'static str> {
        let is_floating = matches!(column_type, ColumnType::Float32 | ColumnType::Float64);
        let is_whole = matches!(column_type, ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64);
        match self.loops {
            _ if self.hex => Some("hexadecimal numbers"),
            _ if self.decimal.len() > 1 => Some("a decimal mark of several bytes"),
            Loops::Grouped(..) if is_floating => Some("groups of a floating-point number"),
            Loops::None | Loops::Plain if self.group.is_some() => Some("groups that are not of three digits"),
            _ if self.scientific && !is_floating => {
                Some(if is_whole { "exponents of whole numbers" } else { "exponents of decimals" })
            }
            _ => None,
        }
    }

    /// Whether the first text of a tile has marks of groups.
    #[inline(never)]
    fn has_mark(&self, tile: Tile<'_, '_>) -> bool {
        let mark = self.group.as_ref().map(|group| group.mark.as_bytes());
        mark.is_some_and(|mark| tile.rows() > 0 && find(tile.field(0).bytes(), mark).is_some())
    }

    /// Whether more may stand around the digits than a minus in front.
    fn is_decorated(&self) -> bool {
        !self.minus || self.trailing_minus || self.parentheses || !self.currency.is_empty()
    }

    /// Takes off a sign and a currency, each at most once and on any side. True for a negative number.
    fn peel<'t>(&self, mut rest: &'t [u8]) -> (bool, &'t [u8]) {
        let (mut sign, mut has_currency) = (None, self.currency.is_empty());
        loop {
            let before = rest.len();
            if sign.is_none() {
                (sign, rest) = match rest {
                    [b'-', inner @ ..] if self.minus => (Some(true), inner),
                    [b'+', inner @ ..] => (Some(false), inner),
                    [inner @ .., b'-'] if self.trailing_minus => (Some(true), inner),
                    [b'(', inner @ .., b')'] if self.parentheses => (Some(true), inner),
                    _ => (None, rest),
                };
            }
            if !has_currency
                && let Some(inner) = self.currency.iter().find_map(|text| {
                    let behind = rest.strip_prefix(text.as_slice()).map(without_blanks_in_front);
                    behind.or_else(|| rest.strip_suffix(text.as_slice()).map(without_blanks_behind))
                })
            {
                (rest, has_currency) = (inner, true);
            }
            if rest.len() == before {
                return (sign == Some(true), rest);
            }
        }
    }

    /// Writes the digits of `whole` without marks; `None` when they are not grouped as they should be.
    fn squeeze_whole(&self, whole: &[u8], canonical: &mut Canonical) -> Option<()> {
        let group = self.group.as_ref();
        let mark = group.map(|group| group.mark.as_bytes());
        let mut rest = whole;
        let mut count = 0; // digits since the last mark
        let first = canonical.length;
        let mut marks = 0;
        while let [byte, behind @ ..] = rest {
            if byte.is_ascii_digit() {
                canonical.push(*byte);
                (rest, count) = (behind, count + 1);
            } else {
                rest = rest.strip_prefix(mark?)?;
                // The groups are checked from the end; here only that none is empty.
                if count == 0 {
                    return None;
                }
                (count, marks) = (0, marks + 1);
            }
        }
        match group {
            Some(group) if marks > 0 => grouped_rightly(whole, group, marks),
            Some(group) if !group.optional => (canonical.length - first <= usize::from(group.sizes[0])).then_some(()),
            _ => Some(()),
        }
    }

    /// Writes a text as the base knows it. The exponent is left to the caller, if there is one.
    fn squeeze<'t>(
        &self,
        text: &'t [u8],
        point: u8,
        is_whole: bool,
        canonical: &mut Canonical,
    ) -> Option<Option<&'t [u8]>> {
        let (negative, body) = self.peel(text);
        let place = if self.scientific { body.iter().position(|byte| byte | 0x20 == b'e') } else { None };
        let (mantissa, exponent) = match place {
            Some(place) => (&body[..place], Some(&body[place + 1..])),
            None => (body, None),
        };
        if negative {
            canonical.push(b'-');
        }
        let first = canonical.length;
        let mark = find(mantissa, &self.decimal);
        if mark.is_some() && is_whole && exponent.is_none() {
            return None;
        }
        self.squeeze_whole(&mantissa[..mark.unwrap_or(mantissa.len())], canonical)?;
        if let Some(mark) = mark {
            let fraction = &mantissa[mark + self.decimal.len()..];
            if !fraction.iter().all(u8::is_ascii_digit) || canonical.length - first + fraction.len() == 0 {
                return None;
            }
            canonical.push(point);
            fraction.iter().for_each(|&digit| canonical.push(digit));
        } else if canonical.length == first {
            return None;
        }
        Some(exponent)
    }
}

/// Whether the groups of `whole`, between which there are `marks`, have the right sizes.
fn grouped_rightly(whole: &[u8], group: &GroupFormat, marks: usize) -> Option<()> {
    let mark = group.mark.as_bytes();
    let mut rest = whole;
    for place in 0..marks {
        let size = usize::from(group.sizes[place.min(group.sizes.len() - 1)]);
        let (front, digits) = rest.split_at_checked(rest.len().checked_sub(size)?)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        rest = front.strip_suffix(mark)?;
    }
    let size = usize::from(group.sizes[marks.min(group.sizes.len() - 1)]);
    ((1..=size).contains(&rest.len()) && rest.iter().all(u8::is_ascii_digit)).then_some(())
}

fn without_blanks_in_front(text: &[u8]) -> &[u8] {
    let Some(valid) = text.utf8_chunks().next().map(|chunk| chunk.valid()) else { return text };
    &text[valid.len() - valid.trim_start_matches(is_blank).len()..]
}

fn without_blanks_behind(mut text: &[u8]) -> &[u8] {
    const BLANKS: [&[u8]; 3] = [b" ", "\u{a0}".as_bytes(), "\u{202f}".as_bytes()];
    while let Some(rest) = BLANKS.iter().find_map(|blank| text.strip_suffix(*blank)) {
        text = rest;
    }
    text
}

fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    match mark {
        [mark] => text.iter().position(|byte| byte == mark),
        _ => text.windows(mark.len()).position(|window| window == mark),
    }
}

/// Longest squeezed text that needs no memory of its own.
const SHORT: usize = 64;

/// A squeezed text, with the padding of a block around it.
struct Canonical {
    short: [u8; SHORT + 2 * PADDING_BYTES],
    /// Holds the text when it is longer.
    long: Vec<u8>,
    length: usize,
}

impl Canonical {
    fn new() -> Self {
        Canonical { short: [0; SHORT + 2 * PADDING_BYTES], long: Vec::new(), length: 0 }
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        if self.length < SHORT {
            self.short[PADDING_BYTES + self.length] = byte;
        } else {
            if self.length == SHORT {
                self.long.extend_from_slice(&self.short[..PADDING_BYTES + SHORT]);
            }
            self.long.push(byte);
        }
        self.length += 1;
    }

    fn field(&mut self) -> Option<Field<'_>> {
        if self.length <= SHORT {
            return Text::new(&self.short, self.length).map(Field::whole);
        }
        self.long.resize(self.length + 2 * PADDING_BYTES, 0);
        Text::new(&self.long, self.length).map(Field::whole)
    }

    fn bytes(&self) -> &[u8] {
        if self.length <= SHORT {
            &self.short[PADDING_BYTES..PADDING_BYTES + self.length]
        } else {
            &self.long[PADDING_BYTES..]
        }
    }
}

/// Numbers of a format.
pub struct Numbers<'r, B> {
    /// Converter of the type.
    pub base: B,
    /// How its texts are written.
    pub rules: &'r NumberRules,
}

impl<B: Base> Convert for Numbers<'_, B> {
    type Value = B::Value;

    #[inline(never)]
    fn convert(&self, field: Field<'_>) -> Result<B::Value, Rule> {
        self.read(field, false)
    }

    fn convert_cut(&self, field: Field<'_>) -> Result<B::Value, Rule> {
        self.read(field, true)
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [B::Value], inexact: &mut [u8]) -> bool {
        if matches!(self.rules.loops, Loops::None) {
            return false;
        }
        let mut peeled = self.rules.is_decorated().then(|| Peeled::new(self.rules, tile));
        // One place that calls the loops: they are compiled into it.
        let digits = match &mut peeled {
            Some(peeled) => peeled.inner(tile),
            None => tile,
        };
        let is_known = self.digits_of_tile(digits, values, inexact);
        if let Some(peeled) = &peeled {
            for (row, (value, inexact)) in std::iter::zip(values, inexact).enumerate() {
                *value = if peeled.negative[row] { B::negated(*value) } else { *value };
                *inexact |= peeled.refused[row];
            }
        }
        is_known
    }
}

/// The fields of a tile without signs and currencies.
struct Peeled {
    front: [u32; TILE_ROWS],
    behind: [u32; TILE_ROWS],
    negative: [bool; TILE_ROWS],
    /// 1 where there is one more minus.
    refused: [u8; TILE_ROWS],
    rows: usize,
    memory: TileMemory,
}

impl Peeled {
    #[inline(never)]
    fn new(rules: &NumberRules, tile: Tile<'_, '_>) -> Self {
        let mut peeled = Peeled {
            front: [0; TILE_ROWS],
            behind: [0; TILE_ROWS],
            negative: [false; TILE_ROWS],
            refused: [0; TILE_ROWS],
            rows: tile.rows(),
            memory: TileMemory::default(),
        };
        for row in 0..tile.rows() {
            let text = tile.field(row).bytes();
            let (negative, inner) = rules.peel(text);
            let front = inner.as_ptr().addr() - text.as_ptr().addr();
            peeled.front[row] = front as u32;
            peeled.behind[row] = (text.len() - inner.len() - front) as u32;
            peeled.negative[row] = negative;
            peeled.refused[row] = u8::from(inner.first() == Some(&b'-'));
        }
        peeled
    }

    #[inline(always)]
    fn inner<'m>(&'m mut self, tile: Tile<'m, 'm>) -> Tile<'m, 'm> {
        tile.peeled(&self.front[..self.rows], &self.behind[..self.rows], &mut self.memory)
    }
}

impl<B: Base> Numbers<'_, B> {
    /// The loops over digits, a minus in front, and marks.
    #[inline(always)]
    fn digits_of_tile(&self, tile: Tile<'_, '_>, values: &mut [B::Value], inexact: &mut [u8]) -> bool {
        let (grouping, is_optional) = match self.rules.loops {
            Loops::None => return false,
            Loops::Plain => (None, true),
            Loops::Grouped(grouping, is_optional) => (Some(grouping).filter(|_| B::HAS_GROUPS), is_optional),
        };
        let order = match grouping {
            None if is_optional => [Some(None), None],
            None => return false,
            // A group at most has no marks.
            Some(_) if tile.longest() <= GROUP => [Some(None), None],
            Some(_) if !is_optional => [Some(grouping), None],
            // As the first row looks, but for its first group, which has no marks.
            Some(_) if self.rules.has_mark(tile) => [Some(grouping), Some(None)],
            Some(_) => [Some(None), Some(grouping)],
        };
        try_ways(&Digits(&self.base), order.into_iter().flatten(), tile, values, inexact)
    }
}

/// The loops of a type: digits in groups, or not (none).
struct Digits<'b, B>(&'b B);

impl<B: Base> Ways<Option<Grouping>> for Digits<'_, B> {
    type Value = B::Value;

    #[inline(always)]
    fn run(&self, grouping: Option<Grouping>, tile: Tile<'_, '_>, values: &mut [B::Value], inexact: &mut [u8]) {
        let is_known = match grouping {
            None => self.0.convert_tile(tile, values, inexact),
            Some(grouping) => self.0.grouped_tile(grouping, tile, values, inexact),
        };
        if !is_known {
            inexact.fill(1);
        }
    }
}

impl<B: Base> Numbers<'_, B> {
    /// The value of a text; if it is `cut`, without the digits that are too many.
    fn read(&self, field: Field<'_>, cut: bool) -> Result<B::Value, Rule> {
        let text = field.bytes();
        if self.rules.hex {
            return self.hexadecimal(text);
        }
        if B::IS_FLOATING && is_word(text) {
            return self.base.convert(field);
        }
        let mut canonical = Canonical::new();
        let exponent = self.rules.squeeze(text, self.base.point(), B::IS_WHOLE, &mut canonical).ok_or(B::BAD)?;
        match exponent {
            None => {}
            Some(exponent) if B::IS_FLOATING => {
                checked_exponent(exponent).ok_or(B::BAD)?;
                canonical.push(b'e');
                exponent.iter().for_each(|&byte| canonical.push(byte));
            }
            Some(exponent) => {
                return self.shifted(canonical.bytes(), checked_exponent(exponent).ok_or(B::BAD)?, cut);
            }
        }
        self.base_value(canonical.field().ok_or(B::BAD)?, cut)
    }

    fn base_value(&self, field: Field<'_>, cut: bool) -> Result<B::Value, Rule> {
        if cut { self.base.convert_cut(field) } else { self.base.convert(field) }
    }

    /// `[sign][0x]digits`
    fn hexadecimal(&self, text: &[u8]) -> Result<B::Value, Rule> {
        let (negative, digits) = self.rules.peel(text);
        let digits = digits.strip_prefix(b"0x").or_else(|| digits.strip_prefix(b"0X")).unwrap_or(digits);
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(B::BAD);
        }
        let mut number: i128 = 0;
        for &digit in digits {
            let digit = i128::from(char::from(digit).to_digit(16).unwrap_or_default());
            number = number.checked_mul(16).and_then(|number| number.checked_add(digit)).ok_or(Rule::OutOfRange)?;
        }
        self.base.of_whole(if negative { -number } else { number })
    }

    /// The value of `[-]digits[point digits]` times ten to the power of `exponent`.
    fn shifted(&self, text: &[u8], exponent: i64, cut: bool) -> Result<B::Value, Rule> {
        // Numbers of more digits than these are out of every range, or round in every scale.
        const MOST_BEFORE_POINT: i64 = 40;
        const MOST_BEHIND_POINT: i64 = 60;
        let (negative, unsigned) = match text {
            [b'-', unsigned @ ..] => (true, unsigned),
            unsigned => (false, unsigned),
        };
        let point = unsigned.iter().position(|&byte| !byte.is_ascii_digit());
        let digits: Vec<u8> = unsigned.iter().copied().filter(u8::is_ascii_digit).collect();
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let digits = &digits[zeros..];
        let before = point.unwrap_or(unsigned.len()) as i64 - zeros as i64 + exponent;
        let mut canonical = Canonical::new();
        if negative {
            canonical.push(b'-');
        }
        if digits.is_empty() {
            canonical.push(b'0');
            return self.base.convert(canonical.field().ok_or(B::BAD)?);
        }
        if before > MOST_BEFORE_POINT {
            return Err(Rule::OutOfRange);
        }
        if before < -MOST_BEHIND_POINT {
            canonical.push(b'0');
            return match cut {
                true => self.base.convert(canonical.field().ok_or(B::BAD)?),
                false => Err(Rule::WouldRound),
            };
        }
        let place = usize::try_from(before).unwrap_or(0);
        let (whole, fraction) = digits.split_at(place.min(digits.len()));
        canonical.push(b'0');
        whole.iter().for_each(|&digit| canonical.push(digit));
        (whole.len()..place).for_each(|_| canonical.push(b'0'));
        if !B::IS_WHOLE {
            canonical.push(self.base.point());
            (before..0).for_each(|_| canonical.push(b'0'));
            fraction.iter().for_each(|&digit| canonical.push(digit));
        }
        let value = self.base_value(canonical.field().ok_or(B::BAD)?, cut)?;
        let rounds = !cut && B::IS_WHOLE && fraction.iter().any(|&digit| digit != b'0');
        if rounds { Err(Rule::WouldRound) } else { Ok(value) }
    }
}

/// `[+-]digits`; very large ones are as good as any.
fn checked_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add((digit - b'0').into()));
    // Texts are shorter than 2^32 bytes: what is larger cannot be made up for by digits.
    let number = number.min(1 << 40);
    Some(if negative { -number } else { number })
}

/// Infinity or no number, which have no marks.
fn is_word(text: &[u8]) -> bool {
    let word = match text {
        [b'+' | b'-', word @ ..] => word,
        word => word,
    };
    word.eq_ignore_ascii_case(b"nan") || word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"infinity")
}
