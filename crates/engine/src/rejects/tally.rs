//! How many rejects there are of each kind, and the first of them.

use std::collections::BTreeMap;

use headrace_types::Rule;

use crate::report::LocatedReject;

/// Rejects shown of all kinds together.
pub const SHOWN: usize = 10;
/// Rejects shown of one column for one rule.
const SHOWN_OF_KIND: usize = 3;

/// The column to blame, if one is, and the rule.
pub type Kind = (Option<usize>, Rule);

/// A reject whose row and place in `.bad` are still those of its slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Number of the slice.
    pub slice: u32,
    /// How many rejects of the slice stand before it.
    pub before: u64,
    /// The reject.
    pub reject: LocatedReject,
}

/// Rejects of a slice, or of a flow.
#[derive(Default)]
pub struct Tally {
    count: u64,
    kinds: BTreeMap<Kind, OfKind>,
    first: Vec<Example>,
}

/// Rejects of one kind.
#[derive(Default)]
pub struct OfKind {
    /// How many.
    pub count: u64,
    /// The first in file order.
    pub first: Vec<Example>,
}

impl Tally {
    /// Counts a reject of a slice, whose rejects come in file order; `example` is asked for when it is one of the first.
    pub fn add(&mut self, kind: Kind, slice: u32, example: impl Fn() -> LocatedReject) {
        let before = self.count;
        self.count += 1;
        let of_kind = self.kinds.entry(kind).or_default();
        of_kind.count += 1;
        let is_wanted = [(self.first.len(), SHOWN), (of_kind.first.len(), SHOWN_OF_KIND)];
        let example = || Example { slice, before, reject: example() };
        if is_wanted[0].0 < is_wanted[0].1 {
            self.first.push(example());
        }
        if is_wanted[1].0 < is_wanted[1].1 {
            of_kind.first.push(example());
        }
    }

    /// Adds those of a slice; slices come in any order.
    pub fn merge(&mut self, other: Tally) {
        self.count += other.count;
        keep_first(&mut self.first, other.first, SHOWN);
        for (kind, other) in other.kinds {
            let own = self.kinds.entry(kind).or_default();
            own.count += other.count;
            keep_first(&mut own.first, other.first, SHOWN_OF_KIND);
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The kinds: rows as a whole first, then columns in the layout's order.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, &OfKind)> {
        self.kinds.iter()
    }

    /// The first of all kinds, in file order.
    pub fn first(&self) -> &[Example] {
        &self.first
    }
}

/// Slices are numbered in file order.
fn keep_first(own: &mut Vec<Example>, other: Vec<Example>, most: usize) {
    own.extend(other);
    own.sort_by_key(|example| (example.slice, example.before));
    own.truncate(most);
}
