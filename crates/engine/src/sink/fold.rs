//! Aggregates of one column, folded batch by batch, merged over writers. Exact: no floats for numbers that are none.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};

/// Aggregates of one column.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    /// Rows, NULL or not.
    pub rows: u64,
    /// NULLs.
    pub nulls: u64,
    /// Values that count as whole numbers: unscaled decimals, days, microseconds.
    pub whole: Option<WholeFold>,
    /// Floats.
    pub float: Option<(f64, f64)>,
    /// Texts, code points.
    pub text: Option<TextFold>,
}

/// Aggregates of whole numbers.
#[derive(Debug, Clone, Copy)]
pub struct WholeFold {
    /// Sum; `None` once it needed more than 127 bits.
    pub sum: Option<i128>,
    /// Least.
    pub min: i128,
    /// Greatest.
    pub max: i128,
}

/// Aggregates of text lengths, code points.
#[derive(Debug, Clone, Copy)]
pub struct TextFold {
    /// All together.
    pub total: u64,
    /// Shortest.
    pub min: u64,
    /// Longest.
    pub max: u64,
}

impl Fold {
    /// Takes one batch's column.
    pub fn add(&mut self, array: &ArrayRef) {
        let nulls = array.null_count() as u64;
        let mut fold = Fold { rows: array.len() as u64, nulls, ..Fold::default() };
        match array.data_type() {
            DataType::Int16 => fold.whole = narrow::<Int16Type>(array),
            DataType::Int32 => fold.whole = narrow::<Int32Type>(array),
            DataType::Int64 => fold.whole = narrow::<Int64Type>(array),
            DataType::Decimal64(..) => fold.whole = narrow::<Decimal64Type>(array),
            DataType::Decimal128(..) => fold.whole = wide(array),
            DataType::Date32 => fold.whole = narrow::<Date32Type>(array),
            DataType::Time64(TimeUnit::Microsecond) => fold.whole = narrow::<Time64MicrosecondType>(array),
            DataType::Timestamp(TimeUnit::Microsecond, _) => fold.whole = narrow::<TimestampMicrosecondType>(array),
            DataType::Float32 => fold.float = floats::<Float32Type>(array),
            DataType::Float64 => fold.float = floats::<Float64Type>(array),
            DataType::Utf8View => {
                let lengths = array.as_string_view().iter().flatten().map(code_points);
                fold.text = lengths.fold(None, |sum, length| merge_text(sum, one_text(length)));
            }
            // Bytes, uuids and truth values have rows and NULLs only.
            _ => {}
        }
        self.merge(&fold);
    }

    /// Takes another writer's aggregates.
    pub fn merge(&mut self, other: &Fold) {
        self.rows += other.rows;
        self.nulls += other.nulls;
        self.whole = match (self.whole, other.whole) {
            (Some(left), Some(right)) => Some(WholeFold {
                sum: left.sum.zip(right.sum).and_then(|(left, right)| left.checked_add(right)),
                min: left.min.min(right.min),
                max: left.max.max(right.max),
            }),
            (left, right) => left.or(right),
        };
        self.float = match (self.float, other.float) {
            (Some(left), Some(right)) => Some((left.0.min(right.0), left.1.max(right.1))),
            (left, right) => left.or(right),
        };
        self.text = merge_text(self.text, other.text);
    }
}

fn code_points(text: &str) -> u64 {
    text.as_bytes().iter().filter(|&&byte| (byte as i8) >= -0x40).count() as u64
}

fn one_text(length: u64) -> Option<TextFold> {
    Some(TextFold { total: length, min: length, max: length })
}

fn merge_text(left: Option<TextFold>, right: Option<TextFold>) -> Option<TextFold> {
    match (left, right) {
        (Some(left), Some(right)) => Some(TextFold {
            total: left.total + right.total,
            min: left.min.min(right.min),
            max: left.max.max(right.max),
        }),
        (left, right) => left.or(right),
    }
}

/// Values of at most 64 bits: a batch's sum always fits 128 bits.
fn narrow<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<WholeFold>
where
    T::Native: Into<i64>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    let fold = |(sum, min, max): (i128, i64, i64), value: i64| (sum + i128::from(value), min.min(value), max.max(value));
    let start = (0, i64::MAX, i64::MIN);
    let (sum, min, max) = match array.null_count() {
        0 => array.values().iter().map(|&value| value.into()).fold(start, fold),
        _ => array.iter().flatten().map(Into::into).fold(start, fold),
    };
    (array.null_count() < array.len()).then_some(WholeFold { sum: Some(sum), min: min.into(), max: max.into() })
}

fn wide(array: &ArrayRef) -> Option<WholeFold> {
    let one = |value| WholeFold { sum: Some(value), min: value, max: value };
    array.as_primitive::<Decimal128Type>().iter().flatten().fold(None, |sum: Option<WholeFold>, value| match sum {
        None => Some(one(value)),
        Some(sum) => Some(WholeFold {
            sum: sum.sum.and_then(|sum| sum.checked_add(value)),
            min: sum.min.min(value),
            max: sum.max.max(value),
        }),
    })
}

fn floats<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<(f64, f64)>
where
    T::Native: Into<f64>,
{
    let values = array.as_primitive::<T>().iter().flatten().map(Into::into);
    values.fold(None, |range: Option<(f64, f64)>, value: f64| match range {
        None => Some((value, value)),
        Some((min, max)) => Some((min.min(value), max.max(value))),
    })
}
