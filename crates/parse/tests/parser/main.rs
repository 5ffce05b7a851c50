//! The parser against a plain second implementation, and against `docs/spec/text-to-types.md`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Also the library of the fuzz targets (`fuzz/Cargo.toml`), which has no use for the tests.
#![cfg_attr(not(test), allow(dead_code, unused_imports, missing_docs))]

mod conversions;
mod dialects;
pub mod drive;
mod examples;
mod formats;
#[cfg(test)]
mod fuzz_corpus;
pub mod fuzzing;
mod json;
mod qualified;
mod random;
pub mod reference;
mod reference_encodings;
mod reference_formats;
mod reference_places;
mod reference_values;
mod rows;
mod spec_document;
