//! What the encoder writes: equal to what servers wrote, and read back by a plain decoder; and what our own decoder reads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decode;
mod decoded;
mod golden;
mod plan;
mod random;
mod values;
