//! Flat-file bytes to Arrow batches and rejects.
//!
//! Sans-I/O: [`Parser::parse`] takes a block of bytes that ends anywhere and says how much of it it consumed. One SIMD pass
//! ([`raw::structure`]) finds every delimiter and row end of the block, [`rows`] turns them into a table of equal stride and
//! rejects rows of another shape, and [`convert`] converts tile after tile and column after column by position arithmetic.
//! What a qualifier means is defined by [`automaton`].
//!
//! `unsafe` lives in [`raw`] and nowhere else.

#![deny(unsafe_code)]

mod automaton;
mod convert;
mod parser;
mod raw;
mod reject;
mod rows;

pub use automaton::{Event, RowScanner, State};
pub use parser::{Parsed, Parser, arrow_schema};
pub use raw::cpu::{CpuPath, Task, cpu_path};
pub use raw::memory;
pub use reject::Reject;
