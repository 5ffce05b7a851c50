//! Memory of one index: what its parts have taken, and whether they may.

use std::sync::atomic::{AtomicU64, Ordering};

use super::BuildError;

/// Counts bytes that are alive. They are counted when they are first written: what is only reserved takes no memory
/// yet.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
}

impl Budget {
    pub fn new(limit: u64) -> Self {
        Budget { limit, used: AtomicU64::new(0), peak: AtomicU64::new(0) }
    }

    /// Counts more bytes; those that are too many stay counted, so that every thread learns of it.
    pub fn take(&self, bytes: u64) -> Result<(), BuildError> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.peak.fetch_max(used, Ordering::Relaxed);
        self.judge(used)
    }

    /// The same for bytes that the caller has written meanwhile, if there is more than before.
    pub fn grow(&self, counted: &mut u64, bytes: u64) -> Result<(), BuildError> {
        let more = bytes.saturating_sub(*counted);
        *counted += more;
        self.take(more)
    }

    /// Bytes that are not needed any more.
    pub fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether so many more will fit when so many of the present ones are gone.
    pub fn foresee(&self, more: u64, gone: u64) -> Result<(), BuildError> {
        self.judge(self.used().saturating_sub(gone).saturating_add(more))
    }

    /// Bytes at present.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Most bytes at one time.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    fn judge(&self, needed_bytes: u64) -> Result<(), BuildError> {
        match needed_bytes <= self.limit {
            true => Ok(()),
            false => Err(BuildError::OverBudget { needed_bytes, budget_bytes: self.limit }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_and_limited() {
        let budget = Budget::new(100);
        let mut counted = 0;
        assert_eq!(budget.take(60), Ok(()));
        assert_eq!(budget.grow(&mut counted, 40), Ok(()));
        assert_eq!(budget.grow(&mut counted, 30), Ok(()));
        assert_eq!(counted, 40);
        budget.give_back(60);
        assert_eq!(budget.foresee(100, 40), Ok(()));
        assert_eq!(budget.foresee(61, 0), Err(BuildError::OverBudget { needed_bytes: 101, budget_bytes: 100 }));
        assert_eq!(budget.take(61), Err(BuildError::OverBudget { needed_bytes: 101, budget_bytes: 100 }));
        assert_eq!(budget.peak(), 101);
    }
}
