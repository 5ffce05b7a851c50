//! One file, written by several threads.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headrace_generate::{TpchChunk, TpchSplit, TpchText};
use headrace_types::{CoreError, ErrorKind};

use super::folder::{output_error, temporary_name};
use super::{GeneratedFile, Shared, lock};

/// Bytes of a part, about: enough for few system calls, few enough to be written from the cache.
const PART_BYTES: u64 = 2 * 1024 * 1024;
/// Bytes generated before they are written. A part fits, unless its chunk cannot be cut.
const BUFFER_BYTES: usize = 4 * 1024 * 1024;
/// How soon a thread that waits for its turn sees that the generation has ended.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// A file whose parts are generated in any order and placed one after the other.
pub(super) struct OutputFile {
    chunk: TpchChunk,
    split: TpchSplit,
    path: PathBuf,
    temporary: PathBuf,
    turn: Mutex<Turn>,
    turn_over: Condvar,
}

/// Where the next part goes.
#[derive(Default)]
struct Turn {
    /// The part whose beginning is known: all parts before it have their place.
    part: u64,
    /// Bytes of the parts before it.
    bytes: u64,
    /// Rows of the parts before it.
    rows: u64,
    /// Parts written completely.
    parts_written: u64,
    /// The temporary file: locked, so that nobody sweeps it as abandoned.
    file: Option<Arc<File>>,
}

impl OutputFile {
    pub(super) fn new(chunk: TpchChunk, folder: &Path) -> Self {
        let name = chunk.file_name();
        OutputFile {
            split: chunk.split(chunk.estimated_bytes().div_ceil(PART_BYTES)),
            temporary: folder.join(temporary_name(&name, std::process::id())),
            path: folder.join(name),
            chunk,
            turn: Mutex::default(),
            turn_over: Condvar::new(),
        }
    }

    pub(super) fn chunk(&self) -> &TpchChunk {
        &self.chunk
    }

    pub(super) fn parts(&self) -> u64 {
        self.split.len()
    }

    /// Generates a part and writes it. Returns the file when this was the last missing part;
    /// nothing when it was not, or when the generation has to stop.
    pub(super) fn write_part(
        &self,
        number: u64,
        buffer: &mut Vec<u8>,
        shared: &Shared,
    ) -> Result<Option<GeneratedFile>, CoreError> {
        let Some(part) = self.split.part(number) else { return Ok(None) };
        let mut text = TpchText::of_part(&part);
        buffer.clear();
        let mut filled = text.fill(buffer, BUFFER_BYTES);
        let Some(mut turn) = self.wait_for_turn(number, shared) else { return Ok(None) };
        let file = match &turn.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(turn.file.insert(Arc::new(self.create()?))),
        };
        let mut offset = turn.bytes;
        // While the part goes on, the turn stays with it; its last buffer says where the next begins.
        while !filled.ended {
            drop(turn);
            self.write_at(&file, buffer, offset)?;
            shared.count_written(filled.bytes as u64, filled.rows);
            offset += filled.bytes as u64;
            if shared.must_stop() {
                return Ok(None);
            }
            buffer.clear();
            filled = text.fill(buffer, BUFFER_BYTES);
            turn = lock(&self.turn);
        }
        turn.bytes = offset + filled.bytes as u64;
        turn.rows += text.rows_produced();
        turn.part += 1;
        drop(turn);
        self.turn_over.notify_all();
        self.write_at(&file, buffer, offset)?;
        shared.count_written(filled.bytes as u64, filled.rows);
        drop(file);
        self.part_written()
    }

    /// Waits until all parts before `number` have their place; `None` when the generation stops.
    fn wait_for_turn(&self, number: u64, shared: &Shared) -> Option<MutexGuard<'_, Turn>> {
        let mut turn = lock(&self.turn);
        while turn.part != number {
            if shared.must_stop() {
                return None;
            }
            turn = self.turn_over.wait_timeout(turn, STOP_CHECK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(turn)
    }

    fn create(&self) -> Result<File, CoreError> {
        let file =
            File::create_new(&self.temporary).map_err(|error| output_error("create", &self.temporary, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let what = format!("cannot write {}", self.temporary.display());
                Err(CoreError::new(ErrorKind::Output, what).found("another process has locked it"))
            }
            // A file system without locks: then nobody sweeps here either.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
        }
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> Result<(), CoreError> {
        file.write_all_at(bytes, offset).map_err(|error| output_error("write", &self.path, &error))
    }

    /// Counts a written part; with the last one the file gets its name.
    fn part_written(&self) -> Result<Option<GeneratedFile>, CoreError> {
        let mut turn = lock(&self.turn);
        turn.parts_written += 1;
        if turn.parts_written < self.split.len() {
            return Ok(None);
        }
        fs::rename(&self.temporary, &self.path).map_err(|error| output_error("replace", &self.path, &error))?;
        turn.file = None;
        Ok(Some(GeneratedFile {
            path: self.path.clone(),
            table: self.chunk.table().name(),
            chunk: self.chunk.chunk(),
            rows: turn.rows,
            bytes: turn.bytes,
        }))
    }

    /// Removes the temporary file, if this generation has made one and not renamed it.
    pub(super) fn discard(&self) {
        if lock(&self.turn).file.take().is_some() {
            // What cannot be removed now is swept by the next generation.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
