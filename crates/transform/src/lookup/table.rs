//! The table of an index, in one of its forms.

use super::direct::DirectTable;
use super::hashed::HashedTable;
use super::keys::TILE_ROWS;
use super::lines::{Line, LineTable, NarrowLine, WideLine};
use super::short::ShortTable;

/// What a slot of a table has: nothing, 0, so that new memory is empty; or one more than a payload.
pub type Found = u32;

/// The row of a slot that is used, while payloads are rows.
#[inline(always)]
pub fn stored_row(found: Found) -> u32 {
    found - 1
}

/// A number whose highest bits are as good as random, another one for every key.
#[inline(always)]
pub fn spread(key: i64, seed: u64) -> u64 {
    let product = (key as u64 ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (product ^ product >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// How an index finds keys; chosen by the keys that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The key is the place: at most 2.5 places per key.
    Direct,
    /// Keys of 32 bits behind the least one, 10 bytes each.
    Narrow,
    /// Keys of 64 bits, 15.6 bytes each.
    Wide,
    /// Keys of up to 15 bytes, 26.7 bytes each.
    Short,
    /// Hashes of 32 bits, 10 bytes each, and the keys.
    Hashed,
}

impl std::fmt::Display for Form {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Form::Direct => "direct",
            Form::Narrow => "narrow",
            Form::Wide => "wide",
            Form::Short => "short",
            Form::Hashed => "hashed",
        })
    }
}

/// A table.
pub enum Table {
    Direct(DirectTable),
    Narrow(NumberTable<NarrowLine>),
    Wide(NumberTable<WideLine>),
    Short(ShortTable),
    Hashed(HashedTable),
}

impl Table {
    pub fn form(&self) -> Form {
        match self {
            Table::Direct(_) => Form::Direct,
            Table::Narrow(_) => Form::Narrow,
            Table::Wide(_) => Form::Wide,
            Table::Short(_) => Form::Short,
            Table::Hashed(_) => Form::Hashed,
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Table::Direct(table) => table.bytes(),
            Table::Narrow(table) => table.lines.bytes(),
            Table::Wide(table) => table.lines.bytes(),
            Table::Short(table) => table.lines.bytes(),
            Table::Hashed(table) => table.bytes(),
        }
    }
}

/// Lines of keys that are numbers.
pub struct NumberTable<L: Line> {
    /// The least key.
    pub least: i64,
    pub lines: LineTable<L>,
}

/// What lines compare of a number.
pub trait ShortKey: Line {
    /// Of a number, and whether it can be in lines at all that begin with the least one.
    fn short(number: i64, least: i64) -> (Self::Key, bool);
    /// The inverse.
    fn number(short: Self::Key, least: i64) -> i64;
    /// What stands in place of numbers that are not looked for.
    const NONE: Self::Key;
}

impl ShortKey for NarrowLine {
    const NONE: u32 = 0;

    #[inline(always)]
    fn short(number: i64, least: i64) -> (u32, bool) {
        let behind = number.wrapping_sub(least) as u64;
        (behind as u32, behind <= u32::MAX.into())
    }

    fn number(short: u32, least: i64) -> i64 {
        least.wrapping_add(short.into())
    }
}

impl ShortKey for WideLine {
    const NONE: i64 = 0;

    #[inline(always)]
    fn short(number: i64, _least: i64) -> (i64, bool) {
        (number, true)
    }

    fn number(short: i64, _least: i64) -> i64 {
        short
    }
}

impl<L: ShortKey> NumberTable<L> {
    /// The key of a row, while payloads are rows; looks at all of them.
    pub fn key(&self, row: u32) -> Option<i64> {
        self.lines.key(row).map(|short| L::number(short, self.least))
    }

    /// What the keys find, a tile of them.
    #[inline(always)]
    pub fn find(&self, seed: u64, keys: &[i64], found: &mut [Found]) {
        let (mut hashes, mut short) = ([0; TILE_ROWS], [L::NONE; TILE_ROWS]);
        let (hashes, short) = (&mut hashes[..keys.len()], &mut short[..keys.len()]);
        let mut all_near = true;
        for ((key, hash), short) in keys.iter().zip(&mut *hashes).zip(&mut *short) {
            let (value, is_near) = L::short(*key, self.least);
            (*hash, *short) = (spread(*key, seed), value);
            all_near &= is_near;
        }
        self.lines.find(hashes, short, found);
        if !all_near {
            let far = keys.iter().zip(found).filter(|(key, _)| !L::short(**key, self.least).1);
            far.for_each(|(_, found)| *found = 0);
        }
    }
}
