//! Partitions by PostgreSQL's hash of one column.

use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayAccessor, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, StringViewArray,
};

use super::keys::Keys;
use super::postgres_hash::{self, remainder};

/// Days from 1970-01-01 to 2000-01-01, where the server's dates begin.
const EPOCH_DAYS: i64 = 10_957;
const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// How the server hashes a column: by the type that the column has there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashKey {
    /// smallint, integer, bigint; time.
    Integer,
    /// numeric, made of whole numbers (scale 0) or decimals.
    Numeric {
        /// Digits behind the point of the column's decimals.
        scale: u8,
    },
    /// real, double precision.
    Float,
    /// boolean.
    Bool,
    /// date.
    Date,
    /// timestamp with or without time zone.
    Timestamp,
    /// text, varchar, bytea, uuid: all bytes. Right for texts only under a deterministic collation.
    Bytes,
    /// char(n): trailing blanks mean nothing.
    Char,
}

/// `modulus` partitions; the number of each is its remainder.
#[derive(Debug, Clone, Copy)]
pub struct HashPartitions {
    key: HashKey,
    modulus: u32,
}

impl HashPartitions {
    /// `None` for no partitions at all.
    pub fn new(key: HashKey, modulus: u32) -> Option<Self> {
        (modulus > 0).then_some(HashPartitions { key, modulus })
    }

    pub(super) fn place(&self, column: &dyn Array, places: &mut Vec<u32>) -> bool {
        places.reserve(column.len());
        let mut push = |hash: u64| places.push(remainder(Some(hash), self.modulus));
        let is_known = match self.key {
            HashKey::Integer => numbers(column, |value| push(postgres_hash::integer(value as i64))),
            HashKey::Numeric { scale } => numbers(column, |value| push(postgres_hash::numeric(value, scale))),
            HashKey::Date => numbers(column, |value| push(postgres_hash::integer(value as i64 - EPOCH_DAYS))),
            HashKey::Timestamp => numbers(column, |value| {
                push(postgres_hash::integer(value as i64 - EPOCH_DAYS * DAY_MICROSECONDS));
            }),
            HashKey::Float => {
                let wide = column.as_any().downcast_ref::<PrimitiveArray<Float64Type>>();
                let narrow = column.as_any().downcast_ref::<PrimitiveArray<Float32Type>>();
                each(wide, |value| push(postgres_hash::float(value)))
                    || each(narrow, |value| push(postgres_hash::float(value.into())))
            }
            HashKey::Bool => {
                each(column.as_any().downcast_ref::<BooleanArray>(), |truth| push(postgres_hash::bits(truth.into())))
            }
            HashKey::Bytes => bytes(column, |value| push(postgres_hash::bytes(value))),
            HashKey::Char => bytes(column, |value| push(postgres_hash::bytes(without_blanks(value)))),
        };
        if let Some(nulls) = column.nulls() {
            let missing = nulls.iter().zip(places).filter(|(is_valid, _)| !is_valid);
            missing.for_each(|(_, place)| *place = remainder(None, self.modulus));
        }
        is_known
    }
}

fn numbers(column: &dyn Array, each: impl FnMut(i128)) -> bool {
    let Some(keys) = Keys::of(column) else { return false };
    keys.for_each(each);
    true
}

fn bytes(column: &dyn Array, mut found: impl FnMut(&[u8])) -> bool {
    let any = column.as_any();
    each(any.downcast_ref::<StringViewArray>(), |text| found(text.as_bytes()))
        || each(any.downcast_ref::<BinaryViewArray>(), &mut found)
        || each(any.downcast_ref::<FixedSizeBinaryArray>(), &mut found)
}

/// Calls `found` with every value; false if there is no array.
fn each<A: ArrayAccessor>(array: Option<A>, mut found: impl FnMut(A::Item)) -> bool {
    let Some(array) = array else { return false };
    (0..array.len()).for_each(|row| found(array.value(row)));
    true
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let length = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    &text[..length]
}
