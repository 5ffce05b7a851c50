//! Which column type goes into which form without loss, and how.

use arrow_array::Array;
use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use headrace_types::ColumnType;

use super::Form;
use super::encode::fixed::{self, exact};
use super::encode::numeric;
use super::encode::slots::{Fault, Slots};
use super::encode::text::Text;

/// Appends a column's values in the rows of the tile, one to each.
pub(super) type Fill = dyn Fn(&dyn Array, &mut Slots) -> Result<(), Fault> + Send + Sync;

/// How the values of a column are written.
pub(super) enum Encoding {
    /// Numbers and the like: a value takes at most `room` bytes with its length.
    Bounded { room: usize, fill: Box<Fill> },
    /// Bytes, most of them as they are.
    Text(Text),
}

impl Encoding {
    pub(super) fn bounded(
        room: usize,
        fill: impl Fn(&dyn Array, &mut Slots) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Encoding {
        Encoding::Bounded { room, fill: Box::new(fill) }
    }
}

/// The table. Planning decides with the server type's precision and length as well
/// (`python/headrace/planning/types_match.py`); here is what the bytes themselves can hold.
///
/// # Errors
/// A sentence, for a pair that would lose something or that means nothing.
pub(super) fn encoding(column_type: &ColumnType, form: Form) -> Result<Encoding, String> {
    use ColumnType as C;
    use Form as F;
    column_type.check()?;
    Ok(match (*column_type, form) {
        (C::Int16, F::Int2) => exact::<Int16Type, i16, 2>(),
        (C::Int16, F::Int4) => exact::<Int16Type, i32, 4>(),
        (C::Int16, F::Int8) => exact::<Int16Type, i64, 8>(),
        (C::Int16, F::Numeric) => numeric::decimals::<Int16Type>(5, 0),
        (C::Int16, F::Float4) => exact::<Int16Type, f32, 4>(),
        (C::Int16, F::Float8) => exact::<Int16Type, f64, 8>(),
        (C::Int32, F::Int4) => exact::<Int32Type, i32, 4>(),
        (C::Int32, F::Int8) => exact::<Int32Type, i64, 8>(),
        (C::Int32, F::Numeric) => numeric::decimals::<Int32Type>(10, 0),
        (C::Int32, F::Float8) => exact::<Int32Type, f64, 8>(),
        (C::Int64, F::Int8) => exact::<Int64Type, i64, 8>(),
        (C::Int64, F::Numeric) => numeric::decimals::<Int64Type>(19, 0),
        (C::Decimal { precision: 1..=4, scale: 0 }, F::Int2) => exact::<Decimal64Type, i16, 2>(),
        (C::Decimal { precision: 1..=9, scale: 0 }, F::Int4) => exact::<Decimal64Type, i32, 4>(),
        (C::Decimal { precision: 1..=18, scale: 0 }, F::Int8) => exact::<Decimal64Type, i64, 8>(),
        (C::Decimal { precision: precision @ 1..=18, scale }, F::Numeric) => {
            numeric::decimals::<Decimal64Type>(precision, scale)
        }
        (C::Decimal { precision, scale }, F::Numeric) => numeric::decimals::<Decimal128Type>(precision, scale),
        (C::Float32, F::Float4) => exact::<Float32Type, f32, 4>(),
        (C::Float32, F::Float8) => exact::<Float32Type, f64, 8>(),
        (C::Float64, F::Float8) => exact::<Float64Type, f64, 8>(),
        (C::Bool, F::Bool) => fixed::truth(),
        (C::Date, F::Date) => fixed::checked::<Date32Type, 4>(fixed::date),
        (C::Date, F::Timestamp) => fixed::checked::<Date32Type, 8>(fixed::midnight),
        (C::Time, F::Time) => fixed::checked::<Time64MicrosecondType, 8>(fixed::time),
        (C::Timestamp, F::Timestamp) | (C::TimestampTz, F::Timestamptz) => {
            fixed::checked::<TimestampMicrosecondType, 8>(fixed::timestamp)
        }
        (C::Uuid, F::Uuid) => fixed::uuid(),
        (C::String | C::Char { .. } | C::Varchar { .. }, F::Text) => Text::plain(),
        (C::Json, F::Json | F::Text) | (C::Bytes, F::Bytea) => Text::plain(),
        (C::Json, F::Jsonb) => Text::with_version(1),
        _ => return Err(format!("{column_type} cannot be stored as {form} without loss")),
    })
}
