//! Lookups: rows find a row of another table by its key, and get columns of it.
//!
//! ```text
//! LookupBuild -> a LookupBuilder per thread: append, end -> LookupBuild::finish -> LookupIndex: probe, gather
//! ```
//!
//! | file | job |
//! | --- | --- |
//! | `spec`, `error` | what an index is made of, why there is none |
//! | `keys` | which columns can be keys, what is compared |
//! | `build` | rows that are read, then the form that suits them |
//! | `staging`, `origins`, `budget`, `team` | keys by their hashes, numbers and places of rows, memory, shared work |
//! | `fill` | from staged keys to a table |
//! | `direct`, `lines`, `short`, `hashed`, `table` | the forms |
//! | `huge_pages` | memory for them |
//! | `columns` | added columns |
//! | `fingerprint` | whether the rows are those of another time |
//! | `probe` | looking for the rows of a batch |

mod budget;
mod build;
mod columns;
mod direct;
mod error;
mod fill;
mod fingerprint;
mod hashed;
mod huge_pages;
pub(crate) mod keys;
mod lines;
mod origins;
mod probe;
mod short;
mod spec;
mod staging;
mod table;
mod team;

pub use build::{LookupBuild, LookupBuilder};
pub use error::{BuildError, Duplicate, KeyValue, RowPlace, WrongArray};
pub use fingerprint::Fingerprint;
pub use probe::{NO_MATCH, NULL_KEY, Probed};
pub use spec::{AddedColumn, Case, Duplicates, KeyColumn, LookupSpec};
pub use table::Form;
pub use team::Team;

use columns::{InlineColumn, StoredColumn};
use keys::{KeyForm, KeyPlan};
use table::Table;

/// The rows of a lookup, to be found by their keys. It does not change, so that all streams share one.
pub struct LookupIndex {
    keys: KeyPlan,
    table: Table,
    seed: u64,
    added: Added,
    rows: u64,
    duplicates: u64,
    null_keys: u64,
    fingerprint: Fingerprint,
    peak_bytes: u64,
}

/// Added columns.
enum Added {
    /// Payloads are rows of these.
    Stored(Vec<StoredColumn>),
    /// Payloads are values.
    Inline(InlineColumn),
}

impl LookupIndex {
    /// Memory of the index: its table, keys and added columns.
    pub fn bytes(&self) -> u64 {
        self.table.bytes() + self.added_bytes()
    }

    /// Memory of the added columns, as far as they are not in the table.
    pub fn added_bytes(&self) -> u64 {
        match &self.added {
            Added::Stored(columns) => columns.iter().map(StoredColumn::bytes).sum(),
            Added::Inline(_) => 0,
        }
    }

    /// Most memory that building it took.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Rows that can be found: one for each key.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows that were left out because an earlier one has their key. Their added columns are kept.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Rows that were left out because a key column was NULL.
    pub fn null_keys(&self) -> u64 {
        self.null_keys
    }

    /// Of the keys and added columns of all rows that were read, in any order.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// NULLs in an added column, by its place in the specification.
    pub fn added_nulls(&self, column: usize) -> usize {
        match &self.added {
            Added::Stored(columns) => columns.get(column).map_or(0, |column| column.rows().null_count()),
            Added::Inline(_) => 0,
        }
    }

    /// How keys are found.
    pub fn form(&self) -> Form {
        self.table.form()
    }

    /// Rows of the added columns: those that can be found, and duplicates.
    fn stored_rows(&self) -> u32 {
        (self.rows + self.duplicates) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_an_index() {
        fn shared<T: Send + Sync>() {}
        shared::<LookupIndex>();
        shared::<LookupBuild>();
        fn sent<T: Send>() {}
        sent::<LookupBuilder>();
    }
}
