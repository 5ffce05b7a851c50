//! Cells: values as the server receives them, at equal distances, before they move together into rows.

use std::ops::Range;

use arrow_array::Array;
use arrow_buffer::NullBuffer;

/// Rows that are encoded column by column before they are put together. Their cells stay in the processor's first cache.
/// As many as a word has bits, because of NULLs.
pub(crate) const TILE_ROWS: usize = 64;

/// Bytes of the length in front of every value.
pub(crate) const LENGTH_BYTES: usize = 4;

/// What stands in place of the length of a NULL.
pub(crate) const NULL: [u8; LENGTH_BYTES] = (-1i32).to_be_bytes();

/// Distance from one cell to the next. Few of them, so that copies of a cell are a few loads and stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stride {
    Bytes16,
    Bytes32,
    Bytes64,
}

impl Stride {
    /// The smallest one for cells of up to `bytes`; `None` above 64.
    pub(crate) fn for_cells_of(bytes: usize) -> Option<Stride> {
        [Stride::Bytes16, Stride::Bytes32, Stride::Bytes64].into_iter().find(|stride| bytes <= stride.bytes())
    }

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Stride::Bytes16 => 16,
            Stride::Bytes32 => 32,
            Stride::Bytes64 => 64,
        }
    }
}

/// A value that the form cannot hold.
pub(crate) struct Fault {
    /// Row of the batch.
    pub(crate) row: usize,
    /// The value, for people.
    pub(crate) found: String,
}

/// Place of one column's cells in a tile.
pub(crate) struct Cells<'a> {
    /// A cell every `stride` bytes.
    pub(crate) bytes: &'a mut [u8],
    /// Distance of the cells.
    pub(crate) stride: usize,
    /// Where in its cell the column begins.
    pub(crate) at: usize,
    /// Bytes of each cell that count.
    pub(crate) lengths: &'a mut [u8; TILE_ROWS],
}

impl Cells<'_> {
    /// Writes values of `WIDTH` bytes: `value` gives that of a row, counted from the first of `rows`, if the form holds it.
    ///
    /// # Errors
    /// The first row whose value is `None`.
    #[inline(always)]
    pub(crate) fn write_fixed<const WIDTH: usize>(
        &mut self,
        rows: Range<usize>,
        nulls: Option<&NullBuffer>,
        value: impl Fn(usize) -> Option<[u8; WIDTH]>,
    ) -> Result<(), usize> {
        let at = self.at;
        let mut is_bad = false;
        for (row, cell) in self.bytes.chunks_exact_mut(self.stride).take(rows.len()).enumerate() {
            let cell = &mut cell[at..at + LENGTH_BYTES + WIDTH];
            let bytes = value(row);
            is_bad |= bytes.is_none();
            cell[..LENGTH_BYTES].copy_from_slice(&(WIDTH as u32).to_be_bytes());
            cell[LENGTH_BYTES..].copy_from_slice(&bytes.unwrap_or([0; WIDTH]));
        }
        // What stands in the place of a NULL is no value.
        let is_bad_row =
            |row: &usize| value(*row).is_none() && nulls.is_none_or(|nulls| nulls.is_valid(rows.start + row));
        if let Some(row) = is_bad.then(|| (0..rows.len()).find(is_bad_row)).flatten() {
            return Err(rows.start + row);
        }
        if nulls.is_some() {
            self.lengths.fill((LENGTH_BYTES + WIDTH) as u8);
        }
        self.overwrite_nulls(rows, nulls);
        Ok(())
    }

    /// Makes the cells of all NULLs among these rows those of NULLs.
    pub(crate) fn overwrite_nulls(&mut self, rows: Range<usize>, nulls: Option<&NullBuffer>) {
        let Some(nulls) = nulls else { return };
        let valid = nulls.inner().slice(rows.start, rows.len());
        // One bit for each row of the tile; there are none behind the last row.
        let mut null_bits =
            !valid.bit_chunks().iter_padded().next().unwrap_or(0) & (u64::MAX >> (TILE_ROWS - rows.len()));
        while null_bits != 0 {
            let row = null_bits.trailing_zeros() as usize;
            self.bytes[row * self.stride..][..LENGTH_BYTES].copy_from_slice(&NULL);
            self.lengths[row] = LENGTH_BYTES as u8;
            null_bits &= null_bits - 1;
        }
    }
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
