//! Keys: which columns can be one, and what is compared.
//!
//! The type that a column has in the lookup decides. A key is a 64-bit number if all its columns together fit one, each
//! behind the least value of its type; otherwise it is bytes. Values of the input that the lookup's type cannot hold
//! find nothing, rows of which a key column is NULL neither.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, StringViewArray};
use arrow_buffer::NullBuffer;
use headrace_types::ColumnType;

use super::error::{KeyValue, WrongArray};
use super::{Case, KeyColumn};
use crate::partition::Keys;

/// Rows whose keys are read together: as many as a word has bits.
pub const TILE_ROWS: usize = 64;
/// Bytes of the length before texts of a key that has further columns.
const LENGTH_BYTES: usize = 4;
const UUID_BYTES: usize = 16;
const DAY_MICROSECONDS: i128 = 86_400_000_000;

/// Which rows a batch is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Rows that can be found.
    Lookup,
    /// Rows that look for one.
    Input,
}

/// How keys are read and compared.
#[derive(Debug)]
pub struct KeyPlan {
    parts: Vec<Part>,
    form: KeyForm,
}

/// What a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// A number.
    Number,
    /// So many bytes, or any number of them.
    Bytes(Option<usize>),
}

#[derive(Debug)]
struct Part {
    column: KeyColumn,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Number(NumberRange),
    Uuid,
    Text { without_blanks: bool, lower_case: bool },
    Bytes,
}

/// Values that the type of the lookup's column can have.
#[derive(Debug, Clone, Copy)]
struct NumberRange {
    least: i128,
    greatest: i128,
}

/// Types whose values can be one: each has a way to be compared.
#[derive(PartialEq, Eq)]
enum Family {
    /// Whole numbers, and decimals by their digits behind the point.
    Number(u8),
    Text,
    Itself(ColumnType),
}

impl Family {
    fn of(column_type: ColumnType) -> Option<Family> {
        use ColumnType::*;
        match column_type {
            Int16 | Int32 | Int64 => Some(Family::Number(0)),
            Decimal { scale, .. } => Some(Family::Number(scale)),
            String | Char { .. } | Varchar { .. } => Some(Family::Text),
            // A document has many texts, and a float is rarely the one that is meant.
            Float32 | Float64 | Json => None,
            Bool | Date | Time | Timestamp | TimestampTz | Bytes | Uuid => Some(Family::Itself(column_type)),
        }
    }
}

impl Kind {
    fn of(column: &KeyColumn) -> Result<Kind, String> {
        let family = |column_type| Family::of(column_type).ok_or_else(|| format!("{column_type} cannot be a key"));
        let (lookup, input) = (family(column.lookup)?, family(column.input)?);
        if lookup != input {
            return Err(format!("a key of type {} cannot be found by {}", column.lookup, column.input));
        }
        let range = |least: i128, greatest: i128| Kind::Number(NumberRange { least, greatest });
        Ok(match column.lookup {
            ColumnType::Int16 => range(i16::MIN.into(), i16::MAX.into()),
            ColumnType::Int32 | ColumnType::Date => range(i32::MIN.into(), i32::MAX.into()),
            ColumnType::Decimal { precision, .. } => {
                let end = 10_i128.pow(u32::from(precision.min(38)));
                range(1 - end, end - 1)
            }
            ColumnType::Bool => range(0, 1),
            ColumnType::Time => range(0, DAY_MICROSECONDS),
            ColumnType::Uuid => Kind::Uuid,
            ColumnType::Bytes => Kind::Bytes,
            _ if lookup == Family::Text => Kind::Text {
                without_blanks: [column.lookup, column.input]
                    .iter()
                    .any(|side| matches!(side, ColumnType::Char { .. })),
                lower_case: column.case == Case::Ignore,
            },
            _ => range(i64::MIN.into(), i64::MAX.into()),
        })
    }

    /// The type of two that both kinds of values fit.
    fn common(types: [ColumnType; 2]) -> Result<ColumnType, String> {
        let [first, second] = types;
        if Family::of(first) != Family::of(second) {
            return Err(format!("keys of the types {first} and {second} cannot be compared"));
        }
        let kind = |lookup, input| Kind::of(&KeyColumn { lookup, input, case: Case::Exact });
        let is_first = match (kind(second, first)?, kind(first, second)?) {
            // Both ranges have zero in their middle.
            (Kind::Number(of_second), Kind::Number(of_first)) => of_first.greatest >= of_second.greatest,
            _ => matches!(first, ColumnType::Char { .. }),
        };
        Ok(if is_first { first } else { second })
    }

    /// Bytes of each value, if all have as many.
    fn width(self) -> Option<usize> {
        match self {
            Kind::Number(range) => Some(range.bits().div_ceil(8) as usize),
            Kind::Uuid => Some(UUID_BYTES),
            Kind::Text { .. } | Kind::Bytes => None,
        }
    }
}

impl NumberRange {
    fn span(self) -> u128 {
        self.greatest.abs_diff(self.least)
    }

    fn bits(self) -> u32 {
        u128::BITS - self.span().leading_zeros()
    }

    /// How far the value is behind the least one; `None` outside of the range.
    fn behind(self, value: i128) -> Option<u128> {
        (self.least..=self.greatest).contains(&value).then(|| value.abs_diff(self.least))
    }
}

impl KeyPlan {
    /// How keys of these columns are compared.
    ///
    /// # Errors
    /// A sentence that names types which cannot be a key, or not of each other.
    pub fn new(columns: &[KeyColumn]) -> Result<Self, String> {
        let part = |column: &KeyColumn| Ok(Part { column: *column, kind: Kind::of(column)? });
        let parts = columns.iter().map(part).collect::<Result<Vec<_>, String>>()?;
        if parts.is_empty() {
            return Err("a key without columns".to_owned());
        }
        let bits = parts.iter().map(|part| match part.kind {
            Kind::Number(range) => Some(range.bits()),
            _ => None,
        });
        let form = match bits.sum() {
            Some(0..=u64::BITS) => KeyForm::Number,
            _ => KeyForm::Bytes(parts.iter().map(|part| part.kind.width()).sum()),
        };
        Ok(KeyPlan { parts, form })
    }

    pub fn form(&self) -> KeyForm {
        self.form
    }

    /// How keys of two inputs are compared with each other: columns of the first, and of the second.
    ///
    /// # Errors
    /// A sentence that names types which cannot be a key, or not of each other.
    pub fn of_both(columns: &[[ColumnType; 2]]) -> Result<[Self; 2], String> {
        let common = columns.iter().map(|column| Kind::common(*column)).collect::<Result<Vec<_>, _>>()?;
        let plan = |side: usize| {
            let key = |(column, common): (&[ColumnType; 2], &ColumnType)| KeyColumn {
                lookup: *common,
                input: column[side],
                case: Case::Exact,
            };
            KeyPlan::new(&columns.iter().zip(&common).map(key).collect::<Vec<_>>())
        };
        Ok([plan(0)?, plan(1)?])
    }

    /// The keys of a batch.
    ///
    /// # Errors
    /// Another number of arrays, or one of another type or length.
    pub fn read<'a>(&'a self, side: Side, arrays: &'a [ArrayRef]) -> Result<KeyBatch<'a>, WrongArray> {
        check_arrays(self.parts.iter().map(|part| part.column_type(side)), arrays)?;
        let columns = self.parts.iter().zip(arrays).map(|(part, array)| {
            let values = Values::of(array.as_ref());
            values.ok_or_else(|| wrong(array.data_type(), part.column_type(side)))
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let union = |nulls: Option<NullBuffer>, array: &ArrayRef| NullBuffer::union(nulls.as_ref(), array.nulls());
        let nulls = arrays.iter().fold(None, union).filter(|nulls| nulls.null_count() > 0);
        Ok(KeyBatch { plan: self, columns, nulls, rows: arrays.first().map_or(0, Array::len) })
    }

    /// The values of a key that is a number.
    pub fn values_of_number(&self, key: i64) -> Vec<KeyValue> {
        if self.parts.len() == 1 {
            return vec![KeyValue::Number(key.into())];
        }
        let mut packed = unsign(key);
        let mut values: Vec<_> = self
            .parts
            .iter()
            .rev()
            .filter_map(|part| {
                let Kind::Number(range) = part.kind else { return None };
                let behind = packed & (u64::MAX >> (u64::BITS - range.bits()));
                packed = packed.checked_shr(range.bits()).unwrap_or(0);
                Some(KeyValue::Number(range.least + i128::from(behind)))
            })
            .collect();
        values.reverse();
        values
    }

    /// The values of a key that is bytes, as [`KeyBatch::bytes`] wrote it.
    pub fn values_of_bytes(&self, mut key: &[u8]) -> Vec<KeyValue> {
        let mut values = Vec::with_capacity(self.parts.len());
        for (part, is_last) in self.parts_and_last() {
            let width = part.kind.width().unwrap_or_else(|| match is_last {
                true => key.len(),
                false => {
                    take(&mut key, LENGTH_BYTES).iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte))
                }
            });
            let value = take(&mut key, width);
            values.push(match part.kind {
                Kind::Number(range) => {
                    let behind = value.iter().rev().fold(0, |behind, byte| behind << 8 | u128::from(*byte));
                    KeyValue::Number(range.least.wrapping_add_unsigned(behind))
                }
                Kind::Text { .. } => KeyValue::Text(String::from_utf8_lossy(value).into_owned()),
                Kind::Uuid | Kind::Bytes => KeyValue::Bytes(value.to_vec()),
            });
        }
        values
    }

    fn parts_and_last(&self) -> impl Iterator<Item = (&Part, bool)> {
        let last = self.parts.len() - 1;
        self.parts.iter().enumerate().map(move |(index, part)| (part, index == last))
    }
}

impl Part {
    fn column_type(&self, side: Side) -> ColumnType {
        match side {
            Side::Lookup => self.column.lookup,
            Side::Input => self.column.input,
        }
    }
}

/// The first bytes, which are left behind.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (front, rest) = bytes.split_at(count.min(bytes.len()));
    *bytes = rest;
    front
}

/// Whether the arrays are of these types, and of one length.
pub fn check_arrays(types: impl ExactSizeIterator<Item = ColumnType>, arrays: &[ArrayRef]) -> Result<(), WrongArray> {
    if types.len() != arrays.len() {
        let [found, expected] = [arrays.len(), types.len()].map(|count| format!("{count} columns"));
        return Err(WrongArray { found, expected });
    }
    for (column_type, array) in types.zip(arrays) {
        if *array.data_type() != column_type.arrow_type() {
            return Err(wrong(array.data_type(), column_type));
        }
        if array.len() != arrays[0].len() {
            let [found, expected] = [array.len(), arrays[0].len()].map(|count| format!("{count} rows"));
            return Err(WrongArray { found, expected });
        }
    }
    Ok(())
}

fn wrong(found: &arrow_schema::DataType, expected: ColumnType) -> WrongArray {
    WrongArray { found: found.to_string(), expected: expected.arrow_type().to_string() }
}

/// Packed keys are in the order of their columns as unsigned numbers; keys have signs.
fn sign(packed: u64) -> i64 {
    (packed ^ 1 << 63) as i64
}

fn unsign(key: i64) -> u64 {
    key as u64 ^ 1 << 63
}

/// The keys of a batch.
pub struct KeyBatch<'a> {
    plan: &'a KeyPlan,
    columns: Vec<Values<'a>>,
    nulls: Option<NullBuffer>,
    rows: usize,
}

enum Values<'a> {
    Numbers(Keys<'a>),
    Truths(&'a BooleanArray),
    Texts(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
    Uuids(&'a FixedSizeBinaryArray),
}

impl<'a> Values<'a> {
    fn of(array: &'a dyn Array) -> Option<Self> {
        let numbers = || Keys::of(array).map(Values::Numbers);
        let truths = || array.as_boolean_opt().map(Values::Truths);
        let texts = || array.as_string_view_opt().map(Values::Texts);
        let bytes = || array.as_binary_view_opt().map(Values::Bytes);
        let uuids = || array.as_fixed_size_binary_opt().map(Values::Uuids);
        numbers().or_else(truths).or_else(texts).or_else(bytes).or_else(uuids)
    }

    /// Numbers of 64 bits from a row on; which rows have another one, a bit each.
    #[inline(always)]
    fn numbers(&self, first: usize, into: &mut [i64]) -> u64 {
        fn widened<T: Copy + Into<i64>>(values: &[T], into: &mut [i64]) -> u64 {
            into.iter_mut().zip(values).for_each(|(into, value)| *into = (*value).into());
            0
        }
        match self {
            Values::Numbers(Keys::Bits16(values)) => widened(&values[first..], into),
            Values::Numbers(Keys::Bits32(values)) => widened(&values[first..], into),
            Values::Numbers(Keys::Bits64(values)) => widened(&values[first..], into),
            Values::Numbers(Keys::Bits128(values)) => {
                let mut outside = 0;
                for (bit, (into, value)) in into.iter_mut().zip(&values[first..]).enumerate() {
                    *into = *value as i64;
                    outside |= u64::from(i128::from(*into) != *value) << bit;
                }
                outside
            }
            Values::Truths(truths) => {
                let values = truths.values();
                into.iter_mut().enumerate().for_each(|(row, into)| *into = values.value(first + row).into());
                0
            }
            Values::Texts(_) | Values::Bytes(_) | Values::Uuids(_) => u64::MAX,
        }
    }

    fn number(&self, row: usize) -> i128 {
        match self {
            Values::Numbers(keys) => keys.at(row),
            Values::Truths(truths) => truths.value(row).into(),
            Values::Texts(_) | Values::Bytes(_) | Values::Uuids(_) => 0,
        }
    }
}

/// Keys of one tile that are bytes.
#[derive(Default)]
pub struct ByteTile {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteTile {
    /// The keys, in the order of their rows.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |end| &self.bytes[std::mem::replace(&mut begin, *end)..*end])
    }

    /// The key of a row of the tile.
    pub fn key(&self, row: usize) -> &[u8] {
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[row]]
    }
}

impl KeyBatch<'_> {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Which of so many rows from one on have no key, a bit each. At most a tile of them.
    #[inline(always)]
    pub fn nulls(&self, first: usize, rows: usize) -> u64 {
        let Some(nulls) = &self.nulls else { return 0 };
        let valid = nulls.inner().slice(first, rows).bit_chunks().iter_padded().next().unwrap_or(0);
        !valid & (u64::MAX >> (TILE_ROWS - rows))
    }

    /// Keys from a row on that are numbers. Which rows have values outside of the lookup's types, a bit each; their
    /// keys mean nothing, nor do those of rows without a key.
    #[inline(always)]
    pub fn numbers(&self, first: usize, into: &mut [i64]) -> u64 {
        if let [values] = &self.columns[..] {
            return values.numbers(first, into);
        }
        let (mut packed, mut numbers, mut all_outside) = ([0_u64; TILE_ROWS], [0; TILE_ROWS], 0);
        let (packed, numbers) = (&mut packed[..into.len()], &mut numbers[..into.len()]);
        for (part, values) in self.plan.parts.iter().zip(&self.columns) {
            let Kind::Number(range) = part.kind else { return u64::MAX };
            // All parts together have 64 bits, so these fit.
            let (least, span, bits) = (range.least as i64, range.span() as u64, range.bits());
            let mut outside = values.numbers(first, numbers);
            for (row, (packed, number)) in packed.iter_mut().zip(&*numbers).enumerate() {
                let behind = number.wrapping_sub(least) as u64;
                outside |= u64::from(behind > span) << row;
                *packed = packed.unbounded_shl(bits) | behind;
            }
            all_outside |= outside;
        }
        into.iter_mut().zip(packed).for_each(|(into, packed)| *into = sign(*packed));
        all_outside
    }

    /// Appends the key of a row that has one, as bytes that are in the order of keys: of numbers by their values, of others by
    /// their bytes. The lookup's type must hold it.
    pub fn push_ordered(&self, row: usize, into: &mut Vec<u8>) {
        for ((part, is_last), values) in self.plan.parts_and_last().zip(&self.columns) {
            let from = into.len();
            push(part.kind, true, values, row, into);
            match part.kind {
                Kind::Number(_) => into[from..].reverse(),
                Kind::Text { .. } | Kind::Bytes if !is_last => escape(from, into),
                Kind::Uuid | Kind::Text { .. } | Kind::Bytes => {}
            }
        }
    }

    /// The values of the key of a row that has one.
    pub fn values(&self, row: usize) -> Vec<KeyValue> {
        let mut tile = ByteTile::default();
        self.bytes(row, 1, &mut tile);
        self.plan.values_of_bytes(tile.key(0))
    }

    /// The same for keys that are bytes, of so many rows.
    pub fn bytes(&self, first: usize, rows: usize, tile: &mut ByteTile) -> u64 {
        tile.bytes.clear();
        tile.ends.clear();
        let mut outside = 0;
        for row in 0..rows {
            for ((part, is_last), values) in self.plan.parts_and_last().zip(&self.columns) {
                let fits = push(part.kind, is_last, values, first + row, &mut tile.bytes);
                outside |= u64::from(!fits) << row;
            }
            tile.ends.push(tile.bytes.len());
        }
        outside
    }
}

/// Appends a value; false if the lookup's type cannot hold it.
fn push(kind: Kind, is_last: bool, values: &Values<'_>, row: usize, into: &mut Vec<u8>) -> bool {
    let from = into.len();
    if kind.width().is_none() && !is_last {
        into.extend([0; LENGTH_BYTES]);
    }
    match (kind, values) {
        (Kind::Number(range), values) => {
            let behind = range.behind(values.number(row));
            let bytes = behind.unwrap_or_default().to_le_bytes();
            into.extend_from_slice(&bytes[..range.bits().div_ceil(8) as usize]);
            return behind.is_some();
        }
        (Kind::Uuid, Values::Uuids(uuids)) => into.extend_from_slice(uuids.value(row)),
        (Kind::Bytes, Values::Bytes(bytes)) => into.extend_from_slice(bytes.value(row)),
        (Kind::Text { without_blanks, lower_case }, Values::Texts(texts)) => {
            push_text(texts.value(row), without_blanks, lower_case, into);
        }
        _ => return false,
    }
    if kind.width().is_none() && !is_last {
        // Longer texts than this cannot be in the index.
        let length = (into.len() - from - LENGTH_BYTES) as u32;
        into[from..from + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }
    true
}

/// Ends a value that others follow, so that a shorter one comes before a longer one that begins with it.
fn escape(from: usize, into: &mut Vec<u8>) {
    if into[from..].contains(&0) {
        let value = into.split_off(from);
        value
            .iter()
            .for_each(|byte| into.extend_from_slice(if *byte == 0 { &[0, 0xFF] } else { std::slice::from_ref(byte) }));
    }
    into.extend_from_slice(&[0, 0]);
}

fn push_text(text: &str, without_blanks: bool, lower_case: bool, into: &mut Vec<u8>) {
    let text = if without_blanks { text.trim_end_matches(' ') } else { text };
    let from = into.len();
    if !lower_case || text.is_ascii() {
        into.extend_from_slice(text.as_bytes());
        if lower_case {
            into[from..].make_ascii_lowercase();
        }
        return;
    }
    // Only one letter has several letters in lower case, a dotted capital I; the first of them is its simple mapping.
    let letters = text.chars().map(|letter| letter.to_lowercase().next().unwrap_or(letter));
    letters.for_each(|letter| into.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int16Array, Int32Array, Int64Array};

    use super::*;

    fn plan(pairs: &[(ColumnType, ColumnType)], case: Case) -> Result<KeyPlan, String> {
        let columns: Vec<_> =
            pairs.iter().map(|(lookup, input)| KeyColumn { lookup: *lookup, input: *input, case }).collect();
        KeyPlan::new(&columns)
    }

    #[test]
    fn types_are_compared_or_refused() {
        use ColumnType::*;
        let decimal = |precision, scale| Decimal { precision, scale };
        for (lookup, input, form) in [
            (Int16, Int64, Ok(KeyForm::Number)),
            (decimal(18, 0), Int32, Ok(KeyForm::Number)),
            (decimal(19, 0), Int32, Ok(KeyForm::Bytes(Some(9)))),
            (decimal(38, 2), decimal(5, 2), Ok(KeyForm::Bytes(Some(16)))),
            (Int32, decimal(38, 0), Ok(KeyForm::Number)),
            (Char { length: 3 }, String, Ok(KeyForm::Bytes(None))),
            (Uuid, Uuid, Ok(KeyForm::Bytes(Some(16)))),
            (Time, Time, Ok(KeyForm::Number)),
            (decimal(5, 2), decimal(5, 3), Err("a key of type decimal(5,2) cannot be found by decimal(5,3)")),
            (Int32, decimal(5, 1), Err("a key of type int32 cannot be found by decimal(5,1)")),
            (Varchar { length: 3 }, Int32, Err("a key of type varchar(3) cannot be found by int32")),
            (Timestamp, TimestampTz, Err("a key of type timestamp cannot be found by timestamptz")),
            (Date, Timestamp, Err("a key of type date cannot be found by timestamp")),
            (Float64, Int32, Err("float64 cannot be a key")),
            (Int32, Float32, Err("float32 cannot be a key")),
            (Json, Json, Err("json cannot be a key")),
        ] {
            let found = plan(&[(lookup, input)], Case::Exact).map(|plan| plan.form());
            assert_eq!(found, form.map_err(str::to_owned));
        }
        assert_eq!(plan(&[], Case::Exact).map(|plan| plan.form()), Err("a key without columns".to_owned()));
        let composite = plan(&[(Uuid, Uuid), (Int32, Int32), (Bool, Bool)], Case::Exact);
        assert_eq!(composite.map(|plan| plan.form()), Ok(KeyForm::Bytes(Some(21))));
    }

    #[test]
    fn packed_keys_are_in_order_and_have_their_values() {
        use ColumnType::*;
        let plan = plan(&[(Int16, Int64), (Int32, Int32)], Case::Exact).unwrap();
        let rows = [(i16::MIN, i32::MIN), (i16::MIN, -1), (-1, i32::MAX), (0, 0), (7, 5), (i16::MAX, i32::MAX)];
        let lookup: [ArrayRef; 2] = [
            Arc::new(Int16Array::from_iter_values(rows.map(|row| row.0))),
            Arc::new(Int32Array::from_iter_values(rows.map(|row| row.1))),
        ];
        let mut keys = [0; 6];
        assert_eq!(plan.read(Side::Lookup, &lookup).unwrap().numbers(0, &mut keys), 0);
        assert!(keys.is_sorted());
        for (key, row) in keys.iter().zip(rows) {
            let values = [i128::from(row.0), row.1.into()].map(KeyValue::Number);
            assert_eq!(plan.values_of_number(*key), values);
        }
        // Outside of the lookup's type.
        let numbers = [i64::MIN, -32_769, -32_768, 32_767, 32_768, i64::MAX];
        let input: [ArrayRef; 2] = [Arc::new(Int64Array::from_iter_values(numbers)), lookup[1].clone()];
        assert_eq!(plan.read(Side::Input, &input).unwrap().numbers(0, &mut keys), 0b11_0011);
    }

    #[test]
    fn texts_are_without_blanks_or_in_lower_case_if_asked() {
        use ColumnType::*;
        let char = Char { length: 5 };
        for (lookup, input, case, text, compared) in [
            (String, String, Case::Exact, "Ab  ", "Ab  "),
            (String, char, Case::Exact, "Ab  ", "Ab"),
            (char, String, Case::Exact, " Ab\u{a0} ", " Ab\u{a0}"),
            (String, String, Case::Ignore, "Ab ", "ab "),
            (char, char, Case::Ignore, "ÄSS  ", "äss"),
            // One letter becomes one letter, whatever stands around it and in any language.
            (String, String, Case::Ignore, "İIı ΣΑΣ ẞß Ǆǅ", "iiı σασ ßß ǆǆ"),
        ] {
            let plan = plan(&[(lookup, input), (lookup, input)], case).unwrap();
            let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
            let mut tile = ByteTile::default();
            for side in [Side::Lookup, Side::Input] {
                assert_eq!(plan.read(side, &[texts.clone(), texts.clone()]).unwrap().bytes(0, 1, &mut tile), 0);
                let value = || KeyValue::Text(compared.to_owned());
                assert_eq!(plan.values_of_bytes(tile.key(0)), [value(), value()]);
            }
        }
    }

    #[test]
    fn rows_without_a_key_are_told_wherever_a_batch_begins() {
        let plan = plan(&[(ColumnType::Int32, ColumnType::Int32); 2], Case::Exact).unwrap();
        let column = |step: i32| {
            let values = (0..200).map(|row| (row % step != 0).then_some(row));
            Arc::new(Int32Array::from_iter(values)) as ArrayRef
        };
        let arrays = [column(3), column(5)].map(|array| array.slice(7, 190));
        let batch = plan.read(Side::Input, &arrays).unwrap();
        for (first, rows) in [(0, 64), (64, 64), (1, 64), (126, 64), (189, 1), (150, 40)] {
            let expected = (0..rows).fold(0, |all, row| {
                let number = first + row + 7;
                all | u64::from(number % 3 == 0 || number % 5 == 0) << row
            });
            assert_eq!(batch.nulls(first, rows), expected);
        }
    }
}
