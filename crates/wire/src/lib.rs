//! Arrow batches to the bytes that database servers receive.
//!
//! Sans-I/O: a batch and a buffer come in, the buffer comes back with rows appended. What a column is and what the server
//! wants for it is resolved once, before the first row.

#![forbid(unsafe_code)]

pub mod postgres;
