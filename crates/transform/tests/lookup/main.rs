//! The index against a plain map: every kind of key, every form, several threads.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod budget;
mod forms;
mod model;
mod random;
mod values;
