//! Exact decimal numbers from `numeric_send` of the server's `numeric.c`: four 16-bit numbers (count of digits, weight of the
//! first digit, sign, decimal digits to show behind the point), then the digits: 16-bit numbers in base 10000.

use arrow_array::types::{ArrowPrimitiveType, Decimal64Type, Decimal128Type};
use arrow_schema::DataType;

use super::error::Fault;
use super::values::{Values, primitive};

const GROUP: u16 = 10_000;
const GROUP_DECIMALS: i32 = 4;
const HEADER_BYTES: usize = 8;
const POSITIVE: u16 = 0x0000;
const NEGATIVE: u16 = 0x4000;
const NOT_A_NUMBER: u16 = 0xC000;
const INFINITY: u16 = 0xD000;
const NEGATIVE_INFINITY: u16 = 0xF000;
/// The largest power of ten in 128 bits.
const MOST_DECIMALS: i32 = 38;
const FINITE: &str = "a finite number";
const FITTING: &str = "a number of the digits of its column";
/// Most digits of a number that are shown.
const SHOWN_CHARACTERS: usize = 80;

/// Decimals in their narrow or wide form.
pub(super) trait Unscaled: ArrowPrimitiveType {
    fn of(value: i128) -> Option<Self::Native>;
}

impl Unscaled for Decimal64Type {
    fn of(value: i128) -> Option<i64> {
        i64::try_from(value).ok()
    }
}

impl Unscaled for Decimal128Type {
    fn of(value: i128) -> Option<i128> {
        Some(value)
    }
}

/// Numbers with `precision` decimal digits, `scale` of them behind the point.
pub(super) fn decimals<T: Unscaled>(arrow_type: DataType, precision: u8, scale: u8) -> Box<dyn Values> {
    let end = 10u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
    primitive::<T>(arrow_type, move |bytes| {
        let number = Number::read(bytes)?;
        let fits = |value: &i128| value.unsigned_abs() < end;
        let value = number.unscaled(scale.into()).filter(fits).and_then(T::of);
        value.ok_or_else(|| Fault::value(number.shown(), FITTING))
    })
}

/// A finite number.
struct Number<'a> {
    /// In base 10000, two bytes each.
    digits: &'a [u8],
    /// The first digit counts 10000 to this power.
    weight: i16,
    is_negative: bool,
    /// Decimal digits behind the point, as the server shows it.
    shown_scale: i16,
}

impl<'a> Number<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Fault> {
        let Some((header, digits)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(Fault::Malformed(format!("a numeric of {} bytes", bytes.len())));
        };
        let [c0, c1, w0, w1, s0, s1, d0, d1] = *header;
        let is_negative = match u16::from_be_bytes([s0, s1]) {
            POSITIVE => false,
            NEGATIVE => true,
            NOT_A_NUMBER => return Err(Fault::value("NaN", FINITE)),
            INFINITY => return Err(Fault::value("Infinity", FINITE)),
            NEGATIVE_INFINITY => return Err(Fault::value("-Infinity", FINITE)),
            other => return Err(Fault::Malformed(format!("the sign {other:#06x} of a numeric"))),
        };
        if digits.len() != 2 * usize::from(u16::from_be_bytes([c0, c1])) {
            return Err(Fault::Malformed(format!("{} bytes for the digits of a numeric", digits.len())));
        }
        let number = Number {
            digits,
            weight: i16::from_be_bytes([w0, w1]),
            is_negative,
            shown_scale: i16::from_be_bytes([d0, d1]),
        };
        if let Some(group) = number.groups().find(|group| *group >= GROUP) {
            return Err(Fault::Malformed(format!("the digit {group} of a numeric")));
        }
        Ok(number)
    }

    fn groups(&self) -> impl Iterator<Item = u16> + '_ {
        self.digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte)))
    }

    /// The number times ten to the power of `scale`; None if that is no whole number, or too large.
    fn unscaled(&self, scale: i32) -> Option<i128> {
        let mut value: i128 = 0;
        for (place, group) in (0i32..).zip(self.groups()) {
            if group == 0 {
                continue; // wherever it stands
            }
            let decimals = (i32::from(self.weight) - place) * GROUP_DECIMALS + scale;
            let (group, power) = (i128::from(group), power_of_ten(decimals.abs())?);
            let share = match decimals {
                0.. => group.checked_mul(power)?,
                _ if group % power == 0 => group / power,
                _ => return None,
            };
            value = value.checked_add(share)?;
        }
        Some(if self.is_negative { -value } else { value })
    }

    /// As the server writes it, or the front of that.
    fn shown(&self) -> String {
        let groups: Vec<u16> = self.groups().take(SHOWN_CHARACTERS).collect();
        let group = |place: i32| usize::try_from(place).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
        let weight = i32::from(self.weight);
        let most = SHOWN_CHARACTERS as i32;
        let whole: String =
            (0..=weight.clamp(0, most)).map(|place| format!("{:04}", group(place + weight.min(0)))).collect();
        let whole = if weight < 0 { "0" } else { whole.trim_start_matches('0') };
        let scale = i32::from(self.shown_scale).clamp(0, most);
        let places = (scale + GROUP_DECIMALS - 1) / GROUP_DECIMALS;
        let fraction: String = (1..=places).map(|place| format!("{:04}", group(weight + place))).collect();
        let fraction = fraction.get(..usize::try_from(scale).unwrap_or(0)).unwrap_or(&fraction);
        let sign = if self.is_negative { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        let whole = if whole.is_empty() { "0" } else { whole };
        let text = format!("{sign}{whole}{point}{fraction}");
        match text.char_indices().nth(SHOWN_CHARACTERS) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(&text)),
            None => text,
        }
    }
}

fn power_of_ten(decimals: i32) -> Option<i128> {
    let decimals = u32::try_from(decimals).ok()?;
    if decimals > MOST_DECIMALS as u32 { None } else { 10i128.checked_pow(decimals) }
}
