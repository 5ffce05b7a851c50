//! The one place that knows whether a flow goes on, failed, or was cancelled.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use headrace_types::{CoreError, ErrorKind};

use crate::report::Status;

/// First failure wins; everybody polls `stopped`.
#[derive(Default)]
pub struct Outcome {
    stopped: AtomicBool,
    error: Mutex<Option<CoreError>>,
}

impl Outcome {
    /// Whether streams should end now.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Stops the flow. A failure replaces a cancellation or the loss of the consumer, which are mere consequences.
    pub fn fail(&self, error: CoreError) {
        let mut slot = lock(&self.error);
        let replaces = match slot.as_ref().map(|known| known.kind) {
            None => true,
            Some(ErrorKind::Cancelled) => error.kind != ErrorKind::Cancelled,
            Some(_) => false,
        };
        if replaces {
            *slot = Some(error);
        }
        self.stopped.store(true, Ordering::Release);
    }

    /// Puts a better text in the place of the error, once more is known about it.
    pub fn replace(&self, error: CoreError) {
        *lock(&self.error) = Some(error);
    }

    /// The error, if the flow did not go well so far.
    pub fn error(&self) -> Option<CoreError> {
        lock(&self.error).clone()
    }

    /// How the flow ended or is about to end.
    pub fn status(&self) -> Status {
        match self.error().map(|error| error.kind) {
            None => Status::Ok,
            Some(ErrorKind::Cancelled) => Status::Cancelled,
            Some(_) => Status::Failed,
        }
    }
}

/// Locks, whether or not another thread panicked while it held the lock: what is behind our locks stays meaningful.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
