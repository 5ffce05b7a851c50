//! The folder of reject files.
//!
//! It is opened once, when the flow is made: whoever takes the run over renames it, and what a process that comes back writes
//! late does not stand beside the files of its successor.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use headrace_types::{CoreError, ErrorKind};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use crate::spec::{KeepRejects, RejectSpec};

/// The folder, and how its files are called.
pub struct Folder {
    path: PathBuf,
    file_stem: String,
    opened: io::Result<OwnedFd>,
}

impl Folder {
    /// Opens the folder, if anything is to be written there.
    pub fn new(spec: &RejectSpec) -> Self {
        let opened = match spec.keep {
            KeepRejects::Files => open_folder(&spec.folder),
            KeepRejects::Examples => Err(io::ErrorKind::Unsupported.into()),
        };
        Folder { path: PathBuf::from(&spec.folder), file_stem: spec.file_stem.clone(), opened }
    }

    /// A file of the flow.
    pub fn path(&self, ending: &str) -> PathBuf {
        self.path.join(format!("{}.{ending}", self.file_stem))
    }

    /// A file of a slice, hidden.
    pub fn slice_path(&self, slice: u32, ending: &str) -> PathBuf {
        self.path.join(format!(".{}.slice-{slice:06}.{ending}", self.file_stem))
    }

    /// A new file, also where there is one: that may be open in a process that is not as dead as it seems.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        let _ = self.remove(path);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        // Rows are nobody else's business.
        Ok(openat(self.opened()?, name(path), flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// A file for reading.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        Ok(openat(self.opened()?, name(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// Removes a file.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(unlinkat(self.opened()?, name(path), AtFlags::empty())?)
    }

    /// Brings the names of its files to the disk.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.opened()?)?)
    }

    fn opened(&self) -> io::Result<&OwnedFd> {
        self.opened.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }
}

/// The error of a file that cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> CoreError {
    CoreError::new(ErrorKind::Output, "cannot write rejects")
        .at_file(path.to_string_lossy())
        .found(error.to_string())
        .hint("Free space, or choose another folder with `--runs-dir`.")
}

fn open_folder(path: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

/// The last part of a path in the folder.
fn name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}
