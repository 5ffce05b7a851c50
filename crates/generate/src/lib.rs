//! The text of the TPC-H tables, as the benchmark's own generator writes it.
//!
//! A pure layer over the crate `tpchgen`: no I/O, no threads. [`TpchText`] is the text of one chunk
//! of one table, to be filled into buffers or read like a file. A chunk can be cut further into
//! parts that are generated independently: [`TpchChunk::split`].
//!
//! The chunks of a table one after the other are the table as one chunk, with one exception that
//! is the benchmark's own: at scale 30000 and above the part and customer keys of ORDERS and
//! LINEITEM are 64-bit random numbers that depend on where a chunk starts, so another number of
//! chunks is another (equally valid) data set.

mod chunk;
mod error;
mod rows;
mod size;
mod table;
mod text;

pub use chunk::{MAXIMUM_CHUNKS, MAXIMUM_SCALE, MINIMUM_SCALE, TpchChunk, TpchPart, TpchSplit};
pub use error::GenerateError;
pub use size::{RowCount, estimated_bytes, expected_rows};
pub use table::TpchTable;
pub use text::{Filled, TpchText};
