//! Standard input and named pipes: bytes that come once.

use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headrace_types::{CoreError, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use super::ByteSource;
use super::ahead::Abandoned;
use crate::outcome::Outcome;

/// The name of standard input.
pub const STANDARD_INPUT: &str = "-";
/// Longest time between two looks whether the flow was stopped.
const STEP: Duration = Duration::from_millis(20);

/// A pipe that is open for reading.
pub struct Pipe {
    descriptor: OwnedFd,
    path: String,
    outcome: Arc<Outcome>,
    abandoned: Abandoned,
    /// When the first byte, or the end, has to be there; none once it was.
    deadline: Option<Instant>,
    timeout: Duration,
    taken_bytes: u64,
}

impl Pipe {
    /// Opens a pipe without waiting for a writer.
    ///
    /// # Errors
    /// `Source` when it cannot be opened or is no pipe any more.
    pub fn open(path: &str, timeout: Duration, outcome: Arc<Outcome>, abandoned: Abandoned) -> Result<Self, CoreError> {
        let refuse = |found: String| {
            CoreError::new(ErrorKind::Source, "cannot open a pipe")
                .at_file(path)
                .found(found)
                .hint("Make it with `mkfifo` before the run, and let the user that runs Headrace read it.")
        };
        let descriptor = if path == STANDARD_INPUT {
            if std::io::stdin().is_terminal() {
                return Err(CoreError::new(ErrorKind::Source, "standard input is a terminal")
                    .at_file(path)
                    .expected("a pipe or a file")
                    .hint("Write `program | headrace run ...`, or `headrace run ... < file`."));
            }
            // Its own descriptor: dropping this one closes nothing of the process.
            std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| refuse(error.to_string()))?
        } else {
            // NONBLOCK: opening would wait for a writer, and nothing could end that.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let descriptor = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| refuse(error.to_string()))?;
            let file = File::from(descriptor);
            let metadata = file.metadata().map_err(|error| refuse(error.to_string()))?;
            if !metadata.file_type().is_fifo() {
                return Err(refuse("no pipe any more".to_owned()));
            }
            file.into()
        };
        let deadline = Instant::now().checked_add(timeout);
        Ok(Pipe { descriptor, path: path.to_owned(), outcome, abandoned, deadline, timeout, taken_bytes: 0 })
    }

    /// Waits until there is something to read, or an end.
    fn wait(&self) -> Result<(), CoreError> {
        let step = Timespec::try_from(STEP).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        loop {
            if self.outcome.stopped() || self.abandoned.load(Ordering::Acquire) {
                return Err(CoreError::new(ErrorKind::Cancelled, "the flow was stopped while it waited for a pipe"));
            }
            let mut watched = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut watched, Some(&step)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(self.failed(&error.to_string())),
            }
            if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(CoreError::new(ErrorKind::Source, "nobody has written to a pipe")
                    .at_file(&self.path)
                    .found(format!("no byte within {} s", self.timeout.as_secs()))
                    .hint("Start its writer, or give it more time with `wait_seconds` of the source."));
            }
        }
    }

    fn failed(&self, found: &str) -> CoreError {
        CoreError::new(ErrorKind::Source, "cannot read a pipe")
            .at_file(&self.path)
            .found(format!("{found}, behind {} bytes", self.taken_bytes))
            .hint("Run again with a writer that goes on to its end.")
    }
}

impl ByteSource for Pipe {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        loop {
            self.wait()?;
            match rustix::io::read(&self.descriptor, &mut *into) {
                Ok(count) => {
                    self.deadline = None;
                    self.taken_bytes += count as u64;
                    return Ok(count);
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(self.failed(&error.to_string())),
            }
        }
    }

    fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }
}
