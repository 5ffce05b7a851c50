//! What the encoder writes: equal to what servers wrote, and read back by a plain decoder.

mod decode;
mod golden;
mod plan;
mod random;
mod values;
