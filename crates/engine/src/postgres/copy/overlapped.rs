//! Sends in a thread of its own, so that the caller can make the next frame meanwhile.
//!
//! ```text
//! buffer() -> caller fills a frame -> send() -> queue -> sender thread -> socket
//!    ^                                                        |
//!    +-------------------- empty buffers ---------------------+
//! ```
//!
//! At most [`COPY_BUFFERS`] buffers exist. The sender looks at the socket behind every frame and, without frames, ten times a
//! second: an error of the server is known before the next frame is made.

mod sender;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, TrySendError, bounded};
use headrace_types::{CoreError, ErrorKind};

use crate::outcome::lock;
use crate::postgres::connection::Connection;
use crate::postgres::wait::{Interrupt, STEP};
use sender::{Command, Ended, run};

/// One is filled, one waits, one is sent.
pub const COPY_BUFFERS: usize = 3;

/// A COPY whose frames a thread sends.
pub struct Overlapped {
    shared: Arc<Shared>,
    interrupt: Interrupt,
    /// None only inside `drop`, `finish` and `ended`.
    commands: Option<Sender<Command>>,
    empty: Receiver<Vec<u8>>,
    sender: Option<JoinHandle<Ended>>,
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

impl Overlapped {
    /// Starts the thread, behind the answer of the server that it takes data.
    pub fn start(mut connection: Connection) -> Result<Overlapped, CoreError> {
        let shared = Arc::new(Shared {
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            frames: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        });
        let interrupt = Arc::clone(&connection.link.channel.patience.interrupt);
        let (outer, watched) = (Arc::clone(&interrupt), Arc::clone(&shared));
        connection.link.channel.patience.interrupt =
            Arc::new(move || outer() || watched.abandoned.load(Ordering::Acquire));
        let (commands, received) = bounded(COPY_BUFFERS);
        let (recycled, empty) = bounded(COPY_BUFFERS);
        let (seen, restored) = (Arc::clone(&shared), Arc::clone(&interrupt));
        let sender = thread::Builder::new().name("postgres-send".to_owned()).spawn(move || {
            let mut ended = run(connection, &received, &recycled, &seen);
            ended.connection.link.channel.patience.interrupt = restored;
            ended
        });
        let sender = sender
            .map_err(|error| CoreError::new(ErrorKind::Internal, "no thread to send with").found(error.to_string()))?;
        Ok(Overlapped { shared, interrupt, commands: Some(commands), empty, sender: Some(sender) })
    }

    /// Any buffer. Waits until the sender has one to spare.
    pub fn buffer(&mut self) -> Result<Vec<u8>, CoreError> {
        self.shared.check()?;
        match self.empty.try_recv() {
            Ok(buffer) => Ok(buffer),
            Err(_) if self.shared.frames.load(Ordering::Acquire) + 1 < COPY_BUFFERS => Ok(Vec::new()),
            Err(_) => self.wait_for_buffer(),
        }
    }

    fn wait_for_buffer(&mut self) -> Result<Vec<u8>, CoreError> {
        loop {
            match self.empty.recv_timeout(STEP) {
                Ok(buffer) => return Ok(buffer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.sender_gone()),
            }
            self.go_on()?;
        }
    }

    /// Sends a complete message.
    pub fn send(&mut self, frame: Vec<u8>) -> Result<(), CoreError> {
        self.shared.check()?;
        self.shared.frames.fetch_add(1, Ordering::AcqRel);
        self.command(Command::Frame(frame))
    }

    /// Waits until the sender has passed on everything, so that no memory of it is held here.
    pub fn wait_until_sent(&mut self) -> Result<(), CoreError> {
        while self.shared.frames.load(Ordering::Acquire) != 0 {
            let gone = self.sender.as_ref().is_none_or(JoinHandle::is_finished);
            if gone {
                return Err(self.sender_gone());
            }
            self.go_on()?;
            thread::sleep(Duration::from_millis(1));
        }
        self.shared.check()
    }

    /// Ends the data. Returns the connection and the number of rows that the server counted.
    pub fn finish(mut self) -> Result<(Connection, u64), CoreError> {
        self.shared.check()?;
        self.command(Command::Done)?;
        let ended = self.join()?;
        self.shared.check()?;
        ended.rows.map(|rows| (ended.connection, rows)).ok_or_else(|| self.sender_gone())
    }

    /// Lets COPYs fail, and waits until their senders have ended. The waits of those that have not until then are ended.
    pub fn fail_all(copies: &[&Overlapped], reason: &str, until: Instant) {
        let mut untold = copies.to_vec();
        while copies.iter().any(|copy| copy.is_running()) {
            untold.retain(|copy| !copy.fail(reason));
            if Instant::now() >= until {
                copies.iter().for_each(|copy| copy.abandon());
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Says once that the COPY has to fail; false if there is no room for that now. If the sender has ended, there is nobody
    /// to tell.
    fn fail(&self, reason: &str) -> bool {
        let told = self.commands.as_ref().map(|commands| commands.try_send(Command::Fail(reason.to_owned())));
        !matches!(told, Some(Err(TrySendError::Full(_))))
    }

    /// Whether the sender works.
    fn is_running(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| !sender.is_finished())
    }

    /// Ends the sender's waits.
    fn abandon(&self) {
        self.shared.abandoned.store(true, Ordering::Release);
    }

    /// The connection, once the sender has ended. None if it is lost.
    pub fn ended(mut self) -> Option<Connection> {
        self.join().ok().map(|ended| ended.connection).filter(Connection::usable)
    }

    fn command(&mut self, mut command: Command) -> Result<(), CoreError> {
        loop {
            let Some(commands) = &self.commands else { return Err(self.sender_gone()) };
            match commands.send_timeout(command, STEP) {
                Ok(()) => return Ok(()),
                Err(SendTimeoutError::Timeout(back)) => command = back,
                Err(SendTimeoutError::Disconnected(_)) => return Err(self.sender_gone()),
            }
            self.go_on()?;
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

impl Drop for Overlapped {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(sender) = self.sender.take() {
            self.shared.abandoned.store(true, Ordering::Release);
            let _ = sender.join();
        }
    }
}
