//! The corpus of `fuzz/` on every instruction set, by the ordinary test command.

use std::path::{Path, PathBuf};

use crate::fuzzing::input::Random;
use crate::fuzzing::{Case, convert_one, parse_differential};

/// Runs a target over every file of its corpus; a failure names the file.
fn replay(target: &str, case: impl Fn(&[u8]) -> Option<Case>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{} holds {} files", folder.display(), files.len());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let run = || case(&bytes).iter().for_each(|case| case.check(true));
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            eprintln!("corpus file {}", file.display());
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn parse_differential_corpus() {
    replay("parse_differential", parse_differential::case);
}

#[test]
fn convert_one_corpus() {
    replay("convert_one", |bytes| Some(convert_one::case(bytes)));
}

/// Inputs nobody has chosen; a breadth that the corpus, minimised for places of the code, does not have.
#[test]
fn random_fuzz_bytes() {
    let mut random = Random(3);
    for _ in 0..300 {
        let length = random.between(8, 160);
        let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        parse_differential::case(&bytes).iter().for_each(|case| case.check(true));
        convert_one::case(&bytes).check(true);
    }
}
