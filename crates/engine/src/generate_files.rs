//! Writes TPC-H tables as files, in parallel.
//!
//! Every file is cut into parts of a few megabytes that are generated independently: threads take
//! the parts of all files, the largest file first, and write each where the part before it ends.
//! So one file alone is written by all threads, and memory is a few buffers per thread.
//! A file has a temporary name that starts with a dot until it is complete.

mod folder;
mod output;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope};
use std::time::{Duration, Instant};

use headrace_generate::{GenerateError, TpchChunk, TpchTable};
use headrace_types::{CoreError, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::outcome::lock;
use output::OutputFile;

/// More threads than this are a mistake.
const MAXIMUM_THREADS: usize = 1024;

/// What to generate, where to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerateSpec {
    /// Scale factor: 1 is about 1 GB.
    pub scale: f64,
    /// Number of chunks (files) of each table but NATION and REGION, from 1.
    pub chunks: u32,
    /// Only this chunk, from 1; all when absent. NATION and REGION come with chunk 1.
    #[serde(default)]
    pub chunk: Option<u32>,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// Folder of the files; made when missing.
    pub folder: PathBuf,
    /// Number of threads that generate and write, from 1.
    pub threads: usize,
}

/// A complete file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GeneratedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Name of the table.
    pub table: &'static str,
    /// Chunk, from 1.
    pub chunk: u32,
    /// Rows.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

/// How a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GenerateStatus {
    /// All files are complete.
    Ok,
    /// Ended by an error; the files listed are complete.
    Failed,
    /// Cancelled; the files listed are complete.
    Cancelled,
}

/// What a generation has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenerateResult {
    /// How it ended.
    pub status: GenerateStatus,
    /// The first error, when it failed or was cancelled.
    pub error: Option<CoreError>,
    /// The complete files, by table and chunk.
    pub files: Vec<GeneratedFile>,
}

/// Progress, cheap to take at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct GenerateSnapshot {
    /// Bytes written to files, complete or not.
    pub bytes_written: u64,
    /// Bytes of all files together, estimated a little too high.
    pub bytes_estimated: u64,
    /// Rows written.
    pub rows_written: u64,
    /// Complete files.
    pub files_done: u64,
    /// All files.
    pub files_total: u64,
}

/// A generation that runs on its own threads. Dropping it cancels it and waits for its end.
pub struct GenerateJob {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Starts generating. Whatever is wrong, the specification included, is in the result.
pub fn start(spec: GenerateSpec) -> GenerateJob {
    let planned = plan(&spec);
    let (files, error) = match planned {
        Ok(files) => (files, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let shared = Arc::new(Shared::new(files));
    if let Some(error) = error {
        shared.fail(error);
        shared.finish();
        return GenerateJob { shared, thread: None };
    }
    let for_thread = Arc::clone(&shared);
    let spawned = Builder::new().name("generate".to_owned()).spawn(move || for_thread.run(&spec));
    let thread = match spawned {
        Ok(thread) => Some(thread),
        Err(error) => {
            shared.fail(no_thread(&error));
            shared.finish();
            None
        }
    };
    GenerateJob { shared, thread }
}

impl GenerateJob {
    /// Progress so far.
    pub fn snapshot(&self) -> GenerateSnapshot {
        let shared = &self.shared;
        GenerateSnapshot {
            bytes_written: shared.bytes_written.load(Ordering::Relaxed),
            bytes_estimated: shared.bytes_estimated,
            rows_written: shared.rows_written.load(Ordering::Relaxed),
            files_done: shared.files_done.load(Ordering::Relaxed),
            files_total: shared.files.len() as u64,
        }
    }

    /// Asks it to end soon. Complete files stay, the others are removed.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the end, at most `timeout` (for ever when absent); `None` when it still runs.
    pub fn join(&self, timeout: Option<Duration>) -> Option<GenerateResult> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut result = lock(&self.shared.result);
        while result.is_none() {
            result = match deadline {
                None => self.shared.ended.wait(result).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    self.shared.ended.wait_timeout(result, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        result.clone()
    }
}

impl Drop for GenerateJob {
    fn drop(&mut self) {
        self.cancel();
        if let Some(thread) = self.thread.take() {
            // It catches panics itself and reports them in the result.
            let _ = thread.join();
        }
    }
}

/// The files of a specification, largest first.
fn plan(spec: &GenerateSpec) -> Result<Vec<OutputFile>, CoreError> {
    let specification = |error: GenerateError| CoreError::new(ErrorKind::Specification, error.to_string());
    let tables = spec.tables.iter().map(|name| TpchTable::from_str(name)).collect::<Result<BTreeSet<_>, _>>();
    let tables = tables.map_err(specification)?;
    if tables.is_empty() {
        return Err(CoreError::new(ErrorKind::Specification, "no table to generate was given"));
    }
    if !(1..=MAXIMUM_THREADS).contains(&spec.threads) {
        let what = format!("the number of threads is {}, but must be from 1 to {MAXIMUM_THREADS}", spec.threads);
        return Err(CoreError::new(ErrorKind::Specification, what));
    }
    // Checks scale, chunks and the chunk, before they are used to count up to.
    TpchChunk::new(TpchTable::Nation, spec.scale, spec.chunk.unwrap_or(1), spec.chunks).map_err(specification)?;
    let mut chunks = Vec::new();
    for table in tables {
        let all = if table.is_chunked() { 1..=spec.chunks } else { 1..=1 };
        for chunk in all.filter(|chunk| spec.chunk.is_none_or(|only| only == *chunk)) {
            chunks.push(TpchChunk::new(table, spec.scale, chunk, spec.chunks).map_err(specification)?);
        }
    }
    chunks.sort_by_key(|chunk| std::cmp::Reverse(chunk.estimated_bytes()));
    Ok(chunks.into_iter().map(|chunk| OutputFile::new(chunk, &spec.folder)).collect())
}

/// What the threads of one generation share.
struct Shared {
    files: Vec<OutputFile>,
    bytes_estimated: u64,
    /// File and part to be taken next.
    next: Mutex<(usize, u64)>,
    /// Set by a cancellation and by the first error: end at the next buffer.
    stop: AtomicBool,
    cancelled: AtomicBool,
    bytes_written: AtomicU64,
    rows_written: AtomicU64,
    files_done: AtomicU64,
    error: Mutex<Option<CoreError>>,
    done: Mutex<Vec<GeneratedFile>>,
    result: Mutex<Option<GenerateResult>>,
    ended: Condvar,
}

impl Shared {
    fn new(files: Vec<OutputFile>) -> Self {
        Shared {
            bytes_estimated: files.iter().map(|file| file.chunk().estimated_bytes()).sum(),
            files,
            next: Mutex::new((0, 0)),
            stop: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            bytes_written: AtomicU64::new(0),
            rows_written: AtomicU64::new(0),
            files_done: AtomicU64::new(0),
            error: Mutex::new(None),
            done: Mutex::new(Vec::new()),
            result: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// The whole generation, on the thread of the job.
    fn run(&self, spec: &GenerateSpec) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            folder::prepare(spec, self.bytes_estimated)?;
            self.run_threads(spec.threads)
        }));
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail(error),
            Err(panic) => self.fail(panicked(panic.as_ref())),
        }
        // Without effect for the files that are complete.
        self.files.iter().for_each(OutputFile::discard);
        self.finish();
    }

    fn run_threads(&self, threads: usize) -> Result<(), CoreError> {
        let parts: u64 = self.files.iter().map(OutputFile::parts).fold(0, u64::saturating_add);
        let threads = threads.min(usize::try_from(parts).unwrap_or(usize::MAX));
        std::thread::scope(|scope| {
            for number in 1..=threads {
                match self.spawn(scope, number) {
                    Ok(()) => {}
                    // Fewer threads do the same work.
                    Err(_) if number > 1 => break,
                    Err(error) => return Err(no_thread(&error)),
                }
            }
            Ok(())
        })
    }

    fn spawn<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, number: usize) -> std::io::Result<()> {
        Builder::new().name(format!("generate-{number}")).spawn_scoped(scope, || {
            match catch_unwind(AssertUnwindSafe(|| self.write_parts())) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.fail(error),
                Err(panic) => self.fail(panicked(panic.as_ref())),
            }
        })?;
        Ok(())
    }

    /// One thread: takes parts until there are none.
    fn write_parts(&self) -> Result<(), CoreError> {
        let mut buffer = Vec::new();
        while let Some((file, part)) = self.take_part() {
            if let Some(done) = file.write_part(part, &mut buffer, self)? {
                lock(&self.done).push(done);
                self.files_done.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn take_part(&self) -> Option<(&OutputFile, u64)> {
        if self.must_stop() {
            return None;
        }
        let mut next = lock(&self.next);
        let (file_number, part) = *next;
        let file = self.files.get(file_number)?;
        *next = if part + 1 < file.parts() { (file_number, part + 1) } else { (file_number + 1, 0) };
        Some((file, part))
    }

    fn must_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn count_written(&self, bytes: u64, rows: u64) {
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        self.rows_written.fetch_add(rows, Ordering::Relaxed);
    }

    /// Keeps the first error and ends the other threads.
    fn fail(&self, error: CoreError) {
        lock(&self.error).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Makes the result and wakes who waits for it.
    fn finish(&self) {
        let mut files = std::mem::take(&mut *lock(&self.done));
        files.sort_by_key(|file| (TpchTable::from_str(file.table).ok(), file.chunk));
        let error = lock(&self.error).take();
        let complete = files.len() == self.files.len();
        let (status, error) = match error {
            Some(error) => (GenerateStatus::Failed, Some(error)),
            // A cancellation after the last file came too late to matter.
            None if complete => (GenerateStatus::Ok, None),
            None if self.cancelled.load(Ordering::Relaxed) => {
                (GenerateStatus::Cancelled, Some(CoreError::new(ErrorKind::Cancelled, "the generation was cancelled")))
            }
            None => {
                let what = format!("{} of {} files were generated", files.len(), self.files.len());
                (GenerateStatus::Failed, Some(CoreError::new(ErrorKind::Internal, what)))
            }
        };
        *lock(&self.result) = Some(GenerateResult { status, error, files });
        self.ended.notify_all();
    }
}

fn no_thread(error: &std::io::Error) -> CoreError {
    CoreError::new(ErrorKind::Internal, "cannot start a thread to generate").found(error.to_string())
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> CoreError {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    CoreError::new(ErrorKind::Internal, "a thread that generates has panicked")
        .found(text)
        .hint("This is a defect of Headrace; please report it.")
}
