//! The parser against a plain second implementation, and against `docs/spec/text-to-types.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod conversions;
mod drive;
mod examples;
mod json;
mod qualified;
mod random;
mod reference;
mod reference_values;
mod rows;
mod spec_document;
