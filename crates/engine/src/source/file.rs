//! Regular files, as they were when the plan was made.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use headrace_types::{CoreError, ErrorKind, Location};

use super::ByteSource;
use crate::spec::FileSpec;

/// Opens a regular file and looks at it.
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
        .hint("Run again once the file is complete.")
}

/// Last modification, nanoseconds since 1970.
pub fn modified_ns(metadata: &std::fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// A range of a file.
pub struct FileRange {
    file: File,
    planned: FileSpec,
    begin_byte: u64,
    at_byte: u64,
    end_byte: u64,
}

impl FileRange {
    /// # Errors
    /// Those of opening; `FileChanged`.
    pub fn open(planned: &FileSpec, begin_byte: u64, end_byte: u64) -> Result<Self, CoreError> {
        let (file, metadata) = open_file(&planned.path)?;
        check_unchanged(planned, &metadata)?;
        let length = end_byte.saturating_sub(begin_byte);
        // Advice only; a refusal changes nothing but speed.
        // SAFETY: a system call on a descriptor we own; no memory is involved.
        unsafe {
            libc::posix_fadvise(
                file.as_raw_fd(),
                begin_byte as libc::off_t,
                length as libc::off_t,
                libc::POSIX_FADV_SEQUENTIAL,
            )
        };
        Ok(FileRange { file, planned: planned.clone(), begin_byte, at_byte: begin_byte, end_byte })
    }
}

impl ByteSource for FileRange {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, CoreError> {
        let wanted = into.len().min(usize::try_from(self.end_byte - self.at_byte).unwrap_or(usize::MAX));
        if wanted == 0 {
            return Ok(0);
        }
        let location = || Location { file: self.planned.path.clone(), byte: Some(self.at_byte), ..Location::default() };
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

    fn taken_bytes(&self) -> u64 {
        self.at_byte - self.begin_byte
    }
}
