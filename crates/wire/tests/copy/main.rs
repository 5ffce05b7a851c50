//! What the encoder writes: equal to what servers wrote, and read back by a plain decoder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decode;
mod golden;
mod plan;
mod random;
mod values;
