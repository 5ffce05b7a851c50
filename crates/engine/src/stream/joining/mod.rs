//! Slices whose rows meet: a reader for each of them, and joins that ask for the rows of the side that is behind, be they those of a reader
//! or what comes out of another join.
//!
//! A join asks for more rows of a side when all that it had of it have gone, out of the last join. So for each row that comes out the
//! batches at hand have the rows that it is of.
//!
//! | file | job |
//! | --- | --- |
//! | `mod` | one unit after the other: opens it, sends what comes out, closes it |
//! | `pull` | the next rows of a side |
//! | `leaf`, `node` | a source, and a join: what is kept of its rows |
//! | `refused` | rows that do not go on behind a join, as rows of their files |
//! | `order` | errors: rows against the order of a join |
//! | `keys` | from which to which key the rows of a unit go |

mod keys;
mod leaf;
mod node;
mod order;
mod pull;
mod refused;

use std::sync::Arc;

use arrow_array::RecordBatch;
use headrace_types::{CoreError, ErrorKind};

use super::Sending;
use super::ranges::JoinedRange;
use super::reader::{Counts, Progress, Rows, rows_of};
use crate::flow::Shared;
use crate::meter::{Doing, SliceSize, StreamMeter, Work};
use crate::report::{DestinationCounts, JoinCounts, TransformCounts};
use crate::sink::Origin;
use crate::spec::{JoinSpec, SliceSpec};
use crate::transforms::Remaining;
use leaf::{Leaf, OpenLeaf};
use node::{Feed, Node, OpenNode};
use pull::Given;
use refused::NoteOfOther;

/// Joins the slices of one unit after the other.
pub struct Joining<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    spec: &'a JoinSpec,
    /// The sources whose rows meet.
    leaves: Vec<Leaf<'a>>,
    /// The joins, each behind its sides.
    nodes: Vec<Node<'a>>,
    notes: Vec<NoteOfOther>,
}

/// The slices of a unit, open.
struct Opened<'s> {
    leaves: Vec<OpenLeaf<'s>>,
    nodes: Vec<OpenNode>,
    out: u64,
    transforms: Vec<TransformCounts>,
    /// What was refused at the ends of ways, and what went to the destinations.
    ends: Vec<DestinationCounts>,
}

impl<'a> Joining<'a> {
    /// For a flow of these joins.
    ///
    /// # Errors
    /// `Specification` for one that does not fit its layouts.
    pub fn new(shared: &'a Arc<Shared>, meter: &'a StreamMeter, spec: &'a JoinSpec) -> Result<Self, CoreError> {
        let fields = shared.spec.fields()?;
        let leaf = |source: usize| Leaf::new(shared, meter, spec, &fields, source);
        Ok(Joining {
            shared,
            meter,
            spec,
            leaves: (0..spec.leaves()).map(leaf).collect::<Result<_, _>>()?,
            nodes: Node::all(shared, spec, &fields)?,
            notes: Vec::new(),
        })
    }

    /// Joins the slices of units, one unit after the other. False when the flow was stopped.
    pub fn run(&mut self, group: &[SliceSpec], sending: &mut Sending<'_>) -> Result<bool, CoreError> {
        let spec = self.spec;
        for slices in group.chunk_by(|one, next| spec.unit_of(one.file) == spec.unit_of(next.file)) {
            if !self.run_unit(slices, sending)? {
                return Ok(false);
            }
            slices.iter().for_each(|_| self.meter.end_slice());
        }
        Ok(true)
    }

    /// Joins the slices of a unit. False when the flow was stopped.
    fn run_unit(&mut self, slices: &[SliceSpec], sending: &mut Sending<'_>) -> Result<bool, CoreError> {
        let Some(first) = slices.first() else { return Ok(true) };
        // The largest one tells how far the unit has come.
        let Some(largest) = slices.iter().max_by_key(|slice| slice.bytes()) else { return Ok(true) };
        self.meter.begin_slice(largest, SliceSize::of(&self.shared.spec.source, largest));
        self.meter.turn_to(Doing::Write);
        if !sending.begin(slices)? {
            return Ok(false);
        }
        let mut opened = self.open(slices, largest)?;
        let joined = self.join_rows(first, &mut opened, sending);
        // Of batches that are left open behind an error the rejects are kept all the same.
        let ended: Vec<_> = (0..self.leaves.len()).map(|leaf| self.end_batch(leaf, &mut opened)).collect();
        for (leaf, own) in self.leaves.iter().zip(&mut opened.leaves) {
            own.progress.as_mut().map(|progress| leaf.reader.end_rejects(progress)).transpose()?;
        }
        if !joined? {
            return Ok(false);
        }
        ended.into_iter().collect::<Result<(), _>>()?;
        let keys = self.ranges(&opened);
        keys.iter().try_for_each(|keys| self.check_range(keys))?;
        self.end(opened, keys, sending)?;
        Ok(true)
    }

    fn open<'s>(&mut self, slices: &'s [SliceSpec], largest: &SliceSpec) -> Result<Opened<'s>, CoreError> {
        let destinations = self.shared.spec.destinations();
        let mut opened = Opened {
            leaves: self.leaves.iter().map(|_| OpenLeaf::new(destinations)).collect(),
            nodes: self.nodes.iter().map(Node::open).collect::<Result<_, _>>()?,
            out: 0,
            transforms: self.shared.transforms.no_counts(),
            ends: vec![DestinationCounts::default(); destinations],
        };
        for slice in slices {
            let source = self.shared.spec.source_of_file(slice.file);
            let Some((leaf, own)) = self.leaves.get_mut(source).zip(opened.leaves.get_mut(source)) else {
                return Err(CoreError::new(ErrorKind::Internal, format!("slice {} is of no join", slice.number)));
            };
            leaf.reader.tells_progress = std::ptr::eq(slice, largest);
            own.progress = Some(leaf.reader.open(slice)?);
        }
        Ok(opened)
    }

    /// False when the flow was stopped.
    fn join_rows(
        &mut self,
        first: &SliceSpec,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<bool, CoreError> {
        loop {
            match self.step(self.spec.inner.len(), opened, sending)? {
                Given::Batch(batch) => {
                    if !self.send(first, batch, opened, sending)? {
                        return Ok(false);
                    }
                }
                Given::Nothing => return Ok(true),
                Given::Stopped => return Ok(false),
            }
        }
    }

    /// Sends rows on that come out of the last join. False when the flow was stopped.
    fn send(
        &mut self,
        first: &SliceSpec,
        batch: RecordBatch,
        opened: &mut Opened<'_>,
        sending: &mut Sending<'_>,
    ) -> Result<bool, CoreError> {
        let mut remaining = Remaining::default();
        let counts = Counts { transforms: &mut opened.transforms, destinations: &mut opened.ends };
        let placed = sending.place(batch, counts, &mut remaining)?;
        self.refuse(self.spec.inner.len(), remaining, opened);
        let out = rows_of(&placed);
        if out == 0 {
            return Ok(true);
        }
        opened.out += out;
        self.meter.add(Work { rows: 0, bytes: 0, out, is_transformed: true });
        if self.shared.spec.is_slice_committed(first.number) {
            return Ok(true);
        }
        self.meter.turn_to(Doing::Write);
        sending.write(placed, Origin::of_joined(first.number))
    }

    /// The accounts of all slices; what came out, and what inner joins have done, is told by the first of them.
    fn end(&mut self, opened: Opened<'_>, keys: Vec<JoinedRange>, sending: &mut Sending<'_>) -> Result<(), CoreError> {
        let inner: Vec<JoinCounts> = (0..self.spec.inner.len())
            .filter_map(|inner| self.counts(&opened, Feed::Join(inner), opened.nodes[inner].refused))
            .collect();
        let counts: Vec<_> = opened
            .leaves
            .iter()
            .enumerate()
            .map(|(leaf, own)| self.counts(&opened, Feed::Leaf(leaf), own.rejected))
            .collect();
        let Opened { leaves, out, transforms, ends, .. } = opened;
        let have_fronts = self.shared.spec.fronts() > 0;
        let mut came_out = Some((out, transforms, ends, inner));
        let mut ended: Vec<Progress<'_>> = Vec::new();
        for ((leaf, own), counts) in self.leaves.iter_mut().zip(leaves).zip(counts) {
            let Some(mut progress) = own.progress else { continue };
            leaf.reader.close(&mut progress)?;
            progress.account.join = counts;
            if !have_fronts {
                progress.account.transforms.clear();
            }
            if let Some((out, mut transforms, ends, inner)) = came_out.take() {
                // What stands in front has counted there, and all others here.
                let in_front = std::mem::take(&mut progress.account.transforms);
                transforms.iter_mut().zip(in_front).filter(|(_, own)| own.rows > 0).for_each(|(all, own)| *all = own);
                progress.account.out += out;
                progress.account.transforms = transforms;
                progress.account.inner = inner;
                let is_together = |number: &usize| self.shared.spec.source_of_destination(*number).is_none();
                (0..ends.len()).filter(is_together).for_each(|number| progress.ends[number] = ends[number]);
            }
            let of_way = |own: &u64| progress.rejected_in_front + own;
            progress.refused_around_join = Some(own.refused_on_ways.iter().map(of_way).collect());
            leaf.reader.count_ways(&mut progress);
            ended.push(progress);
        }
        self.meter.turn_to(Doing::Write);
        let slices: Vec<_> = ended.iter().map(|progress| progress.account.clone()).collect();
        // Before any of it can be committed.
        self.shared.kept_accounts.keep(&slices, keys);
        ended.iter().try_for_each(|progress| sending.end_slice(progress.slice(), &progress.account))?;
        ended.into_iter().for_each(|progress| self.shared.end_slice(progress.account));
        Ok(())
    }

    /// What has become of the rows of a feed in the join that they come into.
    fn counts(&self, opened: &Opened<'_>, feed: Feed, rejected: u64) -> Option<JoinCounts> {
        let side_of = |node: &Node<'_>| node.side_of(feed);
        let (place, side) = self.nodes.iter().enumerate().find_map(|(place, node)| Some((place, side_of(node)?)))?;
        let counts = opened.nodes[place].join.counts(side);
        let filtered = if self.nodes[place].join.kind.keeps(side) { 0 } else { counts.unmatched };
        Some(JoinCounts {
            rows: counts.rows,
            unmatched: counts.unmatched,
            filtered,
            null_keys: counts.null_keys,
            rejected,
        })
    }
}
