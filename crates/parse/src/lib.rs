//! Flat-file bytes to Arrow batches and rejects.
//!
//! Sans-I/O: [`Parser::parse`] takes a block of bytes that ends anywhere and says how much of it it consumed. One SIMD pass
//! ([`raw::structure`]) finds every delimiter and row end of the block, [`rows`] turns them into a table of equal stride and
//! rejects rows of another shape, and [`convert`] converts tile after tile and column after column by position arithmetic.
//! Dialects that the structural pass does not know go through [`walk`], and rows whose columns have places through [`placed`]. What delimiters, row ends, qualifiers and escapes mean is
//! defined by [`automaton`].
//!
//! `unsafe` lives in [`raw`] and nowhere else.

#![deny(unsafe_code)]

mod automaton;
mod convert;
mod finder;
mod header;
pub mod infer;
mod made;
mod parser;
mod placed;
mod raw;
mod reject;
mod rows;
mod walk;

pub use automaton::{Automaton, Event, Mode, RowScanner, START};
pub use convert::field_by_field;
pub use header::{HeaderRow, HeaderSearch, Waiting, find_header};
pub use made::{Origins, RowOrigin};
pub use parser::{Block, Guess, Parsed, Parser, RefusedRow, arrow_schema};
pub use raw::cpu::{CpuPath, Task, cpu_path};
pub use raw::memory;
pub use reject::{BadValue, MOST_OTHER_VALUES, OtherValue, Reject, shown};
pub use rows::{LineEnds, UnequalRows};
