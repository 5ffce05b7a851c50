//! The PostgreSQL client against real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests; the helpers lie outside of #[test] functions

mod copies;
mod logins;
mod server;
mod statements;
