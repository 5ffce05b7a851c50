//! How long a thread was on a CPU, and how long it could have been and waited for one. Any thread of the process may ask.

use std::path::{Path, PathBuf};

/// Times of a thread since it began; none where the system does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadTimes {
    /// On a CPU, in user or system mode.
    pub cpu_seconds: Option<f64>,
    /// Ready to run, and another thread had the CPU. A wait that lasts is counted when it ends.
    pub run_queue_seconds: Option<f64>,
}

impl ThreadTimes {
    /// The later ones of two readings, whichever came first: a thread that has ended tells nothing any more.
    pub fn or_before(self, before: ThreadTimes) -> ThreadTimes {
        let later = |now: Option<f64>, before: Option<f64>| match (now, before) {
            (Some(now), Some(before)) => Some(now.max(before)),
            (now, before) => now.or(before),
        };
        ThreadTimes {
            cpu_seconds: later(self.cpu_seconds, before.cpu_seconds),
            run_queue_seconds: later(self.run_queue_seconds, before.run_queue_seconds),
        }
    }
}

/// A thread of this process.
#[derive(Debug)]
pub struct ThreadWatch {
    clock: Option<libc::clockid_t>,
    /// `schedstat` of the thread; none without `/proc`.
    schedstat: Option<PathBuf>,
}

impl ThreadWatch {
    /// The calling thread.
    pub fn of_this_thread() -> Self {
        // `PID/task/TID`, as the namespace of the mounted `/proc` numbers them.
        let folder = std::fs::read_link("/proc/thread-self").ok();
        let schedstat = folder.map(|folder| Path::new("/proc").join(folder).join("schedstat"));
        ThreadWatch { clock: clock_of_this_thread(), schedstat: schedstat.filter(|path| path.exists()) }
    }

    /// Its times now; nothing of a thread that has ended. Takes about 5 microseconds.
    pub fn times(&self) -> ThreadTimes {
        // The clock and not the first number of `schedstat`: that one is as old as the last tick of the thread's CPU.
        ThreadTimes {
            cpu_seconds: self.clock.and_then(read_clock),
            run_queue_seconds: self.schedstat.as_deref().and_then(run_queue_seconds),
        }
    }
}

/// The second number of a `schedstat` file is nanoseconds on a run queue.
fn run_queue_seconds(path: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    let nanoseconds: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(nanoseconds as f64 / 1e9)
}

unsafe extern "C" {
    /// POSIX; the bindings of the `libc` crate leave it out for Linux.
    fn pthread_getcpuclockid(thread: libc::pthread_t, clock: *mut libc::clockid_t) -> libc::c_int;
}

/// The clock that runs while the calling thread is on a CPU.
fn clock_of_this_thread() -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: the calling thread is alive, so its handle is valid, and `clock` is a valid place for the result.
    let failed = unsafe { pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
    (failed == 0).then_some(clock)
}

/// None if the thread of the clock has ended.
fn read_clock(clock: libc::clockid_t) -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the system checks the number of the clock, and `time` is a valid place for the result.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) };
    (failed == 0).then(|| time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    /// CPU time of this thread by the system's accounts.
    fn accounted_seconds() -> f64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: a valid place for the result, of which all zeros are a value.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }

    fn work(limit: Duration) {
        let start = Instant::now();
        while start.elapsed() < limit {
            black_box((0..1000_u64).sum::<u64>());
        }
    }

    #[test]
    fn a_thread_that_works_is_on_a_cpu_or_waits_for_one() {
        let watch = ThreadWatch::of_this_thread();
        let (before, accounted, start) = (watch.times(), accounted_seconds(), Instant::now());
        work(Duration::from_millis(300));
        let (after, accounted) = (watch.times(), accounted_seconds() - accounted);
        let seconds = start.elapsed().as_secs_f64();
        let on_cpu = after.cpu_seconds.unwrap() - before.cpu_seconds.unwrap();
        assert!((on_cpu - accounted).abs() < 0.02, "{on_cpu} {accounted}");
        if let (Some(before), Some(after)) = (before.run_queue_seconds, after.run_queue_seconds) {
            // What is left may be the hypervisor's.
            assert!(on_cpu + after - before <= seconds + 0.02, "{on_cpu} {before} {after} {seconds}");
        }
    }

    #[test]
    fn a_thread_that_sleeps_does_neither_and_one_that_has_ended_tells_nothing() {
        let (send, receive) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            send.send(ThreadWatch::of_this_thread()).unwrap();
            ended.recv().unwrap_err();
        });
        let watch = receive.recv().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let asleep = watch.times();
        assert!(asleep.cpu_seconds.unwrap() < 0.05, "{asleep:?}");
        drop(end);
        thread.join().unwrap();
        // `join` returns a moment before the system has taken the thread, and with it the clock, away.
        let start = Instant::now();
        while watch.times() != ThreadTimes::default() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(watch.times(), ThreadTimes::default());
        assert_eq!(watch.times().or_before(asleep), asleep);
    }
}
