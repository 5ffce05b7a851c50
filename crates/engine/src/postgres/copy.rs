//! COPY ... FROM STDIN. A thread sends, so that the caller can make the next frame meanwhile.
//!
//! ```text
//! buffer() -> caller fills a frame -> send() -> queue -> sender thread -> socket
//!    ^                                                        |
//!    +-------------------- empty buffers ---------------------+
//! ```
//!
//! At most [`BUFFERS`] buffers exist. The sender looks at the socket behind every frame and, without frames, ten times a
//! second: an error of the server is known before the next frame is made.

mod sender;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use headrace_types::{CoreError, ErrorKind};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use super::connection::{Connection, unexpected};
use super::link::Outgoing;
use super::wait::{Interrupt, STEP};
use crate::outcome::lock;
use sender::{Command, Ended, run};

/// One is filled, one waits, one is sent.
const BUFFERS: usize = 3;
/// Tag and length, filled in by [`CopyIn::send`].
const HEADER_BYTES: usize = 5;
/// The server takes messages of up to 1 GB.
const MAX_FRAME_BYTES: usize = 512 << 20;
/// How long the server may take to end a COPY that failed, before the connection is dropped.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// A COPY that is under way; owns its connection. Dropped without [`CopyIn::finish`] or [`CopyIn::abort`] it closes the
/// connection, and the server rolls back.
pub struct CopyIn {
    shared: Arc<Shared>,
    interrupt: Interrupt,
    /// None only inside `drop`, `finish` and `abort`.
    commands: Option<Sender<Command>>,
    empty: Receiver<Vec<u8>>,
    sender: Option<JoinHandle<Ended>>,
    waited: Duration,
}

/// What the caller and the sender thread both see.
pub(super) struct Shared {
    /// First error.
    failure: Mutex<Option<CoreError>>,
    failed: AtomicBool,
    /// Frames that the sender has not given back yet.
    frames: AtomicUsize,
    /// Ends the waits of the sender.
    abandoned: AtomicBool,
}

impl Shared {
    fn fail(&self, error: CoreError) {
        lock(&self.failure).get_or_insert(error);
        self.failed.store(true, Ordering::Release);
    }

    fn check(&self) -> Result<(), CoreError> {
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        lock(&self.failure).clone().map_or(Ok(()), Err)
    }
}

impl Connection {
    /// Starts a COPY ... FROM STDIN.
    pub fn copy_in(mut self, sql: &str) -> Result<CopyIn, CoreError> {
        const DOING: &str = "starting a COPY";
        let mut outgoing = Outgoing::default();
        outgoing.add(|buffer| frontend::query(sql, buffer)).map_err(|found| self.server.malformed(found))?;
        self.send(DOING, outgoing.bytes())?;
        self.copy_started(DOING)?;

        let shared = Arc::new(Shared {
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            frames: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        });
        let interrupt = Arc::clone(&self.link.channel.patience.interrupt);
        let (outer, watched) = (Arc::clone(&interrupt), Arc::clone(&shared));
        self.link.channel.patience.interrupt = Arc::new(move || outer() || watched.abandoned.load(Ordering::Acquire));
        let (commands, received) = bounded(BUFFERS);
        let (recycled, empty) = bounded(BUFFERS);
        let (seen, restored) = (Arc::clone(&shared), Arc::clone(&interrupt));
        let sender = thread::Builder::new().name("postgres-send".to_owned()).spawn(move || {
            let mut ended = run(self, &received, &recycled, &seen);
            ended.connection.link.channel.patience.interrupt = restored;
            ended
        });
        let sender = sender
            .map_err(|error| CoreError::new(ErrorKind::Internal, "no thread to send with").found(error.to_string()))?;
        Ok(CopyIn { shared, interrupt, commands: Some(commands), empty, sender: Some(sender), waited: Duration::ZERO })
    }

    /// Waits until the server takes data.
    fn copy_started(&mut self, doing: &str) -> Result<(), CoreError> {
        let message = self.link.receive().map_err(|broken| self.lost(doing, broken))?;
        match message {
            Message::CopyInResponse(_) => Ok(()),
            Message::ErrorResponse(_) => {
                let error = self.answer(doing, message, &mut |_, _| Err(unexpected()))?;
                self.answers(doing, |_, _| Err(unexpected()))?;
                Err(error.unwrap_or_else(|| self.server.closed(false)))
            }
            _ => Err(self.server.malformed("it is not a COPY ... FROM STDIN".to_owned())),
        }
    }
}

impl CopyIn {
    /// A buffer that holds nothing but the room for a header at its front. Waits until the sender has one to spare.
    pub fn buffer(&mut self) -> Result<Vec<u8>, CoreError> {
        self.shared.check()?;
        let mut buffer = match self.empty.try_recv() {
            Ok(buffer) => buffer,
            Err(_) if self.shared.frames.load(Ordering::Acquire) + 1 < BUFFERS => Vec::new(),
            Err(_) => self.wait_for_buffer()?,
        };
        buffer.clear();
        buffer.resize(HEADER_BYTES, 0);
        Ok(buffer)
    }

    fn wait_for_buffer(&mut self) -> Result<Vec<u8>, CoreError> {
        let start = Instant::now();
        let buffer = loop {
            match self.empty.recv_timeout(STEP) {
                Ok(buffer) => break Ok(buffer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Err(self.sender_gone()),
            }
            if let Err(error) = self.go_on() {
                break Err(error);
            }
        };
        self.waited += start.elapsed();
        buffer
    }

    /// Sends a buffer from [`CopyIn::buffer`] with data appended, as one CopyData message.
    pub fn send(&mut self, mut frame: Vec<u8>) -> Result<(), CoreError> {
        self.shared.check()?;
        let length = u32::try_from(frame.len().saturating_sub(1)).ok().filter(|_| frame.len() <= MAX_FRAME_BYTES);
        let (Some(length), Some(header)) = (length, frame.first_chunk_mut::<HEADER_BYTES>()) else {
            return Err(CoreError::new(ErrorKind::Internal, "frame of a COPY")
                .found(format!("{} bytes", frame.len()))
                .expected(format!("{HEADER_BYTES} to {MAX_FRAME_BYTES} bytes")));
        };
        header[0] = b'd';
        header[1..].copy_from_slice(&length.to_be_bytes());
        self.shared.frames.fetch_add(1, Ordering::AcqRel);
        let start = Instant::now();
        let sent = self.command(Command::Frame(frame), None);
        self.waited += start.elapsed();
        sent
    }

    /// Waits until the sender has passed on everything, so that no memory of it is held here.
    pub fn wait_until_sent(&mut self) -> Result<(), CoreError> {
        let start = Instant::now();
        let sent = loop {
            if self.shared.frames.load(Ordering::Acquire) == 0 {
                break self.shared.check();
            }
            let gone = self.sender.as_ref().is_none_or(JoinHandle::is_finished);
            if let Err(error) = if gone { Err(self.sender_gone()) } else { self.go_on() } {
                break Err(error);
            }
            thread::sleep(Duration::from_millis(1));
        };
        self.waited += start.elapsed();
        sent
    }

    /// Ends the data. Returns the connection and the number of rows that the server counted.
    pub fn finish(mut self) -> Result<(Connection, u64), CoreError> {
        self.shared.check()?;
        self.command(Command::Done, None)?;
        let ended = self.join()?;
        self.shared.check()?;
        ended.rows.map(|rows| (ended.connection, rows)).ok_or_else(|| self.sender_gone())
    }

    /// Ends the COPY with an error, which aborts the transaction. None if the connection is lost, or the server does not
    /// react within 5 seconds.
    pub fn abort(mut self, reason: &str) -> Option<Connection> {
        let until = Instant::now() + ABORT_LIMIT;
        // If there is no way to say so, the sender has ended or will be ended below.
        let _ = self.command(Command::Fail(reason.replace('\0', " ")), Some(until));
        while !self.sender.as_ref()?.is_finished() {
            if Instant::now() >= until {
                self.shared.abandoned.store(true, Ordering::Release);
            }
            thread::sleep(Duration::from_millis(1));
        }
        let ended = self.join().ok()?;
        Some(ended.connection).filter(Connection::usable)
    }

    /// Time that `buffer`, `send` and `wait_until_sent` have waited for the sender.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    fn command(&mut self, mut command: Command, until: Option<Instant>) -> Result<(), CoreError> {
        loop {
            let Some(commands) = &self.commands else { return Err(self.sender_gone()) };
            match commands.send_timeout(command, STEP) {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Timeout(back)) => command = back,
                Err(SendTimeoutError::Disconnected(_)) => return Err(self.sender_gone()),
            }
            if until.is_none() {
                self.go_on()?;
            } else if until.is_some_and(|until| Instant::now() >= until) {
                return Err(self.sender_gone());
            }
        }
    }

    /// Whether it makes sense to wait longer.
    fn go_on(&self) -> Result<(), CoreError> {
        self.shared.check()?;
        if (self.interrupt)() {
            return Err(CoreError::new(ErrorKind::Cancelled, "cancelled while sending rows to PostgreSQL"));
        }
        Ok(())
    }

    fn join(&mut self) -> Result<Ended, CoreError> {
        self.commands = None;
        let ended = self.sender.take().map(JoinHandle::join);
        ended.and_then(Result::ok).ok_or_else(|| self.sender_gone())
    }

    fn sender_gone(&self) -> CoreError {
        let failed = self.shared.check().err();
        failed.unwrap_or_else(|| CoreError::new(ErrorKind::Internal, "the sender of a COPY ended without a reason"))
    }
}

impl Drop for CopyIn {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(sender) = self.sender.take() {
            self.shared.abandoned.store(true, Ordering::Release);
            let _ = sender.join();
        }
    }
}
