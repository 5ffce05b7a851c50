//! Values of a column that orders or names rows: as whole numbers, whatever their type.

use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, types};

/// A whole number, an unscaled decimal, days or microseconds since 1970, as the column's type says.
pub type Key = i128;

/// The keys of a batch; values behind nulls mean nothing.
#[derive(Debug, Clone, Copy)]
pub enum Keys<'a> {
    /// 16 bits each.
    Bits16(&'a [i16]),
    /// 32 bits each.
    Bits32(&'a [i32]),
    /// 64 bits each.
    Bits64(&'a [i64]),
    /// 128 bits each.
    Bits128(&'a [i128]),
}

impl<'a> Keys<'a> {
    /// The keys of a column of whole numbers, decimals, dates, times or timestamps; `None` for another one.
    pub fn of(column: &'a dyn Array) -> Option<Keys<'a>> {
        use types::*;
        values::<Int64Type>(column)
            .or_else(|| values::<Decimal64Type>(column))
            .or_else(|| values::<TimestampMicrosecondType>(column))
            .or_else(|| values::<Time64MicrosecondType>(column))
            .map(Keys::Bits64)
            .or_else(|| values::<Int32Type>(column).or_else(|| values::<Date32Type>(column)).map(Keys::Bits32))
            .or_else(|| values::<Int16Type>(column).map(Keys::Bits16))
            .or_else(|| values::<Decimal128Type>(column).map(Keys::Bits128))
    }

    /// The key of a row that exists.
    pub fn at(self, row: usize) -> Key {
        match self {
            Keys::Bits16(values) => values[row].into(),
            Keys::Bits32(values) => values[row].into(),
            Keys::Bits64(values) => values[row].into(),
            Keys::Bits128(values) => values[row],
        }
    }

    /// Least and greatest key; `None` without rows.
    pub fn range(self) -> Option<(Key, Key)> {
        match self {
            Keys::Bits16(values) => range(values),
            Keys::Bits32(values) => range(values),
            Keys::Bits64(values) => range(values),
            Keys::Bits128(values) => range(values),
        }
    }

    /// Calls `each` with every key, in order.
    pub fn for_each(self, mut each: impl FnMut(Key)) {
        match self {
            Keys::Bits16(values) => values.iter().for_each(|&value| each(value.into())),
            Keys::Bits32(values) => values.iter().for_each(|&value| each(value.into())),
            Keys::Bits64(values) => values.iter().for_each(|&value| each(value.into())),
            Keys::Bits128(values) => values.iter().for_each(|&value| each(value)),
        }
    }
}

/// A loop that is vectorised.
fn range<T: Copy + Ord + Into<Key>>(values: &[T]) -> Option<(Key, Key)> {
    let first = *values.first()?;
    let wider = |(least, greatest): (T, T), &value: &T| (least.min(value), greatest.max(value));
    let (least, greatest) = values.iter().fold((first, first), wider);
    Some((least.into(), greatest.into()))
}

fn values<T: ArrowPrimitiveType>(column: &dyn Array) -> Option<&[T::Native]> {
    column.as_any().downcast_ref::<PrimitiveArray<T>>().map(|array| array.values().as_ref())
}
