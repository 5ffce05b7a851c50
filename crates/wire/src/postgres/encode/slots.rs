//! Slots: rows that grow value by value, at equal distances, until they move to the output.

use std::ops::Range;

use arrow_array::Array;
use arrow_buffer::NullBuffer;

/// Most rows that are encoded together. As many as a word has bits, because of NULLs.
pub(crate) const TILE_ROWS: usize = 64;

/// Memory of all slots, unless a single row needs more: small enough for the processor's first cache.
const SLOTS_BYTES: usize = 24 << 10;

/// Bytes of the count of columns in front of every row.
pub(crate) const COUNT_BYTES: usize = 2;

/// Bytes of the length in front of every value.
pub(crate) const LENGTH_BYTES: usize = 4;

/// What stands in place of the length of a NULL.
pub(crate) const NULL: [u8; LENGTH_BYTES] = (-1i32).to_be_bytes();

/// A value that the form cannot hold.
pub(crate) struct Fault {
    /// Row of the batch.
    pub(crate) row: usize,
    /// The value, for people.
    pub(crate) found: String,
}

impl Fault {
    /// An array of another type than the plan says. The encoder looks at the types before it looks at values.
    pub(crate) fn of_type(array: &dyn Array) -> Fault {
        Fault { row: 0, found: format!("values of type {}", array.data_type()) }
    }
}

/// Which values are NULL; `None` when none is.
pub(crate) fn nulls_of(array: &dyn Array) -> Option<&NullBuffer> {
    array.nulls().filter(|nulls| nulls.null_count() > 0)
}

/// Where the rows of a tile grow. A value may be written with more bytes than count: the next one overwrites what is too
/// much, and there is room for it behind the last one.
pub(crate) struct Slots {
    bytes: Vec<u8>,
    /// Distance of the slots.
    stride: usize,
    /// Rows of the tile, in the batch.
    rows: Range<usize>,
    /// Where each row ends so far, in `bytes`.
    ends: [usize; TILE_ROWS],
    /// Places of texts that are too long for a slot.
    cuts: Vec<Cut>,
}

impl Default for Slots {
    fn default() -> Slots {
        Slots { bytes: Vec::new(), stride: 0, rows: 0..0, ends: [0; TILE_ROWS], cuts: Vec::new() }
    }
}

/// A column whose texts are not in the slots, but are to be put in when the rows move.
struct Cut {
    /// Column of the plan.
    column: usize,
    /// Place of the text of each row, in `bytes`.
    ats: [usize; TILE_ROWS],
}

/// Rows of a tile whose slots take `row_bytes` each.
pub(crate) fn rows_of_tile(row_bytes: usize) -> usize {
    (SLOTS_BYTES / row_bytes.max(1)).clamp(1, TILE_ROWS)
}

impl Slots {
    /// Begins rows of `columns` columns that take at most `row_bytes` each.
    pub(crate) fn begin(&mut self, rows: Range<usize>, columns: i16, row_bytes: usize) {
        self.stride = row_bytes;
        let bytes = row_bytes * rows.len();
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
        self.cuts.clear();
        for (row, end) in self.ends.iter_mut().take(rows.len()).enumerate() {
            let start = row * row_bytes;
            self.bytes[start..start + COUNT_BYTES].copy_from_slice(&columns.to_be_bytes());
            *end = start + COUNT_BYTES;
        }
        self.rows = rows;
    }

    /// The rows of the tile, in the batch.
    pub(crate) fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Appends a value to every row: `write` gets the row, counted from the first one of the tile, and a place of `room`
    /// bytes; it returns how many of them count. What stands in the place of a NULL is written like a value, and then
    /// overwritten.
    #[inline(always)]
    pub(crate) fn append(
        &mut self,
        room: usize,
        nulls: Option<&NullBuffer>,
        mut write: impl FnMut(usize, &mut [u8]) -> usize,
    ) {
        let starts = nulls.map(|_| self.ends);
        let rows = self.rows.len();
        for (row, end) in self.ends.iter_mut().take(rows).enumerate() {
            // `begin` was told the room of all columns.
            *end += write(row, &mut self.bytes[*end..*end + room]);
        }
        if let (Some(nulls), Some(starts)) = (nulls, starts) {
            self.overwrite_nulls(nulls, &starts);
        }
    }

    #[inline(never)]
    fn overwrite_nulls(&mut self, nulls: &NullBuffer, starts: &[usize; TILE_ROWS]) {
        let valid = nulls.inner().slice(self.rows.start, self.rows.len());
        let valid_bits = valid.bit_chunks().iter_padded().next().unwrap_or(0);
        let mut null_bits = !valid_bits & (u64::MAX >> (TILE_ROWS - self.rows.len()));
        while null_bits != 0 {
            let row = null_bits.trailing_zeros() as usize;
            self.bytes[starts[row]..][..LENGTH_BYTES].copy_from_slice(&NULL);
            self.ends[row] = starts[row] + LENGTH_BYTES;
            null_bits &= null_bits - 1;
        }
    }

    /// Remembers that texts of `column` belong at the present ends of the rows.
    pub(crate) fn cut(&mut self, column: usize) {
        self.cuts.push(Cut { column, ats: self.ends });
    }

    /// Moves rows, at least one, to `into` until it holds `full` bytes; `text` gives that of a column that was cut and a row
    /// of the batch. Returns the row behind them.
    pub(crate) fn move_to<'a, E>(
        &self,
        into: &mut Vec<u8>,
        full: usize,
        mut text: impl FnMut(usize, usize) -> Result<&'a [u8], E>,
    ) -> Result<usize, E> {
        for ((place, row), end) in self.rows.clone().enumerate().zip(&self.ends) {
            let mut from = place * self.stride;
            for cut in &self.cuts {
                into.extend_from_slice(&self.bytes[from..cut.ats[place]]);
                into.extend_from_slice(text(cut.column, row)?);
                from = cut.ats[place];
            }
            into.extend_from_slice(&self.bytes[from..*end]);
            if into.len() >= full {
                return Ok(row + 1);
            }
        }
        Ok(self.rows.end)
    }
}
