//! Keys of a batch as values that can be compared: numbers of 64 bits wherever they fit, otherwise bytes.

use serde::{Deserialize, Serialize};

use crate::lookup::keys::{KeyBatch, KeyForm, KeyPlan, TILE_ROWS};

/// Keys in the order of their rows; those of rows without a key mean nothing.
#[derive(Debug)]
pub enum Codes {
    Numbers(Vec<i64>),
    Bytes(ByteCodes),
}

/// Keys of bytes, one behind the other.
#[derive(Debug, Default)]
pub struct ByteCodes {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Default for Codes {
    fn default() -> Self {
        Codes::Numbers(Vec::new())
    }
}

impl Codes {
    /// Those of a batch, in the memory of another one's.
    pub fn read(self, plan: &KeyPlan, batch: &KeyBatch<'_>, is_null: impl Fn(usize) -> bool) -> Codes {
        match plan.form() {
            KeyForm::Number => {
                let mut numbers = if let Codes::Numbers(numbers) = self { numbers } else { Vec::new() };
                numbers.resize(batch.rows(), 0);
                for (tile, numbers) in numbers.chunks_mut(TILE_ROWS).enumerate() {
                    batch.numbers(tile * TILE_ROWS, numbers);
                }
                Codes::Numbers(numbers)
            }
            KeyForm::Bytes(_) => {
                let mut codes = if let Codes::Bytes(codes) = self { codes } else { ByteCodes::default() };
                codes.bytes.clear();
                codes.ends.clear();
                for row in 0..batch.rows() {
                    if !is_null(row) {
                        batch.push_ordered(row, &mut codes.bytes);
                    }
                    codes.ends.push(codes.bytes.len());
                }
                Codes::Bytes(codes)
            }
        }
    }

    /// The key of a row, to be compared with those of the next batch.
    pub fn owned(&self, row: usize) -> OwnedCode {
        match self {
            Codes::Numbers(numbers) => OwnedCode::Number(numbers[row]),
            Codes::Bytes(codes) => OwnedCode::Bytes(codes.at(row).into()),
        }
    }
}

impl ByteCodes {
    pub fn rows(&self) -> usize {
        self.ends.len()
    }
}

/// A key that outlives its batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OwnedCode {
    Number(i64),
    Bytes(Box<[u8]>),
}

/// Keys of one kind.
pub trait CodesOf {
    /// A key.
    type Code<'a>: Ord + Copy
    where
        Self: 'a;

    /// That of a row.
    fn at(&self, row: usize) -> Self::Code<'_>;
}

impl CodesOf for Vec<i64> {
    type Code<'a> = i64;

    #[inline(always)]
    fn at(&self, row: usize) -> i64 {
        self[row]
    }
}

impl CodesOf for ByteCodes {
    type Code<'a> = &'a [u8];

    fn at(&self, row: usize) -> &[u8] {
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[row]]
    }
}
