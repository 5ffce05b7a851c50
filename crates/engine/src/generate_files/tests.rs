//! Files are complete or absent, whatever happens.

use std::fs;
use std::path::Path;
use std::time::Duration;

use headrace_generate::{TpchTable, TpchText};
use headrace_types::{CoreError, ErrorKind};

use super::folder::{output_error, temporary_name};
use super::{GenerateResult, GenerateSpec, GenerateStatus, start};

fn spec(folder: &Path, scale: f64, chunks: u32) -> GenerateSpec {
    let tables = TpchTable::ALL.iter().map(|table| table.name().to_owned()).collect();
    GenerateSpec { scale, chunks, chunk: None, tables, folder: folder.to_owned(), threads: 3 }
}

fn run(spec: GenerateSpec) -> GenerateResult {
    start(spec).join(Some(Duration::from_secs(300))).expect("ends in time")
}

fn failure(spec: GenerateSpec) -> CoreError {
    let result = run(spec);
    assert_eq!(result.status, GenerateStatus::Failed);
    result.error.expect("an error")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A process id that was alive and is not any more.
fn dead_process() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

fn assert_complete(result: &GenerateResult, scale: f64, chunks: u32) {
    assert_eq!((result.status, &result.error), (GenerateStatus::Ok, &None));
    for file in &result.files {
        let table: TpchTable = file.table.parse().unwrap();
        let mut expected = Vec::new();
        let filled = TpchText::new(table, scale, file.chunk, chunks).unwrap().fill(&mut expected, 1 << 30);
        assert!(fs::read(&file.path).unwrap() == expected, "{}", file.path.display());
        assert_eq!((file.rows, file.bytes), (filled.rows, expected.len() as u64), "{}", file.path.display());
    }
}

#[test]
fn files_hold_exactly_their_chunks() {
    for (scale, chunks, threads) in [(0.013, 3, 3), (0.05, 1, 8), (0.05, 1, 1), (0.0001, 16, 2)] {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("made/when/missing");
        let job = start(GenerateSpec { threads, ..spec(&inner, scale, chunks) });
        let result = job.join(None).unwrap();
        assert_complete(&result, scale, chunks);
        assert_eq!(result.files.len() as u32, 6 * chunks + 2);
        assert_eq!(names(&inner).len(), result.files.len());
        let snapshot = job.snapshot();
        assert_eq!(snapshot.files_done, snapshot.files_total);
        assert_eq!(snapshot.files_total, result.files.len() as u64);
        assert_eq!(snapshot.bytes_written, result.files.iter().map(|file| file.bytes).sum::<u64>());
        assert_eq!(snapshot.rows_written, result.files.iter().map(|file| file.rows).sum::<u64>());
        assert!(snapshot.bytes_estimated >= snapshot.bytes_written || scale < 0.01);
    }
}

#[test]
fn one_chunk_alone_has_the_small_tables_only_when_it_is_the_first() {
    let folder = tempfile::tempdir().unwrap();
    for chunk in [2, 1] {
        let one = GenerateSpec { chunk: Some(chunk), ..spec(folder.path(), 0.001, 2) };
        assert_complete(&run(one), 0.001, 2);
        assert_eq!(names(folder.path()).len(), if chunk == 2 { 6 } else { 14 });
    }
    assert!(names(folder.path()).contains(&"nation.tbl".to_owned()));
    let nothing = GenerateSpec { chunk: Some(2), tables: vec!["region".to_owned()], ..spec(folder.path(), 0.001, 2) };
    let result = run(nothing);
    assert_eq!((result.status, result.files.len()), (GenerateStatus::Ok, 0));
}

#[test]
fn existing_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let longer = "x".repeat(100_000);
    fs::write(folder.path().join("region.tbl"), longer).unwrap();
    assert_complete(&run(spec(folder.path(), 0.001, 2)), 0.001, 2);
}

#[test]
fn files_of_another_number_of_chunks_are_refused() {
    for (present, chunks, expected) in [
        ("orders.tbl.9", 8, "orders.tbl.1 to orders.tbl.8"),
        ("orders.tbl", 8, "orders.tbl.1 to orders.tbl.8"),
        ("orders.tbl.1", 1, "orders.tbl"),
        ("nation.tbl.1", 8, "nation.tbl"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(present), "1|").unwrap();
        let error = failure(spec(folder.path(), 0.001, chunks));
        assert_eq!((error.kind, error.found.as_deref()), (ErrorKind::Output, Some(present)));
        assert_eq!(error.expected.as_deref(), Some(expected));
        assert_eq!(names(folder.path()), [present]);
        let others = GenerateSpec { tables: vec!["part".to_owned()], ..spec(folder.path(), 0.001, chunks) };
        assert_eq!(run(others).status, GenerateStatus::Ok);
    }
}

#[test]
fn cancelling_leaves_complete_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let job = start(spec(folder.path(), 2.0, 4));
    while job.snapshot().bytes_written < 10_000_000 {
        assert!(job.join(Some(Duration::from_millis(1))).is_none());
    }
    job.cancel();
    let result = job.join(None).unwrap();
    assert_eq!(result.status, GenerateStatus::Cancelled);
    assert_eq!(result.error.unwrap().kind, ErrorKind::Cancelled);
    let mut complete: Vec<_> = result.files.iter().map(|file| file.path.clone()).collect();
    complete.sort();
    let present: Vec<_> = names(folder.path()).iter().map(|name| folder.path().join(name)).collect();
    assert_eq!(present, complete);
}

#[test]
fn dropping_the_job_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let job = start(spec(folder.path(), 5.0, 1));
    while job.snapshot().bytes_written == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(names(folder.path()).iter().all(|name| name.starts_with(".lineitem.tbl.tmp-")));
    drop(job);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn only_temporaries_of_dead_processes_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (dead, own) = (dead_process(), std::process::id());
    let swept =
        [temporary_name("lineitem.tbl.6", dead), temporary_name("nation.tbl", dead), temporary_name("part.tbl", own)];
    let mut kept = vec![
        temporary_name("lineitem.tbl.6", std::os::unix::process::parent_id()),
        temporary_name("lineitem.tbl.06", dead),
        temporary_name("sales.tbl", dead),
        format!(".lineitem.tbl.6.tmp-0{dead}"),
        format!("lineitem.tbl.6.tmp-{dead}"),
        ".lineitem.tbl.6.tmp-".to_owned(),
        temporary_name("orders.tbl.1", dead),
        temporary_name("orders.tbl.2", dead),
    ];
    swept.iter().chain(&kept[..7]).for_each(|name| fs::write(file(name), "1|").unwrap());
    std::os::unix::fs::symlink("elsewhere", file(&kept[7])).unwrap();
    let locked = fs::File::open(file(&kept[6])).unwrap();
    locked.lock().unwrap();
    let region = GenerateSpec { tables: vec!["region".to_owned()], ..spec(folder.path(), 0.001, 1) };
    assert_eq!(run(region).status, GenerateStatus::Ok);
    kept.push("region.tbl".to_owned());
    kept.sort();
    assert_eq!(names(folder.path()), kept);
}

#[test]
fn too_little_space_is_found_before_the_first_byte() {
    let folder = tempfile::tempdir().unwrap();
    let error = failure(spec(folder.path(), 100_000.0, 8));
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(error.what.starts_with("not enough disk space to generate into "), "{}", error.what);
    assert!(error.found.unwrap().ends_with(" bytes available"));
    let needed: u64 = error.expected.unwrap().strip_suffix(" bytes needed").unwrap().parse().unwrap();
    assert!(needed > 100_000_000_000_000 && needed < 200_000_000_000_000, "{needed}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_full_disk_and_a_forbidden_folder_are_told_apart() {
    let full =
        std::os::unix::fs::FileExt::write_all_at(&fs::File::options().write(true).open("/dev/full").unwrap(), b"1|", 0);
    let error = output_error("write", Path::new("/data/orders.tbl"), &full.unwrap_err());
    assert_eq!(error.what, "cannot write /data/orders.tbl");
    assert!(error.hint.unwrap().starts_with("Free some space"));
    let forbidden = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let error = output_error("create", Path::new("/data/orders.tbl"), &forbidden);
    assert_eq!(error.hint.as_deref(), Some("Give a folder that you may write to."));
}

#[test]
fn a_folder_that_cannot_be_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = failure(spec(&file, 0.001, 1));
    assert_eq!((error.kind, error.found.as_deref()), (ErrorKind::Output, Some("not a folder")));
    let error = failure(spec(&file.join("below"), 0.001, 1));
    assert_eq!(error.kind, ErrorKind::Output);
    assert!(error.what.starts_with("cannot create the folder "), "{}", error.what);
    // A folder in the way of a file is met when everything else is written.
    fs::create_dir(folder.path().join("nation.tbl")).unwrap();
    let error = failure(spec(folder.path(), 0.001, 1));
    assert!(error.what.starts_with("cannot replace ") && error.what.ends_with("nation.tbl"), "{}", error.what);
    assert!(names(folder.path()).iter().all(|name| !name.starts_with('.')));
}

#[test]
fn wrong_specifications_say_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let good = || spec(folder.path(), 0.001, 2);
    for (wrong, text) in [
        (GenerateSpec { tables: vec!["line".to_owned()], ..good() }, "no TPC-H table is called \"line\""),
        (GenerateSpec { tables: vec![], ..good() }, "no table to generate was given"),
        (GenerateSpec { threads: 0, ..good() }, "the number of threads is 0"),
        (GenerateSpec { chunk: Some(3), ..good() }, "chunk 3 does not exist"),
        (GenerateSpec { chunks: 0, ..good() }, "the number of chunks is 0"),
        (GenerateSpec { scale: f64::NAN, ..good() }, "scale factor NaN is not a number from"),
    ] {
        let error = failure(wrong);
        assert_eq!(error.kind, ErrorKind::Specification);
        assert!(error.what.starts_with(text), "{}", error.what);
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_panic_is_reported_with_its_message() {
    let panic = std::panic::catch_unwind(|| panic!("row {}", 7)).unwrap_err();
    let error = super::panicked(panic.as_ref());
    assert_eq!((error.kind, error.found.as_deref()), (ErrorKind::Internal, Some("row 7")));
}

#[test]
fn json_shapes_are_those_of_the_contract() {
    let text = r#"{"scale":1.0,"chunks":8,"chunk":null,"tables":["orders"],"folder":"/data","threads":2}"#;
    let spec: GenerateSpec = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&spec).unwrap(), text);
    let folder = tempfile::tempdir().unwrap();
    let region = GenerateSpec { tables: vec!["region".to_owned()], ..super::tests::spec(folder.path(), 0.001, 8) };
    let result = serde_json::to_value(run(region)).unwrap();
    let path = folder.path().join("region.tbl");
    let file = serde_json::json!({"path": path, "table": "region", "chunk": 1, "rows": 5, "bytes": 389});
    assert_eq!(result, serde_json::json!({"status": "ok", "error": null, "files": [file]}));
}
