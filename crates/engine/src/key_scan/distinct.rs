//! The different keys of a column of texts, as long as they are few.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arrow_array::{Array, StringViewArray};
use headrace_types::{CoreError, ErrorKind};

use crate::meter::StreamMeter;
use crate::sink::{Origin, Placed, Sink, Writer};

/// Most text of all keys together, bytes.
const MOST_BYTES: usize = 16 << 20;

/// What all streams have met.
#[derive(Default)]
struct Met {
    keys: RwLock<Keys>,
    rows: AtomicU64,
    nulls: AtomicU64,
}

#[derive(Default)]
struct Keys {
    texts: HashSet<Box<str>>,
    bytes: usize,
    /// There were more than are kept; none is kept then.
    is_full: bool,
}

/// Collects keys.
pub struct DistinctSink {
    /// Index in the layout.
    column: usize,
    most: usize,
    met: Arc<Met>,
}

impl DistinctSink {
    /// A sink that keeps at most so many keys.
    pub fn new(column: usize, most: usize) -> Self {
        DistinctSink { column, most, met: Arc::default() }
    }

    /// Whether there are more keys than it keeps: nothing more is to be learned.
    pub fn is_full(&self) -> bool {
        self.met.keys.read().unwrap_or_else(PoisonError::into_inner).is_full
    }

    /// The keys in the order of their bytes; none if there were too many. Rows, and how many of them have no key.
    pub fn found(&self) -> (Option<Vec<String>>, u64, u64) {
        let keys = std::mem::take(&mut *self.met.keys.write().unwrap_or_else(PoisonError::into_inner));
        let mut texts: Vec<_> = keys.texts.into_iter().map(String::from).collect();
        texts.sort_unstable();
        let texts = (!keys.is_full).then_some(texts);
        (texts, self.met.rows.load(Ordering::Relaxed), self.met.nulls.load(Ordering::Relaxed))
    }
}

impl Sink for DistinctSink {
    fn writer(&self) -> Box<dyn Writer> {
        Box::new(DistinctWriter { most: self.most, met: self.met.clone() })
    }

    fn wanted_columns(&self) -> Option<Vec<usize>> {
        Some(vec![self.column])
    }

    fn keeps_rejects(&self) -> bool {
        false
    }

    fn hashes_texts(&self) -> bool {
        false
    }
}

struct DistinctWriter {
    most: usize,
    met: Arc<Met>,
}

impl Writer for DistinctWriter {
    fn write(&mut self, rows: Placed, _origin: Origin, _meter: &StreamMeter) -> Result<bool, CoreError> {
        let column = rows.batch.column(0);
        let Some(texts) = column.as_any().downcast_ref::<StringViewArray>() else {
            return Err(CoreError::new(ErrorKind::Internal, "the parser gave another type of key"));
        };
        self.met.rows.fetch_add(texts.len() as u64, Ordering::Relaxed);
        self.met.nulls.fetch_add(texts.null_count() as u64, Ordering::Relaxed);
        // Mostly all of them are known, so that streams only read.
        let known = self.met.keys.read().unwrap_or_else(PoisonError::into_inner);
        let unknown: Vec<&str> = match known.is_full {
            true => Vec::new(),
            false => texts.iter().flatten().filter(|text| !known.texts.contains(*text)).collect(),
        };
        drop(known);
        if !unknown.is_empty() {
            let mut keys = self.met.keys.write().unwrap_or_else(PoisonError::into_inner);
            unknown.into_iter().for_each(|text| keys.add(text, self.most));
        }
        Ok(true)
    }
}

impl Keys {
    fn add(&mut self, text: &str, most: usize) {
        if self.is_full || self.texts.contains(text) {
            return;
        }
        self.bytes += text.len();
        if self.texts.len() >= most || self.bytes > MOST_BYTES {
            *self = Keys { is_full: true, ..Keys::default() };
        } else {
            self.texts.insert(text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_keys_or_too_much_text_is_no_answer() {
        let mut keys = Keys::default();
        ["b", "a", "b", "a"].into_iter().for_each(|text| keys.add(text, 2));
        assert_eq!((keys.texts.len(), keys.bytes, keys.is_full), (2, 2, false));
        keys.add("c", 2);
        assert!(keys.is_full && keys.texts.is_empty());
        let long = "x".repeat(MOST_BYTES / 2 + 1);
        let mut keys = Keys::default();
        keys.add(&long, 100);
        assert!(!keys.is_full);
        keys.add(&format!("{long}y"), 100);
        assert!(keys.is_full);
    }
}
