//! The merge join against a plain one: every kind of join and of key, wherever batches end.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod model;
mod order;
mod random;
