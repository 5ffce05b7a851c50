//! Keys of few bytes: in the lines themselves, so that finding one reads memory once and not three times.

use super::hashed::hash;
use super::keys::{ByteTile, TILE_ROWS};
use super::lines::{LineTable, ShortLine};
use super::table::Found;

/// Bytes of the longest key that a line has room for.
pub const MOST_BYTES: usize = size_of::<u128>() - 1;
/// What no key is: longer ones are looked for by it.
const NONE: u128 = u128::MAX;

/// The key with its length behind it, which tells zeros from nothing.
#[inline(always)]
pub fn pack(key: &[u8]) -> Option<u128> {
    let mut bytes = [0; MOST_BYTES + 1];
    bytes[..MOST_BYTES].get_mut(..key.len())?.copy_from_slice(key);
    bytes[MOST_BYTES] = key.len() as u8;
    Some(u128::from_le_bytes(bytes))
}

/// The inverse.
fn unpack(packed: u128) -> Vec<u8> {
    let bytes = packed.to_le_bytes();
    bytes[..usize::from(bytes[MOST_BYTES]).min(MOST_BYTES)].to_vec()
}

/// Lines of keys.
pub struct ShortTable {
    pub lines: LineTable<ShortLine>,
}

impl ShortTable {
    /// The key of a row, while payloads are rows; looks at all of them.
    pub fn key(&self, row: u32) -> Option<Vec<u8>> {
        self.lines.key(row).map(unpack)
    }

    /// What the keys of a tile find.
    pub fn find(&self, seed: u64, keys: &ByteTile, found: &mut [Found]) {
        let (mut hashes, mut packed) = ([0; TILE_ROWS], [NONE; TILE_ROWS]);
        let (hashes, packed) = (&mut hashes[..found.len()], &mut packed[..found.len()]);
        for ((key, whole), packed) in keys.keys().zip(&mut *hashes).zip(&mut *packed) {
            (*whole, *packed) = (hash(key, seed), pack(key).unwrap_or(NONE));
        }
        self.lines.find(hashes, packed, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_packed_with_their_lengths() {
        let keys: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"a", b"a\0", &[0xFF; MOST_BYTES]];
        let packed: Vec<_> = keys.iter().filter_map(|key| pack(key)).collect();
        let mut different = packed.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!((packed.len(), different.len()), (keys.len(), keys.len()));
        assert!(packed.iter().zip(keys).all(|(packed, key)| *packed != NONE && unpack(*packed) == key));
        assert_eq!(pack(&[0; MOST_BYTES + 1]), None);
    }
}
