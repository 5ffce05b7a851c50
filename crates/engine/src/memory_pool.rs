//! Recycled memory: text blocks, counted and limited; typed slabs, recycled only.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use headrace_parse::memory::{Lines, Memory, MemoryHome};

use crate::outcome::{Outcome, lock};
use crate::report::MemoryReport;

/// How often a waiting stream looks whether the flow was stopped.
const POLL: Duration = Duration::from_millis(20);
/// How long no block may come home, with a consumer that waits for input, before a block is overdrawn. A consumer thread
/// that still works on a batch returns it much sooner.
const STALL: Duration = Duration::from_millis(200);

/// From this size on memory is a mapping of its own, in bytes.
#[cfg(target_env = "gnu")]
const OWN_MAPPING_BYTES: libc::c_int = 4 << 20;

/// Makes freed memory of large rows go back to the system at once. Left alone, glibc takes the size of the first mapping
/// that is freed, up to 32 MB, as the size below which memory comes from its heaps, and keeps what is freed there.
///
/// This concerns all of the process: only for one that runs nothing else.
pub fn return_large_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator, under its own lock; allocations that exist are not concerned.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING_BYTES);
    }
}

/// A pool of at most `limit` pieces of memory of one size.
pub struct MemoryPool {
    shelf: Arc<Shelf>,
    limit: usize,
    bytes: usize,
}

struct Shelf {
    state: Mutex<State>,
    returned: Condvar,
    /// Pieces kept for reuse at most, and their size at most.
    keep: usize,
    keep_bytes: usize,
}

#[derive(Default)]
struct State {
    free: Vec<Lines>,
    lent: usize,
    returns: u64,
    report: MemoryReport,
}

impl MemoryHome for Shelf {
    fn give_back(&self, lines: Lines) {
        let mut state = lock(&self.state);
        state.lent -= 1;
        state.returns += 1;
        let surplus = if state.free.len() < self.keep && size_of_val(lines.as_slice()) <= self.keep_bytes {
            state.free.push(lines);
            None
        } else {
            Some(lines)
        };
        drop(state);
        drop(surplus); // freed outside the lock
        self.returned.notify_one();
    }
}

impl MemoryPool {
    /// A pool of `limit` pieces of `bytes` bytes each. Pieces that grew beyond `keep_bytes` are freed, not kept.
    pub fn new(limit: usize, bytes: usize, keep_bytes: usize) -> Self {
        let shelf = Shelf { state: Mutex::default(), returned: Condvar::new(), keep: limit, keep_bytes };
        MemoryPool { shelf: Arc::new(shelf), limit, bytes }
    }

    /// A piece of memory, once there is one; `None` when the flow was stopped meanwhile. `starved` says whether the consumer
    /// of the flow waits for input: if it does and yet no piece comes back, it keeps them, and one more is lent.
    pub fn acquire(&self, outcome: &Outcome, starved: impl Fn() -> bool) -> Option<Memory> {
        let mut state = lock(&self.shelf.state);
        let (mut returns, mut since) = (state.returns, Instant::now());
        while state.lent >= self.limit {
            if outcome.stopped() {
                return None;
            }
            if state.returns != returns || !starved() {
                (returns, since) = (state.returns, Instant::now());
            } else if since.elapsed() > STALL {
                state.report.overdraft_blocks += 1;
                break;
            }
            let waited = self.shelf.returned.wait_timeout(state, POLL);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        Some(self.lend(state, self.bytes))
    }

    /// A piece of at least `bytes`, at once and whatever the limit: for memory that is bounded by other means.
    pub fn take(&self, bytes: usize) -> Memory {
        self.lend(lock(&self.shelf.state), bytes)
    }

    fn lend(&self, mut state: std::sync::MutexGuard<'_, State>, bytes: usize) -> Memory {
        state.lent += 1;
        state.report.peak_blocks = state.report.peak_blocks.max(state.lent);
        let lines = state.free.pop().unwrap_or_default();
        drop(state);
        let mut memory = Memory::from_lines(lines, Some(self.shelf.clone()));
        memory.grow(bytes);
        memory
    }

    /// Pieces in use.
    pub fn lent(&self) -> usize {
        lock(&self.shelf.state).lent
    }

    /// Pieces that there are, but for overdrafts.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Most pieces lent at once, and overdrafts.
    pub fn report(&self) -> MemoryReport {
        lock(&self.shelf.state).report.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::{CoreError, ErrorKind};

    #[test]
    fn memory_is_recycled_and_counted() {
        let pool = MemoryPool::new(2, 1000, 4096);
        let outcome = Outcome::default();
        let first = pool.acquire(&outcome, || false).unwrap();
        let address = first.bytes().as_ptr();
        drop(first);
        let again = pool.acquire(&outcome, || false).unwrap();
        assert_eq!(again.bytes().as_ptr(), address);
        assert_eq!(again.capacity_bytes(), 1024);
        assert_eq!(pool.report().peak_blocks, 1);
    }

    #[test]
    fn memory_that_grew_is_not_kept() {
        let pool = MemoryPool::new(1, 1000, 4096);
        drop(pool.take(5000));
        assert!(lock(&pool.shelf.state).free.is_empty());
        drop(pool.take(4000));
        assert_eq!(lock(&pool.shelf.state).free.len(), 1);
    }

    #[test]
    fn a_consumer_that_keeps_every_block_and_waits_gets_one_more() {
        let pool = MemoryPool::new(1, 1000, 4096);
        let outcome = Outcome::default();
        let kept = pool.acquire(&outcome, || true).unwrap();
        let more = pool.acquire(&outcome, || true).unwrap();
        assert_eq!(pool.report().overdraft_blocks, 1);
        drop((kept, more));
    }

    #[test]
    fn a_busy_consumer_is_waited_for_until_the_flow_stops() {
        let pool = MemoryPool::new(1, 1000, 4096);
        let outcome = Arc::new(Outcome::default());
        let _kept = pool.acquire(&outcome, || false).unwrap();
        let stopper = outcome.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(STALL * 2);
            stopper.fail(CoreError::new(ErrorKind::Cancelled, "enough"));
        });
        assert!(pool.acquire(&outcome, || false).is_none());
        assert_eq!(pool.report().overdraft_blocks, 0);
        thread.join().unwrap();
    }
}
