//! PostgreSQL: rows of `COPY ... FROM STDIN (FORMAT binary)`.
//!
//! Format of the rows: the server's manual, COPY, "Binary Format". Format of a value: the type's receive function, such as
//! `numeric_recv` in the server's source.

pub mod copy;
mod encode;
mod form;
mod plan;

pub use encode::{CopyEncoder, EncodeError};
pub use form::Form;
