//! The text of a chunk, produced piece by piece.

use std::hint::black_box;
use std::io::{self, Read};

use tpchgen::generators::{
    CustomerGenerator, CustomerGeneratorIterator, LineItem, LineItemGenerator, LineItemGeneratorIterator,
    NationGenerator, NationGeneratorIterator, OrderGenerator, OrderGeneratorIterator, PartGenerator,
    PartGeneratorIterator, PartSuppGenerator, PartSuppGeneratorIterator, RegionGenerator, RegionGeneratorIterator,
    SupplierGenerator, SupplierGeneratorIterator,
};

use crate::chunk::{TpchChunk, TpchPart};
use crate::error::GenerateError;
use crate::rows::{MAXIMUM_ROW_BYTES, RowWriter, TblRow};
use crate::table::TpchTable;

/// Suppliers of one part in PARTSUPP.
const SUPPLIERS_PER_PART: u64 = 4;
/// Rows of a [`Batches`]: enough for the loads to overlap, few enough for the first-level cache.
const BATCH_ROWS: usize = 32;
/// See [`TpchText::fill`].
const FILL_STEP_BYTES: usize = 64 * 1024;
/// Text kept for a reader whose buffer is too small for a row.
const PENDING_BYTES: usize = 8 * MAXIMUM_ROW_BYTES;

/// What one call produced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filled {
    /// Bytes of text.
    pub bytes: usize,
    /// Whole rows.
    pub rows: u64,
    /// Whether the text has ended: there is nothing after these rows.
    pub ended: bool,
}

/// The text of a chunk (or a part of one) in the benchmark's TBL format: every field is followed
/// by `|`, every row by a line feed; ASCII only.
///
/// Making the first one of a process fills the 300 MB text pool that all comments are cut from
/// (about a second); it stays until the process ends. All instances share it.
pub struct TpchText {
    rows: Rows,
    rows_produced: u64,
    /// For [`Read`]: text that did not fit the caller's buffer.
    pending: Vec<u8>,
    pending_at: usize,
}

enum Rows {
    Ended,
    Region(Batches<RegionGeneratorIterator<'static>>),
    Nation(Batches<NationGeneratorIterator<'static>>),
    Supplier(Batches<SupplierGeneratorIterator<'static>>),
    Customer(Batches<CustomerGeneratorIterator<'static>>),
    Part(Batches<PartGeneratorIterator<'static>>),
    Partsupp(Batches<PartSuppGeneratorIterator<'static>>),
    Orders(Batches<OrderGeneratorIterator<'static>>),
    Lineitem(Batches<LinesOfOrders>),
}

impl TpchText {
    /// The text of chunk `chunk` (from 1) of `chunks`.
    ///
    /// # Errors
    /// As [`TpchChunk::new`].
    pub fn new(table: TpchTable, scale: f64, chunk: u32, chunks: u32) -> Result<Self, GenerateError> {
        Ok(Self::of_part(&TpchChunk::new(table, scale, chunk, chunks)?.whole()))
    }

    /// The text of a part.
    #[must_use]
    pub fn of_part(part: &TpchPart) -> Self {
        Self { rows: Rows::of_part(part), rows_produced: 0, pending: Vec::new(), pending_at: 0 }
    }

    /// Rows produced so far, including those of which [`Read`] has only given a part away.
    #[must_use]
    pub const fn rows_produced(&self) -> u64 {
        self.rows_produced
    }

    /// Appends whole rows to `out` until it has grown by `at_least_bytes` or the text has ended.
    /// It grows by less than 512 bytes more. Do not mix with [`Read`].
    pub fn fill(&mut self, out: &mut Vec<u8>, at_least_bytes: usize) -> Filled {
        let mut all = Filled::default();
        while all.bytes < at_least_bytes && !all.ended {
            // In steps that stay in the cache between being cleared and being written.
            let step = (at_least_bytes - all.bytes).min(FILL_STEP_BYTES);
            let begin = out.len();
            // A row is started only where the longest would fit.
            out.resize(begin + step + MAXIMUM_ROW_BYTES - 1, 0);
            let filled = self.fill_slice(&mut out[begin..]);
            out.truncate(begin + filled.bytes);
            all.bytes += filled.bytes;
            all.rows += filled.rows;
            all.ended = filled.ended;
        }
        all
    }

    /// Writes whole rows to the beginning of `out` until fewer than 512 bytes are left or the text
    /// has ended. Do not mix with [`Read`].
    pub fn fill_slice(&mut self, out: &mut [u8]) -> Filled {
        let mut writer = RowWriter::new(out);
        let (rows, ended) = self.rows.write(&mut writer);
        if ended {
            self.rows = Rows::Ended;
        }
        self.rows_produced += rows;
        Filled { bytes: writer.length(), rows, ended }
    }
}

impl Read for TpchText {
    /// Never fails; 0 bytes only at the end of the text or for an empty buffer.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.pending_at == self.pending.len() {
            if out.len() >= MAXIMUM_ROW_BYTES {
                return Ok(self.fill_slice(out).bytes);
            }
            let mut pending = std::mem::take(&mut self.pending);
            pending.clear();
            self.fill(&mut pending, PENDING_BYTES);
            self.pending = pending;
            self.pending_at = 0;
        }
        let left = &self.pending[self.pending_at..];
        let taken = left.len().min(out.len());
        out[..taken].copy_from_slice(&left[..taken]);
        self.pending_at += taken;
        Ok(taken)
    }
}

impl Rows {
    fn of_part(part: &TpchPart) -> Self {
        let (scale, rows) = (part.scale, part.units);
        if rows == 0 {
            return Self::Ended;
        }
        // Both fit: chunks and splits are limited to what an i32 holds.
        let (number, count) = (part.library_part as i32, part.library_parts as i32);
        match part.table {
            TpchTable::Region => Self::Region(Batches::new(RegionGenerator::new(scale, number, count).iter(), rows)),
            TpchTable::Nation => Self::Nation(Batches::new(NationGenerator::new(scale, number, count).iter(), rows)),
            TpchTable::Supplier => {
                Self::Supplier(Batches::new(SupplierGenerator::new(scale, number, count).iter(), rows))
            }
            TpchTable::Customer => {
                Self::Customer(Batches::new(CustomerGenerator::new(scale, number, count).iter(), rows))
            }
            TpchTable::Part => Self::Part(Batches::new(PartGenerator::new(scale, number, count).iter(), rows)),
            TpchTable::Partsupp => Self::Partsupp(Batches::new(
                PartSuppGenerator::new(scale, number, count).iter(),
                rows * SUPPLIERS_PER_PART,
            )),
            TpchTable::Orders => Self::Orders(Batches::new(OrderGenerator::new(scale, number, count).iter(), rows)),
            TpchTable::Lineitem => Self::Lineitem(Batches::new(
                LinesOfOrders {
                    lines: LineItemGenerator::new(scale, number, count).iter(),
                    // Orders are numbered from 1, and their keys rise with their numbers.
                    end_order_key: OrderGenerator::make_order_key((part.first_unit + part.units + 1) as i64),
                },
                u64::MAX,
            )),
        }
    }

    /// Writes rows while there is room; returns their number and whether they have ended.
    fn write(&mut self, out: &mut RowWriter<'_>) -> (u64, bool) {
        match self {
            Self::Ended => (0, true),
            Self::Region(rows) => rows.write(out),
            Self::Nation(rows) => rows.write(out),
            Self::Supplier(rows) => rows.write(out),
            Self::Customer(rows) => rows.write(out),
            Self::Part(rows) => rows.write(out),
            Self::Partsupp(rows) => rows.write(out),
            Self::Orders(rows) => rows.write(out),
            Self::Lineitem(rows) => rows.write(out),
        }
    }
}

/// The lines of orders up to a last one. The library can be told where to begin, but its end is
/// the end of one of its own parts.
struct LinesOfOrders {
    lines: LineItemGeneratorIterator<'static>,
    /// The first order key that is not wanted any more.
    end_order_key: i64,
}

impl Iterator for LinesOfOrders {
    type Item = LineItem<'static>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.lines.next().filter(|line| line.l_orderkey < self.end_order_key)
    }
}

/// Rows are generated some at a time, and their comments touched, before they are written: every
/// comment is a cache miss in the 300 MB text pool, and only loads that follow each other closely
/// overlap. This alone
/// nearly doubles the speed of LINEITEM.
struct Batches<I: Iterator> {
    rows: I,
    /// Rows still to be taken from `rows`.
    left: u64,
    batch: Vec<I::Item>,
    /// First row of `batch` that is not written yet.
    batch_at: usize,
}

impl<I> Batches<I>
where
    I: Iterator,
    I::Item: TblRow,
{
    fn new(rows: I, left: u64) -> Self {
        Self { rows, left, batch: Vec::with_capacity(BATCH_ROWS), batch_at: 0 }
    }

    fn next_batch(&mut self) {
        self.batch.clear();
        self.batch_at = 0;
        let wanted = self.left.min(BATCH_ROWS as u64) as usize;
        while self.batch.len() < wanted {
            match self.rows.next() {
                Some(row) => self.batch.push(row),
                None => {
                    // There is nothing behind the rows that were found.
                    self.left = self.batch.len() as u64;
                    break;
                }
            }
        }
        self.left -= self.batch.len() as u64;
        let touched = self.batch.iter().fold(0, |touched, row| {
            let comment = row.comment();
            touched ^ comment.first().unwrap_or(&0) ^ comment.last().unwrap_or(&0)
        });
        black_box(touched);
    }

    fn write(&mut self, out: &mut RowWriter<'_>) -> (u64, bool) {
        let mut written = 0;
        loop {
            if self.batch_at == self.batch.len() {
                if self.left == 0 {
                    return (written, true);
                }
                self.next_batch();
            }
            while let Some(row) = self.batch.get(self.batch_at) {
                if !out.has_room() {
                    return (written, false);
                }
                row.write(out);
                self.batch_at += 1;
                written += 1;
            }
        }
    }
}
