//! Keys that are dense: the key is the place.

use std::sync::atomic::{AtomicU32, Ordering};

use super::huge_pages;
use super::table::{Found, stored_row};

/// A slot for every number between the least and the greatest key, and an empty one behind them. Slots are only written
/// while the index is built, by all threads at once; reading them costs what reading plain numbers does.
pub struct DirectTable {
    least: i64,
    slots: Vec<AtomicU32>,
}

impl DirectTable {
    /// Bytes of a table for so many numbers.
    pub fn bytes_for(numbers: u64) -> u64 {
        (numbers + 1) * size_of::<AtomicU32>() as u64
    }

    /// An empty table.
    pub fn new(least: i64, numbers: u64) -> Self {
        let mut slots = Vec::with_capacity(numbers as usize + 1);
        huge_pages::prefer(slots.spare_capacity_mut());
        slots.extend((0..=numbers).map(|_| AtomicU32::new(0)));
        DirectTable { least, slots }
    }

    pub fn bytes(&self) -> u64 {
        Self::bytes_for(self.slots.len() as u64 - 1)
    }

    /// The place of a key, the empty one of keys outside.
    #[inline(always)]
    fn slot(&self, key: i64) -> &AtomicU32 {
        let behind = key.wrapping_sub(self.least) as u64;
        &self.slots[behind.min(self.slots.len() as u64 - 1) as usize]
    }

    /// Puts a row in; where one with its key is, `settle` says which of both counts. Whether the key is new.
    pub fn insert(&self, key: i64, row: u32, settle: &impl Fn(u32, u32) -> u32) -> bool {
        let slot = self.slot(key);
        // Nothing else is read because of what is in a slot, so that the order of memory does not matter.
        let mut present = slot.load(Ordering::Relaxed);
        loop {
            if present != 0 && settle(stored_row(present), row) != row {
                return false;
            }
            match slot.compare_exchange_weak(present, row + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return present == 0,
                Err(other) => present = other,
            }
        }
    }

    /// The key of a row; looks at all of them.
    pub fn key(&self, row: u32) -> Option<i64> {
        let behind = self.slots.iter().position(|slot| slot.load(Ordering::Relaxed) == row + 1)?;
        Some(self.least.wrapping_add(behind as i64))
    }

    /// All slots, in parts of at most so many.
    pub fn parts(&self, slots: usize) -> impl Iterator<Item = &[AtomicU32]> {
        self.slots.chunks(slots)
    }

    /// What the keys find.
    #[inline(always)]
    pub fn find(&self, keys: &[i64], found: &mut [Found]) {
        for (key, found) in keys.iter().zip(found) {
            *found = self.slot(*key).load(Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outside_find_nothing() {
        for least in [i64::MIN, -3, 0, i64::MAX - 9] {
            let table = DirectTable::new(least, 10);
            assert_eq!(table.bytes(), 44);
            for (row, behind) in [(7, 0), (8, 5), (9, 9)] {
                assert!(table.insert(least + behind, row, &|_, _| unreachable!()));
            }
            let keys =
                [least, least + 5, least + 9, least + 4, least.wrapping_sub(1), least.wrapping_add(10), i64::MAX / 2];
            let mut found = [99; 7];
            table.find(&keys, &mut found);
            assert_eq!(found, [8, 9, 10, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn of_two_rows_one_counts() {
        let table = DirectTable::new(0, 1);
        let least = |one: u32, other: u32| one.min(other);
        let new: Vec<bool> = [5, 3, 4].into_iter().map(|row| table.insert(0, row, &least)).collect();
        assert_eq!(new, [true, false, false]);
        let mut found = [0];
        table.find(&[0], &mut found);
        assert_eq!(found, [4]);
    }
}
