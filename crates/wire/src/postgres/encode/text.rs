//! Texts and bytes, from views.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericByteViewArray, types::ByteViewType};
use arrow_buffer::{Buffer, NullBuffer};

use super::cells::{Cells, Fault, LENGTH_BYTES, NULL, Stride, nulls_of};
use crate::postgres::plan::Encoding;

/// Bytes that a view holds itself.
const INLINE_BYTES: u32 = 12;
const VIEW_BYTES: usize = 16;

/// How to write a column of texts.
pub(crate) struct Text {
    /// A byte in front of the text.
    version: Option<u8>,
}

/// The views of a text or bytes column.
struct Views<'a> {
    views: &'a [u128],
    /// The same, as bytes.
    view_bytes: &'a [u8],
    buffers: &'a [Buffer],
    nulls: Option<&'a NullBuffer>,
}

impl Text {
    /// The bytes as they are.
    pub(crate) fn plain() -> Encoding {
        Encoding::Text(Text { version: None })
    }

    /// The bytes behind a version byte.
    pub(crate) fn with_version(version: u8) -> Encoding {
        Encoding::Text(Text { version: Some(version) })
    }

    /// The stride of cells for the texts of some rows; `None` when there is one that needs a longer cell.
    pub(crate) fn stride(&self, array: &dyn Array, rows: Range<usize>) -> Result<Option<Stride>, Fault> {
        let views = Views::of(array)?;
        let longest = match views.nulls {
            None => views.views[rows].iter().map(|view| *view as u32).max(),
            Some(nulls) => rows.filter(|row| nulls.is_valid(*row)).map(|row| views.views[row] as u32).max(),
        };
        let bytes = LENGTH_BYTES + longest.unwrap_or(0) as usize;
        // Only the way for long texts knows versions.
        Ok(Stride::for_cells_of(bytes).filter(|_| self.version.is_none()))
    }

    /// Writes the cells of some rows whose texts fit them.
    pub(crate) fn fill(&self, array: &dyn Array, rows: Range<usize>, cells: &mut Cells<'_>) -> Result<(), Fault> {
        let views = Views::of(array)?;
        match cells.stride {
            16 => views.fill_inline(rows, cells),
            32 => views.fill_copies::<28>(rows, cells),
            _ => views.fill_copies::<60>(rows, cells),
        }
    }

    /// Passes what the row has in this column, in pieces: the length, a version if there is one, the text.
    pub(crate) fn pieces(&self, array: &dyn Array, row: usize, mut piece: impl FnMut(&[u8])) -> Result<(), Fault> {
        let views = Views::of(array)?;
        if views.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            piece(&NULL);
            return Ok(());
        }
        let text = views.text(row)?;
        let version = self.version.as_slice();
        let length = i32::try_from(version.len() + text.len())
            .map_err(|_| Fault { row, found: format!("{} bytes", text.len()) })?;
        piece(&length.to_be_bytes());
        piece(version);
        piece(text);
        Ok(())
    }
}

impl<'a> Views<'a> {
    fn of(array: &'a dyn Array) -> Result<Self, Fault> {
        fn parts<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Views<'_> {
            let views = array.views();
            let view_bytes = views.inner().as_slice();
            Views { views, view_bytes, buffers: array.data_buffers(), nulls: nulls_of(array) }
        }
        let texts = array.as_string_view_opt().map(parts);
        texts.or_else(|| array.as_binary_view_opt().map(parts)).ok_or_else(|| Fault::of_type(array))
    }

    /// What can be read from the first byte of a text on.
    #[inline(always)]
    fn readable(&self, row: usize) -> Option<&'a [u8]> {
        let view = self.views[row];
        if view as u32 <= INLINE_BYTES {
            self.view_bytes.get(row * VIEW_BYTES + LENGTH_BYTES..)
        } else {
            self.buffers.get((view >> 64) as u32 as usize)?.get((view >> 96) as usize..)
        }
    }

    /// The bytes of a text. Arrow's own arrays have none outside their buffers, but those from elsewhere might.
    fn text(&self, row: usize) -> Result<&'a [u8], Fault> {
        let text = self.readable(row).and_then(|readable| readable.get(..self.views[row] as u32 as usize));
        text.ok_or_else(|| Fault { row, found: "a text outside its buffers".to_owned() })
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Cells of texts of up to 12 bytes: the view itself, with the length in network order.
    fn fill_inline(&self, rows: Range<usize>, cells: &mut Cells<'_>) -> Result<(), Fault> {
        let (places, _) = cells.bytes.as_chunks_mut::<VIEW_BYTES>();
        let views = self.views[rows.clone()].iter().zip(places).zip(cells.lengths.iter_mut());
        for ((view, cell), length) in views {
            let text_bytes = *view as u32;
            *cell = (*view & !u128::from(u32::MAX) | u128::from(text_bytes.to_be())).to_le_bytes();
            *length = (LENGTH_BYTES + text_bytes as usize) as u8;
        }
        cells.overwrite_nulls(rows, self.nulls);
        Ok(())
    }

    /// Cells of texts of up to `ROOM` bytes: as many are copied, if that many can be read, so that the processor need not
    /// guess the length.
    fn fill_copies<const ROOM: usize>(&self, rows: Range<usize>, cells: &mut Cells<'_>) -> Result<(), Fault> {
        let places = cells.bytes.chunks_exact_mut(LENGTH_BYTES + ROOM).zip(cells.lengths.iter_mut());
        for (row, (cell, length)) in rows.clone().zip(places) {
            let text_bytes = self.views[row] as u32;
            let (front, cell) = cell.split_at_mut(LENGTH_BYTES);
            front.copy_from_slice(&text_bytes.to_be_bytes());
            *length = (LENGTH_BYTES + text_bytes as usize) as u8;
            if let Some(readable) = self.readable(row).and_then(<[u8]>::first_chunk::<ROOM>) {
                cell.copy_from_slice(readable);
            } else if !self.is_null(row) {
                let text = self.text(row)?;
                cell[..text.len()].copy_from_slice(text);
            }
        }
        cells.overwrite_nulls(rows, self.nulls);
        Ok(())
    }
}
