//! A number for the rows of a lookup, whatever their order: whether it is the same one as before.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use twox_hash::XxHash3_64;

/// What a row begins with.
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;
/// Stands for NULL.
const NULL: u64 = 0xC2B2_AE3D_27D4_EB4F;
/// The prime of the avalanche of xxh3.
const PRIME: u64 = 0x1656_67B1_9E37_79F9;

/// The sum, modulo 2^64, of a hash of each row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Takes rows over. `columns`: all of as many rows, of the Arrow types that columns have. `scratch` is memory for a
    /// number of each row.
    pub fn add(&mut self, columns: &[&[ArrayRef]], scratch: &mut Vec<u64>) {
        scratch.clear();
        for column in columns.iter().copied().flatten() {
            scratch.resize(column.len(), SEED);
            mix(column.as_ref(), scratch);
        }
        self.0 = scratch.iter().fold(self.0, |sum, row| sum.wrapping_add(*row));
    }

    /// Takes the rows of another one over.
    pub fn merge(&mut self, other: Fingerprint) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

/// Mixes the values of a column into the numbers of their rows.
fn mix(column: &dyn Array, rows: &mut [u64]) {
    match column.data_type() {
        DataType::Utf8View => {
            let texts = column.as_string_view();
            mix_each(column, rows, |row| XxHash3_64::oneshot(texts.value(row).as_bytes()));
        }
        DataType::BinaryView => {
            let texts = column.as_binary_view();
            mix_each(column, rows, |row| XxHash3_64::oneshot(texts.value(row)));
        }
        DataType::Boolean => {
            let truths = column.as_boolean();
            mix_each(column, rows, |row| truths.value(row).into());
        }
        other => {
            let data = column.to_data();
            let width = match other {
                DataType::FixedSizeBinary(width) => *width as usize,
                other => other.primitive_width().unwrap_or_default(),
            };
            let values = &data.buffers()[0].as_slice()[data.offset() * width..];
            mix_each(column, rows, |row| match &values[row * width..(row + 1) * width] {
                &[a, b] => u16::from_le_bytes([a, b]).into(),
                &[a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
                &[a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                bytes => XxHash3_64::oneshot(bytes),
            });
        }
    }
}

/// `value`: the number of a row that is not NULL.
#[inline(always)]
fn mix_each(column: &dyn Array, rows: &mut [u64], value: impl Fn(usize) -> u64) {
    match column.nulls() {
        None => rows.iter_mut().enumerate().for_each(|(row, hash)| *hash = mixed(*hash, value(row))),
        Some(nulls) => {
            for (row, hash) in rows.iter_mut().enumerate() {
                *hash = mixed(*hash, if nulls.is_null(row) { NULL } else { value(row) });
            }
        }
    }
}

/// Depends on the order of the columns: each step changes all bits of the one before.
#[inline(always)]
fn mixed(hash: u64, value: u64) -> u64 {
    let mut hash = (hash ^ value).wrapping_mul(PRIME);
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(SEED);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, Decimal128Array, Int16Array, Int64Array, StringViewArray, UInt32Array};
    use arrow_select::take::take;

    use super::*;

    fn of(columns: &[ArrayRef]) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(&[columns], &mut Vec::new());
        fingerprint
    }

    fn columns() -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(-1)])),
            Arc::new(StringViewArray::from(vec![Some("a"), None, Some(""), Some("a text that is no view")])),
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)])),
            Arc::new(Decimal128Array::from(vec![Some(1), Some(1 << 70), None, Some(-1)])),
            Arc::new(Int16Array::from(vec![1, 2, 3, 4])),
        ]
    }

    fn in_order(columns: &[ArrayRef], order: &[u32]) -> Vec<ArrayRef> {
        let order = UInt32Array::from(order.to_vec());
        columns.iter().map(|column| take(column, &order, None).unwrap()).collect()
    }

    #[test]
    fn rows_may_stand_in_any_order_and_in_any_batches() {
        let whole = of(&columns());
        assert_eq!(of(&in_order(&columns(), &[2, 0, 3, 1])), whole);
        let sliced: Vec<ArrayRef> = columns().iter().map(|column| column.slice(1, 3)).collect();
        let mut parts = of(&in_order(&columns(), &[0]));
        parts.merge(of(&sliced));
        assert_eq!(parts, whole);
    }

    #[test]
    fn every_value_of_every_row_counts() {
        let whole = of(&columns());
        for column in 0..columns().len() {
            for (row, other) in [(0, 1), (2, 1), (3, 0)] {
                let mut changed = columns();
                let mut order = [0, 1, 2, 3];
                order[row] = other;
                let replaced = in_order(&changed[column..=column], &order).remove(0);
                if replaced.as_ref() == changed[column].as_ref() {
                    continue;
                }
                changed[column] = replaced;
                assert_ne!(of(&changed), whole, "column {column}, row {row}");
            }
        }
        assert_ne!(of(&in_order(&columns(), &[0, 1, 2])), whole, "a row less");
        assert_ne!(of(&in_order(&columns(), &[0, 1, 2, 3, 3])), whole, "a row twice");
    }

    #[test]
    fn values_belong_to_their_column_and_row() {
        let numbers = |values: [i64; 2]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
        let one = of(&[numbers([1, 2]), numbers([3, 4])]);
        assert_ne!(of(&[numbers([3, 4]), numbers([1, 2])]), one, "columns exchanged");
        assert_ne!(of(&[numbers([1, 2]), numbers([4, 3])]), one, "values exchanged between rows");
    }
}
