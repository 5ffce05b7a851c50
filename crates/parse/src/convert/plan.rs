//! Which converter a column needs and where its values go: resolved once, before the first row.

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryViewBuilder;
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use headrace_types::{Column, ColumnType, Layout, MAX_DECIMAL64_PRECISION, Rule, Trim};
use std::sync::Arc;

use super::bytes::{Uuid, decode_hexadecimal};
use super::float::Floating;
use super::format::{Compiled, Numbers, PatternDate, PatternMoment};
use super::number::{Decimal, Truth, Whole};
use super::temporal::{Date, Time, Timestamp};
use super::text::{CONSTANT_BUFFER, Texts};
use super::{BadRows, BlockFacts, Constant, Convert, ConvertTile, Dispositions, NullRule, OneColumn};
use crate::raw::arrays::Written;
use crate::raw::cpu::CpuPath;
use crate::raw::fields::Tile;
use crate::raw::memory::{Carver, carved_bytes, values_mut};

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
    kind: Kind,
    arrow_type: DataType,
    nullable: bool,
    dispositions: Dispositions,
    nulls: NullRule,
    /// Which blanks at the ends of a field are no text.
    pub trim: Trim,
}

/// What the texts of a column are.
#[derive(Debug, Clone)]
struct Kind {
    column_type: ColumnType,
    format: Option<Compiled>,
}

/// Runs `$body` with `$converter` bound to the converter of the column's kind: the one place that lists all kinds.
macro_rules! with_converter {
    ($kind:expr, $facts:expr, $converter:ident => $body:expr, bytes => $bytes:expr) => {{
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
        macro_rules! run_number {
            ($base:expr, $rules:expr) => {
                run!(Numbers { base: $base, rules: $rules })
            };
        }
        let kind: &Kind = $kind;
        match (&kind.format, kind.column_type) {
            (Some(Compiled::Number(rules)), column_type) => {
                let point = rules.point();
                match column_type {
                    ColumnType::Int16 => run_number!(Whole::<i16>::default(), rules),
                    ColumnType::Int32 => run_number!(Whole::<i32>::default(), rules),
                    ColumnType::Int64 => run_number!(Whole::<i64>::default(), rules),
                    ColumnType::Decimal { precision, scale } if precision <= MAX_DECIMAL64_PRECISION => {
                        run_number!(Decimal::<i64>::new(precision, scale, point), rules)
                    }
                    ColumnType::Decimal { precision, scale } => {
                        run_number!(Decimal::<i128>::new(precision, scale, point), rules)
                    }
                    ColumnType::Float32 => {
                        run_number!(Floating::<f32>::of_texts($facts.path, point, rules.has_exponents()), rules)
                    }
                    ColumnType::Float64 => {
                        run_number!(Floating::<f64>::of_texts($facts.path, point, rules.has_exponents()), rules)
                    }
                    _ => $bytes, // layouts with other types are refused
                }
            }
            (Some(Compiled::Patterns(patterns)), ColumnType::Date) => run!(PatternDate(patterns)),
            (Some(Compiled::Patterns(patterns)), ColumnType::Time) => {
                run!(PatternMoment { patterns, bad: Rule::BadTime })
            }
            (Some(Compiled::Patterns(patterns)), _) => run!(PatternMoment { patterns, bad: Rule::BadTimestamp }),
            (Some(Compiled::Epoch(epoch)), _) => run!(*epoch),
            (Some(Compiled::Truth(words)), _) => run!(&**words),
            (None, column_type) => match column_type {
                ColumnType::Int16 => run!(Whole::<i16>::default()),
                ColumnType::Int32 => run!(Whole::<i32>::default()),
                ColumnType::Int64 => run!(Whole::<i64>::default()),
                ColumnType::Decimal { precision, scale } if precision <= MAX_DECIMAL64_PRECISION => {
                    run!(Decimal::<i64>::new(precision, scale, b'.'))
                }
                ColumnType::Decimal { precision, scale } => run!(Decimal::<i128>::new(precision, scale, b'.')),
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
            },
        }
    }};
}

impl ColumnPlan {
    /// How column `index` of a layout is converted.
    pub fn new(index: usize, column: &Column, layout: &Layout) -> Self {
        let (null_tokens, escape) = (&layout.null_tokens, layout.escape);
        // Tokens are compared with what stands there: `\N` is also the escaped text `N`, which may be a value.
        let is_rewritten = |text: &[u8]| escape.is_some_and(|escape| text.contains(&(escape as u8)));
        let kind = Kind { column_type: column.column_type, format: column.format.as_ref().map(Compiled::new) };
        ColumnPlan {
            index,
            arrow_type: column.column_type.arrow_type(),
            nullable: column.nullable,
            dispositions: Dispositions::new(column),
            nulls: NullRule::new(
                column,
                column.null_tokens.as_deref().unwrap_or(null_tokens),
                layout.encoding,
                |token| is_rewritten(token) || is_value(&kind, token),
            ),
            trim: column.trim,
            kind,
        }
    }

    /// Whether what stands for empty fields is a value of the column.
    pub fn takes_constant(&self) -> bool {
        let Some(constant) = self.nulls.constant_of_empty() else { return true };
        let is_value = |text: &[u8]| match self.kind.column_type {
            ColumnType::Bytes => !text.is_empty() && decode_hexadecimal(text, &mut Vec::new()).is_ok(),
            _ => is_value(&self.kind, text),
        };
        constant.field().is_some_and(|field| is_value(field.bytes()))
    }

    /// Bytes of one value; 0 when the values are not in the slab.
    fn width(&self) -> usize {
        fn width<C: Convert>(_: &C) -> usize {
            size_of::<C::Value>()
        }
        with_converter!(&self.kind, NO_FACTS, converter => width(&converter), bytes => 0)
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
        let values = match self.kind.column_type {
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
        let validity = output.validity.as_mut().map(|(_, words)| &mut **words);
        let (index, dispositions) = (self.index, self.dispositions);
        let mut column = OneColumn { index, dispositions, nulls: &self.nulls, validity, bad };
        match &mut output.values {
            Values::Decoded(builder) => convert_bytes(tile, &mut column, facts, builder),
            Values::Slab(_, bytes) => with_converter!(&self.kind, facts, converter => {
                let values = values_of(&converter, bytes, tile)?;
                facts.path.run_part(ConvertTile { converter: &converter, tile, column: &mut column, values, facts });
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
        let constant = self.nulls.constant_of_empty().filter(|_| self.arrow_type == DataType::Utf8View);
        let mut texts = texts.to_vec();
        if let Some(constant) = constant {
            texts.resize(CONSTANT_BUFFER, Buffer::default());
            texts.push(constant.padded.clone());
        }
        Written { arrow_type: &self.arrow_type, rows, values, validity, texts: &texts }.array()
    }
}

/// For converters that do not convert.
const NO_FACTS: BlockFacts<'_> = BlockFacts { suspicious: true, path: CpuPath::PORTABLE, unescaped: None, stray: None };

/// Whether the text is that of a value of the type.
fn is_value(kind: &Kind, text: &[u8]) -> bool {
    let text = Constant::new(text);
    let Some(field) = text.field() else { return true };
    let converts = with_converter!(kind, NO_FACTS, converter => converter.convert(field).is_ok(), bytes => true);
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
        let constant = column.nulls.constant(field).and_then(Constant::field);
        let result = match facts.unescaped {
            _ if column.nulls.is_null(field) => Err(Rule::NullNotAllowed),
            _ if constant.is_some() => constant.map_or(Ok(()), |text| decode_hexadecimal(text.bytes(), &mut decoded)),
            Some(unescaped) if field.is_rewritten() => {
                unescaped.convert(field, |field| decode_hexadecimal(field.bytes(), &mut decoded))
            }
            _ => decode_hexadecimal(field.bytes(), &mut decoded),
        };
        match result {
            Ok(()) => builder.append_value(&decoded),
            Err(rule) => {
                // Bytes have no length that could be passed.
                let _ = column.miss(tile.first_row() + row, field, rule);
                if column.validity.is_some() { builder.append_null() } else { builder.append_value([]) }
            }
        }
    }
}
