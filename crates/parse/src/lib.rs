//! Flat-file bytes to Arrow batches and rejects.
//!
//! Sans-I/O: [`Parser::parse`] takes a block of bytes that ends anywhere and says how much of it it consumed. One SIMD pass
//! ([`structure`]) finds every delimiter and row end of the block, [`rows`] turns them into a table of equal stride and
//! rejects rows of another shape, and [`convert`] converts column after column by position arithmetic.
//!
//! `unsafe` lives in [`memory`] (aligned, recycled memory), [`structure`] (SIMD), [`fields`] (padded loads) and, once, where
//! [`convert`] makes an Arrow array of checked values; each block has its proof.

mod automaton;
mod convert;
mod fields;
pub mod memory;
mod parser;
mod reject;
mod rows;
mod structure;

pub use automaton::{Event, RowScanner, State};
pub use parser::{Parsed, Parser, arrow_schema};
pub use reject::Reject;
pub use structure::{CpuPath, cpu_path};
