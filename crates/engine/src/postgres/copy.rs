//! COPY ... FROM STDIN.
//!
//! | file | job |
//! | --- | --- |
//! | `overlapped` | a thread sends while the caller makes the next frame |
//! | `direct` | the caller sends |
//! | `messages` | what goes over the wire |

mod direct;
mod messages;
mod overlapped;

use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use headrace_types::{CoreError, ErrorKind};

use super::cancel;
use super::connection::Connection;
use super::wait::STEP;
use direct::Direct;
pub use overlapped::COPY_BUFFERS;
use overlapped::Overlapped;

/// Tag and length, filled in by [`CopyIn::send`].
const HEADER_BYTES: usize = 5;
/// The server takes messages of up to 1 GB.
const MAX_FRAME_BYTES: usize = 512 << 20;
/// How long giving up COPYs may take, however many they are.
const ABORT_LIMIT: Duration = Duration::from_secs(5);
/// What remains of it for those whose server says nothing: to notice that nobody waits any longer, and to ask for the end of
/// the session.
const ABANDON_LIMIT: Duration = STEP.saturating_add(cancel::ENCRYPTED_LIMIT);

/// A COPY that is under way; owns its connection. Dropped without [`CopyIn::finish`] or [`CopyIn::abort`] it closes the
/// connection, and the server rolls back.
pub struct CopyIn(Way);

enum Way {
    Overlapped(Overlapped),
    Direct(Box<Direct>),
}

impl Connection {
    /// Starts a COPY ... FROM STDIN whose frames a thread sends, so that the caller can make the next one meanwhile.
    pub fn copy_in(mut self, sql: &str) -> Result<CopyIn, CoreError> {
        self.copy_start(sql)?;
        Ok(CopyIn(Way::Overlapped(Overlapped::start(self)?)))
    }

    /// Starts a COPY ... FROM STDIN whose frames the caller sends: it waits for the server, and an error of the server is known
    /// behind the next frame.
    pub fn copy_in_directly(mut self, sql: &str) -> Result<CopyIn, CoreError> {
        self.copy_start(sql)?;
        Ok(CopyIn(Way::Direct(Box::new(Direct::new(self)))))
    }
}

impl CopyIn {
    /// A buffer that holds nothing but the room for a header at its front. Waits until there is one to spare.
    pub fn buffer(&mut self) -> Result<Vec<u8>, CoreError> {
        let mut buffer = match &mut self.0 {
            Way::Overlapped(copy) => copy.buffer(),
            Way::Direct(copy) => copy.buffer(),
        }?;
        buffer.clear();
        buffer.resize(HEADER_BYTES, 0);
        Ok(buffer)
    }

    /// Sends a buffer from [`CopyIn::buffer`] with data appended, as one CopyData message.
    pub fn send(&mut self, mut frame: Vec<u8>) -> Result<(), CoreError> {
        let length = u32::try_from(frame.len().saturating_sub(1)).ok().filter(|_| frame.len() <= MAX_FRAME_BYTES);
        let (Some(length), Some(header)) = (length, frame.first_chunk_mut::<HEADER_BYTES>()) else {
            return Err(CoreError::new(ErrorKind::Internal, "frame of a COPY")
                .found(format!("{} bytes", frame.len()))
                .expected(format!("{HEADER_BYTES} to {MAX_FRAME_BYTES} bytes")));
        };
        header[0] = b'd';
        header[1..].copy_from_slice(&length.to_be_bytes());
        match &mut self.0 {
            Way::Overlapped(copy) => copy.send(frame),
            Way::Direct(copy) => copy.send(frame),
        }
    }

    /// Waits until everything is passed on, so that no memory of it is held here.
    pub fn wait_until_sent(&mut self) -> Result<(), CoreError> {
        match &mut self.0 {
            Way::Overlapped(copy) => copy.wait_until_sent(),
            Way::Direct(_) => Ok(()),
        }
    }

    /// Ends the data. Returns the connection and the number of rows that the server counted.
    pub fn finish(self) -> Result<(Connection, u64), CoreError> {
        match self.0 {
            Way::Overlapped(copy) => copy.finish(),
            Way::Direct(copy) => copy.finish(),
        }
    }

    /// Ends the COPY with an error, which aborts the transaction. None if the connection is lost, or the server does not
    /// react; takes at most 5 seconds.
    pub fn abort(self, reason: &str) -> Option<Connection> {
        Self::abort_all(vec![self], reason).pop().flatten()
    }

    /// The same for several COPYs, side by side: all of them together take at most 5 seconds.
    pub fn abort_all(copies: Vec<CopyIn>, reason: &str) -> Vec<Option<Connection>> {
        let until = Instant::now() + ABORT_LIMIT - ABANDON_LIMIT;
        let reason = reason.replace('\0', " ");
        let reason = reason.as_str();
        thread::scope(|scope| {
            let ending = copies.into_iter().map(|copy| match copy.0 {
                Way::Overlapped(copy) => Ending::Overlapped(copy),
                // Without a thread there is nobody to wait for the server: the connection is closed.
                Way::Direct(copy) => {
                    Ending::Direct(thread::Builder::new().spawn_scoped(scope, move || copy.abort(reason, until)).ok())
                }
            });
            let ending: Vec<Ending<'_>> = ending.collect();
            Overlapped::fail_all(&ending.iter().filter_map(Ending::overlapped).collect::<Vec<_>>(), reason, until);
            ending.into_iter().map(Ending::ended).collect()
        })
    }
}

/// A COPY that is given up.
enum Ending<'scope> {
    Overlapped(Overlapped),
    /// The thread that waits for the server in place of the caller.
    Direct(Option<ScopedJoinHandle<'scope, Option<Connection>>>),
}

impl Ending<'_> {
    fn overlapped(&self) -> Option<&Overlapped> {
        match self {
            Ending::Overlapped(copy) => Some(copy),
            Ending::Direct(_) => None,
        }
    }

    /// The connection, once its COPY has ended. None if it is lost.
    fn ended(self) -> Option<Connection> {
        match self {
            Ending::Overlapped(copy) => copy.ended(),
            Ending::Direct(thread) => thread?.join().ok().flatten(),
        }
    }
}
