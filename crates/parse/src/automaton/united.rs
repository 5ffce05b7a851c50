//! The same row ends from fewer states.

use std::collections::HashMap;

use super::stops::Stops;
use super::{Automaton, Event, Mode, Step};

/// States of larger automata are not united.
const MOST_UNITED_STATES: usize = 4096;

impl Automaton {
    /// The same row ends from fewer states: those that differ in nothing else are one. Whether a qualifier or an escape is open is
    /// still known.
    pub(super) fn for_row_ends(self) -> Automaton {
        let states = self.modes.len();
        if states > MOST_UNITED_STATES {
            return self;
        }
        // Moore's partition refinement.
        let ends = |step: &Step| matches!(step.event, Event::RowEnd | Event::CommentEnd);
        let steps_of = |state: usize| &self.steps[state * self.width..][..self.width];
        let open = |(mode, is_partial): (&Mode, &bool)| match mode {
            Mode::Inside | Mode::EscapedInside => 1,
            Mode::Escaped if !is_partial => 2,
            _ => 0,
        };
        let mut united: Vec<u32> = std::iter::zip(&self.modes, &self.partial).map(open).collect();
        let mut count = 0;
        loop {
            let mut numbers = HashMap::new();
            let refined: Vec<u32> = (0..states)
                .map(|state| {
                    let steps = steps_of(state).iter().map(|step| (ends(step), united[step.state as usize]));
                    let next = numbers.len() as u32;
                    *numbers.entry((united[state], steps.collect::<Vec<_>>())).or_insert(next)
                })
                .collect();
            united = refined;
            if std::mem::replace(&mut count, numbers.len()) == numbers.len() {
                break;
            }
        }
        let first = |number: usize| united.iter().position(|own| *own as usize == number).unwrap_or_default();
        let kept: Vec<usize> = (0..count).map(first).collect();
        let step = |step: &Step| Step {
            state: united[step.state as usize],
            event: if ends(step) { Event::RowEnd } else { Event::Nothing },
            ..Step::default()
        };
        let steps: Vec<Step> = kept.iter().flat_map(|&state| steps_of(state)).map(step).collect();
        let stops =
            (0..count).map(|state| Stops::of(state as u32, &steps[state * self.width..][..self.width], &self.tokens));
        Automaton {
            stops: stops.collect(),
            modes: kept.iter().map(|&state| self.modes[state]).collect(),
            partial: kept.iter().map(|&state| self.partial[state]).collect(),
            steps,
            ..self
        }
    }
}
