//! Which partition a row belongs to, as the destination itself would decide.
//!
//! ```text
//! batch -> Keys (one column) -> Method::place -> partition of every row -> Routed::of -> rows in the order of their partitions
//! ```

mod hash;
mod keys;
mod list;
mod postgres_hash;
mod range;
mod routed;

pub use hash::{HashKey, HashPartitions};
pub use keys::{Key, Keys};
pub use list::ListPartitions;
pub use range::{Range, RangePartitions};
pub use routed::{Division, OUTSIDE, Routed};

use arrow_array::Array;

/// How a table is divided.
#[derive(Debug, Clone)]
pub enum Method {
    /// By ranges of whole numbers, decimals, dates or timestamps.
    Range(RangePartitions),
    /// By lists of values.
    List(ListPartitions),
    /// By PostgreSQL's hash.
    Hash(HashPartitions),
}

impl Method {
    /// The partition of every row, by its number in the declaration, [`OUTSIDE`] for rows that no partition takes.
    /// `places` is emptied first. False if the column is not of a type that the method was made for.
    #[must_use]
    pub fn place(&self, column: &dyn Array, places: &mut Vec<u32>) -> bool {
        places.clear();
        match self {
            Method::Range(ranges) => ranges.place(column, places),
            Method::List(lists) => lists.place(column, places),
            Method::Hash(hash) => hash.place(column, places),
        }
    }
}
