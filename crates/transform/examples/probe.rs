//! How fast an index is built and probed, and what it takes. One line per run:
//!
//! ```text
//! probe FORM ENTRIES THREADS [inline | columns]      FORM: direct, narrow, wide, hashed
//! ```
//!
//! `inline` adds one column, which stands in the table; `columns` adds three, found by row. Probes are those of one
//! thread, in batches of 8,192 rows, the fastest of several passes over 1 M keys: random ones of the index, random ones
//! that are not in it, and those of the index in the order of the source.

#![allow(clippy::unwrap_used, clippy::panic)] // a tool for measuring

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringViewArray};
use headrace_transform::lookup::{
    AddedColumn, Case, Duplicates, KeyColumn, LookupBuild, LookupIndex, LookupSpec, Probed, RowPlace,
};
use headrace_types::ColumnType;

const BATCH_ROWS: u64 = 8192;
const PROBES: u64 = 1 << 20;
/// Passes go on for so long.
const LEAST_TIME: Duration = Duration::from_millis(500);

/// Numbers that look random, each once.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// The same for those of 32 bits.
fn mixed_narrow(number: u32) -> u32 {
    let number = (number ^ number >> 16).wrapping_mul(0x7FEB_352D);
    let number = (number ^ number >> 15).wrapping_mul(0x846C_A68B);
    number ^ number >> 16
}

/// The keys of these entries; entries from the count of all on are in no index.
fn keys(form: &str, entries: &[u64], count: u64) -> ArrayRef {
    let numbers = |key: fn(u64, u64) -> i64| {
        Arc::new(Int64Array::from_iter_values(entries.iter().map(|entry| key(*entry, count)))) as ArrayRef
    };
    match form {
        "direct" => numbers(|entry, count| if entry < count { 2 * entry } else { 2 * (entry - count) + 1 } as i64),
        "narrow" => numbers(|entry, _| mixed_narrow(entry as u32).into()),
        "wide" => numbers(|entry, _| mixed(entry) as i64),
        "hashed" => {
            let texts = entries.iter().map(|entry| format!("Customer#{entry:09}"));
            Arc::new(StringViewArray::from_iter_values(texts))
        }
        other => panic!("there is no form {other}"),
    }
}

fn added(entries: &[u64], columns: &str) -> Vec<ArrayRef> {
    let number: ArrayRef = Arc::new(Int32Array::from_iter_values(entries.iter().map(|entry| *entry as i32)));
    if columns == "inline" {
        return vec![number];
    }
    let long = Arc::new(Int64Array::from_iter_values(entries.iter().map(|entry| mixed(*entry) as i64)));
    let text = Arc::new(StringViewArray::from_iter_values(entries.iter().map(|entry| format!("{entry}"))));
    vec![number, long, text]
}

fn build(form: &str, count: u64, threads: u64, columns: &str) -> (LookupIndex, Duration) {
    let key = if form == "hashed" { ColumnType::String } else { ColumnType::Int64 };
    let types = [ColumnType::Int32, ColumnType::Int64, ColumnType::String];
    let types = types.into_iter().take(if columns == "inline" { 1 } else { 3 });
    let build = LookupBuild::new(LookupSpec {
        keys: vec![KeyColumn { lookup: key, input: key, case: Case::Exact }],
        added: types.map(|column_type| AddedColumn { column_type, default: None }).collect(),
        duplicates: Duplicates::Error,
        budget_bytes: u64::MAX,
    })
    .unwrap();
    // Making the rows is not building.
    let append = |thread: u64| {
        let mut builder = build.builder().unwrap();
        let mut time = Duration::ZERO;
        for first in (0..count).step_by(BATCH_ROWS as usize).skip(thread as usize).step_by(threads as usize) {
            let entries: Vec<u64> = (first..count.min(first + BATCH_ROWS)).collect();
            let (keys, added) = (keys(form, &entries, count), added(&entries, columns));
            let begin = Instant::now();
            builder.append(RowPlace { slice: 0, row: first }, &[keys], &added).unwrap();
            time += begin.elapsed();
        }
        let begin = Instant::now();
        builder.end().unwrap();
        time + begin.elapsed()
    };
    let appended = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || append(thread))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).max().unwrap()
    });
    let begin = Instant::now();
    let team = |work: &(dyn Fn() + Sync)| thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let index = build.finish(&team).unwrap();
    (index, appended + begin.elapsed())
}

/// Probes per second, and probes with gathering.
fn measure(index: &LookupIndex, batches: &[ArrayRef], finds: bool) -> (f64, f64) {
    let rows: usize = batches.iter().map(|batch| batch.len()).sum();
    let (mut probed_time, mut gathered_time) = (Duration::MAX, Duration::MAX);
    let begin = Instant::now();
    while begin.elapsed() < LEAST_TIME {
        let pass = Instant::now();
        let probed: Vec<Probed> = batches.chunks(1).map(|batch| index.probe(batch).unwrap()).collect();
        probed_time = probed_time.min(pass.elapsed());
        for probed in &probed {
            assert_eq!(probed.matched(), if finds { probed.payloads().len() } else { 0 });
        }
        let pass = Instant::now();
        for probed in &probed {
            assert!(!index.gather(probed).unwrap().is_empty());
        }
        gathered_time = gathered_time.min(pass.elapsed());
    }
    let rate = |time: Duration| rows as f64 / time.as_secs_f64() / 1e6;
    (rate(probed_time), rate(probed_time + gathered_time))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (form, entries, threads) = match &arguments[..] {
        [form, entries, threads, ..] => (form.as_str(), entries.parse().unwrap(), threads.parse().unwrap()),
        _ => ("wide", 1_000_000, 1),
    };
    let columns = arguments.get(3).map_or("inline", String::as_str);
    let (index, time) = build(form, entries, threads, columns);
    assert_eq!((index.form().to_string().as_str(), index.rows()), (form, entries));
    let each = |bytes: u64| bytes as f64 / entries as f64;
    println!(
        "{form}, {entries} entries, {threads} threads, {columns}: built in {:.3} s; {:.2} bytes per entry, {:.2} of them \
         added columns; {:.2} at most",
        time.as_secs_f64(),
        each(index.bytes()),
        each(index.added_bytes()),
        each(index.peak_bytes()),
    );
    for name in ["random", "absent", "in order"] {
        let entry = |probe: u64| match name {
            "random" => mixed(probe) % entries,
            "absent" => entries + mixed(probe) % entries,
            _ => probe,
        };
        let probed: Vec<u64> = (0..PROBES.min(entries)).map(entry).collect();
        let batches: Vec<_> = probed.chunks(BATCH_ROWS as usize).map(|probes| keys(form, probes, entries)).collect();
        let (probed, gathered) = measure(&index, &batches, name != "absent");
        println!("  {name}: {probed:.1} M probes per second, {gathered:.1} M with gathering");
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        println!("  process, keys of the measure included: {}", peak.unwrap_or_default());
    }
}
