//! Rows that cannot be read.

use std::fmt;

/// What is wrong with a row, and in which of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// The column that is wanted, from 0, if it is about one.
    pub column: Option<usize>,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Bytes that no server sends for these columns.
    Malformed(String),
    /// A value of the server's type that columns cannot have here.
    Value {
        /// The value.
        found: Found,
        /// What columns can have.
        expected: &'static str,
    },
}

/// A value, as far as it can be shown here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// As people read it.
    Text(String),
    /// Days or microseconds since 1970, as the column's type says.
    Since1970(i128),
}

impl Fault {
    pub(super) fn value(found: impl Into<String>, expected: &'static str) -> Fault {
        Fault::Value { found: Found::Text(found.into()), expected }
    }

    pub(super) fn width(found: usize, expected: usize) -> Fault {
        Fault::Malformed(format!("a value of {found} bytes in place of {expected}"))
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::Malformed(found) => formatter.write_str(found)?,
            Fault::Value { found: Found::Text(found), expected } => write!(formatter, "{found}, expected {expected}")?,
            Fault::Value { found: Found::Since1970(number), expected } => {
                write!(formatter, "{number} since 1970, expected {expected}")?;
            }
        }
        match self.column {
            Some(column) => write!(formatter, " in column {column}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DecodeError {}
