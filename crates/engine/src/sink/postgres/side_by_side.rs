//! Work for many connections that mostly wait for their server: their answers, and the disk behind their commits, are waited
//! for together.

use std::sync::Mutex;

use headrace_types::CoreError;

use crate::outcome::lock;

/// Most threads at work, the caller among them. They wait; how many processors there are makes no difference.
const MOST_THREADS: usize = 16;

/// Does `work` for every item; the results in the order of the items. When one fails, no further one is begun, those that are
/// on their way are waited for, and the error is that of the first item in this order among the failed ones. Items that were
/// not begun are dropped.
pub fn side_by_side<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<R, CoreError> + Sync,
) -> Result<Vec<R>, CoreError> {
    let items: Vec<T> = items.into_iter().collect();
    let threads = items.len().min(MOST_THREADS);
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let left = Mutex::new(Some(items.into_iter().enumerate()));
    let done = Mutex::new(Vec::new());
    let run = || {
        loop {
            let next = lock(&left).as_mut().and_then(Iterator::next);
            let Some((index, item)) = next else { return };
            let result = work(item);
            if result.is_err() {
                *lock(&left) = None;
            }
            lock(&done).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().name("headrace-end".to_owned()).spawn_scoped(scope, run);
        // Without a thread the others do it.
        let helpers: Vec<_> = (1..threads).filter_map(|number| spawn(number).ok()).collect();
        run();
        // The scope itself waits for their work only, and not for their end.
        for helper in helpers {
            if let Err(panic) = helper.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let mut done = std::mem::take(&mut *lock(&done));
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headrace_types::ErrorKind;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn results_keep_the_order_of_the_items() {
        for count in [0, 1, 2, 15, 16, 17, 100] {
            let results = side_by_side(0..count, |item| {
                std::thread::sleep(Duration::from_micros((item * 7919 % 13) * 50));
                Ok(item * 2)
            });
            assert_eq!(results.unwrap(), (0..count).map(|item| item * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn they_wait_together() {
        let (present, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        side_by_side(0..32, |_| {
            most.fetch_max(present.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let start = Instant::now();
            while most.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_secs(10) {
                std::thread::yield_now();
            }
            present.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        })
        .unwrap();
        assert!((2..=MOST_THREADS).contains(&most.load(Ordering::SeqCst)));
    }

    #[test]
    fn a_panic_is_the_callers() {
        let run = || side_by_side(0..4, |item| if item == 2 { panic!("item {item}") } else { Ok(item) });
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn the_first_error_ends_it() {
        let begun = AtomicUsize::new(0);
        let error = side_by_side(0..10_000, |item| {
            begun.fetch_add(1, Ordering::SeqCst);
            if item % 1000 == 5 { Err(CoreError::new(ErrorKind::Internal, item.to_string())) } else { Ok(()) }
        });
        assert_eq!(error.unwrap_err().what, "5");
        assert!(begun.load(Ordering::SeqCst) < 5000);
    }
}
