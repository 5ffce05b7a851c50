//! What an index must tell, from a plain map; and the same rows through builders on threads.

use std::collections::HashMap;
use std::thread;

use arrow_array::ArrayRef;
use headrace_transform::lookup::*;
use headrace_types::ColumnType;

use crate::values::{Value, array, value};

/// Values of a row; `None` is NULL.
pub type Row = Vec<Option<Value>>;

/// A lookup and its rows, in the order of the source.
#[derive(Clone)]
pub struct Case {
    pub keys: Vec<KeyColumn>,
    pub added: Vec<(ColumnType, Option<Value>)>,
    pub duplicates: Duplicates,
    /// Slices of rows: keys, added.
    pub slices: Vec<Vec<(Row, Row)>>,
}

/// What a map tells of the same rows.
pub struct Model {
    rows: HashMap<Vec<Value>, (RowPlace, Row)>,
    /// Rows with a key that an earlier row has.
    pub duplicates: u64,
    pub null_keys: u64,
    /// The first row with a key that an earlier row has, and that one.
    pub second: Option<(RowPlace, RowPlace)>,
}

/// What is compared.
fn comparable(keys: &[KeyColumn], row: &Row) -> Option<Vec<Value>> {
    let value = |(column, value): (&KeyColumn, &Option<Value>)| {
        let Some(Value::Text(text)) = value else { return value.clone() };
        let is_padded = [column.lookup, column.input].iter().any(|side| matches!(side, ColumnType::Char { .. }));
        let text = if is_padded { text.trim_end_matches(' ') } else { text };
        let lower = |letter: char| letter.to_lowercase().next().unwrap();
        Some(Value::Text(match column.case {
            headrace_transform::lookup::Case::Exact => text.to_owned(),
            headrace_transform::lookup::Case::Ignore => text.chars().map(lower).collect(),
        }))
    };
    keys.iter().zip(row).map(value).collect()
}

impl Case {
    pub fn model(&self) -> Model {
        let mut model = Model { rows: HashMap::new(), duplicates: 0, null_keys: 0, second: None };
        for (slice, rows) in self.slices.iter().enumerate() {
            for (row, (keys, added)) in rows.iter().enumerate() {
                let place = RowPlace { slice: slice as u32, row: row as u64 };
                let Some(key) = comparable(&self.keys, keys) else {
                    model.null_keys += 1;
                    continue;
                };
                if let Some((first, _)) = model.rows.get(&key) {
                    model.duplicates += 1;
                    model.second.get_or_insert((*first, place));
                    continue;
                }
                model.rows.insert(key, (place, added.clone()));
            }
        }
        model
    }

    pub fn spec(&self, budget_bytes: u64) -> LookupSpec {
        let added = self.added.iter().map(|(column_type, default)| AddedColumn {
            column_type: *column_type,
            default: default.as_ref().map(|value| array(*column_type, &[Some(value.clone())])),
        });
        LookupSpec { keys: self.keys.clone(), added: added.collect(), duplicates: self.duplicates, budget_bytes }
    }

    /// The index of these rows, made by so many threads from batches of so many rows. The last slices are read first.
    pub fn build(&self, threads: usize, batch_rows: usize, budget_bytes: u64) -> Result<LookupIndex, BuildError> {
        let build = LookupBuild::new(self.spec(budget_bytes))?;
        let append = |thread: usize| {
            let mut builder = build.builder()?;
            for (slice, rows) in self.slices.iter().enumerate().rev().skip(thread).step_by(threads) {
                for (batch, rows) in rows.chunks(batch_rows).enumerate() {
                    let first = RowPlace { slice: slice as u32, row: (batch * batch_rows) as u64 };
                    let keys = columns(self.keys.iter().map(|key| key.lookup), rows.iter().map(|(keys, _)| keys));
                    let added = columns(self.added.iter().map(|added| added.0), rows.iter().map(|(_, added)| added));
                    builder.append(first, &keys, &added)?;
                }
            }
            builder.end()
        };
        let appended: Result<Vec<()>, BuildError> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || append(thread))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        appended?;
        build.finish(&team(threads))
    }

    /// Compares what the index tells of rows that look for something.
    pub fn check(&self, index: &LookupIndex, model: &Model, inputs: &[Row]) {
        let arrays = columns(self.keys.iter().map(|key| key.input), inputs.iter());
        let probed = index.probe(&arrays).unwrap();
        let gathered = index.gather(&probed).unwrap();
        assert_eq!(gathered.len(), self.added.len());
        let (mut matched, mut null_keys) = (0, 0);
        for (row, input) in inputs.iter().enumerate() {
            let key = comparable(&self.keys, input);
            let found = key.as_ref().and_then(|key| model.rows.get(key));
            assert_eq!(probed.is_match(row), found.is_some(), "{input:?}");
            assert_eq!(probed.payloads()[row] == NULL_KEY, key.is_none(), "{input:?}");
            matched += usize::from(found.is_some());
            null_keys += usize::from(key.is_none());
            let added: Row = gathered.iter().map(|array| value(array.as_ref(), row)).collect();
            let default = || self.added.iter().map(|(_, default)| default.clone()).collect();
            assert_eq!(added, found.map_or_else(default, |(_, added)| added.clone()), "{input:?}");
        }
        let counts = [probed.matched(), probed.null_keys(), probed.not_matched()];
        assert_eq!(counts, [matched, null_keys, inputs.len() - matched - null_keys]);
        for ((column_type, _), array) in self.added.iter().zip(&gathered) {
            assert_eq!(*array.data_type(), column_type.arrow_type());
        }
    }

    /// Builds by one thread and by several, and compares both with the map.
    pub fn check_all(&self, batch_rows: usize, inputs: &[Row]) -> Option<LookupIndex> {
        let model = self.model();
        let mut last = None;
        for threads in [1, 4] {
            let index = match (self.build(threads, batch_rows, u64::MAX), self.duplicates) {
                (Err(BuildError::Duplicate(found)), Duplicates::Error) => {
                    let key = found.key.iter().map(|value| match value {
                        KeyValue::Number(number) => Value::Number(*number),
                        KeyValue::Text(text) => Value::Text(text.clone()),
                        KeyValue::Bytes(bytes) => Value::Bytes(bytes.clone()),
                    });
                    let place = model.rows.get(&key.collect::<Vec<_>>()).map(|(place, _)| *place);
                    assert_eq!((Some((found.first, found.second)), found.rows), (model.second, model.duplicates));
                    assert_eq!(place, Some(found.first));
                    return None;
                }
                (result, _) => result.unwrap(),
            };
            let counts = [index.rows(), index.duplicates(), index.null_keys()];
            assert_eq!(counts, [model.rows.len() as u64, model.duplicates, model.null_keys]);
            assert!(self.duplicates == Duplicates::First || model.duplicates == 0);
            let own: Vec<Row> = self.slices.iter().flatten().map(|(keys, _)| keys.clone()).collect();
            // As far as the types of both sides are one.
            let is_own = self.keys.iter().all(|key| key.lookup.arrow_type() == key.input.arrow_type());
            self.check(&index, &model, if is_own { &own } else { &[] });
            self.check(&index, &model, inputs);
            assert!(index.bytes() <= index.peak_bytes() + 64);
            last = Some(index);
        }
        last
    }
}

/// Calls work on so many threads.
pub fn team(threads: usize) -> impl Fn(&(dyn Fn() + Sync)) {
    move |work| thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))))
}

/// The columns of rows.
pub fn columns<'a>(
    types: impl Iterator<Item = ColumnType>,
    rows: impl Iterator<Item = &'a Row> + Clone,
) -> Vec<ArrayRef> {
    let column = |(index, column_type): (usize, ColumnType)| {
        let values: Vec<_> = rows.clone().map(|row: &Row| row[index].clone()).collect();
        array(column_type, &values)
    };
    types.enumerate().map(column).collect()
}
