//! Waiting in tests: for events, with limits that only end what hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headrace_engine::postgres::Interrupt;

/// Only what waits for something that never comes takes that long, however slow the machine is.
pub const HANG: Duration = Duration::from_secs(60);

/// Runs something that must not wait for what never comes.
pub fn soon<T>(run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = run();
    assert!(start.elapsed() < HANG, "it took {:?}", start.elapsed());
    result
}

/// Waits until it is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < HANG, "still not: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An interrupt that is raised when a test wants it: once a connection is there, not after some time.
#[derive(Clone, Default)]
pub struct Alarm(Arc<AtomicBool>);

impl Alarm {
    pub fn interrupt(&self) -> Interrupt {
        let raised = Arc::clone(&self.0);
        Arc::new(move || raised.load(Ordering::Acquire))
    }

    pub fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Leaves what the test does next the time to begin.
    pub fn raise_soon(&self) {
        let alarm = self.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            alarm.raise();
        });
    }
}
