//! Aggregates of one column, folded batch by batch, merged over writers. Exact: no floats for numbers that are none.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, StringViewArray};
use arrow_buffer::{Buffer, i256};
use arrow_schema::{DataType, TimeUnit};
use headrace_parse::{CpuPath, Task};

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
    pub fn add(&mut self, array: &ArrayRef, path: CpuPath, plain: &mut PlainBuffers) {
        let nulls = array.null_count() as u64;
        let mut fold = Fold { rows: array.len() as u64, nulls, ..Fold::default() };
        match array.data_type() {
            DataType::Int16 => fold.whole = narrow::<Int16Type>(array, path),
            DataType::Int32 => fold.whole = narrow::<Int32Type>(array, path),
            DataType::Int64 => fold.whole = narrow::<Int64Type>(array, path),
            DataType::Decimal64(..) => fold.whole = narrow::<Decimal64Type>(array, path),
            DataType::Decimal128(..) => fold.whole = wide(array),
            DataType::Date32 => fold.whole = narrow::<Date32Type>(array, path),
            DataType::Time64(TimeUnit::Microsecond) => fold.whole = narrow::<Time64MicrosecondType>(array, path),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                fold.whole = narrow::<TimestampMicrosecondType>(array, path);
            }
            DataType::Float32 => fold.float = floats::<Float32Type>(array, path),
            DataType::Float64 => fold.float = floats::<Float64Type>(array, path),
            DataType::Utf8View => fold.text = texts(array.as_string_view(), path, plain),
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

/// Which buffers of one batch hold ASCII only; its text columns share them. Not for two batches: memory is recycled.
#[derive(Default)]
pub struct PlainBuffers(Vec<(*const u8, bool)>);

impl PlainBuffers {
    fn contains(&mut self, buffer: &Buffer) -> bool {
        let known = self.0.iter().find(|(start, _)| *start == buffer.as_ptr());
        let is_plain = known.map_or_else(|| buffer.is_ascii(), |&(_, is_plain)| is_plain);
        if known.is_none() {
            self.0.push((buffer.as_ptr(), is_plain));
        }
        is_plain
    }
}

/// The bits that no byte of ASCII text has.
const NOT_ASCII: u128 = 0x8080_8080_8080_8080_8080_8080;

/// Lengths that views say (bytes), and all bytes of the texts that views hold themselves, one over the other.
struct FoldViews<'a>(&'a [u128]);

impl Task for FoldViews<'_> {
    type Output = (TextFold, u128);

    #[inline(always)]
    fn run(self) -> (TextFold, u128) {
        let (mut total, mut min, mut max, mut all) = (0, u32::MAX, 0, 0);
        for &view in self.0 {
            let length = view as u32;
            total += u64::from(length);
            min = min.min(length);
            max = max.max(length);
            // A view of up to 12 bytes holds its text behind the length in its low 32 bits.
            all |= if length <= 12 { view >> 32 } else { 0 };
        }
        (TextFold { total, min: min.into(), max: max.into() }, all)
    }
}

/// Lengths of a batch's texts. In a block without bytes above 0x7F, which is the common case, they are those of the views.
fn texts(array: &StringViewArray, path: CpuPath, plain: &mut PlainBuffers) -> Option<TextFold> {
    if array.null_count() == array.len() {
        return None;
    }
    if array.null_count() == 0 && array.data_buffers().iter().all(|buffer| plain.contains(buffer)) {
        let (fold, own_texts) = path.run(FoldViews(array.views()));
        if own_texts & NOT_ASCII == 0 {
            return Some(fold);
        }
    }
    let start = TextFold { total: 0, min: u64::MAX, max: 0 };
    Some(array.iter().flatten().map(code_points).fold(start, |sum, length| TextFold {
        total: sum.total + length,
        min: sum.min.min(length),
        max: sum.max.max(length),
    }))
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

/// Sum in two parts, minimum, maximum. A 128-bit sum cannot be vectorised: the upper and the lower halves of the values are
/// summed apart. A batch has fewer than 2^31 rows, so neither sum overflows.
type Sums = (i64, i64, i64, i64);

/// Folds whole numbers of one batch.
struct FoldWhole<'a, T>(&'a [T]);

impl<T: Copy + Into<i64>> Task for FoldWhole<'_, T> {
    type Output = Sums;

    #[inline(always)]
    fn run(self) -> Sums {
        self.0.iter().fold((0, 0, i64::MAX, i64::MIN), |(upper, lower, min, max), &value| {
            let value = value.into();
            (upper + (value >> 32), lower + (value & 0xFFFF_FFFF), min.min(value), max.max(value))
        })
    }
}

/// Values of at most 64 bits.
fn narrow<T: ArrowPrimitiveType>(array: &ArrayRef, path: CpuPath) -> Option<WholeFold>
where
    T::Native: Into<i64>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    let (upper, lower, min, max) = match array.null_count() {
        0 => path.run(FoldWhole(array.values())),
        _ => path.run(FoldWhole(&array.iter().flatten().collect::<Vec<_>>())),
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

/// Numbers in the order of IEEE 754 have the order of these whole numbers, and back.
#[inline(always)]
fn order(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// Least and greatest float of one batch.
struct FindRange<'a, T>(&'a [T]);

impl<T: Copy + Into<f64>> Task for FindRange<'_, T> {
    type Output = (f64, f64);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let (min, max) = self.0.iter().fold((i64::MAX, i64::MIN), |(min, max), &value| {
            let place = order(value.into().to_bits() as i64);
            (min.min(place), max.max(place))
        });
        (f64::from_bits(order(min) as u64), f64::from_bits(order(max) as u64))
    }
}

fn floats<T: ArrowPrimitiveType>(array: &ArrayRef, path: CpuPath) -> Option<(f64, f64)>
where
    T::Native: Into<f64>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    let range = match array.null_count() {
        0 => path.run(FindRange(array.values())),
        _ => path.run(FindRange(&array.iter().flatten().collect::<Vec<_>>())),
    };
    (array.null_count() < array.len()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Decimal64Array, Decimal128Array, Float32Array, Float64Array, Int64Array};
    use std::sync::Arc;

    fn fold(arrays: &[ArrayRef]) -> Fold {
        let mut paths = CpuPath::available().into_iter().map(|path| {
            let mut fold = Fold::default();
            arrays.iter().for_each(|array| fold.add(array, path, &mut PlainBuffers::default()));
            fold
        });
        let fold = paths.next().unwrap();
        paths.for_each(|other| assert_eq!(format!("{other:?}"), format!("{fold:?}")));
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
    fn least_and_greatest_floats_among_negative_ones() {
        let range = |array: ArrayRef| fold(&[array]).float.unwrap();
        for values in [vec![-1.5, -2.5], vec![-2.5, -1.5], vec![-2.5, -1.5, -2.0]] {
            assert_eq!(range(Arc::new(Float64Array::from(values.clone()))), (-2.5, -1.5));
            let nullable: Vec<Option<f64>> = values.iter().copied().map(Some).chain([None]).collect();
            assert_eq!(range(Arc::new(Float64Array::from(nullable))), (-2.5, -1.5));
            let single: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            assert_eq!(range(Arc::new(Float32Array::from(single))), (-2.5, -1.5));
        }
        let values = vec![1.0, f64::NEG_INFINITY, -1.0, f64::INFINITY, 0.0];
        assert_eq!(range(Arc::new(Float64Array::from(values))), (f64::NEG_INFINITY, f64::INFINITY));
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
