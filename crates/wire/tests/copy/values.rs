//! Columns from text, slowly and plainly. The golden files, the random rows and the example share it.

use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
    RecordBatch, StringViewArray,
};
use arrow_schema::{Field, Schema};
use headrace_types::ColumnType;
use headrace_wire::postgres::{CopyEncoder, Form};
use serde::Deserialize;

/// A column of a table: type in the batch, form on the wire.
#[derive(Debug, Clone, Deserialize)]
pub struct Wanted {
    /// Type of the column.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Form of the server.
    pub form: Form,
}

/// A value as text, NULL is `None`.
pub type Text = Option<String>;

/// The column of these values.
pub fn array(column_type: ColumnType, texts: &[Text]) -> ArrayRef {
    let texts = texts.iter().map(Option::as_deref);
    match column_type {
        ColumnType::Int16 => primitive::<Int16Type>(texts, |text| text.parse().unwrap()),
        ColumnType::Int32 => primitive::<Int32Type>(texts, |text| text.parse().unwrap()),
        ColumnType::Int64 => primitive::<Int64Type>(texts, |text| text.parse().unwrap()),
        ColumnType::Float32 => primitive::<Float32Type>(texts, |text| text.parse().unwrap()),
        ColumnType::Float64 => primitive::<Float64Type>(texts, |text| text.parse().unwrap()),
        ColumnType::Decimal { precision: precision @ ..=18, scale } => {
            typed(column_type, primitive_array::<Decimal64Type>(texts, |text| unscaled(text, precision, scale) as i64))
        }
        ColumnType::Decimal { precision, scale } => {
            typed(column_type, primitive_array::<Decimal128Type>(texts, |text| unscaled(text, precision, scale)))
        }
        ColumnType::Date => primitive::<Date32Type>(texts, days),
        ColumnType::Time => primitive::<Time64MicrosecondType>(texts, microseconds),
        ColumnType::Timestamp | ColumnType::TimestampTz => typed(
            column_type,
            primitive_array::<TimestampMicrosecondType>(texts, |text| {
                let (date, time) = text.split_once(' ').unwrap();
                i64::from(days(date)) * 86_400_000_000 + microseconds(time.trim_end_matches("+00"))
            }),
        ),
        ColumnType::Bool => Arc::new(texts.map(|text| text.map(|text| text == "t")).collect::<BooleanArray>()),
        ColumnType::Uuid => {
            let values = texts.map(|text| text.map(|text| hexadecimal(&text.replace('-', ""))));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 16).unwrap())
        }
        ColumnType::Bytes => {
            let values = texts.map(|text| text.map(|text| hexadecimal(&text[2..])));
            Arc::new(values.collect::<BinaryViewArray>())
        }
        ColumnType::String | ColumnType::Char { .. } | ColumnType::Varchar { .. } | ColumnType::Json => {
            Arc::new(texts.collect::<StringViewArray>())
        }
    }
}

/// A batch of these columns.
pub fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
    let field = |array: &ArrayRef| Field::new("column", array.data_type().clone(), true);
    let fields: Vec<_> = columns.iter().map(field).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// The whole stream of one batch, written in pieces of about `full` bytes.
pub fn stream(wanted: &[Wanted], batch: &RecordBatch, full: usize) -> Vec<u8> {
    let columns: Vec<_> = wanted.iter().enumerate().map(|(index, it)| (index, it.column_type, it.form)).collect();
    let mut encoder = CopyEncoder::new(&columns).unwrap();
    let mut stream = CopyEncoder::header().to_vec();
    let mut row = 0;
    while row < batch.num_rows() {
        let mut piece = Vec::new();
        let next = encoder.encode(batch, row, full, &mut piece).unwrap();
        assert!(next > row && (next == batch.num_rows() || piece.len() >= full), "stopped for no reason");
        assert!(full > 1 || next == row + 1, "did not stop");
        stream.extend(piece);
        row = next;
    }
    stream.extend(CopyEncoder::trailer());
    stream
}

fn primitive_array<'a, T: ArrowPrimitiveType>(
    texts: impl Iterator<Item = Option<&'a str>>,
    value: impl Fn(&str) -> T::Native,
) -> PrimitiveArray<T> {
    texts.map(|text| text.map(&value)).collect()
}

fn primitive<'a, T: ArrowPrimitiveType>(
    texts: impl Iterator<Item = Option<&'a str>>,
    value: impl Fn(&str) -> T::Native,
) -> ArrayRef {
    Arc::new(primitive_array::<T>(texts, value))
}

/// The array with the parameters of its type: precision, scale, time zone.
fn typed<T: ArrowPrimitiveType>(column_type: ColumnType, array: PrimitiveArray<T>) -> ArrayRef {
    Arc::new(array.with_data_type(column_type.arrow_type()))
}

fn unscaled(text: &str, precision: u8, scale: u8) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let value: i128 = format!("{whole}{fraction:0<width$}", width = usize::from(scale)).parse().unwrap();
    assert!(value.unsigned_abs() < 10u128.pow(precision.into()), "{text}");
    value
}

/// Days since 1970-01-01 of `YYYY-MM-DD`.
fn days(text: &str) -> i32 {
    let [year, month, day] = text.split('-').map(|part| part.parse::<i32>().unwrap()).collect::<Vec<_>>()[..] else {
        panic!("not a date: {text}")
    };
    let is_leap = |year: i32| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before = |year: i32| (year - 1) * 365 + (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let month_days = [31, 28 + i32::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    before(year) - before(1970) + month_days[..month as usize - 1].iter().sum::<i32>() + day - 1
}

/// Microseconds since midnight of `HH:MM:SS[.digits]`.
fn microseconds(text: &str) -> i64 {
    let (time, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = time.split(':').fold(0, |sum, part| sum * 60 + part.parse::<i64>().unwrap());
    seconds * 1_000_000 + format!("{fraction:0<6}").parse::<i64>().unwrap()
}

fn hexadecimal(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
