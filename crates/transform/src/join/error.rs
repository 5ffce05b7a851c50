//! What can be wrong with an input, as data.

use std::fmt;

use super::Side;
use crate::lookup::{KeyValue, WrongArray};

/// Why a batch is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinError {
    /// A row is against the order of its side.
    Disorder(Box<Disorder>),
    /// An array is not what the specification says.
    Array(WrongArray),
    /// A defect of the caller.
    NotNeeded(Side),
}

/// The first row of a side that is against its order. Rows are counted from 0, as they were pushed, rows without a key included, unless
/// the caller has numbered them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disorder {
    /// Its side.
    pub side: Side,
    /// What is wrong.
    pub reason: Reason,
    /// The row, counted from the beginning of its side, or as the caller has numbered it.
    pub row: u64,
    /// The row, counted from the beginning of its batch.
    pub row_in_batch: usize,
    /// Its key: a value for each key column.
    pub key: Vec<KeyValue>,
    /// The last row before it that has a key.
    pub previous_row: u64,
    /// The same, counted from the beginning of the batch; none if it was in an earlier one.
    pub previous_in_batch: Option<usize>,
    /// That row's key.
    pub previous_key: Vec<KeyValue>,
}

/// What is wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its key is less than the one before it.
    Descends,
    /// The row before it has the same key, on the side where keys come once.
    Repeats,
}

impl fmt::Display for JoinError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Disorder(disorder) => disorder.fmt(formatter),
            JoinError::Array(wrong) => wrong.fmt(formatter),
            JoinError::NotNeeded(side) => write!(formatter, "rows of the {side} side were not asked for"),
        }
    }
}

impl fmt::Display for Disorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |key: &[KeyValue]| key.iter().map(KeyValue::to_string).collect::<Vec<_>>().join(", ");
        let Disorder { side, row, previous_row, .. } = self;
        let (key, previous) = (shown(&self.key), shown(&self.previous_key));
        match self.reason {
            Reason::Descends => {
                write!(formatter, "the key {key} of {side} row {row} comes behind {previous} of row {previous_row}")
            }
            Reason::Repeats => {
                write!(formatter, "the key {key} of {side} row {row} is that of row {previous_row}, too")
            }
        }
    }
}

impl std::error::Error for JoinError {}

impl From<WrongArray> for JoinError {
    fn from(wrong: WrongArray) -> Self {
        JoinError::Array(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_a_sentence() {
        let disorder = |reason| {
            JoinError::Disorder(Box::new(Disorder {
                side: Side::Left,
                reason,
                row: 7,
                row_in_batch: 1,
                key: vec![KeyValue::Number(3), KeyValue::Text("a".to_owned())],
                previous_row: 6,
                previous_in_batch: Some(0),
                previous_key: vec![KeyValue::Number(4), KeyValue::Text("b".to_owned())],
            }))
        };
        let wrong = WrongArray { found: "Int32".to_owned(), expected: "Int64".to_owned() };
        for (error, text) in [
            (disorder(Reason::Descends), "the key 3, \"a\" of left row 7 comes behind 4, \"b\" of row 6"),
            (disorder(Reason::Repeats), "the key 3, \"a\" of left row 7 is that of row 6, too"),
            (wrong.into(), "Int32 instead of Int64"),
            (JoinError::NotNeeded(Side::Right), "rows of the right side were not asked for"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
