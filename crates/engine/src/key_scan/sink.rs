//! The sink of a flow that only looks at keys.

use std::sync::{Arc, Mutex};

use arrow_array::Array;
use arrow_buffer::NullBuffer;
use headrace_transform::partition::{Key, Keys};
use headrace_types::{CoreError, ErrorKind};

use super::counts::Counts;
use super::periods::Periods;
use super::quantiles::Parents;
use crate::key_column::KeyColumn;
use crate::meter::StreamMeter;
use crate::outcome::lock;
use crate::sink::{Origin, Placed, Sink, Writer};

/// What is counted.
#[derive(Clone)]
pub enum Buckets {
    /// All keys.
    All,
    /// The keys that lie in buckets of the pass before.
    Inside(Arc<Parents>),
    /// The periods of the keys.
    Periods(Periods),
}

/// What a pass, or a stream of it, has met.
#[derive(Default)]
pub struct Found {
    /// Rows, those with a null key among them.
    pub rows: u64,
    /// Rows with a null key.
    pub nulls: u64,
    /// Least and greatest key.
    pub range: Option<(Key, Key)>,
    /// What the pass counts.
    pub counts: Counts,
}

impl Found {
    fn merge(&mut self, other: &Found) {
        self.rows += other.rows;
        self.nulls += other.nulls;
        self.range = self.range.into_iter().chain(other.range).reduce(wider);
        self.counts.merge(&other.counts);
    }
}

fn wider(one: (Key, Key), other: (Key, Key)) -> (Key, Key) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// Gives all keys but those of rows that are null.
fn each(keys: Keys<'_>, nulls: Option<&NullBuffer>, mut take: impl FnMut(Key)) {
    match nulls {
        None => keys.for_each(take),
        Some(nulls) => nulls.valid_indices().for_each(|row| take(keys.at(row))),
    }
}

/// Counts keys.
pub struct KeySink {
    /// In the layout.
    column: KeyColumn,
    buckets: Buckets,
    found: Arc<Mutex<Found>>,
}

impl KeySink {
    /// A sink that has met nothing.
    pub fn new(column: KeyColumn, buckets: Buckets) -> Self {
        KeySink { column, buckets, found: Arc::default() }
    }

    /// What the streams have met, once they have ended.
    pub fn found(&self) -> Found {
        std::mem::take(&mut lock(&self.found))
    }
}

impl Sink for KeySink {
    fn writer(&self) -> Box<dyn Writer> {
        Box::new(KeyWriter {
            column: self.column.alone(),
            buckets: self.buckets.clone(),
            own: Found::default(),
            total: self.found.clone(),
        })
    }

    fn wanted_columns(&self) -> Option<Vec<usize>> {
        Some(vec![self.column.index()])
    }

    fn keeps_rejects(&self) -> bool {
        false
    }

    fn hashes_texts(&self) -> bool {
        false
    }
}

struct KeyWriter {
    column: KeyColumn,
    buckets: Buckets,
    own: Found,
    total: Arc<Mutex<Found>>,
}

impl Writer for KeyWriter {
    fn write(&mut self, rows: Placed, _origin: Origin, _meter: &StreamMeter) -> Result<bool, CoreError> {
        let batch = rows.batch;
        let keys = self.column.keys(&batch);
        let keys = keys.ok_or_else(|| CoreError::new(ErrorKind::Internal, "the parser gave another type of key"))?;
        let nulls = batch.column(0).nulls().filter(|nulls| nulls.null_count() > 0);
        let own = &mut self.own;
        own.rows += batch.num_rows() as u64;
        own.nulls += nulls.map_or(0, |nulls| nulls.null_count() as u64);
        let range = match nulls {
            None => keys.range(),
            Some(nulls) => nulls.valid_indices().map(|row| (keys.at(row), keys.at(row))).reduce(wider),
        };
        own.range = own.range.into_iter().chain(range).reduce(wider);
        let counts = &mut own.counts;
        match &self.buckets {
            Buckets::All => each(keys, nulls, |key| counts.add(key)),
            Buckets::Inside(parents) => each(keys, nulls, |key| {
                if parents.contain(key) {
                    counts.add(key);
                }
            }),
            Buckets::Periods(periods) => each(keys, nulls, |key| counts.add(periods.of(key))),
        }
        Ok(true)
    }
}

impl Drop for KeyWriter {
    fn drop(&mut self) {
        lock(&self.total).merge(&self.own);
    }
}
