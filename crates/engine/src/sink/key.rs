//! Values of a column that orders rows: as whole numbers, whatever their type.

use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch, types};
use headrace_types::{Column, ColumnType, CoreError, ErrorKind, Layout, RowEnd};

use super::values::render;
use crate::line_parser::{Line, LineParser};

/// An integer, an unscaled decimal, days or microseconds since 1970, as the column's type says.
pub type Key = i128;

/// A column of a layout whose values have such an order.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumn {
    index: usize,
    column_type: ColumnType,
}

impl KeyColumn {
    /// The column of that name; `None` if there is none, or its type has no such order.
    pub fn of(layout: &Layout, name: &str) -> Option<Self> {
        let index = layout.columns.iter().position(|column| column.name == name)?;
        let column_type = layout.columns[index].column_type;
        use ColumnType::*;
        matches!(column_type, Int16 | Int32 | Int64 | Decimal { .. } | Date | Timestamp | TimestampTz)
            .then_some(KeyColumn { index, column_type })
    }

    /// The keys of a batch of the layout; `None` for an array of another type.
    pub fn keys<'a>(&self, batch: &'a RecordBatch) -> Option<Keys<'a>> {
        let array = batch.column(self.index);
        use types::*;
        Some(match self.column_type {
            ColumnType::Int16 => Keys::Bits16(values::<Int16Type>(array)?),
            ColumnType::Int32 => Keys::Bits32(values::<Int32Type>(array)?),
            ColumnType::Int64 => Keys::Bits64(values::<Int64Type>(array)?),
            ColumnType::Date => Keys::Bits32(values::<Date32Type>(array)?),
            ColumnType::Timestamp | ColumnType::TimestampTz => Keys::Bits64(values::<TimestampMicrosecondType>(array)?),
            _ => match values::<Decimal64Type>(array) {
                Some(values) => Keys::Bits64(values),
                None => Keys::Bits128(values::<Decimal128Type>(array)?),
            },
        })
    }

    /// Canonical text of a key.
    pub fn text(&self, key: Key) -> String {
        render(self.column_type, key)
    }

    /// The key that a text means.
    ///
    /// # Errors
    /// `Specification` for a text that the type does not accept.
    pub fn parse(&self, text: &str) -> Result<Key, CoreError> {
        let column = Column { name: "key".to_owned(), column_type: self.column_type, nullable: false };
        let layout = Layout {
            delimiter: '\u{1f}',
            qualifier: None,
            trailing_delimiter: false,
            header_rows: 0,
            null_tokens: vec![],
            columns: vec![column],
        };
        let line = LineParser::new(&layout, RowEnd::Lf, 0)?.parse(text.as_bytes())?;
        let Line::Row(batch) = line else {
            let what = format!("a bound is not of type {}", self.column_type);
            return Err(CoreError::new(ErrorKind::Specification, what).found(text));
        };
        let alone = KeyColumn { index: 0, ..*self };
        alone.keys(&batch).map(|keys| keys.at(0)).ok_or_else(|| {
            CoreError::new(ErrorKind::Internal, format!("the parser gave another type than {}", self.column_type))
        })
    }
}

/// The keys of a batch.
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

impl Keys<'_> {
    /// The key of a row that exists.
    pub fn at(&self, row: usize) -> Key {
        match self {
            Keys::Bits16(values) => values[row].into(),
            Keys::Bits32(values) => values[row].into(),
            Keys::Bits64(values) => values[row].into(),
            Keys::Bits128(values) => values[row],
        }
    }

    /// The first row whose key is not in `minimum..end`.
    pub fn first_outside(&self, minimum: Key, end: Key) -> Option<usize> {
        match self {
            Keys::Bits16(values) => first_outside(values, minimum, end),
            Keys::Bits32(values) => first_outside(values, minimum, end),
            Keys::Bits64(values) => first_outside(values, minimum, end),
            Keys::Bits128(values) => first_outside(values, minimum, end),
        }
    }
}

fn first_outside<T: Copy + Ord + Into<Key>>(values: &[T], minimum: Key, end: Key) -> Option<usize> {
    let inside = |value: T| (minimum..end).contains(&value.into());
    // Least and greatest first: that loop is vectorised, and nearly always the answer.
    let first = *values.first()?;
    let (least, greatest) =
        values.iter().fold((first, first), |(least, greatest), &value| (least.min(value), greatest.max(value)));
    if inside(least) && inside(greatest) { None } else { values.iter().position(|&value| !inside(value)) }
}

fn values<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<&[T::Native]> {
    array.as_any().downcast_ref::<PrimitiveArray<T>>().map(|array| array.values().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_outside_are_found() {
        assert_eq!(Keys::Bits32(&[3, 4, 9]).first_outside(3, 10), None);
        assert_eq!(Keys::Bits32(&[3, 4, 10]).first_outside(3, 10), Some(2));
        assert_eq!(Keys::Bits64(&[3, 2, 10]).first_outside(3, 10), Some(1));
        assert_eq!(Keys::Bits16(&[]).first_outside(3, 10), None);
        assert_eq!(Keys::Bits128(&[i128::MIN]).first_outside(0, 1), Some(0));
    }

    #[test]
    fn texts_and_keys_are_inverse() {
        for (column_type, text) in [
            (ColumnType::Int16, "-32768"),
            (ColumnType::Int64, "9223372036854775807"),
            (ColumnType::Decimal { precision: 15, scale: 2 }, "-0.05"),
            (ColumnType::Decimal { precision: 38, scale: 38 }, "0.00000000000000000000000000000000000001"),
            (ColumnType::Date, "2000-02-29"),
            (ColumnType::Timestamp, "1969-12-31 23:59:59.000001"),
            (ColumnType::TimestampTz, "2024-01-01 00:00:00+00:00"),
        ] {
            let column = KeyColumn { index: 7, column_type };
            assert_eq!(column.text(column.parse(text).unwrap()), text);
            assert!(column.parse("x").is_err());
        }
    }
}
