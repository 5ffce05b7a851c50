//! PostgreSQL: rows of `COPY ... FROM STDIN (FORMAT binary)`, and of results in binary form.
//!
//! Format of the rows: the server's manual, COPY, "Binary Format", and "Message Formats", DataRow. Format of a value: the
//! type's receive and send functions, such as `numeric_recv` and `numeric_send` in the server's source.

pub mod copy;
mod decode;
mod encode;
mod form;
mod plan;

pub use decode::{DecodeError, Fault, Found, RowDecoder};
pub use encode::{CopyEncoder, EncodeError};
pub use form::Form;
