//! What can go wrong with an index, as data.

use std::fmt;

/// Where a row of the lookup comes from. The order of places is that of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowPlace {
    /// Number of the slice in the plan; 0 of a source that has none.
    pub slice: u32,
    /// Row of the slice, counted as whoever appends it counts.
    pub row: u64,
}

/// One column of a key, as it was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyValue {
    /// A whole number, an unscaled decimal, days or microseconds since 1970, as the column's type says; 0 or 1.
    Number(i128),
    /// A text: without trailing blanks or in lower case, if that was asked.
    Text(String),
    /// Bytes, or an identifier.
    Bytes(Vec<u8>),
}

/// A key that two rows of the lookup have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// A value for each key column.
    pub key: Vec<KeyValue>,
    /// The first row that has it.
    pub first: RowPlace,
    /// The first row that has it again: of all such rows of the source the first one.
    pub second: RowPlace,
    /// Rows whose key an earlier row has.
    pub rows: u64,
}

/// An array that is not what the specification says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongArray {
    /// What the array is.
    pub found: String,
    /// What it should be.
    pub expected: String,
}

/// Why there is no index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildError {
    /// A specification that cannot be, in a sentence.
    Specification(String),
    /// An array that is not what the specification says.
    Array(WrongArray),
    /// A key that the type of its column cannot hold.
    KeyOutside(RowPlace),
    /// A key of more bytes than keys may have.
    KeyTooLong {
        /// Its row.
        place: RowPlace,
        /// Its bytes.
        bytes: usize,
    },
    /// Two rows have one key, and that is an error.
    Duplicate(Box<Duplicate>),
    /// More memory would be needed than is allowed.
    OverBudget {
        /// What the rows that were read so far need, or what comes next.
        needed_bytes: u64,
        /// What is allowed.
        budget_bytes: u64,
    },
    /// More rows than row numbers.
    TooManyRows,
    /// Hashes of very many keys are close together. Another seed helps, so the same build again.
    Crowded,
    /// A builder was not ended, so that its rows are missing; a defect of the caller.
    Unfinished,
    /// A defect of Headrace.
    Internal(String),
}

impl fmt::Display for KeyValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Number(number) => write!(formatter, "{number}"),
            KeyValue::Text(text) => write!(formatter, "{text:?}"),
            KeyValue::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}")),
        }
    }
}

impl fmt::Display for RowPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "slice {}, row {}", self.slice, self.row)
    }
}

impl fmt::Display for WrongArray {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} instead of {}", self.found, self.expected)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Specification(sentence) | BuildError::Internal(sentence) => formatter.write_str(sentence),
            BuildError::Array(wrong) => wrong.fmt(formatter),
            BuildError::KeyOutside(place) => write!(formatter, "the key at {place} is outside its type"),
            BuildError::KeyTooLong { place, bytes } => write!(formatter, "the key at {place} has {bytes} bytes"),
            BuildError::Duplicate(duplicate) => {
                let key: Vec<String> = duplicate.key.iter().map(KeyValue::to_string).collect();
                let Duplicate { first, second, .. } = &**duplicate;
                write!(formatter, "the key {} comes at {first} and again at {second}", key.join(", "))
            }
            BuildError::OverBudget { needed_bytes, budget_bytes } => {
                write!(formatter, "the lookup needs {needed_bytes} bytes and more, and has {budget_bytes}")
            }
            BuildError::TooManyRows => formatter.write_str("the lookup has more rows than can be numbered"),
            BuildError::Crowded => formatter.write_str("hashes of very many keys of the lookup are close together"),
            BuildError::Unfinished => formatter.write_str("a part of the lookup was not read to its end"),
        }
    }
}

impl std::error::Error for BuildError {}

impl std::error::Error for WrongArray {}

impl From<WrongArray> for BuildError {
    fn from(wrong: WrongArray) -> Self {
        BuildError::Array(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_a_sentence() {
        let place = |slice, row| RowPlace { slice, row };
        let key = vec![KeyValue::Number(-7), KeyValue::Text("a\"b".to_owned()), KeyValue::Bytes(vec![0, 0xAB])];
        let duplicate = Duplicate { key, first: place(0, 3), second: place(2, 1), rows: 5 };
        let wrong = WrongArray { found: "Int32".to_owned(), expected: "Int64".to_owned() };
        for (error, text) in [
            (
                BuildError::Duplicate(Box::new(duplicate)),
                r#"the key -7, "a\"b", 00ab comes at slice 0, row 3 and again at slice 2, row 1"#,
            ),
            (
                BuildError::OverBudget { needed_bytes: 12, budget_bytes: 10 },
                "the lookup needs 12 bytes and more, and has 10",
            ),
            (wrong.into(), "Int32 instead of Int64"),
            (BuildError::KeyOutside(place(1, 2)), "the key at slice 1, row 2 is outside its type"),
            (BuildError::KeyTooLong { place: place(1, 2), bytes: 70_000 }, "the key at slice 1, row 2 has 70000 bytes"),
            (BuildError::TooManyRows, "the lookup has more rows than can be numbered"),
            (BuildError::Crowded, "hashes of very many keys of the lookup are close together"),
            (BuildError::Unfinished, "a part of the lookup was not read to its end"),
            (BuildError::Specification("no key".to_owned()), "no key"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
