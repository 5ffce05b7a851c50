//! Which slices a stream takes next. Without epochs: whatever is left, largest first. With epochs: only those of the present
//! one; when all of its slices have ended, one stream ends the epoch, while the others wait, and then the next one begins.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::outcome::lock;
use crate::spec::SliceSpec;

/// Longest time between two looks whether the flow was stopped.
const STEP: Duration = Duration::from_millis(20);

/// Slices that one stream has to take together, in this order.
pub type Group = Vec<SliceSpec>;

/// What a stream has to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// These slices; then [`Queue::group_ended`].
    Group(Group),
    /// The end of the epoch, which is this stream's alone; then [`Queue::epoch_ended`].
    EndEpoch,
    /// Nothing more. The last epoch is ended as a flow without epochs is.
    Nothing,
}

/// The slices of a flow, shared by its streams.
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    most_streams: usize,
}

#[derive(Default)]
struct State {
    /// Of the present epoch; the next one stands last.
    groups: Vec<Group>,
    /// Later epochs; the next one stands last.
    later: Vec<Vec<Group>>,
    /// Groups on their way.
    taken: usize,
    /// Whether a stream ends the epoch.
    is_ending: bool,
}

impl Queue {
    /// A queue of groups; `first` come before all others. Groups of slices that are in an epoch wait for it; epochs without
    /// groups are left out.
    pub fn new(groups: Vec<Group>, epochs: &[Vec<u32>], first: Vec<Group>) -> Self {
        let number = |epoch: &Vec<u32>, index| epoch.iter().map(move |&slice| (slice, index)).collect::<Vec<_>>();
        let epoch_of: HashMap<u32, usize> =
            epochs.iter().zip(0..).flat_map(|(epoch, index)| number(epoch, index)).collect();
        let mut all: Vec<Vec<Group>> = vec![Vec::new(); epochs.len().max(1)];
        for group in groups {
            let epoch = group.first().and_then(|slice| epoch_of.get(&slice.number)).copied().unwrap_or(0);
            all[epoch].push(group);
        }
        all.retain(|groups| !groups.is_empty());
        for groups in &mut all {
            // Taken from the end: largest first, file order among equals.
            groups.sort_by_key(|group| {
                // Sizes are the word of the plan.
                let bytes = group.iter().map(SliceSpec::bytes).fold(0, u64::saturating_add);
                (bytes, Reverse(group.first().map(|slice| slice.number)))
            });
        }
        all.reverse();
        let mut present = all.pop().unwrap_or_default();
        present.extend(first);
        let most_streams = all.iter().map(Vec::len).chain([present.len()]).max().unwrap_or(0);
        let state = State { groups: present, later: all, ..State::default() };
        Queue { state: Mutex::new(state), changed: Condvar::new(), most_streams }
    }

    /// Streams that can be at work at once.
    pub fn most_streams(&self) -> usize {
        self.most_streams
    }

    /// What to do next; waits for the end of an epoch, unless the flow was stopped.
    pub fn next(&self, is_stopped: impl Fn() -> bool) -> Next {
        let mut state = lock(&self.state);
        while !is_stopped() {
            if let Some(group) = state.groups.pop() {
                state.taken += 1;
                return Next::Group(group);
            }
            if state.later.is_empty() {
                return Next::Nothing;
            }
            if state.taken == 0 && !state.is_ending {
                state.is_ending = true;
                return Next::EndEpoch;
            }
            state = self.changed.wait_timeout(state, STEP).unwrap_or_else(PoisonError::into_inner).0;
        }
        Next::Nothing
    }

    /// All slices of a group ended well.
    pub fn group_ended(&self) {
        lock(&self.state).taken -= 1;
        self.changed.notify_all();
    }

    /// The epoch ended well: the next one begins.
    pub fn epoch_ended(&self) {
        let mut state = lock(&self.state);
        state.groups = state.later.pop().unwrap_or_default();
        state.is_ending = false;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    fn slice(number: u32) -> SliceSpec {
        SliceSpec { number, file: 0, begin_byte: 0, end_byte: u64::from(number % 5), ..SliceSpec::default() }
    }

    /// Slices 1 to n, in epochs of these sizes.
    fn queue(sizes: &[u32], first: usize) -> (Queue, Vec<Vec<u32>>) {
        let mut next = 1;
        let epochs: Vec<Vec<u32>> = sizes
            .iter()
            .map(|size| {
                let epoch = (next..next + size).collect();
                next += size;
                epoch
            })
            .collect();
        let groups = (1..next).map(|number| vec![slice(number)]).collect();
        let first = (0..first as u32).map(|number| vec![slice(10_000 + number)]).collect();
        (Queue::new(groups, &epochs, first), epochs)
    }

    #[test]
    fn sizes_that_no_number_holds_together_are_large_all_the_same() {
        let large = |number: u32| SliceSpec { end_byte: u64::MAX, ..slice(number) };
        let queue = Queue::new(vec![vec![slice(1)], vec![large(2), large(3)]], &[], Vec::new());
        assert!(matches!(queue.next(|| false), Next::Group(group) if group.len() == 2));
    }

    #[test]
    fn without_epochs_the_largest_group_comes_first_and_nobody_waits() {
        let queue = Queue::new([3, 9, 4, 14].map(|number| vec![slice(number)]).to_vec(), &[], vec![vec![slice(1)]]);
        assert_eq!(queue.most_streams(), 5);
        for number in [1, 4, 9, 14, 3] {
            assert_eq!(queue.next(|| false), Next::Group(vec![slice(number)]));
        }
        assert_eq!(queue.next(|| false), Next::Nothing, "although no group has ended");
        assert_eq!(Queue::new(vec![], &[], vec![]).next(|| false), Next::Nothing);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever the streams and epochs: no epoch begins before all slices of the one before it have ended and one stream
        /// has ended it; nobody waits for ever; and a stream that fails stops all others.
        #[test]
        fn epochs_are_a_barrier(
            sizes in prop::collection::vec(0_u32..6, 1..7),
            first in 0_usize..3,
            streams in 1_usize..9,
            fails_at in prop::option::of(0_usize..30),
        ) {
            let (queue, epochs) = queue(&sizes, first);
            let epochs: Vec<&Vec<u32>> = epochs.iter().filter(|epoch| !epoch.is_empty()).collect();
            let (stopped, ended_epochs, steps) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
            // What must not happen; the others would wait for a thread that panics.
            let broken = Mutex::new(None);
            let must = |holds: bool, what: &'static str| {
                if !holds {
                    lock(&broken).get_or_insert(what);
                    stopped.store(true, Ordering::SeqCst);
                }
            };
            let (done, ending, at_work) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..streams {
                    scope.spawn(|| {
                        loop {
                            let next = queue.next(|| stopped.load(Ordering::SeqCst));
                            if next == Next::Nothing {
                                return;
                            }
                            if Some(steps.fetch_add(1, Ordering::SeqCst)) == fails_at {
                                stopped.store(true, Ordering::SeqCst);
                                return;
                            }
                            match next {
                                Next::Group(group) => {
                                    at_work.fetch_add(1, Ordering::SeqCst);
                                    must(ending.load(Ordering::SeqCst) == 0, "an epoch ends meanwhile");
                                    lock(&done).push((ended_epochs.load(Ordering::SeqCst), group[0].number));
                                    std::thread::yield_now();
                                    at_work.fetch_sub(1, Ordering::SeqCst);
                                    queue.group_ended();
                                }
                                Next::EndEpoch => {
                                    must(ending.fetch_add(1, Ordering::SeqCst) == 0, "an epoch is ended twice");
                                    must(at_work.load(Ordering::SeqCst) == 0, "a stream is at work meanwhile");
                                    std::thread::yield_now();
                                    ending.fetch_sub(1, Ordering::SeqCst);
                                    ended_epochs.fetch_add(1, Ordering::SeqCst);
                                    queue.epoch_ended();
                                }
                                Next::Nothing => unreachable!(),
                            }
                        }
                    });
                }
            });
            prop_assert_eq!(lock(&broken).take(), None);
            let mut done = done.into_inner().unwrap();
            let is_whole = !stopped.into_inner();
            let slices: usize = epochs.iter().map(|epoch| epoch.len()).sum();
            prop_assert!(!is_whole || done.len() == slices + first);
            prop_assert!(!is_whole || ended_epochs.into_inner() == epochs.len().saturating_sub(1));
            done.retain(|(_, number)| *number < 10_000);
            for (epoch, number) in done {
                prop_assert!(epochs[epoch].contains(&number), "slice {} in epoch {}", number, epoch);
            }
        }
    }
}
