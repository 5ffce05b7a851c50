//! Rejects of a flow: counted, written beside each other per slice while the flow runs, merged in file order at its end.
//!
//! `<stem>.jsonl` holds one JSON object per reject (its number, file, row, byte, column, value, rule, code, message), `<stem>.bad` the
//! original bytes of the rows, one below the other.

mod folder;
mod layouts;
mod limits;
mod line;
mod slice_files;
mod tally;
mod wording;

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use headrace_parse::Reject;
use headrace_types::{CoreError, ErrorKind, Layout, Location, Rule};

use crate::outcome::lock;
use crate::report::{LocatedReject, RejectKind, RejectReport, SliceReport};
use crate::spec::{FlowSpec, KeepRejects, RejectSpec};
pub use folder::Folder;
use folder::cannot_write;
use layouts::Layouts;
use limits::{Broken, Limits};
use line::{Lines, SliceLines};
use slice_files::{BAD, MergedFiles, SliceFiles, TAILS, Unfinished};
use tally::{Example, Tally};

pub use wording::{shown, text_of};

/// Rejects written after a limit was passed.
const WRITTEN_BEYOND_LIMIT: u64 = 1000;
/// Bytes kept of a row that is longer than any buffer, after a limit was passed.
const KEPT_BEYOND_LIMIT_BYTES: u64 = 1 << 20;

/// Longest row end: 16 characters.
const MOST_ROW_END_BYTES: usize = 64;

/// All rejects of a flow.
pub struct RejectStore {
    spec: RejectSpec,
    folder: Folder,
    layouts: Layouts,
    lines: Lines,
    limits: Limits,
    /// Those that were written to files.
    written: AtomicU64,
    /// Those that came when the flow had failed for them.
    beyond: AtomicU64,
    is_failed: std::sync::atomic::AtomicBool,
    /// Rows of which not all was kept.
    cut: AtomicU64,
    /// By the number of the rule.
    by_rule: [AtomicU64; Rule::ALL.len()],
    /// Of the slices that ended.
    tally: Mutex<Tally>,
    /// Those of them that have rejects.
    slices: Mutex<Vec<Ended>>,
}

/// Where a reject stands, and the destinations that get rows of its slice, by number.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub slice: u32,
    pub file: usize,
    pub takers: &'a [usize],
}

/// A slice that ended, with its rejects.
#[derive(Clone, Copy)]
struct Ended {
    slice: u32,
    /// Rejects that have a number: all of them, unless the flow has failed for them.
    numbered: u64,
    bad_bytes: u64,
}

/// The rejects of one slice.
#[derive(Default)]
pub struct SliceRejects {
    tally: Tally,
    /// Those in its files; those in the tally, if there are no files.
    numbered: u64,
    lines: SliceLines,
    files: Option<SliceFiles>,
}

/// A row that is longer than any buffer: its front stands in the `.bad` file already.
#[derive(Debug, Default)]
pub struct LongRow {
    /// In the source.
    pub bytes: u64,
    /// Of them, in `.bad`.
    pub kept: u64,
    /// The last of those.
    last: Vec<u8>,
}

impl LongRow {
    fn keep(&mut self, bytes: &[u8]) {
        self.kept += bytes.len() as u64;
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(MOST_ROW_END_BYTES)..]);
        self.last.drain(..self.last.len().saturating_sub(MOST_ROW_END_BYTES));
    }
}

impl RejectStore {
    /// A store without rejects.
    pub fn new(spec: &FlowSpec) -> Self {
        let paths = || spec.source.files.iter().map(|file| file.path.clone()).collect();
        let layouts = Layouts::of_flow(spec);
        let names = if spec.rejects.names.is_empty() { paths() } else { spec.rejects.names.clone() };
        let others = spec.others.iter().map(|own| own.name.clone());
        let told = std::iter::once(spec.destination.clone()).chain(others);
        let told = if spec.rejects.tell_destinations { told.collect() } else { Vec::new() };
        RejectStore {
            folder: Folder::new(&spec.rejects),
            lines: Lines::new(layouts.clone(), &names, told, spec.memory.max_row_bytes),
            limits: Limits::new(spec),
            spec: spec.rejects.clone(),
            layouts,
            written: AtomicU64::new(0),
            beyond: AtomicU64::new(0),
            is_failed: false.into(),
            cut: AtomicU64::new(0),
            by_rule: Default::default(),
            tally: Mutex::default(),
            slices: Mutex::default(),
        }
    }

    fn writes(&self) -> bool {
        self.spec.keep == KeepRejects::Files
    }

    /// Takes a reject of a slice; true when the flow has to fail for it. `long`: if [`RejectStore::keep_part`] was called for it.
    pub fn add(
        &self,
        Place { slice, file, takers }: Place<'_>,
        reject: &Reject,
        long: Option<&LongRow>,
        open: &mut Option<SliceRejects>,
    ) -> Result<bool, CoreError> {
        let is_fatal = self.writes() && reject.fatal.is_some();
        let fails = self.limits.add(file) || is_fatal;
        let is_beyond = self.is_failed.fetch_or(fails, Ordering::Relaxed);
        self.by_rule[reject.rule as usize].fetch_add(1, Ordering::Relaxed);
        let SliceRejects { tally, numbered, lines, files } = open.get_or_insert_default();
        let kind = (self.layouts.number(file), reject.column, reject.rule);
        let is_first_fatal = is_fatal && tally.first_fatal.is_none();
        let is_example = tally.wants(kind);
        let is_first_of_file = self.limits.are_per_file() && tally.first_of_file.is_none();
        // A flow that has failed already writes no more than what tells why; all that is shown belongs to that.
        let is_written = self.writes()
            && (!is_beyond
                || long.is_some_and(|long| long.kept > 0)
                || (is_first_fatal || is_example || is_first_of_file)
                || self.beyond.fetch_add(1, Ordering::Relaxed) < WRITTEN_BEYOND_LIMIT);
        let bad_bytes = files.as_ref().map_or(0, SliceFiles::bad_bytes);
        let bad_byte = bad_bytes - long.map_or(0, |long| long.kept);
        let example = |tail: &[u8], before| {
            self.lines.located(tail, reject.line, bad_byte).map(|reject| Example { slice, before, reject })
        };
        if let Some(bad) = reject.fatal.as_deref().filter(|_| is_first_fatal) {
            let (value, note) = (bad.value.clone(), bad.note.clone());
            let (column, rule, byte) = (Some(bad.column), bad.rule, bad.byte);
            let fatal = Reject { column, rule, byte, value, note, ..reject.clone() };
            tally.first_fatal = example(self.lines.tail(lines, file, takers, &fatal, long), *numbered);
        }
        let tail: &[u8] = match is_written || is_example || is_first_of_file {
            true => self.lines.tail(lines, file, takers, reject, long),
            false => &[],
        };
        if is_first_of_file {
            tally.first_of_file = example(tail, *numbered).map(|example| (file, example));
        }
        tally.add(kind, is_example.then(|| example(tail, *numbered)).flatten());
        if is_written {
            let written = files_of(files, &self.folder, slice)?.write(reject, long, bad_byte, tail);
            written.map_err(|error| cannot_write(&self.folder.slice_path(slice, TAILS), &error))?;
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        *numbered += u64::from(is_written || !self.writes());
        if long.is_some_and(|long| long.kept < long.bytes) && is_written {
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
        Ok(fails)
    }

    /// Keeps a part of a row that is longer than any buffer, of which `row` says what was kept before. [`RejectStore::add`] has to
    /// follow.
    pub fn keep_part(
        &self,
        slice: u32,
        part: &[u8],
        row: &mut LongRow,
        open: &mut Option<SliceRejects>,
    ) -> Result<(), CoreError> {
        row.bytes += part.len() as u64;
        if !self.writes() {
            return Ok(());
        }
        let beyond = if self.is_failed.load(Ordering::Relaxed) { KEPT_BEYOND_LIMIT_BYTES } else { u64::MAX };
        let room = self.spec.longest_bytes.min(beyond).saturating_sub(row.kept);
        let kept = &part[..part.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let files = files_of(&mut open.get_or_insert_default().files, &self.folder, slice)?;
        files.append(kept).map_err(|error| cannot_write(&self.folder.slice_path(slice, BAD), &error))?;
        row.keep(kept);
        Ok(())
    }

    /// Ends the rejects of a slice, however it ended; the buffers of its files reach the disk.
    pub fn end_slice(&self, slice: u32, open: Option<SliceRejects>) -> Result<(), CoreError> {
        let Some(SliceRejects { tally, numbered, files, .. }) = open else { return Ok(()) };
        let bad_bytes = files.as_ref().map_or(0, SliceFiles::bad_bytes);
        lock(&self.slices).push(Ended { slice, numbered, bad_bytes });
        lock(&self.tally).merge(tally);
        let Some(mut files) = files else { return Ok(()) };
        files.flush().map_err(|error| cannot_write(&self.folder.slice_path(slice, TAILS), &error))
    }

    /// Counts the rows of a slice that ended well; true when the flow has to fail for it.
    pub fn count_slice(&self, account: &SliceReport) -> bool {
        self.limits.end_slice(account)
    }

    /// Slices with rejects.
    pub fn slices(&self) -> Vec<u32> {
        lock(&self.slices).iter().map(|ended| ended.slice).collect()
    }

    /// Merges the files of all slices in file order. `first_lines` gives the lines of the file before each of them. What
    /// could not be written is missing from `files` of the report, never from the rest of it; the error says why.
    pub fn merge(&self, first_lines: &Result<HashMap<u32, u64>, CoreError>) -> (RejectReport, Option<CoreError>) {
        let counts =
            std::iter::zip(Rule::ALL, &self.by_rule).map(|(rule, count)| (rule, count.load(Ordering::Relaxed)));
        let by_rule = counts.filter(|(_, count)| *count > 0).map(|(rule, count)| (rule.to_string(), count)).collect();
        let cut = self.cut.load(Ordering::Relaxed);
        let mut report = RejectReport { count: self.limits.count(), by_rule, cut, ..RejectReport::default() };
        let mut slices = lock(&self.slices).clone();
        if slices.is_empty() {
            return (report, None);
        }
        slices.sort_unstable_by_key(|ended| ended.slice); // slices are numbered in file order
        let merged = first_lines.as_ref().map_err(Clone::clone).and_then(|first_lines| {
            self.show(&mut report, &Places::new(&slices, first_lines));
            if self.writes() { self.write_merged(&slices, first_lines) } else { Ok(Vec::new()) }
        });
        match merged {
            Ok(files) => {
                report.files = files;
                (report, None)
            }
            Err(error) => (report, Some(error)),
        }
    }

    /// Fills in the first rejects, of all kinds and of each.
    fn show(&self, report: &mut RejectReport, places: &Places<'_>) {
        let tally = lock(&self.tally);
        let resolved = |examples: &[Example]| examples.iter().map(|example| places.resolved(example)).collect();
        report.first = resolved(tally.first());
        let kinds = tally.kinds().map(|(&(layout, column, rule), kind)| RejectKind {
            column: column.and_then(|index| Some(self.layouts.numbered(layout).columns.get(index)?.name.clone())),
            rule: rule.to_string(),
            code: rule.code().to_owned(),
            count: kind.count,
            first: resolved(&kind.first),
        });
        report.by_column = kinds.collect();
    }

    /// Writes the merged files and removes those of the slices; their paths.
    fn write_merged(&self, slices: &[Ended], first_lines: &HashMap<u32, u64>) -> Result<Vec<String>, CoreError> {
        let folder = &self.folder;
        let (rows, bad) = (folder.path("jsonl"), folder.path(BAD));
        let merge = || -> io::Result<u64> {
            let mut merged = MergedFiles::create(folder, &rows, &bad)?;
            for Ended { slice, .. } in slices {
                merged.take(folder, *slice, first_lines.get(slice).copied().unwrap_or_default())?;
            }
            let count = merged.merged;
            merged.finish()?;
            folder.sync()?;
            Ok(count)
        };
        let merged = merge().map_err(|error| cannot_write(&rows, &error))?;
        let written = self.written.load(Ordering::Relaxed);
        if merged != written {
            let found = format!("{merged} of {written} rejects");
            return Err(CoreError::new(ErrorKind::Output, "rejects were lost")
                .at_file(rows.to_string_lossy())
                .found(found));
        }
        for Ended { slice, .. } in slices {
            for ending in [TAILS, BAD] {
                // A file that stays behind is hidden and harmless; the merged ones are complete.
                let _ = folder.remove(&folder.slice_path(*slice, ending));
            }
        }
        Ok([rows, bad].iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// The error of a flow that fails for its rejects: the first one in file order among those found, of those that are to blame.
    /// `trouble` is what kept the rejects from being written, if anything did.
    pub fn limit_error(
        &self,
        first_lines: &Result<HashMap<u32, u64>, CoreError>,
        trouble: Option<&CoreError>,
    ) -> CoreError {
        let trouble = trouble.map_or(String::new(), |error| format!(" The rejects could not be written: {error}."));
        let tally = lock(&self.tally);
        let fatal = tally.first_fatal.as_ref();
        let broken = self.limits.broken().filter(|_| fatal.is_none());
        let of_file = broken.as_ref().and_then(|broken| tally.first_of(broken.file?));
        let nothing = HashMap::new();
        let first_lines_known = first_lines.as_ref().unwrap_or(&nothing);
        let places = Places::new(&[], first_lines_known);
        let first = fatal.or(of_file).or(tally.first().first()).filter(|_| first_lines.is_ok());
        let said = |broken: Option<&Broken>| match broken {
            Some(Broken { what, limit, .. }) => format!("{what}; the limit is {limit}"),
            None => "too many rows were rejected".to_owned(),
        };
        let Some(first) = first.map(|example| places.resolved(example)) else {
            return CoreError::new(ErrorKind::RejectLimit, said(broken.as_ref()))
                .hint(format!("Mend the run folder first.{trouble}"));
        };
        let at =
            Location { file: first.file.clone(), row: Some(first.row), byte: Some(first.byte), ..Location::default() };
        let rule = Rule::ALL.into_iter().find(|rule| rule.code() == first.code);
        let layout = self.layouts.of(first.file_number.saturating_sub(1));
        let hint = rule.map_or_else(String::new, |rule| wording::hint(layout, rule, &first));
        let found = shown(&first.value);
        let expected = rule.map(|rule| wording::expected(layout, rule, first.column_number));
        let is_first_bad = self.spec.limit == Some(0) && broken.as_ref().is_some_and(|broken| broken.limit == "0");
        if fatal.is_some() || is_first_bad {
            let option = if rule.is_some_and(Rule::is_truncation) { "on_truncation" } else { "on_error" };
            let what = match fatal {
                Some(_) => format!("{}, and the layout says `{option}: fail`", first.message),
                None => first.message.clone(),
            };
            let error =
                CoreError::new(ErrorKind::RejectLimit, what).at(at).found(found).hint(format!("{hint}{trouble}"));
            return expected.into_iter().fold(error, CoreError::expected);
        }
        let hint = match trouble.is_empty() && self.writes() {
            true => format!("{hint} All rejects are in {}.", self.folder.path("jsonl").display()),
            false => format!("{hint}{trouble}"),
        };
        CoreError::new(ErrorKind::RejectLimit, said(broken.as_ref()))
            .at(at)
            .found(format!("first: {}: {found}", first.message))
            .hint(hint)
    }
}

/// The error that a reject is where none is allowed.
pub fn error_of(layout: &Layout, reject: &LocatedReject) -> CoreError {
    let at =
        Location { file: reject.file.clone(), row: Some(reject.row), byte: Some(reject.byte), ..Location::default() };
    let error = CoreError::new(ErrorKind::RejectLimit, &reject.message).at(at).found(shown(&reject.value));
    let Some(rule) = Rule::ALL.into_iter().find(|rule| rule.code() == reject.code) else { return error };
    let expected = wording::expected(layout, rule, reject.column_number);
    error.expected(expected).hint(wording::hint(layout, rule, reject))
}

/// The files of a slice, created when they are needed.
fn files_of<'f>(
    files: &'f mut Option<SliceFiles>,
    folder: &Folder,
    slice: u32,
) -> Result<&'f mut SliceFiles, CoreError> {
    match files {
        Some(files) => Ok(files),
        None => Ok(files.insert(SliceFiles::create(folder, slice)?)),
    }
}

impl SliceFiles {
    /// Writes the original bytes of a reject, unless they are there, and its line.
    fn write(&mut self, reject: &Reject, long: Option<&LongRow>, bad_byte: u64, tail: &[u8]) -> io::Result<()> {
        self.append(&reject.row)?;
        let is_empty = reject.row.is_empty() && long.is_none_or(|long| long.kept == 0);
        let has_end = long.map_or(&reject.row, |long| &long.last).ends_with(&reject.row_end);
        // The last row of a file may lack its row end; the next row must not run into it.
        if !is_empty && !has_end {
            self.append(&reject.row_end)?;
        }
        self.append_tail(Unfinished { line: reject.line, bad_byte }, tail)
    }
}

/// What stands before the rejects of each slice.
struct Places<'a> {
    first_lines: &'a HashMap<u32, u64>,
    /// Bytes of `.bad`, and rejects.
    before: HashMap<u32, (u64, u64)>,
}

impl<'a> Places<'a> {
    /// `slices`: ascending.
    fn new(slices: &[Ended], first_lines: &'a HashMap<u32, u64>) -> Self {
        let before = slices.iter().scan((0, 0), |before, ended| {
            let own = (ended.slice, *before);
            *before = (before.0 + ended.bad_bytes, before.1 + ended.numbered);
            Some(own)
        });
        Places { first_lines, before: before.collect() }
    }

    /// A reject with its number, row and place in `.bad`.
    fn resolved(&self, Example { slice, before, reject }: &Example) -> LocatedReject {
        let (bad_bytes, rejects) = self.before.get(slice).copied().unwrap_or_default();
        LocatedReject {
            number: rejects + before + 1,
            row: reject.row + self.first_lines.get(slice).copied().unwrap_or_default(),
            bad_byte: reject.bad_byte + bad_bytes,
            ..reject.clone()
        }
    }
}
