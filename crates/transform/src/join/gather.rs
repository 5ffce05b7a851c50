//! The columns of pairs.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::take::take;

use super::OutputColumn;
use super::input::Input;
use super::pairs::{NO_ROW, Pairs};

pub struct Gather {
    columns: Vec<OutputColumn>,
    schema: SchemaRef,
}

/// Where the rows of a side are.
enum Rows {
    /// One behind the other: nothing is copied.
    Range(usize, usize),
    /// Anywhere; some may be missing.
    Picked(UInt32Array),
    /// Nowhere.
    Missing(usize),
}

impl Gather {
    pub fn new(columns: Vec<OutputColumn>, schema: SchemaRef) -> Self {
        Gather { columns, schema }
    }

    pub fn rows(&self, left: &Input, right: &Input, pairs: &Pairs) -> Result<RecordBatch, ArrowError> {
        let rows = [
            Rows::of(&pairs.left, pairs.is_missing[0], left.batch()),
            Rows::of(&pairs.right, pairs.is_missing[1], right.batch()),
        ];
        let sides = [left.batch(), right.batch()];
        let column = |(place, output): (usize, &OutputColumn)| {
            let index = output.side.index();
            let array = sides[index].map(|batch| batch.column(output.column));
            rows[index].gather(array, self.schema.field(place).data_type())
        };
        let columns = self.columns.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

impl Rows {
    fn of(rows: &[u32], is_missing: bool, batch: Option<&RecordBatch>) -> Self {
        if batch.is_none() {
            return Rows::Missing(rows.len());
        }
        if !is_missing {
            let is_next = |pair: &[u32]| pair[1] == pair[0] + 1;
            if rows.windows(2).all(is_next) {
                return Rows::Range(rows.first().map_or(0, |row| *row as usize), rows.len());
            }
            return Rows::Picked(UInt32Array::new(ScalarBuffer::from(rows.to_vec()), None));
        }
        let is_there = BooleanBuffer::collect_bool(rows.len(), |row| rows[row] != NO_ROW);
        // A missing row has some number that is one.
        let known = rows.iter().map(|row| if *row == NO_ROW { 0 } else { *row }).collect::<Vec<_>>();
        Rows::Picked(UInt32Array::new(ScalarBuffer::from(known), Some(NullBuffer::new(is_there))))
    }

    fn gather(&self, array: Option<&ArrayRef>, data_type: &arrow_schema::DataType) -> Result<ArrayRef, ArrowError> {
        match (self, array) {
            (Rows::Range(first, rows), Some(array)) => Ok(array.slice(*first, *rows)),
            (Rows::Picked(rows), Some(array)) => take(array, rows, None),
            (Rows::Missing(rows), _) => Ok(new_null_array(data_type, *rows)),
            (_, None) => Ok(new_null_array(data_type, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_a_line_are_not_copied() {
        let batch = RecordBatch::new_empty(std::sync::Arc::new(arrow_schema::Schema::empty()));
        assert!(matches!(Rows::of(&[3, 4, 5], false, Some(&batch)), Rows::Range(3, 3)));
        assert!(matches!(Rows::of(&[3, 5, 6], false, Some(&batch)), Rows::Picked(_)));
        assert!(matches!(Rows::of(&[3, NO_ROW], true, Some(&batch)), Rows::Picked(_)));
        assert!(matches!(Rows::of(&[NO_ROW], true, None), Rows::Missing(1)));
    }
}
