//! What an index is made of.

use arrow_array::ArrayRef;
use headrace_types::ColumnType;

/// What an index is made of.
#[derive(Debug, Clone)]
pub struct LookupSpec {
    /// One or more.
    pub keys: Vec<KeyColumn>,
    /// Columns that rows get from the row that they find.
    pub added: Vec<AddedColumn>,
    /// What is done about rows with one key.
    pub duplicates: Duplicates,
    /// Most memory, while the index is built and behind that. Beside it stand batches, and a few KB per builder.
    pub budget_bytes: u64,
}

/// A column of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its type in the lookup.
    pub lookup: ColumnType,
    /// Its type in the rows that look for something.
    pub input: ColumnType,
    /// What texts are one. Means nothing for other types.
    pub case: Case,
}

/// Which texts are one key. With char(n) on either side it is without trailing blanks on both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Those of equal bytes.
    Exact,
    /// Those whose letters differ in case only: by Unicode's simple mapping to lower case, whatever the language.
    Ignore,
}

/// A column of the lookup that rows get.
#[derive(Debug, Clone)]
pub struct AddedColumn {
    /// Its type.
    pub column_type: ColumnType,
    /// What rows get that find nothing: an array of that type with one row. Without it NULL.
    pub default: Option<ArrayRef>,
}

/// What is done about rows of the lookup with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// There is no index then.
    Error,
    /// The row that comes first in the source counts, whichever thread was faster.
    First,
}
