//! The engine: slices, streams, pools, sinks, counters. First layer with threads and files.
//!
//! A [`Flow`] runs one data flow: streams (threads) take slices from a queue, largest first, read them in blocks, parse the
//! blocks and write the batches to a sink. Everything that crosses to Python is data ([`spec`], [`report`]).

mod affinity;
mod destinations;
pub mod file_layout;
mod flow;
pub mod generate_files;
pub mod hash_places;
pub mod infer;
mod joined_row;
pub mod key_bounds;
mod key_column;
pub mod key_scan;
mod last_row_end;
mod last_rows;
mod line_parser;
mod locate;
pub mod lookup;
pub mod measure;
mod memory_pool;
mod meter;
mod origins;
mod outcome;
pub mod postgres;
mod queue;
mod rejects;
pub mod replay_rows;
pub mod report;
mod routing;
mod row_counts;
mod row_numbers;
pub mod row_position;
mod sink;
pub mod slices;
mod source;
pub mod spec;
mod stream;
pub mod text_hash;
mod transforms;
mod unified;

pub use flow::Flow;
pub use memory_pool::return_large_memory;
pub use sink::arrow::BatchReader;
pub use stream::Arriving;
pub use transforms::{Failure, FailureKind, Window};
