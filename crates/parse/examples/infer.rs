//! What facts about columns cost: per row of all columns, and for each column by itself.
//!
//!     cargo run --release -p headrace-parse --example infer -- FILE DELIMITER COLUMNS [MB] [ROUNDS]
//!
//! The first MB (default 64) of FILE, without a header and qualifiers, are gathered from memory again and again in blocks of 512 KB;
//! of each the least time counts. Then the same for files that hold one of its columns only.

#![allow(clippy::panic, clippy::expect_used)] // a measuring tool: what goes wrong has to end it

#[path = "../benches/support/mod.rs"]
#[allow(dead_code)] // the profile uses the rest
mod support;

use std::hint::black_box;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_buffer::Buffer;
use headrace_parse::infer::{MOST_HASHES, TableFacts};
use headrace_parse::memory::{Memory, PADDING_BYTES};
use headrace_parse::{Block, Parser};
use headrace_types::{Column, ColumnType, Layout, RowEnd};
use support::Shelf;

const BLOCK_BYTES: usize = 512 << 10;

/// Blocks of whole rows, and their rows.
fn blocks(text: &[u8]) -> (Vec<(Buffer, usize)>, usize) {
    let (mut found, mut at, mut rows) = (vec![], 0, 0);
    while at < text.len() {
        let rest = &text[at..text.len().min(at + BLOCK_BYTES)];
        let length = rest.iter().rposition(|&byte| byte == b'\n').expect("a row in every block") + 1;
        rows += rest[..length].iter().filter(|&&byte| byte == b'\n').count();
        let memory = Memory::new(length + 2 * PADDING_BYTES);
        found.push((support::block(memory, length, |place| place.copy_from_slice(&rest[..length])), length));
        at += length;
    }
    (found, rows)
}

/// Nanoseconds per row of facts about texts.
fn gather(text: &[u8], delimiter: &str, columns: usize, rounds: usize) -> f64 {
    let (blocks, rows) = blocks(text);
    let column = |number| Column::new(format!("c{number}"), ColumnType::String, true);
    let layout = Layout {
        delimiter: delimiter.to_owned(),
        trailing_delimiter: columns > 1 && text.windows(2).any(|pair| pair == [delimiter.as_bytes()[0], b'\n']),
        columns: (0..columns).map(column).collect(),
        ..Layout::default()
    };
    let mut parser = Parser::new(&layout).expect("a layout of texts");
    let shelf = Arc::new(Shelf::default());
    let mut least = vec![Duration::MAX; blocks.len()];
    for _ in 0..rounds {
        let mut facts = TableFacts::new(columns, MOST_HASHES, true);
        parser.begin_slice(&RowEnd::Lf, 0).expect("a layout of texts");
        facts.begin_slice(0);
        for ((block, length), least) in blocks.iter().zip(&mut least) {
            let started = Instant::now();
            let length = *length;
            let block = Block { buffer: block, from: 0, length, real_length: length, first_byte: 0, ended: false };
            let parsed = parser.parse_or_gather(block, |bytes| shelf.take(bytes), Some(&mut facts)).expect("rows");
            assert!(parsed.batch.is_some_and(|batch| batch.num_columns() == 0) && parsed.rejected == 0);
            *least = (*least).min(started.elapsed());
        }
        black_box(facts.finish());
    }
    least.iter().sum::<Duration>().as_nanos() as f64 / rows as f64
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, delimiter, columns, ..] = &arguments[..] else {
        eprintln!("infer FILE DELIMITER COLUMNS [MB] [ROUNDS]");
        std::process::exit(6);
    };
    let number = |at: usize, otherwise| arguments.get(at).map_or(otherwise, |text| text.parse().expect("a number"));
    let (columns, megabytes, rounds) = (columns.parse().expect("a number"), number(4, 64), number(5, 5));
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = Vec::new();
    file.take(megabytes * 1_000_000).read_to_end(&mut text).expect("a file");
    let end = text.iter().rposition(|&byte| byte == b'\n').expect("a row") + 1;
    text.truncate(end);
    let all = gather(&text, delimiter, columns, rounds as usize);
    let rows = text.iter().filter(|&&byte| byte == b'\n').count();
    println!("all columns: {all:.1} ns per row, {:.0} MB/s", text.len() as f64 / rows as f64 / all * 1e3);
    for column in 0..columns {
        let mut own = Vec::new();
        for row in text.split(|&byte| byte == b'\n').filter(|row| !row.is_empty()) {
            own.extend(row.split(|&byte| byte == delimiter.as_bytes()[0]).nth(column).expect("a field"));
            own.push(b'\n');
        }
        println!("column {}: {:.1} ns", column + 1, gather(&own, "\x01", 1, rounds as usize));
    }
}
