//! Columns from rows in the server's binary form: `DataRow` messages of results that were asked for in binary, and tuples of
//! `COPY ... TO STDOUT (FORMAT binary)`, which are the same bytes behind the count of their columns. A row is pushed whole, its
//! values are appended to builders of Arrow arrays, one for each column that is wanted.

mod error;
mod numeric;
mod plan;
mod values;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use headrace_types::ColumnType;

pub use error::{DecodeError, Fault, Found};

use super::Form;
use plan::decoding;
use values::Values;

/// Bytes of the length in front of a value.
const LENGTH_BYTES: usize = 4;
/// What stands in place of the length of NULL.
const NULL: i32 = -1;

/// Reads rows. The columns are resolved once.
pub struct RowDecoder {
    /// Of all columns of a row, those that are wanted.
    columns: Vec<Option<Box<dyn Values>>>,
    /// Where each wanted column stands in a row.
    places: Vec<usize>,
    schema: SchemaRef,
    rows: usize,
    bytes: usize,
    /// Behind an error columns may have different lengths.
    is_broken: bool,
}

impl RowDecoder {
    /// A decoder for rows of `count` columns, of which these are wanted: place in the row, from 0, each once; type in the
    /// batches; form that the server's type sends.
    ///
    /// # Errors
    /// A sentence that names a pair that cannot be decoded without loss, or a column that rows have not.
    pub fn new(count: usize, wanted: &[(usize, ColumnType, Form)]) -> Result<Self, String> {
        let mut columns: Vec<Option<Box<dyn Values>>> = (0..count).map(|_| None).collect();
        let mut fields = Vec::with_capacity(wanted.len());
        for (place, column_type, form) in wanted {
            let column = columns.get_mut(*place).ok_or_else(|| format!("no column {place} among {count}"))?;
            if column.is_some() {
                return Err(format!("column {place} is wanted twice"));
            }
            *column = Some(decoding(*column_type, *form)?);
            fields.push(Field::new(format!("column_{place}"), column_type.arrow_type(), true));
        }
        let places = wanted.iter().map(|(place, ..)| *place).collect();
        Ok(RowDecoder { columns, places, schema: Arc::new(Schema::new(fields)), rows: 0, bytes: 0, is_broken: false })
    }

    /// Appends a row: what is behind the count of its columns, each value with its length.
    ///
    /// # Errors
    /// Bytes that are no row of these columns, or a value that columns of its type cannot have. Nothing can be taken then.
    pub fn push(&mut self, row: &[u8]) -> Result<(), DecodeError> {
        let pushed = self.append(row);
        match &pushed {
            Ok(()) => {
                self.rows += 1;
                self.bytes = self.bytes.saturating_add(row.len());
            }
            Err(_) => self.is_broken = true,
        }
        pushed
    }

    /// Rows since the last batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of those rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The rows since the last batch, with the wanted columns in the order in which they were named.
    ///
    /// # Errors
    /// Behind an error of `push`.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        if self.is_broken {
            return Err(ArrowError::InvalidArgumentError("rows are asked for behind one that is none".to_owned()));
        }
        let (rows, columns) = (self.rows, &mut self.columns);
        (self.rows, self.bytes) = (0, 0);
        let mut array = |place: &usize| columns.get_mut(*place).and_then(Option::as_mut).map(|values| values.finish());
        let arrays: Vec<ArrayRef> = self.places.iter().filter_map(&mut array).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
    }

    fn append(&mut self, row: &[u8]) -> Result<(), DecodeError> {
        let malformed = |found: String| DecodeError { column: None, fault: Fault::Malformed(found) };
        let mut rest = row;
        for (place, column) in self.columns.iter_mut().enumerate() {
            let value = value(&mut rest).map_err(malformed)?;
            if let Some(values) = column {
                values.append(value).map_err(|fault| {
                    let column = self.places.iter().position(|own| *own == place);
                    DecodeError { column, fault }
                })?;
            }
        }
        match rest.len() {
            0 => Ok(()),
            more => Err(malformed(format!("{more} bytes behind a row"))),
        }
    }
}

/// The next value; None for NULL.
fn value<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, String> {
    let Some((length, behind)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
        return Err("no length of a value".to_owned());
    };
    *rest = behind;
    let length = i32::from_be_bytes(*length);
    if length == NULL {
        return Ok(None);
    }
    let ends = usize::try_from(length).map_err(|_| format!("a value of {length} bytes"))?;
    let Some((value, behind)) = rest.split_at_checked(ends) else {
        return Err(format!("a value of {length} bytes where {} are left", rest.len()));
    };
    *rest = behind;
    Ok(Some(value))
}
