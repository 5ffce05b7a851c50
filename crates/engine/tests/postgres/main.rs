//! The PostgreSQL client against real servers.
//!
//! Tests that need a server built with OpenSSL are ignored unless asked for (`-- --include-ignored`): the servers that
//! `make test` installs have none. CI has one and asks for them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod beside;
mod binary_rows;
mod certificates;
mod commits;
mod copies;
mod encryption;
mod flows;
mod logins;
mod measured;
#[path = "../shared/patience.rs"]
mod patience;
mod routed;
mod server;
mod statements;
