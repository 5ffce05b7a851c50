//! The thread that sends.

use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use headrace_types::CoreError;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::Shared;
use crate::postgres::connection::{Connection, unexpected};
use crate::postgres::link::Outgoing;
use crate::postgres::wait::{Broken, STEP};

const DOING: &str = "sending rows";
/// A buffer that a long row has made larger is freed: every writer would keep some of them.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

/// What the caller wants.
pub enum Command {
    /// A CopyData message, complete.
    Frame(Vec<u8>),
    /// No more data.
    Done,
    /// The COPY has to fail, and why.
    Fail(String),
}

/// How it ended. Errors are in [`Shared`].
pub struct Ended {
    /// The connection, usable or not.
    pub connection: Connection,
    /// Rows that the server counted; None if the COPY failed.
    pub rows: Option<u64>,
}

/// Sends until the caller ends the COPY. After an error, frames are only taken back.
pub fn run(
    mut connection: Connection,
    commands: &Receiver<Command>,
    recycled: &Sender<Vec<u8>>,
    shared: &Shared,
) -> Ended {
    let rows = loop {
        let failed = shared.check().is_err();
        let done = match commands.recv_timeout(STEP) {
            Ok(Command::Frame(frame)) => {
                let sent = if failed { Ok(()) } else { connection.copy_frame(&frame) };
                let buffer = if frame.capacity() > KEPT_BUFFER_BYTES { Vec::new() } else { frame };
                // Back before it counts as back: who sees the number finds the buffer. There may be nobody any more.
                let _ = recycled.try_send(buffer);
                shared.frames.fetch_sub(1, Ordering::AcqRel);
                sent
            }
            Ok(Command::Done | Command::Fail(_)) if failed => break None,
            Ok(Command::Done) => break connection.copy_done().map_err(|error| shared.fail(error)).ok(),
            Ok(Command::Fail(reason)) => {
                shared.fail(connection.copy_fail(&reason));
                break None;
            }
            Err(RecvTimeoutError::Timeout) if failed => Ok(()),
            Err(RecvTimeoutError::Timeout) => connection.copy_look(),
            Err(RecvTimeoutError::Disconnected) => {
                let error = connection.lost(DOING, Broken::Interrupted);
                shared.fail(error);
                break None;
            }
        };
        if let Err(error) = done {
            shared.fail(error);
        }
    };
    Ended { connection, rows }
}

impl Connection {
    fn copy_frame(&mut self, frame: &[u8]) -> Result<(), CoreError> {
        self.send(DOING, frame)?;
        self.copy_look()
    }

    /// Whether the server has reported an error. Then the COPY is over: what was sent behind it is ignored there.
    fn copy_look(&mut self) -> Result<(), CoreError> {
        let Some(message) = self.link.try_receive().map_err(|broken| self.lost(DOING, broken))? else { return Ok(()) };
        match self.answer(DOING, message, &mut |_, _| Err(unexpected()))? {
            None => Ok(()),
            Some(error) => {
                self.answers(DOING, |_, _| Err(unexpected()))?;
                Err(error)
            }
        }
    }

    fn copy_done(&mut self) -> Result<u64, CoreError> {
        const DOING: &str = "ending a COPY";
        let mut outgoing = Outgoing::default();
        outgoing.put(frontend::copy_done);
        self.send(DOING, outgoing.bytes())?;
        let mut rows = None;
        self.answers(DOING, |_, message| match message {
            Message::CommandComplete(body) => {
                rows = body.tag().ok().and_then(|tag| tag.strip_prefix("COPY ")?.parse().ok());
                rows.map(|_: u64| ()).ok_or_else(unexpected)
            }
            _ => Err(unexpected()),
        })?;
        rows.ok_or_else(|| self.lost(DOING, unexpected()))
    }

    /// Lets the COPY fail. Returns the server's error, which says so.
    fn copy_fail(&mut self, reason: &str) -> CoreError {
        const DOING: &str = "aborting a COPY";
        let mut outgoing = Outgoing::default();
        if outgoing.add(|buffer| frontend::copy_fail(reason, buffer)).is_err() {
            return self.lost(DOING, unexpected());
        }
        let answered = self.send(DOING, outgoing.bytes()).and_then(|()| self.answers(DOING, |_, _| Err(unexpected())));
        answered.err().unwrap_or_else(|| self.lost(DOING, unexpected()))
    }
}
