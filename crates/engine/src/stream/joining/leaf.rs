//! A source whose rows meet others: its reader, and what is known of the batch at hand.

use std::collections::BTreeSet;
use std::sync::Arc;

use headrace_parse::RefusedRow;
use headrace_types::CoreError;

use super::super::front::Front;
use super::super::reader::{Progress, Reader};
use crate::flow::Shared;
use crate::meter::StreamMeter;
use crate::row_position::RowPosition;
use crate::spec::{FlowFields, JoinSpec};

/// A source.
pub struct Leaf<'a> {
    pub reader: Reader<'a>,
    /// What its rows pass before they meet others.
    pub front: Option<Front<'a>>,
}

impl<'a> Leaf<'a> {
    /// The one of this number.
    ///
    /// # Errors
    /// Those of a layout that cannot be read.
    pub fn new(
        shared: &'a Arc<Shared>,
        meter: &'a StreamMeter,
        spec: &JoinSpec,
        fields: &FlowFields,
        source: usize,
    ) -> Result<Self, CoreError> {
        let front = Front::new(&shared.transforms, spec, source, &shared.spec.rows_into(fields, source));
        Ok(Leaf { reader: Reader::new(shared, meter, shared.spec.layout_of_source(source), None)?, front })
    }
}

/// Its slice of a unit.
pub struct OpenLeaf<'s> {
    /// None if its file has no slice.
    pub progress: Option<Progress<'s>>,
    pub at_hand: AtHand,
    /// How many rows of the parser have come before those at hand.
    pub before: u64,
    /// How many rows stand for joined ones that were refused.
    pub rejected: u64,
    /// On the way to each destination, how many of its rows were refused behind the joins that they came into.
    pub refused_on_ways: Vec<u64>,
}

impl OpenLeaf<'_> {
    pub fn new(destinations: usize) -> Self {
        OpenLeaf {
            progress: None,
            at_hand: AtHand::default(),
            before: 0,
            rejected: 0,
            refused_on_ways: vec![0; destinations],
        }
    }

    /// The place of a row of the parser's batch at hand, among all rows that became one.
    pub fn position(&self, row: u32) -> RowPosition {
        let slice = self.progress.as_ref().map_or(0, |progress| progress.slice().number);
        RowPosition::first(slice).plus(self.before + u64::from(row))
    }
}

/// What is known of the rows of a parser's batch.
#[derive(Default)]
pub struct AtHand {
    pub rows: u64,
    /// The numbers of those that its front has left; none as long as it has left all.
    pub left: Option<Vec<u32>>,
    /// Those that were refused there, in their order.
    pub refused_in_front: Vec<RefusedRow>,
    /// Those that do not go on behind a join.
    pub refused: Vec<RefusedRow>,
}

impl AtHand {
    /// The number, among those of the parser, of a row that meets others.
    pub fn number(&self, row: u32) -> u32 {
        self.left.as_ref().map_or(row, |left| left[row as usize])
    }

    /// All refused rows, in their order. One that was refused beside the joins, and behind one, is one, with what was found first.
    pub fn into_refused(self) -> Vec<RefusedRow> {
        let AtHand { refused, refused_in_front: mut all, .. } = self;
        all.extend(refused);
        all.sort_by_key(|own| own.number);
        all.dedup_by(|later, first| {
            let is_same = later.number == first.number;
            if is_same {
                let lacking = [&first.lacking, &later.lacking].map(|own| own.as_deref().unwrap_or_default());
                let all: BTreeSet<usize> = lacking.concat().into_iter().collect();
                first.lacking = first.lacking.is_some().then(|| all.into_iter().collect());
            }
            is_same
        });
        all
    }
}
