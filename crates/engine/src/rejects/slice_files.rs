//! The reject files of one slice, and their merging.
//!
//! What only the end can tell, row numbers of the file and numbers of the rejects, stands at the front of a line. So a slice's file
//! holds the tails of lines, ready, each behind three numbers: line of the slice, place in its `.bad`, length of the tail. A file that
//! was cut off is known by these lengths.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use headrace_types::CoreError;

use super::folder::{Folder, cannot_write};

/// Ending of the file of tails, and of that of original bytes.
pub const TAILS: &str = "tails";
/// The same.
pub const BAD: &str = "bad";
/// Memory of a file that is written or read.
const BUFFER_BYTES: usize = 1 << 16;
/// Longest tail: values are cut, names are not.
const MOST_TAIL_BYTES: u64 = 1 << 28;

/// The files of a slice while it is parsed.
pub struct SliceFiles {
    tails: BufWriter<File>,
    bad: BufWriter<File>,
    bad_bytes: u64,
}

/// A line that is not complete.
pub struct Unfinished {
    /// Line of the slice, from 0.
    pub line: u64,
    /// First byte of the row in the slice's `.bad`.
    pub bad_byte: u64,
}

impl SliceFiles {
    /// Creates both.
    pub fn create(folder: &Folder, slice: u32) -> Result<Self, CoreError> {
        let create = |ending: &str| {
            let path = folder.slice_path(slice, ending);
            let file = folder.create(&path).map_err(|error| cannot_write(&path, &error))?;
            Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
        };
        Ok(SliceFiles { tails: create(TAILS)?, bad: create(BAD)?, bad_bytes: 0 })
    }

    /// Bytes of the `.bad` file so far.
    pub fn bad_bytes(&self) -> u64 {
        self.bad_bytes
    }

    /// Appends original bytes.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bad.write_all(bytes)?;
        self.bad_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Appends the line of a reject whose bytes are there.
    pub fn append_tail(&mut self, unfinished: Unfinished, tail: &[u8]) -> io::Result<()> {
        for number in [unfinished.line, unfinished.bad_byte, tail.len() as u64] {
            self.tails.write_all(&number.to_le_bytes())?;
        }
        self.tails.write_all(tail)
    }

    /// Lets the buffers reach the files.
    pub fn flush(&mut self) -> io::Result<()> {
        self.tails.flush()?;
        self.bad.flush()
    }
}

/// The files of the flow while those of the slices are merged.
pub struct MergedFiles {
    rows: BufWriter<File>,
    bad: BufWriter<File>,
    bad_bytes: u64,
    /// Lines so far.
    pub merged: u64,
}

impl MergedFiles {
    /// Creates both.
    pub fn create(folder: &Folder, rows: &Path, bad: &Path) -> io::Result<Self> {
        let create = |path| folder.create(path).map(|file| BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(MergedFiles { rows: create(rows)?, bad: create(bad)?, bad_bytes: 0, merged: 0 })
    }

    /// Appends the files of a slice, which stands behind so many lines of its file.
    pub fn take(&mut self, folder: &Folder, slice: u32, lines_before: u64) -> io::Result<()> {
        let tails = folder.open(&folder.slice_path(slice, TAILS))?;
        let mut tails = BufReader::with_capacity(BUFFER_BYTES, tails);
        let mut tail = Vec::new();
        while let Some(Unfinished { line, bad_byte }) = read_tail(&mut tails, &mut tail)? {
            self.merged += 1;
            write_front(&mut self.rows, self.merged, lines_before + line + 1, self.bad_bytes + bad_byte)?;
            self.rows.write_all(&tail)?;
        }
        let mut bad = folder.open(&folder.slice_path(slice, BAD))?;
        self.bad_bytes += io::copy(&mut bad, &mut self.bad)?;
        Ok(())
    }

    /// Brings all of it to the disk.
    pub fn finish(self) -> io::Result<()> {
        for file in [self.rows, self.bad] {
            // The rows that are loaded beside these are about to be committed.
            file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        }
        Ok(())
    }
}

/// What a line begins with.
pub fn write_front(line: &mut impl Write, number: u64, row: u64, bad_byte: u64) -> io::Result<()> {
    write!(line, "{{\"number\":{number},\"row\":{row},\"bad_byte\":{bad_byte},")
}

/// The next tail; none at the end, and where the file was cut off, which the count of lines tells.
fn read_tail(tails: &mut impl Read, tail: &mut Vec<u8>) -> io::Result<Option<Unfinished>> {
    let mut numbers = [0; 24];
    if !read_whole(tails, &mut numbers)? {
        return Ok(None);
    }
    let number = |index: usize| numbers[8 * index..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (line, bad_byte, length) = (number(0), number(1), number(2));
    if length > MOST_TAIL_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    tail.resize(length as usize, 0);
    Ok(read_whole(tails, tail)?.then_some(Unfinished { line, bad_byte }))
}

/// False when there is less.
fn read_whole(from: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(into) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}
