//! What the thread that has a connection tells its meter.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::socket::Socket;
use crate::meter::{Sending, WriterMeter};

/// Least time between two looks at what the system knows of the connection.
const LOOK: Duration = Duration::from_millis(250);

/// The meter of a channel, if it has one.
#[derive(Default)]
pub struct Metered {
    meter: Option<Arc<WriterMeter>>,
    looked: Option<Instant>,
}

impl Metered {
    /// A channel with that meter.
    pub fn by(meter: Arc<WriterMeter>) -> Self {
        Metered { meter: Some(meter), looked: None }
    }

    /// The channel begins something else.
    pub fn turn_to(&self, sending: Sending) {
        if let Some(meter) = &self.meter {
            meter.turn_to(sending);
        }
    }

    /// The channel is at this as long as `work` takes.
    pub fn during<T>(&self, sending: Sending, work: impl FnOnce() -> T) -> T {
        let before = self.meter.as_ref().map(|meter| meter.turn_to(sending));
        let done = work();
        before.into_iter().for_each(|before| self.turn_to(before));
        done
    }

    /// The system has taken bytes.
    pub fn add_bytes(&self, bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.add_bytes(bytes as u64);
        }
    }

    /// A message with rows was sent.
    pub fn add_frame(&self) {
        if let Some(meter) = &self.meter {
            meter.add_frame();
        }
    }

    /// Asks the system about the connection, if the last time was long ago.
    pub fn look(&mut self, socket: &Socket) {
        let Some(meter) = &self.meter else { return };
        let now = Instant::now();
        if self.looked.is_none_or(|looked| now - looked >= LOOK) {
            self.looked = Some(now);
            meter.set_tcp(socket.tcp_info());
        }
    }

    /// The connection is about to be closed; a second call does nothing.
    pub fn end(&self, socket: &Socket) {
        if let Some(meter) = &self.meter {
            meter.end(|| socket.tcp_info());
        }
    }
}
