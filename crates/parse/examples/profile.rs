//! Where the time of a LINEITEM row goes, per stage and per type.
//!
//!     cargo run --release -p headrace-parse --example profile -- FILE [MB] [BLOCK_KB] [ROUNDS]
//!
//! FILE is a file of LINEITEM (`headrace generate tpch --tables lineitem`); its first MB (default 64) are read in blocks of
//! BLOCK_KB (default 512, as in a load) and parsed again and again, the way a stream of the engine does: read into recycled
//! memory, parse, drop the batch. Prints a Markdown table.
//!
//! **How.** The parser has no clocks inside, as they would cost what they measure. Instead the same blocks go through the
//! public parser in variants that differ by one thing, and the stages are differences of times:
//!
//! | variant | what it contains |
//! | --- | --- |
//! | `all`: the layout of LINEITEM | everything |
//! | `no rows`: every line feed of the text is a delimiter | structural pass with as many marks, and nothing else: no row ends |
//! | `texts`: every column is a `string` | structural pass, row table, 16 text columns |
//! | `one text`: one column; the delimiters inside a row are blanks | the same for 1 column |
//! | `one text, no rows` | structural pass of that text |
//! | `texts but` one column, which has its type | as `texts`, with one column converted |
//! | `not ASCII`: as `all`, one letter of each block is `é` | UTF-8 check of the block, longer way of text lengths |
//!
//! A round runs every variant once. For each block the least time of all rounds counts, because whatever else the machine does
//! only adds, and a block (a fraction of a millisecond) is often left alone.
//!
//! **What it can tell.** The structural pass, exactly. The extra of a column's conversion over that of a `string`, and the
//! extra of the UTF-8 check, well. What a row and what a text field cost besides, from one and sixteen columns: a straight
//! line through two points, so a field of one long text counts as much as one of one letter. A column of a type is then its
//! field plus its extra.
//!
//! **What it cannot tell.** What the stages would cost alone: they share caches and the processor's out-of-order window, so
//! one stage may hide behind another. The last line says how far the sum of the parts is from the whole.

#![allow(clippy::panic, clippy::expect_used)] // a measuring tool: what goes wrong has to end it

#[path = "../benches/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headrace_parse::{CpuPath, Parser, cpu_path};
use headrace_types::{Column, ColumnType, Layout, RowEnd};
use support::Shelf;

const DELIMITER: u8 = b'|';

/// The columns of LINEITEM, as in examples/tpch/layouts/lineitem.yaml.
fn lineitem() -> Vec<ColumnType> {
    let money = ColumnType::Decimal { precision: 15, scale: 2 };
    let varchar = |length| ColumnType::Varchar { length };
    let mut types = vec![ColumnType::Int64, ColumnType::Int32, ColumnType::Int32, ColumnType::Int32];
    types.extend([money; 4]);
    types.extend([ColumnType::Char { length: 1 }; 2]);
    types.extend([ColumnType::Date; 3]);
    types.extend([varchar(25), varchar(10), varchar(44)]);
    types
}

/// What is changed in a block after it was read and before it is parsed; neither is timed.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    Nothing,
    NoRows,
    OneField,
    OneFieldNoRows,
    NotAscii,
}

impl Change {
    fn apply(self, text: &mut [u8]) {
        if matches!(self, Change::OneField | Change::OneFieldNoRows) {
            // The last delimiter of a row, in front of its line feed, stays.
            for at in 0..text.len().saturating_sub(1) {
                if text[at] == DELIMITER && text[at + 1] != b'\n' {
                    text[at] = b' ';
                }
            }
        }
        if matches!(self, Change::NoRows | Change::OneFieldNoRows) {
            text.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = DELIMITER);
        }
        if self == Change::NotAscii {
            // In the comment of the last row: two letters become one.
            let end = text.len() - 2;
            let letters = (0..end).rev().find(|&at| text[at].is_ascii_lowercase() && text[at + 1].is_ascii_lowercase());
            let at = letters.expect("a comment has two letters side by side");
            text[at..at + 2].copy_from_slice("é".as_bytes());
        }
    }
}

/// The same blocks with one change, through one layout.
struct Variant {
    change: Change,
    parser: Parser,
    has_rows: bool,
    /// Of each block, reading and parsing, the least of all rounds.
    least: Vec<[Duration; 2]>,
}

impl Variant {
    fn new(types: &[ColumnType], change: Change) -> Variant {
        let column = |(number, &column_type)| Column::new(format!("c{number}"), column_type, false);
        let layout = Layout {
            delimiter: char::from(DELIMITER).to_string(),
            trailing_delimiter: true,
            columns: types.iter().enumerate().map(column).collect(),
            ..Layout::default()
        };
        Variant {
            change,
            parser: Parser::new(&layout).expect("a layout of LINEITEM"),
            has_rows: !matches!(change, Change::NoRows | Change::OneFieldNoRows),
            least: vec![],
        }
    }

    /// Reads and parses all blocks once.
    fn round(&mut self, file: &File, spans: &[(u64, usize)], rows: u64, shelves: &[Arc<Shelf>; 2]) {
        let [blocks, slabs] = shelves;
        let mut found = 0;
        self.parser.begin_slice(&RowEnd::Lf, 0).expect("a layout of LINEITEM");
        self.least.resize(spans.len(), [Duration::MAX; 2]);
        for (&(start, length), [least_read, least_parse]) in std::iter::zip(spans, &mut self.least) {
            let memory = blocks.take(support::block_bytes(length));
            let block = support::block(memory, length, |place| {
                let started = Instant::now();
                file.read_exact_at(place, start).expect("the file is as long as it was");
                *least_read = (*least_read).min(started.elapsed());
                self.change.apply(place);
            });
            let started = Instant::now();
            let parsed = black_box(support::parse(&mut self.parser, &block, length, slabs));
            found += parsed.rows();
            drop(parsed); // counts: the arrays of a block have to go
            *least_parse = (*least_parse).min(started.elapsed());
        }
        assert_eq!(found, if self.has_rows { rows } else { 0 });
    }

    /// Nanoseconds per row: reading, parsing.
    fn per_row(&self, rows: u64) -> [f64; 2] {
        [0, 1].map(|stage| {
            let time: Duration = self.least.iter().map(|block| block[stage]).sum();
            time.as_nanos() as f64 / rows as f64
        })
    }
}

/// Blocks of whole rows, up to `limit_bytes` in all, and their rows.
fn spans(file: &File, limit_bytes: usize, block_bytes: usize) -> (Vec<(u64, usize)>, u64) {
    let (mut found, mut rows, mut at) = (vec![], 0, 0);
    let mut text = vec![0; block_bytes];
    while at + block_bytes as u64 <= limit_bytes as u64 {
        if file.read_exact_at(&mut text, at).is_err() {
            break;
        }
        let length = text.iter().rposition(|&byte| byte == b'\n').expect("a row in every block") + 1;
        rows += text[..length].iter().filter(|&&byte| byte == b'\n').count() as u64;
        found.push((at, length));
        at += length as u64;
    }
    assert!(!found.is_empty(), "the file is smaller than a block");
    (found, rows)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(path) = arguments.get(1) else {
        eprintln!("profile FILE [MB] [BLOCK_KB] [ROUNDS]");
        std::process::exit(6);
    };
    let number = |at: usize, otherwise| arguments.get(at).map_or(otherwise, |text| text.parse().expect("a number"));
    let (megabytes, block_kb, rounds) = (number(2, 64), number(3, 512), number(4, 9));
    let file = File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (spans, rows) = spans(&file, megabytes * 1_000_000, block_kb << 10);
    let bytes: usize = spans.iter().map(|span| span.1).sum();

    let types = lineitem();
    let texts = vec![ColumnType::String; types.len()];
    let mut variants = vec![
        Variant::new(&types, Change::Nothing),
        Variant::new(&types, Change::NoRows),
        Variant::new(&texts, Change::Nothing),
        Variant::new(&texts[..1], Change::OneField),
        Variant::new(&texts[..1], Change::OneFieldNoRows),
        Variant::new(&types, Change::NotAscii),
    ];
    for (column, &column_type) in types.iter().enumerate() {
        let mut one = texts.clone();
        one[column] = column_type;
        variants.push(Variant::new(&one, Change::Nothing));
    }
    let shelves = [Arc::new(Shelf::default()), Arc::new(Shelf::default())];
    for _ in 0..rounds {
        for variant in &mut variants {
            variant.round(&file, &spans, rows, &shelves);
        }
    }
    let path = cpu_path().map_or("?", CpuPath::name);
    println!("{path}, {rows} rows, {:.1} MB, blocks of {block_kb} KiB, least of {rounds} rounds\n", bytes as f64 / 1e6);
    report(&types, &variants, rows, bytes);
}

/// Nanoseconds per row of every stage.
fn report(types: &[ColumnType], variants: &[Variant], rows: u64, bytes: usize) {
    let parse: Vec<f64> = variants.iter().map(|variant| variant.per_row(rows)[1]).collect();
    let [all, no_rows, texts, one_text, one_text_no_rows, not_ascii, columns @ ..] = &parse[..] else { return };
    let read = variants[0].per_row(rows)[0];
    let one = one_text - one_text_no_rows;
    let field = (texts - no_rows - one) / (types.len() - 1) as f64;

    let total = read + all;
    let print = |stage: &str, time: f64| println!("| {stage} | {time:.1} | {:.0} |", 100.0 * time / total);
    println!("| stage | ns per row | % |\n| --- | ---: | ---: |");
    print("read from the page cache", read);
    print("structural pass", *no_rows);
    print("row table", one - field);
    let mut by_type: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for (column_type, with_column) in std::iter::zip(types, columns) {
        let entry = by_type.entry(column_type.to_string()).or_default();
        entry.0 += 1;
        entry.1 += field + with_column - texts;
    }
    for (name, (count, time)) in &by_type {
        print(&format!("{count} x {name} ({:.1} each)", time / *count as f64), *time);
    }
    let parts = no_rows + one - field + by_type.values().map(|entry| entry.1).sum::<f64>();
    print("not explained by the parts", all - parts);
    print("**all**", total);
    println!();
    println!("- a field of any type, its positions checked, as a text view: {field:.1} ns");
    println!(
        "- UTF-8 check, in blocks with a byte above 0x7F only (not part of the table): {:.1} ns per row",
        not_ascii - all
    );
    let speed = |time: f64| bytes as f64 / (time * rows as f64) * 1e3;
    println!("- {:.0} MB/s with reading, {:.0} MB/s without", speed(total), speed(*all));
}
