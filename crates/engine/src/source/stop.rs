//! Ends the reading of files that nobody waits for any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headrace_types::{CoreError, ErrorKind};

use super::ByteSource;

/// Set by whoever does not wait any more for files to be planned; everybody who reads them asks now and then.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on reading ends with an error.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// `Cancelled` once it is set.
    pub fn check(&self) -> Result<(), CoreError> {
        if self.0.load(Ordering::Relaxed) {
            return Err(CoreError::new(ErrorKind::Cancelled, "cutting the files was cancelled"));
        }
        Ok(())
    }

    /// The same source, which ends with an error once this is set.
    pub fn over<S: ByteSource>(&self, source: S) -> Stoppable<S> {
        Stoppable { source, stop: self.clone() }
    }
}

/// A source that somebody waits for.
pub struct Stoppable<S> {
    source: S,
    stop: Stop,
}

impl<S: ByteSource> ByteSource for Stoppable<S> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        self.stop.check()?;
        self.source.read(into)
    }

    fn taken_bytes(&self) -> u64 {
        self.source.taken_bytes()
    }
}
