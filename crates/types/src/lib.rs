//! Words shared by every stage of the core: column types, layouts, locations, reject rules, errors.
//!
//! Lowest layer: no I/O, no threads, no Python.

mod column_type;
mod error;
mod layout;
mod rule;
mod server_fields;

pub use column_type::{ColumnType, MAX_DECIMAL64_PRECISION};
pub use error::{CoreError, ErrorKind, Location};
pub use layout::{Column, Layout, RowEnd};
pub use rule::Rule;
pub use server_fields::ServerFields;
