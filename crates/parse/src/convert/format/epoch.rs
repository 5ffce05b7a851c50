//! Timestamps as numbers: seconds, milliseconds or microseconds since 1970-01-01 00:00 UTC.

use headrace_types::{EpochUnit, Rule};

use super::super::Convert;
use super::super::number::{Decimal, numbers};
use crate::raw::fields::{Field, Tile};

/// 0001-01-01 00:00:00 and 9999-12-31 23:59:59.999999 in microseconds: the first and last timestamp of a text.
const FIRST: i64 = -62_135_596_800_000_000;
const LAST: i64 = 253_402_300_799_999_999;

/// `[+-]digits[.digits]` of a unit.
#[derive(Debug, Clone, Copy)]
pub struct Epoch {
    /// Digits behind the point of a whole number of microseconds.
    scale: u8,
    unit_microseconds: i64,
}

impl Epoch {
    /// Counts of this unit.
    pub fn new(unit: EpochUnit) -> Self {
        Epoch { scale: unit.scale(), unit_microseconds: 10_i64.pow(unit.scale().into()) }
    }
}

impl Epoch {
    fn read(self, read: impl FnOnce(Decimal<i64>) -> Result<i64, Rule>) -> Result<i64, Rule> {
        // Any timestamp has fewer digits.
        let microseconds = read(Decimal::<i64>::new(18, self.scale, b'.')).map_err(|rule| match rule {
            Rule::BadDecimal => Rule::BadTimestamp,
            rule => rule,
        })?;
        if (FIRST..=LAST).contains(&microseconds) { Ok(microseconds) } else { Err(Rule::OutOfRange) }
    }
}

impl Convert for Epoch {
    type Value = i64;

    fn convert(&self, field: Field<'_>) -> Result<i64, Rule> {
        self.read(|number| number.convert(field))
    }

    fn convert_cut(&self, field: Field<'_>) -> Result<i64, Rule> {
        self.read(|number| number.convert_cut(field))
    }

    #[inline(always)]
    fn convert_tile(&self, tile: Tile<'_, '_>, values: &mut [i64], inexact: &mut [u8]) -> bool {
        let unit = self.unit_microseconds;
        let (first, last) = (FIRST / unit, LAST / unit);
        numbers(tile, &None, values, inexact, |number| {
            (number.wrapping_mul(unit), u64::from(number < first) | u64::from(number > last))
        });
        true
    }
}
