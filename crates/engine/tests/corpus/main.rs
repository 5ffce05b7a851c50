//! The fuzz targets of the engine over the corpus of `fuzz/`, by the ordinary test command.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../../../parse/tests/parser/drive.rs"]
mod drive;
#[allow(dead_code)]
#[path = "../../../parse/tests/parser/examples.rs"]
mod examples;
mod flow_differential;
#[allow(dead_code)]
#[path = "../../../parse/tests/parser/fuzzing/mod.rs"]
mod fuzzing;
mod inflate;
#[path = "../../../parse/tests/parser/json.rs"]
mod json;
mod place;
#[allow(dead_code)]
#[path = "../../../parse/tests/parser/reference.rs"]
mod reference;
#[path = "../../../parse/tests/parser/reference_encodings.rs"]
mod reference_encodings;
#[path = "../../../parse/tests/parser/reference_formats.rs"]
mod reference_formats;
#[path = "../../../parse/tests/parser/reference_places.rs"]
mod reference_places;
#[path = "../../../parse/tests/parser/reference_values.rs"]
mod reference_values;
mod refused;
mod slicing;
mod spec_json;
mod stream;

use std::path::Path;

use fuzzing::input;

/// Runs a check over every file of a corpus and over inputs nobody has chosen; a failure names the file.
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 10, "{} holds {} files", folder.display(), inputs.len());
    let mut random = input::Random(3);
    for number in 0..200 {
        let length = random.between(4, 100);
        inputs.push((format!("random {number}"), (0..length).map(|_| random.bits() as u8).collect()));
    }
    for (name, bytes) in inputs {
        if let Err(panic) = std::panic::catch_unwind(|| check(&bytes)) {
            eprintln!("corpus file {name}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn flow_differential_corpus() {
    replay("flow_differential", flow_differential::check);
}

#[test]
fn inflate_corpus() {
    replay("inflate", inflate::check);
}

#[test]
fn slicing_corpus() {
    replay("slicing", slicing::check);
}

#[test]
fn spec_json_corpus() {
    replay("spec_json", spec_json::check);
}

#[test]
fn stream_corpus() {
    replay("stream", stream::check);
}
