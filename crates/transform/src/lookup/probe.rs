//! Looking for rows: a batch of keys, a tile at a time.

use arrow_array::{ArrayRef, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::ArrowError;

use super::error::WrongArray;
use super::keys::{ByteTile, KeyBatch, Side, TILE_ROWS};
use super::table::{Found, Table};
use super::{Added, LookupIndex};

/// The payload of a row whose key is in no row of the lookup.
pub const NO_MATCH: u32 = u32::MAX;
/// The payload of a row of which a key column is NULL.
pub const NULL_KEY: u32 = u32::MAX - 1;

/// What the rows of a batch have found.
#[derive(Debug, Clone)]
pub struct Probed {
    payloads: ScalarBuffer<u32>,
    matched: usize,
    null_keys: usize,
}

impl Probed {
    /// For each row [`NO_MATCH`], [`NULL_KEY`], or a number below both, of which only the index knows what it means.
    pub fn payloads(&self) -> &[u32] {
        &self.payloads
    }

    /// Rows that have found one.
    pub fn matched(&self) -> usize {
        self.matched
    }

    /// Rows whose key is in no row of the lookup.
    pub fn not_matched(&self) -> usize {
        self.payloads.len() - self.matched - self.null_keys
    }

    /// Rows of which a key column is NULL.
    pub fn null_keys(&self) -> usize {
        self.null_keys
    }

    /// Whether a row has found one.
    pub fn is_match(&self, row: usize) -> bool {
        self.payloads[row] < NULL_KEY
    }

    fn all_matched(&self) -> bool {
        self.matched == self.payloads.len()
    }
}

impl LookupIndex {
    /// What the rows of a batch find by their keys: the arrays of the key columns, of the types of the input.
    ///
    /// # Errors
    /// Another number of arrays, or one of another type or length.
    pub fn probe(&self, keys: &[ArrayRef]) -> Result<Probed, WrongArray> {
        let batch = self.keys.read(Side::Input, keys)?;
        let mut payloads = vec![0; batch.rows()];
        let null_keys = match &self.table {
            Table::Direct(table) => numbers(&batch, &mut payloads, |keys, found| table.find(keys, found)),
            Table::Narrow(table) => numbers(&batch, &mut payloads, |keys, found| table.find(self.seed, keys, found)),
            Table::Wide(table) => numbers(&batch, &mut payloads, |keys, found| table.find(self.seed, keys, found)),
            Table::Short(table) => bytes(&batch, &mut payloads, |keys, found| table.find(self.seed, keys, found)),
            Table::Hashed(table) => bytes(&batch, &mut payloads, |keys, found| table.find(self.seed, keys, found)),
        };
        let matched = payloads.iter().filter(|payload| **payload < NULL_KEY).count();
        Ok(Probed { payloads: payloads.into(), matched, null_keys })
    }

    /// The added columns of those rows, in their order. Rows that have found nothing get the default.
    ///
    /// # Errors
    /// Those of Arrow; none for what [`LookupIndex::probe`] of this index has told.
    pub fn gather(&self, probed: &Probed) -> Result<Vec<ArrayRef>, ArrowError> {
        let columns = match &self.added {
            Added::Inline(column) => {
                return Ok(vec![column.gather(
                    &probed.payloads,
                    |payload| payload >= NULL_KEY,
                    !probed.all_matched(),
                )?]);
            }
            Added::Stored(columns) => columns,
        };
        if probed.all_matched() {
            let rows = UInt32Array::new(probed.payloads.clone(), None);
            return columns.iter().map(|column| column.gather(&rows)).collect();
        }
        // The default is behind the last row, and the marks are greater: so there is no branch.
        let last = self.stored_rows();
        let rows = UInt32Array::from_iter_values(probed.payloads.iter().map(|payload| (*payload).min(last)));
        columns.iter().map(|column| column.gather_or_default(&rows)).collect()
    }
}

fn numbers(batch: &KeyBatch<'_>, payloads: &mut [u32], mut find: impl FnMut(&[i64], &mut [Found])) -> usize {
    let mut keys = [0; TILE_ROWS];
    tiles(batch, payloads, |first, found| {
        let keys = &mut keys[..found.len()];
        let outside = batch.numbers(first, keys);
        find(keys, found);
        outside
    })
}

fn bytes(batch: &KeyBatch<'_>, payloads: &mut [u32], find: impl Fn(&ByteTile, &mut [Found])) -> usize {
    let mut keys = ByteTile::default();
    tiles(batch, payloads, |first, found| {
        let outside = batch.bytes(first, found.len(), &mut keys);
        find(&keys, found);
        outside
    })
}

/// Calls `find` with every tile; it tells which keys are outside of the lookup's types. Rows that have no key.
#[inline(always)]
fn tiles(batch: &KeyBatch<'_>, payloads: &mut [u32], mut find: impl FnMut(usize, &mut [Found]) -> u64) -> usize {
    let mut null_keys = 0;
    for (tile, found) in payloads.chunks_mut(TILE_ROWS).enumerate() {
        let first = tile * TILE_ROWS;
        let outside = find(first, found);
        // Nothing was 0, and is NO_MATCH now.
        found.iter_mut().for_each(|found| *found = found.wrapping_sub(1));
        let nulls = batch.nulls(first, found.len());
        mark(found, outside, NO_MATCH);
        mark(found, nulls, NULL_KEY);
        null_keys += nulls.count_ones() as usize;
    }
    null_keys
}

fn mark(payloads: &mut [u32], mut rows: u64, payload: u32) {
    rows &= u64::MAX >> (TILE_ROWS - payloads.len());
    while rows != 0 {
        payloads[rows.trailing_zeros() as usize] = payload;
        rows &= rows - 1;
    }
}
