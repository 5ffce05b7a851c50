//! Arrow arrays around converted values.

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

/// What a column's converter wrote.
pub struct Written<'a> {
    /// The column's Arrow type.
    pub arrow_type: &'a DataType,
    /// Rows.
    pub rows: usize,
    /// One value per row, of the type's width; truth values take a byte.
    pub values: Buffer,
    /// One bit per row, if the column is nullable.
    pub validity: Option<Buffer>,
    /// What views refer to: the text of the block and, if there are any, the texts whose doubled qualifiers were made single.
    pub texts: &'a [Buffer],
}

impl Written<'_> {
    /// The array. Values are not checked again: this is for the converters of this crate only, which write values of exactly
    /// the column's type, and views of bytes that were checked to be UTF-8.
    pub fn array(self) -> ArrayRef {
        let Written { arrow_type, rows, mut values, validity, texts } = self;
        let width = match arrow_type {
            DataType::Boolean => 1,
            DataType::Utf8View | DataType::FixedSizeBinary(16) => 16,
            other => other.primitive_width().unwrap_or(16),
        };
        assert!(values.len() >= rows * width, "fewer values than rows");
        if *arrow_type == DataType::Boolean {
            values = BooleanBuffer::collect_bool(rows, |row| values[row] != 0).into_inner();
        }
        let nulls = validity
            .map(|bits| NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
            .filter(|nulls| nulls.null_count() > 0);
        let mut builder = ArrayData::builder(arrow_type.clone()).len(rows).nulls(nulls).add_buffer(values);
        if *arrow_type == DataType::Utf8View {
            builder = builder.add_buffers(texts.iter().cloned());
        }
        // SAFETY: the values buffer holds `rows` values of the type's width (checked), 64-byte aligned, written by the converter of
        // exactly this type; views refer to bytes of `texts` that were checked to be UTF-8; the null buffer has `rows`
        // bits.
        make_array(unsafe { builder.build_unchecked() })
    }
}
