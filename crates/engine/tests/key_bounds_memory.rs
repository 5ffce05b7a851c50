//! First and last keys of files that have few rows or none, in a process of their own: its peak memory is measured.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use headrace_engine::key_bounds::{Bounds, KeyBoundsSpec, key_bounds};
use headrace_engine::slices::{SlicingSpec, plan_slices};
use headrace_types::Layout;

const MEGABYTE: u64 = 1 << 20;

fn bounds(write: impl FnOnce(File), skip_lines: u32) -> Bounds {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    write(File::create(&path).unwrap());
    let layout = format!(
        r#"{{"delimiter": "|", "skip_lines": {skip_lines}, "columns": [
            {{"name": "text", "type": {{"kind": "bytes"}}, "nullable": false}},
            {{"name": "key", "type": {{"kind": "int64"}}, "nullable": false}}]}}"#
    );
    let layout: Layout = serde_json::from_str(&layout).unwrap();
    let files = vec![path.to_str().unwrap().to_owned()];
    let slicing = SlicingSpec { files, slice_bytes: 1 << 40, layout: layout.clone(), ..SlicingSpec::default() };
    let files = plan_slices(&slicing).unwrap().files;
    key_bounds(&KeyBoundsSpec { files, layout, column: "key".to_owned() }).unwrap().files.remove(0)
}

fn some(first: &str, last: &str) -> Bounds {
    Bounds { first: Some(first.to_owned()), last: Some(last.to_owned()) }
}

/// Peak resident memory of this process.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn a_file_is_not_held_in_memory_however_far_its_rows_are() {
    // Nothing but rows of another shape.
    let chunk = [b"x".repeat(1000), b"\n".to_vec()].concat().repeat(1000);
    let none = bounds(|mut file| (0..80).for_each(|_| file.write_all(&chunk).unwrap()), 0);
    assert_eq!(none, Bounds::default());
    assert!(peak_megabytes() < 60, "{} MB", peak_megabytes());

    // Lines longer than any row on both sides of the rows, and one as header; holes, so that no disk is filled.
    let long = 80 * MEGABYTE;
    let text = b"\n61|1\n62|2\n";
    let few = |file: File| {
        file.write_all_at(text, long).unwrap();
        file.write_all_at(b"\n", 2 * long).unwrap();
    };
    assert_eq!(bounds(few, 0), some("1", "2"));
    assert_eq!(bounds(few, 1), some("1", "2"));
    assert_eq!(bounds(few, 2), some("2", "2"));
    assert_eq!(bounds(few, 3), Bounds::default());
    assert_eq!(bounds(|file| file.set_len(2 * long).unwrap(), 0), Bounds::default());
    assert!(peak_megabytes() < 260, "{} MB", peak_megabytes());
}
