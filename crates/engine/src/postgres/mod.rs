//! A blocking PostgreSQL client (protocol 3.0, servers 15 to 18): login, TLS, statements, COPY from the client.
//!
//! Sockets never block: every wait is a `poll` of at most 100 ms, between which the [`Interrupt`] and the time limit are
//! looked at. A connection whose wait was interrupted, or that was lost, stays unusable; the server rolls back.
//!
//! ```text
//! address   names to addresses           login      startup message, password, session settings
//! socket    TCP and Unix sockets         connect    hosts, addresses and TLS in libpq's order
//! tls       what is trusted, handshake   query      statements
//! channel   bytes, plain or through TLS  copy       COPY ... FROM STDIN with a sender thread
//! link      messages                     failure    what went wrong, for people
//! metered   what a meter is told         tcp_info   what the system knows of a connection
//! binary_rows  rows of one statement in bulk
//! ```

mod address;
mod binary_rows;
mod cancel;
mod certificate;
mod channel;
mod connect;
mod connection;
mod copy;
mod failure;
mod link;
mod login;
mod metered;
mod query;
mod server_message;
mod socket;
mod spec;
mod stall;
mod tcp_info;
mod tls;
mod wait;

pub use binary_rows::{BinaryColumn, BinaryRows, ResultColumn, RowsError};
pub use connection::Connection;
pub use copy::{COPY_BUFFERS, CopyIn};
pub use query::QueryResult;
pub use spec::{ConnectionSpec, HostSpec, KeepaliveSpec, TlsMode, TlsSpec};
pub use stall::SeenAtWork;
pub use wait::Interrupt;
