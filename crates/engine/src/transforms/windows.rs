//! Windows of rows between the streams of a flow, which wait for answers, and those who run its queries: anybody may take the
//! next one. Nothing here knows who they are.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use headrace_types::{CoreError, ErrorKind};

use crate::outcome::Outcome;

/// How often who waits looks whether the flow was stopped.
const POLL: Duration = Duration::from_millis(20);

/// Rows that a query is to be run over.
pub struct Window {
    /// Place of the transform in its flow.
    pub transform: usize,
    /// The rows, and their numbers as the last column.
    pub rows: RecordBatch,
    answer: Sender<Answer>,
}

/// What has become of a window.
pub type Answer = Result<Vec<RecordBatch>, Failure>;

/// A query that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whose fault it may be.
    pub kind: FailureKind,
    /// What the engine says.
    pub text: String,
}

/// Whose fault a failure may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// That of values of a row.
    Row,
    /// Memory: fewer rows need less.
    Memory,
    /// Nobody's who is known.
    Other,
}

impl Window {
    /// Gives the answer. That nobody waits for it any more is not told.
    pub fn answer(self, answer: Answer) {
        drop(self.answer.send(answer));
    }
}

/// Both ends.
pub struct Windows {
    sender: Sender<Window>,
    receiver: Receiver<Window>,
    outcome: Arc<Outcome>,
}

impl Windows {
    /// Of a flow with that outcome.
    pub fn new(outcome: Arc<Outcome>) -> Self {
        // Each stream waits for one answer at once: no bound is needed.
        let (sender, receiver) = unbounded();
        Windows { sender, receiver, outcome }
    }

    /// Has a query run over rows, and waits for what comes out.
    ///
    /// # Errors
    /// `Cancelled` when the flow was stopped; `Internal` if the window is lost.
    pub fn ask(&self, transform: usize, rows: RecordBatch) -> Result<Answer, CoreError> {
        let (answer, answered) = bounded(1);
        let lost = || CoreError::new(ErrorKind::Internal, "who runs the queries of the flow has ended");
        self.sender.send(Window { transform, rows, answer }).map_err(|_| lost())?;
        loop {
            match answered.recv_timeout(POLL) {
                // A query that was interrupted has failed, but that is no error of its own.
                Ok(_) | Err(RecvTimeoutError::Timeout) if self.outcome.stopped() => {
                    return Err(CoreError::new(ErrorKind::Cancelled, "the flow was stopped"));
                }
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(lost()),
            }
        }
    }

    /// The next window, as soon as there is one. None when the flow was stopped, or `is_over` says that none will come.
    pub fn next(&self, is_over: impl Fn() -> bool) -> Option<Window> {
        loop {
            if self.outcome.stopped() {
                return None;
            }
            match self.receiver.recv_timeout(POLL) {
                Ok(window) => return Some(window),
                Err(_) if is_over() => return None,
                Err(_) => {}
            }
        }
    }
}
