//! Keys that are bytes: narrow lines by their hashes, and the keys themselves by row.

use std::hint::black_box;

use twox_hash::XxHash3_64;

use super::BuildError;
use super::budget::Budget;
use super::huge_pages;
use super::keys::{ByteTile, TILE_ROWS};
use super::lines::{LineTable, NarrowLine};
use super::table::Found;

/// Rows after which offsets of keys begin anew: so many of the longest ones have less than 2^32 bytes.
const BLOCK_BITS: u32 = 16;

/// The hash of a key. Its highest bits pick the line, its lowest ones are what lines compare.
#[inline(always)]
pub fn hash(key: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, key)
}

/// Keys of one chunk.
#[derive(Default)]
pub struct KeyChunk {
    bytes: Vec<u8>,
    /// Of each key; none if all have as many bytes. So no key has 64 KB or more.
    lengths: Vec<u16>,
}

impl KeyChunk {
    /// Takes the key of the next row; false if it is too long. Keys of one `width` need no lengths.
    pub fn push(&mut self, key: &[u8], width: Option<usize>) -> bool {
        let Ok(length) = u16::try_from(key.len()) else { return false };
        self.bytes.extend_from_slice(key);
        if width.is_none() {
            self.lengths.push(length);
        }
        true
    }

    /// Memory that has been written.
    pub fn bytes(&self) -> u64 {
        (self.bytes.len() + self.lengths.len() * size_of::<u16>()) as u64
    }
}

/// The bytes of each key, where all have as many, as codes do: then they need no starts, in memory and on each probe.
fn width_of_all(chunks: &[KeyChunk]) -> Option<usize> {
    let mut lengths = chunks.iter().flat_map(|chunk| &chunk.lengths);
    let first = lengths.next()?;
    lengths.all(|length| length == first).then_some(usize::from(*first))
}

/// The keys of all rows.
pub struct KeyStore {
    bytes: Vec<u8>,
    layout: KeyLayout,
}

enum KeyLayout {
    /// So many bytes each.
    Fixed(usize),
    /// Where keys begin in their block, and where blocks begin. One key more ends the last one.
    Variable { starts: Vec<u32>, blocks: Vec<u64> },
}

impl KeyStore {
    /// Puts chunks behind each other; each of them is there twice only while it is copied.
    pub fn merge(chunks: Vec<KeyChunk>, width: Option<usize>, budget: &Budget) -> Result<Self, BuildError> {
        let width = width.or_else(|| width_of_all(&chunks));
        let mut bytes = Vec::with_capacity(chunks.iter().map(|chunk| chunk.bytes.len()).sum());
        huge_pages::prefer(bytes.spare_capacity_mut());
        let (mut starts, mut blocks) = (Vec::new(), Vec::new());
        if width.is_none() {
            starts.reserve_exact(chunks.iter().map(|chunk| chunk.lengths.len()).sum::<usize>() + 1);
            huge_pages::prefer(starts.spare_capacity_mut());
        }
        let mut end = 0;
        let mut start = |end: u64| {
            if starts.len() % (1 << BLOCK_BITS) == 0 {
                blocks.push(end);
            }
            // Within a block there are less than 2^32 bytes.
            starts.push((end - blocks[blocks.len() - 1]) as u32);
        };
        for chunk in chunks {
            // Starts have twice the bytes of lengths.
            let (twice, lengths) = (chunk.bytes(), (chunk.lengths.len() * size_of::<u16>()) as u64);
            let (more, less) = if width.is_none() { (lengths, 0) } else { (0, lengths) };
            budget.take(twice + more)?;
            bytes.extend_from_slice(&chunk.bytes);
            if width.is_none() {
                for length in &chunk.lengths {
                    start(end);
                    end += u64::from(*length);
                }
            }
            drop(chunk);
            budget.give_back(twice + less);
        }
        let layout = match width {
            Some(width) => KeyLayout::Fixed(width),
            None => {
                start(end);
                KeyLayout::Variable { starts, blocks }
            }
        };
        Ok(KeyStore { bytes, layout })
    }

    fn start(&self, row: usize) -> Option<usize> {
        match &self.layout {
            KeyLayout::Fixed(width) => Some(row * width),
            KeyLayout::Variable { starts, blocks } => {
                Some((blocks.get(row >> BLOCK_BITS)? + u64::from(*starts.get(row)?)) as usize)
            }
        }
    }

    /// The key of a row, if there is that row.
    #[inline(always)]
    pub fn key(&self, row: u32) -> Option<&[u8]> {
        let row = row as usize;
        self.bytes.get(self.start(row)?..self.start(row + 1)?)
    }

    /// Bytes of the longest key.
    pub fn greatest_length(&self) -> usize {
        match &self.layout {
            KeyLayout::Fixed(width) => *width,
            KeyLayout::Variable { starts, .. } => {
                let length = |row| self.key(row).map_or(0, <[u8]>::len);
                (0..starts.len() as u32).map(length).max().unwrap_or_default()
            }
        }
    }

    /// Memory.
    pub fn bytes(&self) -> u64 {
        let layout = match &self.layout {
            KeyLayout::Fixed(_) => 0,
            KeyLayout::Variable { starts, blocks } => size_of_val(&starts[..]) + size_of_val(&blocks[..]),
        };
        (self.bytes.len() + layout) as u64
    }
}

/// Lines of hashes, and keys.
pub struct HashedTable {
    pub lines: LineTable<NarrowLine>,
    pub keys: KeyStore,
}

impl HashedTable {
    pub fn bytes(&self) -> u64 {
        self.lines.bytes() + self.keys.bytes()
    }

    /// What the keys of a tile find.
    pub fn find(&self, seed: u64, keys: &ByteTile, found: &mut [Found]) {
        let (mut hashes, mut short) = ([0; TILE_ROWS], [0; TILE_ROWS]);
        let (hashes, short) = (&mut hashes[..found.len()], &mut short[..found.len()]);
        for ((key, whole), short) in keys.keys().zip(&mut *hashes).zip(&mut *short) {
            *whole = hash(key, seed);
            *short = *whole as u32;
        }
        self.lines.find(hashes, short, found);
        // Again in loops of their own: where keys are, their memory, and keys.
        let mut stored = [None; TILE_ROWS];
        for (stored, found) in stored.iter_mut().zip(&*found) {
            *stored = found.checked_sub(1).and_then(|row| self.keys.key(row));
        }
        let first = |key: &Option<&[u8]>| key.and_then(<[u8]>::first).copied().unwrap_or_default();
        black_box(stored[..found.len()].iter().fold(0, |all, key| all | first(key)));
        for (row, found) in found.iter_mut().enumerate() {
            let key = keys.key(row);
            if *found > 0 && stored[row] != Some(key) {
                *found = self.search(hashes[row], key);
            }
        }
    }

    /// What a key finds where other keys have as many equal bits of their hashes as lines compare.
    #[cold]
    fn search(&self, hash: u64, key: &[u8]) -> Found {
        self.lines.search(hash, hash as u32, |row| self.keys.key(row) == Some(key))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringViewArray};
    use headrace_types::ColumnType;

    use super::super::keys::{KeyPlan, Side};
    use super::super::lines::{Arrival, Inserted};
    use super::super::{Case, KeyColumn};
    use super::*;

    fn store(chunks: &[&[&[u8]]], width: Option<usize>) -> (KeyStore, u64) {
        let budget = Budget::new(u64::MAX);
        let chunk = |keys: &&[&[u8]]| {
            let mut chunk = KeyChunk::default();
            assert!(keys.iter().all(|key| chunk.push(key, width)));
            budget.take(chunk.bytes()).unwrap();
            chunk
        };
        let chunks = chunks.iter().map(chunk).collect();
        (KeyStore::merge(chunks, width, &budget).unwrap(), budget.used())
    }

    #[test]
    fn keys_of_chunks_follow_each_other() {
        let (variable, used) = store(&[&[b"a", b"", b"bcd"], &[], &[b"", b"ef"]], None);
        let keys: Vec<_> = (0..6).map(|row| variable.key(row)).collect();
        assert_eq!(keys, [Some(&b"a"[..]), Some(b""), Some(b"bcd"), Some(b""), Some(b"ef"), None]);
        assert_eq!(used, 6 + 5 * 4);
        let (fixed, used) = store(&[&[b"ab", b"cd"], &[b"ef"]], Some(2));
        assert_eq!([0, 2, 3].map(|row| fixed.key(row)), [Some(&b"ab"[..]), Some(b"ef"), None]);
        assert_eq!((used, fixed.bytes()), (6, 6));
        let (alike, used) = store(&[&[b"ab", b"cd"], &[], &[b"ef"]], None);
        assert_eq!([1, 2, 3].map(|row| alike.key(row)), [Some(&b"cd"[..]), Some(b"ef"), None]);
        assert_eq!((used, alike.bytes()), (6, 6));
    }

    #[test]
    fn offsets_begin_anew_with_every_block() {
        let keys: Vec<Vec<u8>> = (0..200_000_u32).map(|row| row.to_string().into_bytes()).collect();
        let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let (store, _) = store(&[&slices[..150_000], &slices[150_000..]], None);
        assert!((0..).zip(&keys).all(|(row, key)| store.key(row) == Some(key)));
        let KeyLayout::Variable { starts, blocks } = &store.layout else { panic!("of one width") };
        assert_eq!((starts.len(), blocks.len(), starts[3 << BLOCK_BITS]), (200_001, 4, 0));
    }

    #[test]
    fn keys_of_one_hash_are_told_apart() {
        let column = KeyColumn { lookup: ColumnType::String, input: ColumnType::String, case: Case::Exact };
        let plan = KeyPlan::new(&[column]).unwrap();
        let texts: [ArrayRef; 1] = [Arc::new(StringViewArray::from_iter_values(["a", "b", "c", "", "x"]))];
        let batch = plan.read(Side::Input, &texts).unwrap();
        let mut tile = ByteTile::default();
        assert_eq!(batch.bytes(0, 5, &mut tile), 0);
        // All of them in the lines of all of them: rows 1 | 2 and 1 | 2 | 4 are others, and some are no rows.
        let (keys, _) = store(&[&[b"c", b"b", b"a"]], None);
        let mut lines = LineTable::<NarrowLine>::new(4);
        let seed = 5;
        for key in tile.keys() {
            for row in 0..3 {
                let hash = hash(key, seed);
                let arrival = Arrival { hash, key: hash as u32, row };
                assert_eq!(lines.insert_beyond(arrival, &|_, _| false, &|_, _| 0), Ok(Inserted::New));
            }
        }
        let mut found = [9; 5];
        HashedTable { lines, keys }.find(seed, &tile, &mut found);
        assert_eq!(found, [3, 2, 1, 0, 0]);
    }
}
