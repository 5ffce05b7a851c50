//! Numbers of rows in their files: all streams count the lines before each slice, before the first slice is parsed.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use headrace_types::{CoreError, ErrorKind, MadeFrom};

use crate::outcome::{Outcome, lock};
use crate::report::SliceReport;
use crate::row_numbers::{count_lines, first_lines};
use crate::spec::{FlowSpec, SinkSpec, SliceSpec};

/// Longest time between two looks whether the flow was stopped.
const STEP: Duration = Duration::from_millis(20);

/// What the streams of a flow count together; nothing where no column asks for the numbers of rows.
pub struct RowCounts {
    is_wanted: bool,
    /// Slices with others to load behind them in their file.
    slices: Vec<SliceSpec>,
    next: AtomicUsize,
    /// Bytes of the files that were read to count them.
    bytes: AtomicU64,
    /// Slices whose lines are known, from the ledger or counted.
    known: Mutex<Vec<SliceReport>>,
    /// How many that are in the end.
    goal: usize,
    one_more: Condvar,
    /// Lines of its file before each slice.
    lines_before: OnceLock<HashMap<u32, u64>>,
}

impl RowCounts {
    /// What there is to count for a flow.
    pub fn new(spec: &FlowSpec) -> Self {
        let layouts = spec.layouts();
        let mut made = layouts.iter().flat_map(|(_, layout)| &layout.made);
        let asks = made.any(|column| column.from == MadeFrom::RowNumber);
        // A flow that looks for places drops the rows.
        let is_wanted = asks && !matches!(spec.sink, SinkSpec::Locate { .. });
        let mut files_behind = HashSet::new();
        let to_load: Vec<&SliceSpec> = to_load(spec).filter(|_| is_wanted).collect();
        let has_more_behind = |slice: &&&SliceSpec| !files_behind.insert(slice.file);
        let known: Vec<SliceReport> = spec.source.slices.iter().filter_map(|slice| known_lines(spec, slice)).collect();
        let known_numbers: HashSet<u32> = known.iter().map(|slice| slice.number).collect();
        let is_unknown = |slice: &&&SliceSpec| !known_numbers.contains(&slice.number);
        let slices: Vec<SliceSpec> =
            to_load.iter().rev().filter(has_more_behind).filter(is_unknown).map(|slice| (*slice).clone()).collect();
        RowCounts {
            is_wanted,
            goal: known.len() + slices.len(),
            slices,
            next: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            known: Mutex::new(known),
            one_more: Condvar::new(),
            lines_before: OnceLock::new(),
        }
    }

    /// Counts until everything is counted, by this stream or another. False when the flow was stopped.
    ///
    /// # Errors
    /// Those of reading the source.
    pub fn count(&self, spec: &FlowSpec, outcome: &Outcome) -> Result<bool, CoreError> {
        if !self.is_wanted {
            return Ok(true);
        }
        while let Some(slice) = self.slices.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let goes_on = |bytes| {
                self.bytes.fetch_add(bytes, Ordering::Relaxed);
                !outcome.stopped()
            };
            let lines = count_lines(spec, slice, &goes_on)?;
            lock(&self.known).push(SliceReport { lines, ..SliceReport::new(slice) });
            self.one_more.notify_all();
        }
        let mut known = lock(&self.known);
        while known.len() < self.goal && !outcome.stopped() {
            known = self.one_more.wait_timeout(known, STEP).unwrap_or_else(PoisonError::into_inner).0;
        }
        if outcome.stopped() {
            return Ok(false);
        }
        if self.lines_before.get().is_none() {
            let wanted: Vec<u32> = to_load(spec).map(|slice| slice.number).collect();
            let lines = first_lines(spec, &known, &wanted)?;
            self.lines_before.get_or_init(|| lines);
        }
        Ok(true)
    }

    /// Bytes of the files that were read so far to count rows.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Lines of its file before a slice.
    pub fn lines_before(&self, slice: u32) -> u64 {
        self.lines_before.get().and_then(|lines| lines.get(&slice).copied()).unwrap_or_default()
    }

    /// Whether the parser has found as many lines in every slice as were counted.
    ///
    /// # Errors
    /// `Internal` when it has not: numbers of rows would be wrong.
    pub fn check(&self, ended: &[SliceReport]) -> Result<(), CoreError> {
        let counted: HashMap<u32, u64> = lock(&self.known).iter().map(|slice| (slice.number, slice.lines)).collect();
        let mut both = ended.iter().filter_map(|slice| Some((slice, *counted.get(&slice.number)?)));
        match both.find(|(slice, counted)| self.is_wanted && slice.lines != *counted) {
            None => Ok(()),
            Some((slice, counted)) => {
                let what = format!("slice {} has other lines than were counted before it was parsed", slice.number);
                Err(CoreError::new(ErrorKind::Internal, what).found(format!("{} and {counted}", slice.lines)))
            }
        }
    }
}

/// Slices that a destination lacks.
fn to_load(spec: &FlowSpec) -> impl Iterator<Item = &SliceSpec> {
    spec.source.slices.iter().filter(|slice| !spec.is_slice_committed(slice.number))
}

/// A slice whose lines the account of a destination tells. That of joined rows does not: they are no lines.
fn known_lines(spec: &FlowSpec, slice: &SliceSpec) -> Option<SliceReport> {
    let tells = |number: &usize| spec.join.is_none() || spec.source_of_destination(*number).is_some();
    let known = |number: usize| spec.committed_in(number)?.get(&slice.number);
    (0..spec.destinations()).filter(tells).find_map(known).map(|known| SliceReport::known(slice, known))
}
