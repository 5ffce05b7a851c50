//! Where the bytes of a slice come from.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use headrace_generate::{TpchTable, TpchText};
use headrace_types::{CoreError, ErrorKind, Location};

use crate::spec::{FileSpec, SliceSpec, SourceSpec};

/// The bytes of one slice, in order.
pub trait ByteSource {
    /// Fills the front of `into` and says how much; 0 only at the end of the slice.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError>;
}

/// Opens a slice.
pub fn open(source: &SourceSpec, slice: &SliceSpec) -> Result<Box<dyn ByteSource>, CoreError> {
    let file = &source.files[slice.file];
    match &source.generate {
        Some(generate) => {
            let failed = |text: String| CoreError::new(ErrorKind::Specification, text).at_file(&file.path);
            let table: TpchTable = generate.table.parse().map_err(|error| failed(format!("{error}")))?;
            let text = TpchText::new(table, generate.scale, slice.number, generate.chunks);
            Ok(Box::new(Generated(text.map_err(|error| failed(error.to_string()))?)))
        }
        None => Ok(Box::new(FileSlice::open(file, slice)?)),
    }
}

/// Opens a regular file and compares it with the plan.
pub fn open_file(path: &str) -> Result<(File, std::fs::Metadata), CoreError> {
    let refuse = |what: &str, error: std::io::Error| {
        let kind = error.kind();
        let hint = match kind {
            std::io::ErrorKind::NotFound => "Check the path and the pattern of the source.",
            std::io::ErrorKind::PermissionDenied => "Give the user that runs Headrace the right to read it.",
            _ => "Check the disk or mount that holds it.",
        };
        CoreError::new(ErrorKind::Source, what).at_file(path).found(error.to_string()).hint(hint)
    };
    // Looked at before it is opened: opening a named pipe would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(|error| refuse("cannot read a source file", error))?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a folder" } else { "neither a file nor a folder" };
        return Err(CoreError::new(ErrorKind::Source, "a source is not a regular file")
            .at_file(path)
            .found(found)
            .hint("Name files, or a pattern such as `folder/*.tbl`."));
    }
    let file = File::open(path).map_err(|error| refuse("cannot read a source file", error))?;
    let metadata = file.metadata().map_err(|error| refuse("cannot read a source file", error))?;
    Ok((file, metadata))
}

/// Fails when the file is not what it was when the plan was made.
pub fn check_unchanged(planned: &FileSpec, now: &std::fs::Metadata) -> Result<(), CoreError> {
    let found = if now.ino() != planned.inode {
        "another file under the same name".to_owned()
    } else if now.len() != planned.size_bytes {
        format!("{} bytes instead of {}", now.len(), planned.size_bytes)
    } else if modified_ns(now) != planned.modified_ns {
        "a later modification time".to_owned()
    } else {
        return Ok(());
    };
    Err(changed(planned, found))
}

fn changed(planned: &FileSpec, found: String) -> CoreError {
    CoreError::new(ErrorKind::FileChanged, "a source file changed while it was loaded")
        .at_file(&planned.path)
        .found(found)
        .hint("Nothing was loaded. Run again once the file is complete.")
}

/// Last modification, nanoseconds since 1970.
pub fn modified_ns(metadata: &std::fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

struct FileSlice {
    file: File,
    planned: FileSpec,
    at_byte: u64,
    end_byte: u64,
}

impl FileSlice {
    fn open(planned: &FileSpec, slice: &SliceSpec) -> Result<Self, CoreError> {
        let (file, metadata) = open_file(&planned.path)?;
        check_unchanged(planned, &metadata)?;
        // Advice only; a refusal changes nothing but speed.
        // SAFETY: a system call on a descriptor we own; no memory is involved.
        unsafe {
            libc::posix_fadvise(
                file.as_raw_fd(),
                slice.begin_byte as libc::off_t,
                slice.bytes() as libc::off_t,
                libc::POSIX_FADV_SEQUENTIAL,
            )
        };
        Ok(FileSlice { file, planned: planned.clone(), at_byte: slice.begin_byte, end_byte: slice.end_byte })
    }
}

impl ByteSource for FileSlice {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        let wanted = into.len().min(usize::try_from(self.end_byte - self.at_byte).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let location = || Location { file: self.planned.path.clone(), row: None, byte: Some(self.at_byte) };
        loop {
            match self.file.read_at(&mut into[..wanted], self.at_byte) {
                Ok(0) => {
                    let now = self.file.metadata().map_or(0, |metadata| metadata.len());
                    return Err(changed(&self.planned, format!("{now} bytes instead of {}", self.planned.size_bytes))
                        .at(location()));
                }
                Ok(count) => {
                    self.at_byte += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(CoreError::new(ErrorKind::Source, "cannot read a source file")
                        .at(location())
                        .found(error.to_string())
                        .hint("Check the disk or mount that holds it."));
                }
            }
        }
    }
}

struct Generated(TpchText);

impl ByteSource for Generated {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        self.0.read(into).map_err(|error| CoreError::new(ErrorKind::Internal, format!("generator: {error}")))
    }
}
