//! A row that was given to the sink, as one number: whoever keeps rows apart by it need not keep where they came from.

use serde::{Deserialize, Serialize};

/// Bits for the rows of one slice.
const ROW_BITS: u32 = 40;

/// A slice, and how many rows of it were given to the sink before this one. Ascends in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RowPosition(u64);

impl RowPosition {
    /// Greatest number of a slice whose rows have positions.
    pub const MAXIMUM_SLICE: u32 = (1 << (64 - ROW_BITS)) - 1;

    /// The first row of a slice, whose number is at most [`Self::MAXIMUM_SLICE`].
    pub const fn first(slice: u32) -> Self {
        RowPosition((slice as u64) << ROW_BITS)
    }

    /// The row `rows` further down its slice.
    pub const fn plus(self, rows: u64) -> Self {
        RowPosition(self.0 + rows)
    }

    /// Number of the slice.
    pub fn slice(self) -> u32 {
        // 24 bits are left.
        (self.0 >> ROW_BITS) as u32
    }

    /// The one that [`Self::number`] has given.
    pub(crate) fn of_number(number: u64) -> Self {
        RowPosition(number)
    }

    /// As stored in a column.
    pub fn number(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_ascend_in_file_order() {
        let rows = [
            RowPosition::first(1),
            RowPosition::first(1).plus(1),
            RowPosition::first(1).plus((1 << ROW_BITS) - 1),
            RowPosition::first(2),
            RowPosition::first(RowPosition::MAXIMUM_SLICE),
        ];
        assert!(rows.is_sorted());
        assert_eq!(rows.map(RowPosition::slice), [1, 1, 1, 2, RowPosition::MAXIMUM_SLICE]);
    }
}
