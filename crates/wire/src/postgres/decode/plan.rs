//! Which form of the server becomes which column type without loss, and how.

use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use headrace_types::ColumnType;

use super::numeric;
use super::values::{self, Values, exact, fixed};
use crate::postgres::Form;

/// The table. Each form is read as the type that has just its values; what the values of a form can be more is refused one
/// by one.
///
/// # Errors
/// A sentence, for a pair that would lose something or that means nothing.
pub(super) fn decoding(column_type: ColumnType, form: Form) -> Result<Box<dyn Values>, String> {
    use ColumnType as C;
    use Form as F;
    column_type.check()?;
    let arrow_type = column_type.arrow_type();
    Ok(match (column_type, form) {
        (C::Int16, F::Int2) => exact::<Int16Type, 2>(arrow_type, i16::from_be_bytes),
        (C::Int32, F::Int4) => exact::<Int32Type, 4>(arrow_type, i32::from_be_bytes),
        (C::Int64, F::Int8) => exact::<Int64Type, 8>(arrow_type, i64::from_be_bytes),
        (C::Float32, F::Float4) => exact::<Float32Type, 4>(arrow_type, f32::from_be_bytes),
        (C::Float64, F::Float8) => exact::<Float64Type, 8>(arrow_type, f64::from_be_bytes),
        (C::Decimal { precision: precision @ 1..=18, scale }, F::Numeric) => {
            numeric::decimals::<Decimal64Type>(arrow_type, precision, scale)
        }
        (C::Decimal { precision, scale }, F::Numeric) => {
            numeric::decimals::<Decimal128Type>(arrow_type, precision, scale)
        }
        (C::Bool, F::Bool) => values::truth(),
        (C::Date, F::Date) => fixed::<Date32Type, 4>(arrow_type, values::date),
        (C::Time, F::Time) => fixed::<Time64MicrosecondType, 8>(arrow_type, values::time),
        (C::Timestamp, F::Timestamp) | (C::TimestampTz, F::Timestamptz) => {
            fixed::<TimestampMicrosecondType, 8>(arrow_type, values::timestamp)
        }
        (C::Uuid, F::Uuid) => values::uuid(),
        (C::String | C::Varchar { .. }, F::Text) | (C::Json, F::Json) => values::texts(values::as_it_is),
        (C::Char { .. }, F::Text) => values::texts(values::without_trailing_blanks),
        (C::Json, F::Jsonb) => values::texts(values::behind_version),
        (C::Bytes, F::Bytea) => values::bytes(),
        _ => return Err(format!("{form} cannot be read as {column_type} without loss")),
    })
}
