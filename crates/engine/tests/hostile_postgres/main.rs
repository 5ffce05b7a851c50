//! The PostgreSQL client against servers that are broken, hostile, silent, or no PostgreSQL at all: it never panics, never
//! hangs, never shows a password, and says what is wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binary_rows;
mod copies;
mod fake;
mod logins;
#[path = "../shared/patience.rs"]
mod patience;
mod sessions;
