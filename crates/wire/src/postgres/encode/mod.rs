//! Rows from columns, in two passes over a tile of rows: first every column writes its values into cells, each in a loop
//! over values of one kind; then the cells of every row are copied one behind the other, each with as many bytes as a
//! cell can have, and the next one begins where the value ends. Neither pass has a branch that depends on the length of a
//! value, unless it is a long text.

pub(super) mod cells;
mod error;
pub(super) mod fixed;
pub(super) mod numeric;
mod rows;
mod strip;
pub(super) mod text;

use std::ops::Range;

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use headrace_types::ColumnType;

pub use error::EncodeError;

use super::plan::{Encoding, encoding};
use super::{Form, copy};
use cells::{Fault, TILE_ROWS};
use rows::Rows;
use strip::Strip;

/// Writes batches as rows of a binary COPY. The columns are resolved once.
pub struct CopyEncoder {
    columns: Vec<Column>,
    /// Whether each column has NULLs in the batch that `strips` were laid out for.
    has_nulls: Vec<bool>,
    strips: Vec<Strip>,
    rows: Rows,
}

/// A column of the plan.
struct Column {
    /// In the batch.
    index: usize,
    column_type: ColumnType,
    arrow_type: DataType,
    form: Form,
    encoding: Encoding,
}

impl CopyEncoder {
    /// An encoder for these columns, in the order of the COPY: index in the batch, type there, form that the server's type
    /// receives.
    ///
    /// # Errors
    /// A sentence that names a pair that cannot be encoded without loss, or a number of columns that no table has.
    pub fn new(columns: &[(usize, ColumnType, Form)]) -> Result<Self, String> {
        let count = i16::try_from(columns.len()).map_err(|_| format!("{} columns in one COPY", columns.len()))?;
        let columns = columns.iter().map(|(index, column_type, form)| {
            let encoding = encoding(column_type, *form)?;
            let arrow_type = column_type.arrow_type();
            Ok(Column { index: *index, column_type: *column_type, arrow_type, form: *form, encoding })
        });
        let columns: Vec<_> = columns.collect::<Result<_, String>>()?;
        let has_nulls = vec![false; columns.len()];
        let strips = strip::lay_out(&columns, &has_nulls, count);
        Ok(CopyEncoder { columns, has_nulls, strips, rows: Rows::default() })
    }

    /// What stands before the first row.
    pub fn header() -> &'static [u8] {
        copy::HEADER
    }

    /// What stands behind the last row.
    pub fn trailer() -> &'static [u8] {
        copy::TRAILER
    }

    /// Appends the rows of the batch from `from` on, at least one, until all are written or `into` holds `full` bytes or
    /// more. Returns the row to go on with.
    ///
    /// # Errors
    /// A column that is missing or of another type, or a value outside its type. Rows before it may have been appended.
    pub fn encode(
        &mut self,
        batch: &RecordBatch,
        from: usize,
        full: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let arrays = self.arrays(batch)?;
        let has_nulls = arrays.iter().map(|array| array.null_count() > 0);
        if !has_nulls.clone().eq(self.has_nulls.iter().copied()) {
            self.has_nulls = has_nulls.collect();
            // `new` checked the count.
            self.strips = strip::lay_out(&self.columns, &self.has_nulls, self.columns.len() as i16);
        }
        let mut next = from;
        while next < batch.num_rows() {
            let tile = next..batch.num_rows().min(next + self.rows.likely_to_fit(full, into.len()).min(TILE_ROWS));
            for strip in &mut self.strips {
                strip.fill(&self.columns, &arrays, tile.clone())?;
            }
            next = self.rows.append(&self.strips, &self.columns, &arrays, tile, full, into)?;
            if into.len() >= full {
                break;
            }
        }
        Ok(next)
    }

    /// The array of every column of the plan.
    fn arrays<'a>(&self, batch: &'a RecordBatch) -> Result<Vec<&'a dyn Array>, EncodeError> {
        let arrays = self.columns.iter().map(|column| {
            let error = |found| EncodeError { column: column.index, row: None, found, expected: column.expected() };
            let array = batch.columns().get(column.index);
            let array = array.ok_or_else(|| error(format!("{} columns", batch.num_columns())))?;
            match *array.data_type() == column.arrow_type {
                true => Ok(array.as_ref()),
                false => Err(error(array.data_type().to_string())),
            }
        });
        arrays.collect()
    }
}

impl Column {
    fn expected(&self) -> String {
        format!("{} for {}", self.column_type, self.form)
    }

    fn error(&self, fault: Fault) -> EncodeError {
        EncodeError { column: self.index, row: Some(fault.row), found: fault.found, expected: self.expected() }
    }
}

/// Rows of a batch.
type Tile = Range<usize>;
