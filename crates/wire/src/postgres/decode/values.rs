//! Builders that take the values of one column.

use arrow_array::ArrayRef;
use arrow_array::builder::{
    ArrayBuilder, BinaryViewBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder, StringViewBuilder,
};
use arrow_array::types::ArrowPrimitiveType;
use arrow_schema::DataType;

use super::error::{Fault, Found};

const UUID_BYTES: usize = 16;
/// Version of the server's binary form of jsonb.
const JSONB_VERSION: u8 = 1;
const DAYS_1970_TO_2000: i32 = 10_957;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
/// 1 January of the year 1 and 31 December 9999, in days from 1970.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;
const DAYS_EXPECTED: &str = "a day in the years 1 to 9999";

/// The values of one column, as far as there are rows.
pub(super) trait Values: Send {
    /// Appends a value, None for NULL.
    fn append(&mut self, value: Option<&[u8]>) -> Result<(), Fault>;

    /// What was appended since the last call.
    fn finish(&mut self) -> ArrayRef;
}

/// Values that always take as many bytes, and all of which the type has.
pub(super) fn exact<T: ArrowPrimitiveType, const WIDTH: usize>(
    arrow_type: DataType,
    read: fn([u8; WIDTH]) -> T::Native,
) -> Box<dyn Values> {
    fixed::<T, WIDTH>(arrow_type, move |bytes| Ok(read(bytes)))
}

/// Values that always take as many bytes.
pub(super) fn fixed<T: ArrowPrimitiveType, const WIDTH: usize>(
    arrow_type: DataType,
    read: impl Fn([u8; WIDTH]) -> Result<T::Native, Fault> + Send + 'static,
) -> Box<dyn Values> {
    primitive::<T>(arrow_type, move |value| read(of_width(value)?))
}

/// Numbers and the like of any number of bytes.
pub(super) fn primitive<T: ArrowPrimitiveType>(
    arrow_type: DataType,
    read: impl Fn(&[u8]) -> Result<T::Native, Fault> + Send + 'static,
) -> Box<dyn Values> {
    let builder = PrimitiveBuilder::<T>::new().with_data_type(arrow_type);
    column(builder, move |builder, value| {
        builder.append_option(value.map(&read).transpose()?);
        Ok(())
    })
}

/// Truth values: one byte.
pub(super) fn truth() -> Box<dyn Values> {
    let read = |value: &[u8]| match value {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(Fault::Malformed(format!("the truth value {other}"))),
        _ => Err(Fault::width(value.len(), 1)),
    };
    column(BooleanBuilder::new(), move |builder, value| {
        builder.append_option(value.map(read).transpose()?);
        Ok(())
    })
}

/// 128-bit identifiers.
pub(super) fn uuid() -> Box<dyn Values> {
    column(FixedSizeBinaryBuilder::new(UUID_BYTES as i32), |builder, value| {
        let Some(value) = value else {
            builder.append_null();
            return Ok(());
        };
        builder.append_value(value).map_err(|_| Fault::width(value.len(), UUID_BYTES))
    })
}

/// Texts, of which `part` is kept.
pub(super) fn texts(part: fn(&[u8]) -> Result<&[u8], Fault>) -> Box<dyn Values> {
    column(StringViewBuilder::new(), move |builder, value| {
        let Some(value) = value else {
            builder.append_null();
            return Ok(());
        };
        match std::str::from_utf8(part(value)?) {
            Ok(text) => builder.try_append_value(text).map_err(|error| Fault::Malformed(error.to_string())),
            Err(error) => {
                let found = format!("bytes that are no UTF-8 behind byte {}", error.valid_up_to());
                Err(Fault::value(found, "text in UTF-8"))
            }
        }
    })
}

/// Bytes as they are.
pub(super) fn bytes() -> Box<dyn Values> {
    column(BinaryViewBuilder::new(), |builder, value| match value {
        Some(value) => builder.try_append_value(value).map_err(|error| Fault::Malformed(error.to_string())),
        None => {
            builder.append_null();
            Ok(())
        }
    })
}

/// All of a text.
pub(super) fn as_it_is(value: &[u8]) -> Result<&[u8], Fault> {
    Ok(value)
}

/// A char(n) is filled up with blanks, which mean nothing.
pub(super) fn without_trailing_blanks(value: &[u8]) -> Result<&[u8], Fault> {
    let ends = value.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    Ok(value.get(..ends).unwrap_or(value))
}

/// The text of a jsonb.
pub(super) fn behind_version(value: &[u8]) -> Result<&[u8], Fault> {
    match value.split_first() {
        Some((&JSONB_VERSION, text)) => Ok(text),
        Some((version, _)) => Err(Fault::Malformed(format!("version {version} of jsonb"))),
        None => Err(Fault::Malformed("a jsonb without its version".to_owned())),
    }
}

/// Days since 2000-01-01; the least and the greatest number are infinite.
pub(super) fn date(bytes: [u8; 4]) -> Result<i32, Fault> {
    let days = i32::from_be_bytes(bytes);
    refuse_infinity(days, i32::MIN, i32::MAX)?;
    let since_1970 = i64::from(days) + i64::from(DAYS_1970_TO_2000);
    match i32::try_from(since_1970) {
        Ok(day) if (FIRST_DAY..=LAST_DAY).contains(&since_1970) => Ok(day),
        _ => Err(outside(since_1970.into())),
    }
}

/// Microseconds since midnight. The server has 24:00:00 as well, and so has the type.
pub(super) fn time(bytes: [u8; 8]) -> Result<i64, Fault> {
    let microseconds = i64::from_be_bytes(bytes);
    match (0..=MICROSECONDS_PER_DAY).contains(&microseconds) {
        true => Ok(microseconds),
        false => Err(Fault::Malformed(format!("a time of day of {microseconds} microseconds"))),
    }
}

/// Microseconds since 2000-01-01 00:00; the least and the greatest number are infinite.
pub(super) fn timestamp(bytes: [u8; 8]) -> Result<i64, Fault> {
    let microseconds = i64::from_be_bytes(bytes);
    refuse_infinity(microseconds, i64::MIN, i64::MAX)?;
    let since_1970 = i128::from(microseconds) + i128::from(DAYS_1970_TO_2000) * i128::from(MICROSECONDS_PER_DAY);
    let range = FIRST_DAY * MICROSECONDS_PER_DAY..(LAST_DAY + 1) * MICROSECONDS_PER_DAY;
    i64::try_from(since_1970).ok().filter(|value| range.contains(value)).ok_or_else(|| outside(since_1970))
}

fn refuse_infinity<T: PartialEq>(value: T, least: T, greatest: T) -> Result<(), Fault> {
    match value {
        value if value == greatest => Err(Fault::value("infinity", DAYS_EXPECTED)),
        value if value == least => Err(Fault::value("-infinity", DAYS_EXPECTED)),
        _ => Ok(()),
    }
}

fn outside(since_1970: i128) -> Fault {
    Fault::Value { found: Found::Since1970(since_1970), expected: DAYS_EXPECTED }
}

fn of_width<const WIDTH: usize>(value: &[u8]) -> Result<[u8; WIDTH], Fault> {
    value.try_into().map_err(|_| Fault::width(value.len(), WIDTH))
}

/// A builder, and how it takes a value.
struct Column<B, A> {
    builder: B,
    append: A,
}

fn column<B, A>(builder: B, append: A) -> Box<dyn Values>
where
    B: ArrayBuilder,
    A: Fn(&mut B, Option<&[u8]>) -> Result<(), Fault> + Send + 'static,
{
    Box::new(Column { builder, append })
}

impl<B, A> Values for Column<B, A>
where
    B: ArrayBuilder,
    A: Fn(&mut B, Option<&[u8]>) -> Result<(), Fault> + Send,
{
    fn append(&mut self, value: Option<&[u8]>) -> Result<(), Fault> {
        (self.append)(&mut self.builder, value)
    }

    fn finish(&mut self) -> ArrayRef {
        self.builder.finish()
    }
}
