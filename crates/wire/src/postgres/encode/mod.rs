//! Rows from columns, tile by tile: every row of a tile has a slot, and one column after the other appends its values to the
//! rows in their slots, each in a loop over values of one kind. A value is written with as many bytes as its column's values
//! can have, and the next one begins where it really ends, so that no branch depends on the length of a value. Then the
//! rows move from their slots to the output.

mod error;
pub(super) mod fixed;
pub(super) mod numeric;
pub(super) mod slots;
pub(super) mod text;

use std::ops::Range;

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use headrace_types::ColumnType;

pub use error::EncodeError;

use super::plan::{Encoding, encoding};
use super::{Form, copy};
use slots::{COUNT_BYTES, Fault, Slots, rows_of_tile};
use text::Text;

/// Writes batches as rows of a binary COPY. The columns are resolved once.
pub struct CopyEncoder {
    columns: Vec<Column>,
    count: i16,
    slots: Slots,
    /// Room of each column's values in the present tile.
    rooms: Vec<usize>,
    /// What a row of the last tile took in its slot, and in the output.
    slot_bytes: usize,
    row_bytes: usize,
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
        let columns = columns.collect::<Result<Vec<_>, String>>()?;
        let likely_room = |column: &Column| match &column.encoding {
            Encoding::Bounded { room, .. } => *room,
            Encoding::Text(_) => text::LARGEST_COPIED_ROOM,
        };
        let rooms: Vec<_> = columns.iter().map(likely_room).collect();
        let slot_bytes = COUNT_BYTES + rooms.iter().sum::<usize>();
        Ok(CopyEncoder { columns, count, slots: Slots::default(), rooms, slot_bytes, row_bytes: 0 })
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
    /// A column that is missing or of another type, or a value outside its type. `into` may then end inside a row.
    pub fn encode(
        &mut self,
        batch: &RecordBatch,
        from: usize,
        full: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        self.encode_rows(batch, from..batch.num_rows(), full, into)
    }

    /// The same for `rows` of the batch only.
    ///
    /// # Errors
    /// The same.
    pub fn encode_rows(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        full: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let arrays = self.arrays(batch)?;
        let Range { start: mut next, end } = rows.start..rows.end.min(batch.num_rows());
        while next < end {
            // No more rows than likely fit: those that do not are encoded again.
            let likely = (full.saturating_sub(into.len()) / self.row_bytes.max(1)).saturating_add(1);
            let rows = likely.min(rows_of_tile(self.slot_bytes)).min(end - next);
            self.fill(&arrays, next..next + rows)?;
            let (columns, length) = (&self.columns, into.len());
            let text =
                |column: usize, row| Text::of_row(arrays[column], row).map_err(|fault| columns[column].error(fault));
            let behind = self.slots.move_to(into, full, text)?;
            self.row_bytes = (into.len() - length) / (behind - next);
            next = behind;
            if into.len() >= full {
                break;
            }
        }
        Ok(next)
    }

    /// Encodes a tile into the slots.
    fn fill(&mut self, arrays: &[&dyn Array], tile: Range<usize>) -> Result<(), EncodeError> {
        self.slot_bytes = COUNT_BYTES;
        for ((column, array), room) in self.columns.iter().zip(arrays).zip(&mut self.rooms) {
            *room = match &column.encoding {
                Encoding::Bounded { room, .. } => *room,
                Encoding::Text(text) => text.room(*array, tile.clone()).map_err(|fault| column.error(fault))?,
            };
            self.slot_bytes += *room;
        }
        let slots = &mut self.slots;
        slots.begin(tile, self.count, self.slot_bytes);
        for (position, (column, array)) in self.columns.iter().zip(arrays).enumerate() {
            match &column.encoding {
                Encoding::Bounded { fill, .. } => fill(*array, slots),
                Encoding::Text(text) => text.fill(*array, position, self.rooms[position], slots),
            }
            .map_err(|fault| column.error(fault))?;
        }
        Ok(())
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
