//! How long a wait may last, and how it can end.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Asked about every 100 ms in every wait; true ends the wait and with it the connection.
pub type Interrupt = Arc<dyn Fn() -> bool + Send + Sync>;

/// Longest time between two looks at the interrupt.
pub const STEP: Duration = Duration::from_millis(100);

/// Why the exchange with the server cannot go on.
#[derive(Debug)]
pub enum Broken {
    /// The interrupt said so.
    Interrupted,
    /// The time limit of the connect passed.
    TimedOut,
    /// The host's name has no address; the system's text.
    Name(String),
    /// Nothing has moved for that long, although bytes were pending.
    Stalled(Duration),
    /// The server closed the connection.
    Closed,
    /// The operating system's error.
    Io(io::Error),
    /// The TLS library's error.
    Tls(rustls::Error),
    /// The server sent more than is taken.
    TooLarge(String),
    /// The server sent what the protocol does not allow.
    Protocol(String),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Io(error)
    }
}

/// What ends a wait early.
#[derive(Clone)]
pub struct Patience {
    /// Asked in every wait.
    pub interrupt: Interrupt,
    /// End of the wait, whatever happens.
    pub deadline: Option<Instant>,
}

impl Patience {
    /// Fails if nobody wants to wait any more.
    pub fn check(&self) -> Result<(), Broken> {
        if (self.interrupt)() {
            return Err(Broken::Interrupted);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Broken::TimedOut),
            _ => Ok(()),
        }
    }

    /// How long to sleep before the next [`Patience::check`].
    pub fn step(&self) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(STEP, |left| left.min(STEP))
    }

    /// The same interrupt, and at most `limit` from now.
    pub fn at_most(&self, limit: Option<Duration>) -> Patience {
        let own = limit.and_then(|limit| Instant::now().checked_add(limit));
        let deadline = match (self.deadline, own) {
            (Some(outer), Some(own)) => Some(outer.min(own)),
            (outer, own) => outer.or(own),
        };
        Patience { interrupt: Arc::clone(&self.interrupt), deadline }
    }
}
