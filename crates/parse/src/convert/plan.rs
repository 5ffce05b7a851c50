//! Which converter a column needs and where its values go: resolved once, before the first row.

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use headrace_types::{ColumnType, MAX_DECIMAL64_PRECISION};
use std::sync::Arc;

use super::bytes::{Uuid, decode_hexadecimal};
use super::number::{Decimal, Floating, Truth, Whole};
use super::temporal::{Date, Time, Timestamp};
use super::text::Text;
use super::{BadRows, Column, Convert, convert_column};
use crate::fields::Fields;
use crate::memory::{Carver, Plain, carved_bytes};

/// What NULL looks like in a column.
#[derive(Debug, Clone, Default)]
pub struct NullRule {
    tokens: Vec<Vec<u8>>,
    /// Rows of the block whose field is qualified, which is never NULL; empty when there are none.
    pub qualified: Vec<bool>,
}

impl NullRule {
    /// The given texts mean NULL, besides the empty field.
    pub fn new(tokens: &[String]) -> Self {
        NullRule { tokens: tokens.iter().map(|token| token.as_bytes().to_vec()).collect(), qualified: Vec::new() }
    }

    /// Whether there are tokens at all.
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Whether the field of this row is qualified.
    pub fn is_qualified(&self, row: usize) -> bool {
        self.qualified.get(row) == Some(&true)
    }

    /// Whether the field is one of the tokens.
    pub fn is_token(&self, field: &[u8]) -> bool {
        self.tokens.iter().any(|token| token == field)
    }
}

/// Where the converted values of a column are: in the slab (offset, bytes per value), or in an array of their own.
pub enum Converted {
    /// Values in the slab from `values_offset`, validity bits from `validity_offset`.
    Slab {
        /// Byte offset of the first value.
        values_offset: usize,
        /// Bytes of all values.
        values_bytes: usize,
        /// Byte offset of the validity bits; none when the column is not nullable.
        validity_offset: Option<usize>,
    },
    /// A finished array (bytes: decoded, cannot be a view into the text).
    Array(ArrayRef),
}

/// Converter and Arrow type of one column.
#[derive(Debug, Clone)]
pub struct ColumnPlan {
    /// Index in the layout, from 0.
    pub index: usize,
    /// Type of the layout.
    pub column_type: ColumnType,
    /// Arrow type.
    pub arrow_type: DataType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// What NULL looks like.
    pub nulls: NullRule,
}

/// Runs `$body` with `$converter` bound to the converter of the column's type: the one place that lists all kinds.
macro_rules! with_converter {
    ($column_type:expr, $suspicious:expr, $converter:ident => $body:expr, bytes => $bytes:expr) => {{
        let text = |max_length: u32, drop_trailing_blanks, json| Text {
            max_length: max_length as usize,
            drop_trailing_blanks,
            suspicious: $suspicious,
            json,
        };
        macro_rules! run {
            ($made:expr) => {{
                let $converter = $made;
                $body
            }};
        }
        match $column_type {
            ColumnType::Int16 => run!(Whole::<i16>::default()),
            ColumnType::Int32 => run!(Whole::<i32>::default()),
            ColumnType::Int64 => run!(Whole::<i64>::default()),
            ColumnType::Decimal { precision, scale } if precision <= MAX_DECIMAL64_PRECISION => {
                run!(Decimal::<i64>::new(precision, scale))
            }
            ColumnType::Decimal { precision, scale } => run!(Decimal::<i128>::new(precision, scale)),
            ColumnType::Float32 => run!(Floating::<f32>::default()),
            ColumnType::Float64 => run!(Floating::<f64>::default()),
            ColumnType::Bool => run!(Truth),
            ColumnType::Date => run!(Date),
            ColumnType::Time => run!(Time),
            ColumnType::Timestamp => run!(Timestamp { with_offset: false }),
            ColumnType::TimestampTz => run!(Timestamp { with_offset: true }),
            ColumnType::String => run!(text(u32::MAX, false, false)),
            ColumnType::Char { length } => run!(text(length, true, false)),
            ColumnType::Varchar { length } => run!(text(length, false, false)),
            ColumnType::Json => run!(text(u32::MAX, false, true)),
            ColumnType::Uuid => run!(Uuid),
            ColumnType::Bytes => $bytes,
        }
    }};
}

impl ColumnPlan {
    /// Slab bytes the column needs for `rows` rows.
    pub fn slab_bytes(&self, rows: usize) -> usize {
        fn width<C: Convert>(_: &C, rows: usize) -> usize {
            carved_bytes::<C::Value>(rows)
        }
        let values = with_converter!(self.column_type, false, converter => width(&converter, rows), bytes => 0);
        values + if self.nullable { carved_bytes::<u64>(rows.div_ceil(64)) } else { 0 }
    }

    /// Converts the column. `None` when the slab is too small (a defect: the caller sized it by `slab_bytes`).
    pub fn convert(
        &self,
        fields: Fields<'_>,
        suspicious: bool,
        carver: &mut Carver<'_>,
        bad: &mut BadRows,
    ) -> Option<Converted> {
        let rows = fields.rows();
        let (validity_offset, validity) = match self.nullable {
            true => {
                let (offset, words) = carver.carve::<u64>(rows.div_ceil(64))?;
                words.fill(u64::MAX);
                (Some(offset), Some(words))
            }
            false => (None, None),
        };
        let mut column = Column { index: self.index, nulls: &self.nulls, validity, bad };
        with_converter!(self.column_type, suspicious, converter => {
            let (values_offset, values) = carve_for(&converter, rows, carver)?;
            convert_column(&converter, fields, &mut column, values);
            let mut values_bytes = size_of_val(values);
            if self.column_type == ColumnType::Bool {
                values_bytes = rows.div_ceil(8);
            }
            Some(Converted::Slab { values_offset, values_bytes, validity_offset })
        }, bytes => Some(Converted::Array(convert_bytes(fields, &mut column))))
    }

    /// The Arrow array of converted values.
    pub fn array(&self, converted: Converted, rows: usize, slab: &Buffer, text: &Buffer) -> ArrayRef {
        let (values_offset, values_bytes, validity_offset) = match converted {
            Converted::Array(array) => return array,
            Converted::Slab { values_offset, values_bytes, validity_offset } => {
                (values_offset, values_bytes, validity_offset)
            }
        };
        let mut values = slab.slice_with_length(values_offset, values_bytes);
        if self.column_type == ColumnType::Bool {
            let bytes = slab.slice_with_length(values_offset, rows);
            values = BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0).into_inner();
        }
        let nulls = validity_offset
            .map(|offset| slab.slice_with_length(offset, rows.div_ceil(64) * 8))
            .map(|bits| NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
            .filter(|nulls| nulls.null_count() > 0);
        let mut builder = ArrayData::builder(self.arrow_type.clone()).len(rows).nulls(nulls).add_buffer(values);
        if self.arrow_type == DataType::Utf8View {
            builder = builder.add_buffer(text.clone());
        }
        // SAFETY: the values buffer holds `rows` values of the type's width, 64-byte aligned, written by the converter of
        // exactly this type; views refer to bytes of `text` that were checked to be UTF-8; the null buffer has `rows` bits.
        make_array(unsafe { builder.build_unchecked() })
    }
}

/// Space for the values of one column.
fn carve_for<'a, C: Convert>(_: &C, rows: usize, carver: &mut Carver<'a>) -> Option<(usize, &'a mut [C::Value])>
where
    C::Value: Plain,
{
    carver.carve(rows)
}

/// Bytes columns are decoded into memory of their own.
fn convert_bytes(fields: Fields<'_>, column: &mut Column<'_>) -> ArrayRef {
    let mut builder = BinaryViewBuilder::with_capacity(fields.rows());
    let mut decoded = Vec::new();
    for (row, field) in fields.iter().enumerate() {
        decoded.clear();
        let is_null = field.len() == 0 || column.nulls.is_token(field.bytes());
        let result = if is_null && !column.nulls.is_qualified(row) {
            Err(headrace_types::Rule::NullNotAllowed)
        } else {
            decode_hexadecimal(field.bytes(), &mut decoded)
        };
        match result {
            Ok(()) => builder.append_value(&decoded),
            Err(rule) => {
                column.miss(row, field, rule);
                if column.validity.is_some() { builder.append_null() } else { builder.append_value([]) }
            }
        }
    }
    let array = builder.finish();
    debug_assert_eq!(array.len(), fields.rows());
    Arc::new(array)
}
