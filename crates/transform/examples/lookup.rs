//! What an index of a lookup costs: memory, building, probes.
//!
//!     cargo run --release -p headrace-transform --example lookup -- [ENTRIES] [ROUNDS]
//!
//! Builds an index of ENTRIES keys (default 10,000,000) of every kind on one thread, and looks for keys in random order, in batches of 5,000 rows as a load has them: all found, then half of them. A probe is finding
//! the row and getting its added columns. Prints a Markdown table; times are the medians of ROUNDS (default 9) rounds of
//! 10,000,000 probes each, with the least and the greatest. 100,000,000 entries take 8 GB while they are built.
//!
//! **What it cannot tell.** A flow does other things between two batches, so less of the index is in the caches then.

#![allow(clippy::panic, clippy::expect_used)] // a measuring tool: what goes wrong has to end it

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, Int32Array, Int64Array};
use headrace_transform::lookup::*;
use headrace_types::ColumnType;

const BATCH_ROWS: u64 = 5_000;
const PROBES: u64 = 10_000_000;
/// Keys and added columns of a kind of lookup.
struct Kind {
    name: &'static str,
    keys: &'static [ColumnType],
    /// The arrays of the keys of these entries.
    make: fn(&[u64]) -> Vec<ArrayRef>,
    /// Whether a text is added beside the number.
    adds_text: bool,
}

fn numbers(entries: &[u64], key: impl Fn(u64) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(entries.iter().map(|entry| key(*entry))))
}

fn dense(entries: &[u64]) -> Vec<ArrayRef> {
    vec![numbers(entries, |entry| entry as i64)]
}

/// Every second number is missing, and some more.
fn gaps(entries: &[u64]) -> Vec<ArrayRef> {
    vec![numbers(entries, |entry| (entry * 12 / 5) as i64)]
}

fn below_32_bits(entries: &[u64]) -> Vec<ArrayRef> {
    vec![numbers(entries, |entry| i64::from((entry as u32).wrapping_mul(0x9E37_79B1)))]
}

fn any_number(entries: &[u64]) -> Vec<ArrayRef> {
    vec![numbers(entries, |entry| entry.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64)]
}

/// As PARTSUPP: each part four times.
fn pairs(entries: &[u64]) -> Vec<ArrayRef> {
    let column = |part: fn(u64) -> u64| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(entries.iter().map(|entry| part(*entry) as i32)))
    };
    vec![column(|entry| entry / 4), column(|entry| entry % 4 * 1_000_003 + entry / 4)]
}

/// As the clerks of ORDERS.
fn texts(entries: &[u64]) -> Vec<ArrayRef> {
    let mut builder = StringViewBuilder::new();
    entries.iter().for_each(|entry| builder.append_value(format!("Clerk#{entry:09}")));
    vec![Arc::new(builder.finish())]
}

const KINDS: [Kind; 7] = [
    Kind { name: "int64, dense", keys: &[ColumnType::Int64], make: dense, adds_text: false },
    Kind { name: "int64, dense; a text besides", keys: &[ColumnType::Int64], make: dense, adds_text: true },
    Kind { name: "int64, 2.4 numbers for each", keys: &[ColumnType::Int64], make: gaps, adds_text: false },
    Kind { name: "int64 within 2^32", keys: &[ColumnType::Int64], make: below_32_bits, adds_text: false },
    Kind { name: "any int64", keys: &[ColumnType::Int64], make: any_number, adds_text: false },
    Kind { name: "two int32", keys: &[ColumnType::Int32; 2], make: pairs, adds_text: false },
    Kind { name: "texts of 15 bytes", keys: &[ColumnType::String], make: texts, adds_text: false },
];

fn batches(numbers: impl Iterator<Item = u64>, count: u64) -> impl Iterator<Item = Vec<u64>> {
    let mut numbers = numbers;
    (0..count.div_ceil(BATCH_ROWS)).map(move |batch| {
        let rows = BATCH_ROWS.min(count - batch * BATCH_ROWS);
        numbers.by_ref().take(rows as usize).collect()
    })
}

struct Built {
    index: LookupIndex,
    seconds: f64,
}

fn build(kind: &Kind, entries: u64) -> Built {
    let key = |column_type: &ColumnType| KeyColumn { lookup: *column_type, input: *column_type, case: Case::Exact };
    let number = AddedColumn { column_type: ColumnType::Int64, default: Some(Arc::new(Int64Array::from(vec![-1]))) };
    let text = AddedColumn { column_type: ColumnType::String, default: None };
    let spec = LookupSpec {
        keys: kind.keys.iter().map(key).collect(),
        added: if kind.adds_text { vec![number, text] } else { vec![number] },
        duplicates: Duplicates::Error,
        budget_bytes: u64::MAX,
    };
    let build = LookupBuild::new(spec).expect("keys that can be compared");
    let mut builder = build.builder().expect("memory");
    let mut seconds = 0.0;
    let mut row = 0;
    // In the order of their numbers, as most dimension tables are written.
    for numbers in batches(0..entries, entries) {
        let keys = (kind.make)(&numbers);
        let mut added = vec![self::numbers(&numbers, |entry| entry as i64)];
        if kind.adds_text {
            added.extend(texts(&numbers));
        }
        let started = Instant::now();
        builder.append(RowPlace { slice: 0, row }, &keys, &added).expect("keys");
        seconds += started.elapsed().as_secs_f64();
        row += numbers.len() as u64;
    }
    let started = Instant::now();
    builder.end().expect("rows");
    let index = build.finish(&|work: &(dyn Fn() + Sync)| work()).expect("unique keys");
    Built { index, seconds: seconds + started.elapsed().as_secs_f64() }
}

/// Million probes a second: median, least, greatest. `among`: keys are looked for among so many, of which the index has
/// its own.
fn probes(kind: &Kind, index: &LookupIndex, among: u64, rounds: usize) -> [f64; 3] {
    let mut found = Vec::new();
    for round in 0..rounds {
        let mut seconds = 0.0;
        for numbers in batches(random(among, round as u64), PROBES) {
            let keys = (kind.make)(&numbers);
            let started = Instant::now();
            let probed = index.probe(&keys).expect("keys of the same types");
            black_box(index.gather(&probed).expect("added columns"));
            seconds += started.elapsed().as_secs_f64();
        }
        found.push(PROBES as f64 / seconds / 1e6);
    }
    found.sort_by(f64::total_cmp);
    [found[found.len() / 2], found[0], found[found.len() - 1]]
}

/// Numbers below `count` that have no order.
fn random(count: u64, seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed.wrapping_mul(0xD134_2543_DE82_EF95) ^ 0x9E37_79B9_7F4A_7C15;
    std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(((u128::from(state) * u128::from(count)) >> 64) as u64)
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let entries = arguments.next().unwrap_or(10_000_000);
    let rounds = arguments.next().unwrap_or(9) as usize;
    println!("{entries} entries, {PROBES} probes a round, {rounds} rounds; an int64 is added\n");
    println!(
        "| keys | form | bytes per entry | with added columns | most while it is built | build, ns per entry | all found, M/s | half found, M/s |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for kind in &KINDS {
        let Built { index, seconds } = build(kind, entries);
        let per_entry = |bytes: u64| bytes as f64 / entries as f64;
        let speed = |among: u64| {
            let [median, least, greatest] = probes(kind, &index, among, rounds);
            format!("{median:.0} ({least:.0} to {greatest:.0})")
        };
        println!(
            "| {} | {} | {:.1} | {:.1} | {:.1} | {:.0} | {} | {} |",
            kind.name,
            index.form(),
            per_entry(index.bytes() - index.added_bytes()),
            per_entry(index.bytes()),
            per_entry(index.peak_bytes()),
            seconds * 1e9 / entries as f64,
            speed(entries),
            speed(2 * entries),
        );
    }
}
