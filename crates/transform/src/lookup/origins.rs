//! Rows of the lookup: their numbers while they are read and behind that, and where they come from.
//!
//! Threads number rows at once, by chunk and place: nobody knows then how many rows the others read. When all are read,
//! the chunks follow each other without gaps, and rows have their last numbers.

use std::cmp::Ordering;
use std::sync::Mutex;

use super::RowPlace;
use super::team::lock;

const PLACE_BITS: u32 = 20;
/// Rows of a chunk, at most. A chunk ends with its thread, so it may have fewer.
pub const CHUNK_ROWS: usize = 1 << PLACE_BITS;
/// Chunks, at most: the last row number is below those that mean something else.
pub const MOST_CHUNKS: u32 = (1 << (u32::BITS - PLACE_BITS)) - 1;

/// The number of a row while rows are read.
pub fn number(chunk: u32, place: usize) -> u32 {
    chunk << PLACE_BITS | place as u32
}

/// Rows of a chunk that follow each other in the source.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// In the chunk, of the first row.
    place: u32,
    first: RowPlace,
}

/// Where the rows of one chunk come from.
#[derive(Debug, Default)]
pub struct ChunkOrigins {
    runs: Vec<Run>,
    rows: usize,
}

impl ChunkOrigins {
    /// Takes rows that follow each other.
    pub fn append(&mut self, first: RowPlace, rows: usize) {
        let follows = self.runs.last().is_some_and(|run| run.at(self.rows) == first);
        if !follows && rows > 0 {
            self.runs.push(Run { place: self.rows as u32, first });
        }
        self.rows += rows;
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn bytes(&self) -> u64 {
        (self.runs.len() * size_of::<Run>()) as u64
    }
}

impl Run {
    fn at(&self, place: usize) -> RowPlace {
        RowPlace { row: self.first.row + (place as u64 - u64::from(self.place)), ..self.first }
    }
}

/// Where all rows come from.
#[derive(Debug)]
pub struct Origins {
    /// The last number of the first row of each chunk.
    starts: Vec<u32>,
    chunks: Vec<ChunkOrigins>,
    rows: u32,
}

impl Origins {
    /// Of all chunks, in the order of their numbers. Those have at most as many rows together as there are numbers.
    pub fn new(chunks: Vec<ChunkOrigins>) -> Self {
        let mut rows = 0;
        let mut start = |chunk: &ChunkOrigins| {
            rows += chunk.rows as u32;
            rows - chunk.rows as u32
        };
        let starts = chunks.iter().map(&mut start).collect();
        Origins { starts, chunks, rows }
    }

    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The last number of a row.
    #[inline(always)]
    pub fn row(&self, number: u32) -> u32 {
        self.starts[(number >> PLACE_BITS) as usize] + (number & (CHUNK_ROWS as u32 - 1))
    }

    /// Where a row comes from, by its last number.
    pub fn place(&self, row: u32) -> RowPlace {
        // Chunks without rows begin where the next one does.
        let chunk = self.starts.partition_point(|start| *start <= row) - 1;
        let place = row - self.starts[chunk];
        let runs = &self.chunks[chunk].runs;
        runs[runs.partition_point(|run| run.place <= place) - 1].at(place as usize)
    }
}

/// Rows with one key, as they meet in the index.
pub struct Conflicts<'a> {
    origins: &'a Origins,
    /// Whether one of them is to be told; there may be very many.
    is_told: bool,
    first: Mutex<Option<Conflict>>,
}

/// Two rows with one key, by their last numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    pub first: u32,
    pub second: u32,
}

impl<'a> Conflicts<'a> {
    pub fn new(origins: &'a Origins, is_told: bool) -> Self {
        Conflicts { origins, is_told, first: Mutex::new(None) }
    }

    /// The row that counts, of two with one key: that which comes first in the source.
    #[cold]
    pub fn settle(&self, one: u32, other: u32) -> u32 {
        let [first, second] = match self.compare(one, other) {
            Ordering::Greater => [other, one],
            _ => [one, other],
        };
        if !self.is_told {
            return first;
        }
        // Whatever the order in which the rows of a key meet, its second one meets the first one at some time.
        let mut found = lock(&self.first);
        if found.is_none_or(|found| self.compare(second, found.second).is_lt()) {
            *found = Some(Conflict { first, second });
        }
        first
    }

    fn compare(&self, one: u32, other: u32) -> Ordering {
        self.origins.place(one).cmp(&self.origins.place(other))
    }

    /// The two rows at which reading in the order of the source would have found the first one, if it is to be told.
    pub fn found(self) -> Option<Conflict> {
        *lock(&self.first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(slice: u32, row: u64) -> RowPlace {
        RowPlace { slice, row }
    }

    #[test]
    fn rows_keep_their_places() {
        let mut chunks = [ChunkOrigins::default(), ChunkOrigins::default(), ChunkOrigins::default()];
        let expected = [(0, place(3, 10), 5), (0, place(3, 15), 2), (0, place(3, 18), 1), (2, place(1, 0), 4)];
        let mut places = Vec::new();
        for (chunk, first, rows) in expected {
            for more in 0..rows as u64 {
                places.push((
                    number(chunk as u32, chunks[chunk].rows() + more as usize),
                    place(first.slice, first.row + more),
                ));
            }
            chunks[chunk].append(first, rows);
        }
        assert_eq!(chunks[0].bytes(), 2 * size_of::<Run>() as u64);
        let origins = Origins::new(chunks.into());
        assert_eq!(origins.rows(), 12);
        for (row, (number, place)) in (0..).zip(places) {
            assert_eq!((origins.row(number), origins.place(row)), (row, place));
        }
    }

    proptest! {
        #[test]
        fn conflicts_do_not_depend_on_the_order(keys in prop::collection::vec(0_u32..6, 1..30), seed in any::<u64>()) {
            let mut origins = ChunkOrigins::default();
            origins.append(place(0, 0), keys.len());
            let origins = Origins::new(vec![origins]);
            let mut order: Vec<u32> = (0..keys.len() as u32).collect();
            order.sort_by_key(|row| (u64::from(*row) + 1).wrapping_mul(seed | 1).rotate_left(17));
            let conflicts = Conflicts::new(&origins, true);
            let mut first = [None; 6];
            for row in order {
                let first = &mut first[keys[row as usize] as usize];
                *first = Some(first.map_or(row, |other| conflicts.settle(other, row)));
            }
            let again = |row: &u32| keys[..*row as usize].contains(&keys[*row as usize]);
            let second = (0..keys.len() as u32).find(again);
            let position = |row: u32| keys.iter().position(|key| *key == keys[row as usize]).unwrap() as u32;
            let expected = second.map(|second| Conflict { first: position(second), second });
            prop_assert_eq!(conflicts.found(), expected);
            for (key, first) in (0..).zip(first) {
                prop_assert_eq!(first, keys.iter().position(|other| *other == key).map(|row| row as u32));
            }
        }
    }
}
