//! What a server wrote with `COPY ... TO STDOUT (FORMAT binary)`, byte for byte. `tests/golden/postgres_copy/make.py` makes the
//! files from `cases.json`.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::values::{Text, Wanted, array, batch, stream};

/// A table of one column.
#[derive(Deserialize)]
pub struct Case {
    /// Name of the file.
    pub name: String,
    #[serde(flatten)]
    pub wanted: Wanted,
    pub values: Vec<Text>,
}

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/postgres_copy")
}

pub fn cases() -> Vec<Case> {
    let cases = fs::read_to_string(folder().join("cases.json")).unwrap();
    serde_json::from_str(&cases).unwrap()
}

#[test]
fn the_bytes_are_those_of_the_server() {
    for Case { name, wanted, values } in cases() {
        let expected = fs::read(folder().join(format!("{name}.copy"))).unwrap();
        let batch = batch(vec![array(wanted.column_type, &values)]);
        for full in [1, 100, usize::MAX] {
            let found = stream(std::slice::from_ref(&wanted), &batch, full);
            assert_eq!(found, expected, "{name}, written in pieces of {full} bytes");
        }
    }
}
