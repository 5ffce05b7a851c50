//! Whole numbers, decimals, truth values.

use headrace_types::Rule;

use super::Convert;
use super::digits::{LongDigits, Point, fixed_number, long_digits, scaled_number, up_to_16_digits};
use super::format::{Base, Grouping, grouped_numbers};
use super::ways::{Ways, try_ways};
use crate::raw::fields::{Field, Tile};

/// Integer types of a column.
pub trait Integer: crate::raw::memory::Plain + Default + TryFrom<i128> + TryFrom<i64> {
    /// The value, and whether (not 0) it does not fit.
    fn wrap(number: i64) -> (Self, u64);
    /// The value with the other sign.
    fn negated(self) -> Self;
}

macro_rules! integer {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            #[inline(always)]
            fn wrap(number: i64) -> (Self, u64) {
                let value = number as $type;
                (value, (i64::from(value) ^ number) as u64)
            }

            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }
        }
    )*};
}
integer!(i16, i32, i64);

/// How the characters of a number are read.
pub trait Read {
    /// The number of the last `length` characters of `words`, and whether (not 0) they are something else.
    fn read<const N: usize>(&self, words: [u64; N], length: u64) -> (i64, u64);
}

/// Digits, and a point at one place if there is one.
impl Read for Option<Point> {
    #[inline(always)]
    fn read<const N: usize>(&self, words: [u64; N], length: u64) -> (i64, u64) {
        fixed_number(words, length, *self)
    }
}

/// Digits, and a point before any of the last `scale` ones.
struct AnyPoint {
    mark: u8,
    scale: u32,
}

impl Read for AnyPoint {
    #[inline(always)]
    fn read<const N: usize>(&self, words: [u64; N], length: u64) -> (i64, u64) {
        scaled_number(words, length, self.mark, self.scale)
    }
}

/// Numbers of a tile by `finish`, which makes a value of the number and says (not 0) when there is none.
#[inline(always)]
pub fn numbers<T>(
    tile: Tile<'_, '_>,
    reading: &impl Read,
    values: &mut [T],
    inexact: &mut [u8],
    finish: impl Fn(i64) -> (T, u64),
) {
    match tile.longest() {
        ..=8 => numbers_of::<T, 1>(tile, reading, values, inexact, finish),
        9..=16 => numbers_of::<T, 2>(tile, reading, values, inexact, finish),
        _ => numbers_of::<T, 3>(tile, reading, values, inexact, finish),
    }
}

/// The same for up to 8 N characters.
#[inline(always)]
fn numbers_of<T, const N: usize>(
    tile: Tile<'_, '_>,
    reading: &impl Read,
    values: &mut [T],
    inexact: &mut [u8],
    finish: impl Fn(i64) -> (T, u64),
) {
    let words = tile.last_words::<N>();
    let rows = tile.rows();
    let (starts, ends) = (&tile.starts()[..rows], &tile.ends()[..rows]);
    let (values, inexact) = (&mut values[..rows], &mut inexact[..rows]);
    for row in 0..rows {
        let length = u64::from(ends[row] - starts[row]);
        let (number, wrong) = reading.read(std::array::from_fn::<_, N, _>(|index| words[index][row]), length);
        let (value, unfit) = finish(number);
        values[row] = value;
        inexact[row] = u8::from(wrong | unfit != 0);
    }
}

/// Whole numbers: `[+-]digits`.
pub struct Whole<T>(std::marker::PhantomData<T>);

impl<T> Default for Whole<T> {
    fn default() -> Self {
        Whole(std::marker::PhantomData)
    }
}

impl<T: Integer> Convert for Whole<T> {
    type Value = T;

    #[inline(always)]
    fn convert(&self, field: Field<'_>) -> Result<T, Rule> {
        let length = field.len();
        if length.wrapping_sub(1) < 16
            && let Some(number) = up_to_16_digits(&field, 0, length)
        {
            return T::try_from(number as i64).map_err(|_| Rule::OutOfRange);
        }
        whole_carefully(field.bytes())
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) -> bool {
        numbers(tile, &None, values, inexact, T::wrap);
        true
    }
}

impl<T: Integer> Base for Whole<T> {
    const BAD: Rule = Rule::BadInteger;
    const HAS_GROUPS: bool = true;
    const IS_WHOLE: bool = true;

    #[inline(always)]
    fn negated(value: T) -> T {
        value.negated()
    }

    fn of_whole(&self, number: i128) -> Result<T, Rule> {
        T::try_from(number).map_err(|_| Rule::OutOfRange)
    }

    #[inline(always)]
    fn grouped_tile(&self, grouping: Grouping, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) -> bool {
        grouped_numbers(tile, None, grouping, values, inexact, T::wrap);
        true
    }
}

/// Signs, more than 16 digits, errors.
#[inline(never)]
fn whole_carefully<T: Integer>(characters: &[u8]) -> Result<T, Rule> {
    let (negative, digits) = sign(characters);
    if digits.is_empty() {
        return Err(Rule::BadInteger);
    }
    match long_digits(digits) {
        Ok(number) => {
            let number = number as i128; // at most i128::MAX, see long_digits
            T::try_from(if negative { -number } else { number }).map_err(|_| Rule::OutOfRange)
        }
        Err(LongDigits::TooLarge) => Err(Rule::OutOfRange),
        Err(LongDigits::NotADigit) => Err(Rule::BadInteger),
    }
}

/// Takes off one sign; true when it is a minus.
fn sign(characters: &[u8]) -> (bool, &[u8]) {
    match characters {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, characters),
    }
}

/// Unscaled integers of a decimal column: i64 up to 18 digits, i128 up to 38.
pub trait Unscaled: crate::raw::memory::Plain + Default + TryFrom<i128> {
    /// From a number known to fit.
    fn from_i64(number: i64) -> Self;
    /// The number with the other sign.
    fn negated(self) -> Self;
}

impl Unscaled for i64 {
    #[inline(always)]
    fn from_i64(number: i64) -> Self {
        number
    }

    #[inline(always)]
    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

impl Unscaled for i128 {
    #[inline(always)]
    fn from_i64(number: i64) -> Self {
        i128::from(number)
    }

    #[inline(always)]
    fn negated(self) -> Self {
        self.wrapping_neg()
    }
}

/// Decimal numbers: `[+-]digits[.digits]` with any point of one byte, exact.
pub struct Decimal<T> {
    scale: u32,
    /// Largest unscaled value + 1: 10^precision.
    limit: u128,
    /// The same for the quick path, at most `i64::MAX`.
    quick_limit: u64,
    /// 10^scale, 0 when the quick path cannot be used (scale above 8).
    quick_scale: u64,
    /// What stands between the digits before and behind the point.
    point: u8,
    marker: std::marker::PhantomData<T>,
}

impl<T> Decimal<T> {
    /// Precision 1..=38, scale 0..=precision.
    pub fn new(precision: u8, scale: u8, point: u8) -> Self {
        let limit = 10_u128.pow(u32::from(precision));
        Decimal {
            scale: u32::from(scale),
            limit,
            quick_limit: u64::try_from(limit).unwrap_or(u64::MAX).min(i64::MAX as u64),
            quick_scale: if scale <= 8 { 10_u64.pow(u32::from(scale)) } else { 0 },
            point,
            marker: std::marker::PhantomData,
        }
    }

    /// The point of texts that the loops know; none where they know no texts.
    #[inline(always)]
    fn fixed_point(&self) -> Option<Option<Point>> {
        let point = Point::new(self.scale, self.point);
        (point.is_some() || self.scale == 0).then_some(point)
    }
}

impl<T: Unscaled> Convert for Decimal<T> {
    type Value = T;

    #[inline(always)]
    fn convert(&self, field: Field<'_>) -> Result<T, Rule> {
        match self.quick(&field) {
            Some(number) if number < self.quick_limit => Ok(T::from_i64(number as i64)),
            _ => self.carefully(field.bytes(), false),
        }
    }

    fn convert_cut(&self, field: Field<'_>) -> Result<T, Rule> {
        self.carefully(field.bytes(), true)
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) -> bool {
        self.try_points(None, tile, values, inexact)
    }
}

impl<T: Unscaled> Base for Decimal<T> {
    const BAD: Rule = Rule::BadDecimal;
    const HAS_GROUPS: bool = true;

    fn point(&self) -> u8 {
        self.point
    }

    #[inline(always)]
    fn negated(value: T) -> T {
        value.negated()
    }

    fn of_whole(&self, number: i128) -> Result<T, Rule> {
        let scaled = number.unsigned_abs().checked_mul(10_u128.pow(self.scale)).filter(|&scaled| scaled < self.limit);
        let scaled = scaled.ok_or(Rule::OutOfRange)? as i128; // below 10^38 < i128::MAX
        T::try_from(if number < 0 { -scaled } else { scaled }).map_err(|_| Rule::OutOfRange)
    }

    #[inline(always)]
    fn grouped_tile(&self, grouping: Grouping, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) -> bool {
        self.try_points(Some(grouping), tile, values, inexact)
    }
}

/// Where decimals have their point.
#[derive(Clone, Copy)]
enum PointPlace {
    /// Before so many digits as the type has behind it.
    Scale(Point),
    /// Nowhere.
    None,
    /// Before any that many digits or fewer, or nowhere.
    Any,
}

/// The loops of decimals, with digits in groups or not.
struct Points<'d, T> {
    decimal: &'d Decimal<T>,
    grouping: Option<Grouping>,
}

impl<T: Unscaled> Ways<PointPlace> for Points<'_, T> {
    type Value = T;

    #[inline(always)]
    fn run(&self, place: PointPlace, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) {
        let Decimal { scale, quick_limit, point, .. } = *self.decimal;
        // Whole numbers of a type with a point lack its digits.
        let factor = if let PointPlace::None = place { self.decimal.quick_scale.max(1) as i64 } else { 1 };
        let limit = quick_limit.div_ceil(factor as u64);
        let finish =
            |number: i64| (T::from_i64(number.wrapping_mul(factor)), u64::from(number.unsigned_abs() >= limit));
        let at = if let PointPlace::Scale(point) = place { Some(point) } else { None };
        match (self.grouping, place) {
            (None, PointPlace::Any) => numbers(tile, &AnyPoint { mark: point, scale }, values, inexact, finish),
            (None, _) => numbers(tile, &at, values, inexact, finish),
            (Some(grouping), _) => grouped_numbers(tile, at, grouping, values, inexact, finish),
        }
    }
}

/// Rows of a tile that say how its texts may look.
const SAMPLES: usize = 4;

impl<T: Unscaled> Decimal<T> {
    /// How many of some rows have the point at its place.
    #[inline(always)]
    fn samples_with_point(&self, tile: Tile<'_, '_>, point: Point) -> usize {
        let Some(last) = tile.rows().checked_sub(1) else { return 0 };
        let has_point = |row: usize| tile.field(row).byte_before(point.bytes() as usize) == self.point;
        (0..SAMPLES).filter(|sample| has_point(last * sample / (SAMPLES - 1))).count()
    }

    /// Texts like those of some rows, then the others.
    #[inline(always)]
    fn try_points(&self, grouping: Option<Grouping>, tile: Tile<'_, '_>, values: &mut [T], inexact: &mut [u8]) -> bool {
        use PointPlace::{Any, None as Nowhere, Scale};
        let order = match self.fixed_point() {
            None => return false,
            Some(None) => [Some(Nowhere), None],
            Some(Some(point)) => {
                let with_point = self.samples_with_point(tile, point);
                match grouping {
                    None if with_point == 0 => [Some(Nowhere), Some(Any)],
                    None if with_point == SAMPLES => [Some(Scale(point)), Some(Any)],
                    None => [Some(Any), None],
                    Some(_) if with_point == 0 => [Some(Nowhere), Some(Scale(point))],
                    Some(_) => [Some(Scale(point)), Some(Nowhere)],
                }
            }
        };
        let ways = Points { decimal: self, grouping };
        try_ways(&ways, order.into_iter().flatten(), tile, values, inexact)
    }
}

impl<T: Unscaled> Decimal<T> {
    /// The common forms: up to 8 digits before a point that is followed by exactly `scale` digits, or up to 8 digits alone.
    #[inline(always)]
    fn quick(&self, field: &Field<'_>) -> Option<u64> {
        let scale = self.scale as usize;
        let length = field.len();
        if self.quick_scale == 0 {
            return None;
        }
        let whole = length.wrapping_sub(scale + 1);
        if scale > 0 && whole.wrapping_sub(1) < 8 && field.byte_before(scale + 1) == self.point {
            let fraction = up_to_16_digits(field, 0, scale)?;
            return Some(up_to_16_digits(field, scale + 1, whole)? * self.quick_scale + fraction);
        }
        if length.wrapping_sub(1) < 8 {
            return Some(up_to_16_digits(field, 0, length)? * self.quick_scale);
        }
        None
    }

    /// Every accepted form, and the rule that others break; if it is `cut`, without the digits that are too many.
    #[inline(never)]
    fn carefully(&self, characters: &[u8], cut: bool) -> Result<T, Rule> {
        let (negative, unsigned) = sign(characters);
        let point = unsigned.iter().position(|&character| character == self.point);
        let (whole, fraction) = match point {
            Some(at) => (&unsigned[..at], &unsigned[at + 1..]),
            None => (unsigned, &[][..]),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(Rule::BadDecimal);
        }
        let (kept, surplus) = fraction.split_at(fraction.len().min(self.scale as usize));
        if !surplus.iter().all(u8::is_ascii_digit) {
            return Err(Rule::BadDecimal);
        }
        let number = match (long_digits(whole), long_digits(kept)) {
            (Err(LongDigits::NotADigit), _) | (_, Err(LongDigits::NotADigit)) => return Err(Rule::BadDecimal),
            (Err(LongDigits::TooLarge), _) | (_, Err(LongDigits::TooLarge)) => return Err(Rule::OutOfRange),
            (Ok(before_point), Ok(after_point)) => {
                let after_point = after_point * 10_u128.pow(self.scale - kept.len() as u32);
                before_point.checked_mul(10_u128.pow(self.scale)).and_then(|scaled| scaled.checked_add(after_point))
            }
        };
        let number = number.filter(|&number| number < self.limit).ok_or(Rule::OutOfRange)?;
        if !cut && surplus.iter().any(|&digit| digit != b'0') {
            return Err(Rule::WouldRound);
        }
        let number = number as i128; // below 10^38 < i128::MAX
        T::try_from(if negative { -number } else { number }).map_err(|_| Rule::OutOfRange)
    }
}

/// Truth values; 0 or 1 per row, packed into bits by the caller.
pub struct Truth;

impl Convert for Truth {
    type Value = u8;

    #[inline(always)]
    fn convert(&self, field: Field<'_>) -> Result<u8, Rule> {
        const LONGEST: usize = 5;
        let characters = field.bytes();
        let mut small = [0; LONGEST];
        let small = small.get_mut(..characters.len()).ok_or(Rule::BadBool)?;
        for (small, character) in std::iter::zip(&mut *small, characters) {
            *small = character.to_ascii_lowercase();
        }
        match &*small {
            b"true" | b"t" | b"1" | b"yes" | b"y" => Ok(1),
            b"false" | b"f" | b"0" | b"no" | b"n" => Ok(0),
            _ => Err(Rule::BadBool),
        }
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [u8], inexact: &mut [u8]) -> bool {
        if tile.longest() > 1 {
            return false;
        }
        for ((value, inexact), field) in std::iter::zip(values, inexact).zip(tile.places()) {
            let character = field.byte_before(1);
            *value = u8::from(matches!(character, b'1' | b't' | b'T' | b'y' | b'Y'));
            let is_false = matches!(character, b'0' | b'f' | b'F' | b'n' | b'N');
            *inexact = u8::from(field.len() == 0) | u8::from(*value == u8::from(is_false));
        }
        true
    }
}
