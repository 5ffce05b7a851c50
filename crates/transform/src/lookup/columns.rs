//! Added columns: appended by every thread to chunks of its own, then stored once, and gathered by row.

use std::ops::Range;

use arrow_array::builder::{ArrayBuilder, GenericByteViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{Array, ArrayRef, GenericByteViewArray, UInt32Array, make_array, new_null_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;
use headrace_types::ColumnType;

use super::budget::Budget;
use super::huge_pages;
use super::{AddedColumn, BuildError};

/// Bytes of a view of a text.
const VIEW_BYTES: u64 = 16;
/// Longest text that is in its view.
const LONGEST_INLINE: usize = 12;
/// Texts of a chunk stand in pieces of so many bytes; a longer text is a piece of its own. Batches that are gathered
/// name all pieces, so these are not small; of a piece only what is written takes memory.
const PIECE_BYTES: u32 = 16 << 20;

/// What a thread has appended to one column in one chunk.
pub enum ColumnChunk {
    /// Values of a fixed number of bytes.
    Fixed { width: usize, bytes: MutableBuffer, nulls: NullBufferBuilder },
    /// Truth values, a bit each.
    Truths { bits: BooleanBufferBuilder, nulls: NullBufferBuilder },
    /// Texts.
    Texts(Views<StringViewType>),
    /// Bytes.
    Bytes(Views<BinaryViewType>),
}

/// Views, and bytes of the pieces that they are of.
pub struct Views<T: ByteViewType> {
    builder: GenericByteViewBuilder<T>,
    piece_bytes: u64,
    has_nulls: bool,
}

impl ColumnChunk {
    /// Of that Arrow type, one of those that columns have.
    pub fn new(data_type: &DataType) -> Result<Self, BuildError> {
        let nulls = NullBufferBuilder::new(0);
        let fixed =
            |width| ColumnChunk::Fixed { width, bytes: MutableBuffer::new(0), nulls: NullBufferBuilder::new(0) };
        Ok(match data_type {
            DataType::Boolean => ColumnChunk::Truths { bits: BooleanBufferBuilder::new(0), nulls },
            DataType::Utf8View => ColumnChunk::Texts(Views::new()),
            DataType::BinaryView => ColumnChunk::Bytes(Views::new()),
            DataType::FixedSizeBinary(width) => fixed(*width as usize),
            other => match other.primitive_width() {
                Some(width) => fixed(width),
                None => return Err(BuildError::Specification(format!("no column is of type {other}"))),
            },
        })
    }

    /// Appends rows of an array of the column's type.
    pub fn append(&mut self, array: &dyn Array, rows: &[Range<usize>]) {
        match self {
            ColumnChunk::Fixed { width, bytes, nulls } => {
                let data = array.to_data();
                let values = data.buffers()[0].as_slice();
                for rows in rows {
                    let [first, end] = [rows.start, rows.end].map(|row| (data.offset() + row) * *width);
                    bytes.extend_from_slice(&values[first..end]);
                }
                append_nulls(nulls, array, rows);
            }
            ColumnChunk::Truths { bits, nulls } => {
                for rows in rows {
                    bits.append_buffer(&array.as_boolean().values().slice(rows.start, rows.len()));
                }
                append_nulls(nulls, array, rows);
            }
            ColumnChunk::Texts(views) => views.append(array.as_string_view(), rows),
            ColumnChunk::Bytes(views) => views.append(array.as_binary_view(), rows),
        }
    }

    /// Memory that has been written.
    pub fn bytes(&self) -> u64 {
        match self {
            ColumnChunk::Fixed { bytes, nulls, .. } => (bytes.len() + null_bytes(nulls)) as u64,
            ColumnChunk::Truths { bits, nulls } => (bits.len().div_ceil(8) + null_bytes(nulls)) as u64,
            ColumnChunk::Texts(views) => views.bytes(),
            ColumnChunk::Bytes(views) => views.bytes(),
        }
    }
}

impl<T: ByteViewType> Views<T> {
    fn new() -> Self {
        let builder = GenericByteViewBuilder::new().with_fixed_block_size(PIECE_BYTES);
        Views { builder, piece_bytes: 0, has_nulls: false }
    }

    /// Copies the texts, because those of the array are in memory that the parser needs again.
    fn append(&mut self, array: &GenericByteViewArray<T>, rows: &[Range<usize>]) {
        self.has_nulls |= array.null_count() > 0;
        for row in rows.iter().cloned().flatten() {
            if array.is_null(row) {
                self.builder.append_null();
                continue;
            }
            let text = array.value(row);
            let length = AsRef::<[u8]>::as_ref(text).len();
            self.piece_bytes += if length > LONGEST_INLINE { length as u64 } else { 0 };
            self.builder.append_value(text);
        }
    }

    fn bytes(&self) -> u64 {
        let rows = self.builder.len() as u64;
        let null_bytes = if self.has_nulls { rows.div_ceil(8) } else { 0 };
        VIEW_BYTES * rows + null_bytes + self.piece_bytes
    }
}

fn append_nulls(into: &mut NullBufferBuilder, array: &dyn Array, rows: &[Range<usize>]) {
    for rows in rows {
        match array.nulls() {
            Some(nulls) => into.append_buffer(&nulls.slice(rows.start, rows.len())),
            None => into.append_n_non_nulls(rows.len()),
        }
    }
}

fn null_bytes(nulls: &NullBufferBuilder) -> usize {
    nulls.as_slice().map_or(0, <[u8]>::len)
}

/// A column of all rows, and one row more: what rows get that find nothing.
pub struct StoredColumn {
    /// With the row more.
    all: ArrayRef,
    /// Without it, so that a NULL there costs nothing while all rows find something.
    rows: ArrayRef,
    bytes: u64,
}

impl StoredColumn {
    /// Puts the chunks behind each other. Each of them is there twice only while it is copied.
    pub fn merge(
        column: &AddedColumn,
        chunks: Vec<ColumnChunk>,
        rows: usize,
        budget: &Budget,
    ) -> Result<Self, BuildError> {
        let data_type = column.column_type.arrow_type();
        let default = column.default.clone().unwrap_or_else(|| new_null_array(&data_type, 1));
        let mut default_chunk = ColumnChunk::new(&data_type)?;
        default_chunk.append(&default, std::slice::from_ref(&(0..1)));
        let chunks = chunks.into_iter().chain([default_chunk]);
        let all = match ColumnChunk::new(&data_type)? {
            ColumnChunk::Fixed { width, .. } => {
                // Of zeros, which are not written before they are replaced.
                let (mut bytes, mut end) = (MutableBuffer::from_len_zeroed((rows + 1) * width), 0);
                huge_pages::prefer(bytes.as_slice_mut());
                let nulls = copied(chunks, budget, |chunk| match chunk {
                    ColumnChunk::Fixed { bytes: values, nulls, .. } => {
                        let begin = end;
                        end += values.len();
                        bytes.as_slice_mut().get_mut(begin..end)?.copy_from_slice(values.as_slice());
                        Some(nulls)
                    }
                    _ => None,
                })?;
                array(data_type, rows + 1, bytes.into(), nulls)?
            }
            ColumnChunk::Truths { .. } => {
                let mut bits = BooleanBufferBuilder::new(rows + 1);
                let nulls = copied(chunks, budget, |chunk| match chunk {
                    ColumnChunk::Truths { bits: values, nulls } => {
                        bits.append_buffer(&values.finish());
                        Some(nulls)
                    }
                    _ => None,
                })?;
                array(data_type, rows + 1, bits.finish().into_inner(), nulls)?
            }
            ColumnChunk::Texts(_) => merged_views(chunks, rows, budget, |chunk| match chunk {
                ColumnChunk::Texts(views) => Some(views),
                _ => None,
            })?,
            ColumnChunk::Bytes(_) => merged_views(chunks, rows, budget, |chunk| match chunk {
                ColumnChunk::Bytes(views) => Some(views),
                _ => None,
            })?,
        };
        if all.len() != rows + 1 {
            return Err(BuildError::Internal(format!("{} rows of an added column, not {}", all.len(), rows + 1)));
        }
        let rows = all.slice(0, rows);
        Ok(StoredColumn { bytes: bytes(all.as_ref()), all, rows })
    }

    /// The rows, without that for rows which find nothing.
    pub fn rows(&self) -> &ArrayRef {
        &self.rows
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The values of those rows, all of which exist.
    pub fn gather(&self, rows: &UInt32Array) -> Result<ArrayRef, ArrowError> {
        take(&self.rows, rows, None)
    }

    /// The same, where the row behind the last one may be among them.
    pub fn gather_or_default(&self, rows: &UInt32Array) -> Result<ArrayRef, ArrowError> {
        take(&self.all, rows, None)
    }
}

/// Calls `copy` with every chunk, then frees it; the NULLs of all of them.
fn copied(
    chunks: impl Iterator<Item = ColumnChunk>,
    budget: &Budget,
    mut copy: impl FnMut(&mut ColumnChunk) -> Option<&mut NullBufferBuilder>,
) -> Result<NullBufferBuilder, BuildError> {
    let mut all = NullBufferBuilder::new(0);
    for mut chunk in chunks {
        let bytes = chunk.bytes();
        budget.take(bytes)?;
        let nulls = copy(&mut chunk).ok_or_else(other_kind)?;
        match nulls.len() {
            0 => {}
            length => match nulls.finish() {
                Some(nulls) => all.append_buffer(&nulls),
                None => all.append_n_non_nulls(length),
            },
        }
        drop(chunk);
        budget.give_back(bytes);
    }
    Ok(all)
}

/// The same for views: those of all chunks, of the pieces that the chunks have.
fn merged_views<T: ByteViewType>(
    chunks: impl Iterator<Item = ColumnChunk>,
    rows: usize,
    budget: &Budget,
    views: impl Fn(ColumnChunk) -> Option<Views<T>>,
) -> Result<ArrayRef, BuildError> {
    let mut all = GenericByteViewBuilder::<T>::with_capacity(rows + 1);
    for chunk in chunks {
        let mut views = views(chunk).ok_or_else(other_kind)?;
        let twice = views.bytes() - views.piece_bytes;
        budget.take(twice)?;
        all.append_array(&views.builder.finish());
        drop(views);
        budget.give_back(twice);
    }
    Ok(std::sync::Arc::new(all.finish()))
}

fn other_kind() -> BuildError {
    BuildError::Internal("chunks of one column are of several types".to_owned())
}

fn array(
    data_type: DataType,
    rows: usize,
    values: Buffer,
    mut nulls: NullBufferBuilder,
) -> Result<ArrayRef, BuildError> {
    let data = ArrayData::builder(data_type).len(rows).add_buffer(values).nulls(nulls.finish()).build();
    data.map(make_array).map_err(|error| BuildError::Internal(error.to_string()))
}

fn bytes(array: &dyn Array) -> u64 {
    let data = array.to_data();
    let nulls = data.nulls().map_or(0, |nulls| nulls.inner().inner().len());
    (data.buffers().iter().map(Buffer::len).sum::<usize>() + nulls) as u64
}

/// A column whose values are in the index itself, behind the least one.
pub struct InlineColumn {
    column_type: ColumnType,
    least: i64,
    /// What rows get that find nothing; `None` for NULL.
    default: Option<i64>,
}

impl InlineColumn {
    pub fn new(column_type: ColumnType, least: i64, default: Option<i64>) -> Self {
        InlineColumn { column_type, least, default }
    }

    /// The values of those payloads; those that are `missing` find nothing.
    pub fn gather(&self, payloads: &[u32], missing: impl Fn(u32) -> bool, any: bool) -> Result<ArrayRef, ArrowError> {
        let default = self.default.unwrap_or_default();
        let value =
            |payload: &u32| if missing(*payload) { default } else { self.least.wrapping_add(i64::from(*payload)) };
        let values = payloads.iter().map(value);
        let data_type = self.column_type.arrow_type();
        // The values were of this width, and so is the default.
        let values: Buffer = match data_type.primitive_width() {
            Some(2) => values.map(|value| value as i16).collect::<ScalarBuffer<_>>().into_inner(),
            Some(4) => values.map(|value| value as i32).collect::<ScalarBuffer<_>>().into_inner(),
            _ => values.collect::<ScalarBuffer<_>>().into_inner(),
        };
        let builder = ArrayData::builder(data_type).len(payloads.len()).add_buffer(values);
        let nulls =
            (any && self.default.is_none()).then(|| payloads.iter().map(|payload| !missing(*payload)).collect());
        builder.nulls(nulls).build().map(make_array)
    }
}
