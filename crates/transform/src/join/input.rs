//! The rows of one side that are at hand.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;

use super::codes::{Codes, CodesOf, OwnedCode};
use super::range::{KeyRange, RangeEnd};
use super::{Disorder, JoinError, Reason, Side};
use crate::lookup::keys::{self, KeyPlan};

/// One side: its present batch, and how far it has gone.
pub struct Input {
    side: Side,
    keys: Vec<usize>,
    batch: Option<RecordBatch>,
    codes: Codes,
    /// Of the keys; none if every row has one.
    nulls: Option<NullBuffer>,
    /// The first row that has not gone its way.
    next: usize,
    is_ended: bool,
    /// The first key.
    first: Option<RangeEnd>,
    /// The last row of the batches before that has a key.
    last: Option<Last>,
    counts: InputCounts,
}

struct Last {
    row: u64,
    end: RangeEnd,
}

/// What has become of the rows of a side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputCounts {
    /// Rows that were pushed.
    pub rows: u64,
    /// Rows that have met none of the other side, those without a key included.
    pub unmatched: u64,
    /// Rows of which a key column was NULL.
    pub null_keys: u64,
}

impl Input {
    pub fn new(side: Side, keys: Vec<usize>) -> Self {
        Input {
            side,
            keys,
            batch: None,
            codes: Codes::default(),
            nulls: None,
            next: 0,
            is_ended: false,
            first: None,
            last: None,
            counts: InputCounts::default(),
        }
    }

    pub fn side(&self) -> Side {
        self.side
    }

    pub fn counts(&self) -> InputCounts {
        self.counts
    }

    pub fn batch(&self) -> Option<&RecordBatch> {
        self.batch.as_ref()
    }

    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Whether all rows at hand have gone, and more may come.
    pub fn is_needed(&self) -> bool {
        !self.is_ended && self.rows_left() == 0
    }

    pub fn rows_left(&self) -> usize {
        self.rows() - self.next
    }

    fn rows(&self) -> usize {
        self.batch.as_ref().map_or(0, RecordBatch::num_rows)
    }

    /// Takes the next batch, whose order is proven here. `number`: of each of its rows, for errors.
    pub fn push(&mut self, plan: &KeyPlan, batch: RecordBatch, number: &dyn Fn(usize) -> u64) -> Result<(), JoinError> {
        if !self.is_needed() {
            return Err(JoinError::NotNeeded(self.side));
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let arrays: Vec<ArrayRef> = self.keys.iter().map(|&key| batch.column(key).clone()).collect();
        let keys = plan.read(keys::Side::Input, &arrays)?;
        let union = |nulls: Option<NullBuffer>, array: &ArrayRef| NullBuffer::union(nulls.as_ref(), array.nulls());
        self.nulls = arrays.iter().fold(None, union).filter(|nulls| nulls.null_count() > 0);
        self.codes = std::mem::take(&mut self.codes).read(plan, &keys, |row| is_null(self.nulls.as_ref(), row));
        if let Some(at) = self.against_order() {
            let place = |row: usize| (number(row), Some(row), keys.values(row));
            let of_last = |last: &Last| (last.row, None, last.end.key.clone());
            let previous = at.previous.map(place).or(self.last.as_ref().map(of_last)).unwrap_or_default();
            let (previous_row, previous_in_batch, previous_key) = previous;
            return Err(JoinError::Disorder(Box::new(Disorder {
                side: self.side,
                reason: at.reason,
                row: number(at.row),
                row_in_batch: at.row,
                key: keys.values(at.row),
                previous_row,
                previous_in_batch,
                previous_key,
            })));
        }
        let has_key = |row: &usize| !is_null(self.nulls.as_ref(), *row);
        let end = |row: usize| RangeEnd { code: self.codes.owned(row), key: keys.values(row) };
        if self.first.is_none() {
            self.first = (0..batch.num_rows()).find(has_key).map(end);
        }
        if let Some(row) = (0..batch.num_rows()).rev().find(has_key) {
            self.last = Some(Last { row: number(row), end: end(row) });
        }
        self.counts.rows += batch.num_rows() as u64;
        self.counts.null_keys += self.nulls.as_ref().map_or(0, NullBuffer::null_count) as u64;
        self.next = 0;
        self.batch = Some(batch);
        Ok(())
    }

    /// Gives up rows that have all gone.
    pub fn release(&mut self) {
        if self.rows_left() == 0 {
            (self.batch, self.next) = (None, 0);
        }
    }

    fn against_order(&self) -> Option<Against> {
        let nulls = self.nulls.as_ref();
        match (&self.codes, self.last.as_ref().map(|last| &last.end.code)) {
            (Codes::Numbers(codes), Some(OwnedCode::Number(last))) => {
                against_order(self.side, codes, codes.len(), Some(*last), nulls)
            }
            (Codes::Numbers(codes), _) => against_order(self.side, codes, codes.len(), None, nulls),
            (Codes::Bytes(codes), Some(OwnedCode::Bytes(last))) => {
                against_order(self.side, codes, codes.rows(), Some(&last[..]), nulls)
            }
            (Codes::Bytes(codes), _) => against_order(self.side, codes, codes.rows(), None, nulls),
        }
    }

    /// The first and the last key so far; none as long as no row had one.
    pub fn range(&self) -> Option<KeyRange> {
        let (first, last) = (self.first.clone()?, self.last.as_ref()?.end.clone());
        Some(KeyRange { first, last })
    }

    pub fn codes(&self) -> &Codes {
        &self.codes
    }

    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.nulls.as_ref()
    }

    /// The first row that has not gone, and the one behind the last.
    pub fn window(&self) -> (usize, usize) {
        (self.next, self.rows())
    }

    /// Rows before this one have gone, so many of them alone.
    pub fn advance(&mut self, next: usize, unmatched: u64) {
        self.next = next;
        self.counts.unmatched += unmatched;
    }
}

struct Against {
    row: usize,
    previous: Option<usize>,
    reason: Reason,
}

pub fn is_null(nulls: Option<&NullBuffer>, row: usize) -> bool {
    nulls.is_some_and(|nulls| nulls.is_null(row))
}

/// The first row whose key is against the order.
fn against_order<'a, C: CodesOf>(
    side: Side,
    codes: &'a C,
    rows: usize,
    last: Option<C::Code<'a>>,
    nulls: Option<&NullBuffer>,
) -> Option<Against> {
    let reason = |before: C::Code<'a>, code: C::Code<'a>| match side {
        _ if code < before => Some(Reason::Descends),
        Side::Left if code == before => Some(Reason::Repeats),
        _ => None,
    };
    let (mut before, mut previous) = (last, None);
    for row in (0..rows).filter(|row| !is_null(nulls, *row)) {
        let code = codes.at(row);
        if let Some(reason) = before.and_then(|before| reason(before, code)) {
            return Some(Against { row, previous, reason });
        }
        (before, previous) = (Some(code), Some(row));
    }
    None
}
