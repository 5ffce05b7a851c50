//! Chunks of a table, and exact parts of a chunk.

use crate::error::GenerateError;
use crate::table::TpchTable;

/// Below this scale SUPPLIER is empty and LINEITEM has nothing to refer to.
pub const MINIMUM_SCALE: f64 = 0.0001;
/// The largest scale of the benchmark.
pub const MAXIMUM_SCALE: f64 = 100_000.0;
/// More chunks than this are a mistake: at the largest scale they hold 750 MB of LINEITEM each.
pub const MAXIMUM_CHUNKS: u32 = 100_000;

/// Up to this scale all keys fit the 32-bit random numbers of the benchmark (200,000 parts per
/// unit of scale); `tpchgen` changes to 64-bit numbers only at [`FIRST_SCALE_OF_64_BITS`], between
/// the two it would wrap around and produce negative part and customer keys.
const LAST_SCALE_OF_32_BITS: f64 = 10_737.0;
/// From here on part and customer keys come from the benchmark's 64-bit random numbers.
const FIRST_SCALE_OF_64_BITS: f64 = 30_000.0;

/// One chunk of one table at one scale: the content of one file. Checked when made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TpchChunk {
    table: TpchTable,
    scale: f64,
    chunk: u32,
    chunks: u32,
}

impl TpchChunk {
    /// Chunk number `chunk` (from 1) of `chunks` of `table`.
    ///
    /// # Errors
    /// A scale that is not a number from [`MINIMUM_SCALE`] to [`MAXIMUM_SCALE`] or lies between
    /// 10737 and 30000, a number of chunks that is not from 1 to [`MAXIMUM_CHUNKS`], or a chunk
    /// that is not within them.
    pub fn new(table: TpchTable, scale: f64, chunk: u32, chunks: u32) -> Result<Self, GenerateError> {
        // A NaN is in no range.
        if !(MINIMUM_SCALE..=MAXIMUM_SCALE).contains(&scale) {
            return Err(GenerateError::ScaleOutOfRange { scale });
        }
        if scale > LAST_SCALE_OF_32_BITS && scale < FIRST_SCALE_OF_64_BITS {
            return Err(GenerateError::ScaleNotSupported { scale });
        }
        if !(1..=MAXIMUM_CHUNKS).contains(&chunks) {
            return Err(GenerateError::ChunksOutOfRange { chunks });
        }
        if !(1..=chunks).contains(&chunk) {
            return Err(GenerateError::ChunkOutOfRange { chunk, chunks });
        }
        Ok(Self { table, scale, chunk, chunks })
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> TpchTable {
        self.table
    }

    /// The scale factor.
    #[must_use]
    pub const fn scale(&self) -> f64 {
        self.scale
    }

    /// The number of this chunk, from 1.
    #[must_use]
    pub const fn chunk(&self) -> u32 {
        self.chunk
    }

    /// The number of chunks of the table.
    #[must_use]
    pub const fn chunks(&self) -> u32 {
        self.chunks
    }

    /// The file name, see [`TpchTable::file_name`].
    #[must_use]
    pub fn file_name(&self) -> String {
        self.table.file_name(self.chunk, self.chunks)
    }

    /// The units (orders for LINEITEM, parts for PARTSUPP, else rows) of the whole table, as
    /// `tpchgen` computes them; for the fixed tables their rows.
    pub(crate) fn table_units(&self) -> u64 {
        match self.table.units_per_scale() {
            Some(units) => (units * self.scale) as u64,
            None if self.table == TpchTable::Region => 5,
            None => 25,
        }
    }

    /// First unit (from 0) and number of units of this chunk, as `tpchgen` cuts a table: equal
    /// chunks, the last one takes what is left over.
    pub(crate) fn unit_range(&self) -> (u64, u64) {
        let table_units = self.table_units();
        if !self.table.is_chunked() {
            return (0, if self.chunk == 1 { table_units } else { 0 });
        }
        let (chunk, chunks) = (u64::from(self.chunk), u64::from(self.chunks));
        let each = table_units / chunks;
        let left_over = if chunk == chunks { table_units % chunks } else { 0 };
        (each * (chunk - 1), each + left_over)
    }

    /// The whole chunk as one part.
    #[must_use]
    pub fn whole(&self) -> TpchPart {
        let (first_unit, units) = self.unit_range();
        TpchPart {
            table: self.table,
            scale: self.scale,
            library_part: self.chunk,
            library_parts: self.chunks,
            first_unit,
            units,
        }
    }

    /// Cuts the chunk into about `wanted` parts of nearly equal size that can be generated
    /// independently, in any order, on any thread; their texts one after the other are exactly the
    /// text of the chunk. A chunk of few units may have up to twice as many parts, because each
    /// part has a whole number of them.
    ///
    /// `tpchgen` can start only where some part of some number of equal parts starts, but may be
    /// stopped anywhere. So the inner cuts are made at the starts of its parts for `chunks *
    /// wanted`: the first part begins with the chunk itself and is stopped at the first such
    /// start, the last one is stopped at the end of the chunk. Nothing is generated twice.
    ///
    /// Not cut are the fixed tables, and ORDERS and LINEITEM at scale 30000 and above: their
    /// 64-bit random numbers are advanced (as in the benchmark's own program) in another way than
    /// they are drawn, so that a part which starts elsewhere has other keys.
    #[must_use]
    pub fn split(&self, wanted: u64) -> TpchSplit {
        let whole = self.whole();
        let uncut = TpchSplit { whole, fine_parts: 0, fine_units: 0, first_fine: 0, len: 1 };
        let each = self.table_units() / u64::from(self.chunks);
        let most = i32::MAX.unsigned_abs() / self.chunks;
        let wanted = wanted.min(each).min(u64::from(most));
        if wanted < 2 || !self.table.is_chunked() || self.draws_64_bits() {
            return uncut;
        }
        let fine_parts = self.chunks * wanted as u32;
        let fine_units = self.table_units() / u64::from(fine_parts);
        let end = whole.first_unit + whole.units;
        let mut first_fine = whole.first_unit / fine_units + 1;
        if first_fine * fine_units - whole.first_unit < fine_units / 2 {
            first_fine += 1;
        }
        // `fine_parts` is the end of the table: what is left over belongs to the last part.
        let end_fine = end.div_ceil(fine_units).min(u64::from(fine_parts));
        if first_fine >= end_fine {
            return uncut;
        }
        TpchSplit { whole, fine_parts, fine_units, first_fine, len: 1 + end_fine - first_fine }
    }

    /// The parts of [`Self::split`] in order.
    #[must_use]
    pub fn sub_parts(&self, wanted: u64) -> Vec<TpchPart> {
        let split = self.split(wanted);
        (0..split.len()).filter_map(|number| split.part(number)).collect()
    }

    /// Whether the keys are drawn as 64-bit random numbers.
    fn draws_64_bits(&self) -> bool {
        matches!(self.table, TpchTable::Orders | TpchTable::Lineitem) && self.scale >= FIRST_SCALE_OF_64_BITS
    }
}

/// A run of units of one table that can be generated by itself: a chunk or an exact part of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TpchPart {
    pub(crate) table: TpchTable,
    pub(crate) scale: f64,
    /// The part of the library, from 1, whose start is the start of this part ...
    pub(crate) library_part: u32,
    /// ... when the table is cut into this many.
    pub(crate) library_parts: u32,
    pub(crate) first_unit: u64,
    pub(crate) units: u64,
}

impl TpchPart {
    /// The table.
    #[must_use]
    pub const fn table(&self) -> TpchTable {
        self.table
    }

    /// Number of the first unit, from 0. A unit is an order with its lines (ORDERS and LINEITEM),
    /// a part with its four suppliers (PART and PARTSUPP), else a row.
    #[must_use]
    pub const fn first_unit(&self) -> u64 {
        self.first_unit
    }

    /// Number of units.
    #[must_use]
    pub const fn units(&self) -> u64 {
        self.units
    }
}

/// A chunk cut into parts, which are computed when asked for: a large chunk has millions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TpchSplit {
    whole: TpchPart,
    fine_parts: u32,
    fine_units: u64,
    first_fine: u64,
    len: u64,
}

impl TpchSplit {
    /// Number of parts, at least 1.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Never: a chunk without rows still has one part, which is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Part `number` (from 0), `None` from [`Self::len`] on.
    #[must_use]
    pub fn part(&self, number: u64) -> Option<TpchPart> {
        if number >= self.len {
            return None;
        }
        let end = self.whole.first_unit + self.whole.units;
        if number == 0 {
            let end = if self.len == 1 { end } else { self.first_fine * self.fine_units };
            return Some(TpchPart { units: end - self.whole.first_unit, ..self.whole });
        }
        let fine = self.first_fine + number - 1;
        let first_unit = fine * self.fine_units;
        let units = if number + 1 == self.len { end - first_unit } else { self.fine_units };
        Some(TpchPart {
            library_part: u32::try_from(fine + 1).ok()?,
            library_parts: self.fine_parts,
            first_unit,
            units,
            ..self.whole
        })
    }
}
