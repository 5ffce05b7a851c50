//! A stream: takes slices from the queue, has them read, and sends their rows on.

mod front;
mod gathered;
mod joining;
mod kept_accounts;
mod opening;
mod ranges;
mod reader;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use headrace_parse::infer::TableFacts;
use headrace_types::{CoreError, ErrorKind, Rule};

use crate::flow::Shared;
use crate::meter::{Doing, SliceSize, StreamMeter};
use crate::queue::Next;
use crate::report::{DestinationCounts, SliceReport, TransformCounts};
use crate::sink::{Origin, Placed, Writer};
use crate::spec::{CommittedSlice, SliceSpec};
use crate::transforms::{Refusal, Refuser, Remaining, Sent, Takers, Transforms};
pub use gathered::Arriving;
use joining::Joining;
pub use kept_accounts::KeptAccounts;
pub use ranges::JoinedRanges;
pub use reader::BLOCK_OVERHEAD_BYTES;
use reader::{Counts, InFront, Reader, Rows};

/// Runs one stream until the queue is empty or the flow was stopped.
pub fn run(shared: &Arc<Shared>, meter: &StreamMeter) -> Result<(), CoreError> {
    meter.turn_to(Doing::Read);
    let is_counted = shared.row_counts.count(&shared.spec, &shared.outcome)?;
    meter.turn_to(Doing::Parse);
    let joining = shared.spec.join.as_ref().map(|join| Joining::new(shared, meter, join)).transpose()?;
    let mut stream = Stream {
        shared,
        meter,
        readers: Reader::of_sources(shared, meter)?,
        joining,
        sending: Sending {
            shared,
            meter,
            writers: shared.destinations.all().iter().map(|own| own.sink.writer()).collect(),
            places: Vec::new(),
            takers: Takers::ALL,
        },
    };
    if is_counted && stream.run_groups()? {
        meter.turn_to(Doing::Write);
        stream.sending.each(|writer, meter| writer.finish(meter))?;
    }
    // The writer may need a while to give up what it left open.
    meter.end();
    Ok(())
}

struct Stream<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    /// Of each source.
    readers: Vec<Reader<'a>>,
    /// Of a flow that joins: reads in the place of those of the sources that meet.
    joining: Option<Joining<'a>>,
    sending: Sending<'a>,
}

/// What becomes of rows: transforms, places, a writer for each destination.
struct Sending<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    writers: Vec<Box<dyn Writer>>,
    /// Scratch, reused for every batch.
    places: Vec<u32>,
    /// Who gets rows of the present slice, or unit of joined ones.
    takers: Takers,
}

impl Stream<'_> {
    /// Takes slices until there are no more. False when the flow was stopped.
    fn run_groups(&mut self) -> Result<bool, CoreError> {
        let shared = self.shared;
        loop {
            self.meter.turn_to(Doing::WaitSlice);
            match shared.queue.next(|| shared.outcome.stopped()) {
                Next::Group(group) => {
                    let joins = group.first().is_some_and(|slice| shared.spec.is_joined(slice));
                    let is_whole = match self.joining.as_mut().filter(|_| joins) {
                        Some(joining) => joining.run(&group, &mut self.sending)?,
                        None => self.run_slices(&group)?,
                    };
                    if !is_whole {
                        return Ok(false);
                    }
                    shared.queue.group_ended();
                }
                Next::EndEpoch => {
                    self.meter.turn_to(Doing::Write);
                    if !self.sending.each(|writer, meter| writer.end_epoch(meter))? {
                        return Ok(false);
                    }
                    shared.queue.epoch_ended();
                }
                Next::Nothing => return Ok(!shared.outcome.stopped()),
            }
        }
    }

    /// The slices of a group, one after the other. False when the flow was stopped.
    fn run_slices(&mut self, group: &[SliceSpec]) -> Result<bool, CoreError> {
        for slice in group {
            if !self.run_slice(slice)? {
                return Ok(false);
            }
            self.meter.end_slice();
        }
        Ok(true)
    }

    /// False when the flow was stopped.
    fn run_slice(&mut self, slice: &SliceSpec) -> Result<bool, CoreError> {
        self.meter.begin_slice(slice, SliceSize::of(&self.shared.spec.source, slice));
        self.meter.turn_to(Doing::Write);
        if !self.sending.begin(std::slice::from_ref(slice))? {
            return Ok(false);
        }
        if self.shared.spec.source.gathered {
            let Some(account) = gathered::send(self.shared, self.meter, slice, &mut self.sending)? else {
                return Ok(false);
            };
            self.end_slice(slice, account)?;
            return Ok(true);
        }
        let source = self.shared.spec.source_of_file(slice.file);
        let Some(reader) = self.readers.get_mut(source) else {
            return Err(CoreError::new(ErrorKind::Internal, format!("slice {} is of no source", slice.number)));
        };
        let mut progress = reader.open(slice)?;
        let read = reader.read(&mut progress, &mut self.sending);
        reader.end_rejects(&mut progress)?;
        if !read? {
            return Ok(false);
        }
        reader.close(&mut progress)?;
        self.end_slice(slice, progress.account)?;
        Ok(true)
    }

    fn end_slice(&mut self, slice: &SliceSpec, account: SliceReport) -> Result<(), CoreError> {
        self.meter.turn_to(Doing::Write);
        // Before any of it can be committed.
        self.shared.kept_accounts.keep(std::slice::from_ref(&account), Vec::new());
        self.sending.end_slice(slice, &account)?;
        self.shared.end_slice(account);
        Ok(())
    }
}

impl Rows for Sending<'_> {
    fn facts(&mut self) -> Option<&mut TableFacts> {
        self.writers.first_mut().and_then(|writer| writer.facts())
    }

    fn place(
        &mut self,
        batch: RecordBatch,
        counts: Counts<'_>,
        remaining: &mut Remaining,
    ) -> Result<Vec<Option<Placed>>, CoreError> {
        let Counts { transforms, destinations } = counts;
        let sent = self.transform(batch, transforms)?;
        self.place_sent(sent, destinations, remaining)
    }

    fn place_in_front(
        &mut self,
        front: &Transforms,
        batch: RecordBatch,
        counts: Counts<'_>,
        remaining: &mut Remaining,
    ) -> Result<InFront, CoreError> {
        let mut sent = {
            let _transforming = self.meter.pause(Doing::Transform);
            front.send(batch, counts.transforms, &self.takers)?
        };
        let (met, own) = sent.met.take().unzip();
        *remaining = own.unwrap_or_default();
        let placed = self.place_sent(sent, counts.destinations, remaining)?;
        Ok(InFront { met, placed })
    }

    fn is_transformed(&self) -> bool {
        !self.shared.transforms.is_empty() || self.shared.destinations.have_places()
    }

    fn write(&mut self, placed: Vec<Option<Placed>>, origin: Origin) -> Result<bool, CoreError> {
        for (number, (writer, own)) in self.writers.iter_mut().zip(placed).enumerate() {
            let Some(own) = own.filter(|_| is_wanted(self.shared, number, origin.slice)) else { continue };
            let rows = own.batch.num_rows() as u64;
            let taken = writer.write(own, origin, self.meter);
            if !taken.map_err(|error| self.shared.destinations.named(number, error))? {
                return Ok(false);
            }
            self.shared.counters.rows_out.fetch_add(rows, Ordering::Relaxed);
        }
        Ok(true)
    }
}

/// Whether a destination gets rows of a slice, and has them not yet.
fn is_wanted(shared: &Shared, destination: usize, slice: u32) -> bool {
    let is_committed = shared.spec.committed_in(destination).is_some_and(|known| known.contains_key(&slice));
    !is_committed && shared.spec.takes(destination, slice)
}

impl Sending<'_> {
    /// The rows of each destination at their places, if it gets some; `remaining` is told of all that were refused.
    fn place_sent(
        &mut self,
        sent: Sent,
        destinations: &mut [DestinationCounts],
        remaining: &mut Remaining,
    ) -> Result<Vec<Option<Placed>>, CoreError> {
        let Sent { destinations: sent, refused_at_end, refused, .. } = sent;
        remaining.absorb(refused);
        let mut all = Vec::with_capacity(sent.len());
        for (number, (own, refused)) in sent.into_iter().zip(refused_at_end).enumerate() {
            let mut own_refused = refused;
            let placed = match own {
                None => None,
                Some((batch, mut left)) => {
                    let before = left.refused();
                    let placed = self.route(number, batch, &mut left)?;
                    own_refused += left.refused() - before;
                    remaining.absorb(left);
                    placed
                }
            };
            if let Some(counts) = destinations.get_mut(number) {
                counts.out += placed.as_ref().map_or(0, |placed| placed.batch.num_rows() as u64);
                counts.rejected += own_refused;
            }
            all.push(placed);
        }
        Ok(all)
    }

    /// Rows of this slice, or unit of joined ones, follow for each destination that has them not yet. One begins with the first slice that it gets rows
    /// of. False when the flow was stopped.
    fn begin(&mut self, slices: &[SliceSpec]) -> Result<bool, CoreError> {
        let (shared, destinations) = (self.shared, 0..self.writers.len());
        let spec = &shared.spec;
        let first_of = |number: usize| slices.iter().find(|slice| spec.takes(number, slice.number));
        let ends: Vec<bool> = destinations.clone().map(|number| first_of(number).is_some()).collect();
        let is_together = |number: usize| ends[number] && spec.source_of_destination(number).is_none();
        // A join is told of all its rows, whoever wants to know.
        let meeting = slices.iter().any(|slice| spec.is_joined(slice)) || destinations.clone().any(is_together);
        self.takers = Takers { ends, meeting };
        for (number, writer) in self.writers.iter_mut().enumerate() {
            let first = first_of(number).filter(|slice| is_wanted(shared, number, slice.number));
            let Some(slice) = first else { continue };
            let begun = writer.begin_slice(slice, self.meter);
            if !begun.map_err(|error| shared.destinations.named(number, error))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does something with the writers, one after the other. False when the flow was stopped.
    fn each(
        &mut self,
        work: impl Fn(&mut dyn Writer, &StreamMeter) -> Result<bool, CoreError>,
    ) -> Result<bool, CoreError> {
        for (number, writer) in self.writers.iter_mut().enumerate() {
            let done = work(writer.as_mut(), self.meter);
            if !done.map_err(|error| self.shared.destinations.named(number, error))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All rows of a slice have gone; those that an earlier attempt has committed are compared with what it has said of them.
    fn end_slice(&mut self, slice: &SliceSpec, account: &SliceReport) -> Result<(), CoreError> {
        let path = self.shared.spec.source.files.get(slice.file).map_or("", |file| &file.path);
        for (number, writer) in self.writers.iter_mut().enumerate() {
            if !self.shared.spec.takes(number, slice.number) {
                continue;
            }
            let known = self.shared.spec.committed_in(number).and_then(|known| known.get(&slice.number));
            let account = account.of_destination(number);
            let ended = match known {
                Some(known) => check_committed(&account, path, slice, known),
                None => writer.end_slice(&account),
            };
            ended.map_err(|error| self.shared.destinations.named(number, error))?;
        }
        Ok(())
    }

    /// The rows of a batch behind the transforms, for each destination.
    fn transform(&self, batch: RecordBatch, counts: &mut [TransformCounts]) -> Result<Sent, CoreError> {
        if self.shared.transforms.is_empty() && self.shared.destinations.is_one() {
            let destinations = vec![Some((batch, Remaining::default()))];
            return Ok(Sent { destinations, met: None, refused_at_end: vec![0], refused: Remaining::default() });
        }
        let _transforming = self.meter.pause(Doing::Transform);
        self.shared.transforms.send(batch, counts, &self.takers)
    }

    /// Where the rows of a batch go in a destination, if any go somewhere; the others are refused.
    fn route(
        &mut self,
        number: usize,
        batch: RecordBatch,
        remaining: &mut Remaining,
    ) -> Result<Option<Placed>, CoreError> {
        let destination = &self.shared.destinations.all()[number];
        let Some(router) = &destination.router else { return Ok(Some(Placed::whole(batch, 0))) };
        let _placing = self.meter.pause(Doing::Transform);
        let (placed, outside) = router.route(batch, destination.sink.by_place(), &mut self.places)?;
        if !outside.is_empty() {
            remaining.refuse(outside, &Refusal { column: Some(router.field()), rule: Rule::Partition, note: None });
            remaining.refused_by(Refuser::Destination(number));
        }
        Ok(placed)
    }
}

/// A slice has the same rows whenever it is read: its file is unchanged. Unless another version of Headrace reads it.
fn check_committed(
    account: &SliceReport,
    path: &str,
    slice: &SliceSpec,
    known: &CommittedSlice,
) -> Result<(), CoreError> {
    let expected = SliceReport::known(slice, known);
    let counts = |account: &SliceReport| {
        let SliceReport { out, rejected, filtered, skipped, values_ignored, .. } = account;
        format!(
            "{out} rows, {rejected} rejected, {filtered} filtered, {skipped} lines skipped, {values_ignored} values ignored"
        )
    };
    if let Some((found, expected)) = account.text_hash.zip(expected.text_hash).filter(|(now, then)| now != then) {
        let what = format!("slice {} has another text than when an earlier attempt committed it", slice.number);
        return Err(CoreError::new(ErrorKind::FileChanged, what)
            .at_file(path)
            .found(format!("text with the hash {found}"))
            .expected(format!("text with the hash {expected}"))
            .hint("The file was changed although its size and time are the same. Start a new run: `headrace run`."));
    }
    let (found, expected) = (counts(account), counts(&expected));
    if found == expected {
        return Ok(());
    }
    let what = format!("slice {} has other rows than when an earlier attempt committed it", slice.number);
    Err(CoreError::new(ErrorKind::Internal, what)
        .found(found)
        .expected(expected)
        .hint("Start a new run: `headrace run`."))
}
