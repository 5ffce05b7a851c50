//! The thread that sends.

use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::Shared;
use crate::postgres::connection::Connection;
use crate::postgres::copy::messages::SENDING;
use crate::postgres::wait::{Broken, STEP};

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
                let error = connection.lost(SENDING, Broken::Interrupted);
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
