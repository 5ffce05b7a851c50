//! The same row ends from fewer states.

use std::collections::{BTreeMap, HashMap};

use super::stops::Stops;
use super::{Automaton, Event, Mode, Step};

/// States of larger automata are not united: the work grows with the square of their number.
const MOST_UNITED_STATES: usize = 4096;

impl Automaton {
    /// The same row ends from fewer states: those that differ in nothing else are one. Whether a qualifier or an escape is open is
    /// still known.
    pub(super) fn for_row_ends(self) -> Automaton {
        let states = self.modes.len();
        if states > MOST_UNITED_STATES {
            return self;
        }
        let ends = |step: &Step| matches!(step.event, Event::RowEnd | Event::CommentEnd);
        let steps_of = |state: usize| &self.steps[state * self.width..][..self.width];
        let open = |state: usize| match self.modes[state] {
            _ if self.is_inside(state as u32) => 1,
            Mode::Escaped if !self.partial[state] => 2,
            _ => 0,
        };
        let kind = |state: usize| (open(state), steps_of(state).iter().map(ends).collect::<Vec<bool>>());
        let united = self.sets_of_alike(&numbered((0..states).map(kind)));
        let mut kept = Vec::new();
        for (state, &number) in united.iter().enumerate() {
            if number as usize == kept.len() {
                kept.push(state);
            }
        }
        let step = |step: &Step| Step {
            state: united[step.state as usize],
            event: if ends(step) { Event::RowEnd } else { Event::Nothing },
            ..Step::default()
        };
        let steps: Vec<Step> = kept.iter().flat_map(|&state| steps_of(state)).map(step).collect();
        let stops = (0..kept.len())
            .map(|state| Stops::of(state as u32, &steps[state * self.width..][..self.width], &self.tokens));
        Automaton {
            stops: stops.collect(),
            modes: kept.iter().map(|&state| self.modes[state]).collect(),
            partial: kept.iter().map(|&state| self.partial[state]).collect(),
            steps,
            ..self
        }
    }

    /// The set of each state, where those of a set are of one kind, and so are the states that the same bytes lead to from there;
    /// sets are numbered in the order of their first states. By Hopcroft's partition refinement: columns with row ends in them are a
    /// chain, which takes others as many rounds as there are columns.
    fn sets_of_alike(&self, kinds: &[u32]) -> Vec<u32> {
        // (class, state behind, state before), to find all that lead to a state.
        let step = |(at, step): (usize, &Step)| (at % self.width, step.state, (at / self.width) as u32);
        let mut leading: Vec<(usize, u32, u32)> = self.steps.iter().enumerate().map(step).collect();
        leading.sort_unstable();
        let leading_to = |class: usize, state: u32| {
            let from = leading.partition_point(|(own, behind, _)| (*own, *behind) < (class, state));
            leading[from..].iter().take_while(move |(own, behind, _)| (*own, *behind) == (class, state))
        };

        let mut set_of = kinds.to_vec();
        let mut sets: Vec<Vec<u32>> = Vec::new();
        for (state, &set) in set_of.iter().enumerate() {
            sets.resize_with(sets.len().max(set as usize + 1), Vec::new);
            sets[set as usize].push(state as u32);
        }
        // Sets by which others may have to be split.
        let mut is_waiting = vec![true; sets.len()];
        let mut waiting: Vec<usize> = (0..sets.len()).collect();
        while let Some(splitter) = waiting.pop() {
            is_waiting[splitter] = false;
            let splitter = sets[splitter].clone();
            for class in 0..self.width {
                let mut found: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
                for (_, _, before) in splitter.iter().flat_map(|&state| leading_to(class, state)) {
                    found.entry(set_of[*before as usize] as usize).or_default().push(*before);
                }
                for (set, own) in found {
                    if own.len() == sets[set].len() {
                        continue;
                    }
                    let new = sets.len();
                    own.iter().for_each(|&state| set_of[state as usize] = new as u32);
                    sets[set].retain(|&state| set_of[state as usize] as usize == set);
                    // The smaller part does, if nobody has to be split by the whole.
                    let next = if is_waiting[set] || own.len() <= sets[set].len() { new } else { set };
                    sets.push(own);
                    is_waiting.push(false);
                    is_waiting[next] = true;
                    waiting.push(next);
                }
            }
        }
        numbered(set_of)
    }
}

/// Equal ones have the same number, in the order in which they first come.
fn numbered<T: Eq + std::hash::Hash>(all: impl IntoIterator<Item = T>) -> Vec<u32> {
    let mut numbers = HashMap::new();
    let number = |own| {
        let next = numbers.len() as u32;
        *numbers.entry(own).or_insert(next)
    };
    all.into_iter().map(number).collect()
}
