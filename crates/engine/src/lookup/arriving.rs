//! Columns of a stream of Arrow batches as the columns of rows have them: each type in its one form, with no value that
//! Headrace does not know.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Int8Type, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use headrace_transform::lookup::WrongArray;
use headrace_types::ColumnType;

use crate::rejects;
use crate::sink::values::render;

/// 1 January of the year 1 and 31 December 9999, in days from 1970.
const DAYS: [i64; 2] = [-719_162, 2_932_896];
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
/// What is said of other days.
const EXPECTED_DAY: &str = "a day in the years 1 to 9999";
/// What is said of other texts.
const EXPECTED_TEXT: &str = "a text without NUL characters";

/// Why a column is none of the rows.
#[derive(Debug, PartialEq)]
pub enum Unfit {
    /// It is of another type.
    Type(WrongArray),
    /// A value of its type that rows of files cannot have. `row` counts from the first one of the array.
    Value { row: usize, shown: String, expected: &'static str },
}

/// An array of a column of that type, whose values rows of files can have.
pub fn column_of(array: &ArrayRef, column_type: ColumnType) -> Result<ArrayRef, Unfit> {
    let found = form_of(array, column_type).map_err(Unfit::Type)?;
    let unfit = unfit_values(&found, column_type).next();
    match unfit {
        None => Ok(found),
        Some((row, shown, expected)) => Err(Unfit::Value { row, shown, expected }),
    }
}

/// The array in the form that a column of that type has.
pub fn form_of(array: &ArrayRef, column_type: ColumnType) -> Result<ArrayRef, WrongArray> {
    let wanted = column_type.arrow_type();
    let found = match (array.data_type(), &wanted) {
        (found, wanted) if found == wanted => array.clone(),
        // The zone is how it is shown: the values are those of UTC.
        (DataType::Timestamp(TimeUnit::Microsecond, Some(_)), DataType::Timestamp(_, Some(zone))) => {
            let values = array.as_primitive::<TimestampMicrosecondType>().clone();
            Arc::new(values.with_timezone(zone.clone())) as ArrayRef
        }
        (DataType::Decimal32(..), DataType::Decimal64(..)) => {
            decimals::<Decimal32Type, Decimal64Type>(array, &wanted, |value| Some(i64::from(value)))?
        }
        (DataType::Decimal128(..), DataType::Decimal64(..)) => {
            decimals::<Decimal128Type, Decimal64Type>(array, &wanted, |value| i64::try_from(value).ok())?
        }
        (DataType::Decimal64(..), DataType::Decimal128(..)) => {
            decimals::<Decimal64Type, Decimal128Type>(array, &wanted, |value| Some(i128::from(value)))?
        }
        // A truth value that is a byte: the extension type arrow.bool8.
        (DataType::Int8, DataType::Boolean) => {
            let values = array.as_primitive::<Int8Type>();
            Arc::new(values.iter().map(|value| value.map(|value| value != 0)).collect::<BooleanArray>())
        }
        (DataType::Utf8, DataType::Utf8View) => texts(array.as_string::<i32>().iter()),
        (DataType::LargeUtf8, DataType::Utf8View) => texts(array.as_string::<i64>().iter()),
        (DataType::Binary, DataType::BinaryView) => bytes(array.as_binary::<i32>().iter()),
        (DataType::LargeBinary, DataType::BinaryView) => bytes(array.as_binary::<i64>().iter()),
        (found, wanted) => {
            return Err(WrongArray { found: found.to_string(), expected: wanted.to_string() });
        }
    };
    Ok(found)
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringViewBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    let mut builder = BinaryViewBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

/// Decimals of another width, whose precision and scale are those that are wanted.
fn decimals<F, T>(
    array: &ArrayRef,
    wanted: &DataType,
    convert: impl Fn(F::Native) -> Option<T::Native>,
) -> Result<ArrayRef, WrongArray>
where
    F: ArrowPrimitiveType,
    T: ArrowPrimitiveType,
{
    let wrong = || WrongArray { found: array.data_type().to_string(), expected: wanted.to_string() };
    if precision_and_scale(array.data_type()) != precision_and_scale(wanted) {
        return Err(wrong());
    }
    let values = array.as_primitive::<F>();
    let converted: Option<PrimitiveArray<T>> = values
        .iter()
        .map(|value| match value {
            Some(value) => convert(value).map(Some),
            None => Some(None),
        })
        .collect();
    Ok(Arc::new(converted.ok_or_else(wrong)?.with_data_type(wanted.clone())))
}

fn precision_and_scale(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// A row with a value that no row of a file has: its number, the value as it is shown, and what is expected.
type UnfitRow = (usize, String, &'static str);

/// Rows with days outside the years 1 to 9999, or without an end, and with texts that hold NUL, which the parser refuses in files
/// because PostgreSQL stores none.
pub fn unfit_values(array: &ArrayRef, column_type: ColumnType) -> Box<dyn Iterator<Item = UnfitRow> + '_> {
    match array.data_type() {
        DataType::Date32 => Box::new(outside::<Date32Type>(array, column_type, DAYS, i32::MAX.into())),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let [first, last] = DAYS;
            let range = [first * MICROSECONDS_PER_DAY, (last + 1) * MICROSECONDS_PER_DAY - 1];
            Box::new(outside::<TimestampMicrosecondType>(array, column_type, range, i64::MAX))
        }
        DataType::Utf8View => Box::new(array.as_string_view().iter().enumerate().filter_map(|(row, text)| {
            let text = text.filter(|text| memchr::memchr(0, text.as_bytes()).is_some())?;
            Some((row, rejects::shown(text), EXPECTED_TEXT))
        })),
        _ => Box::new(std::iter::empty()),
    }
}

/// `endless`: databases keep infinity as this number, and -infinity as its opposite.
fn outside<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
    column_type: ColumnType,
    [first, last]: [i64; 2],
    endless: i64,
) -> impl Iterator<Item = UnfitRow> + '_ {
    let values = array.as_primitive::<T>();
    values.values().iter().enumerate().filter_map(move |(row, value)| {
        let value: i64 = (*value).into();
        if (first..=last).contains(&value) || values.is_null(row) {
            return None;
        }
        let shown = match value {
            value if value == endless => "infinity".to_owned(),
            value if value <= -endless => "-infinity".to_owned(),
            value => render(column_type, value.into()),
        };
        Some((row, shown, EXPECTED_DAY))
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{
        Date32Array, Decimal32Array, Decimal128Array, Int8Array, StringArray, TimestampMicrosecondArray,
    };

    use super::*;

    fn array(array: impl Array + 'static) -> ArrayRef {
        Arc::new(array)
    }

    fn decimal(precision: u8) -> ColumnType {
        ColumnType::Decimal { precision, scale: 2 }
    }

    #[test]
    fn every_form_of_a_type_becomes_the_one_that_columns_have() {
        let truths = column_of(&array(Int8Array::from(vec![Some(0), None, Some(1)])), ColumnType::Bool).unwrap();
        assert_eq!(*truths.as_boolean(), BooleanArray::from(vec![Some(false), None, Some(true)]));
        let texts = column_of(&array(StringArray::from(vec![Some("a"), None])), ColumnType::Json).unwrap();
        assert_eq!(texts.as_string_view().iter().collect::<Vec<_>>(), [Some("a"), None]);
        let narrow = Decimal32Array::from(vec![Some(-5), None]).with_precision_and_scale(9, 2).unwrap();
        let values = column_of(&array(narrow), decimal(9)).unwrap();
        assert_eq!(*values.data_type(), DataType::Decimal64(9, 2));
        assert_eq!(values.as_primitive::<Decimal64Type>().iter().collect::<Vec<_>>(), [Some(-5), None]);
        let wide = Decimal128Array::from(vec![7]).with_precision_and_scale(18, 2).unwrap();
        assert_eq!(column_of(&array(wide), decimal(18)).unwrap().as_primitive::<Decimal64Type>().value(0), 7);
        let moment = TimestampMicrosecondArray::from(vec![7]).with_timezone("Europe/Vienna");
        let moments = column_of(&array(moment), ColumnType::TimestampTz).unwrap();
        assert_eq!(*moments.data_type(), ColumnType::TimestampTz.arrow_type());
    }

    #[test]
    fn other_types_are_refused() {
        let days = array(Date32Array::from(vec![1]));
        assert!(matches!(column_of(&days, ColumnType::Int64), Err(Unfit::Type(_))));
        let other = Decimal128Array::from(vec![7]).with_precision_and_scale(18, 3).unwrap();
        assert!(matches!(column_of(&array(other), decimal(18)), Err(Unfit::Type(_))));
        let numbers = array(PrimitiveArray::<Int64Type>::from(vec![1]));
        assert!(matches!(column_of(&numbers, ColumnType::Int32), Err(Unfit::Type(_))));
    }

    #[test]
    fn days_outside_the_years_that_files_can_name_are_refused() {
        let [first, last] = DAYS;
        let day =
            |day: i64| column_of(&array(Date32Array::from(vec![Some(0), None, Some(day as i32)])), ColumnType::Date);
        let moment = |moment: i64| {
            column_of(&array(TimestampMicrosecondArray::from(vec![moment])), ColumnType::Timestamp).map(|_| ())
        };
        assert!(day(first).is_ok() && day(last).is_ok());
        let end = (last + 1) * MICROSECONDS_PER_DAY;
        assert!(moment(first * MICROSECONDS_PER_DAY).is_ok() && moment(end - 1).is_ok());
        let refused =
            |row, shown: &str| Unfit::Value { row, shown: shown.to_owned(), expected: "a day in the years 1 to 9999" };
        assert_eq!(day(last + 1).unwrap_err(), refused(2, "10000-01-01"));
        assert_eq!(day(i32::MAX.into()).unwrap_err(), refused(2, "infinity"));
        assert_eq!(day(-i64::from(i32::MAX)).unwrap_err(), refused(2, "-infinity"));
        assert_eq!(moment(end), Err(refused(0, "10000-01-01 00:00:00")));
        assert_eq!(moment(i64::MIN), Err(refused(0, "-infinity")));
        assert_eq!(day(first - 1).unwrap_err(), refused(2, "0000-12-31"));
    }

    #[test]
    fn texts_with_nul_are_refused_wherever_it_stands() {
        let long = "a text that is too long for its view";
        for column_type in [ColumnType::String, ColumnType::Varchar { length: 99 }, ColumnType::Json] {
            for text in ["\0".to_owned(), "a\0".to_owned(), format!("{long}\0"), format!("\0{long}")] {
                let texts = array(StringArray::from(vec![Some(long), None, Some(""), Some(&text), Some("\0")]));
                let shown = rejects::shown(&text);
                let refused = Unfit::Value { row: 3, shown, expected: "a text without NUL characters" };
                assert_eq!(column_of(&texts, column_type).unwrap_err(), refused);
                assert!(column_of(&texts.slice(0, 3), column_type).is_ok());
            }
        }
    }
}
