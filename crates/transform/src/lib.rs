//! Batches in, batches out: what happens to rows between a source and a destination.
//!
//! No I/O, no threads. So far: which partition of its target a row belongs to.

pub mod partition;
