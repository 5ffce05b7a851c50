//! A flow: streams over a queue of slices, one sink, one outcome.

mod measure;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headrace_parse::Reject;
use headrace_parse::memory::Memory;
use headrace_types::{CoreError, ErrorKind};

use crate::affinity;
use crate::destinations::Destinations;
use crate::lookup::Lookup;
use crate::memory_pool::MemoryPool;
use crate::meter::StreamMeter;
use crate::outcome::{Outcome, lock};
use crate::queue::{Group, Queue};
use crate::rejects::{LongRow, Place, RejectStore, SliceRejects};
use crate::report::{DestinationCounts, FlowReport, RejectReport, SliceReport, Snapshot, Status, StreamReport};
use crate::routing::Router;
use crate::row_counts::RowCounts;
use crate::row_numbers::first_lines;
use crate::sink::Sink;
use crate::sink::arrow::BatchReader;
use crate::source::check_unchanged;
use crate::spec::{FlowSpec, SliceSpec};
use crate::stream::{self, Arriving, BLOCK_OVERHEAD_BYTES, JoinedRanges, KeptAccounts};
use crate::transforms::{Refuser, Transforms, Window};

/// The slab of a block is at most this many times as large as its text: 16 bytes for an empty text field, which takes at least
/// its delimiter, a validity bit, and the texts whose doubled qualifiers were made single.
const SLAB_FACTOR: usize = 18;
/// Time between two looks whether a flow of the core's own was cancelled.
const STEP: Duration = Duration::from_millis(20);

/// A data flow. Does nothing before [`Flow::start`].
pub struct Flow {
    shared: Arc<Shared>,
    readers: Mutex<Vec<Option<BatchReader>>>,
    started: Mutex<bool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the streams of a flow share.
pub struct Shared {
    /// The plan.
    pub spec: Arc<FlowSpec>,
    /// Failure, cancellation.
    pub outcome: Arc<Outcome>,
    /// Text blocks.
    pub blocks: MemoryPool,
    /// The one memory for a row that does not fit a block.
    pub large_rows: MemoryPool,
    /// Typed columns; bounded by the blocks and the sink's queue.
    pub slabs: MemoryPool,
    /// What happens to rows behind the parser.
    pub transforms: Arc<Transforms>,
    /// Where rows go.
    pub destinations: Destinations,
    /// Rejects.
    pub rejects: RejectStore,
    /// Live counters.
    pub counters: Counters,
    filling_large_row: AtomicUsize,
    /// Lines before the slices, where they are asked for.
    pub row_counts: RowCounts,
    /// Groups of slices, each for one stream.
    pub queue: Queue,
    slices: Mutex<Vec<SliceReport>>,
    /// Keys of the units of files that were joined.
    pub joined: JoinedRanges,
    /// What is known of slices and joined units, for an attempt that follows.
    pub kept_accounts: KeptAccounts,
    /// Rows that come as batches, until the stream takes them that reads their slice.
    arriving: Mutex<Option<Arriving>>,
    streams: Mutex<Vec<StreamReport>>,
    /// Of all streams, once the flow has started.
    meters: Mutex<Vec<Arc<StreamMeter>>>,
    active: AtomicUsize,
    started: Mutex<Instant>,
    report: Mutex<Option<FlowReport>>,
    ended: Condvar,
}

/// Live counters, for progress only: the accounts come from the slices.
#[derive(Default)]
pub struct Counters {
    bytes: AtomicU64,
    taken_bytes: AtomicU64,
    rows: AtomicU64,
    rejected: AtomicU64,
    /// Rows the sink took.
    pub rows_out: AtomicU64,
}

impl Counters {
    /// Adds a parsed block.
    pub fn add(&self, bytes: u64, rows: u64, rejected: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.rejected.fetch_add(rejected, Ordering::Relaxed);
    }

    /// Adds bytes of the source, compressed or not.
    pub fn add_taken(&self, bytes: u64) {
        self.taken_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Held while a stream fills the large-row memory.
pub struct FillingLargeRow<'a>(&'a AtomicUsize);

impl Drop for FillingLargeRow<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What there is to do.
struct Work {
    /// Units whose rows are to be sent.
    to_load: Vec<Group>,
    /// Those that come before: rejects that are known to come may be too many.
    first: Vec<Group>,
    /// Accounts of what nobody has to read again.
    known: Vec<SliceReport>,
}

impl Work {
    fn of(spec: &FlowSpec, joined: &JoinedRanges, kept_accounts: &KeptAccounts) -> Self {
        let mut work = Work { to_load: Vec::new(), first: Vec::new(), known: Vec::new() };
        for unit in spec.units() {
            if !spec.is_committed(&unit) {
                work.to_load.push(unit);
            } else if spec.needs_reading(&unit) {
                work.first.push(unit);
            } else if let Some(kept) = kept_accounts.of(spec, &unit) {
                work.known.extend(kept.slices);
                // They were compared when they were read.
                kept.keys.into_iter().for_each(|keys| drop(joined.add(keys)));
            } else if unit.iter().any(|slice| spec.is_joined(slice))
                || (spec.keeps_accounts() && spec.is_wanted(&unit) && spec.can_be_read_again(&unit))
            {
                work.first.push(unit);
            } else {
                work.known.extend(unit.iter().filter_map(|slice| spec.known(slice)));
            }
        }
        work
    }
}

impl Flow {
    /// A flow without lookups.
    ///
    /// # Errors
    /// `Specification` when the specification contradicts itself.
    pub fn new(spec: FlowSpec) -> Result<Self, CoreError> {
        Self::with_lookups(spec, Vec::new())
    }

    /// A flow with the indexes of its lookups, in the order of its transforms.
    ///
    /// # Errors
    /// `Specification` when the specification contradicts itself or the indexes.
    pub fn with_lookups(mut spec: FlowSpec, lookups: Vec<Arc<Lookup>>) -> Result<Self, CoreError> {
        spec.check()?;
        spec.leave_out_unwanted();
        let outcome = Arc::new(Outcome::default());
        let transforms = Arc::new(Transforms::new(&spec, lookups, outcome.clone())?);
        let spec = Arc::new(spec);
        // Blocks that are neither parsed nor in the consumer's hands may wait in the queue.
        let held = spec.streams.saturating_mul(spec.join.as_ref().map_or(1, |join| join.leaves()));
        let queue_batches = (spec.memory.blocks.saturating_sub(held) / 2).max(1);
        let (destinations, readers) = Destinations::of(&spec, queue_batches, &outcome, &transforms)?;
        Ok(Self::of(spec, outcome, transforms, destinations, readers))
    }

    /// A flow of rows that come as batches; its specification says so.
    ///
    /// # Errors
    /// `Specification` when it contradicts itself, or the indexes.
    pub fn of_batches(spec: FlowSpec, lookups: Vec<Arc<Lookup>>, batches: Arriving) -> Result<Self, CoreError> {
        let flow = Self::with_lookups(spec, lookups)?;
        *lock(&flow.shared.arriving) = Some(batches);
        Ok(flow)
    }

    /// A flow of a checked specification into a sink of the core's own; that of the specification counts for nothing.
    ///
    /// # Errors
    /// `Specification` when it contradicts itself.
    pub(crate) fn into_sink(spec: FlowSpec, sink: Arc<dyn Sink>) -> Result<Self, CoreError> {
        spec.check()?;
        let outcome = Arc::new(Outcome::default());
        let transforms = Arc::new(Transforms::new(&spec, Vec::new(), outcome.clone())?);
        Self::of_own(spec, outcome, transforms, sink)
    }

    /// The same of a specification whose transforms are those in front of a join alone, and those of a flow that runs: it has their
    /// lookups, and somebody runs its queries.
    ///
    /// # Errors
    /// `Specification` when it contradicts itself.
    pub(crate) fn with_fronts(
        spec: FlowSpec,
        transforms: Arc<Transforms>,
        sink: Arc<dyn Sink>,
    ) -> Result<Self, CoreError> {
        spec.check()?;
        Self::of_own(spec, Arc::new(Outcome::default()), transforms, sink)
    }

    fn of_own(
        spec: FlowSpec,
        outcome: Arc<Outcome>,
        transforms: Arc<Transforms>,
        sink: Arc<dyn Sink>,
    ) -> Result<Self, CoreError> {
        let router = Router::of(&spec)?.map(Arc::new);
        Ok(Self::of(Arc::new(spec), outcome, transforms, Destinations::one(router, sink), Vec::new()))
    }

    fn of(
        spec: Arc<FlowSpec>,
        outcome: Arc<Outcome>,
        transforms: Arc<Transforms>,
        destinations: Destinations,
        readers: Vec<Option<BatchReader>>,
    ) -> Self {
        let (joined, kept_accounts) = (JoinedRanges::default(), KeptAccounts::open(&spec));
        let Work { to_load, first, known } = Work::of(&spec, &joined, &kept_accounts);
        let queue = Queue::new(destinations.groups(to_load), &spec.source.epochs, first);
        let block_bytes = spec.memory.block_bytes + BLOCK_OVERHEAD_BYTES;
        let shared = Shared {
            outcome,
            blocks: MemoryPool::new(spec.memory.blocks, block_bytes, 2 * block_bytes),
            large_rows: MemoryPool::new(1, 0, 0),
            slabs: MemoryPool::new(spec.memory.blocks, 0, SLAB_FACTOR * block_bytes),
            transforms,
            destinations,
            rejects: RejectStore::new(&spec),
            counters: Counters::default(),
            filling_large_row: AtomicUsize::new(0),
            row_counts: RowCounts::new(&spec),
            queue,
            slices: Mutex::new(known),
            joined,
            kept_accounts,
            arriving: Mutex::default(),
            streams: Mutex::default(),
            meters: Mutex::default(),
            active: AtomicUsize::new(0),
            started: Mutex::new(Instant::now()),
            report: Mutex::default(),
            ended: Condvar::new(),
            spec,
        };
        // Their rows count, too.
        let known: Vec<SliceReport> = lock(&shared.slices).drain(..).collect();
        known.into_iter().for_each(|account| shared.end_slice(account));
        Flow {
            shared: Arc::new(shared),
            readers: Mutex::new(readers),
            started: Mutex::new(false),
            threads: Mutex::default(),
        }
    }

    /// Starts the streams. A second call does nothing.
    ///
    /// # Errors
    /// `Internal` when the system gives no thread.
    pub fn start(&self) -> Result<(), CoreError> {
        let mut started = lock(&self.started);
        if std::mem::replace(&mut *started, true) {
            return Ok(());
        }
        *lock(&self.shared.started) = Instant::now();
        // More streams than groups of slices would only start and end.
        let streams = self.shared.spec.streams.min(self.shared.queue.most_streams()).max(1);
        self.shared.active.store(streams, Ordering::Release);
        let meters: Vec<_> = (1..=streams).map(|number| Arc::new(StreamMeter::new(number))).collect();
        lock(&self.shared.meters).clone_from(&meters);
        for (number, meter) in (1..).zip(&meters) {
            let (shared, own) = (self.shared.clone(), meter.clone());
            let thread = std::thread::Builder::new().name(format!("headrace-{number}"));
            let spawned = thread.spawn(move || shared.run_stream(&own));
            if let Err(error) = spawned.map(|thread| lock(&self.threads).push(thread)) {
                let error = CoreError::new(ErrorKind::Internal, format!("cannot start stream {number}"))
                    .found(error.to_string())
                    .hint("Use fewer streams.");
                self.shared.outcome.fail(error.clone());
                // The streams that never ran have ended.
                for meter in &meters[number - 1..] {
                    meter.end();
                    self.shared.end_stream();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// The merged stream of an `arrow` sink; once.
    pub fn take_reader(&self) -> Option<BatchReader> {
        self.take_reader_of(0)
    }

    /// The same of one of several destinations.
    pub fn take_reader_of(&self, destination: usize) -> Option<BatchReader> {
        lock(&self.readers).get_mut(destination).and_then(Option::take)
    }

    /// Whether the consumer of the merged stream of a destination was told of an error. What it says then is a consequence of that.
    pub fn has_stream_failed(&self, destination: usize) -> bool {
        self.shared.destinations.all().get(destination).is_some_and(|own| own.sink.has_told_error())
    }

    /// Stops the flow from outside.
    pub fn cancel(&self, reason: &str) {
        self.shared.outcome.fail(CoreError::new(ErrorKind::Cancelled, reason));
        self.shared.destinations.abandon();
    }

    /// Commits what the writers left open. To be called once, after [`Flow::join`] gave a report without error.
    ///
    /// # Errors
    /// `Specification` while the flow runs or when it failed; `Cancelled` when it was cancelled since, and then nothing is
    /// committed; those of the destination.
    pub fn commit(&self) -> Result<(), CoreError> {
        match lock(&self.shared.report).as_ref().map(|report| report.status) {
            Some(Status::Ok) => self.shared.destinations.commit(),
            _ => Err(CoreError::new(ErrorKind::Specification, "a flow that has not ended well cannot be committed")),
        }
    }

    /// Tells that these processes of the destination's server were seen at work just now: a writer whose process is among
    /// them waits on, however long nothing moves on its connection. `destination`: the only one whose server they are of.
    pub fn seen_at_work(&self, destination: Option<usize>, processes: &[i32]) {
        self.shared.destinations.seen_at_work(destination, processes);
    }

    /// The next rows that a query is to be run over, as soon as there are some; from any thread, any number of them. None when the
    /// flow has ended, or was stopped.
    pub fn next_window(&self) -> Option<Window> {
        self.shared.transforms.windows().next(|| lock(&self.shared.report).is_some())
    }

    /// Whether the flow was stopped, or has failed.
    pub fn is_stopped(&self) -> bool {
        self.shared.outcome.stopped()
    }

    /// Live counters.
    pub fn snapshot(&self) -> Snapshot {
        let shared = &self.shared;
        Snapshot {
            bytes_read: shared.counters.bytes.load(Ordering::Relaxed),
            source_bytes_read: shared.counters.taken_bytes.load(Ordering::Relaxed),
            counted_bytes: shared.row_counts.bytes(),
            rows_read: shared.counters.rows.load(Ordering::Relaxed),
            rows_out: shared.counters.rows_out.load(Ordering::Relaxed),
            rows_rejected: shared.counters.rejected.load(Ordering::Relaxed),
            slices_done: lock(&shared.slices).len() as u64,
            slices_total: shared.spec.source.slices.len() as u64,
            streams_active: shared.active.load(Ordering::Relaxed) as u64,
        }
    }

    /// Waits for the end of the flow, its threads included; `None` on timeout.
    pub fn join(&self, timeout: Duration) -> Option<FlowReport> {
        let report = lock(&self.shared.report);
        let waited = self.shared.ended.wait_timeout_while(report, timeout, |report| report.is_none());
        let report = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0.clone()?;
        // There is nothing left for them to do; a stream whose thread has panicked has said so in the report.
        std::mem::take(&mut *lock(&self.threads)).into_iter().for_each(|thread| drop(thread.join()));
        // The consumer takes the last batches after the last stream has ended.
        let destinations = &self.shared.destinations;
        Some(FlowReport { sink: destinations.report(), destinations: destinations.reports(), ..report })
    }
}

impl Flow {
    /// Runs to the end, or until `stops` says so, which is asked every few milliseconds on the calling thread; `reason` is what
    /// the error says then.
    ///
    /// # Errors
    /// Those of starting; `Cancelled` if it stops before the start. What goes wrong behind that is in the report.
    pub(crate) fn run(&self, reason: &str, stops: &mut dyn FnMut() -> bool) -> Result<FlowReport, CoreError> {
        if stops() {
            return Err(CoreError::new(ErrorKind::Cancelled, reason)); // a short flow would end before it is asked again
        }
        self.start()?;
        loop {
            if stops() {
                self.cancel(reason);
            }
            if let Some(report) = self.join(STEP) {
                return Ok(report);
            }
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // Streams hold their own references; they end within one block.
        self.cancel("the flow was dropped");
    }
}

impl Shared {
    /// The rows that come as batches, once.
    pub fn take_arriving(&self) -> Option<Arriving> {
        lock(&self.arriving).take()
    }

    /// Counts the rows of a slice that are not given to the destinations, from what its transforms have counted. `ends`: what was refused
    /// at the ends of ways, and what went to the destinations; `rejected_before`: rows that were rejected before the first transform;
    /// `refused_around_join`: if rows are joined, of each way out of it the rows of this slice that are missing there, but for those.
    pub fn count_ways(
        &self,
        account: &mut SliceReport,
        ends: &[DestinationCounts],
        rejected_before: u64,
        refused_around_join: Option<&[u64]>,
    ) {
        let left_out = |number: usize| self.transforms.left_out(number, &account.transforms);
        if self.spec.others.is_empty() {
            account.filtered = left_out(0).filtered;
            account.refused_at_end = ends.first().map_or(0, |end| end.rejected);
            return;
        }
        let of = |(number, end): (usize, &DestinationCounts)| {
            if !self.spec.takes(number, account.number) {
                return DestinationCounts::default();
            }
            let DestinationCounts { rejected, filtered, .. } = left_out(number);
            let known = self.spec.committed_in(number).is_some_and(|known| known.contains_key(&account.number));
            let joined = refused_around_join.filter(|_| self.spec.source_of_destination(number).is_none());
            let rejected = rejected_before + joined.map_or(rejected + end.rejected, |own| own[number]);
            DestinationCounts { committed: known, out: end.out, rejected, filtered, refused_at_end: end.rejected }
        };
        account.destinations = ends.iter().enumerate().map(of).collect();
    }

    /// The destinations that lack a row of a slice which these have refused; none if rejects do not tell.
    pub fn lacking(&self, refusers: &[Refuser], slice: u32) -> Option<Arc<[usize]>> {
        if !self.spec.rejects.tell_destinations {
            return None;
        }
        let is_lacking = |number: &usize| refusers.iter().any(|own| self.transforms.is_on_way(*own, *number));
        Some(self.spec.takers(slice).filter(is_lacking).collect())
    }

    /// Accounts of a slice that ended well.
    pub fn end_slice(&self, account: SliceReport) {
        if self.destinations.keeps_rejects() && self.rejects.count_slice(&account) {
            self.fail_for_rejects();
        }
        lock(&self.slices).push(account);
    }

    /// The large-row memory, at least `bytes` of it, once it is free. A consumer that keeps it while it waits for more gets
    /// past that by one overdraft; a stream that is still filling it is waited for. `is_memory_kept`: the caller itself may keep it.
    pub fn large_row(&self, bytes: usize, is_memory_kept: bool) -> Option<(FillingLargeRow<'_>, Memory)> {
        let is_kept = || is_memory_kept || self.destinations.starved();
        let starved = || is_kept() && self.filling_large_row.load(Ordering::Acquire) == 0;
        let mut memory = self.large_rows.acquire(&self.outcome, starved)?;
        memory.grow(bytes);
        self.filling_large_row.fetch_add(1, Ordering::AcqRel);
        Some((FillingLargeRow(&self.filling_large_row), memory))
    }

    /// Keeps a reject of a slice, and stops the flow when it allows no more.
    pub fn reject(
        &self,
        slice: &SliceSpec,
        reject: &Reject,
        long: Option<&LongRow>,
        open: &mut Option<SliceRejects>,
    ) -> Result<(), CoreError> {
        if !self.destinations.keeps_rejects() {
            return Ok(());
        }
        let takers: Vec<usize> = match self.spec.rejects.tell_destinations {
            true => self.spec.takers(slice.number).collect(),
            false => Vec::new(),
        };
        let place = Place { slice: slice.number, file: slice.file, takers: &takers };
        if self.rejects.add(place, reject, long, open)? {
            self.fail_for_rejects();
        }
        Ok(())
    }

    /// Keeps a part of a row of a slice that is longer than any buffer.
    pub fn keep_part(
        &self,
        slice: u32,
        part: &[u8],
        row: &mut LongRow,
        open: &mut Option<SliceRejects>,
    ) -> Result<(), CoreError> {
        if self.destinations.keeps_rejects() {
            return self.rejects.keep_part(slice, part, row, open);
        }
        row.bytes += part.len() as u64;
        Ok(())
    }

    /// The text comes when all streams have ended: then the first reject in file order is known.
    fn fail_for_rejects(&self) {
        self.outcome.fail(CoreError::new(ErrorKind::RejectLimit, "too many rejects"));
    }

    fn run_stream(self: &Arc<Self>, meter: &StreamMeter) {
        meter.begin();
        let ran = self.caught(|| {
            affinity::pin(&self.spec.affinity, meter.number())?;
            stream::run(self, meter)
        });
        meter.end();
        match ran {
            Some(Ok(())) => lock(&self.streams).push(meter.report()),
            Some(Err(error)) => self.outcome.fail(error),
            None => {}
        }
        self.end_stream();
    }

    /// Called once per stream; the last one ends the flow.
    fn end_stream(&self) {
        if self.active.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // Whatever goes wrong here: who waits for the report would wait for ever without one.
        let finished = self.caught(|| self.finish());
        let closed = self.caught(|| {
            // The outcome is final: now the consumer may see the end.
            self.destinations.close();
            if self.outcome.stopped() {
                self.destinations.abandon();
            }
        });
        let report = finished.filter(|_| closed.is_some());
        *lock(&self.report) = Some(report.unwrap_or_else(|| self.assemble(RejectReport::default())));
        self.ended.notify_all();
    }

    /// None if the work panicked, which fails the flow.
    fn caught<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| self.outcome.fail(panicked(panic.as_ref()))).ok()
    }

    /// Checks what only the end can tell, and resolves the rejects.
    fn finish(&self) -> FlowReport {
        if self.outcome.error().is_none()
            && let Err(error) = self.check_complete().and_then(|()| self.check_files())
        {
            self.outcome.fail(error);
        }
        let ended = lock(&self.slices).clone();
        let first_lines = first_lines(&self.spec, &ended, &self.rejects.slices());
        let (rejects, error) = self.rejects.merge(&first_lines);
        if self.outcome.error().is_some_and(|error| error.kind == ErrorKind::RejectLimit) {
            self.outcome.replace(self.rejects.limit_error(&first_lines, error.as_ref()));
        } else if let Some(error) = error {
            self.outcome.fail(error);
        }
        self.assemble(rejects)
    }

    fn assemble(&self, rejects: RejectReport) -> FlowReport {
        let mut slices = lock(&self.slices).clone();
        slices.sort_by_key(|slice| slice.number);
        let mut streams = lock(&self.streams).clone();
        streams.sort_by_key(|stream| stream.number);
        let mut memory = self.blocks.report();
        memory.overdraft_blocks += self.large_rows.report().overdraft_blocks;
        FlowReport {
            status: self.outcome.status(),
            error: self.outcome.error(),
            seconds: lock(&self.started).elapsed().as_secs_f64(),
            slices,
            streams,
            sink: self.destinations.report(),
            columns: self.destinations.columns(),
            destinations: self.destinations.reports(),
            rejects,
            memory,
            transforms: self.transforms.reports(),
        }
    }

    /// Every slice of the plan ended exactly once, and every byte of it was taken.
    fn check_complete(&self) -> Result<(), CoreError> {
        let ended = lock(&self.slices);
        let read: HashMap<u32, Option<u64>> =
            ended.iter().map(|slice| (slice.number, slice.stream.map(|_| slice.bytes))).collect();
        let planned = &self.spec.source.slices;
        if read.len() != planned.len() || ended.len() != planned.len() {
            let what = format!("{} of {} slices were accounted for", ended.len(), planned.len());
            return Err(CoreError::new(ErrorKind::Internal, what));
        }
        // Nothing had to be read of a slice of which everything is known.
        let bytes = |slice: &SliceSpec| read.get(&slice.number).copied().unwrap_or(Some(0));
        // How long the text is that a decoder ends, it has checked itself.
        let wanted = |slice: &SliceSpec| slice.text().end.map(|end| end - slice.text().begin);
        let is_whole =
            |slice: &&SliceSpec| bytes(slice).is_none_or(|bytes| wanted(slice).is_none_or(|wanted| bytes == wanted));
        match planned.iter().find(|slice| self.spec.source.generate.is_none() && !is_whole(slice)) {
            None => self.row_counts.check(&ended),
            Some(slice) => {
                let what = format!("slice {} was not read to its end", slice.number);
                let found = format!("{} of {} bytes", bytes(slice).unwrap_or(0), wanted(slice).unwrap_or(0));
                Err(CoreError::new(ErrorKind::Internal, what).found(found))
            }
        }
    }

    /// No file changed since the plan was made.
    fn check_files(&self) -> Result<(), CoreError> {
        if self.spec.source.generate.is_some() || self.spec.source.gathered {
            return Ok(());
        }
        for file in self.spec.source.files.iter().filter(|file| file.stream.is_none()) {
            let now = std::fs::metadata(&file.path).map_err(|error| {
                CoreError::new(ErrorKind::FileChanged, "a source file vanished while it was loaded")
                    .at_file(&file.path)
                    .found(error.to_string())
                    .hint("Run again once the file is complete.")
            })?;
            check_unchanged(file, &now)?;
        }
        Ok(())
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> CoreError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    CoreError::new(ErrorKind::Internal, "a stream panicked")
        .found(text)
        .hint("This is a defect of Headrace: please report it with the run folder.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Writer;
    use crate::spec::{MemorySpec, RejectSpec, SourceSpec};
    use headrace_types::{Column, ColumnType, Layout};

    /// A sink for flows without slices that panics at their end.
    struct Broken {
        in_close: bool,
    }

    struct Idle;

    impl Writer for Idle {
        fn write(
            &mut self,
            _: crate::sink::Placed,
            _: crate::sink::Origin,
            _: &StreamMeter,
        ) -> Result<bool, CoreError> {
            Ok(true)
        }
    }

    impl Sink for Broken {
        fn writer(&self) -> Box<dyn Writer> {
            Box::new(Idle)
        }

        fn close(&self) {
            assert!(!self.in_close, "close");
        }

        fn abandon(&self) {
            // Not when the flow is dropped.
            assert!(!std::thread::current().name().is_some_and(|name| name.starts_with("headrace-")), "abandon");
        }
    }

    fn spec() -> FlowSpec {
        let column = Column::new("id", ColumnType::Int64, false);
        let layout = Layout { delimiter: "|".to_owned(), columns: vec![column], ..Layout::default() };
        let memory = MemorySpec { block_bytes: 1 << 16, blocks: 2, max_row_bytes: 1 << 16 };
        FlowSpec {
            rejects: RejectSpec { limit: Some(0), ..RejectSpec::default() },
            ..FlowSpec::plain("nothing", layout, SourceSpec::default(), 2, memory)
        }
    }

    #[test]
    fn a_sink_that_panics_at_the_end_keeps_nobody_waiting() {
        for in_close in [true, false] {
            let flow = Flow::into_sink(spec(), Arc::new(Broken { in_close })).unwrap();
            if !in_close {
                flow.shared.outcome.fail(CoreError::new(ErrorKind::Cancelled, "enough"));
            }
            flow.start().unwrap();
            let report = flow.join(Duration::from_secs(60)).expect("a report");
            assert_eq!(report.status, Status::Failed);
            let error = report.error.unwrap();
            assert_eq!(error.kind, ErrorKind::Internal);
            assert_eq!(error.found.as_deref(), Some(if in_close { "close" } else { "abandon" }));
        }
    }
}
