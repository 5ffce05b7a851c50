//! The next rows of a side: those of a reader, or what comes out of another join, behind what stands in front of the side.

use arrow_array::RecordBatch;
use headrace_transform::join::Step;
use headrace_types::CoreError;

use super::super::Sending;
use super::super::reader::{Counts, Gone, InFront, Rows, rows_of};
use super::node::{Feed, stands_for};
use super::{Joining, Opened};
use crate::meter::{Doing, Work};
use crate::transforms::Remaining;

/// What a side, or a join, has to give.
pub enum Given {
    Batch(RecordBatch),
    /// It has ended.
    Nothing,
    Stopped,
}

impl Joining<'_> {
    /// The next rows that come out of a join; all rows of the batch before have gone.
    pub(super) fn step(
        &mut self,
        node: usize,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<Given, CoreError> {
        loop {
            self.meter.turn_to(Doing::Transform);
            let stepped = opened.nodes[node].join.step();
            match stepped.map_err(|error| self.nodes[node].internal(&error))? {
                Step::Needs(side) => {
                    let feed = self.nodes[node].feeds[side.index()];
                    match self.next(feed, opened, sending)? {
                        Given::Batch(batch) => {
                            self.meter.turn_to(Doing::Transform);
                            let Opened { nodes, leaves, .. } = &mut *opened;
                            // Those before it are its sides, among others.
                            let (sides, own) = nodes.split_at_mut(node);
                            let position = |row: usize| {
                                let (leaf, row) = stands_for(&self.nodes, sides, leaves, feed, row as u32);
                                leaves[leaf].position(row).number()
                            };
                            let pushed = own[0].join.push_numbered(side, batch, &position);
                            pushed.map_err(|error| self.refused(node, error))?;
                        }
                        Given::Nothing => opened.nodes[node].join.end(side),
                        Given::Stopped => return Ok(Given::Stopped),
                    }
                }
                Step::Rows(batch) => return Ok(Given::Batch(batch)),
                Step::Ended => return Ok(Given::Nothing),
            }
        }
    }

    fn next(&mut self, feed: Feed, opened: &mut Opened<'_>, sending: &mut Sending<'_>) -> Result<Given, CoreError> {
        match feed {
            Feed::Leaf(leaf) => self.next_of_leaf(leaf, opened, sending),
            Feed::Join(node) => self.next_of_join(node, opened, sending),
        }
    }

    /// The next rows of a join that meet others.
    fn next_of_join(
        &mut self,
        node: usize,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<Given, CoreError> {
        loop {
            opened.nodes[node].left = None;
            let batch = match self.step(node, opened, sending)? {
                Given::Batch(batch) => batch,
                other => return Ok(other),
            };
            let Some(front) = &self.nodes[node].front else { return Ok(Given::Batch(batch)) };
            self.meter.turn_to(Doing::Transform);
            let mut remaining = Remaining::default();
            let counts = Counts { transforms: &mut opened.transforms, destinations: &mut opened.ends };
            let InFront { met, .. } = front.apply(batch, counts, &mut remaining, sending)?;
            let left = remaining.numbers().map(<[u32]>::to_vec);
            opened.nodes[node].refused += self.refuse(node, remaining, opened);
            opened.nodes[node].left = left;
            if let Some(batch) = met {
                return Ok(Given::Batch(batch));
            }
        }
    }

    /// The next rows of a source that meet others. What goes to destinations past the joins, goes at once.
    fn next_of_leaf(
        &mut self,
        leaf: usize,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<Given, CoreError> {
        loop {
            self.end_batch(leaf, opened)?;
            let is_kept = |(other, own): (usize, &super::Leaf<'_>)| other != leaf && own.reader.holds_block();
            let is_kept = self.leaves.iter().enumerate().any(is_kept);
            let (own, open) = (&mut self.leaves[leaf], &mut opened.leaves[leaf]);
            let Some(progress) = &mut open.progress else { return Ok(Given::Nothing) };
            own.reader.is_memory_kept = is_kept;
            let Some(batch) = own.reader.next_batch(progress)? else {
                return Ok(if self.shared.outcome.stopped() { Given::Stopped } else { Given::Nothing });
            };
            open.at_hand.rows = batch.num_rows() as u64;
            let Some(front) = &own.front else { return Ok(Given::Batch(batch)) };
            let (shared, slice) = (self.shared, progress.slice().number);
            self.meter.turn_to(Doing::Transform);
            let mut remaining = Remaining::default();
            let counts = Counts { transforms: &mut progress.account.transforms, destinations: &mut progress.ends };
            let InFront { met, placed } = front.apply(batch, counts, &mut remaining, sending)?;
            open.at_hand.left = remaining.numbers().map(<[u32]>::to_vec);
            let on_way_in = remaining.refusers().filter(|(_, by)| shared.transforms.is_on_way_in(*by));
            progress.rejected_in_front += on_way_in.count() as u64;
            open.at_hand.refused_in_front = remaining.into_refused(&progress.file, |by| shared.lacking(by, slice));
            let out = rows_of(&placed);
            if let Some(origin) = own.reader.origin().filter(|_| out > 0) {
                progress.account.out += out;
                self.meter.add(Work { rows: 0, bytes: 0, out, is_transformed: true });
                self.meter.turn_to(Doing::Write);
                if !sending.write(placed, origin)? {
                    return Ok(Given::Stopped);
                }
            }
            if let Some(batch) = met {
                return Ok(Given::Batch(batch));
            }
        }
    }

    /// Says which rows of the last batch of a source were refused.
    pub(super) fn end_batch(&mut self, leaf: usize, opened: &mut Opened<'_>) -> Result<(), CoreError> {
        let open = &mut opened.leaves[leaf];
        let own = std::mem::take(&mut open.at_hand);
        let Some(progress) = &mut open.progress else { return Ok(()) };
        open.before += own.rows;
        // Those that were refused on the way to a destination past the joins, too, are rejects once.
        open.rejected += own.refused.len() as u64;
        let gone = Gone { out: 0, is_transformed: true }; // what comes out, the joins tell
        self.leaves[leaf].reader.end_batch(progress, own.into_refused(), &gone).map(drop)
    }
}
