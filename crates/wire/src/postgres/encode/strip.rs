//! Strips: the cells of one column, or of neighbouring columns that always take the same number of bytes together.

use arrow_array::Array;

use super::cells::{Cells, LENGTH_BYTES, Stride, TILE_ROWS};
use super::fixed::Fixed;
use super::{Column, EncodeError, Encoding, Tile};

/// Bytes of the count of columns in front of every row.
const COUNT_BYTES: usize = 2;
const MOST_CELL_BYTES: usize = Stride::Bytes64.bytes();

/// Cells of a tile.
pub(super) struct Strip {
    /// Columns of the plan, and where in the cell each begins.
    columns: Vec<(usize, usize)>,
    /// Distance of the cells; `None` when the values of this tile are too long for cells.
    pub(super) stride: Option<Stride>,
    /// One cell behind the other; room for the longest.
    pub(super) cells: Vec<u8>,
    /// Bytes of each cell that count.
    pub(super) lengths: [u8; TILE_ROWS],
}

/// What a strip will hold.
struct Draft {
    columns: Vec<(usize, usize)>,
    bytes: usize,
    /// Whether all its cells are as long, so that another column may follow in them.
    is_constant: bool,
}

/// The strips of a row of `columns`, `count` of them.
pub(super) fn lay_out(columns: &[Column], has_nulls: &[bool], count: i16) -> Vec<Strip> {
    let mut drafts = vec![Draft { columns: Vec::new(), bytes: COUNT_BYTES, is_constant: true }];
    for (position, (column, has_nulls)) in columns.iter().zip(has_nulls).enumerate() {
        let (bytes, is_constant) = match &column.encoding {
            Encoding::Fixed(Fixed { width, .. }) => (LENGTH_BYTES + width, !has_nulls),
            Encoding::Numeric(_) | Encoding::Text(_) => (MOST_CELL_BYTES, false),
        };
        match drafts.last_mut() {
            Some(last) if last.is_constant && is_constant && last.bytes + bytes <= MOST_CELL_BYTES => {
                last.columns.push((position, last.bytes));
                last.bytes += bytes;
            }
            _ => drafts.push(Draft { columns: vec![(position, 0)], bytes, is_constant }),
        }
    }
    let mut strips: Vec<_> = drafts.into_iter().map(|draft| Strip::new(draft.columns, draft.bytes)).collect();
    if let Some(Strip { stride: Some(stride), cells, .. }) = strips.first_mut() {
        for cell in cells.chunks_exact_mut(stride.bytes()) {
            cell[..COUNT_BYTES].copy_from_slice(&count.to_be_bytes());
        }
    }
    strips
}

impl Strip {
    fn new(columns: Vec<(usize, usize)>, cell_bytes: usize) -> Strip {
        let stride = Stride::for_cells_of(cell_bytes);
        let cells = vec![0; TILE_ROWS * stride.map_or(MOST_CELL_BYTES, Stride::bytes)];
        Strip { columns, stride, cells, lengths: [cell_bytes as u8; TILE_ROWS] }
    }

    /// Writes the cells of a tile.
    pub(super) fn fill(&mut self, columns: &[Column], arrays: &[&dyn Array], tile: Tile) -> Result<(), EncodeError> {
        for (position, at) in &self.columns {
            let (column, array) = (&columns[*position], arrays[*position]);
            let error = |fault| column.error(fault);
            match &column.encoding {
                Encoding::Text(text) => self.stride = text.stride(array, tile.clone()).map_err(error)?,
                Encoding::Numeric(numeric) => self.stride = Some(numeric.stride()),
                Encoding::Fixed(_) => {}
            }
            let Some(stride) = self.stride else { continue };
            let (bytes, lengths) = (&mut self.cells[..], &mut self.lengths);
            let mut cells = Cells { bytes, stride: stride.bytes(), at: *at, lengths };
            match &column.encoding {
                Encoding::Fixed(fixed) => (fixed.fill)(array, tile.clone(), &mut cells),
                Encoding::Numeric(numeric) => numeric.fill(array, tile.clone(), &mut cells),
                Encoding::Text(text) => text.fill(array, tile.clone(), &mut cells),
            }
            .map_err(error)?;
        }
        Ok(())
    }

    /// Passes the row's value of a strip without cells, in pieces.
    pub(super) fn pieces(
        &self,
        columns: &[Column],
        arrays: &[&dyn Array],
        row: usize,
        mut piece: impl FnMut(&[u8]),
    ) -> Result<(), EncodeError> {
        for (position, _) in &self.columns {
            let column = &columns[*position];
            if let Encoding::Text(text) = &column.encoding {
                text.pieces(arrays[*position], row, &mut piece).map_err(|fault| column.error(fault))?;
            }
        }
        Ok(())
    }
}
