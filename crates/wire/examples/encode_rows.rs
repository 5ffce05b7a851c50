//! Rows of text to the stream of a binary COPY, for tests against a server (`tests/integration/postgres_copy.py`).
//!
//! On the standard input one JSON document per line: first the columns, `[{"type": {"kind": "int64"}, "form": "int8"}, ...]`,
//! then rows, `["1", null, ...]`.

#![allow(clippy::unwrap_used, clippy::panic)] // a tool for tests

#[path = "../tests/copy/values.rs"]
mod values;

use std::io::{self, BufRead, Write};

use values::{Text, Wanted, array, batch, stream};

/// Bytes after which rows are cut, so that many cuts are tested.
const FULL_BYTES: usize = 1000;

fn main() {
    let mut lines = io::stdin().lock().lines().map(Result::unwrap);
    let wanted: Vec<Wanted> = serde_json::from_str(&lines.next().unwrap()).unwrap();
    let rows: Vec<Vec<Text>> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    let column = |(index, wanted): (usize, &Wanted)| {
        let texts: Vec<_> = rows.iter().map(|row| row[index].clone()).collect();
        array(wanted.column_type, &texts)
    };
    let columns = wanted.iter().enumerate().map(column).collect();
    io::stdout().write_all(&stream(&wanted, &batch(columns), FULL_BYTES)).unwrap();
}
