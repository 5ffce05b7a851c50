//! The folder of the generated files: what must hold before the first byte.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use headrace_generate::TpchTable;
use headrace_types::{CoreError, ErrorKind};

use super::GenerateSpec;

/// Between the name of a file and the id of the process that writes it.
const TEMPORARY_MARK: &str = ".tmp-";

/// Makes the folder, removes what dead generations left there, and makes sure that no files of
/// another chunking are there and that `bytes_needed` are free.
pub(super) fn prepare(spec: &GenerateSpec, bytes_needed: u64) -> Result<(), CoreError> {
    let folder = &spec.folder;
    if folder.exists() && !folder.is_dir() {
        let what = format!("cannot generate into {}", folder.display());
        return Err(CoreError::new(ErrorKind::Output, what)
            .at_file(folder.display().to_string())
            .found("not a folder")
            .hint("Give the name of a folder; it is made when missing."));
    }
    fs::create_dir_all(folder).map_err(|error| output_error("create the folder", folder, &error))?;
    let names = file_names(folder)?;
    sweep(folder, &names);
    refuse_other_chunks(spec, &names)?;
    let available = available_bytes(folder).map_err(|error| output_error("measure the space of", folder, &error))?;
    if available < bytes_needed {
        let what = format!("not enough disk space to generate into {}", folder.display());
        return Err(CoreError::new(ErrorKind::Output, what)
            .at_file(folder.display().to_string())
            .found(format!("{available} bytes available"))
            .expected(format!("{bytes_needed} bytes needed"))
            .hint("Free some space, or choose a smaller scale, fewer tables or another folder."));
    }
    Ok(())
}

/// The temporary name of a file while a process writes it.
pub(super) fn temporary_name(file_name: &str, process: u32) -> String {
    format!(".{file_name}{TEMPORARY_MARK}{process}")
}

/// The process that a temporary name stands for; `None` for every name that Headrace does not write.
fn process_of_temporary(name: &str) -> Option<u32> {
    let (file_name, process) = name.strip_prefix('.')?.rsplit_once(TEMPORARY_MARK)?;
    TpchTable::of_file_name(file_name)?;
    let number: u32 = process.parse().ok()?;
    (temporary_name(file_name, number) == name).then_some(number)
}

fn file_names(folder: &Path) -> Result<Vec<String>, CoreError> {
    let list = || -> io::Result<Vec<String>> {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    list().map_err(|error| output_error("read the folder", folder, &error))
}

/// Removes temporary files whose process is dead. A file that is locked is being written: by
/// another generation of this process, or by one whose process id means nothing here (another
/// container or machine).
fn sweep(folder: &Path, names: &[String]) {
    for name in names {
        let Some(process) = process_of_temporary(name) else { continue };
        if process != std::process::id() && is_alive(process) {
            continue;
        }
        let path = folder.join(name);
        let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
        if let (true, Ok(file)) = (is_file, File::options().write(true).open(&path))
            && file.try_lock().is_ok()
        {
            // Only waste: a generation that needs the name will say so.
            let _ = fs::remove_file(&path);
        }
    }
}

/// Files of another number of chunks would be loaded together with the new ones.
fn refuse_other_chunks(spec: &GenerateSpec, names: &[String]) -> Result<(), CoreError> {
    for name in names {
        let Some((table, chunk)) = TpchTable::of_file_name(name) else { continue };
        let is_wanted = spec.tables.iter().any(|wanted| TpchTable::from_str(wanted) == Ok(table));
        let several = table.is_chunked() && spec.chunks > 1;
        let belongs = match chunk {
            Some(chunk) => several && chunk <= spec.chunks,
            None => !several,
        };
        if is_wanted && !belongs {
            let last = table.file_name(spec.chunks, spec.chunks);
            let expected = if several { format!("{} to {last}", table.file_name(1, spec.chunks)) } else { last };
            let folder = spec.folder.display();
            let what = format!("cannot generate {table} into {folder}: it holds files of another number of chunks");
            return Err(CoreError::new(ErrorKind::Output, what)
                .at_file(spec.folder.join(name).display().to_string())
                .found(name.as_str())
                .expected(expected)
                .hint("Remove the old files, or generate into another folder: a load would take both."));
        }
    }
    Ok(())
}

/// Bytes that an ordinary user may still write to the file system of `folder`.
fn available_bytes(folder: &Path) -> io::Result<u64> {
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
    let mut space = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends with a zero byte and `space` is large enough; both outlive the call.
    if unsafe { libc::statvfs(path.as_ptr(), space.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded and so has filled the structure.
    let space = unsafe { space.assume_init() };
    // Their types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    Ok((space.f_bavail as u64).saturating_mul(space.f_frsize as u64))
}

/// Whether the process exists; in doubt it does.
fn is_alive(process: u32) -> bool {
    let Ok(process) = libc::pid_t::try_from(process) else { return false };
    if process == 0 {
        return false;
    }
    // SAFETY: signal 0 is not sent, only checked.
    let exists = unsafe { libc::kill(process, 0) } == 0;
    exists || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// An error of the operating system about a path.
pub(super) fn output_error(action: &str, path: &Path, error: &io::Error) -> CoreError {
    let path: PathBuf = path.into();
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Free some space, or choose a smaller scale, fewer tables or another folder."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "Give a folder that you may write to.",
        io::ErrorKind::NotADirectory => "A part of the path is not a folder.",
        io::ErrorKind::IsADirectory => "Remove the folder that has the name of the file.",
        io::ErrorKind::AlreadyExists => "Another generation writes the same file; wait for its end.",
        _ => "Check the folder and its disk.",
    };
    CoreError::new(ErrorKind::Output, format!("cannot {action} {}", path.display()))
        .at_file(path.display().to_string())
        .found(error.to_string())
        .hint(hint)
}
