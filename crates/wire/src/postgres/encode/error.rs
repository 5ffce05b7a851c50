//! A batch that does not fit the plan.

use std::fmt;

/// What could not be encoded, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError {
    /// Column of the batch.
    pub column: usize,
    /// Row of the batch; `None` when the column as a whole does not fit.
    pub row: Option<usize>,
    /// What stands there.
    pub found: String,
    /// What the plan says.
    pub expected: String,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EncodeError { column, row, found, expected } = self;
        write!(formatter, "cannot encode column {column}")?;
        if let Some(row) = row {
            write!(formatter, ", row {row}")?;
        }
        write!(formatter, " of the batch: found {found}, expected {expected}")
    }
}

impl std::error::Error for EncodeError {}
