//! Sends in the caller's thread, while the frame is still in the processor's cache: for flows with more streams than
//! processors, of which others work while one waits for its socket.

use std::sync::Arc;
use std::time::Instant;

use headrace_types::CoreError;

use crate::postgres::connection::Connection;

/// A buffer that a long row has made larger is freed.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// A COPY whose frames the caller sends.
pub struct Direct {
    connection: Connection,
    spare: Vec<u8>,
    failure: Option<CoreError>,
}

impl Direct {
    /// Behind the answer of the server that it takes data.
    pub fn new(connection: Connection) -> Self {
        Direct { connection, spare: Vec::new(), failure: None }
    }

    /// Any buffer.
    pub fn buffer(&mut self) -> Result<Vec<u8>, CoreError> {
        self.check()?;
        Ok(std::mem::take(&mut self.spare))
    }

    /// Sends a complete message.
    pub fn send(&mut self, frame: Vec<u8>) -> Result<(), CoreError> {
        self.check()?;
        let sent = self.connection.copy_frame(&frame);
        if frame.capacity() <= KEPT_BUFFER_BYTES {
            self.spare = frame;
        }
        sent.inspect_err(|error| self.failure = Some(error.clone()))
    }

    /// Ends the data. Returns the connection and the number of rows that the server counted.
    pub fn finish(mut self) -> Result<(Connection, u64), CoreError> {
        self.check()?;
        let rows = self.connection.copy_done()?;
        Ok((self.connection, rows))
    }

    /// Lets the COPY fail, unless it has. None if the connection is lost, or the server does not react until then.
    pub fn abort(mut self, reason: &str, until: Instant) -> Option<Connection> {
        if self.failure.is_none() {
            let outer = Arc::clone(&self.connection.link.channel.patience.interrupt);
            let watched = Arc::clone(&outer);
            self.connection.link.channel.patience.interrupt = Arc::new(move || watched() || Instant::now() >= until);
            // What the server answers is that it failed.
            let _ = self.connection.copy_fail(reason);
            self.connection.link.channel.patience.interrupt = outer;
        }
        Some(self.connection).filter(Connection::usable)
    }

    fn check(&self) -> Result<(), CoreError> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}
