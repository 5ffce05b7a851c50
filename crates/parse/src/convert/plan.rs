//! Which converter a column needs and where its values go: resolved once, before the first row.

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryViewBuilder;
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use headrace_types::{Column, ColumnType, MAX_DECIMAL64_PRECISION};
use std::sync::Arc;

use super::bytes::{Uuid, decode_hexadecimal};
use super::float::Floating;
use super::number::{Decimal, Truth, Whole};
use super::temporal::{Date, Time, Timestamp};
use super::text::Texts;
use super::{BadRows, BlockFacts, Convert, NullRule, OneColumn, convert_tile, note_text_behind};
use crate::raw::arrays::Written;
use crate::raw::cpu::CpuPath;
use crate::raw::fields::{Field, Text, Tile};
use crate::raw::memory::{Carver, PADDING_BYTES, carved_bytes, values_mut};

/// Where the converted values of one column of a block go.
pub struct ColumnOutput<'a> {
    values: Values<'a>,
    /// Byte offset of the validity bits in the slab, and the bits; none when the column is not nullable.
    validity: Option<(usize, &'a mut [u64])>,
}

enum Values<'a> {
    /// Byte offset in the slab, and the bytes of the values.
    Slab(usize, &'a mut [u8]),
    /// Bytes are decoded, so they cannot be views into the text.
    Decoded(BinaryViewBuilder),
}

/// A converted column: where its values are in the slab, or an array of its own.
pub enum Converted {
    /// Values in the slab.
    Slab {
        /// Byte offset of the first value.
        values_offset: usize,
        /// Bytes of all values.
        values_bytes: usize,
        /// Byte offset of the validity bits; none when the column is not nullable.
        validity_offset: Option<usize>,
    },
    /// A finished array.
    Array(ArrayRef),
}

impl ColumnOutput<'_> {
    /// Ends the conversion.
    pub fn finish(self) -> Converted {
        match self.values {
            Values::Decoded(mut builder) => Converted::Array(Arc::new(builder.finish())),
            Values::Slab(values_offset, values) => Converted::Slab {
                values_offset,
                values_bytes: values.len(),
                validity_offset: self.validity.map(|(offset, _)| offset),
            },
        }
    }
}

/// Converter and Arrow type of one column.
#[derive(Debug, Clone)]
pub struct ColumnPlan {
    /// Index in the layout, from 0.
    pub index: usize,
    column_type: ColumnType,
    arrow_type: DataType,
    nullable: bool,
    nulls: NullRule,
}

/// Runs `$body` with `$converter` bound to the converter of the column's type: the one place that lists all kinds.
macro_rules! with_converter {
    ($column_type:expr, $facts:expr, $converter:ident => $body:expr, bytes => $bytes:expr) => {{
        let text = |max_length: u32, drop_trailing_blanks, json| Texts {
            max_length: max_length as usize,
            drop_trailing_blanks,
            suspicious: $facts.suspicious,
            json,
            unescaped: $facts.unescaped,
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
            ColumnType::Float32 => run!(Floating::<f32>::new($facts.path)),
            ColumnType::Float64 => run!(Floating::<f64>::new($facts.path)),
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
    /// How column `index` of a layout is converted.
    pub fn new(index: usize, column: &Column, null_tokens: &[String]) -> Self {
        let column_type = column.column_type;
        ColumnPlan {
            index,
            column_type,
            arrow_type: column_type.arrow_type(),
            nullable: column.nullable,
            nulls: NullRule::new(null_tokens, |token| is_value(column_type, token)),
        }
    }

    /// Bytes of one value; 0 when the values are not in the slab.
    fn width(&self) -> usize {
        fn width<C: Convert>(_: &C) -> usize {
            size_of::<C::Value>()
        }
        with_converter!(self.column_type, NO_FACTS, converter => width(&converter), bytes => 0)
    }

    /// Slab bytes the column needs for `rows` rows.
    pub fn slab_bytes(&self, rows: usize) -> usize {
        let validity = if self.nullable { carved_bytes::<u64>(rows.div_ceil(64)) } else { 0 };
        carved_bytes::<u8>(rows * self.width()) + validity
    }

    /// Memory for the column's values. `None` when the slab is too small (a defect: the caller sized it by `slab_bytes`).
    pub fn output<'a>(&self, rows: usize, carver: &mut Carver<'a>) -> Option<ColumnOutput<'a>> {
        let validity = match self.nullable {
            true => {
                let (offset, words) = carver.carve::<u64>(rows.div_ceil(64))?;
                words.fill(u64::MAX);
                Some((offset, words))
            }
            false => None,
        };
        let values = match self.column_type {
            ColumnType::Bytes => Values::Decoded(BinaryViewBuilder::with_capacity(rows)),
            _ => {
                let (offset, bytes) = carver.carve::<u8>(rows * self.width())?;
                Values::Slab(offset, bytes)
            }
        };
        Some(ColumnOutput { values, validity })
    }

    /// Converts the fields of a tile. `None` when the output is not one of this column for as many rows (a defect).
    #[inline(always)]
    pub fn convert_tile(
        &self,
        tile: Tile<'_, '_>,
        facts: BlockFacts<'_>,
        output: &mut ColumnOutput<'_>,
        bad: &mut BadRows,
    ) -> Option<()> {
        if let Some(qualifier) = facts.text_behind {
            note_text_behind(tile, qualifier, self.index, bad);
        }
        let validity = output.validity.as_mut().map(|(_, words)| &mut **words);
        let mut column = OneColumn { index: self.index, nulls: &self.nulls, validity, bad };
        match &mut output.values {
            Values::Decoded(builder) => convert_bytes(tile, &mut column, facts, builder),
            Values::Slab(_, bytes) => with_converter!(self.column_type, facts, converter => {
                convert_tile(&converter, tile, &mut column, values_of(&converter, bytes, tile)?, facts);
            }, bytes => return None),
        }
        Some(())
    }

    /// The Arrow array of converted values.
    pub fn array(&self, converted: Converted, rows: usize, slab: &Buffer, texts: &[Buffer]) -> ArrayRef {
        let (values_offset, values_bytes, validity_offset) = match converted {
            Converted::Array(array) => return array,
            Converted::Slab { values_offset, values_bytes, validity_offset } => {
                (values_offset, values_bytes, validity_offset)
            }
        };
        let values = slab.slice_with_length(values_offset, values_bytes);
        let validity = validity_offset.map(|offset| slab.slice_with_length(offset, rows.div_ceil(64) * 8));
        Written { arrow_type: &self.arrow_type, rows, values, validity, texts }.array()
    }
}

/// For converters that do not convert.
const NO_FACTS: BlockFacts<'_> =
    BlockFacts { suspicious: true, path: CpuPath::PORTABLE, unescaped: None, text_behind: None };

/// Whether the text is that of a value of the type.
fn is_value(column_type: ColumnType, text: &[u8]) -> bool {
    let mut padded = vec![0; PADDING_BYTES];
    padded.extend_from_slice(text);
    padded.resize(text.len() + 2 * PADDING_BYTES, 0);
    let Some(field) = Text::new(&padded, text.len()).map(Field::whole) else { return true };
    let converts = with_converter!(column_type, NO_FACTS, converter => converter.convert(field).is_ok(), bytes => true);
    field.len() > 0 && converts
}

/// The values of a tile's rows in the memory of their column.
#[inline(always)]
fn values_of<'a, C: Convert>(_: &C, bytes: &'a mut [u8], tile: Tile<'_, '_>) -> Option<&'a mut [C::Value]> {
    values_mut::<C::Value>(bytes)?.get_mut(tile.first_row()..tile.first_row() + tile.rows())
}

/// Bytes columns are decoded into memory of their own.
#[inline(never)]
fn convert_bytes(
    tile: Tile<'_, '_>,
    column: &mut OneColumn<'_>,
    facts: BlockFacts<'_>,
    builder: &mut BinaryViewBuilder,
) {
    let mut decoded = Vec::new();
    for row in 0..tile.rows() {
        let field = tile.field(row);
        decoded.clear();
        let is_null = !field.is_qualified && (field.len() == 0 || column.nulls.is_token(field.bytes()));
        let result = match facts.unescaped {
            _ if is_null => Err(headrace_types::Rule::NullNotAllowed),
            Some(unescaped) if unescaped.concerns(field) => {
                unescaped.convert(field, |field| decode_hexadecimal(field.bytes(), &mut decoded))
            }
            _ => decode_hexadecimal(field.bytes(), &mut decoded),
        };
        match result {
            Ok(()) => builder.append_value(&decoded),
            Err(rule) => {
                column.miss(tile.first_row() + row, field, rule);
                if column.validity.is_some() { builder.append_null() } else { builder.append_value([]) }
            }
        }
    }
}
