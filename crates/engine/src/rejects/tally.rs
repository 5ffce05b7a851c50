//! How many rejects there are of each kind, and the first of them.

use std::collections::BTreeMap;

use headrace_types::Rule;

use crate::report::LocatedReject;

/// Rejects shown of all kinds together.
pub const SHOWN: usize = 10;
/// Rejects shown of one column for one rule.
const SHOWN_OF_KIND: usize = 3;

/// The number of the layout, the column to blame, if one is, and the rule.
pub type Kind = (usize, Option<usize>, Rule);

/// A reject whose number, row and place in `.bad` are still those of its slice.
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
    kinds: BTreeMap<Kind, OfKind>,
    first: Vec<Example>,
    /// The first one that fails the flow whatever the limits: what is wrong with it is the value that does.
    pub first_fatal: Option<Example>,
    /// Of a slice: its file and its first reject, where that is asked for.
    pub first_of_file: Option<(usize, Example)>,
    first_of_files: BTreeMap<usize, Example>,
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
    /// Whether the next reject of a slice, if it is of this kind, is one of the first.
    pub fn wants(&self, kind: Kind) -> bool {
        self.first.len() < SHOWN || self.kinds.get(&kind).is_none_or(|of_kind| of_kind.first.len() < SHOWN_OF_KIND)
    }

    /// Counts a reject of a slice, whose rejects come in file order.
    pub fn add(&mut self, kind: Kind, example: Option<Example>) {
        let of_kind = self.kinds.entry(kind).or_default();
        of_kind.count += 1;
        let Some(example) = example else { return };
        if of_kind.first.len() < SHOWN_OF_KIND {
            of_kind.first.push(example.clone());
        }
        if self.first.len() < SHOWN {
            self.first.push(example);
        }
    }

    /// Adds those of a slice; slices come in any order.
    pub fn merge(&mut self, other: Tally) {
        keep_first(&mut self.first, other.first, SHOWN);
        for (kind, other) in other.kinds {
            let own = self.kinds.entry(kind).or_default();
            own.count += other.count;
            keep_first(&mut own.first, other.first, SHOWN_OF_KIND);
        }
        let both = [self.first_fatal.take(), other.first_fatal];
        self.first_fatal = both.into_iter().flatten().min_by_key(Example::place);
        if let Some((file, example)) = other.first_of_file {
            let own = self.first_of_files.entry(file).or_insert_with(|| example.clone());
            if example.place() < own.place() {
                *own = example;
            }
        }
    }
    /// The kinds: rows as a whole first, then columns in the layout's order.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, &OfKind)> {
        self.kinds.iter()
    }

    /// The first of all kinds, in file order.
    pub fn first(&self) -> &[Example] {
        &self.first
    }

    /// The first of a file, where that was asked for.
    pub fn first_of(&self, file: usize) -> Option<&Example> {
        self.first_of_files.get(&file)
    }
}

impl Example {
    /// Slices are numbered in file order.
    fn place(&self) -> (u32, u64) {
        (self.slice, self.before)
    }
}

fn keep_first(own: &mut Vec<Example>, other: Vec<Example>, most: usize) {
    own.extend(other);
    own.sort_by_key(Example::place);
    own.truncate(most);
}
