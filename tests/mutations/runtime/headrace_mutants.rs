//! The switch of mutated Rust code; `headrace_mutants.py` says what the variables mean.

use std::ffi::{c_int, c_void};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

const MOST: usize = 4096;

static UNSHARED: [AtomicU8; MOST] = [const { AtomicU8::new(0) }; MOST];
static HITS: AtomicPtr<AtomicU8> = AtomicPtr::new(std::ptr::null_mut());
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    fn mmap(address: *mut c_void, length: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void;
}

/// Whether a mutation is active.
#[inline]
pub fn active(number: usize) -> bool {
    let mut hits = HITS.load(Ordering::Acquire);
    if hits.is_null() {
        hits = start();
    }
    assert!(number < MOST);
    // SAFETY: both tables have `MOST` bytes, and are never unmapped.
    let hit = unsafe { &*hits.add(number) };
    // Threads that only read share the line of the cache.
    if hit.load(Ordering::Relaxed) == 0 {
        hit.store(1, Ordering::Relaxed);
    }
    ACTIVE.load(Ordering::Relaxed) == number
}

#[cold]
fn start() -> *mut AtomicU8 {
    let number = std::env::var("HEADRACE_MUTANT").ok().and_then(|text| text.parse().ok());
    ACTIVE.store(number.unwrap_or(0), Ordering::Relaxed);
    let hits = shared().unwrap_or(UNSHARED.as_ptr().cast_mut());
    HITS.store(hits, Ordering::Release);
    hits
}

fn shared() -> Option<*mut AtomicU8> {
    let path = std::env::var_os("HEADRACE_MUTANT_HITS").filter(|path| !path.is_empty())?;
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    // PROT_READ | PROT_WRITE and MAP_SHARED. SAFETY: a new mapping.
    let mapped = unsafe { mmap(std::ptr::null_mut(), MOST, 3, 1, file.as_raw_fd(), 0) };
    (mapped as isize != -1).then_some(mapped.cast())
}
