//! Time by activity.

use std::time::{Duration, Instant};

/// What a clock tells apart.
pub trait Activity: Copy {
    /// Its place among all of its kind, from 0.
    fn index(self) -> usize;
}

/// At exactly one of `COUNT` activities at any moment. The times of all of them are the time since the clock began, and none of
/// them ever falls.
#[derive(Debug, Clone)]
pub struct Clock<A, const COUNT: usize> {
    at: A,
    since: Instant,
    spent: [Duration; COUNT],
}

impl<A: Activity, const COUNT: usize> Clock<A, COUNT> {
    /// A clock that begins now.
    pub fn new(at: A) -> Self {
        Clock { at, since: Instant::now(), spent: [Duration::ZERO; COUNT] }
    }

    /// The present activity.
    pub fn at(&self) -> A {
        self.at
    }

    /// Begins another activity. The one before.
    pub fn turn_to(&mut self, next: A) -> A {
        let now = Instant::now();
        self.spent[self.at.index()] += now - self.since;
        self.since = now;
        std::mem::replace(&mut self.at, next)
    }

    /// Time of an activity, up to now if it is the present one.
    pub fn spent(&self, activity: A) -> Duration {
        let before = self.spent[activity.index()];
        if self.at.index() == activity.index() { before + self.since.elapsed() } else { before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Activity for usize {
        fn index(self) -> usize {
            self
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn no_time_is_lost_and_none_falls(turns in prop::collection::vec(0_usize..4, 1..60)) {
            let start = Instant::now();
            let mut clock: Clock<usize, 4> = Clock::new(0);
            let began = Instant::now();
            let mut last = [Duration::ZERO; 4];
            let mut at = 0;
            for turn in turns {
                std::thread::sleep(Duration::from_micros(20));
                prop_assert_eq!(clock.turn_to(turn), at);
                at = turn;
                let least = began.elapsed();
                let now = [0, 1, 2, 3].map(|activity| clock.spent(activity));
                prop_assert!(std::iter::zip(now, last).all(|(now, last)| now >= last));
                last = now;
                let sum = last.iter().sum::<Duration>();
                prop_assert!(sum >= least && sum <= start.elapsed(), "{:?} {:?}", last, least);
            }
        }
    }
}
