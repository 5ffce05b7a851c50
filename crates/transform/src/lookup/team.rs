//! Work that several threads share. The threads are the caller's: this crate starts none.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::BuildError;

/// Calls the work that it is given once on each of its threads, and returns when all calls have. It may have no threads
/// at all.
pub type Team<'a> = dyn Fn(&(dyn Fn() + Sync)) + 'a;

/// Calls `work` with every item, in their order, on the threads of the team; after an error with no further ones.
pub fn share_out<T: Send>(
    team: &Team<'_>,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<(), BuildError> + Sync,
) -> Result<(), BuildError> {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    let next = AtomicUsize::new(0);
    let error = Mutex::new(None);
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(item) = lock(item).take() else { continue };
            if let Err(found) = work(item) {
                next.store(items.len(), Ordering::Relaxed);
                lock(&error).get_or_insert(found);
            }
        }
    };
    team(&run);
    run(); // what is left by a team without threads
    let error = lock(&error).take();
    error.map_or(Ok(()), Err)
}

/// The value behind a lock, also if another thread panicked with it: then the build fails elsewhere.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn every_item_is_worked_on_once_whatever_the_team() {
        let alone = |_: &(dyn Fn() + Sync)| {};
        let four = |work: &(dyn Fn() + Sync)| std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
        for team in [&alone as &Team<'_>, &four] {
            let sum = AtomicU64::new(0);
            let add = |number| {
                sum.fetch_add(number, Ordering::Relaxed);
                Ok(())
            };
            assert_eq!(share_out(team, 0..1000, add), Ok(()));
            assert_eq!(sum.into_inner(), 499_500);
            let calls = AtomicU64::new(0);
            let fail = |_| {
                calls.fetch_add(1, Ordering::Relaxed);
                Err(BuildError::TooManyRows)
            };
            assert_eq!(share_out(team, 0..1000, fail), Err(BuildError::TooManyRows));
            assert!(calls.into_inner() <= 5);
        }
    }
}
