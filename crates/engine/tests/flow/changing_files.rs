//! Files that are not what they were when the plan was made.

use std::fs::{File, FileTimes, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use headrace_engine::report::Status;
use headrace_types::ErrorKind;

use crate::support::{Job, core_error, join, rows, values};

/// A way to change a file, and what the error says was found.
type Change = (&'static str, fn(&Path), &'static str);

const CHANGES: [Change; 6] = [
    ("shrinks", |path| open(path).set_len(100).unwrap(), "100 bytes instead of"),
    ("is emptied", |path| open(path).set_len(0).unwrap(), "0 bytes instead of"),
    (
        "grows",
        |path| OpenOptions::new().append(true).open(path).unwrap().write_all(b"9|z|1.00|\n").unwrap(),
        "bytes instead of",
    ),
    ("is replaced by its copy", replace_by_copy, "another file"),
    ("is touched", touch, "a later modification time"),
    ("vanishes", |path| std::fs::remove_file(path).unwrap(), "No such file"),
];

fn open(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).unwrap()
}

fn replace_by_copy(path: &Path) {
    let other = path.with_extension("new");
    std::fs::copy(path, &other).unwrap();
    std::fs::rename(&other, path).unwrap();
}

fn touch(path: &Path) {
    let later = SystemTime::now() + Duration::from_secs(10);
    open(path).set_times(FileTimes::new().set_modified(later)).unwrap();
}

#[test]
fn between_plan_and_start() {
    for (how, change, found) in CHANGES {
        for null_sink in [true, false] {
            let mut job = Job::of_files(&[rows(0, 300).as_bytes(), rows(300, 400).as_bytes()]);
            job.null_sink = null_sink;
            let flow = job.flow();
            let reader = flow.take_reader();
            change(job.file(0));
            flow.start().unwrap();
            if let Some(mut reader) = reader {
                let error = reader.find_map(Result::err).expect("the reader ended well");
                assert!(matches!(core_error(error).kind, ErrorKind::FileChanged | ErrorKind::Source));
            }
            let report = join(&flow);
            let error = report.error.unwrap();
            assert_eq!(report.status, Status::Failed, "{how}");
            let kind = if how == "vanishes" { ErrorKind::Source } else { ErrorKind::FileChanged };
            assert_eq!(error.kind, kind, "{how}");
            assert_eq!(error.at.as_ref().unwrap().file, job.file(0).to_str().unwrap());
            assert!(error.found.as_ref().unwrap().contains(found), "{how}: {error}");
        }
    }
}

#[test]
fn while_it_is_read() {
    for (how, change, found) in CHANGES {
        for slice_bytes in [1 << 30, 20_000] {
            let mut job = Job::of(rows(0, 10_000)).arrow();
            (job.streams, job.memory.blocks, job.slice_bytes) = (2, 3, slice_bytes);
            let flow = job.flow();
            let mut reader = flow.take_reader().unwrap();
            flow.start().unwrap();
            let first = reader.next().unwrap().unwrap();
            assert!(!values(&first).is_empty());
            drop(first);
            change(job.file(0)); // the streams wait: three blocks of a hundred are full
            assert!(flow.snapshot().bytes_read < 100_000);
            let error = core_error(reader.find_map(Result::err).expect("the reader ended well"));
            let report = join(&flow);
            assert_eq!(report.status, Status::Failed, "{how}");
            assert_eq!(report.error.as_ref().unwrap().kind, error.kind);
            // A slice that is opened after its file vanished is a source that cannot be read.
            let vanished = how == "vanishes" && slice_bytes == 20_000;
            assert_eq!(error.kind, if vanished { ErrorKind::Source } else { ErrorKind::FileChanged }, "{how}");
            assert_eq!(error.at.as_ref().unwrap().file, job.file(0).to_str().unwrap());
            assert!(error.found.as_ref().unwrap().contains(found), "{how}: {error}");
            assert!(error.hint.is_some());
        }
    }
}
