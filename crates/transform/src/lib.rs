//! Batches in, batches out: what happens to rows between a source and a destination.
//!
//! No I/O, no threads of its own: which partition of its target a row belongs to, which row of a lookup it finds, which
//! rows of another input it is joined with.

#![deny(unsafe_code)]

pub mod join;
pub mod lookup;
pub mod partition;
