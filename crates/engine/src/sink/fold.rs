//! Aggregates of one column, folded batch by batch, merged over writers. Exact: no floats for numbers that are none.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, StringViewArray};
use arrow_buffer::i256;
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
    /// Sum; 256 bits, because 38 digits may be added up to 2^64 times.
    pub sum: i256,
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
            DataType::Utf8View => fold.text = texts(array.as_string_view()),
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
                sum: left.sum.wrapping_add(right.sum),
                min: left.min.min(right.min),
                max: left.max.max(right.max),
            }),
            (left, right) => left.or(right),
        };
        self.float = match (self.float, other.float) {
            (Some(left), Some(right)) => Some((least(left.0, right.0), greatest(left.1, right.1))),
            (left, right) => left.or(right),
        };
        self.text = merge_text(self.text, other.text);
    }
}

fn code_points(text: &str) -> u64 {
    text.as_bytes().iter().filter(|&&byte| (byte as i8) >= -0x40).count() as u64
}

/// The bits that no byte of ASCII text has.
const NOT_ASCII: u128 = 0x8080_8080_8080_8080_8080_8080;

/// Lengths of a batch's texts. In a block without bytes above 0x7F, which is the common case, they are those of the views.
fn texts(array: &StringViewArray) -> Option<TextFold> {
    let fold = |sum: TextFold, length: u64| TextFold {
        total: sum.total + length,
        min: sum.min.min(length),
        max: sum.max.max(length),
    };
    let start = TextFold { total: 0, min: u64::MAX, max: 0 };
    // A view of up to 12 bytes holds its text itself, behind the length in its low 32 bits.
    let own_text = |view: u128| if view as u32 <= 12 { view >> 32 } else { 0 };
    let own_texts = array.views().iter().fold(0, |all, &view| all | own_text(view));
    let is_plain = array.null_count() == 0
        && own_texts & NOT_ASCII == 0
        && array.data_buffers().iter().all(|buffer| buffer.is_ascii());
    let sum = match is_plain {
        true => array.views().iter().map(|&view| u64::from(view as u32)).fold(start, fold),
        false => array.iter().flatten().map(code_points).fold(start, fold),
    };
    (array.null_count() < array.len()).then_some(sum)
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
    // A 128-bit sum cannot be vectorised: the upper and the lower halves of the values are summed apart. A batch has fewer
    // than 2^31 rows, so neither sum overflows.
    let fold = |(upper, lower, min, max): (i64, i64, i64, i64), value: i64| {
        (upper + (value >> 32), lower + (value & 0xFFFF_FFFF), min.min(value), max.max(value))
    };
    let start = (0, 0, i64::MAX, i64::MIN);
    let (upper, lower, min, max) = match array.null_count() {
        0 => array.values().iter().map(|&value| value.into()).fold(start, fold),
        _ => array.iter().flatten().map(Into::into).fold(start, fold),
    };
    let sum = (i128::from(upper) << 32) + i128::from(lower);
    let sum = i256::from_i128(sum);
    (array.null_count() < array.len()).then_some(WholeFold { sum, min: min.into(), max: max.into() })
}

fn wide(array: &ArrayRef) -> Option<WholeFold> {
    let one = |value| WholeFold { sum: i256::from_i128(value), min: value, max: value };
    array.as_primitive::<Decimal128Type>().iter().flatten().fold(None, |sum: Option<WholeFold>, value| match sum {
        None => Some(one(value)),
        Some(sum) => Some(WholeFold {
            sum: sum.sum.wrapping_add(i256::from_i128(value)),
            min: sum.min.min(value),
            max: sum.max.max(value),
        }),
    })
}

/// The order of IEEE 754: -0 before 0, NaN last. So the result does not depend on the order of the rows.
fn least(left: f64, right: f64) -> f64 {
    if right.total_cmp(&left).is_lt() { right } else { left }
}

fn greatest(left: f64, right: f64) -> f64 {
    if right.total_cmp(&left).is_gt() { right } else { left }
}

fn floats<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<(f64, f64)>
where
    T::Native: Into<f64>,
{
    let values = array.as_primitive::<T>().iter().flatten().map(Into::into);
    values.fold(None, |range: Option<(f64, f64)>, value: f64| match range {
        None => Some((value, value)),
        Some((min, max)) => Some((least(min, value), greatest(max, value))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Decimal64Array, Decimal128Array, Float64Array, Int64Array};
    use std::sync::Arc;

    fn fold(arrays: &[ArrayRef]) -> Fold {
        let mut fold = Fold::default();
        arrays.iter().for_each(|array| fold.add(array));
        fold
    }

    #[test]
    fn sums_do_not_overflow_64_bits() {
        let values: Vec<i64> = vec![i64::MAX, i64::MAX, i64::MIN, -1, 1 << 32, (1 << 32) - 1];
        let expected: i128 = values.iter().map(|&value| i128::from(value)).sum();
        let whole =
            fold(&[Arc::new(Int64Array::from(values.clone())), Arc::new(Int64Array::from(values))]).whole.unwrap();
        assert_eq!(whole.sum, i256::from_i128(2 * expected));
        assert_eq!((whole.min, whole.max), (i64::MIN.into(), i64::MAX.into()));
    }

    #[test]
    fn nulls_are_counted_and_otherwise_left_out() {
        let array: ArrayRef = Arc::new(Decimal64Array::from(vec![None, Some(7), None]));
        let all_null: ArrayRef = Arc::new(Decimal64Array::from(vec![None, None]));
        let fold = fold(&[array, all_null]);
        assert_eq!((fold.rows, fold.nulls), (5, 4));
        let whole = fold.whole.unwrap();
        assert_eq!((whole.sum, whole.min, whole.max), (i256::from_i128(7), 7, 7));
    }

    #[test]
    fn long_decimals_and_floats_do_not_depend_on_the_order() {
        let most = 10_i128.pow(38) - 1;
        let decimals = |values: Vec<i128>| -> ArrayRef { Arc::new(Decimal128Array::from(values)) };
        let forth = fold(&[decimals(vec![most, most, most]), decimals(vec![-most, -most, -most, 5])]).whole.unwrap();
        let back = fold(&[decimals(vec![-most, 5, most, -most]), decimals(vec![most, -most, most])]).whole.unwrap();
        assert_eq!((forth.sum, back.sum), (i256::from_i128(5), i256::from_i128(5)));
        let floats = |values: Vec<f64>| -> ArrayRef { Arc::new(Float64Array::from(values)) };
        for values in [vec![0.0, -0.0, f64::NAN], vec![f64::NAN, -0.0, 0.0]] {
            let (min, max) = fold(&[floats(values)]).float.unwrap();
            assert!(min.is_sign_negative() && max.is_nan());
        }
    }

    #[test]
    fn text_lengths_are_code_points() {
        for last in ["abc", "äöü", "日本語"] {
            let texts = ["", "a longer text than a view holds", last];
            let text = fold(&[Arc::new(StringViewArray::from_iter_values(texts))]).text.unwrap();
            assert_eq!((text.min, text.max, text.total), (0, 31, 34));
        }
        let nulls: StringViewArray = [None, Some("ab")].into_iter().collect();
        assert_eq!(fold(&[Arc::new(nulls)]).text.unwrap().min, 2);
    }
}
