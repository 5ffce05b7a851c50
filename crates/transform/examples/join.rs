//! How fast a merge join is. One line per run:
//!
//! ```text
//! join KEY LEFT_ROWS      KEY: number, text
//! ```
//!
//! Each left row has 0 to 7 right ones, in batches of 8,192 rows; both sides have nine columns beside the key. What is measured is one
//! thread, keys and gathering included: the fastest of several passes.

#![allow(clippy::unwrap_used, clippy::panic)] // a tool for measuring

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::Schema;
use headrace_transform::join::{JoinKey, JoinKind, JoinSpec, MergeJoin, OutputColumn, Side, Step};
use headrace_types::ColumnType;

const BATCH_ROWS: usize = 8192;
/// Columns of each side: the key, four numbers of 64 bits, two of 32, three texts.
const COLUMNS: usize = 10;
const PASSES: u32 = 5;

fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number ^ number >> 27
}

fn types(key: ColumnType) -> Vec<ColumnType> {
    use ColumnType::{Int32, Int64, String};
    let types = [key, Int64, Int64, Int64, Int64, Int32, Int32, String, String, String];
    assert_eq!(types.len(), COLUMNS);
    types.to_vec()
}

fn batch(types: &[ColumnType], keys: &[u64]) -> RecordBatch {
    let column = |(place, column_type): (usize, &ColumnType)| -> ArrayRef {
        match (place, column_type) {
            (0, ColumnType::Int64) => Arc::new(Int64Array::from_iter_values(keys.iter().map(|key| *key as i64))),
            (0, _) => Arc::new(StringViewArray::from_iter_values(keys.iter().map(|key| format!("Order#{key:012}")))),
            (_, ColumnType::Int64) => Arc::new(Int64Array::from_iter_values(keys.iter().map(|key| mixed(*key) as i64))),
            (_, ColumnType::Int32) => Arc::new(Int32Array::from_iter_values(keys.iter().map(|key| *key as i32))),
            _ => Arc::new(StringViewArray::from_iter_values(keys.iter().map(|key| format!("a text that says {key}")))),
        }
    };
    let fields: Vec<_> = (0..).zip(types).map(|(place, own)| own.arrow_field(&format!("c{place}"), false)).collect();
    let columns = types.iter().enumerate().map(column).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn batches(types: &[ColumnType], keys: &[u64]) -> Vec<RecordBatch> {
    keys.chunks(BATCH_ROWS).map(|keys| batch(types, keys)).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [key, rows] = &arguments[..] else { panic!("KEY LEFT_ROWS") };
    let rows: u64 = rows.parse().unwrap();
    let types = types(if key == "text" { ColumnType::String } else { ColumnType::Int64 });
    let right: Vec<u64> = (0..rows).flat_map(|key| std::iter::repeat_n(key, (mixed(key) % 8) as usize)).collect();
    let inputs = [batches(&types, &(0..rows).collect::<Vec<_>>()), batches(&types, &right)];
    let columns: Vec<_> =
        Side::BOTH.iter().flat_map(|&side| (0..COLUMNS).map(move |column| OutputColumn { side, column })).collect();
    let fields: Vec<_> =
        columns.iter().map(|own| types[own.column].arrow_field(&format!("{}{}", own.side, own.column), true)).collect();
    let mut best = Duration::MAX;
    let mut out = 0;
    for _ in 0..PASSES {
        let key = JoinKey { left: 0, left_type: types[0], right: 0, right_type: types[0] };
        let spec = JoinSpec {
            kind: JoinKind::Inner,
            keys: vec![key],
            columns: columns.clone(),
            schema: Arc::new(Schema::new(fields.clone())),
        };
        let mut join = MergeJoin::new(spec).unwrap();
        let mut inputs = inputs.each_ref().map(|batches| batches.iter());
        out = 0;
        let begin = Instant::now();
        loop {
            match join.step().unwrap() {
                Step::Needs(side) => match inputs[side.index()].next() {
                    Some(batch) => join.push(side, batch.clone()).unwrap(),
                    None => join.end(side),
                },
                Step::Rows(batch) => out += batch.num_rows(),
                Step::Ended => break,
            }
        }
        best = best.min(begin.elapsed());
    }
    let all = rows + right.len() as u64;
    let nanoseconds = best.as_nanos() as f64 / all as f64;
    println!("{key}: {all} rows in, {out} out, {nanoseconds:.1} ns a row in, {:.0} M rows/s", 1e3 / nanoseconds);
}
