//! How many rows and bytes a chunk has, without generating it.

use tpchgen::generators::OrderGenerator;

use crate::chunk::TpchChunk;
use crate::error::GenerateError;
use crate::rows::digit_count;
use crate::table::TpchTable;

/// Number of rows of a chunk before it is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCount {
    /// Exactly so many.
    Exact(u64),
    /// About so many: LINEITEM has one to seven lines per order, drawn at random, four on average.
    Estimate(u64),
}

impl RowCount {
    /// The number, exact or not.
    #[must_use]
    pub const fn rows(self) -> u64 {
        match self {
            Self::Exact(rows) | Self::Estimate(rows) => rows,
        }
    }
}

/// Number of rows of a chunk: exact for all tables but LINEITEM.
///
/// # Errors
/// As [`TpchChunk::new`].
pub fn expected_rows(table: TpchTable, scale: f64, chunk: u32, chunks: u32) -> Result<RowCount, GenerateError> {
    Ok(TpchChunk::new(table, scale, chunk, chunks)?.expected_rows())
}

/// Bytes of the text of a chunk, for checks of disk space: see [`TpchChunk::estimated_bytes`].
///
/// # Errors
/// As [`TpchChunk::new`].
pub fn estimated_bytes(table: TpchTable, scale: f64, chunk: u32, chunks: u32) -> Result<u64, GenerateError> {
    Ok(TpchChunk::new(table, scale, chunk, chunks)?.estimated_bytes())
}

/// Mean and deviation of the bytes of one row without its keys, measured at scale 1, from which
/// on the distributions of all other columns stay as they are (below they are a little shorter).
struct RestOfRow {
    mean: f64,
    deviation: f64,
}

impl RestOfRow {
    const fn of(table: TpchTable) -> Self {
        let (mean, deviation) = match table {
            TpchTable::Region | TpchTable::Nation => (0.0, 0.0),
            TpchTable::Supplier => (128.0, 24.7),
            TpchTable::Customer => (148.1, 27.2),
            TpchTable::Part => (115.24, 7.0),
            TpchTable::Partsupp => (139.4, 43.4),
            TpchTable::Orders => (102.57, 17.9),
            TpchTable::Lineitem => (110.5, 11.3),
        };
        Self { mean, deviation }
    }
}

/// Bytes of REGION and NATION, which never change.
const REGION_BYTES: u64 = 389;
const NATION_BYTES: u64 = 2224;
/// Standard deviation of the lines per order: 1 to 7, all equally likely.
const LINES_PER_ORDER_DEVIATION: f64 = 2.0;
/// Added to the mean, so that the estimate is not below the truth: what the means are off ...
const MARGIN_SHARE: f64 = 0.002;
/// ... and what chance adds, in standard deviations.
const MARGIN_DEVIATIONS: f64 = 5.0;

impl TpchChunk {
    /// Number of rows: exact for all tables but LINEITEM.
    #[must_use]
    pub fn expected_rows(&self) -> RowCount {
        let (_, units) = self.unit_range();
        match self.table() {
            TpchTable::Partsupp => RowCount::Exact(4 * units),
            TpchTable::Lineitem => RowCount::Estimate(4 * units),
            _ => RowCount::Exact(units),
        }
    }

    /// Bytes of the text: a few per cent too many (more for chunks of few rows), at scales from
    /// 0.01 on never too few.
    #[must_use]
    pub fn estimated_bytes(&self) -> u64 {
        let (first, units) = self.unit_range();
        if units == 0 {
            return 0;
        }
        let table = self.table();
        match table {
            TpchTable::Region => return REGION_BYTES,
            TpchTable::Nation => return NATION_BYTES,
            _ => {}
        }
        let rows = self.expected_rows().rows() as f64;
        let rest = RestOfRow::of(table);
        let mean = self.key_bytes(first, units) + rows * rest.mean;
        let mut deviation = rest.deviation * rows.sqrt();
        if table == TpchTable::Lineitem {
            deviation += LINES_PER_ORDER_DEVIATION * (units as f64).sqrt() * mean / rows;
        }
        (mean * (1.0 + MARGIN_SHARE) + MARGIN_DEVIATIONS * deviation).ceil() as u64
    }

    /// Digits of the keys, whose length depends on the scale and on where the chunk lies.
    fn key_bytes(&self, first: u64, units: u64) -> f64 {
        let rows = self.expected_rows().rows() as f64;
        // Keys are numbered from 1.
        let numbers = || mean_digits(first + 1, first + units, |number| number);
        let order_keys =
            || mean_digits(first + 1, first + units, |number| OrderGenerator::make_order_key(number as i64) as u64);
        let foreign = |per_scale: f64| mean_digits(1, ((per_scale * self.scale()) as u64).max(1), |number| number);
        rows * match self.table() {
            TpchTable::Region | TpchTable::Nation => 0.0,
            // The names of suppliers and customers hold the number again, in at least 9 digits.
            TpchTable::Supplier | TpchTable::Customer => numbers() + numbers().max(9.0),
            TpchTable::Part => numbers(),
            TpchTable::Partsupp => numbers() + foreign(10_000.0),
            TpchTable::Orders => order_keys() + foreign(150_000.0),
            TpchTable::Lineitem => order_keys() + foreign(200_000.0) + foreign(10_000.0),
        }
    }
}

/// Mean number of digits of `key(number)` for `number` from `first` to `last`, where `key` rises
/// with its argument.
fn mean_digits(first: u64, last: u64, key: impl Fn(u64) -> u64) -> f64 {
    let mut total = 0;
    let mut from = first;
    while from <= last {
        let digits = digit_count(key(from));
        // The last number whose key has as many digits, by bisection.
        let (mut low, mut high) = (from, last);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if digit_count(key(middle)) == digits {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        total += digits as u64 * (low - from + 1);
        from = low + 1;
    }
    total as f64 / (last - first + 1) as f64
}
