//! What can be wrong with a request to generate.

use std::fmt;

use crate::chunk::{MAXIMUM_CHUNKS, MAXIMUM_SCALE, MINIMUM_SCALE};

/// A request that cannot be generated. Generation itself cannot fail.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerateError {
    /// No TPC-H table has this name.
    UnknownTable {
        /// The name as given.
        name: String,
    },
    /// The scale factor is not a number in the allowed range.
    ScaleOutOfRange {
        /// The scale factor as given.
        scale: f64,
    },
    /// The scale factor lies where the generator library computes wrong keys.
    ScaleNotSupported {
        /// The scale factor as given.
        scale: f64,
    },
    /// The number of chunks is 0 or too large.
    ChunksOutOfRange {
        /// The number of chunks as given.
        chunks: u32,
    },
    /// The chunk number is not within 1..=chunks.
    ChunkOutOfRange {
        /// The chunk number as given.
        chunk: u32,
        /// The number of chunks as given.
        chunks: u32,
    },
}

impl fmt::Display for GenerateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTable { name } => write!(
                formatter,
                "no TPC-H table is called {name:?}; the tables are region, nation, supplier, \
                 customer, part, partsupp, orders, lineitem"
            ),
            Self::ScaleOutOfRange { scale } => {
                write!(formatter, "scale factor {scale} is not a number from {MINIMUM_SCALE} to {MAXIMUM_SCALE}")
            }
            Self::ScaleNotSupported { scale } => write!(
                formatter,
                "scale factor {scale} is not supported: above 10737 and below 30000 the keys of \
                 the generator overflow 32 bits"
            ),
            Self::ChunksOutOfRange { chunks } => {
                write!(formatter, "the number of chunks is {chunks}, but must be from 1 to {MAXIMUM_CHUNKS}")
            }
            Self::ChunkOutOfRange { chunk, chunks } => {
                write!(formatter, "chunk {chunk} does not exist: the chunks are numbered from 1 to {chunks}")
            }
        }
    }
}

impl std::error::Error for GenerateError {}
