//! Values that always take the same number of bytes.

use std::ops::Range;

use arrow_array::BooleanArray;
use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_buffer::NullBuffer;

use super::slots::{Fault, LENGTH_BYTES, Slots, nulls_of};
use crate::postgres::plan::Encoding;

/// Bytes of a number in network order.
pub(crate) trait Wire<const WIDTH: usize>: Copy {
    fn to_wire(self) -> [u8; WIDTH];
}

macro_rules! wire {
    ($($type:ty),*) => {$(
        impl Wire<{ size_of::<$type>() }> for $type {
            fn to_wire(self) -> [u8; size_of::<$type>()] {
                self.to_be_bytes()
            }
        }
    )*};
}
wire!(i16, i32, i64, f32, f64);

/// Numbers of type `S` as `W`, which holds every one of them; a number that it does not hold is refused.
pub(crate) fn exact<S, W, const WIDTH: usize>() -> Encoding
where
    S: ArrowPrimitiveType,
    W: TryFrom<S::Native> + Wire<WIDTH>,
{
    checked::<S, WIDTH>(|value| W::try_from(value).ok().map(W::to_wire))
}

/// Values of type `S`, converted by `convert`; `None` is a value that the form does not hold.
pub(crate) fn checked<S: ArrowPrimitiveType, const WIDTH: usize>(
    convert: impl Fn(S::Native) -> Option<[u8; WIDTH]> + Send + Sync + 'static,
) -> Encoding {
    Encoding::bounded(LENGTH_BYTES + WIDTH, move |array, slots| {
        let array = array.as_primitive_opt::<S>().ok_or_else(|| Fault::of_type(array))?;
        let values = &array.values()[slots.rows()];
        write(slots, nulls_of(array), |row| convert(values[row]))
            .map_err(|row| Fault { row, found: format!("{:?}", array.value(row)) })
    })
}

/// Truth values.
pub(crate) fn truth() -> Encoding {
    Encoding::bounded(LENGTH_BYTES + 1, |array, slots| {
        let array: &BooleanArray = array.as_boolean_opt().ok_or_else(|| Fault::of_type(array))?;
        let first = slots.rows().start;
        write(slots, nulls_of(array), |row| Some([u8::from(array.value(first + row))]))
            .map_err(|row| Fault { row, found: format!("{}", array.value(row)) })
    })
}

/// 128-bit identifiers.
pub(crate) fn uuid() -> Encoding {
    Encoding::bounded(LENGTH_BYTES + 16, |array, slots| {
        let array = array.as_fixed_size_binary_opt().ok_or_else(|| Fault::of_type(array))?;
        let first = slots.rows().start;
        write(slots, nulls_of(array), |row| <[u8; 16]>::try_from(array.value(first + row)).ok())
            .map_err(|row| Fault { row, found: format!("{:02x?}", array.value(row)) })
    })
}

/// Appends values of `WIDTH` bytes: `value` gives that of a row, counted from the first of the tile, if the form holds it.
///
/// # Errors
/// The first row of the batch whose value is `None`.
#[inline(always)]
fn write<const WIDTH: usize>(
    slots: &mut Slots,
    nulls: Option<&NullBuffer>,
    value: impl Fn(usize) -> Option<[u8; WIDTH]>,
) -> Result<(), usize> {
    let mut is_bad = false;
    slots.append(LENGTH_BYTES + WIDTH, nulls, |row, place| {
        let bytes = value(row);
        is_bad |= bytes.is_none();
        place[..LENGTH_BYTES].copy_from_slice(&(WIDTH as u32).to_be_bytes());
        place[LENGTH_BYTES..].copy_from_slice(&bytes.unwrap_or([0; WIDTH]));
        LENGTH_BYTES + WIDTH
    });
    // What stands in the place of a NULL is no value.
    let rows = slots.rows();
    let is_bad_row = |row: &usize| value(row - rows.start).is_none() && nulls.is_none_or(|nulls| nulls.is_valid(*row));
    is_bad.then(|| rows.clone().find(is_bad_row)).flatten().map_or(Ok(()), Err)
}

// Limits of the server, from its `datatype/timestamp.h`, relative to 2000-01-01. The smallest and the largest number of a
// type mean minus and plus infinity there and are outside of them.
const DAYS_1970_TO_2000: i32 = 10_957;
const DAYS: Range<i32> = -2_451_545..2_145_031_949; // 4714-11-24 BC to 5874898-01-01
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
const MICROSECONDS: Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000; // 4714-11-24 BC to 294277-01-01

/// Days since 1970-01-01.
#[inline(always)]
pub(crate) fn date(days: i32) -> Option<[u8; 4]> {
    let days = days.checked_sub(DAYS_1970_TO_2000)?;
    DAYS.contains(&days).then_some(days.to_be_bytes())
}

/// Days since 1970-01-01, as the timestamp at which the day begins.
#[inline(always)]
pub(crate) fn midnight(days: i32) -> Option<[u8; 8]> {
    let microseconds = (i64::from(days) - i64::from(DAYS_1970_TO_2000)).checked_mul(MICROSECONDS_PER_DAY)?;
    MICROSECONDS.contains(&microseconds).then_some(microseconds.to_be_bytes())
}

/// Microseconds since midnight. The server has 24:00:00 as well.
#[inline(always)]
pub(crate) fn time(microseconds: i64) -> Option<[u8; 8]> {
    (0..=MICROSECONDS_PER_DAY).contains(&microseconds).then_some(microseconds.to_be_bytes())
}

/// Microseconds since 1970-01-01.
#[inline(always)]
pub(crate) fn timestamp(microseconds: i64) -> Option<[u8; 8]> {
    let microseconds = microseconds.checked_sub(DAYS_1970_TO_2000 as i64 * MICROSECONDS_PER_DAY)?;
    MICROSECONDS.contains(&microseconds).then_some(microseconds.to_be_bytes())
}
