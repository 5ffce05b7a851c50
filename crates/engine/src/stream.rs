//! A stream: takes slices from the queue, has them read, and sends their rows on.

mod kept_pairs;
mod pair;
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
use crate::report::{SliceReport, TransformCounts};
use crate::sink::{Origin, Placed, Writer};
use crate::spec::{CommittedSlice, SliceSpec};
use crate::transforms::{Refusal, Remaining};
pub use kept_pairs::KeptPairs;
use pair::Pair;
pub use ranges::JoinedRanges;
pub use reader::BLOCK_OVERHEAD_BYTES;
use reader::{Progress, Reader, Rows};

/// Runs one stream until the queue is empty or the flow was stopped.
pub fn run(shared: &Arc<Shared>, meter: &StreamMeter) -> Result<(), CoreError> {
    meter.turn_to(Doing::Read);
    let is_counted = shared.row_counts.count(&shared.spec, &shared.outcome)?;
    meter.turn_to(Doing::Parse);
    let pair = shared.spec.join.as_ref().map(|join| Pair::new(shared, meter, join)).transpose()?;
    let mut stream = Stream {
        shared,
        meter,
        reader: Reader::new(shared, meter, &shared.spec.layout, shared.sink.wanted_columns())?,
        pair,
        sending: Sending { shared, meter, writer: shared.sink.writer(), places: Vec::new() },
    };
    if is_counted && stream.run_groups()? {
        meter.turn_to(Doing::Write);
        stream.sending.writer.finish(meter)?;
    }
    // The writer may need a while to give up what it left open.
    meter.end();
    Ok(())
}

struct Stream<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    reader: Reader<'a>,
    /// Of a flow that joins: reads in the place of `reader`.
    pair: Option<Pair<'a>>,
    sending: Sending<'a>,
}

/// What becomes of rows: transforms, places, the writer.
struct Sending<'a> {
    shared: &'a Arc<Shared>,
    meter: &'a StreamMeter,
    writer: Box<dyn Writer>,
    /// Scratch, reused for every batch.
    places: Vec<u32>,
}

impl Stream<'_> {
    /// Takes slices until there are no more. False when the flow was stopped.
    fn run_groups(&mut self) -> Result<bool, CoreError> {
        let shared = self.shared;
        loop {
            self.meter.turn_to(Doing::WaitSlice);
            match shared.queue.next(|| shared.outcome.stopped()) {
                Next::Group(group) => {
                    let is_whole = match &mut self.pair {
                        Some(pair) => pair.run(&group, &mut self.sending)?,
                        None => self.run_slices(&group)?,
                    };
                    if !is_whole {
                        return Ok(false);
                    }
                    shared.queue.group_ended();
                }
                Next::EndEpoch => {
                    self.meter.turn_to(Doing::Write);
                    if !self.sending.writer.end_epoch(self.meter)? {
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
        let committed = self.shared.spec.source.committed.get(&slice.number);
        self.meter.begin_slice(slice, SliceSize::of(&self.shared.spec.source, slice));
        self.meter.turn_to(Doing::Write);
        if committed.is_none() && !self.sending.writer.begin_slice(slice, self.meter)? {
            return Ok(false);
        }
        let mut progress = self.reader.open(slice, committed)?;
        let read = self.reader.read(&mut progress, &mut self.sending);
        self.reader.end_rejects(&mut progress)?;
        if !read? {
            return Ok(false);
        }
        self.reader.close(&mut progress)?;
        self.meter.turn_to(Doing::Write);
        self.sending.end_slice(&progress)?;
        self.shared.end_slice(progress.account);
        Ok(true)
    }
}

impl Rows for Sending<'_> {
    fn facts(&mut self) -> Option<&mut TableFacts> {
        self.writer.facts()
    }

    fn place(
        &mut self,
        batch: RecordBatch,
        counts: &mut [TransformCounts],
        remaining: &mut Remaining,
    ) -> Result<Option<Placed>, CoreError> {
        let batch = self.transform(batch, counts, remaining)?;
        batch.map(|batch| self.route(batch, remaining)).transpose().map(Option::flatten)
    }

    fn is_transformed(&self) -> bool {
        !self.shared.transforms.is_empty() || self.shared.router.is_some()
    }

    fn write(&mut self, placed: Placed, origin: Origin) -> Result<bool, CoreError> {
        let rows = placed.batch.num_rows() as u64;
        if !self.writer.write(placed, origin, self.meter)? {
            return Ok(false);
        }
        self.shared.counters.rows_out.fetch_add(rows, Ordering::Relaxed);
        Ok(true)
    }
}

impl Sending<'_> {
    /// All rows of a slice have gone; those that an earlier attempt has committed are compared with what it has said of them.
    fn end_slice(&mut self, progress: &Progress<'_>) -> Result<(), CoreError> {
        let slice = progress.slice();
        match self.shared.spec.source.committed.get(&slice.number) {
            Some(known) => check_committed(&progress.account, &progress.file.path, slice, known),
            None => self.writer.end_slice(&progress.account),
        }
    }

    /// The rows of a batch behind the transforms, if any are left.
    fn transform(
        &self,
        batch: RecordBatch,
        counts: &mut [TransformCounts],
        remaining: &mut Remaining,
    ) -> Result<Option<RecordBatch>, CoreError> {
        if self.shared.transforms.is_empty() {
            return Ok(Some(batch));
        }
        let _transforming = self.meter.pause(Doing::Transform);
        self.shared.transforms.apply(batch, counts, remaining)
    }

    /// Where the rows of a batch go, if any go somewhere; the others are refused.
    fn route(&mut self, batch: RecordBatch, remaining: &mut Remaining) -> Result<Option<Placed>, CoreError> {
        let Some(router) = &self.shared.router else { return Ok(Some(Placed::whole(batch, 0))) };
        let _placing = self.meter.pause(Doing::Transform);
        let (placed, outside) = router.route(batch, self.shared.sink.by_place(), &mut self.places)?;
        if !outside.is_empty() {
            remaining.refuse(outside, &Refusal { column: Some(router.field()), rule: Rule::Partition, note: None });
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
