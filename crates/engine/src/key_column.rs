//! A column that orders rows: its values are whole numbers, whatever their type, and have a canonical text.

use arrow_array::{ArrayRef, RecordBatch};
use headrace_transform::partition::{Key, Keys};
use headrace_types::{Column, ColumnType, CoreError, ErrorKind, Layout};

use crate::line_parser::{Line, LineParser};
use crate::sink::values::render;

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

    /// Index of the column in its layout.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its type.
    pub fn column_type(&self) -> ColumnType {
        self.column_type
    }

    /// The same column in batches that have no other.
    pub fn alone(self) -> Self {
        KeyColumn { index: 0, ..self }
    }

    /// The keys of a batch of the layout; `None` for an array of another type.
    pub fn keys<'a>(&self, batch: &'a RecordBatch) -> Option<Keys<'a>> {
        Keys::of(batch.column(self.index))
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
        let value = parse_value(self.column_type, text)?;
        Keys::of(&value).map(|keys| keys.at(0)).ok_or_else(|| {
            CoreError::new(ErrorKind::Internal, format!("the parser gave another type than {}", self.column_type))
        })
    }
}

/// The value that a text means to the parser of files: an array of one row.
///
/// # Errors
/// `Specification` for a text that the type does not accept.
pub fn parse_value(column_type: ColumnType, text: &str) -> Result<ArrayRef, CoreError> {
    let column = Column::new("key", column_type, false);
    let layout = Layout { delimiter: "\u{1f}".to_owned(), columns: vec![column], ..Layout::default() };
    match LineParser::new(&layout)?.parse(text.as_bytes())? {
        Line::Row(batch) if batch.num_rows() == 1 => Ok(batch.column(0).clone()),
        _ => {
            let what = format!("a key of a partition is not of type {column_type}");
            Err(CoreError::new(ErrorKind::Specification, what).found(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
