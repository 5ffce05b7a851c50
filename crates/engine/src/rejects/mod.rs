//! Rejects of a flow: counted, written beside each other per slice while the flow runs, merged in file order at its end.
//!
//! `<stem>.jsonl` holds one JSON object per reject (file, row, byte, column, value, rule, code, message), `<stem>.bad` the
//! original bytes of the rows, one below the other. Row numbers are known only when all slices before them are, so the files of a slice hold
//! slice-relative rows under names with a dot until then.
//!
//! The folder is opened once, when the flow is made: whoever takes the run over renames it, and what a process that comes
//! back writes late does not stand beside the files of its successor.

mod tally;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use headrace_parse::Reject;
use headrace_types::{CoreError, ErrorKind, Layout, Location, Rule};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use crate::outcome::lock;
use crate::report::{LocatedReject, RejectKind, RejectReport};
use crate::spec::{FlowSpec, KeepRejects, RejectSpec};
use tally::{Example, SHOWN, Tally};

/// Rejects written after the limit was passed.
const WRITTEN_BEYOND_LIMIT: u64 = 1000;

/// All rejects of a flow.
pub struct RejectStore {
    spec: RejectSpec,
    folder: io::Result<OwnedFd>,
    layout: Layout,
    files: Vec<String>,
    max_row_bytes: usize,
    count: AtomicU64,
    /// Those that were written to files.
    written: AtomicU64,
    /// By the number of the rule.
    by_rule: [AtomicU64; Rule::ALL.len()],
    /// Of the slices that ended.
    tally: Mutex<Tally>,
    /// Those of them that have rejects, and the bytes of their `.bad` files.
    slices: Mutex<Vec<(u32, u64)>>,
}

/// The rejects of one slice.
#[derive(Default)]
pub struct SliceRejects {
    tally: Tally,
    files: Option<SliceFiles>,
}

/// The reject files of one slice.
struct SliceFiles {
    rows: BufWriter<File>,
    bad: BufWriter<File>,
    bad_bytes: u64,
    written: usize,
}

impl RejectStore {
    /// A store without rejects.
    pub fn new(spec: &FlowSpec) -> Self {
        RejectStore {
            spec: spec.rejects.clone(),
            folder: open_folder(&spec.rejects),
            layout: spec.layout.clone(),
            files: spec.source.files.iter().map(|file| file.path.clone()).collect(),
            max_row_bytes: spec.memory.max_row_bytes,
            count: AtomicU64::new(0),
            written: AtomicU64::new(0),
            by_rule: Default::default(),
            tally: Mutex::default(),
            slices: Mutex::default(),
        }
    }

    /// Rejects so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Takes a reject of a slice; true when there are more now than the flow allows.
    pub fn add(
        &self,
        slice: u32,
        file: usize,
        reject: &Reject,
        open: &mut Option<SliceRejects>,
    ) -> Result<bool, CoreError> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.by_rule[reject.rule as usize].fetch_add(1, Ordering::Relaxed);
        let SliceRejects { tally, files } = open.get_or_insert_default();
        let bad_byte = files.as_ref().map_or(0, |files| files.bad_bytes);
        tally.add((reject.column, reject.rule), slice, || self.located(reject, file, bad_byte));
        let limit = self.spec.limit.unwrap_or(u64::MAX);
        // A flow that has failed already writes no more than what tells why; the first rejects of every slice belong to that.
        let is_wanted = count <= limit.saturating_add(WRITTEN_BEYOND_LIMIT) || tally.count() <= SHOWN as u64;
        if is_wanted && self.spec.keep == KeepRejects::Files {
            let files = match files {
                Some(files) => files,
                None => files.insert(self.create_slice(slice)?),
            };
            self.write(slice, file, reject, files)?;
        }
        Ok(count > limit)
    }

    fn write(&self, slice: u32, file: usize, reject: &Reject, files: &mut SliceFiles) -> Result<(), CoreError> {
        let located = self.located(reject, file, files.bad_bytes);
        let failed = |error: io::Error| self.cannot_write(&self.slice_path(slice, "jsonl"), &error);
        serde_json::to_writer(&mut files.rows, &located).map_err(|error| failed(error.into()))?;
        files.rows.write_all(b"\n").map_err(failed)?;
        files.bad.write_all(&reject.row).map_err(failed)?;
        files.bad_bytes += reject.row.len() as u64;
        // The last row of a file may lack its row end; the next row must not run into it.
        if !reject.row.is_empty() && !reject.row.ends_with(&reject.row_end) {
            files.bad.write_all(&reject.row_end).map_err(failed)?;
            files.bad_bytes += reject.row_end.len() as u64;
        }
        files.written += 1;
        self.written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the rejects of a slice, however it ended; the buffers of its files reach the disk.
    pub fn end_slice(&self, slice: u32, open: Option<SliceRejects>) -> Result<(), CoreError> {
        let Some(SliceRejects { tally, files }) = open else { return Ok(()) };
        lock(&self.tally).merge(tally);
        lock(&self.slices).push((slice, files.as_ref().map_or(0, |files| files.bad_bytes)));
        let Some(mut files) = files else { return Ok(()) };
        let flushed = files.rows.flush().and_then(|()| files.bad.flush());
        flushed.map_err(|error| self.cannot_write(&self.slice_path(slice, "jsonl"), &error))
    }

    /// Slices with rejects.
    pub fn slices(&self) -> Vec<u32> {
        lock(&self.slices).iter().map(|(slice, _)| *slice).collect()
    }

    /// Merges the files of all slices in file order. `first_lines` gives the lines of the file before each of them. What
    /// could not be written is missing from `files` of the report, never from the rest of it; the error says why.
    pub fn merge(&self, first_lines: Result<HashMap<u32, u64>, CoreError>) -> (RejectReport, Option<CoreError>) {
        let counts =
            std::iter::zip(Rule::ALL, &self.by_rule).map(|(rule, count)| (rule, count.load(Ordering::Relaxed)));
        let by_rule = counts.filter(|(_, count)| *count > 0).map(|(rule, count)| (rule.to_string(), count)).collect();
        let mut report = RejectReport { count: self.count(), by_rule, ..RejectReport::default() };
        let mut slices = lock(&self.slices).clone();
        if slices.is_empty() {
            return (report, None);
        }
        slices.sort_unstable(); // slices are numbered in file order
        let merged = first_lines.and_then(|first_lines| {
            self.show(&mut report, &slices, &first_lines);
            match self.spec.keep {
                KeepRejects::Files => self.write_merged(&slices, &first_lines),
                KeepRejects::Examples => Ok(Vec::new()),
            }
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
    fn show(&self, report: &mut RejectReport, slices: &[(u32, u64)], first_lines: &HashMap<u32, u64>) {
        let before = slices.iter().scan(0, |before, &(slice, bytes)| {
            *before += bytes;
            Some((slice, *before - bytes))
        });
        let bad_bytes: HashMap<u32, u64> = before.collect();
        let of_slice = |numbers: &HashMap<u32, u64>, slice| numbers.get(&slice).copied().unwrap_or_default();
        let resolved = |examples: &[Example]| {
            let resolved = examples.iter().map(|Example { slice, reject, .. }| LocatedReject {
                row: reject.row + of_slice(first_lines, *slice),
                bad_byte: reject.bad_byte + of_slice(&bad_bytes, *slice),
                ..reject.clone()
            });
            resolved.collect()
        };
        let tally = lock(&self.tally);
        report.first = resolved(tally.first());
        let kinds = tally.kinds().map(|(&(column, rule), kind)| RejectKind {
            column: column.and_then(|index| Some(self.layout.columns.get(index)?.name.clone())),
            rule: rule.to_string(),
            code: rule.code().to_owned(),
            count: kind.count,
            first: resolved(&kind.first),
        });
        report.by_column = kinds.collect();
    }

    /// Reads a slice's rejects with their rows of the file; until `take` says false. Their number.
    fn read_slice(
        &self,
        slice: u32,
        first_lines: &HashMap<u32, u64>,
        mut take: impl FnMut(LocatedReject) -> Result<bool, CoreError>,
    ) -> Result<u64, CoreError> {
        let path = self.slice_path(slice, "jsonl");
        let failed = |error: io::Error| self.cannot_write(&path, &error);
        let base = first_lines.get(&slice).copied().unwrap_or_default();
        let mut count = 0;
        for line in BufReader::new(self.open(&path).map_err(failed)?).lines() {
            // A line that was cut off by a full disk ends the file; `write_merged` finds the difference.
            let Ok(mut reject) = serde_json::from_str::<LocatedReject>(&line.map_err(failed)?) else { break };
            reject.row += base;
            count += 1;
            if !take(reject)? {
                break;
            }
        }
        Ok(count)
    }

    /// Writes the merged files and removes those of the slices; their paths.
    fn write_merged(&self, slices: &[(u32, u64)], first_lines: &HashMap<u32, u64>) -> Result<Vec<String>, CoreError> {
        let (rows_path, bad_path) = (self.path("jsonl"), self.path("bad"));
        let failed = |error: io::Error| self.cannot_write(&rows_path, &error);
        let mut rows = BufWriter::new(self.create(&rows_path).map_err(failed)?);
        let mut bad = BufWriter::new(self.create(&bad_path).map_err(failed)?);
        let (mut bad_bytes, mut merged) = (0, 0);
        for &(slice, _) in slices {
            merged += self.read_slice(slice, first_lines, |mut reject| {
                reject.bad_byte += bad_bytes;
                serde_json::to_writer(&mut rows, &reject).map_err(|error| failed(error.into()))?;
                rows.write_all(b"\n").map_err(failed)?;
                Ok(true)
            })?;
            let mut slice_bad = self.open(&self.slice_path(slice, "bad")).map_err(failed)?;
            bad_bytes += std::io::copy(&mut slice_bad, &mut bad).map_err(failed)?;
        }
        for file in [rows, bad] {
            // The rows that are loaded beside these are about to be committed.
            file.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
        }
        let written = self.written.load(Ordering::Relaxed);
        if merged != written {
            let found = format!("{merged} of {written} rejects");
            return Err(CoreError::new(ErrorKind::Output, "rejects were lost")
                .at_file(rows_path.to_string_lossy())
                .found(found));
        }
        for &(slice, _) in slices {
            for ending in ["jsonl", "bad"] {
                // A file that stays behind is hidden and harmless; the merged ones are complete.
                let _ = self.remove(&self.slice_path(slice, ending));
            }
        }
        Ok([rows_path, bad_path].iter().map(|path| path.to_string_lossy().into_owned()).collect())
    }

    /// The error of a flow with too many rejects: the first one in file order among those found.
    /// `trouble` is what kept the rejects from being written, if anything did.
    pub fn limit_error(&self, report: &RejectReport, trouble: Option<&CoreError>) -> CoreError {
        let trouble = trouble.map_or(String::new(), |error| format!(" The rejects could not be written: {error}."));
        let limit = self.spec.limit.unwrap_or(u64::MAX);
        let Some(first) = report.first.first() else {
            let what = format!("{} rows were rejected; the limit is {limit}", report.count);
            return CoreError::new(ErrorKind::RejectLimit, what).hint(format!("Mend the run folder first.{trouble}"));
        };
        let at = Location { file: first.file.clone(), row: Some(first.row), byte: Some(first.byte) };
        let rule = Rule::ALL.into_iter().find(|rule| rule.code() == first.code);
        let hint = format!("{}{trouble}", rule.map_or("", |rule| self.hint(rule, first.column_number)));
        let found = shown(&first.value);
        if limit == 0 {
            let error = CoreError::new(ErrorKind::RejectLimit, first.message.clone()).at(at).found(found).hint(hint);
            return match rule {
                Some(rule) => error.expected(self.expected(rule, first.column_number)),
                None => error,
            };
        }
        let what = format!("{} rows were rejected; the limit is {limit}", report.count);
        CoreError::new(ErrorKind::RejectLimit, what).at(at).found(format!("first: {}: {found}", first.message)).hint(
            if trouble.is_empty() && self.spec.keep == KeepRejects::Files {
                format!("{hint} All rejects are in {}.", self.path("jsonl").display())
            } else {
                hint
            },
        )
    }

    /// What the format of the column, numbered from 1, demands of a value that breaks the rule, if it says so.
    fn of_format(&self, rule: Rule, column_number: Option<usize>) -> Option<String> {
        let column = self.layout.columns.get(column_number?.wrapping_sub(1))?;
        column.format.as_ref()?.expected(rule)
    }

    fn expected(&self, rule: Rule, column_number: Option<usize>) -> String {
        self.of_format(rule, column_number).unwrap_or_else(|| rule.expected().to_owned())
    }

    fn hint(&self, rule: Rule, column_number: Option<usize>) -> &'static str {
        match self.of_format(rule, column_number) {
            Some(_) => "Correct the `format` of the column, or repair the row.",
            None => rule.hint(),
        }
    }

    fn create_slice(&self, slice: u32) -> Result<SliceFiles, CoreError> {
        let create = |ending: &str| {
            let path = self.slice_path(slice, ending);
            self.create(&path).map(BufWriter::new).map_err(|error| self.cannot_write(&path, &error))
        };
        Ok(SliceFiles { rows: create("jsonl")?, bad: create("bad")?, bad_bytes: 0, written: 0 })
    }

    fn cannot_write(&self, path: &Path, error: &io::Error) -> CoreError {
        CoreError::new(ErrorKind::Output, "cannot write rejects")
            .at_file(path.to_string_lossy())
            .found(error.to_string())
            .hint("Free space, or choose another folder with `--runs-dir`.")
    }

    /// A new file, also where there is one: that may be open in a process that is not as dead as it seems.
    fn create(&self, path: &Path) -> io::Result<File> {
        let _ = self.remove(path);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(openat(self.folder()?, name(path), flags, Mode::from_raw_mode(0o666))?.into())
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        Ok(openat(self.folder()?, name(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(unlinkat(self.folder()?, name(path), AtFlags::empty())?)
    }

    fn folder(&self) -> io::Result<&OwnedFd> {
        self.folder.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    fn path(&self, ending: &str) -> PathBuf {
        PathBuf::from(&self.spec.folder).join(format!("{}.{ending}", self.spec.file_stem))
    }

    fn slice_path(&self, slice: u32, ending: &str) -> PathBuf {
        PathBuf::from(&self.spec.folder).join(format!(".{}.slice-{slice:06}.{ending}", self.spec.file_stem))
    }

    fn located(&self, reject: &Reject, file: usize, bad_byte: u64) -> LocatedReject {
        let column = reject.column.and_then(|index| self.layout.columns.get(index));
        LocatedReject {
            file: self.files[file].clone(),
            row: reject.line + 1,
            byte: reject.byte,
            column: column.map(|column| column.name.clone()),
            column_number: reject.column.map(|index| index + 1),
            column_type: column.map(|column| column.column_type.to_string()),
            value: text_of(&reject.value),
            rule: reject.rule.to_string(),
            code: reject.rule.code().to_owned(),
            message: self.message(reject),
            bad_byte,
            bad_bytes: reject.row.len() as u64,
        }
    }

    fn message(&self, reject: &Reject) -> String {
        let column = reject.column.and_then(|index| Some((index, self.layout.columns.get(index)?)));
        let Some((index, column)) = column else {
            return match (reject.rule, &reject.note) {
                (Rule::OtherRowEnd, _) => "a row ends otherwise than the first row of its file".to_owned(),
                (Rule::RowTooLong, _) => format!("a row is longer than {} bytes", self.max_row_bytes),
                (Rule::UnclosedQualifier, _) => {
                    "a qualifier behind the last column of a row is never closed".to_owned()
                }
                (_, Some(note)) => format!("a row does not fit the layout: {note}"),
                (rule, None) => format!("a row breaks the rule {rule}"),
            };
        };
        let place = format!("column `{}` ({})", column.name, index + 1);
        let kind = column.column_type;
        match reject.rule {
            Rule::NullNotAllowed => format!("no value for {place}, which is not nullable"),
            Rule::OutOfRange => format!("a value for {place} is outside {kind}"),
            Rule::WouldRound => format!("a value for {place} has more digits after the point than {kind} keeps"),
            Rule::TooLong => format!("a value for {place} is longer than {kind}"),
            Rule::InvalidUtf8 => format!("a value for {place} is not UTF-8"),
            Rule::Unmappable => {
                let hole = reject.note.as_deref().unwrap_or("a byte");
                format!("a value for {place} holds {hole}, which is no character of {}", self.layout.encoding)
            }
            Rule::NulByte => format!("a value for {place} has a NUL byte"),
            Rule::TextAfterQualifier => format!("text follows the closing qualifier of a value for {place}"),
            Rule::UnclosedQualifier => format!("the qualifier of a value for {place} is never closed"),
            Rule::Partition => format!("no partition takes the value of {place}"),
            _ => format!("cannot convert a value for {place} to {kind}"),
        }
    }
}

fn open_folder(spec: &RejectSpec) -> io::Result<OwnedFd> {
    if spec.keep == KeepRejects::Examples {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(rustix::fs::open(spec.folder.as_str(), OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The last part of a path in the folder.
fn name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// Bytes as text; what is not UTF-8 as \xNN.
pub fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}"); // writing to a String cannot fail
        }
    }
    text
}

/// A value for a message: quoted, control characters escaped, shortened.
pub fn shown(value: &str) -> String {
    const LONGEST: usize = 120;
    let mut text = String::from("\"");
    for character in value.chars().take(LONGEST) {
        match character {
            character if character.is_control() => text.extend(character.escape_default()),
            character => text.push(character),
        }
    }
    text.push('"');
    if value.chars().count() > LONGEST {
        text.push_str(" ...");
    }
    text
}
