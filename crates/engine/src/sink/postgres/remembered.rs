//! Which rows of a COPY came from which text, or pair of files, so that a row that the server refuses is found again.

use std::collections::{HashMap, VecDeque};

use crate::sink::Origin;

/// Text whose batches are remembered as one. It is read again to find a row in it.
const REMEMBERED_BYTES: u64 = 4 << 20;

/// Entries of all units of a flow that a unit of every table remembers; about 48 bytes each. The server is behind by what the
/// network and its buffers hold: a unit that has more entries forgets the oldest.
pub const ENTRIES: usize = 1 << 20;

/// Rows of a COPY by the text that they came from.
pub struct Remembered {
    entries: VecDeque<Entry>,
    most: usize,
    /// Rows of pairs before their last entries, by slice and place: joined rows have no text, they are counted from the first one.
    pairs: HashMap<(u32, u32), u64>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Row of the COPY, from 0, that is the first one of the place in the text.
    first: u64,
    place: u32,
    origin: Origin,
    /// Of a pair, rows of the place in this COPY before.
    before: u64,
}

impl Remembered {
    /// Nothing yet, and never more than `most` entries.
    pub fn new(most: usize) -> Self {
        Remembered { entries: VecDeque::new(), most, pairs: HashMap::new() }
    }

    /// Adds the rows of a place in the text of a batch, the first of which is row `first` of the COPY.
    pub fn add(&mut self, first: u64, place: u32, origin: Origin) {
        match self.entries.back_mut() {
            Some(Entry { origin: last, place: own, .. })
                if *own == place
                    && last.slice == origin.slice
                    && last.at_byte + last.bytes == origin.at_byte
                    && last.bytes + origin.bytes <= REMEMBERED_BYTES =>
            {
                last.bytes += origin.bytes;
            }
            _ => {
                self.count_last(first);
                let pair = self.pairs.get(&(origin.slice, place)).copied();
                let before = pair.filter(|_| origin.is_joined()).unwrap_or(0);
                if self.entries.len() >= self.most {
                    self.entries.pop_front();
                }
                self.entries.push_back(Entry { first, place, origin, before });
            }
        }
    }

    /// Counts the rows of the last entry, which end before `first`, if they are those of a pair.
    fn count_last(&mut self, first: u64) {
        if let Some(last) = self.entries.back().filter(|last| last.origin.is_joined()) {
            *self.pairs.entry((last.origin.slice, last.place)).or_default() += first - last.first;
        }
    }

    /// The text, or pair, of a row of the COPY, and which row of the place there it is. `None` for a row that was forgotten.
    pub fn find(&self, row: u64) -> Option<(Origin, u32, u64)> {
        let behind = self.entries.partition_point(|entry| entry.first <= row);
        let entry = self.entries.get(behind.checked_sub(1)?)?;
        Some((entry.origin, entry.place, row - entry.first + entry.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 512 << 10;

    fn block(number: u64) -> Origin {
        Origin { slice: 1, first_line: 10 * number, at_byte: BLOCK * number, bytes: BLOCK }
    }

    #[test]
    fn places_of_a_long_copy_take_little_memory() {
        let mut batches = Remembered::new(ENTRIES);
        for number in 0..1000 {
            batches.add(9 * number, 0, block(number));
        }
        assert_eq!(batches.entries.len(), 125);
        let (origin, _, row) = batches.find(73).unwrap();
        assert_eq!((row, origin.first_line, origin.at_byte, origin.bytes), (1, 80, 8 * BLOCK, 8 * BLOCK));

        // Another slice; a row between two blocks that was too long; a large row; another place in the same text.
        let other = Origin { slice: 2, first_line: 0, at_byte: 1000 * BLOCK, bytes: 10 };
        batches.add(9000, 0, other);
        batches.add(9001, 0, Origin { first_line: 2, at_byte: other.at_byte + 99, ..other });
        batches.add(9002, 0, Origin { first_line: 3, at_byte: other.at_byte + 109, bytes: 60 << 20, ..other });
        batches.add(9003, 1, Origin { first_line: 4, at_byte: other.at_byte + 109 + (60 << 20), ..other });
        assert_eq!(batches.entries.len(), 129);
    }

    #[test]
    fn rows_of_pairs_that_take_turns_are_counted_from_their_first_one() {
        let mut batches = Remembered::new(2);
        for (first, slice, place) in [(0, 1, 0), (10, 1, 0), (15, 2, 0), (20, 1, 0), (30, 1, 1), (32, 2, 0), (40, 1, 0)]
        {
            batches.add(first, place, Origin::of_joined(slice));
        }
        let found = |row| batches.find(row).map(|(origin, place, row)| (origin.slice, place, row));
        assert_eq!([found(32), found(39)], [Some((2, 0, 5)), Some((2, 0, 12))]);
        assert_eq!([found(40), found(44)], [Some((1, 0, 25)), Some((1, 0, 29))]);
        assert_eq!(found(31), None, "forgotten");
    }

    #[test]
    fn the_oldest_rows_are_forgotten() {
        let mut batches = Remembered::new(2);
        (0..3).for_each(|number| batches.add(10 * number, number as u32, block(number)));
        assert!(batches.find(9).is_none());
        assert_eq!(batches.find(19).map(|(_, place, row)| (place, row)), Some((1, 9)));
        assert_eq!(batches.find(20).map(|(_, place, row)| (place, row)), Some((2, 0)));
    }
}
